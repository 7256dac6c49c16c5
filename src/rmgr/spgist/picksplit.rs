//! PICKSPLIT: a chain of leaf tuples that does not fit any more gets an inner tuple over it and
//! is dealt out to one or two leaf pages.

use std::fmt;

use super::page::{self, Dead, Node, Offsets, State, Tree};
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
                page::multi_delete(page, lists.to_delete, first, Dead::Placeholder)?;
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
