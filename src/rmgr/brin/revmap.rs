//! CREATE_INDEX, REVMAP_EXTEND, DESUMMARIZE: the metapage and the map from ranges to tuples.

use std::fmt;

use super::page::{self, PageType, RangeOf};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::page::heap_tuple::ItemPointer;
use crate::types::{BlockNumber, Cursor, INVALID_BLOCK, OffsetNumber, ShortRead};

/// Main data of CREATE_INDEX (`xl_brin_createidx`, 6 bytes).
#[doc(alias = "xl_brin_createidx")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CreateIndex {
    /// Offset 0: heap blocks of a range.
    pages_per_range: BlockNumber,
    /// Offset 4: version of the index format.
    version: u16,
}

/// Main data of REVMAP_EXTEND (`xl_brin_revmap_extend`, 4 bytes).
#[doc(alias = "xl_brin_revmap_extend")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RevmapExtend {
    /// Offset 0: the new revmap page, again.
    target_block: BlockNumber,
}

/// Main data of DESUMMARIZE (`xl_brin_desummarize`, 10 bytes).
#[doc(alias = "xl_brin_desummarize")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Desummarize {
    /// Offset 0 and 4: the range, its size first.
    range: RangeOf,
    /// Offset 8: its tuple on the regular page.
    reg_offset: OffsetNumber,
}

impl CreateIndex {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<CreateIndex, ShortRead> {
        let mut c = Cursor::new("xl_brin_createidx", main);
        Ok(CreateIndex {
            pages_per_range: c.u32("pagesPerRange")?,
            version: c.u16("version")?,
        })
    }
}

impl RevmapExtend {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<RevmapExtend, ShortRead> {
        let mut c = Cursor::new("xl_brin_revmap_extend", main);
        Ok(RevmapExtend {
            target_block: c.u32("targetBlk")?,
        })
    }
}

impl Desummarize {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<Desummarize, ShortRead> {
        let mut c = Cursor::new("xl_brin_desummarize", main);
        let pages_per_range = c.u32("pagesPerRange")?;
        let heap_block = c.u32("heapBlk")?;
        Ok(Desummarize {
            range: RangeOf {
                heap_block,
                pages_per_range,
            },
            reg_offset: c.u16("regOffset")?,
        })
    }
}

impl fmt::Display for CreateIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CreateIndex {
            pages_per_range,
            version,
        } = self;
        write!(f, "v{version} pagesPerRange {pages_per_range}")
    }
}

impl fmt::Display for RevmapExtend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "targetBlk {}", self.target_block)
    }
}

impl fmt::Display for Desummarize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "pagesPerRange {}, heapBlk {}, page offset {}",
            self.range.pages_per_range, self.range.heap_block, self.reg_offset
        )
    }
}

/// `brin_xlog_createidx`.
pub(super) fn redo_create_index(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let xlrec = CreateIndex::parse(record.main_data)?;
    if block.id != 0 {
        return Err(unexpected_block(block.id));
    }
    page::init(block, page, PageType::Meta)?;
    page::fill_meta(page, xlrec.pages_per_range, xlrec.version);
    Ok(())
}

/// `brin_xlog_revmap_extend`.
pub(super) fn redo_revmap_extend(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let RevmapExtend { target_block } = RevmapExtend::parse(record.main_data)?;
    match block.id {
        0 => {
            page::set_last_revmap_page(page, target_block);
            Ok(())
        }
        1 => page::init(block, page, PageType::Revmap),
        id => Err(unexpected_block(id)),
    }
}

/// `brin_xlog_desummarize_page`.
pub(super) fn redo_desummarize(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    // ItemPointerSetInvalid
    const NOWHERE: ItemPointer = ItemPointer {
        block: INVALID_BLOCK,
        offset: 0,
    };
    let xlrec = Desummarize::parse(record.main_data)?;
    match block.id {
        0 => page::set_revmap_entry(page, xlrec.range, NOWHERE),
        1 => Ok(page.index_tuple_delete_no_compact(xlrec.reg_offset)?),
        id => Err(unexpected_block(id)),
    }
}
