//! LOCK: a tuple gets a locker as its xmax. Heap2's LOCK_UPDATED has the same layout.

use std::fmt::Write;

use super::infobits::Infobits;
use super::vm_clear::{self, HEAP, MAP};
use super::{block_id, required_block, unexpected_block};
use crate::decode::Record;
use crate::page::heap_tuple::ItemPointer;
use crate::page::{Page, vm};
use crate::rmgr::{Effect, RmgrError, Touch, Touches};
use crate::types::{Cursor, OffsetNumber, ShortRead, TransactionId};

/// `XLH_LOCK_ALL_FROZEN_CLEARED`.
const ALL_FROZEN_CLEARED: u8 = 0x01;

/// Main data of LOCK and LOCK_UPDATED, 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_lock")]
#[doc(alias = "xl_heap_lock_updated")]
pub(in crate::rmgr) struct HeapLock {
    /// Offset 0: `locking_xid` of LOCK. A multixact if the infobits say so.
    pub(in crate::rmgr) xmax: TransactionId,
    /// Offset 4.
    pub(in crate::rmgr) offnum: OffsetNumber,
    /// Offset 6.
    pub(in crate::rmgr) infobits_set: Infobits,
    /// Offset 7: `XLH_LOCK_*`.
    pub(in crate::rmgr) flags: u8,
}

impl HeapLock {
    /// Reads the eight bytes of a `structure`.
    pub(in crate::rmgr) fn decode(
        structure: &'static str,
        bytes: &[u8],
    ) -> Result<HeapLock, ShortRead> {
        let mut c = Cursor::new(structure, bytes);
        Ok(HeapLock {
            xmax: TransactionId(c.u32("xmax")?),
            offnum: c.u16("offnum")?,
            infobits_set: Infobits(c.u8("infobits_set")?),
            flags: c.u8("flags")?,
        })
    }

    /// Bits of the visibility map that go. A locked tuple is as visible as before, but not
    /// frozen; PD_ALL_VISIBLE stays.
    pub(in crate::rmgr) fn cleared_bits(self) -> u8 {
        if self.flags & ALL_FROZEN_CLEARED != 0 {
            vm::ALL_FROZEN
        } else {
            0
        }
    }
}

const STRUCTURE: &str = "xl_heap_lock";

pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    let lock = HeapLock::decode(STRUCTURE, record.main_data)?;
    vm_clear::touches(record, lock.cleared_bits(), out)
}

pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let lock = HeapLock::decode(STRUCTURE, record.main_data)?;
    match block_id(touch) {
        HEAP => redo_heap(lock, record, page),
        MAP => vm_clear::redo(record, lock.cleared_bits(), touch, page),
        _ => Err(unexpected_block(touch)),
    }
}

/// `heap_xlog_lock`. Links to a next version go only if the new xmax is no updater.
fn redo_heap(lock: HeapLock, record: &Record<'_>, page: &mut Page) -> Result<Effect, RmgrError> {
    let block = required_block(record, HEAP)?.tag.block;
    let mut tuple = page.heap_tuple_mut(lock.offnum)?;
    lock.infobits_set.apply(&mut tuple);
    if tuple.is_locked_only() {
        tuple.clear_hot_updated();
        tuple.set_ctid(ItemPointer {
            block,
            offset: lock.offnum,
        });
    }
    tuple.set_xmax(lock.xmax);
    tuple.clear_cid();
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
    let _ = write!(out, "off {offnum}: xid {xmax}: flags 0x{flags:02X} ");
    lock.infobits_set.desc(out);
    Ok(())
}
