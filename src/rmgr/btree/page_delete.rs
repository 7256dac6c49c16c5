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

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{
        META, block, fails, items, leaf, longs, meta_page, page_of, plain, rebuilt, redone,
    };
    use super::*;

    fn half_dead(prev: BlockNumber, next: BlockNumber, top_parent: BlockNumber) -> Page {
        let opaque = Opaque {
            prev,
            next,
            level: 0,
            flags: BTP_HALF_DEAD | BTP_LEAF,
            cycle_id: 0,
        };
        rebuilt(opaque, &[top_parent_tuple(top_parent).to_vec()])
    }

    #[test]
    fn half_dead_leaf_loses_its_downlink() {
        assert_eq!(top_parent_tuple(0x1_0002), [1, 0, 2, 0, 0, 0, 8, 0x20]);
        let main = longs(&[2, 5, 4, 6, u32::MAX]);
        let blocks = [block(0, 5, &[]).init(), block(1, 9, &[])];
        let page = redone(0xB0, &main, &blocks, 0, &Page::zeroed());
        assert!(page == half_dead(4, 6, u32::MAX));

        let before = page_of(leaf(0), &[plain(1, 4, 1), plain(2, 5, 1), plain(3, 6, 9)]);
        let page = redone(0xB0, &main, &blocks, 1, &before);
        // The second item keeps its key and offset and leads to where the third led.
        assert_eq!(items(&page), [plain(1, 4, 1), plain(2, 6, 1)]);
        assert_eq!(downlink(page.item(2).unwrap()), 6);
        for poffset in [0, 3, 0xFFFF] {
            let main = longs(&[poffset, 5, 4, 6, u32::MAX]);
            assert!(fails(0xB0, &main, &blocks, 1, &before), "{poffset}");
        }
    }

    /// Main data of an unlink with left sibling `leftsib`.
    fn unlink(leftsib: u32, level: u32) -> Vec<u8> {
        longs(&[leftsib, 6, level, 0, 750, 1, 14, 16, 11])
    }

    #[test]
    fn unlinked_page_becomes_a_tombstone() {
        let blocks = [
            block(0, 5, &[]).init(),
            block(1, 4, &[]),
            block(2, 6, &[]),
            block(3, 15, &[]).init(),
            block(4, 0, &META).init(),
        ];
        for (level, flags) in [(0, 0x105), (2, 0x104)] {
            let page = redone(0x80, &unlink(4, level), &blocks, 0, &Page::zeroed());
            let opaque = Opaque {
                prev: 4,
                next: 6,
                level,
                flags,
                cycle_id: 0,
            };
            let mut expected = rebuilt(opaque, &[]);
            expected.bytes_mut()[24..32].copy_from_slice(&[0xEE, 2, 0, 0, 1, 0, 0, 0]);
            expected.set_lower(32);
            assert!(page == expected);
        }
        let before = page_of(leaf(5), &[plain(9, 0, 1)]);
        let left = redone(0x80, &unlink(4, 2), &blocks, 1, &before);
        assert_eq!(Opaque::read(&left).unwrap(), leaf(6));
        let right = redone(0x80, &unlink(4, 2), &blocks, 2, &before);
        assert_eq!(Opaque::read(&right).unwrap(), Opaque { prev: 4, ..leaf(5) });
        let below = redone(0x80, &unlink(4, 2), &blocks, 3, &Page::zeroed());
        assert!(below == half_dead(14, 16, 11));
        let meta = redone(0x90, &unlink(4, 2), &blocks, 4, &Page::zeroed());
        assert!(meta == meta_page());
        // Only UNLINK_PAGE_META has a metapage, and without a left sibling there is no block 1.
        assert!(fails(0x80, &unlink(4, 2), &blocks, 4, &Page::zeroed()));
        assert!(fails(0x80, &unlink(0, 2), &blocks, 1, &before));
    }
}
