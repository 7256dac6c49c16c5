//! Pages after redo against the images that wal_consistency_checking put into the records
//! (`checkXLogConsistency`, `src/backend/access/transam/xlogrecovery.c`).
//!
//! PostgreSQL leaves out images that redo restores. Here they are compared too, which shows
//! whether redo of the record changed a page that it had to leave alone.

use super::{Redo, RedoError, RedoErrorKind};
use crate::buffer::Frame;
use crate::decode::{BlockImage, BlockRef, INFO_CHECK_CONSISTENCY, Record};
use crate::page::Page;
use crate::rmgr;
use crate::types::{BlockNumber, Lsn};

/// What a look at one page found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageCheck {
    /// The page is what redo had to make of it.
    Redone,
    /// The page is as it was restored from the image.
    Restored,
    /// The page was written after the record, before the crash: it may hold later changes.
    Ahead,
    /// The page is not there; a later record may explain that.
    Absent,
    /// Redo made something else of it.
    Differs(Difference),
}

/// The first byte in which a page and its image differ, both masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Offset in the page.
    pub byte: usize,
    /// What redo left there.
    pub found: u8,
    /// What the image has.
    pub expected: u8,
}

impl Redo {
    /// Compares the pages of a record that was just redone with the images in it, if it has them
    /// for that, and tells `report` of each. A page that differs is replaced by its image, so
    /// that whatever else is found is news.
    pub fn check_consistency(
        &mut self,
        record: &Record<'_>,
        report: &mut dyn FnMut(&BlockRef<'_>, PageCheck),
    ) -> Result<(), Box<RedoError>> {
        if record.info & INFO_CHECK_CONSISTENCY == 0 {
            return Ok(());
        }
        for block in &record.blocks {
            if let Some(image) = &block.image {
                let found = self
                    .check_page(record, block, image)
                    .map_err(|kind| RedoError::new(record, Some(block.tag), kind))?;
                report(block, found);
            }
        }
        Ok(())
    }

    fn check_page(
        &mut self,
        record: &Record<'_>,
        block: &BlockRef<'_>,
        image: &BlockImage<'_>,
    ) -> Result<PageCheck, RedoErrorKind> {
        let Some(frame) = self.page_to_check(block)? else {
            return Ok(PageCheck::Absent);
        };
        let page = self.pool.page(frame);
        if page.lsn() > record.end_lsn {
            return Ok(PageCheck::Ahead);
        }
        let mut found = page.clone();
        let mut expected = Page::zeroed();
        self.restorer.restore(image, &mut expected)?;
        mask(record, &mut found, block.tag.block)?;
        mask(record, &mut expected, block.tag.block)?;
        Ok(match first_difference(&found, &expected) {
            None if image.apply => PageCheck::Restored,
            None => PageCheck::Redone,
            Some(difference) => {
                let page = self.pool.page_mut(frame);
                self.restorer.restore(image, page)?;
                page.set_lsn(record.end_lsn);
                self.pool.mark_dirty(frame);
                PageCheck::Differs(difference)
            }
        })
    }

    /// `RBM_NORMAL_NO_LOG`: the page, unless redo missed it. A page that was cut off before the
    /// crash and added again is zeros on disk, and redo of what happened before the cut skips it;
    /// PostgreSQL's own check stops there.
    fn page_to_check(&mut self, block: &BlockRef<'_>) -> Result<Option<Frame>, RedoErrorKind> {
        let fork = self.smgr.fork(block.tag.locator, block.tag.fork);
        if !self.smgr.exists(fork)? || block.tag.block >= self.smgr.nblocks(fork)? {
            return Ok(None);
        }
        let frame = self.pool.read(&mut self.smgr, fork, block.tag.block)?;
        let was_skipped = self.pool.page(frame).is_new() && self.missing.contains(block.tag);
        Ok((!was_skipped).then_some(frame))
    }
}

/// Blanks what may differ. Resource managers without a mask of their own only ever restore
/// images; those of them that carry an older LSN.
fn mask(record: &Record<'_>, page: &mut Page, block: BlockNumber) -> Result<(), RedoErrorKind> {
    match rmgr::rmgr(record.rmid)?.mask {
        Some(mask) => mask(page, block),
        None => {
            page.set_lsn(Lsn::INVALID);
            page.set_checksum_field(0);
        }
    }
    Ok(())
}

fn first_difference(found: &Page, expected: &Page) -> Option<Difference> {
    let (found, expected) = (found.bytes(), expected.bytes());
    let byte = found.iter().zip(expected).position(|(a, b)| a != b)?;
    Some(Difference {
        byte,
        found: found[byte],
        expected: expected[byte],
    })
}
