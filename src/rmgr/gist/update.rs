//! PAGE_UPDATE and DELETE: tuples of one page go, others come.

use std::fmt;

use smallvec::SmallVec;

use super::page::{self, F_HAS_GARBAGE, F_TUPLES_DELETED};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, OffsetNumber, ShortRead, TransactionId};

/// Main data of PAGE_UPDATE (`gistxlogPageUpdate`, 4 bytes).
#[doc(alias = "gistxlogPageUpdate")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageUpdate {
    /// Offset 0: items that go.
    ntodelete: u16,
    /// Offset 2: tuples that come.
    ntoinsert: u16,
}

/// Main data of DELETE (`gistxlogDelete`, 6 bytes and the offsets of the items that go).
#[doc(alias = "gistxlogDelete")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delete {
    /// Offset 0: standby queries that may still see its rows are in conflict.
    latest_removed_xid: TransactionId,
    /// Offset 4: items that go.
    ntodelete: u16,
}

impl PageUpdate {
    fn parse(main: &[u8]) -> Result<PageUpdate, ShortRead> {
        let mut c = Cursor::new("gistxlogPageUpdate", main);
        Ok(PageUpdate {
            ntodelete: c.u16("ntodelete")?,
            ntoinsert: c.u16("ntoinsert")?,
        })
    }
}

impl Delete {
    /// Reads the main data up to the offsets.
    pub(super) fn parse(main: &[u8]) -> Result<Delete, ShortRead> {
        Delete::read(&mut Cursor::new("gistxlogDelete", main))
    }

    fn read(c: &mut Cursor<'_>) -> Result<Delete, ShortRead> {
        Ok(Delete {
            latest_removed_xid: TransactionId(c.u32("latestRemovedXid")?),
            ntodelete: c.u16("ntodelete")?,
        })
    }
}

impl fmt::Display for Delete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "delete: latestRemovedXid {}, nitems: {}",
            self.latest_removed_xid, self.ntodelete
        )
    }
}

/// Offset numbers of items, ascending in what PostgreSQL writes.
type Offsets = SmallVec<[OffsetNumber; 408]>;

fn read_offsets(c: &mut Cursor<'_>, count: u16) -> Result<Offsets, ShortRead> {
    let bytes = c.bytes("todelete", 2 * usize::from(count))?;
    let offsets = bytes.chunks_exact(2);
    Ok(offsets.map(|b| u16::from_le_bytes([b[0], b[1]])).collect())
}

/// `gistRedoPageUpdateRecord`, but for the left child. The data of block 0 are the offsets of the
/// items that go and the tuples that come.
pub(super) fn redo_page_update(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let update = PageUpdate::parse(record.main_data)?;
    if block.id != 0 {
        return Err(unexpected_block(block.id));
    }
    let mut c = Cursor::new("PAGE_UPDATE block data", block.data);
    let todelete = read_offsets(&mut c, update.ntodelete)?;
    let mut tuples = c.rest();
    let mut replaced = 0;
    if let ([offset], 1) = (todelete.as_slice(), update.ntoinsert) {
        // One for one keeps the item's place and, unlike a deletion, leaves no mark
        // (`gistplacetopage` does the same).
        let (tuple, rest) = page::split_tuple(tuples)?;
        page.index_tuple_overwrite(*offset, tuple)?;
        tuples = rest;
        replaced = 1;
    } else if !todelete.is_empty() {
        page.index_multi_delete(&todelete)?;
        page::update_opaque(page, |opaque| {
            if opaque.is_leaf() {
                opaque.flags |= F_TUPLES_DELETED;
            }
        })?;
    }
    let inserted = replaced + page::append_tuples(page, tuples)?;
    if inserted != usize::from(update.ntoinsert) {
        return Err(RmgrError::corrupt(format!(
            "{} tuples announced, {inserted} found",
            update.ntoinsert
        )));
    }
    Ok(())
}

/// `gistRedoDeleteRecord`. The offsets are in the main data, so that a standby finds them even
/// when the page comes as an image.
pub(super) fn redo_delete(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let mut c = Cursor::new("gistxlogDelete", record.main_data);
    let delete = Delete::read(&mut c)?;
    let todelete = read_offsets(&mut c, delete.ntodelete)?;
    if block.id != 0 {
        return Err(unexpected_block(block.id));
    }
    page.index_multi_delete(&todelete)?;
    page::update_opaque(page, |opaque| {
        // Whatever was marked dead is gone now, or will be marked again.
        opaque.flags &= !F_HAS_GARBAGE;
        opaque.flags |= F_TUPLES_DELETED;
    })
}

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{
        END_LSN, block, fails, flags, items, longs, nsn, page_of, redone, redone_in, tuple, words,
    };
    use crate::page::LpFlags;
    use crate::rmgr::PageState;
    use crate::types::Lsn;

    /// A leaf with three tuples.
    fn leaf() -> crate::page::Page {
        page_of(
            F_LEAF | F_HAS_GARBAGE,
            &[tuple(1, 16), tuple(2, 16), tuple(3, 16)],
        )
    }

    #[test]
    fn tuples_are_appended_after_deletions() {
        let data = [words(&[1, 3]), tuple(4, 24), tuple(5, 16)].concat();
        let main = words(&[2, 2]);
        let page = redone(0x00, &main, &[block(0, 7, &data)], 0, &leaf());
        assert_eq!(items(&page), [tuple(2, 16), tuple(4, 24), tuple(5, 16)]);
        assert_eq!(flags(&page), F_LEAF | F_HAS_GARBAGE | F_TUPLES_DELETED);
        for len in 0..data.len() {
            let short = block(0, 7, &data[..len]);
            assert!(fails(0x00, &main, &[short], 0, &leaf()), "{len}");
        }
    }

    #[test]
    fn deletions_leave_no_mark_on_an_inner_page() {
        let inner = page_of(0, &[tuple(1, 16), tuple(2, 16)]);
        let page = redone(
            0x00,
            &words(&[1, 0]),
            &[block(0, 7, &words(&[1]))],
            0,
            &inner,
        );
        assert_eq!(items(&page), [tuple(2, 16)]);
        assert_eq!(flags(&page), 0);
    }

    #[test]
    fn one_for_one_overwrites_and_leaves_no_mark() {
        let mut before = leaf();
        let dead = before.item_id(2).unwrap().with_flags(LpFlags::Dead);
        before.set_item_id(2, dead).unwrap();
        let data = [words(&[2]), tuple(9, 24)].concat();
        let page = redone(0x00, &words(&[1, 1]), &[block(0, 7, &data)], 0, &before);
        assert_eq!(items(&page), [tuple(1, 16), tuple(9, 24), tuple(3, 16)]);
        assert_eq!(page.item_id(2).unwrap().flags(), LpFlags::Dead);
        assert_eq!(flags(&page), F_LEAF | F_HAS_GARBAGE);
        let more = [data, tuple(8, 16)].concat();
        assert!(fails(
            0x00,
            &words(&[1, 1]),
            &[block(0, 7, &more)],
            0,
            &leaf()
        ));
    }

    #[test]
    fn wrong_number_of_tuples_is_an_error() {
        let data = [tuple(4, 16), tuple(5, 16)].concat();
        for (announced, works) in [(1, false), (2, true), (3, false)] {
            let failed = fails(
                0x00,
                &words(&[0, announced]),
                &[block(0, 7, &data)],
                0,
                &leaf(),
            );
            assert_eq!(failed, !works, "{announced}");
        }
    }

    #[test]
    fn left_child_of_a_finished_split_is_changed_even_when_restored() {
        let before = page_of(F_LEAF | F_FOLLOW_RIGHT | F_HAS_GARBAGE, &[tuple(1, 16)]);
        for state in [PageState::Needs, PageState::Restored] {
            let blocks = [block(0, 7, &[]), block(1, 8, &[])];
            let page = redone_in(state, 0x00, &words(&[0, 0]), &blocks, 1, &before);
            assert_eq!(nsn(&page), END_LSN);
            assert_ne!(nsn(&before), END_LSN);
            assert_eq!(flags(&page), F_LEAF | F_HAS_GARBAGE);
            assert_eq!(page.lsn(), Lsn(0x99), "stamped by the caller");
        }
    }

    #[test]
    fn dead_items_go_with_their_mark() {
        let main = [longs(&[700]), words(&[2, 1, 2])].concat();
        let page = redone(0x10, &main, &[block(0, 7, &[])], 0, &leaf());
        assert_eq!(items(&page), [tuple(3, 16)]);
        assert_eq!(flags(&page), F_LEAF | F_TUPLES_DELETED);
        for len in 0..main.len() {
            assert!(
                fails(0x10, &main[..len], &[block(0, 7, &[])], 0, &leaf()),
                "{len}"
            );
        }
        assert!(fails(0x10, &main, &[block(1, 7, &[])], 1, &leaf()));
    }
}
