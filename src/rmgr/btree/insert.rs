//! INSERT_LEAF, INSERT_UPPER, INSERT_META, INSERT_POST: one tuple, without a split.

use super::page::clear_incomplete_split;
use super::tuple::{IndexTuple, swap_posting};
use super::{Opcode, RmgrError, meta, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::digits::push_decimal;
use crate::types::{Cursor, OffsetNumber, ShortRead};

/// Main data (`xl_btree_insert`, 2 bytes). The tuple is the data of block 0.
#[doc(alias = "xl_btree_insert")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Insert {
    /// Offset 0: the line pointer the tuple gets.
    pub(super) offnum: OffsetNumber,
}

impl Insert {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<Insert, ShortRead> {
        let mut c = Cursor::new("xl_btree_insert", main);
        Ok(Insert {
            offnum: c.u16("offnum")?,
        })
    }
}

impl Insert {
    /// The most frequent description of all.
    pub(super) fn desc(&self, out: &mut String) {
        out.push_str("off ");
        push_decimal(out, self.offnum.into());
    }
}

/// `btree_xlog_insert`. A downlink that goes into an internal page finishes the split of the
/// child, block 1.
pub(super) fn redo(
    opcode: Opcode,
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let Insert { offnum } = Insert::parse(record.main_data)?;
    match (block.id, opcode) {
        (0, Opcode::InsertPost) => insert_splitting_posting(offnum, block.data, page),
        (0, _) => Ok(page.add_item(block.data, offnum)?),
        (1, Opcode::InsertUpper | Opcode::InsertMeta) => clear_incomplete_split(page),
        (2, Opcode::InsertMeta) => meta::restore(block, page),
        (id, _) => Err(unexpected_block(id)),
    }
}

/// The tuple's TID falls inside the posting list before it. The record holds the tuple as it was
/// before the posting list was split, preceded by where to split.
fn insert_splitting_posting(
    offnum: OffsetNumber,
    data: &[u8],
    page: &mut Page,
) -> Result<(), RmgrError> {
    let mut c = Cursor::new("INSERT_POST block data", data);
    let posting_off = c.u16("postingoff")?;
    let new_item = c.rest();
    let before = offnum.saturating_sub(1);
    let swapped = swap_posting(
        new_item,
        IndexTuple::first(page.item(before)?)?,
        posting_off,
    )?;
    if swapped.new_item.len() != new_item.len() {
        return Err(RmgrError::corrupt(format!(
            "index tuple of {} bytes in {} bytes",
            swapped.new_item.len(),
            new_item.len()
        )));
    }
    page.item_mut(before)?[..swapped.posting.len()].copy_from_slice(&swapped.posting);
    page.add_item(&swapped.new_item, offnum)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{
        META, block, fails, items, leaf, meta_page, page_of, plain, posting, redone, tid, words,
    };
    use super::*;
    use crate::page::PD_HAS_FREE_LINES;

    #[test]
    fn insert_moves_later_items_up_and_keeps_the_rest() {
        let before = page_of(leaf(0), &[plain(1, 1, 1), plain(3, 1, 3)]);
        let new = plain(2, 1, 2);
        let page = redone(0x00, &words(&[2]), &[block(0, 4, &new)], 0, &before);
        assert_eq!(items(&page), [plain(1, 1, 1), new, plain(3, 1, 3)]);
        assert_eq!(page.flags(), PD_HAS_FREE_LINES);
        assert_eq!(
            page.bytes()[36..usize::from(page.upper())],
            before.bytes()[36..8128]
        );
        assert_eq!(page.lsn(), before.lsn());
    }

    #[test]
    fn insert_upper_and_meta_finish_the_split_of_the_child() {
        let mut opaque = leaf(9);
        opaque.flags |= BTP_INCOMPLETE_SPLIT;
        let before = page_of(opaque, &[plain(9, 0, 0)]);
        let new = plain(2, 1, 2);
        for info in [0x10, 0x20] {
            let blocks = [
                block(0, 4, &new),
                block(1, 5, &[]),
                block(2, 0, &META).init(),
            ];
            let page = redone(info, &words(&[1]), &blocks, 1, &before);
            assert_eq!(Opaque::read(&page).unwrap(), leaf(9));
            assert_eq!(items(&page), items(&before));
        }
        let blocks = [block(2, 0, &META).init()];
        let page = redone(0x20, &words(&[1]), &blocks, 2, &Page::zeroed());
        assert!(page == meta_page());
        // A leaf insert has no child, only INSERT_META has a metapage.
        assert!(fails(0x00, &words(&[1]), &[block(1, 5, &[])], 1, &before));
        assert!(fails(0x10, &words(&[1]), &blocks, 2, &Page::zeroed()));
    }

    #[test]
    fn insert_post_swaps_the_largest_tid_into_the_new_item() {
        let old = posting(5, &[tid(1, 1), tid(1, 3), tid(1, 5), tid(1, 7)]);
        let before = page_of(leaf(0), &[old, plain(6, 9, 9)]);
        let mut data = words(&[2]);
        data.extend(plain(5, 1, 4));
        let page = redone(0x50, &words(&[2]), &[block(0, 4, &data)], 0, &before);
        let expected = [
            posting(5, &[tid(1, 1), tid(1, 3), tid(1, 4), tid(1, 5)]),
            plain(5, 1, 7),
            plain(6, 9, 9),
        ];
        assert_eq!(items(&page), expected);
    }

    #[test]
    fn insert_post_rejects_positions_outside_the_posting_list() {
        let before = page_of(
            leaf(0),
            &[posting(5, &[tid(1, 1), tid(1, 3)]), plain(6, 9, 9)],
        );
        for (posting_off, offnum, works) in [
            (0, 2, false),
            (1, 2, true),
            (2, 2, false),
            (9, 2, false),
            (1, 3, false),
            (1, 1, false),
            (1, 0, false),
        ] {
            let mut data = words(&[posting_off]);
            data.extend(plain(5, 1, 2));
            let failed = fails(0x50, &words(&[offnum]), &[block(0, 4, &data)], 0, &before);
            assert_eq!(failed, !works, "{posting_off} {offnum}");
            data.extend([0; 8]);
            assert!(fails(
                0x50,
                &words(&[offnum]),
                &[block(0, 4, &data)],
                0,
                &before
            ));
        }
    }
}
