//! VISIBLE: a heap page is all-visible, perhaps all-frozen, and the visibility map says so.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::{PD_ALL_VISIBLE, Page, vm};
use crate::rmgr::heap::vm_clear::check_map_block;
use crate::rmgr::heap::{block_id, required_block, unexpected_block};
use crate::rmgr::{
    Effect, PageState, ReadMode, RedoSettings, RmgrError, Target, Touch, Touches, explicit_touches,
};
use crate::types::{Cursor, ShortRead, TransactionId};

/// Block reference of the page of the map.
const MAP: u8 = 0;
/// Block reference of the heap page.
const HEAP: u8 = 1;

/// Main data of VISIBLE, 5 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_visible")]
struct HeapVisible {
    /// Offset 0. Queries on a standby wait for it, redo of the pages does not.
    cutoff_xid: TransactionId,
    /// Offset 4: the bits of the map; other bits are none of it.
    flags: u8,
}

impl HeapVisible {
    fn decode(bytes: &[u8]) -> Result<HeapVisible, ShortRead> {
        let mut c = Cursor::new("xl_heap_visible", bytes);
        Ok(HeapVisible {
            cutoff_xid: TransactionId(c.u32("cutoff_xid")?),
            flags: c.u8("flags")?,
        })
    }

    /// The bits to set.
    fn map_bits(self) -> u8 {
        self.flags & vm::VALID_BITS
    }
}

/// The block references. The page of the map is made if it is missing. PostgreSQL goes to the
/// heap page first; the two do not depend on each other.
pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    explicit_touches(record, out)?;
    for touch in out.iter_mut().filter(|t| t.target == Target::Block(MAP)) {
        touch.read = ReadMode::ZeroOnError;
    }
    Ok(())
}

pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    let visible = HeapVisible::decode(record.main_data)?;
    match block_id(touch) {
        MAP => redo_map(visible, record, touch, state, page),
        HEAP => Ok(redo_heap(visible, state, page, settings)),
        _ => Err(unexpected_block(touch)),
    }
}

/// The first half of `heap_xlog_visible`. PD_ALL_VISIBLE is a hint where hints are not logged, and
/// then the page keeps its LSN. The free space map learns of the page whatever its state, lest
/// VACUUM trust an old figure for a page that it will skip from now on.
fn redo_heap(
    visible: HeapVisible,
    state: PageState,
    page: &mut Page,
    settings: &RedoSettings,
) -> Effect {
    let effect = match state {
        PageState::Needs => {
            page.set_flag(PD_ALL_VISIBLE);
            if settings.hint_bits_are_logged {
                Effect::changed()
            } else {
                Effect::keep_lsn()
            }
        }
        PageState::Done | PageState::Restored => Effect::none(),
    };
    if visible.map_bits() == 0 {
        return effect;
    }
    // Not the heap variant: PostgreSQL does not count line pointers here.
    effect.with_free_space(page.free_space())
}

/// The second half of `heap_xlog_visible`, and `visibilitymap_set`: bits are added, none is
/// cleared, and a page that has just these already keeps its LSN.
fn redo_map(
    visible: HeapVisible,
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    if state != PageState::Needs {
        return Ok(Effect::none());
    }
    let heap_block = required_block(record, HEAP)?.tag.block;
    check_map_block(touch, heap_block)?;
    if page.is_new() {
        page.init(0);
    }
    if vm::get(page, heap_block) == visible.map_bits() {
        return Ok(Effect::none());
    }
    vm::set(page, heap_block, visible.map_bits());
    Ok(Effect::changed())
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapVisible { cutoff_xid, flags } = HeapVisible::decode(record.main_data)?;
    let _ = write!(out, "cutoff xid {cutoff_xid} flags 0x{flags:02X}");
    Ok(())
}
