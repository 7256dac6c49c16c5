//! SPLIT_L and SPLIT_R: a page is split in two and a tuple is inserted into one of them.

use std::fmt;

use super::page::{self, BTP_INCOMPLETE_SPLIT, BTP_LEAF, Opaque, P_NONE};
use super::tuple::{IndexTuple, swap_posting};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{BlockNumber, Cursor, OffsetNumber, ShortRead};

/// Which page the new tuple went to; the opcode says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// SPLIT_L.
    Left,
    /// SPLIT_R.
    Right,
}

/// Main data (`xl_btree_split`, 10 bytes).
#[doc(alias = "xl_btree_split")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Split {
    /// Offset 0: level of the page in the tree; 0 is a leaf.
    pub(super) level: u32,
    /// Offset 4: first item of the original page that went right.
    pub(super) first_right_off: OffsetNumber,
    /// Offset 6: where the new item belongs on the original page.
    pub(super) new_item_off: OffsetNumber,
    /// Offset 8: where the new item falls inside the posting list before it, or 0.
    pub(super) posting_off: u16,
}

impl Split {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<Split, ShortRead> {
        let mut c = Cursor::new("xl_btree_split", main);
        Ok(Split {
            level: c.u32("level")?,
            first_right_off: c.u16("firstrightoff")?,
            new_item_off: c.u16("newitemoff")?,
            posting_off: c.u16("postingoff")?,
        })
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "level {}, firstrightoff {}, newitemoff {}, postingoff {}",
            self.level, self.first_right_off, self.new_item_off, self.posting_off
        )
    }
}

/// `btree_xlog_split`.
pub(super) fn redo(
    side: Side,
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let split = Split::parse(record.main_data)?;
    match block.id {
        0 => {
            let right = block_number(record, 1)?;
            split.rebuild_left(side, right, block.data, page)
        }
        1 => {
            let opaque = Opaque {
                prev: block_number(record, 0)?,
                next: record.block(2).map_or(P_NONE, |b| b.tag.block),
                level: split.level,
                flags: split.leaf_flag(),
                cycle_id: 0,
            };
            page::init(block, page, opaque)?;
            page::restore(page, block.data)
        }
        2 => {
            let right = block_number(record, 1)?;
            page::update_opaque(page, |opaque| opaque.prev = right)
        }
        // The tuple inserted into an internal page is a downlink that finishes a split below.
        3 if split.level > 0 => page::clear_incomplete_split(page),
        id => Err(unexpected_block(id)),
    }
}

fn block_number(record: &Record<'_>, id: u8) -> Result<BlockNumber, RmgrError> {
    let block = record.block(id).ok_or(RmgrError::MissingBlock(id))?;
    Ok(block.tag.block)
}

/// What the left page holds besides items of the original page.
struct LeftItems {
    /// The new item, if it belongs on the left, at `new_item_off`.
    new_item: Option<Vec<u8>>,
    /// The posting tuple that replaces the one at `new_item_off - 1`.
    posting: Option<Vec<u8>>,
    /// The high key.
    high_key: Vec<u8>,
}

impl Split {
    fn leaf_flag(&self) -> u16 {
        if self.level == 0 { BTP_LEAF } else { 0 }
    }

    /// Reads the data of block 0: the new item, unless the right page's data holds it in its
    /// final form, then the high key. A posting list split is done here again, from the new item
    /// as it was before.
    fn left_items(&self, side: Side, data: &[u8], page: &Page) -> Result<LeftItems, RmgrError> {
        let mut rest = data;
        let (mut new_item, mut posting) = (None, None);
        if side == Side::Left || self.posting_off != 0 {
            let (item, after) = IndexTuple::split_aligned(rest)?;
            rest = after;
            let mut item = item.to_vec();
            if self.posting_off != 0 {
                let old = page.item(self.new_item_off.saturating_sub(1))?;
                let swapped = swap_posting(&item, IndexTuple::first(old)?, self.posting_off)?;
                item[..swapped.new_item.len()].copy_from_slice(&swapped.new_item);
                posting = Some(swapped.posting);
            }
            new_item = (side == Side::Left).then_some(item);
        }
        let (high_key, rest) = IndexTuple::split_aligned(rest)?;
        if !rest.is_empty() {
            return Err(RmgrError::corrupt(format!(
                "{} bytes after the high key of the left page",
                rest.len()
            )));
        }
        Ok(LeftItems {
            new_item,
            posting,
            high_key: high_key.to_vec(),
        })
    }

    /// Builds the left page anew, items in line pointer order as `_bt_split` laid them out.
    /// Marks of dead items and all flags but two are lost with the old page.
    fn rebuild_left(
        &self,
        side: Side,
        right: BlockNumber,
        data: &[u8],
        page: &mut Page,
    ) -> Result<(), RmgrError> {
        let mut opaque = Opaque::read(page)?;
        let items = self.left_items(side, data, page)?;
        let mut left = page::empty(opaque);
        page::append(&mut left, &items.high_key)?;
        // The original page may be rightmost; the left page is not, so it always has a high key.
        let mut off = opaque.first_data_key();
        while off < self.first_right_off {
            match (&items.posting, &items.new_item) {
                (Some(posting), _) if off + 1 == self.new_item_off => {
                    page::append(&mut left, posting)?;
                    off += 1;
                    continue;
                }
                (_, Some(new_item)) if off == self.new_item_off => {
                    page::append(&mut left, new_item)?;
                }
                _ => {}
            }
            page::append(&mut left, page.item(off)?)?;
            off += 1;
        }
        if let Some(new_item) = items.new_item.filter(|_| off == self.new_item_off) {
            page::append(&mut left, &new_item)?;
        }
        opaque.flags = BTP_INCOMPLETE_SPLIT | self.leaf_flag();
        opaque.next = right;
        opaque.cycle_id = 0;
        opaque.write(&mut left);
        *page = left;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{
        block, fails, leaf, longs, page_of, plain, posting, rebuilt, redone, split_leaf, tid, words,
    };
    use super::*;
    use crate::page::LpFlags;

    /// Main data of a split.
    fn split(level: u32, first_right: u16, new_item: u16, posting_off: u16) -> Vec<u8> {
        [
            longs(&[level]),
            words(&[first_right, new_item, posting_off]),
        ]
        .concat()
    }

    /// The left page of a leaf split, block 4, with right page 6.
    #[track_caller]
    fn left_after(info: u8, main: &[u8], data: &[Vec<u8>], before: &Page) -> Page {
        let data = data.concat();
        let blocks = [block(0, 4, &data), block(1, 6, &[]).init()];
        redone(info, main, &blocks, 0, before)
    }

    #[test]
    fn split_left_puts_the_new_item_between_old_ones_or_last() {
        let mut opaque = leaf(8);
        opaque.flags |= BTP_HAS_GARBAGE | BTP_SPLIT_END | BTP_ROOT;
        opaque.cycle_id = 77;
        let high = plain(9, 0, 1);
        let old: Vec<_> = (1..=4).map(|k| plain(k, 1, k)).collect();
        let mut before = page_of(opaque, &[&[high], &old[..]].concat());
        before
            .set_item_id(2, before.item_id(2).unwrap().with_flags(LpFlags::Dead))
            .unwrap();
        let (new, new_high) = (plain(7, 7, 7), plain(3, 0, 1));
        let data = [new.clone(), new_high.clone()];

        let page = left_after(0x30, &split(0, 4, 3, 0), &data, &before);
        let expected = [
            new_high.clone(),
            old[0].clone(),
            new.clone(),
            old[1].clone(),
        ];
        assert!(page == rebuilt(split_leaf(), &expected));

        let page = left_after(0x30, &split(0, 4, 4, 0), &data, &before);
        let expected = [
            new_high.clone(),
            old[0].clone(),
            old[1].clone(),
            new.clone(),
        ];
        assert!(page == rebuilt(split_leaf(), &expected));
    }

    #[test]
    fn split_right_of_the_rightmost_page_adds_a_high_key() {
        let old: Vec<_> = (1..=4).map(|k| plain(k, 1, k)).collect();
        let before = page_of(leaf(0), &old);
        let high = plain(3, 0, 1);
        let page = left_after(
            0x40,
            &split(0, 3, 4, 0),
            std::slice::from_ref(&high),
            &before,
        );
        let expected = [high, old[0].clone(), old[1].clone()];
        assert!(page == rebuilt(split_leaf(), &expected));
    }

    #[test]
    fn split_repeats_the_split_of_a_posting_list() {
        let old = posting(2, &[tid(1, 1), tid(1, 3), tid(1, 5)]);
        let before = page_of(leaf(0), &[plain(1, 1, 1), old, plain(8, 1, 8)]);
        let (new, high) = (plain(2, 1, 2), plain(7, 0, 1));
        let swapped = posting(2, &[tid(1, 1), tid(1, 2), tid(1, 3)]);
        let data = [new, high.clone()];

        // The new item, now with the last TID, follows the posting tuple on the left ...
        let page = left_after(0x30, &split(0, 3, 3, 1), &data, &before);
        let expected = [
            high.clone(),
            plain(1, 1, 1),
            swapped.clone(),
            plain(2, 1, 5),
        ];
        assert!(page == rebuilt(split_leaf(), &expected));
        // ... with old items after it ...
        let page = left_after(0x30, &split(0, 4, 3, 1), &data, &before);
        let more = [&expected[..], &[plain(8, 1, 8)]].concat();
        assert!(page == rebuilt(split_leaf(), &more));
        // ... or is the first on the right.
        let page = left_after(0x40, &split(0, 3, 3, 1), &data, &before);
        assert!(page == rebuilt(split_leaf(), &expected[..3]));
    }

    #[test]
    fn split_builds_the_right_page_in_reverse() {
        let data = [plain(3, 1, 3), plain(2, 1, 2), plain(9, 0, 1)].concat();
        let blocks = [
            block(0, 4, &[]),
            block(1, 6, &data).init(),
            block(2, 8, &[]),
        ];
        let page = redone(0x40, &split(0, 3, 3, 0), &blocks, 1, &Page::zeroed());
        let opaque = Opaque {
            prev: 4,
            next: 8,
            ..leaf(8)
        };
        let expected = [plain(9, 0, 1), plain(2, 1, 2), plain(3, 1, 3)];
        assert!(page == rebuilt(opaque, &expected));

        let page = redone(0x30, &split(1, 3, 3, 0), &blocks[..2], 1, &Page::zeroed());
        let opaque = Opaque {
            prev: 4,
            next: 0,
            level: 1,
            flags: 0,
            cycle_id: 0,
        };
        assert!(page == rebuilt(opaque, &expected));
    }

    #[test]
    fn split_relinks_the_old_sibling_and_finishes_the_split_below() {
        let mut opaque = leaf(0);
        opaque.flags |= BTP_INCOMPLETE_SPLIT;
        let before = page_of(opaque, &[]);
        let blocks = [
            block(0, 4, &[]),
            block(1, 6, &[]).init(),
            block(2, 8, &[]),
            block(3, 5, &[]),
        ];
        let page = redone(0x30, &split(1, 3, 3, 0), &blocks, 2, &before);
        assert_eq!(Opaque::read(&page).unwrap(), Opaque { prev: 6, ..opaque });
        let page = redone(0x30, &split(1, 3, 3, 0), &blocks, 3, &before);
        assert_eq!(Opaque::read(&page).unwrap(), leaf(0));
        assert!(fails(0x30, &split(0, 3, 3, 0), &blocks, 3, &before));
    }

    #[test]
    fn split_with_contradicting_data_is_an_error() {
        let before = page_of(leaf(0), &[plain(1, 1, 1), plain(2, 1, 2)]);
        let data = [plain(5, 5, 5), plain(2, 0, 1)].concat();
        let right = block(1, 6, &[]).init();
        let check = |info, main: &[u8], data: &[u8]| {
            fails(info, main, &[block(0, 4, data), right], 0, &before)
        };
        assert!(!check(0x30, &split(0, 3, 3, 0), &data));
        assert!(check(0x40, &split(0, 3, 3, 0), &data), "left over");
        assert!(check(0x30, &split(0, 4, 3, 0), &data), "beyond the page");
        assert!(check(0x30, &split(0, 3, 3, 1), &data), "not a posting list");
        for len in 0..data.len() {
            assert!(check(0x30, &split(0, 3, 3, 0), &data[..len]), "{len}");
        }
        assert!(fails(
            0x30,
            &split(0, 3, 3, 0),
            &[block(0, 4, &data)],
            0,
            &before
        ));
    }
}
