//! INSERT: an entry tuple, TIDs on a leaf of a posting tree, or a downlink in either tree.

use super::page::{self, INDEX_TUPLE_BYTES, Level};
use super::posting_tree::{self, PostingItem};
use super::{RmgrError, desc_image, recompress, true_or_false, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::page::heap_tuple::ItemPointer;
use crate::rmgr::fields::append;
use crate::types::{BlockNumber, Cursor, OffsetNumber, ShortRead};

/// `GIN_INSERT_ISDATA`: the tree is a posting tree.
const ISDATA: u16 = 0x01;
/// `GIN_INSERT_ISLEAF`: the page is a leaf.
const ISLEAF: u16 = 0x02;

/// What INSERT and SPLIT say about the page (`GIN_INSERT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageKind {
    /// It is in a posting tree, not in the entry tree.
    pub(super) is_data: bool,
    /// It is a leaf.
    pub(super) is_leaf: bool,
}

impl PageKind {
    /// From the flags of the record.
    pub(super) fn from_flags(flags: u16) -> PageKind {
        PageKind {
            is_data: flags & ISDATA != 0,
            is_leaf: flags & ISLEAF != 0,
        }
    }

    /// As INSERT and SPLIT print it.
    pub(super) fn desc(self, out: &mut String) {
        let (data, leaf) = (true_or_false(self.is_data), true_or_false(self.is_leaf));
        append(out, format_args!("isdata: {data} isleaf: {leaf}"));
    }
}

/// The two halves of a page below, whose split the insertion finishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Children {
    left: BlockNumber,
    right: BlockNumber,
}

/// Main data (`ginxlogInsert`, 2 bytes; on an inner page 10).
#[doc(alias = "ginxlogInsert")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Insert {
    /// Offset 0: flags.
    kind: PageKind,
    /// Offsets 2 and 6, unless the page is a leaf: block numbers, high half first.
    children: Option<Children>,
}

impl Insert {
    fn parse(main: &[u8]) -> Result<Insert, ShortRead> {
        let mut c = Cursor::new("ginxlogInsert", main);
        let kind = PageKind::from_flags(c.u16("flags")?);
        let children = if kind.is_leaf {
            None
        } else {
            Some(Children {
                left: block_id(&mut c, "leftChildBlkno")?,
                right: block_id(&mut c, "rightChildBlkno")?,
            })
        };
        Ok(Insert { kind, children })
    }
}

/// A `BlockIdData`.
fn block_id(c: &mut Cursor<'_>, field: &'static str) -> Result<BlockNumber, ShortRead> {
    let high = c.u16(field)?;
    Ok(u32::from(high) << 16 | u32::from(c.u16(field)?))
}

/// Block data for the entry tree (`ginxlogInsertEntry`).
#[doc(alias = "ginxlogInsertEntry")]
struct InsertEntry<'w> {
    /// Offset 0: the line pointer the tuple gets.
    offset: OffsetNumber,
    /// Offset 2: the tuple that is there goes.
    is_delete: bool,
    /// Offset 4: the tuple.
    tuple: &'w [u8],
}

impl<'w> InsertEntry<'w> {
    fn parse(data: &'w [u8]) -> Result<InsertEntry<'w>, RmgrError> {
        let mut c = Cursor::new("ginxlogInsertEntry", data);
        let offset = c.u16("offset")?;
        let is_delete = c.bool("isDelete")?;
        c.skip("padding", 1)?;
        let (tuple, _) = page::split_index_tuple(c.rest())?;
        Ok(InsertEntry {
            offset,
            is_delete,
            tuple,
        })
    }

    /// `ginRedoInsertEntry`. On an inner page the tuple that led to the page below leads to its
    /// right half now, and the new one, which comes before it, leads to the left half.
    fn redo(&self, children: Option<Children>, page: &mut Page) -> Result<(), RmgrError> {
        if let Some(children) = children {
            let old = page.item_mut(self.offset)?;
            if old.len() < INDEX_TUPLE_BYTES {
                return Err(RmgrError::corrupt(format!(
                    "index tuple of {} bytes",
                    old.len()
                )));
            }
            let downlink = ItemPointer {
                block: children.right,
                offset: 0,
            };
            old[..ItemPointer::BYTES].copy_from_slice(&downlink.to_bytes());
        }
        if self.is_delete {
            page.index_tuple_delete(self.offset)?;
        }
        Ok(page.add_item(self.tuple, self.offset)?)
    }
}

/// Block data for an inner page of a posting tree (`ginxlogInsertDataInternal`).
#[doc(alias = "ginxlogInsertDataInternal")]
struct InsertDataInternal {
    /// Offset 0: the number of the item before which it goes.
    offset: OffsetNumber,
    /// Offset 2: the new item.
    new_item: PostingItem,
}

impl InsertDataInternal {
    fn parse(data: &[u8]) -> Result<InsertDataInternal, RmgrError> {
        let mut c = Cursor::new("ginxlogInsertDataInternal", data);
        Ok(InsertDataInternal {
            offset: c.u16("offset")?,
            new_item: PostingItem::read(&mut c)?,
        })
    }

    /// The inner half of `ginRedoInsertData`, as [`InsertEntry::redo`].
    fn redo(&self, children: Children, page: &mut Page) -> Result<(), RmgrError> {
        posting_tree::set_child(page, self.offset, children.right)?;
        posting_tree::add_item(page, self.offset, &self.new_item)
    }
}

/// `ginRedoInsert`. A downlink that goes into an inner page finishes the split of the child,
/// block 1.
pub(super) fn redo(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let insert = Insert::parse(record.main_data)?;
    match (block.id, insert.kind.is_data, insert.children) {
        (0, true, None) => recompress::redo(block.data, page),
        (0, true, Some(children)) => InsertDataInternal::parse(block.data)?.redo(children, page),
        (0, false, children) => {
            let level = match children {
                None => Level::Leaf,
                Some(_) => Level::Inner,
            };
            page::entry_tree_page(page, level)?;
            InsertEntry::parse(block.data)?.redo(children, page)
        }
        (1, _, Some(_)) => page::clear_incomplete_split(page),
        (id, _, _) => Err(unexpected_block(id)),
    }
}

/// `XLOG_GIN_INSERT` in words. Of an inner page's item pg_waldump prints the child, then the key.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let insert = Insert::parse(record.main_data)?;
    insert.kind.desc(out);
    if let Some(Children { left, right }) = insert.children {
        append(out, format_args!(" children: {left}/{right}"));
    }
    let block = record.block(0).ok_or(RmgrError::MissingBlock(0))?;
    if desc_image(block, out) {
        return Ok(());
    }
    match (insert.kind.is_data, insert.kind.is_leaf) {
        (false, _) => {
            let entry = InsertEntry::parse(block.data)?;
            let is_delete = true_or_false(entry.is_delete);
            append(out, format_args!(" isdelete: {is_delete}"));
            Ok(())
        }
        (true, true) => recompress::desc(block.data, out),
        (true, false) => {
            let PostingItem { child, key } = InsertDataInternal::parse(block.data)?.new_item;
            append(
                out,
                format_args!(" pitem: {child}-{}/{}", key.block, key.offset),
            );
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{clean, data_page, fails, item_page, items, opaque, redone, tuple};
    use super::*;
    use crate::rmgr::btree::testing::block;

    /// Children 0x0001_0002 and 0x0003_0004.
    const CHILDREN: [u8; 8] = [1, 0, 2, 0, 3, 0, 4, 0];

    fn main_data(flags: u8, children: &[u8]) -> Vec<u8> {
        [&[flags, 0][..], children].concat()
    }

    fn entry(offset: u8, is_delete: u8, tuple: &[u8]) -> Vec<u8> {
        [&[offset, 0, is_delete, 0xEE], tuple].concat()
    }

    #[test]
    fn entries_go_before_or_in_place_of_others() {
        let before = item_page(opaque(GIN_LEAF, 0), &[tuple(1), tuple(2), tuple(3)]);
        let main = main_data(ISLEAF as u8, &[]);
        for (is_delete, expected) in [
            (0, vec![tuple(1), tuple(9), tuple(2), tuple(3)]),
            (1, vec![tuple(1), tuple(9), tuple(3)]),
        ] {
            let data = entry(2, is_delete, &tuple(9));
            let page = redone(0x20, &main, &[block(0, 4, &data)], 0, &before);
            assert_eq!(items(&page), expected);
            assert_eq!(Opaque::read(&page), Ok(opaque(GIN_LEAF, 0)));
            assert_eq!(page.lsn(), before.lsn());
            for len in 0..data.len() {
                let blocks = [block(0, 4, &data[..len])];
                assert!(fails(0x20, &main, &blocks, 0, &before), "{len}");
            }
        }
        // Bytes behind the tuple are not part of it.
        let data = [entry(4, 0, &tuple(9)), vec![7; 8]].concat();
        let page = redone(0x20, &main, &[block(0, 4, &data)], 0, &before);
        assert_eq!(items(&page)[3], tuple(9));
        for offset in [0, 5] {
            let data = entry(offset, 0, &tuple(9));
            assert!(fails(0x20, &main, &[block(0, 4, &data)], 0, &before));
        }
    }

    #[test]
    fn downlinks_of_the_entry_tree_finish_a_split() {
        let before = item_page(opaque(0, 0), &[tuple(1), tuple(2)]);
        let main = main_data(0, &CHILDREN);
        let data = entry(2, 0, &tuple(9));
        let blocks = [block(0, 4, &data), block(1, 5, &[])];
        let page = redone(0x20, &main, &blocks, 0, &before);
        let mut right = tuple(2);
        right[..6].copy_from_slice(&[3, 0, 4, 0, 0, 0]);
        assert_eq!(items(&page), [tuple(1), tuple(9), right]);

        let split = item_page(opaque(GIN_LEAF | GIN_INCOMPLETE_SPLIT, 0), &[tuple(1)]);
        let child = redone(0x20, &main, &blocks, 1, &split);
        assert!(child == item_page(opaque(GIN_LEAF, 0), &[tuple(1)]));
        let leaf = main_data(ISLEAF as u8, &[]);
        assert!(
            fails(0x20, &leaf, &blocks, 1, &split),
            "a leaf has no child"
        );
        let short = item_page(opaque(0, 0), &[tuple(1), vec![0; 7]]);
        assert!(fails(0x20, &main, &blocks, 0, &short));
        let level = item_page(opaque(GIN_LEAF, 0), &[tuple(1), tuple(2)]);
        assert!(fails(0x20, &main, &blocks, 0, &level));
    }

    /// Posting items that lead to `child` with key (7, `child`).
    fn item(child: u8) -> [u8; 10] {
        [0, 0, child, 0, 0, 0, 7, 0, child, 0]
    }

    #[test]
    fn downlinks_of_a_posting_tree_finish_a_split() {
        let contents = [item(1), item(2), item(3)].concat();
        let before = data_page(opaque(GIN_DATA, 3), &contents);
        let main = main_data(ISDATA as u8, &CHILDREN);
        let data = [&[2, 0][..], &item(9)].concat();
        let blocks = [block(0, 4, &data), block(1, 5, &[])];
        let page = redone(0x20, &main, &blocks, 0, &before);
        let mut right = item(2);
        right[..4].copy_from_slice(&[3, 0, 4, 0]);
        let contents = [item(1), item(9), right, item(3)].concat();
        assert!(page == data_page(opaque(GIN_DATA, 4), &contents));
        // Nothing in the header tells where items end on a page older than 9.4.
        let mut old = before.clone();
        old.set_lower(24);
        assert!(page == redone(0x20, &main, &blocks, 0, &old));

        for offset in [0, 4, 0xFF] {
            let data = [&[offset, 0][..], &item(9)].concat();
            assert!(fails(0x20, &main, &[block(0, 4, &data)], 0, &before));
        }
        for len in 0..data.len() {
            let blocks = [block(0, 4, &data[..len])];
            assert!(fails(0x20, &main, &blocks, 0, &before), "{len}");
        }
        let full = data_page(opaque(GIN_DATA, 815), &item(1).repeat(815));
        assert!(fails(0x20, &main, &blocks, 0, &full), "no room");
        let beyond = data_page(opaque(GIN_DATA, 0xFFFF), &contents);
        assert!(fails(0x20, &main, &blocks, 0, &beyond));
        assert!(fails(0x20, &main, &blocks, 0, &clean(opaque(0, 3))));
    }
}
