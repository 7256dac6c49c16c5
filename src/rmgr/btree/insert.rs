//! INSERT_LEAF, INSERT_UPPER, INSERT_META, INSERT_POST: one tuple, without a split.

use std::fmt;

use super::page::clear_incomplete_split;
use super::tuple::{IndexTuple, swap_posting};
use super::{Opcode, RmgrError, meta, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, OffsetNumber, ShortRead};

/// Main data (`xl_btree_insert`, 2 bytes). The tuple is the data of block 0.
#[doc(alias = "xl_btree_insert")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Insert {
    /// Offset 0: the line pointer the tuple gets.
    pub(super) offnum: OffsetNumber,
}

impl Insert {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<Insert, ShortRead> {
        let mut c = Cursor::new("xl_btree_insert", main);
        Ok(Insert {
            offnum: c.u16("offnum")?,
        })
    }
}

impl fmt::Display for Insert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "off {}", self.offnum)
    }
}

/// `btree_xlog_insert`. A downlink that goes into an internal page finishes the split of the
/// child, block 1.
pub(super) fn redo(
    opcode: Opcode,
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let Insert { offnum } = Insert::parse(record.main_data)?;
    match (block.id, opcode) {
        (0, Opcode::InsertPost) => insert_splitting_posting(offnum, block.data, page),
        (0, _) => Ok(page.add_item(block.data, offnum)?),
        (1, Opcode::InsertUpper | Opcode::InsertMeta) => clear_incomplete_split(page),
        (2, Opcode::InsertMeta) => meta::restore(block, page),
        (id, _) => Err(unexpected_block(id)),
    }
}

/// The tuple's TID falls inside the posting list before it. The record holds the tuple as it was
/// before the posting list was split, preceded by where to split.
fn insert_splitting_posting(
    offnum: OffsetNumber,
    data: &[u8],
    page: &mut Page,
) -> Result<(), RmgrError> {
    let mut c = Cursor::new("INSERT_POST block data", data);
    let posting_off = c.u16("postingoff")?;
    let new_item = c.rest();
    let before = offnum.saturating_sub(1);
    let swapped = swap_posting(
        new_item,
        IndexTuple::first(page.item(before)?)?,
        posting_off,
    )?;
    if swapped.new_item.len() != new_item.len() {
        return Err(RmgrError::corrupt(format!(
            "index tuple of {} bytes in {} bytes",
            swapped.new_item.len(),
            new_item.len()
        )));
    }
    page.item_mut(before)?[..swapped.posting.len()].copy_from_slice(&swapped.posting);
    page.add_item(&swapped.new_item, offnum)?;
    Ok(())
}
