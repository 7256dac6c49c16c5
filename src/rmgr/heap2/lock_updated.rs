//! LOCK_UPDATED: a later version of a locked row gets the locker as its xmax too.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::Page;
use crate::rmgr::heap::lock::HeapLock;
use crate::rmgr::heap::vm_clear::{self, HEAP, MAP};
use crate::rmgr::heap::{block_id, unexpected_block};
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
    match block_id(touch) {
        HEAP => redo_heap(lock, page),
        MAP => vm_clear::redo(record, lock.cleared_bits(), touch, page),
        _ => Err(unexpected_block(touch)),
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
