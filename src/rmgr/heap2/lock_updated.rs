//! LOCK_UPDATED: a later version of a locked row gets the locker as its xmax too.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::Page;
use crate::rmgr::heap::lock::HeapLock;
use crate::rmgr::heap::vm_clear::{self, HEAP, MAP};
use crate::rmgr::unexpected_block;
use crate::rmgr::{Effect, PageState, RmgrError, Touch, Touches};

const STRUCTURE: &str = "xl_heap_lock_updated";

pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    let lock = HeapLock::decode(STRUCTURE, record.main_data)?;
    vm_clear::touches(record, lock.cleared_bits(), out)
}

pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    if state != PageState::Needs {
        return Ok(Effect::none());
    }
    let lock = HeapLock::decode(STRUCTURE, record.main_data)?;
    match touch.block_id() {
        HEAP => redo_heap(lock, page),
        MAP => vm_clear::redo(record, lock.cleared_bits(), touch, page),
        _ => Err(unexpected_block(touch.block_id())),
    }
}

/// `heap_xlog_lock_updated`. Unlike LOCK it leaves t_cid, t_ctid and HEAP_HOT_UPDATED alone: the
/// tuple may have a next version of its own.
fn redo_heap(lock: HeapLock, page: &mut Page) -> Result<Effect, RmgrError> {
    let mut tuple = page.heap_tuple_mut(lock.offnum)?;
    lock.infobits_set.apply(&mut tuple);
    tuple.set_xmax(lock.xmax);
    Ok(Effect::changed())
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let lock = HeapLock::decode(STRUCTURE, record.main_data)?;
    let HeapLock {
        xmax,
        offnum,
        flags,
        ..
    } = lock;
    let _ = write!(out, "off {offnum}: xmax {xmax}: flags 0x{flags:02X} ");
    lock.infobits_set.desc(out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::vm;
    use crate::rmgr::Target;
    use crate::rmgr::testing::{TUPLE, heap_block, heap_page, map_block, record};

    /// xmax 0x11121314, line pointer 2, a mere locker, all-frozen cleared.
    const MAIN_DATA: [u8; 8] = [0x14, 0x13, 0x12, 0x11, 2, 0, 0x06, 0x01];

    #[test]
    fn links_and_command_id_stay() {
        let lock = record(9, 0x60, &MAIN_DATA).with(heap_block(0, 0xA_000B, &[]));
        let mut page = heap_page(2);
        assert_eq!(lock.redo_touch(1, &mut page).unwrap(), Effect::changed());
        let mut expected = TUPLE;
        expected[4..8].copy_from_slice(&[0x14, 0x13, 0x12, 0x11]);
        expected[18..22].copy_from_slice(&[0xFF, 0xDF, 0xEF, 0x23]);
        assert_eq!(page.item(2).unwrap(), &expected);
        for state in [PageState::Done, PageState::Restored] {
            assert_eq!(lock.redo_idle(state, &heap_page(2)), Effect::none());
        }
    }

    #[test]
    fn the_map_loses_the_frozen_bit_only() {
        let lock = record(9, 0x60, &MAIN_DATA).with(heap_block(0, 4, &[]));
        let target = Target::VmClear {
            heap_block: 4,
            bits: 2,
        };
        assert_eq!(lock.touches().unwrap()[0].target, target);
        let registered = lock.with(map_block(1, 0));
        let mut map = Page::zeroed();
        vm::set(&mut map, 4, 3);
        assert_eq!(
            registered.redo_touch(1, &mut map).unwrap(),
            Effect::changed()
        );
        assert_eq!(vm::get(&map, 4), 1);
    }

    #[test]
    fn text_and_truncation() {
        let lock = record(9, 0x60, &MAIN_DATA).with(heap_block(0, 4, &[]));
        assert_eq!(
            lock.text(),
            "off 2: xmax 286397204: flags 0x01 LOCK_ONLY EXCL_LOCK "
        );
        lock.cut_everywhere(&heap_page(2));
    }
}
