//! INSERT, UPDATE, SAMEPAGE_UPDATE: the tuple that summarises a range is stored.

use std::fmt;

use super::page::{self, PageType, RangeOf};
use super::{INFO_INIT_PAGE, RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::page::heap_tuple::ItemPointer;
use crate::types::{Cursor, OffsetNumber, ShortRead};

/// Main data of INSERT (`xl_brin_insert`, 10 bytes). The tuple is the data of block 0.
#[doc(alias = "xl_brin_insert")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Insert {
    /// Offset 0 and 4: the range, its first block first.
    range: RangeOf,
    /// Offset 8: line pointer of the tuple.
    offnum: OffsetNumber,
}

/// Main data of UPDATE (`xl_brin_update`, 14 bytes): the tuple moves to another page.
#[doc(alias = "xl_brin_update")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Update {
    /// Offset 0: line pointer of the old tuple.
    old_offnum: OffsetNumber,
    /// Offset 4: the new tuple.
    insert: Insert,
}

/// Main data of SAMEPAGE_UPDATE (`xl_brin_samepage_update`, 2 bytes).
#[doc(alias = "xl_brin_samepage_update")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SamepageUpdate {
    /// Offset 0: line pointer of the tuple.
    offnum: OffsetNumber,
}

impl Insert {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<Insert, ShortRead> {
        Insert::read(&mut Cursor::new("xl_brin_insert", main))
    }

    fn read(c: &mut Cursor<'_>) -> Result<Insert, ShortRead> {
        Ok(Insert {
            range: RangeOf {
                heap_block: c.u32("heapBlk")?,
                pages_per_range: c.u32("pagesPerRange")?,
            },
            offnum: c.u16("offnum")?,
        })
    }

    /// `brin_xlog_insert_update`.
    fn redo(
        &self,
        record: &Record<'_>,
        block: &BlockRef<'_>,
        page: &mut Page,
    ) -> Result<(), RmgrError> {
        match block.id {
            0 => {
                init_if_asked(record, block, page)?;
                Ok(page.add_item_overwrite(block.data, self.offnum)?)
            }
            1 => {
                let regular = record.block(0).ok_or(RmgrError::MissingBlock(0))?;
                let tuple = ItemPointer {
                    block: regular.tag.block,
                    offset: self.offnum,
                };
                page::set_revmap_entry(page, self.range, tuple)
            }
            id => Err(unexpected_block(id)),
        }
    }
}

impl Update {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<Update, ShortRead> {
        let mut c = Cursor::new("xl_brin_update", main);
        let old_offnum = c.u16("oldOffnum")?;
        c.skip("padding", 2)?;
        let insert = Insert::read(&mut c)?;
        Ok(Update { old_offnum, insert })
    }
}

impl SamepageUpdate {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<SamepageUpdate, ShortRead> {
        let mut c = Cursor::new("xl_brin_samepage_update", main);
        Ok(SamepageUpdate {
            offnum: c.u16("offnum")?,
        })
    }
}

impl fmt::Display for Insert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "heapBlk {} pagesPerRange {} offnum {}",
            self.range.heap_block, self.range.pages_per_range, self.offnum
        )
    }
}

impl fmt::Display for Update {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Insert { range, offnum } = self.insert;
        write!(
            f,
            "heapBlk {} pagesPerRange {} old offnum {}, new offnum {offnum}",
            range.heap_block, range.pages_per_range, self.old_offnum
        )
    }
}

impl fmt::Display for SamepageUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offnum {}", self.offnum)
    }
}

/// Initialises the page if the tuple is its first. The opcode and the block reference both say
/// so, and PostgreSQL panics if they disagree.
fn init_if_asked(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let asked = record.info & INFO_INIT_PAGE != 0;
    match (asked, block.will_init) {
        (true, _) => page::init(block, page, PageType::Regular),
        (false, false) => Ok(()),
        (false, true) => Err(RmgrError::corrupt(
            "opcode and block reference disagree on initialising the page",
        )),
    }
}

/// `brin_xlog_insert`.
pub(super) fn redo_insert(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    Insert::parse(record.main_data)?.redo(record, block, page)
}

/// `brin_xlog_update`. The line pointer of the old tuple stays, unless it is the last.
pub(super) fn redo_update(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let xlrec = Update::parse(record.main_data)?;
    match block.id {
        2 => Ok(page.index_tuple_delete_no_compact(xlrec.old_offnum)?),
        _ => xlrec.insert.redo(record, block, page),
    }
}

/// `brin_xlog_samepage_update`.
pub(super) fn redo_samepage_update(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let SamepageUpdate { offnum } = SamepageUpdate::parse(record.main_data)?;
    match block.id {
        0 => Ok(page.index_tuple_overwrite(offnum, block.data)?),
        id => Err(unexpected_block(id)),
    }
}
