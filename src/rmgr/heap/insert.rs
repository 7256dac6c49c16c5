//! INSERT: one new tuple.

use std::fmt::Write;

use super::new_tuple::{HeapHeader, NewTuple, TupleBytes, inserted};
use super::vm_clear::{self, HEAP, MAP};
use super::{block_id, required_block, unexpected_block};
use crate::decode::Record;
use crate::page::heap_tuple::ItemPointer;
use crate::page::{PD_ALL_VISIBLE, Page, vm};
use crate::rmgr::{Effect, RmgrError, Touch, Touches};
use crate::types::{Cursor, OffsetNumber, ShortRead, TransactionId};

/// `XLH_INSERT_ALL_VISIBLE_CLEARED`; MULTI_INSERT has the same flags.
pub(in crate::rmgr) const ALL_VISIBLE_CLEARED: u8 = 0x01;

/// Main data of INSERT, 3 bytes. Block 0 has a [`HeapHeader`] and the tuple after its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_insert")]
struct HeapInsert {
    /// Offset 0.
    offnum: OffsetNumber,
    /// Offset 2: `XLH_INSERT_*`.
    flags: u8,
}

impl HeapInsert {
    fn decode(bytes: &[u8]) -> Result<HeapInsert, ShortRead> {
        let mut c = Cursor::new("xl_heap_insert", bytes);
        Ok(HeapInsert {
            offnum: c.u16("offnum")?,
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
    let insert = HeapInsert::decode(record.main_data)?;
    vm_clear::touches(record, insert.cleared_bits(), out)
}

pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let insert = HeapInsert::decode(record.main_data)?;
    match block_id(touch) {
        HEAP => redo_heap(insert, record, page),
        MAP => vm_clear::redo(record, insert.cleared_bits(), touch, page),
        _ => Err(unexpected_block(touch)),
    }
}

/// `heap_xlog_insert`. A speculative tuple gets its own place as t_ctid where the primary had a
/// token; the CONFIRM that follows changes nothing more.
fn redo_heap(
    insert: HeapInsert,
    record: &Record<'_>,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let block = required_block(record, HEAP)?;
    let mut data = Cursor::new("xl_heap_header", block.data);
    let tuple = NewTuple {
        header: HeapHeader::decode(&mut data)?,
        xmin: record.xid,
        xmax: TransactionId::INVALID,
        tid: ItemPointer {
            block: block.tag.block,
            offset: insert.offnum,
        },
    };
    let mut bytes = TupleBytes::new();
    tuple.build(&[data.rest()], &mut bytes)?;
    page.add_item_overwrite(&bytes, insert.offnum)?;
    if insert.flags & ALL_VISIBLE_CLEARED != 0 {
        page.clear_flag(PD_ALL_VISIBLE);
    }
    Ok(inserted(page))
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapInsert { offnum, flags } = HeapInsert::decode(record.main_data)?;
    let _ = write!(out, "off {offnum} flags 0x{flags:02X}");
    Ok(())
}
