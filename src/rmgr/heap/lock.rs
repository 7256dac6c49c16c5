//! LOCK: a tuple gets a locker as its xmax. Heap2's LOCK_UPDATED has the same layout.

use super::infobits::Infobits;
use super::vm_clear::{self, HEAP, MAP};
use super::{required_block, unexpected_block};
use crate::decode::Record;
use crate::page::heap_tuple::ItemPointer;
use crate::page::{Page, vm};
use crate::rmgr::{Effect, RmgrError, Touch, Touches};
use crate::types::digits::{push_decimal, push_hex};
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
    match touch.block_id() {
        HEAP => redo_heap(lock, record, page),
        MAP => vm_clear::redo(record, lock.cleared_bits(), touch, page),
        _ => Err(unexpected_block(touch.block_id())),
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
    out.push_str("off ");
    push_decimal(out, offnum.into());
    out.push_str(": xid ");
    push_decimal(out, xmax.0);
    out.push_str(": flags 0x");
    push_hex(out, flags.into(), 2);
    out.push(' ');
    lock.infobits_set.desc(out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PD_ALL_VISIBLE;
    use crate::rmgr::Target;
    use crate::rmgr::testing::{TUPLE, heap_block, heap_page, map_block, record};

    /// Locker 0x11121314, line pointer 2, infobits and flags.
    fn main_data(infobits: u8, flags: u8) -> [u8; 8] {
        [0x14, 0x13, 0x12, 0x11, 2, 0, infobits, flags]
    }

    /// The tuple after redo.
    fn locked(infobits: u8) -> Vec<u8> {
        let main_data = main_data(infobits, 0);
        let lock = record(10, 0x60, &main_data).with(heap_block(0, 0xA_000B, &[]));
        let mut page = heap_page(2);
        page.set_flag(PD_ALL_VISIBLE);
        assert_eq!(lock.redo_touch(0, &mut page).unwrap(), Effect::changed());
        assert_eq!((page.flags(), page.prune_xid().0), (PD_ALL_VISIBLE, 0));
        page.item(2).unwrap().to_vec()
    }

    #[test]
    fn a_mere_locker_cuts_the_link_to_the_next_version() {
        let mut expected = TUPLE;
        expected[4..8].copy_from_slice(&[0x14, 0x13, 0x12, 0x11]);
        expected[8..18].copy_from_slice(&[0, 0, 0, 0, 0x0A, 0, 0x0B, 0, 2, 0]);
        expected[18..22].copy_from_slice(&[0xFF, 0x9F, 0xCF, 0x23]);
        assert_eq!(locked(0x06), expected);
    }

    #[test]
    fn a_multixact_with_an_updater_keeps_it() {
        let mut expected = TUPLE;
        expected[4..8].copy_from_slice(&[0x14, 0x13, 0x12, 0x11]);
        expected[8..12].fill(0);
        expected[18..22].copy_from_slice(&[0xFF, 0xDF, 0x0F, 0x33]);
        assert_eq!(locked(0x01), expected);
    }

    #[test]
    fn the_map_loses_the_frozen_bit_only() {
        let main_data = main_data(0x06, 0x01);
        let lock = record(10, 0x60, &main_data).with(heap_block(0, 4, &[]));
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
        assert_eq!(registered.redo_touch(1, &mut map).unwrap(), Effect::none());
    }

    #[test]
    fn text_and_truncation() {
        let main_data = main_data(0x0E, 0x01);
        let lock = record(10, 0x60, &main_data).with(heap_block(0, 4, &[]));
        let expected = "off 2: xid 286397204: flags 0x01 LOCK_ONLY EXCL_LOCK KEYSHR_LOCK ";
        assert_eq!(lock.text(), expected);
        lock.cut_everywhere(&heap_page(2));
    }
}
