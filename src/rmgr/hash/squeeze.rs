//! MOVE_PAGE_CONTENTS and SQUEEZE_PAGE: items move towards the first page of their bucket, and
//! overflow pages that are empty then are freed.

use std::fmt;

use super::page::{self, LH_UNUSED_PAGE, Opaque};
use super::{RmgrError, letter, meta, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{BlockNumber, Cursor, ShortRead};

/// Main data of MOVE_PAGE_CONTENTS (`xl_hash_move_page_contents`, 3 bytes).
#[doc(alias = "xl_hash_move_page_contents")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MovePageContents {
    /// Offset 0: items that move.
    ntups: u16,
    /// Offset 2: they go to the first page of the bucket, and block reference 0 is left out.
    is_prim_bucket_same_wrt: bool,
}

/// Main data of SQUEEZE_PAGE (`xl_hash_squeeze_page`, 12 bytes).
#[doc(alias = "xl_hash_squeeze_page")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SqueezePage {
    /// Offset 0: the page before the freed one.
    prevblkno: BlockNumber,
    /// Offset 4: the page after it, or `InvalidBlockNumber`.
    nextblkno: BlockNumber,
    /// Offset 8: items that move off it.
    ntups: u16,
    /// Offset 10: they go to the first page of the bucket, and block reference 0 is left out.
    is_prim_bucket_same_wrt: bool,
    /// Offset 11: they go to the page before the freed one, and block reference 3 is left out.
    is_prev_bucket_same_wrt: bool,
}

impl MovePageContents {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<MovePageContents, ShortRead> {
        let mut c = Cursor::new("xl_hash_move_page_contents", main);
        Ok(MovePageContents {
            ntups: c.u16("ntups")?,
            is_prim_bucket_same_wrt: c.bool("is_prim_bucket_same_wrt")?,
        })
    }
}

impl SqueezePage {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<SqueezePage, ShortRead> {
        let mut c = Cursor::new("xl_hash_squeeze_page", main);
        Ok(SqueezePage {
            prevblkno: c.u32("prevblkno")?,
            nextblkno: c.u32("nextblkno")?,
            ntups: c.u16("ntups")?,
            is_prim_bucket_same_wrt: c.bool("is_prim_bucket_same_wrt")?,
            is_prev_bucket_same_wrt: c.bool("is_prev_bucket_same_wrt")?,
        })
    }
}

impl fmt::Display for MovePageContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ntups {}, is_primary {}",
            self.ntups,
            letter(self.is_prim_bucket_same_wrt)
        )
    }
}

impl fmt::Display for SqueezePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "prevblkno {}, nextblkno {}, ntups {}, is_primary {}",
            self.prevblkno,
            self.nextblkno,
            self.ntups,
            letter(self.is_prim_bucket_same_wrt)
        )
    }
}

/// `hash_xlog_move_page_contents`.
pub(super) fn redo_move_page_contents(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let MovePageContents { ntups, .. } = MovePageContents::parse(record.main_data)?;
    match block.id {
        1 => page::add_tuples(page, ntups, block.data),
        2 => page::delete_items(page, block.data),
        id => Err(unexpected_block(id)),
    }
}

/// `hash_xlog_squeeze_page`. The page that gains items takes the LSN even if it gains none.
pub(super) fn redo_squeeze_page(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let xlrec = SqueezePage::parse(record.main_data)?;
    let mut c = Cursor::new("SQUEEZE_PAGE block data", block.data);
    match block.id {
        1 => {
            page::add_tuples(page, xlrec.ntups, block.data)?;
            if xlrec.is_prev_bucket_same_wrt {
                page::update_opaque(page, |opaque| opaque.nextblkno = xlrec.nextblkno)?;
            }
            Ok(())
        }
        // Built anew on top of what it was: the reference is not marked WILL_INIT.
        2 => {
            *page = page::empty(Opaque::without_bucket(LH_UNUSED_PAGE));
            Ok(())
        }
        3 if !xlrec.is_prev_bucket_same_wrt => {
            page::update_opaque(page, |opaque| opaque.nextblkno = xlrec.nextblkno)
        }
        4 => page::update_opaque(page, |opaque| opaque.prevblkno = xlrec.prevblkno),
        5 => page::update_bitmap(page, c.u32("bitmap_page_bit")?, |word, bit| word & !bit),
        6 => {
            meta::set_firstfree(page, c.u32("firstfree_ovflpage")?);
            Ok(())
        }
        id => Err(unexpected_block(id)),
    }
}
