//! MULTI_INSERT: many new tuples on one page, as COPY writes them.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::heap_tuple::ItemPointer;
use crate::page::{PD_ALL_VISIBLE, Page, vm};
use crate::rmgr::heap::insert::ALL_VISIBLE_CLEARED;
use crate::rmgr::heap::new_tuple::{HeapHeader, NewTuple, TupleBytes, inserted};
use crate::rmgr::heap::vm_clear::{self, HEAP, MAP};
use crate::rmgr::heap::{INFO_INIT_PAGE, block_id, required_block, unexpected_block};
use crate::rmgr::{Effect, PageState, RmgrError, Touch, Touches};
use crate::types::{Cursor, OffsetNumber, ShortRead, TransactionId};

/// `XLH_INSERT_ALL_FROZEN_SET`: COPY FREEZE; a VISIBLE record for the map follows.
const ALL_FROZEN_SET: u8 = 0x20;

/// Main data of MULTI_INSERT, 4 bytes and the line pointer numbers, which +INIT does without.
/// Block 0 has a [`HeapHeader`] and the tuple after its header for each, see [`TupleReader`].
#[derive(Debug, Clone)]
#[doc(alias = "xl_heap_multi_insert")]
struct HeapMultiInsert<'w> {
    /// Offset 0: `XLH_INSERT_*`.
    flags: u8,
    /// Offset 2.
    ntuples: u16,
    /// Offset 4: two bytes each.
    offsets: Cursor<'w>,
}

impl<'w> HeapMultiInsert<'w> {
    fn decode(bytes: &'w [u8]) -> Result<HeapMultiInsert<'w>, ShortRead> {
        let mut c = Cursor::new("xl_heap_multi_insert", bytes);
        let flags = c.u8("flags")?;
        c.skip("padding", 1)?;
        Ok(HeapMultiInsert {
            flags,
            ntuples: c.u16("ntuples")?,
            offsets: c,
        })
    }

    /// Bits of the visibility map that go.
    fn cleared_bits(&self) -> u8 {
        if self.flags & ALL_VISIBLE_CLEARED != 0 {
            vm::VALID_BITS
        } else {
            0
        }
    }
}

/// Reads tuples from the block's data: length, [`HeapHeader`] and bytes
/// (`xl_multi_insert_tuple`, 7 bytes, and the tuple), each from an even offset on.
struct TupleReader<'w>(Cursor<'w>);

impl<'w> TupleReader<'w> {
    fn next(&mut self) -> Result<(HeapHeader, &'w [u8]), ShortRead> {
        let c = &mut self.0;
        c.skip("alignment", c.position() % 2)?;
        let datalen = c.u16("datalen")?;
        let header = HeapHeader::decode(c)?;
        Ok((header, c.bytes("tuple", datalen.into())?))
    }
}

pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    let insert = HeapMultiInsert::decode(record.main_data)?;
    vm_clear::touches(record, insert.cleared_bits(), out)
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
    let insert = HeapMultiInsert::decode(record.main_data)?;
    match block_id(touch) {
        HEAP => redo_heap(insert, record, page),
        MAP => vm_clear::redo(record, insert.cleared_bits(), touch, page),
        _ => Err(unexpected_block(touch)),
    }
}

/// `heap_xlog_multi_insert`.
fn redo_heap(
    insert: HeapMultiInsert<'_>,
    record: &Record<'_>,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let block = required_block(record, HEAP)?;
    let mut tuples = TupleReader(Cursor::new("xl_multi_insert_tuple", block.data));
    let mut offsets = insert.offsets.clone();
    let is_init = record.info & INFO_INIT_PAGE != 0;
    let mut bytes = TupleBytes::new();
    for i in 0..insert.ntuples {
        let offset: OffsetNumber = if is_init {
            i.saturating_add(1)
        } else {
            offsets.u16("offsets")?
        };
        let (header, rest) = tuples.next()?;
        let tuple = NewTuple {
            header,
            xmin: record.xid,
            xmax: TransactionId::INVALID,
            tid: ItemPointer {
                block: block.tag.block,
                offset,
            },
        };
        tuple.build(&[rest], &mut bytes)?;
        page.add_item_overwrite(&bytes, offset)?;
    }
    if !tuples.0.is_empty() {
        return Err(RmgrError::corrupt(format!(
            "{} bytes are left after {} tuples",
            tuples.0.remaining(),
            insert.ntuples
        )));
    }
    if insert.flags & ALL_VISIBLE_CLEARED != 0 {
        page.clear_flag(PD_ALL_VISIBLE);
    }
    if insert.flags & ALL_FROZEN_SET != 0 {
        page.set_flag(PD_ALL_VISIBLE);
    }
    Ok(inserted(page))
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapMultiInsert { flags, ntuples, .. } = HeapMultiInsert::decode(record.main_data)?;
    let _ = write!(out, "{ntuples} tuples flags 0x{flags:02X}");
    Ok(())
}
