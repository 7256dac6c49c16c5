//! MARK_PAGE_HALFDEAD, UNLINK_PAGE, UNLINK_PAGE_META, REUSE_PAGE: the stages of removing an empty
//! page from the tree.

use std::fmt;

use super::page::{self, BTP_DELETED, BTP_HALF_DEAD, BTP_HAS_FULLXID, BTP_LEAF, Opaque, P_NONE};
use super::tuple::{IndexTuple, downlink, set_downlink, top_parent_tuple};
use super::{Opcode, RmgrError, meta, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::{PAGE_HEADER_BYTES, Page};
use crate::types::{
    BlockNumber, Cursor, FullTransactionId, OffsetNumber, Oid, RelFileLocator, ShortRead,
};

/// Where a deleted page keeps its safexid (`BTDeletedPageData`), in bytes from the page's start.
const SAFEXID: usize = PAGE_HEADER_BYTES;

/// Main data (`xl_btree_mark_page_halfdead`, 20 bytes).
#[doc(alias = "xl_btree_mark_page_halfdead")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MarkPageHalfDead {
    /// Offset 0: the downlink on the parent that goes.
    pub(super) poffset: OffsetNumber,
    /// Offset 4: the leaf.
    pub(super) leafblk: BlockNumber,
    /// Offset 8: its left sibling, or 0.
    pub(super) leftblk: BlockNumber,
    /// Offset 12: its right sibling.
    pub(super) rightblk: BlockNumber,
    /// Offset 16: topmost page of the subtree to delete; `InvalidBlockNumber` if it is the leaf.
    pub(super) topparent: BlockNumber,
}

impl MarkPageHalfDead {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<MarkPageHalfDead, ShortRead> {
        let mut c = Cursor::new("xl_btree_mark_page_halfdead", main);
        let poffset = c.u16("poffset")?;
        c.skip("padding", 2)?;
        Ok(MarkPageHalfDead {
            poffset,
            leafblk: c.u32("leafblk")?,
            leftblk: c.u32("leftblk")?,
            rightblk: c.u32("rightblk")?,
            topparent: c.u32("topparent")?,
        })
    }
}

impl fmt::Display for MarkPageHalfDead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "topparent {}; leaf {}; left {}; right {}",
            self.topparent, self.leafblk, self.leftblk, self.rightblk
        )
    }
}

/// `btree_xlog_mark_page_halfdead`.
pub(super) fn redo_mark_page_half_dead(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let xlrec = MarkPageHalfDead::parse(record.main_data)?;
    match block.id {
        0 => {
            let leaf = HalfDeadLeaf {
                prev: xlrec.leftblk,
                next: xlrec.rightblk,
                top_parent: xlrec.topparent,
            };
            leaf.build(block, page)
        }
        1 => {
            // The key space goes to the right sibling: its downlink moves to the key before it.
            let next = xlrec.poffset.saturating_add(1);
            let right = downlink(IndexTuple::first(page.item(next)?)?.bytes());
            IndexTuple::first(page.item(xlrec.poffset)?)?;
            set_downlink(page.item_mut(xlrec.poffset)?, right);
            Ok(page.index_tuple_delete(next)?)
        }
        id => Err(unexpected_block(id)),
    }
}

/// A leaf that is empty and about to go, but still has its siblings' links.
struct HalfDeadLeaf {
    prev: BlockNumber,
    next: BlockNumber,
    top_parent: BlockNumber,
}

impl HalfDeadLeaf {
    fn build(&self, block: &BlockRef<'_>, page: &mut Page) -> Result<(), RmgrError> {
        let opaque = Opaque {
            prev: self.prev,
            next: self.next,
            level: 0,
            flags: BTP_HALF_DEAD | BTP_LEAF,
            cycle_id: 0,
        };
        page::init(block, page, opaque)?;
        Ok(page::append(page, &top_parent_tuple(self.top_parent))?)
    }
}

/// Main data (`xl_btree_unlink_page`, 36 bytes).
#[doc(alias = "xl_btree_unlink_page")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnlinkPage {
    /// Offset 0: left sibling of the target, or 0.
    pub(super) leftsib: BlockNumber,
    /// Offset 4: right sibling of the target.
    pub(super) rightsib: BlockNumber,
    /// Offset 8: level of the target.
    pub(super) level: u32,
    /// Offset 16: when nobody can be on the way to the page any more.
    pub(super) safexid: FullTransactionId,
    /// Offset 24: left sibling of the leaf below the target, or 0.
    pub(super) leafleftsib: BlockNumber,
    /// Offset 28: right sibling of that leaf.
    pub(super) leafrightsib: BlockNumber,
    /// Offset 32: the page to delete after the target.
    pub(super) leaftopparent: BlockNumber,
}

impl UnlinkPage {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<UnlinkPage, ShortRead> {
        let mut c = Cursor::new("xl_btree_unlink_page", main);
        let leftsib = c.u32("leftsib")?;
        let rightsib = c.u32("rightsib")?;
        let level = c.u32("level")?;
        c.skip("padding", 4)?;
        Ok(UnlinkPage {
            leftsib,
            rightsib,
            level,
            safexid: FullTransactionId(c.u64("safexid")?),
            leafleftsib: c.u32("leafleftsib")?,
            leafrightsib: c.u32("leafrightsib")?,
            leaftopparent: c.u32("leaftopparent")?,
        })
    }

    /// The target becomes an empty tombstone that remembers when it may be used again
    /// (`BTPageSetDeleted`).
    fn build_deleted(&self, block: &BlockRef<'_>, page: &mut Page) -> Result<(), RmgrError> {
        let leaf = if self.level == 0 { BTP_LEAF } else { 0 };
        let opaque = Opaque {
            prev: self.leftsib,
            next: self.rightsib,
            level: self.level,
            flags: BTP_DELETED | BTP_HAS_FULLXID | leaf,
            cycle_id: 0,
        };
        page::init(block, page, opaque)?;
        page.put_u64(SAFEXID, self.safexid.0);
        page.set_lower((SAFEXID + 8) as u16);
        Ok(())
    }
}

impl fmt::Display for UnlinkPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "left {}; right {}; level {}; safexid {}:{}; \
             leafleft {}; leafright {}; leaftopparent {}",
            self.leftsib,
            self.rightsib,
            self.level,
            self.safexid.epoch(),
            self.safexid.xid(),
            self.leafleftsib,
            self.leafrightsib,
            self.leaftopparent
        )
    }
}

/// `btree_xlog_unlink_page`. The leaf, block 3, is there if the target is a page above it; it has
/// no contents worth keeping and is built anew.
pub(super) fn redo_unlink_page(
    opcode: Opcode,
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let xlrec = UnlinkPage::parse(record.main_data)?;
    match block.id {
        0 => xlrec.build_deleted(block, page),
        1 if xlrec.leftsib != P_NONE => {
            page::update_opaque(page, |opaque| opaque.next = xlrec.rightsib)
        }
        2 => page::update_opaque(page, |opaque| opaque.prev = xlrec.leftsib),
        3 => {
            let leaf = HalfDeadLeaf {
                prev: xlrec.leafleftsib,
                next: xlrec.leafrightsib,
                top_parent: xlrec.leaftopparent,
            };
            leaf.build(block, page)
        }
        4 if opcode == Opcode::UnlinkPageMeta => meta::restore(block, page),
        id => Err(unexpected_block(id)),
    }
}

/// Main data (`xl_btree_reuse_page`, 24 bytes). Redo has nothing to do: the record is there for
/// conflicts with standby queries.
#[doc(alias = "xl_btree_reuse_page")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReusePage {
    /// Offset 0: the index.
    pub(super) locator: RelFileLocator,
    /// Offset 16: the safexid of the page.
    pub(super) latest_removed_full_xid: FullTransactionId,
}

impl ReusePage {
    /// Reads the main data. The block number at offset 12 is used by nobody.
    pub(super) fn parse(main: &[u8]) -> Result<ReusePage, ShortRead> {
        let mut c = Cursor::new("xl_btree_reuse_page", main);
        let locator = RelFileLocator {
            spc: Oid(c.u32("spcNode")?),
            db: Oid(c.u32("dbNode")?),
            rel: Oid(c.u32("relNode")?),
        };
        c.skip("block", 4)?;
        Ok(ReusePage {
            locator,
            latest_removed_full_xid: FullTransactionId(c.u64("latestRemovedFullXid")?),
        })
    }
}

impl fmt::Display for ReusePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rel {}; latestRemovedXid {}:{}",
            self.locator,
            self.latest_removed_full_xid.epoch(),
            self.latest_removed_full_xid.xid()
        )
    }
}
