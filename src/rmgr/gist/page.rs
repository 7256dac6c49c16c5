//! The GiST page: special area, building a page, tuples in a row (`src/include/access/gist.h`).

use super::RmgrError;
use crate::decode::BlockRef;
use crate::page::{Page, PageError};
use crate::types::{BLOCK_BYTES, BlockNumber, INVALID_BLOCK, Lsn};

const NSN: usize = BLOCK_BYTES - OPAQUE_BYTES;
const RIGHTLINK: usize = NSN + 8;
const FLAGS: usize = RIGHTLINK + 4;
const PAGE_ID: usize = FLAGS + 2;

/// `sizeof(GISTPageOpaqueData)`.
const OPAQUE_BYTES: usize = 16;
const _: () = assert!(PAGE_ID + 2 == BLOCK_BYTES);

/// `GIST_PAGE_ID`: tells pages of GiST indexes from others.
const GIST_PAGE_ID: u16 = 0xFF81;

/// `F_LEAF`.
pub(super) const F_LEAF: u16 = 0x0001;
/// `F_DELETED`: out of the tree.
pub(super) const F_DELETED: u16 = 0x0002;
/// `F_TUPLES_DELETED`: tuples were removed at some time.
pub(super) const F_TUPLES_DELETED: u16 = 0x0004;
/// `F_FOLLOW_RIGHT`: the right sibling has no downlink yet.
pub(super) const F_FOLLOW_RIGHT: u16 = 0x0008;
/// `F_HAS_GARBAGE`: there may be items marked dead.
pub(super) const F_HAS_GARBAGE: u16 = 0x0010;

/// `GIST_ROOT_BLKNO`.
pub(super) const ROOT_BLOCK: BlockNumber = 0;

/// Where `t_info` lies in an index tuple, after the TID.
const T_INFO: usize = 6;
/// `sizeof(IndexTupleData)`.
const INDEX_TUPLE_BYTES: usize = T_INFO + 2;
/// `INDEX_SIZE_MASK` in `t_info`.
const SIZE_MASK: u16 = 0x1FFF;

/// The special area (`GISTPageOpaqueData`), but for the page id, which never changes.
#[doc(alias = "GISTPageOpaqueData")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opaque {
    /// Offset 0, high half first: the LSN of the latest split, or of its end.
    pub(super) nsn: Lsn,
    /// Offset 8: right sibling, or `InvalidBlockNumber`.
    pub(super) rightlink: BlockNumber,
    /// Offset 12: `F_*`.
    pub(super) flags: u16,
}

impl Opaque {
    /// `GistPageGetOpaque`. Every GiST page has a special area of exactly this size.
    pub(super) fn read(page: &Page) -> Result<Opaque, PageError> {
        let (lower, upper, special) = page.checked_bounds()?;
        if special != NSN {
            return Err(PageError::Header {
                lower: lower as u16,
                upper: upper as u16,
                special: special as u16,
            });
        }
        Ok(Opaque {
            nsn: Lsn::from_halves(page.u32_at(NSN), page.u32_at(NSN + 4)),
            rightlink: page.u32_at(RIGHTLINK),
            flags: page.u16_at(FLAGS),
        })
    }

    /// Stores it on a page that [`Opaque::read`] or [`init`] has accepted.
    pub(super) fn write(&self, page: &mut Page) {
        page.put_u32(NSN, self.nsn.high());
        page.put_u32(NSN + 4, self.nsn.low());
        page.put_u32(RIGHTLINK, self.rightlink);
        page.put_u16(FLAGS, self.flags);
    }

    /// `GistPageIsLeaf`.
    pub(super) fn is_leaf(&self) -> bool {
        self.flags & F_LEAF != 0
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

/// `XLogInitBufferForRedo` and `gistinitpage`: an empty page without siblings. A record that
/// rebuilds a page says so in the block reference; one that does not is corrupt.
pub(super) fn init(block: &BlockRef<'_>, page: &mut Page, flags: u16) -> Result<(), RmgrError> {
    if !block.will_init {
        return Err(RmgrError::corrupt(format!(
            "block reference {} rebuilds its page but is not marked WILL_INIT",
            block.id
        )));
    }
    page.init(OPAQUE_BYTES);
    page.put_u16(PAGE_ID, GIST_PAGE_ID);
    let opaque = Opaque {
        nsn: Lsn::INVALID,
        rightlink: INVALID_BLOCK,
        flags,
    };
    opaque.write(page);
    Ok(())
}

/// The index tuple at the start of `bytes`, as long as its `t_info` says, and what follows it.
pub(super) fn split_tuple(bytes: &[u8]) -> Result<(&[u8], &[u8]), RmgrError> {
    let size = match bytes.get(T_INFO..INDEX_TUPLE_BYTES) {
        Some(info) => usize::from(u16::from_le_bytes([info[0], info[1]]) & SIZE_MASK),
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

/// `gistfillbuffer`: adds all tuples in `bytes` after the last item and says how many they were.
pub(super) fn append_tuples(page: &mut Page, mut bytes: &[u8]) -> Result<usize, RmgrError> {
    let mut added = 0;
    while !bytes.is_empty() {
        let (tuple, rest) = split_tuple(bytes)?;
        page.add_item(tuple, page.max_offset() + 1)?;
        added += 1;
        bytes = rest;
    }
    Ok(added)
}
