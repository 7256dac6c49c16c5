//! The GIN page: special area, contents of posting tree pages, index tuples
//! (`src/include/access/ginblock.h`).
//!
//! Pages of the entry tree and of the pending list hold index tuples behind line pointers. Pages
//! of a posting tree have none: a right bound, then posting lists on a leaf or an array of
//! posting items on an inner page, up to pd_lower.

use super::RmgrError;
use crate::decode::BlockRef;
use crate::page::{PAGE_HEADER_BYTES, Page, PageError};
use crate::types::{BLOCK_BYTES, BlockNumber, INVALID_BLOCK, OffsetNumber};

const RIGHTLINK: usize = BLOCK_BYTES - OPAQUE_BYTES;
const MAXOFF: usize = RIGHTLINK + 4;
const FLAGS: usize = MAXOFF + 2;

/// `sizeof(GinPageOpaqueData)`.
const OPAQUE_BYTES: usize = 8;
const _: () = assert!(FLAGS + 2 == BLOCK_BYTES);

/// Where the right bound of a posting tree page is (`GinDataPageGetRightBound`); 8 bytes are kept
/// for its TID.
const RIGHT_BOUND: usize = PAGE_HEADER_BYTES;
/// Where the contents of a posting tree page start (`GinDataPageGetData`).
const DATA: usize = RIGHT_BOUND + 8;
const _: () = assert!(DATA == 32);
/// `GinDataPageMaxDataSize`.
const MAX_DATA_BYTES: usize = RIGHTLINK - DATA;

/// `GIN_DATA`: a page of a posting tree.
pub(super) const GIN_DATA: u16 = 0x01;
/// `GIN_LEAF`.
pub(super) const GIN_LEAF: u16 = 0x02;
/// `GIN_DELETED`.
pub(super) const GIN_DELETED: u16 = 0x04;
/// `GIN_META`.
pub(super) const GIN_META: u16 = 0x08;
/// `GIN_LIST`: a page of the pending list.
pub(super) const GIN_LIST: u16 = 0x10;
/// `GIN_LIST_FULLROW`: the last page of a heap row's entries.
pub(super) const GIN_LIST_FULLROW: u16 = 0x20;
/// `GIN_INCOMPLETE_SPLIT`: the right sibling has no downlink yet.
pub(super) const GIN_INCOMPLETE_SPLIT: u16 = 0x40;
/// `GIN_COMPRESSED`: a leaf with posting lists; without it the leaf is older than 9.4.
pub(super) const GIN_COMPRESSED: u16 = 0x80;

/// The special area (`GinPageOpaqueData`).
#[doc(alias = "GinPageOpaqueData")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opaque {
    /// Offset 0: right sibling or next page of the list, `InvalidBlockNumber` if there is none.
    pub(super) rightlink: BlockNumber,
    /// Offset 4: posting items on an inner page of a posting tree, heap tuples on a page of the
    /// pending list, TIDs on a leaf older than 9.4.
    pub(super) maxoff: OffsetNumber,
    /// Offset 6: `GIN_*`.
    pub(super) flags: u16,
}

impl Opaque {
    /// What `GinInitPage` gives.
    pub(super) fn new(flags: u16) -> Opaque {
        Opaque {
            rightlink: INVALID_BLOCK,
            maxoff: 0,
            flags,
        }
    }

    /// `GinPageGetOpaque`. pd_lower is not looked at: it means nothing on posting tree pages that
    /// are older than 9.4.
    pub(super) fn read(page: &Page) -> Result<Opaque, PageError> {
        if usize::from(page.special()) != RIGHTLINK {
            return Err(bad_header(page));
        }
        Ok(Opaque {
            rightlink: page.u32_at(RIGHTLINK),
            maxoff: page.u16_at(MAXOFF),
            flags: page.u16_at(FLAGS),
        })
    }

    /// Stores it on a page that [`Opaque::read`] or [`init`] has accepted.
    pub(super) fn write(&self, page: &mut Page) {
        page.put_u32(RIGHTLINK, self.rightlink);
        page.put_u16(MAXOFF, self.maxoff);
        page.put_u16(FLAGS, self.flags);
    }
}

fn bad_header(page: &Page) -> PageError {
    PageError::Header {
        lower: page.lower(),
        upper: page.upper(),
        special: page.special(),
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

/// `ginRedoClearIncompleteSplit`: the page's right sibling got its downlink.
pub(super) fn clear_incomplete_split(page: &mut Page) -> Result<(), RmgrError> {
    update_opaque(page, |opaque| opaque.flags &= !GIN_INCOMPLETE_SPLIT)
}

/// `XLogInitBufferForRedo` and `GinInitBuffer`. A record that rebuilds a page says so in the block
/// reference; one that does not was decoded wrongly or is corrupt.
pub(super) fn init(block: &BlockRef<'_>, page: &mut Page, opaque: Opaque) -> Result<(), RmgrError> {
    if !block.will_init {
        return Err(RmgrError::corrupt(format!(
            "block reference {} rebuilds its page but is not marked WILL_INIT",
            block.id
        )));
    }
    page.init(OPAQUE_BYTES);
    opaque.write(page);
    Ok(())
}

/// Where in a tree a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    /// At the bottom.
    Leaf,
    /// Above.
    Inner,
}

impl Level {
    fn flag(self) -> u16 {
        match self {
            Level::Leaf => GIN_LEAF,
            Level::Inner => 0,
        }
    }
}

/// The special area of a page that must be in a posting tree, at this level.
pub(super) fn posting_tree_page(page: &Page, level: Level) -> Result<Opaque, RmgrError> {
    tree_page(page, GIN_DATA | level.flag())
}

/// The special area of a page that must be in the entry tree, at this level.
pub(super) fn entry_tree_page(page: &Page, level: Level) -> Result<Opaque, RmgrError> {
    tree_page(page, level.flag())
}

/// What PostgreSQL asserts of a page that a record changes.
fn tree_page(page: &Page, expected: u16) -> Result<Opaque, RmgrError> {
    let opaque = Opaque::read(page)?;
    if opaque.flags & (GIN_DATA | GIN_LEAF) != expected {
        return Err(RmgrError::corrupt(format!(
            "page flags {:#06x} contradict the record, which expects {expected:#06x}",
            opaque.flags
        )));
    }
    Ok(opaque)
}

/// The `len` bytes of contents of a posting tree page.
pub(super) fn data(page: &Page, len: usize) -> Result<&[u8], RmgrError> {
    check_data_bytes(len)?;
    Ok(&page.bytes()[DATA..DATA + len])
}

/// Replaces the contents from byte `at` on and ends them there
/// (`GinDataPageSetDataSize`). What the page holds behind the new end stays.
pub(super) fn set_data(page: &mut Page, at: usize, bytes: &[u8]) -> Result<(), RmgrError> {
    let len = at + bytes.len();
    check_data_bytes(len)?;
    page.bytes_mut()[DATA + at..DATA + len].copy_from_slice(bytes);
    page.set_lower((DATA + len) as u16);
    Ok(())
}

fn check_data_bytes(len: usize) -> Result<(), RmgrError> {
    if len > MAX_DATA_BYTES {
        return Err(RmgrError::corrupt(format!(
            "{len} bytes of contents do not fit on a posting tree page"
        )));
    }
    Ok(())
}

/// `GinDataLeafPageGetPostingListSize`: bytes of posting lists on a compressed leaf.
pub(super) fn posting_lists_bytes(page: &Page) -> Result<usize, RmgrError> {
    usize::from(page.lower())
        .checked_sub(DATA)
        .ok_or_else(|| bad_header(page).into())
}

/// Where an index tuple keeps its size.
const T_INFO: usize = 6;
/// `INDEX_SIZE_MASK` in `t_info`.
const SIZE_MASK: u16 = 0x1FFF;
/// `sizeof(IndexTupleData)`.
pub(super) const INDEX_TUPLE_BYTES: usize = T_INFO + 2;

/// The index tuple at the start of `bytes`, as long as its `t_info` says, and what follows.
pub(super) fn split_index_tuple(bytes: &[u8]) -> Result<(&[u8], &[u8]), RmgrError> {
    let size = match bytes.get(T_INFO..INDEX_TUPLE_BYTES) {
        Some(t_info) => usize::from(u16::from_le_bytes([t_info[0], t_info[1]]) & SIZE_MASK),
        None => 0,
    };
    if size < INDEX_TUPLE_BYTES || size > bytes.len() {
        return Err(RmgrError::corrupt(format!(
            "index tuple of {size} bytes in {} bytes",
            bytes.len()
        )));
    }
    Ok(bytes.split_at(size))
}

/// Adds `count` index tuples, one behind the other in `data`, after the last item of the page.
pub(super) fn append_index_tuples(
    page: &mut Page,
    mut data: &[u8],
    count: usize,
) -> Result<(), RmgrError> {
    for _ in 0..count {
        let (tuple, rest) = split_index_tuple(data)?;
        page.add_item(tuple, page.max_offset() + 1)?;
        data = rest;
    }
    if !data.is_empty() {
        return Err(RmgrError::corrupt(format!(
            "{} bytes are left behind {count} index tuples",
            data.len()
        )));
    }
    Ok(())
}
