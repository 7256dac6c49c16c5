//! The BRIN page: special area, metapage, revmap (`src/include/access/brin_page.h`).

use super::RmgrError;
use crate::decode::BlockRef;
use crate::page::heap_tuple::ItemPointer;
use crate::page::{PAGE_HEADER_BYTES, Page};
use crate::types::{BLOCK_BYTES, BlockNumber};

/// `sizeof(BrinSpecialSpace)`; the first half of it is not used.
const SPECIAL_BYTES: usize = 8;
/// `BrinPageFlags`, counted from the end of the page as PostgreSQL does.
const FLAGS: usize = PAGE_TYPE - 2;
/// `BrinPageType`.
const PAGE_TYPE: usize = BLOCK_BYTES - 2;

/// `BRIN_EVACUATE_PAGE`: its tuples must go, because the revmap needs the page.
const EVACUATE_PAGE: u16 = 1 << 0;

const BRIN_MAGIC: usize = PAGE_HEADER_BYTES;
const BRIN_VERSION: usize = BRIN_MAGIC + 4;
const PAGES_PER_RANGE: usize = BRIN_VERSION + 4;
const LAST_REVMAP_PAGE: usize = PAGES_PER_RANGE + 4;
/// End of `BrinMetaPageData`.
const META_END: usize = LAST_REVMAP_PAGE + 4;
const _: () = assert!(META_END - BRIN_MAGIC == 16);

/// `BRIN_META_MAGIC`.
const META_MAGIC: u32 = 0xA810_9CFA;

/// `REVMAP_PAGE_MAXITEMS`: entries of a revmap page.
const REVMAP_ENTRIES: u32 =
    ((BLOCK_BYTES - PAGE_HEADER_BYTES - SPECIAL_BYTES) / ItemPointer::BYTES) as u32;
const _: () = assert!(REVMAP_ENTRIES == 1360);

/// What a page is (`BRIN_PAGETYPE_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum PageType {
    /// Block 0.
    Meta = 0xF091,
    /// Says where the tuple of a range is.
    Revmap = 0xF092,
    /// Holds tuples.
    Regular = 0xF093,
}

impl PageType {
    /// `BrinPageType`, if it is one of the known.
    pub(super) fn of(page: &Page) -> Option<PageType> {
        let found = page.u16_at(PAGE_TYPE);
        [PageType::Meta, PageType::Revmap, PageType::Regular]
            .into_iter()
            .find(|known| *known as u16 == found)
    }
}

/// `XLogInitBufferForRedo` and `brin_page_init`. A record that rebuilds a page says so in the
/// block reference; one that does not was decoded wrongly or is corrupt.
pub(super) fn init(block: &BlockRef<'_>, page: &mut Page, kind: PageType) -> Result<(), RmgrError> {
    if !block.will_init {
        return Err(RmgrError::corrupt(format!(
            "block reference {} rebuilds its page but is not marked WILL_INIT",
            block.id
        )));
    }
    page.init(SPECIAL_BYTES);
    page.put_u16(PAGE_TYPE, kind as u16);
    Ok(())
}

/// The contents of a new metapage (`brin_metapage_init`). Its revmap has no pages yet.
pub(super) fn fill_meta(page: &mut Page, pages_per_range: BlockNumber, version: u16) {
    page.put_u32(BRIN_MAGIC, META_MAGIC);
    page.put_u32(BRIN_VERSION, version.into());
    page.put_u32(PAGES_PER_RANGE, pages_per_range);
    set_last_revmap_page(page, 0);
}

/// Stores the last page of the revmap. pd_lower is set as well: without it an image of the page
/// would leave the contents out as hole, and versions before 11 did not set it.
pub(super) fn set_last_revmap_page(page: &mut Page, block: BlockNumber) {
    page.put_u32(LAST_REVMAP_PAGE, block);
    page.set_lower(META_END as u16);
}

/// Which entry of a revmap page a heap block has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RangeOf {
    /// The heap block.
    pub(super) heap_block: BlockNumber,
    /// Heap blocks of a range.
    pub(super) pages_per_range: BlockNumber,
}

/// `brinSetHeapBlockItemptr`: stores where the tuple of a range is.
pub(super) fn set_revmap_entry(
    page: &mut Page,
    range: RangeOf,
    tuple: ItemPointer,
) -> Result<(), RmgrError> {
    let number = range
        .heap_block
        .checked_div(range.pages_per_range)
        .ok_or_else(|| RmgrError::corrupt("ranges of no pages"))?;
    // HEAPBLK_TO_REVMAP_INDEX
    let index = (number % REVMAP_ENTRIES) as usize;
    let at = PAGE_HEADER_BYTES + ItemPointer::BYTES * index;
    page.bytes_mut()[at..at + ItemPointer::BYTES].copy_from_slice(&tuple.to_bytes());
    Ok(())
}

/// Clears `BRIN_EVACUATE_PAGE`.
pub(super) fn clear_evacuate(page: &mut Page) {
    page.put_u16(FLAGS, page.u16_at(FLAGS) & !EVACUATE_PAGE);
}
