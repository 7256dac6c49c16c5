//! PAGE_SPLIT: a page becomes two or more.

use std::fmt;

use super::page::{self, F_FOLLOW_RIGHT, F_LEAF, ROOT_BLOCK};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::rmgr::fields;
use crate::types::{BlockNumber, Cursor, INVALID_BLOCK, Lsn, ShortRead};

/// Main data (`gistxlogPageSplit`, 24 bytes).
#[doc(alias = "gistxlogPageSplit")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageSplit {
    /// Offset 0: right link of the page before.
    orig_rlink: BlockNumber,
    /// Offset 8: its NSN. Here it is a plain 64-bit number.
    orig_nsn: Lsn,
    /// Offset 16: it was a leaf.
    orig_leaf: bool,
    /// Offset 18: pages after.
    npage: u16,
    /// Offset 20: the new pages have no downlinks yet.
    mark_follow_right: bool,
}

impl PageSplit {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<PageSplit, ShortRead> {
        let mut c = Cursor::new("gistxlogPageSplit", main);
        let orig_rlink = c.u32("origrlink")?;
        c.skip("padding", 4)?;
        let orig_nsn = Lsn(c.u64("orignsn")?);
        let orig_leaf = c.bool("origleaf")?;
        c.skip("padding", 1)?;
        let npage = c.u16("npage")?;
        let mark_follow_right = c.bool("markfollowright")?;
        c.skip("padding", 3)?;
        Ok(PageSplit {
            orig_rlink,
            orig_nsn,
            orig_leaf,
            npage,
            mark_follow_right,
        })
    }
}

impl fmt::Display for PageSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "page_split: splits to {} pages", self.npage)
    }
}

/// `gistRedoPageSplitRecord`, but for the left child. Reference `n` is page `n - 1` of the split.
pub(super) fn redo(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let split = PageSplit::parse(record.main_data)?;
    if u16::from(block.id) > split.npage {
        return Err(unexpected_block(block.id));
    }
    let is_root = block.tag.block == ROOT_BLOCK;
    let is_last = u16::from(block.id) == split.npage;
    // The root stays where it is and becomes the parent of the other pages, which it lists itself.
    let is_root_split = block_number(record, 1)? == ROOT_BLOCK;
    let flags = if split.orig_leaf && !is_root {
        F_LEAF
    } else {
        0
    };
    page::init(block, page, flags)?;
    fill(block, page)?;
    let rightlink = if is_root {
        INVALID_BLOCK
    } else if is_last {
        split.orig_rlink
    } else {
        block_number(record, block.id + 1)?
    };
    page::update_opaque(page, |opaque| {
        opaque.rightlink = rightlink;
        opaque.nsn = split.orig_nsn;
        if split.mark_follow_right && !is_last && !is_root_split {
            opaque.flags |= F_FOLLOW_RIGHT;
        }
    })
}

fn block_number(record: &Record<'_>, id: u8) -> Result<BlockNumber, RmgrError> {
    let block = record.block(id).ok_or(RmgrError::MissingBlock(id))?;
    Ok(block.tag.block)
}

/// `decodePageSplitRecord`: the data of a page are a count and that many tuples.
fn fill(block: &BlockRef<'_>, page: &mut Page) -> Result<(), RmgrError> {
    let mut c = Cursor::new("PAGE_SPLIT block data", block.data);
    let announced = fields::count(&mut c, "num")?;
    let found = page::append_tuples(page, c.rest())?;
    if announced != found {
        return Err(RmgrError::corrupt(format!(
            "{announced} tuples announced, {found} found"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{
        END_LSN, block, fails, flags, items, longs, nsn, page_of, redone, redone_in, tuple,
    };
    use crate::page::Page;
    use crate::rmgr::PageState;
    use crate::types::Lsn;

    /// Main data: NSN 5/77, right link 40.
    fn split(leaf: u8, npage: u8, follow_right: u8) -> Vec<u8> {
        let mut main = longs(&[40, 0xEEEE_EEEE, 0x77, 5]);
        main.extend([leaf, 0xEE, npage, 0, follow_right, 0xEE, 0xEE, 0xEE]);
        main
    }

    /// Block data of two tuples.
    fn two(first: u8) -> Vec<u8> {
        [longs(&[2]), tuple(first, 16), tuple(first + 1, 24)].concat()
    }

    /// What the page holds after its header, tuples as the record lists them.
    fn special(page: &Page) -> &[u8] {
        &page.bytes()[8176..]
    }

    #[test]
    fn pages_are_chained_and_wait_for_their_downlinks() {
        let (left, right) = (two(1), two(3));
        let blocks = [block(1, 7, &left).init(), block(2, 9, &right).init()];
        let main = split(1, 2, 1);
        let garbage = page_of(F_LEAF | F_TUPLES_DELETED, &[tuple(9, 16)]);
        let page = redone(0x30, &main, &blocks, 1, &garbage);
        assert_eq!(items(&page), [tuple(1, 16), tuple(2, 24)]);
        assert_eq!(
            special(&page),
            [5, 0, 0, 0, 0x77, 0, 0, 0, 9, 0, 0, 0, 0x09, 0, 0x81, 0xFF]
        );
        assert!(page.bytes()[32..8136].iter().all(|b| *b == 0), "the hole");
        let page = redone(0x30, &main, &blocks, 2, &garbage);
        assert_eq!(items(&page), [tuple(3, 16), tuple(4, 24)]);
        assert_eq!(
            special(&page),
            [5, 0, 0, 0, 0x77, 0, 0, 0, 40, 0, 0, 0, 0x01, 0, 0x81, 0xFF]
        );
        let page = redone(0x30, &split(0, 2, 0), &blocks, 1, &garbage);
        assert_eq!(flags(&page), 0);
    }

    #[test]
    fn root_becomes_an_inner_page_without_siblings() {
        let (root, left, right) = (two(1), two(3), two(5));
        let blocks = [
            block(1, 0, &root).init(),
            block(2, 7, &left).init(),
            block(3, 8, &right).init(),
        ];
        let main = split(1, 3, 1);
        for (id, rightlink, page_flags) in [(1, u32::MAX, 0), (2, 8, F_LEAF), (3, 40, F_LEAF)] {
            let page = redone(0x30, &main, &blocks, id, &Page::zeroed());
            let opaque = Opaque::read(&page).unwrap();
            assert_eq!((opaque.rightlink, opaque.flags), (rightlink, page_flags));
            assert_eq!(opaque.nsn, Lsn(0x5_0000_0077));
        }
    }

    #[test]
    fn left_child_below_is_finished_even_when_restored() {
        let before = page_of(F_FOLLOW_RIGHT, &[tuple(1, 16)]);
        for state in [PageState::Needs, PageState::Restored] {
            let page = redone_in(
                state,
                0x30,
                &split(0, 2, 1),
                &[block(0, 3, &[])],
                0,
                &before,
            );
            assert_eq!((nsn(&page), flags(&page)), (END_LSN, 0));
        }
    }

    #[test]
    fn data_that_is_short_or_miscounted_is_an_error() {
        let data = two(1);
        let main = split(1, 1, 1);
        for len in 0..data.len() {
            let short = block(1, 7, &data[..len]).init();
            assert!(fails(0x30, &main, &[short], 1, &Page::zeroed()), "{len}");
        }
        let tuples = data[4..].to_vec();
        let miscounted = [longs(&[1]), tuples.clone()].concat();
        let negative = [longs(&[u32::MAX]), tuples].concat();
        for data in [miscounted, negative] {
            assert!(fails(
                0x30,
                &main,
                &[block(1, 7, &data).init()],
                1,
                &Page::zeroed()
            ));
        }
        let without_init = block(1, 7, &data);
        assert!(fails(0x30, &main, &[without_init], 1, &Page::zeroed()));
        let beyond = [block(1, 7, &data).init(), block(2, 8, &data).init()];
        assert!(fails(0x30, &main, &beyond, 2, &Page::zeroed()));
        let without_next = [block(1, 7, &data).init()];
        assert!(fails(
            0x30,
            &split(1, 2, 1),
            &without_next,
            1,
            &Page::zeroed()
        ));
    }
}
