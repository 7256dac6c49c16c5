//! The hash page: special area, items, bitmaps (`src/include/access/hash.h`).

use smallvec::SmallVec;

use super::RmgrError;
use crate::decode::BlockRef;
use crate::page::{PAGE_HEADER_BYTES, Page, PageError};
use crate::types::{BLOCK_BYTES, BlockNumber, Cursor, INVALID_BLOCK, OffsetNumber};

const HASHO_PREVBLKNO: usize = BLOCK_BYTES - OPAQUE_BYTES;
const HASHO_NEXTBLKNO: usize = HASHO_PREVBLKNO + 4;
const HASHO_BUCKET: usize = HASHO_NEXTBLKNO + 4;
const HASHO_FLAG: usize = HASHO_BUCKET + 4;
const HASHO_PAGE_ID: usize = HASHO_FLAG + 2;

/// `sizeof(HashPageOpaqueData)`.
const OPAQUE_BYTES: usize = 16;
const _: () = assert!(HASHO_PAGE_ID + 2 == BLOCK_BYTES);

/// `HASHO_PAGE_ID`, which tells the pages of hash indexes from others.
const PAGE_ID: u16 = 0xFF80;

/// `LH_UNUSED_PAGE`: a free overflow page.
pub(super) const LH_UNUSED_PAGE: u16 = 0;
/// `LH_OVERFLOW_PAGE`.
pub(super) const LH_OVERFLOW_PAGE: u16 = 1 << 0;
/// `LH_BUCKET_PAGE`: the first page of a bucket.
pub(super) const LH_BUCKET_PAGE: u16 = 1 << 1;
/// `LH_BITMAP_PAGE`: says which overflow pages are free.
pub(super) const LH_BITMAP_PAGE: u16 = 1 << 2;
/// `LH_META_PAGE`.
pub(super) const LH_META_PAGE: u16 = 1 << 3;
/// `LH_PAGE_TYPE`: the bits of the type.
pub(super) const LH_PAGE_TYPE: u16 =
    LH_OVERFLOW_PAGE | LH_BUCKET_PAGE | LH_BITMAP_PAGE | LH_META_PAGE;
/// `LH_BUCKET_NEEDS_SPLIT_CLEANUP`: items that a split has copied elsewhere are still here.
pub(super) const LH_BUCKET_NEEDS_SPLIT_CLEANUP: u16 = 1 << 6;
/// `LH_PAGE_HAS_DEAD_TUPLES`: there are items marked dead.
pub(super) const LH_PAGE_HAS_DEAD_TUPLES: u16 = 1 << 7;

/// `t_info` of an index tuple, and its bits that are the size (`INDEX_SIZE_MASK`).
const T_INFO: usize = 6;
const INDEX_SIZE_MASK: u16 = 0x1FFF;
/// `sizeof(IndexTupleData)`.
const INDEX_TUPLE_BYTES: usize = T_INFO + 2;

/// The special area (`HashPageOpaqueData`).
#[doc(alias = "HashPageOpaqueData")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opaque {
    /// Offset 0: the page before it in the bucket. On the first page of a bucket it is no link,
    /// but the highest bucket of the index when this one was last split.
    pub(super) prevblkno: BlockNumber,
    /// Offset 4: the page after it in the bucket, or `InvalidBlockNumber`.
    pub(super) nextblkno: BlockNumber,
    /// Offset 8: the bucket.
    pub(super) bucket: u32,
    /// Offset 12: `LH_*`.
    pub(super) flag: u16,
    /// Offset 14: the mark of a hash index.
    pub(super) page_id: u16,
}

impl Opaque {
    /// Of a page that belongs to no bucket.
    pub(super) const fn without_bucket(flag: u16) -> Opaque {
        Opaque {
            prevblkno: INVALID_BLOCK,
            nextblkno: INVALID_BLOCK,
            bucket: u32::MAX,
            flag,
            page_id: PAGE_ID,
        }
    }

    /// `HashPageGetOpaque`. Every page has a special area of exactly this size.
    pub(super) fn read(page: &Page) -> Result<Opaque, PageError> {
        let (lower, upper, special) = page.checked_bounds()?;
        if special != HASHO_PREVBLKNO {
            return Err(PageError::Header {
                lower: lower as u16,
                upper: upper as u16,
                special: special as u16,
            });
        }
        Ok(Opaque {
            prevblkno: page.u32_at(HASHO_PREVBLKNO),
            nextblkno: page.u32_at(HASHO_NEXTBLKNO),
            bucket: page.u32_at(HASHO_BUCKET),
            flag: page.u16_at(HASHO_FLAG),
            page_id: page.u16_at(HASHO_PAGE_ID),
        })
    }

    /// Stores it on a page that [`Opaque::read`] or [`init`] has accepted.
    pub(super) fn write(&self, page: &mut Page) {
        page.put_u32(HASHO_PREVBLKNO, self.prevblkno);
        page.put_u32(HASHO_NEXTBLKNO, self.nextblkno);
        page.put_u32(HASHO_BUCKET, self.bucket);
        page.put_u16(HASHO_FLAG, self.flag);
        page.put_u16(HASHO_PAGE_ID, self.page_id);
    }
}

/// Changes the special area of an existing page.
pub(super) fn update_opaque(
    page: &mut Page,
    change: impl FnOnce(&mut Opaque),
) -> Result<(), RmgrError> {
    let mut opaque = Opaque::read(page)?;
    change(&mut opaque);
    opaque.write(page);
    Ok(())
}

/// `_hash_pageinit` and the special area.
pub(super) fn empty(opaque: Opaque) -> Page {
    let mut page = Page::zeroed();
    page.init(OPAQUE_BYTES);
    opaque.write(&mut page);
    page
}

/// `XLogInitBufferForRedo` and [`empty`]. A record that rebuilds a page says so in the block
/// reference; one that does not was decoded wrongly or is corrupt.
pub(super) fn init(block: &BlockRef<'_>, page: &mut Page, opaque: Opaque) -> Result<(), RmgrError> {
    if !block.will_init {
        return Err(RmgrError::corrupt(format!(
            "block reference {} rebuilds its page but is not marked WILL_INIT",
            block.id
        )));
    }
    *page = empty(opaque);
    Ok(())
}

/// `_hash_initbitmapbuffer`: all overflow pages count as taken until they exist.
pub(super) fn init_bitmap(
    block: &BlockRef<'_>,
    page: &mut Page,
    bmsize: u16,
) -> Result<(), RmgrError> {
    let end = PAGE_HEADER_BYTES + usize::from(bmsize);
    if end > HASHO_PREVBLKNO {
        return Err(RmgrError::corrupt(format!(
            "a bitmap of {bmsize} bytes does not fit on a page"
        )));
    }
    init(block, page, Opaque::without_bucket(LH_BITMAP_PAGE))?;
    page.bytes_mut()[PAGE_HEADER_BYTES..end].fill(0xFF);
    // Without this an image of the page would leave the bitmap out as hole.
    page.set_lower(end as u16);
    Ok(())
}

/// Changes the word with bit `bit` of a bitmap page; the second argument of `change` is the bit
/// in it (`SETBIT`, `CLRBIT`).
pub(super) fn update_bitmap(
    page: &mut Page,
    bit: u32,
    change: impl FnOnce(u32, u32) -> u32,
) -> Result<(), RmgrError> {
    let at = PAGE_HEADER_BYTES + 4 * (bit / 32) as usize;
    if at >= HASHO_PREVBLKNO {
        return Err(RmgrError::corrupt(format!(
            "bit {bit} is outside a bitmap page"
        )));
    }
    page.put_u32(at, change(page.u32_at(at), 1 << (bit % 32)));
    Ok(())
}

/// The tuple at the start of `bytes` with its padding, and what follows.
fn split_tuple(bytes: &[u8]) -> Result<(&[u8], &[u8]), RmgrError> {
    let size = match bytes.get(T_INFO..INDEX_TUPLE_BYTES) {
        Some(info) => usize::from(u16::from_le_bytes([info[0], info[1]]) & INDEX_SIZE_MASK),
        None => 0,
    };
    let parts = match size {
        INDEX_TUPLE_BYTES.. => bytes.split_at_checked(size.next_multiple_of(8)),
        _ => None,
    };
    parts.ok_or_else(|| {
        RmgrError::corrupt(format!(
            "index tuple of {size} bytes in {} bytes",
            bytes.len()
        ))
    })
}

/// Adds the tuples of block data: `ntups` offset numbers, then as many tuples. They were found
/// their places one after another, so each goes in before the next.
pub(super) fn add_tuples(page: &mut Page, ntups: u16, data: &[u8]) -> Result<(), RmgrError> {
    if ntups == 0 {
        return Ok(());
    }
    let mut c = Cursor::new("moved tuples", data);
    let places = c.bytes("offset numbers", 2 * usize::from(ntups))?;
    let mut tuples = c.rest();
    for offset in offsets(places) {
        let (tuple, rest) = split_tuple(tuples)?;
        page.add_item(tuple, offset)?;
        tuples = rest;
    }
    if !tuples.is_empty() {
        return Err(RmgrError::corrupt(format!(
            "{} bytes follow {ntups} moved tuples",
            tuples.len()
        )));
    }
    Ok(())
}

/// Deletes the items whose offset numbers, two bytes each, are `bytes`.
pub(super) fn delete_items(page: &mut Page, bytes: &[u8]) -> Result<(), RmgrError> {
    let doomed: SmallVec<[OffsetNumber; 408]> = offsets(bytes).collect();
    Ok(page.index_multi_delete(&doomed)?)
}

fn offsets(bytes: &[u8]) -> impl Iterator<Item = OffsetNumber> + '_ {
    bytes
        .chunks_exact(2)
        .map(|b| u16::from_le_bytes([b[0], b[1]]))
}
