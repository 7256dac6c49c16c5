//! FREEZE_PAGE: transaction ids that are about to become ambiguous are taken out of tuples.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::Page;
use crate::rmgr::heap::vm_clear::HEAP;
use crate::rmgr::heap::{block_id, required_block, unexpected_block};
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
    if block_id(touch) != HEAP {
        return Err(unexpected_block(touch));
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
