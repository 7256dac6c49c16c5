//! UPDATE_META_PAGE, INSERT_LISTPAGE, DELETE_LISTPAGE: the list of entries that are not in the
//! entry tree yet (`src/backend/access/gin/ginfast.c`), and the metapage that leads to it.

use super::page::{self, GIN_DELETED, GIN_LIST, GIN_LIST_FULLROW, GIN_META, Opaque, update_opaque};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::{PAGE_HEADER_BYTES, Page};
use crate::rmgr::fields::{append, count};
use crate::types::{BlockNumber, Cursor, INVALID_BLOCK};

/// `sizeof(GinMetaPageData)`.
const META_BYTES: usize = 56;
/// Where it is on the metapage (`GinPageGetMeta`).
const META: usize = PAGE_HEADER_BYTES;

/// Rebuilds the metapage. PostgreSQL copies the structure as it is in the record, padding
/// included, so nothing in it needs a name here.
fn restore_metapage(
    block: &BlockRef<'_>,
    page: &mut Page,
    metadata: &[u8],
) -> Result<(), RmgrError> {
    page::init(block, page, Opaque::new(GIN_META))?;
    page.bytes_mut()[META..META + META_BYTES].copy_from_slice(metadata);
    // Without this an image of the page would leave the contents out as hole.
    page.set_lower((META + META_BYTES) as u16);
    Ok(())
}

/// Main data (`ginxlogUpdateMeta`, 88 bytes).
#[doc(alias = "ginxlogUpdateMeta")]
struct UpdateMeta<'w> {
    /// Offset 16: the new `GinMetaPageData`.
    metadata: &'w [u8],
    /// Offset 72: the page that was the tail, if pages were added behind it.
    prev_tail: BlockNumber,
    /// Offset 76: the first of those pages.
    new_rightlink: BlockNumber,
    /// Offset 80: index tuples added to the tail, the data of block 1; 0 if pages were added.
    ntuples: i32,
}

impl<'w> UpdateMeta<'w> {
    fn parse(main: &'w [u8]) -> Result<UpdateMeta<'w>, RmgrError> {
        let mut c = Cursor::new("ginxlogUpdateMeta", main);
        c.skip("node", 12)?;
        c.skip("padding", 4)?;
        Ok(UpdateMeta {
            metadata: c.bytes("metadata", META_BYTES)?,
            prev_tail: c.u32("prevTail")?,
            new_rightlink: c.u32("newRightlink")?,
            ntuples: c.i32("ntuples")?,
        })
    }
}

/// `ginRedoUpdateMetapage`. The metapage is rebuilt whatever its LSN. maxoff of a list page counts
/// heap tuples, of which the index tuples of one record are one.
pub(super) fn redo_update_meta(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let update = UpdateMeta::parse(record.main_data)?;
    match (block.id, usize::try_from(update.ntuples)) {
        (0, _) => restore_metapage(block, page, update.metadata),
        (1, Ok(ntuples @ 1..)) => {
            page::append_index_tuples(page, block.data, ntuples)?;
            update_opaque(page, |opaque| opaque.maxoff = opaque.maxoff.wrapping_add(1))
        }
        (1, _) if update.prev_tail != INVALID_BLOCK => {
            update_opaque(page, |opaque| opaque.rightlink = update.new_rightlink)
        }
        (id, _) => Err(unexpected_block(id)),
    }
}

/// `ginRedoInsertListPage`. Main data is `ginxlogInsertListPage`: the next page at offset 0 and the
/// count of index tuples, the data of block 0, at offset 4. The last page of a heap row's entries
/// says so and counts the row.
pub(super) fn redo_insert_list_page(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    if block.id != 0 {
        return Err(unexpected_block(block.id));
    }
    let mut c = Cursor::new("ginxlogInsertListPage", record.main_data);
    let rightlink = c.u32("rightlink")?;
    let ntuples = count(&mut c, "ntuples")?;
    let mut opaque = Opaque::new(GIN_LIST);
    opaque.rightlink = rightlink;
    if rightlink == INVALID_BLOCK {
        opaque.flags |= GIN_LIST_FULLROW;
        opaque.maxoff = 1;
    }
    page::init(block, page, opaque)?;
    page::append_index_tuples(page, block.data, ntuples)
}

/// Main data (`ginxlogDeleteListPages`, 64 bytes).
#[doc(alias = "ginxlogDeleteListPages")]
struct DeleteListPages<'w> {
    /// Offset 0: the new `GinMetaPageData`.
    metadata: &'w [u8],
    /// Offset 56: pages that go, blocks 1 and up.
    ndeleted: i32,
}

impl<'w> DeleteListPages<'w> {
    fn parse(main: &'w [u8]) -> Result<DeleteListPages<'w>, RmgrError> {
        let mut c = Cursor::new("ginxlogDeleteListPages", main);
        Ok(DeleteListPages {
            metadata: c.bytes("metadata", META_BYTES)?,
            ndeleted: c.i32("ndeleted")?,
        })
    }
}

/// `ginRedoDeleteListPages`. The pages are rebuilt empty, without an image: nobody can come to
/// them any more, so that not even their links are kept.
pub(super) fn redo_delete_list_pages(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let delete = DeleteListPages::parse(record.main_data)?;
    match block.id {
        0 => restore_metapage(block, page, delete.metadata),
        id if i32::from(id) <= delete.ndeleted => page::init(block, page, Opaque::new(GIN_DELETED)),
        id => Err(unexpected_block(id)),
    }
}

/// `XLOG_GIN_DELETE_LISTPAGE` in words.
pub(super) fn desc_delete_list_pages(
    record: &Record<'_>,
    out: &mut String,
) -> Result<(), RmgrError> {
    let DeleteListPages { ndeleted, .. } = DeleteListPages::parse(record.main_data)?;
    append(out, format_args!("ndeleted: {ndeleted}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{clean, fails, item_page, items, opaque, redone, tuple};
    use super::*;
    use crate::rmgr::btree::testing::{block, longs};

    /// Metadata with dirt in its padding, bytes 0 to 55.
    fn metadata() -> Vec<u8> {
        (0..56).collect()
    }

    fn metapage() -> Page {
        let mut page = clean(Opaque {
            rightlink: INVALID_BLOCK,
            maxoff: 0,
            flags: 0x08,
        });
        page.bytes_mut()[24..80].copy_from_slice(&metadata());
        page.set_lower(80);
        page
    }

    fn update(prev_tail: u32, ntuples: u32) -> Vec<u8> {
        let tail = longs(&[prev_tail, 12, ntuples, 0xEEEE_EEEE]);
        [longs(&[1663, 5, 16384, 0]), metadata(), tail].concat()
    }

    #[test]
    fn the_metapage_is_rebuilt_with_its_padding() {
        let main = update(INVALID_BLOCK, 0);
        let dirty = item_page(opaque(0, 0), &[tuple(1)]);
        let meta = redone(0x60, &main, &[block(0, 0, &[]).init()], 0, &dirty);
        assert!(meta == metapage());
        assert!(
            fails(0x60, &main, &[block(0, 0, &[])], 0, &dirty),
            "no init"
        );
        let main = [metadata(), longs(&[1, 0])].concat();
        let meta = redone(0x80, &main, &[block(0, 0, &[]).init()], 0, &dirty);
        assert!(meta == metapage());
    }

    #[test]
    fn tuples_for_the_tail_are_one_heap_tuple_more() {
        let before = item_page(opaque(0x30, 4), &[tuple(1)]);
        let data = [tuple(2), tuple(3)].concat();
        let blocks = [block(0, 0, &[]).init(), block(1, 6, &data)];
        let page = redone(0x60, &update(INVALID_BLOCK, 2), &blocks, 1, &before);
        assert!(page == item_page(opaque(0x30, 5), &[tuple(1), tuple(2), tuple(3)]));

        assert!(fails(0x60, &update(INVALID_BLOCK, 1), &blocks, 1, &before));
        assert!(fails(0x60, &update(INVALID_BLOCK, 3), &blocks, 1, &before));
        for len in 0..data.len() {
            let blocks = [block(1, 6, &data[..len])];
            assert!(fails(0x60, &update(0, 2), &blocks, 1, &before), "{len}");
        }
    }

    #[test]
    fn the_old_tail_gets_a_right_link() {
        let before = item_page(opaque(0x30, 4), &[tuple(1)]);
        let blocks = [block(0, 0, &[]).init(), block(1, 6, &[])];
        let page = redone(0x60, &update(6, 0), &blocks, 1, &before);
        let linked = Opaque {
            rightlink: 12,
            ..opaque(0x30, 4)
        };
        assert!(page == item_page(linked, &[tuple(1)]));
        // Without an old tail nothing says what to do.
        assert!(fails(0x60, &update(INVALID_BLOCK, 0), &blocks, 1, &before));
    }

    #[test]
    fn list_pages_are_rebuilt() {
        let data = [tuple(2), tuple(3)].concat();
        let blocks = [block(0, 6, &data).init()];
        let dirty = item_page(opaque(0x30, 4), &[tuple(1)]);
        for (rightlink, flags, maxoff) in [(12, 0x10, 0), (INVALID_BLOCK, 0x30, 1)] {
            let page = redone(0x70, &longs(&[rightlink, 2]), &blocks, 0, &dirty);
            assert_eq!(items(&page), [tuple(2), tuple(3)]);
            let mut expected = clean(Opaque {
                rightlink,
                maxoff,
                flags,
            });
            expected.bytes_mut()[8168..8184].copy_from_slice(&tuple(2));
            expected.bytes_mut()[8152..8168].copy_from_slice(&tuple(3));
            expected.put_u32(24, 8168 | 1 << 15 | 16 << 17);
            expected.put_u32(28, 8152 | 1 << 15 | 16 << 17);
            expected.set_lower(32);
            expected.set_upper(8152);
            assert!(page == expected);
        }
        for count in [1, 3, u32::MAX] {
            assert!(fails(0x70, &longs(&[12, count]), &blocks, 0, &dirty));
        }
        let blocks = [block(0, 6, &data)];
        assert!(fails(0x70, &longs(&[12, 2]), &blocks, 0, &dirty), "no init");
    }

    #[test]
    fn pages_that_leave_the_list_are_wiped() {
        let main = [metadata(), longs(&[2, 0])].concat();
        let blocks = [1, 2, 3].map(|id| block(id, 6, &[]).init());
        let dirty = item_page(opaque(0x30, 4), &[tuple(1)]);
        for id in [1, 2] {
            let page = redone(0x80, &main, &blocks, id, &dirty);
            let deleted = Opaque {
                rightlink: INVALID_BLOCK,
                maxoff: 0,
                flags: 0x04,
            };
            assert!(page == clean(deleted));
        }
        assert!(
            fails(0x80, &main, &blocks, 3, &dirty),
            "two pages, not three"
        );
        let negative = [metadata(), longs(&[u32::MAX, 0])].concat();
        assert!(fails(0x80, &negative, &blocks, 1, &dirty));
    }
}
