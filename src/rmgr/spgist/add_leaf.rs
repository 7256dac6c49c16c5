//! ADD_LEAF: a leaf tuple joins a page.

use std::fmt;

use super::page::{self, Node, Tree};
use super::tuple::{self, Link};
use super::{RmgrError, block_number, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, OffsetNumber, ShortRead};

/// Main data (`spgxlogAddLeaf`, 10 bytes); the leaf tuple follows.
#[doc(alias = "spgxlogAddLeaf")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddLeaf {
    /// Offset 0: block 0 is new.
    new_page: bool,
    /// Offset 1: and of the tree of nulls.
    stores_nulls: bool,
    /// Offset 2: where the tuple goes.
    offnum_leaf: OffsetNumber,
    /// Offset 4: the head of its chain, or 0; `offnum_leaf` itself if the tuple replaces a dead
    /// head.
    offnum_head_leaf: OffsetNumber,
    /// Offsets 6 and 8: the downlink that now leads to the tuple; parent 0 if it already did.
    node: Node,
}

impl AddLeaf {
    /// Reads the main data up to the tuple.
    pub(super) fn parse(main: &[u8]) -> Result<AddLeaf, ShortRead> {
        AddLeaf::read(&mut Cursor::new("spgxlogAddLeaf", main))
    }

    fn read(c: &mut Cursor<'_>) -> Result<AddLeaf, ShortRead> {
        Ok(AddLeaf {
            new_page: c.bool("newPage")?,
            stores_nulls: c.bool("storesNulls")?,
            offnum_leaf: c.u16("offnumLeaf")?,
            offnum_head_leaf: c.u16("offnumHeadLeaf")?,
            node: Node {
                parent: c.u16("offnumParent")?,
                index: c.u16("nodeI")?,
            },
        })
    }

    fn place(&self, tuple: &[u8], page: &mut Page) -> Result<(), RmgrError> {
        if self.offnum_leaf == self.offnum_head_leaf {
            return page::replace(page, tuple, self.offnum_leaf);
        }
        page::add_or_replace(page, tuple, self.offnum_leaf)?;
        if self.offnum_head_leaf == 0 {
            return Ok(());
        }
        // The new tuple comes second in its chain.
        tuple::set_next_offset(page.item_mut(self.offnum_head_leaf)?, self.offnum_leaf)
    }
}

impl fmt::Display for AddLeaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "off: {}, headoff: {}, parentoff: {}, nodeI: {}",
            self.offnum_leaf, self.offnum_head_leaf, self.node.parent, self.node.index
        )?;
        if self.new_page {
            f.write_str(" (newpage)")?;
        }
        if self.stores_nulls {
            f.write_str(" (nulls)")?;
        }
        Ok(())
    }
}

/// `spgRedoAddLeaf`.
pub(super) fn redo(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let mut c = Cursor::new("spgxlogAddLeaf", record.main_data);
    let xlrec = AddLeaf::read(&mut c)?;
    let tuple = tuple::read_leaf(&mut c)?;
    match block.id {
        0 => {
            let flags = Tree::of(xlrec.stores_nulls).leaf_flags();
            page::init_if(xlrec.new_page, block, page, flags)?;
            xlrec.place(tuple, page)
        }
        1 if xlrec.node.parent != 0 => {
            let to = Link {
                block: block_number(record, 0)?,
                offset: xlrec.offnum_leaf,
            };
            xlrec.node.set_link(page, to)
        }
        id => Err(unexpected_block(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        Counts, DEAD, PLACEHOLDER, block, counts, fails, fails_cut, inner, items, leaf, page_of,
        redone, words,
    };
    use crate::page::Page;

    /// Main data of an addition to the tree of values.
    fn add(new: u8, nulls: u8, [off, head, parent, node]: [u16; 4], tuple: &[u8]) -> Vec<u8> {
        let offsets = words(&[off, head, parent, node]);
        [&[new, nulls], offsets.as_slice(), tuple].concat()
    }

    #[test]
    fn tuple_comes_second_in_its_chain() {
        let before = page_of(&[leaf(1, 16, 2), leaf(2, 24, 0)]);
        let main = add(0, 0, [3, 1, 0, 0], &leaf(3, 32, 2));
        let page = redone(0x10, &main, &[block(0, 7, &[])], 0, &before);
        assert_eq!(
            items(&page),
            [leaf(1, 16, 3), leaf(2, 24, 0), leaf(3, 32, 2)]
        );
        fails_cut(0x10, &main, &[block(0, 7, &[])], 0, &before);
    }

    #[test]
    fn placeholder_is_replaced_and_nothing_else() {
        let before = page_of(&[leaf(1, 16, 0), PLACEHOLDER.to_vec(), leaf(2, 16, 0)]);
        let main = add(0, 0, [2, 0, 0, 0], &leaf(3, 24, 0));
        let page = redone(0x10, &main, &[block(0, 7, &[])], 0, &before);
        assert_eq!(
            items(&page),
            [leaf(1, 16, 0), leaf(3, 24, 0), leaf(2, 16, 0)]
        );
        let none = Counts {
            redirections: 0,
            placeholders: 0,
        };
        assert_eq!(counts(&page), none);
        for offset in [0, 1, 3, 5] {
            let main = add(0, 0, [offset, 9, 0, 0], &leaf(3, 24, 0));
            assert!(
                fails(0x10, &main, &[block(0, 7, &[])], 0, &before),
                "{offset}"
            );
        }
    }

    #[test]
    fn dead_head_is_replaced_without_counting() {
        let before = page_of(&[DEAD.to_vec(), PLACEHOLDER.to_vec()]);
        let main = add(0, 0, [1, 1, 0, 0], &leaf(3, 24, 0));
        let page = redone(0x10, &main, &[block(0, 7, &[])], 0, &before);
        assert_eq!(items(&page), [leaf(3, 24, 0), PLACEHOLDER.to_vec()]);
        assert_eq!(counts(&page), counts(&before));
    }

    #[test]
    fn new_page_belongs_to_the_tree_it_was_made_for() {
        for (nulls, flags) in [(0, 4), (1, 12)] {
            let main = add(1, nulls, [1, 0, 0, 0], &leaf(3, 24, 0));
            let page = redone(0x10, &main, &[block(0, 7, &[]).init()], 0, &Page::zeroed());
            assert_eq!(items(&page), [leaf(3, 24, 0)]);
            assert_eq!(page.bytes()[8184..], [flags, 0, 0, 0, 0, 0, 0x82, 0xFF]);
            assert!(fails(0x10, &main, &[block(0, 7, &[])], 0, &Page::zeroed()));
        }
        let main = add(0, 0, [1, 0, 0, 0], &leaf(3, 24, 0));
        assert!(fails(
            0x10,
            &main,
            &[block(0, 7, &[]).init()],
            0,
            &Page::zeroed()
        ));
    }

    #[test]
    fn parent_links_to_the_tuple() {
        let parent = page_of(&[leaf(1, 16, 0), inner(5, &[(1, 1), (1, 2), (1, 3)])]);
        let blocks = [block(0, 7, &[]), block(1, 3, &[])];
        let main = add(0, 0, [9, 0, 2, 1], &leaf(3, 24, 0));
        let page = redone(0x10, &main, &blocks, 1, &parent);
        let linked = inner(5, &[(1, 1), (7, 9), (1, 3)]);
        assert_eq!(items(&page), [leaf(1, 16, 0), linked]);
        fails_cut(0x10, &main, &blocks, 1, &parent);
        for (parent_off, node) in [(0, 1), (2, 3), (3, 0)] {
            let main = add(0, 0, [9, 0, parent_off, node], &leaf(3, 24, 0));
            assert!(
                fails(0x10, &main, &blocks, 1, &parent),
                "{parent_off} {node}"
            );
        }
    }
}
