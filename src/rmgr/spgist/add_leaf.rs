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
