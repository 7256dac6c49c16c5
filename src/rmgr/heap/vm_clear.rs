//! Clearing bits of the visibility map for a heap page that is no longer all-visible.
//!
//! Through most of PostgreSQL's life the page of the map was not registered in the record: redo
//! clears the bits before it reads the heap page, whatever it finds there, without asking or
//! stamping an LSN on the page of the map. The 2026 minors of the newer majors register the page
//! where bits were really set. Which form it is, the record itself says.

use super::required_block;
use crate::decode::Record;
use crate::page::{Page, vm};
use crate::rmgr::{
    Effect, ReadMode, RmgrError, Target, Touch, TouchKind, Touches, explicit_touches,
};
use crate::types::{BlockNumber, BlockTag, ForkNumber};

/// Block reference of the heap page.
pub(in crate::rmgr) const HEAP: u8 = 0;
/// Block reference of the page of the map, in records that change one heap page.
pub(in crate::rmgr) const MAP: u8 = 1;

/// Touches of a record that changes one heap page and clears `bits` of it, possibly none.
pub(in crate::rmgr) fn touches(
    record: &Record<'_>,
    bits: u8,
    out: &mut Touches,
) -> Result<(), RmgrError> {
    if bits != 0 && record.block(MAP).is_none() {
        out.push(unregistered(required_block(record, HEAP)?.tag, bits));
    }
    explicit_touches(record, out)
}

/// The touch that clears `bits` of a heap page without a block reference.
pub(super) fn unregistered(heap: BlockTag, bits: u8) -> Touch {
    Touch {
        tag: BlockTag {
            fork: ForkNumber::Vm,
            block: vm::map_block(heap.block),
            ..heap
        },
        kind: TouchKind::Modify,
        read: ReadMode::VisibilityMap,
        target: Target::VmClear {
            heap_block: heap.block,
            bits,
        },
    }
}

/// Redo on the registered page of the map, in records that change one heap page.
pub(in crate::rmgr) fn redo(
    record: &Record<'_>,
    bits: u8,
    touch: &Touch,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let heap_block = required_block(record, HEAP)?.tag.block;
    let changed = clear(touch, page, heap_block, bits)?;
    Ok(effect(changed))
}

/// Clears bits on a registered page, which must be the one that has them.
pub(super) fn clear(
    touch: &Touch,
    page: &mut Page,
    heap_block: BlockNumber,
    bits: u8,
) -> Result<bool, RmgrError> {
    check_map_block(touch, heap_block)?;
    Ok(vm::clear(page, heap_block, bits))
}

/// A page of the map takes the record's LSN only if a bit was set.
pub(super) fn effect(changed: bool) -> Effect {
    if changed {
        Effect::changed()
    } else {
        Effect::none()
    }
}

/// Checks that the page touched is the one with the bits of `heap_block`.
pub(in crate::rmgr) fn check_map_block(
    touch: &Touch,
    heap_block: BlockNumber,
) -> Result<(), RmgrError> {
    if touch.tag.block == vm::map_block(heap_block) {
        return Ok(());
    }
    Err(RmgrError::corrupt(format!(
        "block {} of the visibility map does not cover heap block {heap_block}",
        touch.tag.block
    )))
}
