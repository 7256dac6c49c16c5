//! DELETE: the end of one tuple.

use std::fmt::Write;

use super::infobits::Infobits;
use super::vm_clear::{self, HEAP, MAP};
use super::{block_id, required_block, unexpected_block};
use crate::decode::Record;
use crate::page::heap_tuple::ItemPointer;
use crate::page::{PD_ALL_VISIBLE, Page, vm};
use crate::rmgr::{Effect, RmgrError, Touch, Touches};
use crate::types::{Cursor, OffsetNumber, ShortRead, TransactionId};

/// `XLH_DELETE_ALL_VISIBLE_CLEARED`.
const ALL_VISIBLE_CLEARED: u8 = 0x01;
/// `XLH_DELETE_IS_SUPER`: a speculative insertion is undone.
const IS_SUPER: u8 = 0x08;
/// `XLH_DELETE_IS_PARTITION_MOVE`: an update moved the row to another partition.
const IS_PARTITION_MOVE: u8 = 0x10;

/// Main data of DELETE, 8 bytes. The old key or tuple may follow; only logical decoding reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_delete")]
struct HeapDelete {
    /// Offset 0.
    xmax: TransactionId,
    /// Offset 4.
    offnum: OffsetNumber,
    /// Offset 6.
    infobits_set: Infobits,
    /// Offset 7: `XLH_DELETE_*`.
    flags: u8,
}

impl HeapDelete {
    fn decode(bytes: &[u8]) -> Result<HeapDelete, ShortRead> {
        let mut c = Cursor::new("xl_heap_delete", bytes);
        Ok(HeapDelete {
            xmax: TransactionId(c.u32("xmax")?),
            offnum: c.u16("offnum")?,
            infobits_set: Infobits(c.u8("infobits_set")?),
            flags: c.u8("flags")?,
        })
    }

    /// Bits of the visibility map that go.
    fn cleared_bits(self) -> u8 {
        if self.flags & ALL_VISIBLE_CLEARED != 0 {
            vm::VALID_BITS
        } else {
            0
        }
    }
}

pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    let delete = HeapDelete::decode(record.main_data)?;
    vm_clear::touches(record, delete.cleared_bits(), out)
}

pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let delete = HeapDelete::decode(record.main_data)?;
    match block_id(touch) {
        HEAP => redo_heap(delete, record, page),
        MAP => vm_clear::redo(record, delete.cleared_bits(), touch, page),
        _ => Err(unexpected_block(touch)),
    }
}

/// `heap_xlog_delete`. The page becomes prunable by the record's transaction, which need not be
/// xmax: that may be a multixact.
fn redo_heap(
    delete: HeapDelete,
    record: &Record<'_>,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let itself = ItemPointer {
        block: required_block(record, HEAP)?.tag.block,
        offset: delete.offnum,
    };
    let mut tuple = page.heap_tuple_mut(delete.offnum)?;
    delete.infobits_set.apply(&mut tuple);
    tuple.clear_hot_updated();
    if delete.flags & IS_SUPER != 0 {
        // Without xmin nobody ever sees the tuple; xmax stays as it was.
        tuple.set_xmin(TransactionId::INVALID);
    } else {
        tuple.set_xmax(delete.xmax);
    }
    tuple.clear_cid();
    tuple.set_ctid(if delete.flags & IS_PARTITION_MOVE != 0 {
        ItemPointer::MOVED_PARTITIONS
    } else {
        itself
    });
    page.set_prunable(record.xid);
    if delete.flags & ALL_VISIBLE_CLEARED != 0 {
        page.clear_flag(PD_ALL_VISIBLE);
    }
    Ok(Effect::changed())
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let delete = HeapDelete::decode(record.main_data)?;
    let _ = write!(out, "off {} flags 0x{:02X} ", delete.offnum, delete.flags);
    delete.infobits_set.desc(out);
    Ok(())
}
