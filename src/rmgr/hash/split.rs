//! SPLIT_ALLOCATE_PAGE, SPLIT_PAGE, SPLIT_COMPLETE, SPLIT_CLEANUP: the stages of splitting a
//! bucket in two.

use std::fmt;

use super::page::{self, LH_BUCKET_NEEDS_SPLIT_CLEANUP, Opaque};
use super::{Effect, PageState, RmgrError, letter, meta, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, ShortRead};

/// `XLH_SPLIT_META_UPDATE_MASKS`.
const META_UPDATE_MASKS: u8 = 1 << 0;
/// `XLH_SPLIT_META_UPDATE_SPLITPOINT`.
const META_UPDATE_SPLITPOINT: u8 = 1 << 1;

/// Main data of SPLIT_ALLOCATE_PAGE (`xl_hash_split_allocate_page`, 9 bytes).
#[doc(alias = "xl_hash_split_allocate_page")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SplitAllocatePage {
    /// Offset 0: the new bucket, from now on the highest.
    new_bucket: u32,
    /// Offset 4: flags of the old bucket's first page.
    old_bucket_flag: u16,
    /// Offset 6: flags of the new bucket's first page.
    new_bucket_flag: u16,
    /// Offset 8: `XLH_SPLIT_*`, what else changes on the metapage.
    flags: u8,
}

/// Main data of SPLIT_COMPLETE (`xl_hash_split_complete`, 4 bytes).
#[doc(alias = "xl_hash_split_complete")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SplitComplete {
    /// Offset 0: flags of the old bucket's first page.
    old_bucket_flag: u16,
    /// Offset 2: flags of the new bucket's first page.
    new_bucket_flag: u16,
}

impl SplitAllocatePage {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<SplitAllocatePage, ShortRead> {
        let mut c = Cursor::new("xl_hash_split_allocate_page", main);
        Ok(SplitAllocatePage {
            new_bucket: c.u32("new_bucket")?,
            old_bucket_flag: c.u16("old_bucket_flag")?,
            new_bucket_flag: c.u16("new_bucket_flag")?,
            flags: c.u8("flags")?,
        })
    }

    fn updates_masks(&self) -> bool {
        self.flags & META_UPDATE_MASKS != 0
    }

    fn updates_splitpoint(&self) -> bool {
        self.flags & META_UPDATE_SPLITPOINT != 0
    }

    fn redo_meta(&self, data: &[u8], page: &mut Page) -> Result<(), RmgrError> {
        let mut c = Cursor::new("SPLIT_ALLOCATE_PAGE block data", data);
        meta::set_maxbucket(page, self.new_bucket);
        if self.updates_masks() {
            let lowmask = c.u32("lowmask")?;
            meta::set_masks(page, lowmask, c.u32("highmask")?);
        }
        if self.updates_splitpoint() {
            let ovflpoint = c.u32("ovflpoint")?;
            meta::set_splitpoint(page, ovflpoint, c.u32("ovflpages")?)?;
        }
        Ok(())
    }
}

impl SplitComplete {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<SplitComplete, ShortRead> {
        let mut c = Cursor::new("xl_hash_split_complete", main);
        Ok(SplitComplete {
            old_bucket_flag: c.u16("old_bucket_flag")?,
            new_bucket_flag: c.u16("new_bucket_flag")?,
        })
    }
}

impl fmt::Display for SplitAllocatePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "new_bucket {}, meta_page_masks_updated {}, issplitpoint_changed {}",
            self.new_bucket,
            letter(self.updates_masks()),
            letter(self.updates_splitpoint())
        )
    }
}

impl fmt::Display for SplitComplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "old_bucket_flag {}, new_bucket_flag {}",
            self.old_bucket_flag, self.new_bucket_flag
        )
    }
}

/// `hash_xlog_split_allocate_page`. The old bucket is changed after its image was restored, too.
pub(super) fn redo_split_allocate_page(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let xlrec = SplitAllocatePage::parse(record.main_data)?;
    match block.id {
        0 => page::update_opaque(page, |opaque| {
            opaque.flag = xlrec.old_bucket_flag;
            opaque.prevblkno = xlrec.new_bucket;
        }),
        1 => {
            let opaque = Opaque {
                prevblkno: xlrec.new_bucket,
                bucket: xlrec.new_bucket,
                ..Opaque::without_bucket(xlrec.new_bucket_flag)
            };
            page::init(block, page, opaque)
        }
        2 => xlrec.redo_meta(block.data, page),
        id => Err(unexpected_block(id)),
    }
}

/// `hash_xlog_split_page`: the record is nothing but an image.
pub(super) fn redo_split_page(state: PageState) -> Result<Effect, RmgrError> {
    match state {
        PageState::Restored => Ok(Effect::none()),
        PageState::Needs | PageState::Done => Err(RmgrError::corrupt(
            "hash split record did not contain a full-page image",
        )),
    }
}

/// `hash_xlog_split_complete`. Both buckets are changed after their images were restored, too.
pub(super) fn redo_split_complete(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let xlrec = SplitComplete::parse(record.main_data)?;
    let flag = match block.id {
        0 => xlrec.old_bucket_flag,
        1 => xlrec.new_bucket_flag,
        id => return Err(unexpected_block(id)),
    };
    page::update_opaque(page, |opaque| opaque.flag = flag)
}

/// `hash_xlog_split_cleanup`: what the split has copied is gone from the old bucket.
pub(super) fn redo_split_cleanup(block: &BlockRef<'_>, page: &mut Page) -> Result<(), RmgrError> {
    match block.id {
        0 => page::update_opaque(page, |opaque| opaque.flag &= !LH_BUCKET_NEEDS_SPLIT_CLEANUP),
        id => Err(unexpected_block(id)),
    }
}
