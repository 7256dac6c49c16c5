//! PAGE_DELETE and PAGE_REUSE: the end of a page and its next life.

use std::fmt;

use super::page::{self, F_DELETED};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::{PAGE_HEADER_BYTES, Page};
use crate::rmgr::fields;
use crate::types::{
    BlockNumber, Cursor, FullTransactionId, OffsetNumber, RelFileLocator, ShortRead,
};

/// Where a deleted page keeps its deleteXid (`GISTDeletedPageContents`), in bytes from the page's
/// start.
const DELETE_XID: usize = PAGE_HEADER_BYTES;

/// Main data of PAGE_DELETE (`gistxlogPageDelete`, 10 bytes).
#[doc(alias = "gistxlogPageDelete")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageDelete {
    /// Offset 0: the last transaction that a scan on its way to the page can belong to.
    delete_xid: FullTransactionId,
    /// Offset 8: its downlink on the parent.
    downlink_offset: OffsetNumber,
}

/// Main data of PAGE_REUSE (`gistxlogPageReuse`, 24 bytes).
#[doc(alias = "gistxlogPageReuse")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageReuse {
    /// Offset 0: the index.
    locator: RelFileLocator,
    /// Offset 12: the page.
    block: BlockNumber,
    /// Offset 16: its deleteXid.
    latest_removed_xid: FullTransactionId,
}

impl PageDelete {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<PageDelete, ShortRead> {
        let mut c = Cursor::new("gistxlogPageDelete", main);
        Ok(PageDelete {
            delete_xid: FullTransactionId(c.u64("deleteXid")?),
            downlink_offset: c.u16("downlinkOffset")?,
        })
    }
}

impl PageReuse {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<PageReuse, RmgrError> {
        let mut c = Cursor::new("gistxlogPageReuse", main);
        Ok(PageReuse {
            locator: fields::locator(&mut c)?,
            block: c.u32("block")?,
            latest_removed_xid: FullTransactionId(c.u64("latestRemovedFullXid")?),
        })
    }
}

impl fmt::Display for PageDelete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (epoch, xid) = (self.delete_xid.epoch(), self.delete_xid.xid());
        let downlink = self.downlink_offset;
        write!(f, "deleteXid {epoch}:{xid}; downlink {downlink}")
    }
}

impl fmt::Display for PageReuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rel {}; blk {}; latestRemovedXid {}:{}",
            self.locator,
            self.block,
            self.latest_removed_xid.epoch(),
            self.latest_removed_xid.xid()
        )
    }
}

/// `gistRedoPageDelete`.
pub(super) fn redo(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let delete = PageDelete::parse(record.main_data)?;
    match block.id {
        0 => set_deleted(page, delete.delete_xid),
        1 => Ok(page.index_tuple_delete(delete.downlink_offset)?),
        id => Err(unexpected_block(id)),
    }
}

/// `GistPageSetDeleted`: the xid takes the place of the line pointers. pd_upper stays.
fn set_deleted(page: &mut Page, delete_xid: FullTransactionId) -> Result<(), RmgrError> {
    page::update_opaque(page, |opaque| opaque.flags |= F_DELETED)?;
    page.set_lower((DELETE_XID + 8) as u16);
    page.put_u64(DELETE_XID, delete_xid.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{block, fails, flags, items, longs, page_of, redone, tuple, words};

    #[test]
    fn leaf_keeps_the_xid_and_the_parent_loses_the_downlink() {
        let main = [longs(&[750, 1]), words(&[2])].concat();
        let blocks = [block(0, 7, &[]), block(1, 3, &[])];
        let leaf = page_of(F_LEAF | F_TUPLES_DELETED, &[]);
        let page = redone(0x60, &main, &blocks, 0, &leaf);
        assert_eq!(flags(&page), F_LEAF | F_TUPLES_DELETED | F_DELETED);
        assert_eq!((page.lower(), page.upper()), (32, leaf.upper()));
        assert_eq!(page.bytes()[24..32], [0xEE, 2, 0, 0, 1, 0, 0, 0]);
        assert_eq!(page.bytes()[32..8188], leaf.bytes()[32..8188]);

        let parent = page_of(0, &[tuple(1, 16), tuple(2, 16), tuple(3, 16)]);
        let page = redone(0x60, &main, &blocks, 1, &parent);
        assert_eq!(items(&page), [tuple(1, 16), tuple(3, 16)]);
        for len in 0..main.len() {
            for id in 0..2 {
                assert!(fails(0x60, &main[..len], &blocks, id, &parent), "{len}");
            }
        }
        assert!(fails(0x60, &main, &[block(2, 3, &[])], 2, &parent));
    }
}
