//! CREATE_PTREE, DELETE_PAGE: a posting tree is made, and loses a page
//! (`src/backend/access/gin/gindatapage.c`).

use super::page::{
    self, GIN_COMPRESSED, GIN_DATA, GIN_DELETED, GIN_LEAF, Level, Opaque, update_opaque,
};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::heap_tuple::ItemPointer;
use crate::page::{Page, PageError};
use crate::types::{BlockNumber, Cursor, OffsetNumber, ShortRead, TransactionId};

/// Bytes of the child's block number in a posting item.
const CHILD_BYTES: usize = 4;
/// `sizeof(PostingItem)`.
const POSTING_ITEM_BYTES: usize = CHILD_BYTES + ItemPointer::BYTES;
const _: () = assert!(POSTING_ITEM_BYTES == 10);

/// A downlink of a posting tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PostingItem {
    /// Offset 0: the page below, high half first.
    pub(super) child: BlockNumber,
    /// Offset 4: no TID on it is larger.
    pub(super) key: ItemPointer,
}

impl PostingItem {
    /// Reads one.
    pub(super) fn read(c: &mut Cursor<'_>) -> Result<PostingItem, ShortRead> {
        let (high, low) = (c.u16("child_blkno")?, c.u16("child_blkno")?);
        let key = c.bytes("key", ItemPointer::BYTES)?;
        let key = key.try_into().expect("bytes() returns what was asked for");
        Ok(PostingItem {
            child: u32::from(high) << 16 | u32::from(low),
            key: ItemPointer::from_bytes(key),
        })
    }

    fn to_bytes(self) -> [u8; POSTING_ITEM_BYTES] {
        let mut bytes = [0; POSTING_ITEM_BYTES];
        bytes[..CHILD_BYTES].copy_from_slice(&child_bytes(self.child));
        bytes[CHILD_BYTES..].copy_from_slice(&self.key.to_bytes());
        bytes
    }
}

fn child_bytes(child: BlockNumber) -> [u8; CHILD_BYTES] {
    let [high, low] = [(child >> 16) as u16, child as u16].map(u16::to_le_bytes);
    [high[0], high[1], low[0], low[1]]
}

/// The special area of an inner page and where item `offset`, from 1, starts in its contents.
fn locate(page: &Page, offset: OffsetNumber) -> Result<(Opaque, usize), RmgrError> {
    let opaque = page::posting_tree_page(page, Level::Inner)?;
    if offset == 0 || offset > opaque.maxoff {
        let max = opaque.maxoff;
        return Err(PageError::OffsetOutOfRange { offset, max }.into());
    }
    Ok((opaque, (usize::from(offset) - 1) * POSTING_ITEM_BYTES))
}

/// The items of an inner page from contents byte `at` on. maxoff tells how many there are, since
/// pd_lower means nothing on a page older than 9.4.
fn items_from(page: &Page, opaque: Opaque, at: usize) -> Result<Vec<u8>, RmgrError> {
    let items = page::data(page, usize::from(opaque.maxoff) * POSTING_ITEM_BYTES)?;
    Ok(items[at..].to_vec())
}

/// Makes item `offset` lead to another page; its key stays.
pub(super) fn set_child(
    page: &mut Page,
    offset: OffsetNumber,
    child: BlockNumber,
) -> Result<(), RmgrError> {
    let (opaque, at) = locate(page, offset)?;
    let mut items = items_from(page, opaque, at)?;
    items[..CHILD_BYTES].copy_from_slice(&child_bytes(child));
    page::set_data(page, at, &items)
}

/// `GinDataPageAddPostingItem`: adds an item before item `offset`.
pub(super) fn add_item(
    page: &mut Page,
    offset: OffsetNumber,
    item: &PostingItem,
) -> Result<(), RmgrError> {
    let (mut opaque, at) = locate(page, offset)?;
    let later = items_from(page, opaque, at)?;
    page::set_data(page, at, &[&item.to_bytes()[..], &later].concat())?;
    opaque.maxoff += 1;
    opaque.write(page);
    Ok(())
}

/// `GinPageDeletePostingItem`. The bytes of the last item stay behind the new end.
fn delete_item(page: &mut Page, offset: OffsetNumber) -> Result<(), RmgrError> {
    let (mut opaque, at) = locate(page, offset)?;
    let later = items_from(page, opaque, at + POSTING_ITEM_BYTES)?;
    page::set_data(page, at, &later)?;
    opaque.maxoff -= 1;
    opaque.write(page);
    Ok(())
}

/// `ginRedoCreatePTree`. Main data is `ginxlogCreatePostingTree`: a size at offset 0 and that many
/// bytes of posting lists.
pub(super) fn redo_create(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    if block.id != 0 {
        return Err(unexpected_block(block.id));
    }
    let mut c = Cursor::new("ginxlogCreatePostingTree", record.main_data);
    let size = c.u32("size")? as usize;
    let posting_lists = c.bytes("posting list", size)?;
    let flags = GIN_DATA | GIN_LEAF | GIN_COMPRESSED;
    page::init(block, page, Opaque::new(flags))?;
    page::set_data(page, 0, posting_lists)
}

/// Main data (`ginxlogDeletePage`, 12 bytes).
#[doc(alias = "ginxlogDeletePage")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DeletePage {
    /// Offset 0: the number of the item that goes from the parent.
    parent_offset: OffsetNumber,
    /// Offset 4: what was the right sibling of the page.
    right_link: BlockNumber,
    /// Offset 8: the last transaction that could be on its way to the page.
    delete_xid: TransactionId,
}

impl DeletePage {
    fn parse(main: &[u8]) -> Result<DeletePage, ShortRead> {
        let mut c = Cursor::new("ginxlogDeletePage", main);
        let parent_offset = c.u16("parentOffset")?;
        c.skip("padding", 2)?;
        Ok(DeletePage {
            parent_offset,
            right_link: c.u32("rightLink")?,
            delete_xid: TransactionId(c.u32("deleteXid")?),
        })
    }
}

/// `ginRedoDeletePage`. The deleted page keeps its contents and links, for those who are on it,
/// and remembers the transaction in pd_prune_xid.
pub(super) fn redo_delete_page(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let delete = DeletePage::parse(record.main_data)?;
    match block.id {
        0 => {
            update_opaque(page, |opaque| opaque.flags |= GIN_DELETED)?;
            page.set_prune_xid(delete.delete_xid);
            Ok(())
        }
        1 => delete_item(page, delete.parent_offset),
        2 => update_opaque(page, |opaque| opaque.rightlink = delete.right_link),
        id => Err(unexpected_block(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{clean, data_page, fails, opaque, redone};
    use super::*;
    use crate::rmgr::btree::testing::{block, longs};
    use crate::types::INVALID_BLOCK;

    #[test]
    fn a_new_tree_is_one_compressed_leaf() {
        let main = [&longs(&[10])[..], &[0, 0, 2, 0, 1, 0, 2, 0, 1, 1]].concat();
        let blocks = [block(0, 4, &[]).init()];
        let page = redone(0x10, &main, &blocks, 0, &data_page(opaque(0, 5), &[]));
        let mut expected = clean(Opaque {
            rightlink: INVALID_BLOCK,
            maxoff: 0,
            flags: 0x83,
        });
        expected.bytes_mut()[32..42].copy_from_slice(&main[4..]);
        expected.set_lower(42);
        assert!(page == expected);

        for len in 0..main.len() {
            assert!(fails(0x10, &main[..len], &blocks, 0, &page), "{len}");
        }
        let too_much = [longs(&[8153]), vec![0; 8153]].concat();
        assert!(fails(0x10, &too_much, &blocks, 0, &page));
        assert!(fails(0x10, &main, &[block(0, 4, &[])], 0, &page), "no init");
    }

    #[test]
    fn a_deleted_page_keeps_its_contents() {
        let main = longs(&[2, 7, 750]);
        let blocks = [block(0, 4, &[]), block(1, 5, &[]), block(2, 6, &[])];
        let leaf = data_page(opaque(0x83, 0), &[]);
        let page = redone(0x50, &main, &blocks, 0, &leaf);
        let mut expected = data_page(opaque(0x87, 0), &[]);
        expected.set_prune_xid(TransactionId(750));
        assert!(page == expected);

        let page = redone(0x50, &main, &blocks, 2, &leaf);
        let left = Opaque {
            rightlink: 7,
            ..opaque(0x83, 0)
        };
        assert!(page == data_page(left, &[]));
    }

    #[test]
    fn the_parent_of_a_deleted_page_loses_an_item() {
        let blocks = [block(1, 5, &[])];
        let contents = [[1; 10], [2; 10], [3; 10]].concat();
        let parent = data_page(opaque(GIN_DATA, 3), &contents);
        for (offset, left) in [(1, [2, 3]), (2, [1, 3]), (3, [1, 2])] {
            let page = redone(0x50, &longs(&[offset, 7, 750]), &blocks, 1, &parent);
            // The last item is still there, behind the new end.
            let contents = [[left[0]; 10], [left[1]; 10], [3; 10]].concat();
            let mut expected = data_page(opaque(GIN_DATA, 2), &contents);
            expected.set_lower(52);
            assert!(page == expected, "{offset}");
        }
        for offset in [0, 4, 0xFFFF] {
            assert!(fails(0x50, &longs(&[offset, 7, 750]), &blocks, 1, &parent));
        }
        let leaf = data_page(opaque(0x83, 3), &contents);
        assert!(fails(0x50, &longs(&[1, 7, 750]), &blocks, 1, &leaf));
    }
}
