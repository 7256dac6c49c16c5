//! INIT_BITMAP_PAGE and ADD_OVFL_PAGE: overflow pages and the bitmaps that say which are taken.

use std::fmt;

use super::page::{self, LH_OVERFLOW_PAGE, Opaque};
use super::{RmgrError, letter, meta, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, ShortRead};

/// Main data of INIT_BITMAP_PAGE (`xl_hash_init_bitmap_page`, 2 bytes).
#[doc(alias = "xl_hash_init_bitmap_page")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InitBitmapPage {
    /// Offset 0: bytes of the bitmap.
    bmsize: u16,
}

/// Main data of ADD_OVFL_PAGE (`xl_hash_add_ovfl_page`, 3 bytes).
#[doc(alias = "xl_hash_add_ovfl_page")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddOvflPage {
    /// Offset 0: bytes of a bitmap.
    bmsize: u16,
    /// Offset 2: a free page was found in a bitmap, so that the index does not grow.
    bmpage_found: bool,
}

impl InitBitmapPage {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<InitBitmapPage, ShortRead> {
        let mut c = Cursor::new("xl_hash_init_bitmap_page", main);
        Ok(InitBitmapPage {
            bmsize: c.u16("bmsize")?,
        })
    }
}

impl AddOvflPage {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<AddOvflPage, ShortRead> {
        let mut c = Cursor::new("xl_hash_add_ovfl_page", main);
        Ok(AddOvflPage {
            bmsize: c.u16("bmsize")?,
            bmpage_found: c.bool("bmpage_found")?,
        })
    }
}

impl fmt::Display for InitBitmapPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bmsize {}", self.bmsize)
    }
}

impl fmt::Display for AddOvflPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "bmsize {}, bmpage_found {}",
            self.bmsize,
            letter(self.bmpage_found)
        )
    }
}

/// `hash_xlog_init_bitmap_page`. The first bitmap page follows the metapage and the buckets.
pub(super) fn redo_init_bitmap_page(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let InitBitmapPage { bmsize } = InitBitmapPage::parse(record.main_data)?;
    match block.id {
        0 => page::init_bitmap(block, page, bmsize),
        1 => {
            let bitmap = meta::maxbucket(page).wrapping_add(2);
            meta::add_bitmap(page, bitmap)
        }
        id => Err(unexpected_block(id)),
    }
}

/// `hash_xlog_add_ovfl_page`.
pub(super) fn redo_add_ovfl_page(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let xlrec = AddOvflPage::parse(record.main_data)?;
    let number_of = |id| {
        let block = record.block(id).ok_or(RmgrError::MissingBlock(id))?;
        Ok::<_, RmgrError>(block.tag.block)
    };
    let mut c = Cursor::new("ADD_OVFL_PAGE block data", block.data);
    match block.id {
        0 => {
            let opaque = Opaque {
                prevblkno: number_of(1)?,
                bucket: c.u32("bucket")?,
                ..Opaque::without_bucket(LH_OVERFLOW_PAGE)
            };
            page::init(block, page, opaque)
        }
        1 => {
            let overflow = number_of(0)?;
            page::update_opaque(page, |opaque| opaque.nextblkno = overflow)
        }
        2 => page::update_bitmap(page, c.u32("bitmap_page_bit")?, |word, bit| word | bit),
        3 => page::init_bitmap(block, page, xlrec.bmsize),
        4 => {
            meta::set_firstfree(page, c.u32("firstfree_ovflpage")?);
            if xlrec.bmpage_found {
                return Ok(());
            }
            meta::add_spare(page)?;
            if let Some(new_bitmap) = record.block(3) {
                meta::add_bitmap(page, new_bitmap.tag.block)?;
                meta::add_spare(page)?;
            }
            Ok(())
        }
        id => Err(unexpected_block(id)),
    }
}
