//! DELETE and VACUUM: items of a leaf page are removed, and posting lists lose some of their TIDs.

use std::fmt;

use smallvec::SmallVec;

use super::page::{self, BTP_HAS_GARBAGE};
use super::tuple::{IndexTuple, update_posting};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, OffsetNumber, ShortRead, TransactionId};

/// Main data of DELETE (`xl_btree_delete`, 8 bytes).
#[doc(alias = "xl_btree_delete")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delete {
    /// Offset 0: standby queries that may still see its rows are in conflict.
    pub(super) latest_removed_xid: TransactionId,
    /// Offset 4: what goes.
    pub(super) counts: Counts,
}

/// How many items change (`xl_btree_vacuum`, the end of `xl_btree_delete`, 4 bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    /// Offset 0: items that go.
    pub(super) ndeleted: u16,
    /// Offset 2: posting lists that shrink.
    pub(super) nupdated: u16,
}

/// Main data of VACUUM (`xl_btree_vacuum`, 4 bytes).
#[doc(alias = "xl_btree_vacuum")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Vacuum {
    /// Offset 0: what goes.
    pub(super) counts: Counts,
}

impl Counts {
    fn read(c: &mut Cursor<'_>) -> Result<Counts, ShortRead> {
        Ok(Counts {
            ndeleted: c.u16("ndeleted")?,
            nupdated: c.u16("nupdated")?,
        })
    }
}

impl Delete {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<Delete, ShortRead> {
        let mut c = Cursor::new("xl_btree_delete", main);
        Ok(Delete {
            latest_removed_xid: TransactionId(c.u32("latestRemovedXid")?),
            counts: Counts::read(&mut c)?,
        })
    }
}

impl Vacuum {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<Vacuum, ShortRead> {
        let mut c = Cursor::new("xl_btree_vacuum", main);
        Ok(Vacuum {
            counts: Counts::read(&mut c)?,
        })
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ndeleted {}; nupdated {}", self.ndeleted, self.nupdated)
    }
}

impl fmt::Display for Delete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "latestRemovedXid {}; {}",
            self.latest_removed_xid, self.counts
        )
    }
}

impl fmt::Display for Vacuum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts.fmt(f)
    }
}

/// `btree_xlog_delete`.
pub(super) fn redo_delete(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    remove(Delete::parse(record.main_data)?.counts, block, page)
}

/// `btree_xlog_vacuum`. The cycle id stays, although the primary cleared its own.
pub(super) fn redo_vacuum(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    remove(Vacuum::parse(record.main_data)?.counts, block, page)
}

/// The offset numbers in `bytes`, two bytes each.
fn offsets(bytes: &[u8]) -> impl ExactSizeIterator<Item = OffsetNumber> + '_ {
    bytes
        .chunks_exact(2)
        .map(|b| u16::from_le_bytes([b[0], b[1]]))
}

/// The data of block 0: offsets of deleted items, offsets of updated ones, then for each updated
/// one (`xl_btree_update`) a count and the positions in its posting list. Updates come first: they
/// move no line pointers, so the deleted offsets still hold.
fn remove(counts: Counts, block: &BlockRef<'_>, page: &mut Page) -> Result<(), RmgrError> {
    if block.id != 0 {
        return Err(unexpected_block(block.id));
    }
    let mut c = Cursor::new("DELETE or VACUUM block data", block.data);
    let deleted = c.bytes("deleted offsets", 2 * usize::from(counts.ndeleted))?;
    let updated = c.bytes("updated offsets", 2 * usize::from(counts.nupdated))?;
    for offset in offsets(updated) {
        let ndeleted_tids = usize::from(c.u16("ndeletedtids")?);
        let positions = c.bytes("deleted TIDs", 2 * ndeleted_tids)?;
        let old = IndexTuple::first(page.item(offset)?)?;
        let new = update_posting(old, offsets(positions))?;
        page.index_tuple_overwrite(offset, &new)?;
    }
    let deleted: SmallVec<[OffsetNumber; 408]> = offsets(deleted).collect();
    page.index_multi_delete(&deleted)?;
    // Whatever was marked dead is gone now, or will be marked again.
    page::update_opaque(page, |opaque| opaque.flags &= !BTP_HAS_GARBAGE)
}

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{
        block, fails, items, leaf, longs, page_of, plain, posting, redone, tid, words,
    };
    use super::*;

    /// DELETE and VACUUM with the same block data.
    fn both_deletions(ndeleted: u16, nupdated: u16) -> [(u8, Vec<u8>); 2] {
        let counts = words(&[ndeleted, nupdated]);
        [
            (0x70, [longs(&[700]), counts.clone()].concat()),
            (0xC0, counts),
        ]
    }

    #[test]
    fn deletion_shrinks_posting_lists_before_items_go() {
        let mut opaque = leaf(8);
        opaque.flags |= BTP_HAS_GARBAGE;
        opaque.cycle_id = 77;
        let before = page_of(
            opaque,
            &[
                plain(9, 0, 1),
                plain(1, 1, 1),
                posting(2, &[tid(1, 2), tid(1, 3), tid(1, 4)]),
                plain(3, 1, 5),
                posting(4, &[tid(1, 6), tid(1, 7)]),
            ],
        );
        let data = words(&[2, 4, 3, 5, 1, 1, 1, 0]);
        let expected = [
            plain(9, 0, 1),
            posting(2, &[tid(1, 2), tid(1, 4)]),
            plain(4, 1, 7),
        ];
        for (info, main) in both_deletions(2, 2) {
            let page = redone(info, &main, &[block(0, 4, &data)], 0, &before);
            assert_eq!(items(&page), expected);
            opaque.flags = BTP_LEAF;
            assert_eq!(Opaque::read(&page).unwrap(), opaque);
            for len in 0..data.len() {
                assert!(
                    fails(info, &main, &[block(0, 4, &data[..len])], 0, &before),
                    "{len}"
                );
            }
        }
    }

    #[test]
    fn deletion_of_three_items_lays_out_the_rest_anew() {
        // Items lie on the page in another order than their line pointers.
        let mut before = page_of(
            leaf(0),
            &(2..=6).map(|k| plain(k, 1, k)).collect::<Vec<_>>(),
        );
        before.add_item(&plain(1, 1, 1), 1).unwrap();
        let offset = |page: &Page, off: OffsetNumber| page.item_id(off).unwrap().offset();
        for (info, main) in both_deletions(2, 0) {
            let page = redone(info, &main, &[block(0, 4, &words(&[3, 4]))], 0, &before);
            assert!(offset(&page, 1) < offset(&page, 2), "physical order kept");
        }
        for (info, main) in both_deletions(3, 0) {
            let page = redone(info, &main, &[block(0, 4, &words(&[3, 4, 5]))], 0, &before);
            assert_eq!([1, 2, 3].map(|o| offset(&page, o)), [8160, 8144, 8128]);
            assert_eq!(
                items(&page),
                [plain(1, 1, 1), plain(2, 1, 2), plain(6, 1, 6)]
            );
        }
    }

    #[test]
    fn deletion_of_impossible_tids_is_an_error() {
        let before = page_of(
            leaf(0),
            &[posting(2, &[tid(1, 2), tid(1, 3)]), plain(3, 1, 5)],
        );
        for (data, works) in [
            (vec![1, 1, 0], true),
            (vec![1, 0], false),
            (vec![1, 1, 2], false),
            (vec![1, 2, 0, 1], false),
            (vec![1, 2, 1, 0], false),
            (vec![2, 1, 0], false),
            (vec![3, 1, 0], false),
        ] {
            let bytes = words(&data);
            for (info, main) in both_deletions(0, 1) {
                let failed = fails(info, &main, &[block(0, 4, &bytes)], 0, &before);
                assert_eq!(failed, !works, "{data:?}");
            }
        }
    }
}
