//! ADD_NODE: an inner tuple gets one more node, for which it may have to move.

use std::fmt;

use super::page::{self, Node, State, Tree};
use super::tuple::{self, Link};
use super::{RmgrError, block_number, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, OffsetNumber, ShortRead};

/// Main data (`spgxlogAddNode`, 20 bytes); the new inner tuple follows.
#[doc(alias = "spgxlogAddNode")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AddNode {
    /// Offset 0: the old tuple, in block 0.
    offnum: OffsetNumber,
    /// Offset 2: the new tuple, in block 1; 0 if it stays where it is.
    offnum_new: OffsetNumber,
    /// Offset 4: block 1 is new.
    new_page: bool,
    /// Offset 5: the block reference with the downlink, -1 if none changes.
    parent_blk: i8,
    /// Offsets 6 and 8: the downlink to the tuple.
    node: Node,
    /// Offset 12.
    state: State,
}

impl AddNode {
    /// Reads the main data up to the tuple.
    pub(super) fn parse(main: &[u8]) -> Result<AddNode, ShortRead> {
        AddNode::read(&mut Cursor::new("spgxlogAddNode", main))
    }

    fn read(c: &mut Cursor<'_>) -> Result<AddNode, ShortRead> {
        let offnum = c.u16("offnum")?;
        let offnum_new = c.u16("offnumNew")?;
        let new_page = c.bool("newPage")?;
        let parent_blk = c.u8("parentBlk")? as i8;
        let parent = c.u16("offnumParent")?;
        let index = c.u16("nodeI")?;
        c.skip("padding", 2)?;
        Ok(AddNode {
            offnum,
            offnum_new,
            new_page,
            parent_blk,
            node: Node { parent, index },
            state: State::read(c)?,
        })
    }

    /// The tuple moves; the parent may be on either of its pages.
    fn redo_move(
        &self,
        tuple: &[u8],
        to: Link,
        block: &BlockRef<'_>,
        page: &mut Page,
    ) -> Result<(), RmgrError> {
        let is_parent = i16::from(self.parent_blk) == i16::from(block.id);
        match block.id {
            0 => page::bury(page, self.offnum, self.state.moved_to(to))?,
            1 => {
                // Only values have nodes to be added.
                let flags = Tree::Values.inner_flags();
                page::init_if(self.new_page, block, page, flags)?;
                page::add_or_replace(page, tuple, self.offnum_new)?;
            }
            2 if is_parent => {}
            id => return Err(unexpected_block(id)),
        }
        if is_parent {
            self.node.set_link(page, to)?;
        }
        Ok(())
    }
}

impl fmt::Display for AddNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "off: {}, newoff: {}, parentBlk: {}, parentoff: {}, nodeI: {}",
            self.offnum, self.offnum_new, self.parent_blk, self.node.parent, self.node.index
        )?;
        if self.new_page {
            f.write_str(" (newpage)")?;
        }
        Ok(())
    }
}

/// `spgRedoAddNode`.
pub(super) fn redo(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let mut c = Cursor::new("spgxlogAddNode", record.main_data);
    let xlrec = AddNode::read(&mut c)?;
    let tuple = tuple::read_inner(&mut c)?;
    if record.block(1).is_some() {
        let to = Link {
            block: block_number(record, 1)?,
            offset: xlrec.offnum_new,
        };
        return xlrec.redo_move(tuple, to, block, page);
    }
    match block.id {
        0 => page::replace(page, tuple, xlrec.offnum),
        id => Err(unexpected_block(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        Counts, PLACEHOLDER, block, counts, fails, fails_cut, inner, items, page_of, redirect,
        redone, state, words,
    };
    use crate::page::Page;

    /// Main data: tuple 1 becomes `tuple` at `offnum_new`; its downlink is node 1 of tuple 2.
    fn add(offnum_new: u16, new: u8, parent_blk: i8, is_build: u8, tuple: &[u8]) -> Vec<u8> {
        let mut main = words(&[1, offnum_new]);
        main.extend([new, parent_blk as u8, 2, 0, 1, 0, 0xEE, 0xEE]);
        main.extend(state(is_build));
        main.extend(tuple);
        main
    }

    #[test]
    fn tuple_grows_in_place() {
        let grown = inner(4, &[(1, 1), (1, 2), (1, 3)]);
        let other = inner(5, &[(1, 8), (1, 1)]);
        let before = page_of(&[inner(4, &[(1, 1), (1, 2)]), other.clone()]);
        let main = add(0, 0, -1, 0, &grown);
        let page = redone(0x30, &main, &[block(0, 7, &[])], 0, &before);
        assert_eq!(items(&page), [grown, other]);
        fails_cut(0x30, &main, &[block(0, 7, &[])], 0, &before);
        assert!(fails(0x30, &main, &[block(2, 7, &[])], 2, &before));
    }

    #[test]
    fn tuple_moves_and_its_parent_may_be_on_any_page() {
        let grown = inner(4, &[(1, 1), (1, 2), (1, 3)]);
        let parent = inner(5, &[(1, 8), (7, 1)]);
        let linked = inner(5, &[(1, 8), (8, 3)]);
        let blocks = [block(0, 7, &[]), block(1, 8, &[]), block(2, 9, &[])];
        let page = page_of(&[inner(4, &[(1, 1)]), parent.clone()]);
        let at = |blk, here| if blk == here { &linked } else { &parent };
        for parent_blk in [0, 1, 2] {
            let main = add(3, 0, parent_blk, 0, &grown);
            let old = redone(0x30, &main, &blocks, 0, &page);
            assert_eq!(items(&old), [redirect(8, 3), at(parent_blk, 0).clone()]);
            let moved = Counts {
                redirections: 1,
                placeholders: 0,
            };
            assert_eq!(counts(&old), moved);
            let new = redone(0x30, &main, &blocks, 1, &page);
            assert_eq!(items(&new)[1..], [at(parent_blk, 1).clone(), grown.clone()]);
            if parent_blk == 2 {
                let above = redone(0x30, &main, &blocks, 2, &page);
                assert_eq!(items(&above)[1], linked);
            } else {
                assert!(fails(0x30, &main, &blocks, 2, &page));
            }
        }
    }

    #[test]
    fn build_needs_no_redirects_and_makes_pages() {
        let grown = inner(4, &[(1, 1), (1, 2), (1, 3)]);
        let blocks = [block(0, 7, &[]), block(1, 8, &[]).init()];
        let main = add(1, 1, 2, 1, &grown);
        let page = redone(0x30, &main, &blocks, 0, &page_of(&[inner(4, &[(1, 1)])]));
        assert_eq!(items(&page), [PLACEHOLDER.to_vec()]);
        assert_eq!(counts(&page).placeholders, 1);
        let page = redone(0x30, &main, &blocks, 1, &Page::zeroed());
        assert_eq!(items(&page), [grown]);
        assert_eq!(page.u16_at(8184), 0);
    }
}
