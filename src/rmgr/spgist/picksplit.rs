//! PICKSPLIT: a chain of leaf tuples that does not fit any more gets an inner tuple over it and
//! is dealt out to one or two leaf pages.

use std::fmt;

use super::page::{self, DeadTuple, Node, Offsets, State, Tree};
use super::tuple::{self, Link};
use super::{RmgrError, block_number, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, OffsetNumber, ShortRead};

/// Main data (`spgxlogPickSplit`, 28 bytes). [`Lists`] follow.
#[doc(alias = "spgxlogPickSplit")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PickSplit {
    /// Offset 0: the chain was a root that was a leaf; block 2 is the root, there is no block 0.
    is_root_split: bool,
    /// Offset 2: tuples that leave block 0.
    n_delete: u16,
    /// Offset 4: tuples that come.
    n_insert: u16,
    /// Offset 6: block 0 is made anew.
    init_src: bool,
    /// Offset 7: block 1 is made anew.
    init_dest: bool,
    /// Offset 8: where the inner tuple goes.
    offnum_inner: OffsetNumber,
    /// Offset 10: block 2 is made anew.
    init_inner: bool,
    /// Offset 11: the pages are of the tree of nulls.
    stores_nulls: bool,
    /// Offset 12: the downlink is in block 2 too.
    inner_is_parent: bool,
    /// Offsets 14 and 16: the downlink to the inner tuple, if it has one.
    node: Node,
    /// Offset 20.
    state: State,
}

/// What follows the fixed part.
struct Lists<'w> {
    /// Tuples that leave block 0, the head of the chain first.
    to_delete: Offsets<'w>,
    /// Where tuples come.
    to_insert: Offsets<'w>,
    /// For each of these, 0 for block 0 and anything else for block 1.
    page_select: &'w [u8],
    /// The inner tuple.
    inner: &'w [u8],
    /// The leaf tuples that come.
    leaves: Cursor<'w>,
}

impl PickSplit {
    /// Reads the main data up to the lists.
    pub(super) fn parse(main: &[u8]) -> Result<PickSplit, ShortRead> {
        PickSplit::read(&mut Cursor::new("spgxlogPickSplit", main))
    }

    fn read(c: &mut Cursor<'_>) -> Result<PickSplit, ShortRead> {
        let is_root_split = c.bool("isRootSplit")?;
        c.skip("padding", 1)?;
        let n_delete = c.u16("nDelete")?;
        let n_insert = c.u16("nInsert")?;
        let init_src = c.bool("initSrc")?;
        let init_dest = c.bool("initDest")?;
        let offnum_inner = c.u16("offnumInner")?;
        let init_inner = c.bool("initInner")?;
        let stores_nulls = c.bool("storesNulls")?;
        let inner_is_parent = c.bool("innerIsParent")?;
        c.skip("padding", 1)?;
        let parent = c.u16("offnumParent")?;
        let index = c.u16("nodeI")?;
        c.skip("padding", 2)?;
        Ok(PickSplit {
            is_root_split,
            n_delete,
            n_insert,
            init_src,
            init_dest,
            offnum_inner,
            init_inner,
            stores_nulls,
            inner_is_parent,
            node: Node { parent, index },
            state: State::read(c)?,
        })
    }

    fn lists<'w>(&self, mut c: Cursor<'w>) -> Result<Lists<'w>, RmgrError> {
        Ok(Lists {
            to_delete: Offsets::read(&mut c, "toDelete", self.n_delete)?,
            to_insert: Offsets::read(&mut c, "toInsert", self.n_insert)?,
            page_select: c.bytes("leafPageSelect", self.n_insert.into())?,
            inner: tuple::read_inner(&mut c)?,
            leaves: c,
        })
    }
}

impl Lists<'_> {
    /// Adds the leaf tuples that go to block `id`. The others are read as well, for only they
    /// know how long they are.
    fn add_leaves(mut self, id: u8, page: &mut Page) -> Result<(), RmgrError> {
        for (offset, select) in self.to_insert.iter().zip(self.page_select) {
            let leaf = tuple::read_leaf(&mut self.leaves)?;
            if u8::from(*select != 0) == id {
                page::add_or_replace(page, leaf, offset)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for PickSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ndelete: {}, ninsert: {}, inneroff: {}, parentoff: {}, nodeI: {}",
            self.n_delete, self.n_insert, self.offnum_inner, self.node.parent, self.node.index
        )?;
        for (set, text) in [
            (self.inner_is_parent, " (innerIsParent)"),
            (self.stores_nulls, " (nulls)"),
            (self.is_root_split, " (isRootSplit)"),
        ] {
            if set {
                f.write_str(text)?;
            }
        }
        Ok(())
    }
}

/// `spgRedoPickSplit`.
pub(super) fn redo(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let mut c = Cursor::new("spgxlogPickSplit", record.main_data);
    let xlrec = PickSplit::read(&mut c)?;
    let lists = xlrec.lists(c)?;
    let tree = Tree::of(xlrec.stores_nulls);
    let to = Link {
        block: block_number(record, 2)?,
        offset: xlrec.offnum_inner,
    };
    match block.id {
        0 if !xlrec.is_root_split => {
            page::init_if(xlrec.init_src, block, page, tree.leaf_flags())?;
            if !xlrec.init_src {
                let first = xlrec.state.moved_to(to);
                page::multi_delete(page, lists.to_delete, first, DeadTuple::Placeholder)?;
            }
            lists.add_leaves(0, page)
        }
        1 => {
            page::init_if(xlrec.init_dest, block, page, tree.leaf_flags())?;
            lists.add_leaves(1, page)
        }
        2 => {
            page::init_if(xlrec.init_inner, block, page, tree.inner_flags())?;
            page::add_or_replace(page, lists.inner, xlrec.offnum_inner)?;
            if xlrec.inner_is_parent {
                xlrec.node.set_link(page, to)?;
            }
            Ok(())
        }
        3 => xlrec.node.set_link(page, to),
        id => Err(unexpected_block(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        Counts, PLACEHOLDER, block, counts, fails, fails_cut, inner, items, leaf, page_of,
        redirect, redone, state, words,
    };
    use crate::page::Page;

    /// The fixed part of a record that takes tuples 2 and 1 away, adds three and puts the inner
    /// tuple at 1; the downlink is node 0 of tuple 2.
    #[derive(Clone, Copy, Default)]
    struct Fixed {
        root: u8,
        init: [u8; 3],
        nulls: u8,
        inner_is_parent: u8,
        is_build: u8,
    }

    fn leaves() -> [Vec<u8>; 3] {
        [leaf(1, 16, 0), leaf(2, 32, 0), leaf(3, 24, 0)]
    }

    fn inner_tuple() -> Vec<u8> {
        inner(4, &[(7, 3), (8, 1)])
    }

    impl Fixed {
        /// Main data; leaf 2 goes to block 1, the others to block 0, at 3, 1 and 4.
        fn main(self) -> Vec<u8> {
            let [src, dest, inner] = self.init;
            let mut main = vec![self.root, 0xEE, 2, 0, 3, 0, src, dest, 1, 0, inner];
            main.extend([self.nulls, self.inner_is_parent, 0xEE]);
            main.extend([2, 0, 0, 0, 0xEE, 0xEE]);
            main.extend(state(self.is_build));
            main.extend(words(&[2, 1, 3, 1, 4]));
            main.extend([0, 1, 0]);
            main.extend(inner_tuple());
            main.extend(leaves().concat());
            main
        }
    }

    #[test]
    fn tuples_are_dealt_out_to_two_pages() {
        let main = Fixed::default().main();
        let source = page_of(&[leaf(1, 16, 0), leaf(2, 32, 1)]);
        let blocks = [
            block(0, 7, &[]),
            block(1, 8, &[]),
            block(2, 9, &[]),
            block(3, 10, &[]),
        ];
        let page = redone(0x50, &main, &blocks, 0, &source);
        let kept = [
            PLACEHOLDER.to_vec(),
            redirect(9, 1),
            leaf(1, 16, 0),
            leaf(3, 24, 0),
        ];
        assert_eq!(items(&page), kept);
        let moved = Counts {
            redirections: 1,
            placeholders: 1,
        };
        assert_eq!(counts(&page), moved);
        let page = redone(0x50, &main, &blocks, 1, &page_of(&[PLACEHOLDER.to_vec()]));
        assert_eq!(items(&page), [leaf(2, 32, 0)]);
        assert_eq!(counts(&page).placeholders, 0);
        let page = redone(0x50, &main, &blocks, 2, &page_of(&[]));
        assert_eq!(items(&page), [inner_tuple()]);
        let parent = page_of(&[leaf(1, 16, 0), inner(5, &[(7, 2)])]);
        let page = redone(0x50, &main, &blocks, 3, &parent);
        assert_eq!(items(&page)[1], inner(5, &[(9, 1)]));
        fails_cut(0x50, &main, &blocks, 0, &source);
        assert!(fails(0x50, &main, &blocks[..2], 0, &source));
    }

    #[test]
    fn pages_made_anew_belong_to_the_tree_of_the_record() {
        let fixed = Fixed {
            init: [1, 1, 1],
            nulls: 1,
            ..Fixed::default()
        };
        let mut main = fixed.main();
        // Leaves 1 and 3 to the places 1 and 2, as on an empty page.
        main[32..38].copy_from_slice(&words(&[1, 1, 2]));
        let blocks = [0, 1, 2].map(|id| block(id, 7 + u32::from(id), &[]).init());
        for (id, flags, expected) in [
            (0, 12, vec![leaf(1, 16, 0), leaf(3, 24, 0)]),
            (1, 12, vec![leaf(2, 32, 0)]),
            (2, 8, vec![inner_tuple()]),
        ] {
            let page = redone(0x50, &main, &blocks, id, &Page::zeroed());
            assert_eq!(items(&page), expected);
            assert_eq!(page.u16_at(8184), flags);
            assert_eq!(counts(&page), counts(&page_of(&[])));
        }
    }

    #[test]
    fn inner_tuple_may_join_its_parent() {
        let fixed = Fixed {
            inner_is_parent: 1,
            ..Fixed::default()
        };
        let before = page_of(&[PLACEHOLDER.to_vec(), inner(5, &[(7, 2)])]);
        let page = redone(0x50, &fixed.main(), &[block(2, 9, &[])], 2, &before);
        assert_eq!(items(&page), [inner_tuple(), inner(5, &[(9, 1)])]);
    }

    #[test]
    fn root_is_touched_as_the_new_inner_page_only() {
        let fixed = Fixed {
            root: 1,
            init: [0, 1, 1],
            ..Fixed::default()
        };
        let blocks = [block(0, 7, &[]), block(2, 1, &[])];
        let source = page_of(&[leaf(1, 16, 0), leaf(2, 32, 1)]);
        assert!(fails(0x50, &fixed.main(), &blocks, 0, &source));
    }

    #[test]
    fn build_needs_no_redirects() {
        let fixed = Fixed {
            is_build: 1,
            ..Fixed::default()
        };
        let source = page_of(&[leaf(1, 16, 0), leaf(2, 32, 1)]);
        let blocks = [block(0, 7, &[]), block(2, 9, &[])];
        let page = redone(0x50, &fixed.main(), &blocks, 0, &source);
        assert_eq!(
            items(&page)[..2],
            [PLACEHOLDER.to_vec(), PLACEHOLDER.to_vec()]
        );
        assert_eq!(counts(&page).placeholders, 2);
    }
}
