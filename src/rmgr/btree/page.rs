//! The nbtree page: special area, first data item, building a page from tuples
//! (`src/include/access/nbtree.h`).

use smallvec::SmallVec;

use super::RmgrError;
use super::tuple::IndexTuple;
use crate::decode::BlockRef;
use crate::page::{Page, PageError};
use crate::types::{BLOCK_BYTES, BlockNumber, OffsetNumber};

const BTPO_PREV: usize = BLOCK_BYTES - OPAQUE_BYTES;
const BTPO_NEXT: usize = BTPO_PREV + 4;
const BTPO_LEVEL: usize = BTPO_NEXT + 4;
const BTPO_FLAGS: usize = BTPO_LEVEL + 4;
const BTPO_CYCLEID: usize = BTPO_FLAGS + 2;

/// `sizeof(BTPageOpaqueData)`.
const OPAQUE_BYTES: usize = 16;
const _: () = assert!(BTPO_CYCLEID + 2 == BLOCK_BYTES);

/// `BTP_LEAF`.
pub(super) const BTP_LEAF: u16 = 0x0001;
/// `BTP_ROOT`.
pub(super) const BTP_ROOT: u16 = 0x0002;
/// `BTP_DELETED`: out of the tree.
pub(super) const BTP_DELETED: u16 = 0x0004;
/// `BTP_META`.
pub(super) const BTP_META: u16 = 0x0008;
/// `BTP_HALF_DEAD`: empty, but still in the tree.
pub(super) const BTP_HALF_DEAD: u16 = 0x0010;
/// `BTP_SPLIT_END`: the rightmost page of a group of splits that vacuum must revisit.
pub(super) const BTP_SPLIT_END: u16 = 0x0020;
/// `BTP_HAS_GARBAGE`: there may be items marked dead.
pub(super) const BTP_HAS_GARBAGE: u16 = 0x0040;
/// `BTP_INCOMPLETE_SPLIT`: the right sibling has no downlink yet.
pub(super) const BTP_INCOMPLETE_SPLIT: u16 = 0x0080;
/// `BTP_HAS_FULLXID`: a deleted page keeps its safexid as 64 bits.
pub(super) const BTP_HAS_FULLXID: u16 = 0x0100;

/// `P_NONE`: no sibling. Block 0 is the metapage and never a sibling.
pub(super) const P_NONE: BlockNumber = 0;
/// `P_HIKEY`: the high key, on every page but the rightmost of its level.
pub(super) const P_HIKEY: OffsetNumber = 1;

/// The special area (`BTPageOpaqueData`).
#[doc(alias = "BTPageOpaqueData")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Opaque {
    /// Offset 0: left sibling, or [`P_NONE`].
    pub(super) prev: BlockNumber,
    /// Offset 4: right sibling, or [`P_NONE`].
    pub(super) next: BlockNumber,
    /// Offset 8: 0 is a leaf.
    pub(super) level: u32,
    /// Offset 12: `BTP_*`.
    pub(super) flags: u16,
    /// Offset 14: the vacuum cycle of the latest split.
    pub(super) cycle_id: u16,
}

impl Opaque {
    /// `BTPageGetOpaque`. Every nbtree page has a special area of exactly this size.
    pub(super) fn read(page: &Page) -> Result<Opaque, PageError> {
        let (lower, upper, special) = page.checked_bounds()?;
        if special != BTPO_PREV {
            return Err(PageError::Header {
                lower: lower as u16,
                upper: upper as u16,
                special: special as u16,
            });
        }
        Ok(Opaque {
            prev: page.u32_at(BTPO_PREV),
            next: page.u32_at(BTPO_NEXT),
            level: page.u32_at(BTPO_LEVEL),
            flags: page.u16_at(BTPO_FLAGS),
            cycle_id: page.u16_at(BTPO_CYCLEID),
        })
    }

    /// Stores it on a page that [`Opaque::read`] or [`init`] has accepted.
    pub(super) fn write(&self, page: &mut Page) {
        page.put_u32(BTPO_PREV, self.prev);
        page.put_u32(BTPO_NEXT, self.next);
        page.put_u32(BTPO_LEVEL, self.level);
        page.put_u16(BTPO_FLAGS, self.flags);
        page.put_u16(BTPO_CYCLEID, self.cycle_id);
    }

    /// `P_ISLEAF`.
    pub(super) fn is_leaf(&self) -> bool {
        self.flags & BTP_LEAF != 0
    }

    /// `P_RIGHTMOST`.
    pub(super) fn is_rightmost(&self) -> bool {
        self.next == P_NONE
    }

    /// `P_FIRSTDATAKEY`: the first item that is not the high key.
    pub(super) fn first_data_key(&self) -> OffsetNumber {
        if self.is_rightmost() {
            P_HIKEY
        } else {
            P_HIKEY + 1
        }
    }
}

/// Changes the special area of an existing page.
pub(super) fn update_opaque(
    page: &mut Page,
    change: impl FnOnce(&mut Opaque),
) -> Result<(), RmgrError> {
    let mut opaque = Opaque::read(page)?;
    change(&mut opaque);
    opaque.write(page);
    Ok(())
}

/// `_bt_clear_incomplete_split`: the page got its downlink.
pub(super) fn clear_incomplete_split(page: &mut Page) -> Result<(), RmgrError> {
    update_opaque(page, |opaque| opaque.flags &= !BTP_INCOMPLETE_SPLIT)
}

/// `XLogInitBufferForRedo` and `_bt_pageinit`. A record that rebuilds a page says so in the block
/// reference; one that does not was decoded wrongly or is corrupt.
pub(super) fn init(block: &BlockRef<'_>, page: &mut Page, opaque: Opaque) -> Result<(), RmgrError> {
    if !block.will_init {
        return Err(RmgrError::corrupt(format!(
            "block reference {} rebuilds its page but is not marked WILL_INIT",
            block.id
        )));
    }
    *page = empty(opaque);
    Ok(())
}

/// An empty page with this special area. For a page to be rebuilt it is what
/// `PageGetTempPageCopySpecial` gives: the hole, the flags, the prune xid and the checksum are
/// zero, and so is the LSN until the caller stamps it.
pub(super) fn empty(opaque: Opaque) -> Page {
    let mut page = Page::zeroed();
    page.init(OPAQUE_BYTES);
    opaque.write(&mut page);
    page
}

/// Adds an item after the last.
pub(super) fn append(page: &mut Page, item: &[u8]) -> Result<(), PageError> {
    page.add_item(item, page.max_offset() + 1)
}

/// `_bt_restore_page`. The data is the upper part of the original page, so the tuple with the
/// highest offset number comes first; adding them in reverse restores numbers and places.
pub(super) fn restore(page: &mut Page, mut data: &[u8]) -> Result<(), RmgrError> {
    let mut items: SmallVec<[&[u8]; 408]> = SmallVec::new();
    while !data.is_empty() {
        let (item, rest) = IndexTuple::split_aligned(data)?;
        items.push(item);
        data = rest;
    }
    items
        .iter()
        .rev()
        .try_for_each(|item| append(page, item))
        .map_err(RmgrError::from)
}
