//! FREEZE_PAGE: transaction ids that are about to become ambiguous are taken out of tuples.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::Page;
use crate::rmgr::heap::required_block;
use crate::rmgr::heap::vm_clear::HEAP;
use crate::rmgr::unexpected_block;
use crate::rmgr::{Effect, PageState, RmgrError, Touch};
use crate::types::{Cursor, OffsetNumber, ShortRead, TransactionId};

/// `XLH_FREEZE_XVAC`.
const FREEZE_XVAC: u8 = 0x02;
/// `XLH_INVALID_XVAC`.
const INVALID_XVAC: u8 = 0x04;

/// Main data of FREEZE_PAGE, 6 bytes. Block 0 has a [`HeapFreezeTuple`] for each tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_freeze_page")]
struct HeapFreezePage {
    /// Offset 0. Queries on a standby wait for it, redo of the page does not.
    cutoff_xid: TransactionId,
    /// Offset 4.
    ntuples: u16,
}

impl HeapFreezePage {
    fn decode(bytes: &[u8]) -> Result<HeapFreezePage, ShortRead> {
        let mut c = Cursor::new("xl_heap_freeze_page", bytes);
        Ok(HeapFreezePage {
            cutoff_xid: TransactionId(c.u32("cutoff_xid")?),
            ntuples: c.u16("ntuples")?,
        })
    }
}

/// What one tuple becomes, 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_freeze_tuple")]
struct HeapFreezeTuple {
    /// Offset 0.
    xmax: TransactionId,
    /// Offset 4.
    offset: OffsetNumber,
    /// Offset 6.
    infomask2: u16,
    /// Offset 8.
    infomask: u16,
    /// Offset 10: `XLH_FREEZE_XVAC`, `XLH_INVALID_XVAC`. A byte of padding follows.
    frzflags: u8,
}

impl HeapFreezeTuple {
    fn decode(c: &mut Cursor<'_>) -> Result<HeapFreezeTuple, ShortRead> {
        let tuple = HeapFreezeTuple {
            xmax: TransactionId(c.u32("xmax")?),
            offset: c.u16("offset")?,
            infomask2: c.u16("t_infomask2")?,
            infomask: c.u16("t_infomask")?,
            frzflags: c.u8("frzflags")?,
        };
        c.skip("padding", 1)?;
        Ok(tuple)
    }

    /// `heap_execute_freeze_tuple`. t_xmin stays: a frozen one is a matter of hint bits.
    fn execute(self, page: &mut Page) -> Result<(), RmgrError> {
        let mut tuple = page.heap_tuple_mut(self.offset)?;
        tuple.set_xmax(self.xmax);
        if self.frzflags & FREEZE_XVAC != 0 {
            tuple.set_xvac(TransactionId::FROZEN);
        }
        if self.frzflags & INVALID_XVAC != 0 {
            tuple.set_xvac(TransactionId::INVALID);
        }
        tuple.set_infomask(self.infomask);
        tuple.set_infomask2(self.infomask2);
        Ok(())
    }
}

/// `heap_xlog_freeze_page`.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    if touch.block_id() != HEAP {
        return Err(unexpected_block(touch.block_id()));
    }
    if state != PageState::Needs {
        return Ok(Effect::none());
    }
    let HeapFreezePage { ntuples, .. } = HeapFreezePage::decode(record.main_data)?;
    let mut tuples = Cursor::new("xl_heap_freeze_tuple", required_block(record, HEAP)?.data);
    for _ in 0..ntuples {
        HeapFreezeTuple::decode(&mut tuples)?.execute(page)?;
    }
    Ok(Effect::changed())
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapFreezePage {
        cutoff_xid,
        ntuples,
    } = HeapFreezePage::decode(record.main_data)?;
    let _ = write!(out, "cutoff xid {cutoff_xid} ntuples {ntuples}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::testing::{TUPLE, heap_block, heap_page, record};

    const MAIN_DATA: [u8; 6] = [0x14, 0x13, 0x12, 0x11, 2, 0];

    /// Line pointer 1 with xmax 0x31323334; line pointer 2 with xmax 0.
    fn data(frzflags: [u8; 2]) -> [u8; 24] {
        let mut data = [
            0x34, 0x33, 0x32, 0x31, 1, 0, 0x02, 0x81, 0x03, 0x82, 0, 0xEE, 0, 0, 0, 0, 2, 0, 0x04,
            0x83, 0x05, 0x84, 0, 0xEE,
        ];
        (data[10], data[22]) = (frzflags[0], frzflags[1]);
        data
    }

    #[test]
    fn each_tuple_becomes_what_its_plan_says() {
        let data = data([0, INVALID_XVAC]);
        let freeze = record(9, 0x30, &MAIN_DATA).with(heap_block(0, 0, &data));
        let mut page = heap_page(3);
        assert_eq!(freeze.redo_touch(0, &mut page).unwrap(), Effect::changed());
        let mut first = TUPLE;
        first[4..8].copy_from_slice(&[0x34, 0x33, 0x32, 0x31]);
        first[18..22].copy_from_slice(&[0x02, 0x81, 0x03, 0x82]);
        assert_eq!(page.item(1).unwrap(), &first);
        let mut second = TUPLE;
        second[4..12].fill(0);
        second[18..22].copy_from_slice(&[0x04, 0x83, 0x05, 0x84]);
        assert_eq!(page.item(2).unwrap(), &second);
        assert_eq!(page.item(3).unwrap(), &TUPLE);
    }

    #[test]
    fn xvac_is_frozen() {
        let data = data([FREEZE_XVAC, 0]);
        let freeze = record(9, 0x30, &MAIN_DATA).with(heap_block(0, 0, &data));
        let mut page = heap_page(2);
        freeze.redo_touch(0, &mut page).unwrap();
        assert_eq!(page.heap_tuple(1).unwrap().cid(), 2);
        assert_eq!(page.heap_tuple(2).unwrap().cid(), 102);
    }

    #[test]
    fn the_free_space_map_is_left_alone() {
        let data = data([0, 0]);
        let freeze = record(9, 0x30, &MAIN_DATA).with(heap_block(0, 0, &data));
        for state in [PageState::Done, PageState::Restored] {
            assert_eq!(freeze.redo_idle(state, &heap_page(2)), Effect::none());
        }
    }

    #[test]
    fn text_and_truncation() {
        let data = data([0, 0]);
        let freeze = record(9, 0x30, &MAIN_DATA).with(heap_block(0, 0, &data));
        assert_eq!(freeze.text(), "cutoff xid 286397204 ntuples 2");
        freeze.cut_everywhere(&heap_page(2));
        let cut = record(9, 0x30, &MAIN_DATA).with(heap_block(0, 0, &data[..23]));
        assert!(cut.redo_touch(0, &mut heap_page(2)).is_err());
    }
}
