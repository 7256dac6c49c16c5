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

#[cfg(test)]
mod tests {
    use super::super::testing::{block, fails, fails_cut, inner, items, page_of, redone, words};
    use crate::page::Page;

    fn split(new: u8, same: u8, prefix: &[u8], postfix: &[u8]) -> Vec<u8> {
        [&words(&[1, 2]), [new, same].as_slice(), prefix, postfix].concat()
    }

    #[test]
    fn both_tuples_may_share_the_page() {
        let (prefix, postfix) = (inner(1, &[(7, 2)]), inner(2, &[(1, 1), (1, 2)]));
        let main = split(0, 1, &prefix, &postfix);
        let before = page_of(&[inner(3, &[(1, 1), (1, 2)])]);
        let page = redone(0x40, &main, &[block(0, 7, &[])], 0, &before);
        assert_eq!(items(&page), [prefix, postfix]);
        fails_cut(0x40, &main, &[block(0, 7, &[])], 0, &before);
        assert!(fails(0x40, &main, &[block(1, 7, &[])], 1, &before));
    }

    #[test]
    fn postfix_may_go_to_another_page() {
        let (prefix, postfix) = (inner(1, &[(8, 2)]), inner(2, &[(1, 1), (1, 2)]));
        let main = split(0, 0, &prefix, &postfix);
        let before = page_of(&[inner(3, &[(1, 1), (1, 2)])]);
        let blocks = [block(0, 7, &[]), block(1, 8, &[])];
        let page = redone(0x40, &main, &blocks, 0, &before);
        assert_eq!(items(&page), std::slice::from_ref(&prefix));
        let page = redone(0x40, &main, &blocks, 1, &before);
        assert_eq!(items(&page)[1], postfix);
        let mut main = split(1, 0, &prefix, &postfix);
        main[2] = 1;
        let page = redone(0x40, &main, &[block(1, 8, &[]).init()], 1, &Page::zeroed());
        assert_eq!(items(&page), [postfix]);
        assert_eq!(page.u16_at(8184), 0);
    }
}
