//! MOVE_LEAFS: a chain of leaf tuples moves to a page with more room, and a new tuple joins it.

use std::fmt;

use super::page::{self, DeadTuple, Node, Offsets, State, Tree};
use super::tuple::{self, Link};
use super::{RmgrError, block_number, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, ShortRead};

/// Main data (`spgxlogMoveLeafs`, 20 bytes). Offsets of the tuples that go, offsets of those that
/// come and the latter themselves follow.
#[doc(alias = "spgxlogMoveLeafs")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MoveLeafs {
    /// Offset 0: tuples that leave block 0.
    n_moves: u16,
    /// Offset 2: block 1 is new.
    new_page: bool,
    /// Offset 3: the chain is a dead head only, which does not move.
    replace_dead: bool,
    /// Offset 4: the pages are of the tree of nulls.
    stores_nulls: bool,
    /// Offsets 6 and 8: the downlink to the chain.
    node: Node,
    /// Offset 12.
    state: State,
}

impl MoveLeafs {
    /// Reads the main data up to the lists.
    pub(super) fn parse(main: &[u8]) -> Result<MoveLeafs, ShortRead> {
        MoveLeafs::read(&mut Cursor::new("spgxlogMoveLeafs", main))
    }

    fn read(c: &mut Cursor<'_>) -> Result<MoveLeafs, ShortRead> {
        let n_moves = c.u16("nMoves")?;
        let new_page = c.bool("newPage")?;
        let replace_dead = c.bool("replaceDead")?;
        let stores_nulls = c.bool("storesNulls")?;
        c.skip("padding", 1)?;
        let parent = c.u16("offnumParent")?;
        let index = c.u16("nodeI")?;
        c.skip("padding", 2)?;
        Ok(MoveLeafs {
            n_moves,
            new_page,
            replace_dead,
            stores_nulls,
            node: Node { parent, index },
            state: State::read(c)?,
        })
    }

    /// Tuples that come: the moved ones and the new one, or the new one alone.
    fn n_insert(&self) -> u16 {
        if self.replace_dead {
            1
        } else {
            self.n_moves.saturating_add(1)
        }
    }
}

impl fmt::Display for MoveLeafs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "nmoves: {}, parentoff: {}, nodeI: {}",
            self.n_moves, self.node.parent, self.node.index
        )?;
        for (set, text) in [
            (self.new_page, " (newpage)"),
            (self.replace_dead, " (replacedead)"),
            (self.stores_nulls, " (nulls)"),
        ] {
            if set {
                f.write_str(text)?;
            }
        }
        Ok(())
    }
}

/// `spgRedoMoveLeafs`.
pub(super) fn redo(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let mut c = Cursor::new("spgxlogMoveLeafs", record.main_data);
    let xlrec = MoveLeafs::read(&mut c)?;
    let to_delete = Offsets::read(&mut c, "toDelete", xlrec.n_moves)?;
    let to_insert = Offsets::read(&mut c, "toInsert", xlrec.n_insert())?;
    // The last tuple to come is the new head of the chain.
    let head = to_insert.iter().next_back();
    let to = Link {
        block: block_number(record, 1)?,
        offset: head.ok_or_else(|| RmgrError::corrupt("no tuple comes"))?,
    };
    match block.id {
        0 => {
            let first = xlrec.state.moved_to(to);
            page::multi_delete(page, to_delete, first, DeadTuple::Placeholder)
        }
        1 => {
            let flags = Tree::of(xlrec.stores_nulls).leaf_flags();
            page::init_if(xlrec.new_page, block, page, flags)?;
            to_insert.iter().try_for_each(|offset| {
                page::add_or_replace(page, tuple::read_leaf(&mut c)?, offset)
            })
        }
        2 => xlrec.node.set_link(page, to),
        id => Err(unexpected_block(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        Counts, DEAD, PLACEHOLDER, block, counts, fails, fails_cut, inner, items, leaf, page_of,
        redirect, redone, state, words,
    };
    use crate::page::Page;

    /// Main data: flags are newPage, replaceDead and storesNulls; the downlink is node 1 of 1.
    fn moves(flags: [u8; 3], is_build: u8, offsets: &[u16], tuples: &[Vec<u8>]) -> Vec<u8> {
        let n_moves = offsets.len() - tuples.len();
        let mut main = vec![n_moves as u8, 0, flags[0], flags[1], flags[2], 0xEE];
        main.extend([1, 0, 1, 0, 0xEE, 0xEE]);
        main.extend(state(is_build));
        main.extend(words(offsets));
        main.extend(tuples.concat());
        main
    }

    #[test]
    fn chain_moves_and_leaves_a_redirect() {
        let tuples = [leaf(1, 16, 0), leaf(2, 24, 1), leaf(3, 32, 2)];
        let main = moves([0, 0, 0], 0, &[3, 1, 5, 6, 7], &tuples);
        let blocks = [block(0, 7, &[]), block(1, 8, &[]), block(2, 9, &[])];
        let source = page_of(&[leaf(1, 16, 0), leaf(8, 16, 0), leaf(2, 24, 1)]);
        let page = redone(0x20, &main, &blocks, 0, &source);
        assert_eq!(
            items(&page),
            [PLACEHOLDER.to_vec(), leaf(8, 16, 0), redirect(8, 7)]
        );
        let moved = Counts {
            redirections: 1,
            placeholders: 1,
        };
        assert_eq!(counts(&page), moved);

        let there = [
            leaf(4, 16, 0),
            leaf(5, 16, 0),
            leaf(6, 16, 0),
            leaf(7, 16, 0),
        ];
        let page = redone(0x20, &main, &blocks, 1, &page_of(&there));
        assert_eq!(items(&page)[4..], tuples);

        let parent = page_of(&[inner(5, &[(7, 1), (7, 3)])]);
        let page = redone(0x20, &main, &blocks, 2, &parent);
        assert_eq!(items(&page), [inner(5, &[(7, 1), (8, 7)])]);
        fails_cut(0x20, &main, &blocks, 1, &page_of(&there));
        fails_cut(0x20, &main[..30], &blocks, 0, &source);
        fails_cut(0x20, &main[..30], &blocks, 2, &parent);
        assert!(fails(0x20, &main, &blocks[..1], 0, &source));
    }

    #[test]
    fn build_needs_no_redirects() {
        let main = moves([0, 0, 0], 1, &[1, 2, 3], &[leaf(1, 16, 0), leaf(2, 16, 1)]);
        let blocks = [block(0, 7, &[]), block(1, 8, &[])];
        let page = redone(0x20, &main, &blocks, 0, &page_of(&[leaf(1, 16, 0)]));
        assert_eq!(items(&page), [PLACEHOLDER.to_vec()]);
        let moved = Counts {
            redirections: 0,
            placeholders: 1,
        };
        assert_eq!(counts(&page), moved);
    }

    #[test]
    fn dead_head_does_not_move() {
        let main = moves([1, 1, 1], 0, &[1, 1], &[leaf(2, 16, 0)]);
        let blocks = [block(0, 7, &[]), block(1, 8, &[]).init()];
        let page = redone(0x20, &main, &blocks, 0, &page_of(&[DEAD.to_vec()]));
        assert_eq!(items(&page), [redirect(8, 1)]);
        let page = redone(0x20, &main, &blocks, 1, &Page::zeroed());
        assert_eq!(items(&page), [leaf(2, 16, 0)]);
        assert_eq!(page.u16_at(8184), 12);
    }
}
