//! SPLIT_TUPLE: an inner tuple with a long prefix becomes two, one above the other.

use std::fmt;

use super::page::{self, Tree};
use super::tuple;
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, OffsetNumber, ShortRead};

/// Main data (`spgxlogSplitTuple`, 6 bytes); the prefix tuple and the postfix tuple follow.
#[doc(alias = "spgxlogSplitTuple")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SplitTuple {
    /// Offset 0: the old tuple, which the prefix tuple replaces.
    offnum_prefix: OffsetNumber,
    /// Offset 2: where the postfix tuple goes.
    offnum_postfix: OffsetNumber,
    /// Offset 4: block 1 is new.
    new_page: bool,
    /// Offset 5: the postfix tuple goes to block 0 too.
    postfix_blk_same: bool,
}

impl SplitTuple {
    /// Reads the main data up to the tuples.
    pub(super) fn parse(main: &[u8]) -> Result<SplitTuple, ShortRead> {
        SplitTuple::read(&mut Cursor::new("spgxlogSplitTuple", main))
    }

    fn read(c: &mut Cursor<'_>) -> Result<SplitTuple, ShortRead> {
        Ok(SplitTuple {
            offnum_prefix: c.u16("offnumPrefix")?,
            offnum_postfix: c.u16("offnumPostfix")?,
            new_page: c.bool("newPage")?,
            postfix_blk_same: c.bool("postfixBlkSame")?,
        })
    }
}

impl fmt::Display for SplitTuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "prefixoff: {}, postfixoff: {}",
            self.offnum_prefix, self.offnum_postfix
        )?;
        if self.new_page {
            f.write_str(" (newpage)")?;
        }
        if self.postfix_blk_same {
            f.write_str(" (same)")?;
        }
        Ok(())
    }
}

/// `spgRedoSplitTuple`.
pub(super) fn redo(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let mut c = Cursor::new("spgxlogSplitTuple", record.main_data);
    let xlrec = SplitTuple::read(&mut c)?;
    let prefix = tuple::read_inner(&mut c)?;
    let postfix = tuple::read_inner(&mut c)?;
    match block.id {
        0 => {
            page::replace(page, prefix, xlrec.offnum_prefix)?;
            if xlrec.postfix_blk_same {
                page::add_or_replace(page, postfix, xlrec.offnum_postfix)?;
            }
            Ok(())
        }
        1 if !xlrec.postfix_blk_same => {
            // Only values have prefixes.
            page::init_if(xlrec.new_page, block, page, Tree::Values.inner_flags())?;
            page::add_or_replace(page, postfix, xlrec.offnum_postfix)
        }
        id => Err(unexpected_block(id)),
    }
}
