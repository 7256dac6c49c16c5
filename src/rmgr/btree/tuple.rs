//! Index tuples and posting lists (`src/include/access/itup.h`, `src/include/access/nbtree.h`,
//! `src/backend/access/nbtree/nbtdedup.c`).
//!
//! A posting tuple is a key followed by an array of heap TIDs. Its own `t_tid` then holds where
//! the array starts (block number) and how many TIDs there are (offset number).

use super::RmgrError;
use crate::types::{BlockNumber, OffsetNumber};

const T_TID_OFFSET: usize = 4;
const T_INFO: usize = T_TID_OFFSET + 2;

/// `sizeof(IndexTupleData)`.
pub(super) const INDEX_TUPLE_BYTES: usize = T_INFO + 2;
/// `sizeof(ItemPointerData)`.
pub(super) const TID_BYTES: usize = 6;

/// `INDEX_SIZE_MASK` in `t_info`.
const SIZE_MASK: u16 = 0x1FFF;
/// `INDEX_ALT_TID_MASK` in `t_info`: `t_tid` is not a heap TID.
pub(super) const ALT_TID_MASK: u16 = 0x2000;
/// `BT_OFFSET_MASK` in the offset part of an alternative `t_tid`.
const OFFSET_MASK: u16 = 0x0FFF;
/// `BT_IS_POSTING` in the offset part of an alternative `t_tid`.
const IS_POSTING: u16 = 0x2000;

/// `BTMaxItemSize`, in bytes: three items must fit on a page.
pub(super) const MAX_ITEM_BYTES: usize = 2704;

/// An index tuple; the slice is exactly as long as `t_info` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexTuple<'a>(&'a [u8]);

/// The parts of a posting tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Posting<'a> {
    /// Header and key.
    key: &'a [u8],
    /// The heap TIDs, six bytes each.
    tids: &'a [u8],
}

/// What a posting list split leaves (`_bt_swap_posting`).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SwappedPosting {
    /// The new tuple, now with the largest TID of the old posting list.
    pub(super) new_item: Vec<u8>,
    /// The posting tuple, now with the TID the new tuple came with.
    pub(super) posting: Vec<u8>,
}

impl<'a> IndexTuple<'a> {
    /// The tuple at the start of `bytes`.
    pub(super) fn first(bytes: &'a [u8]) -> Result<IndexTuple<'a>, RmgrError> {
        let size = match bytes.get(..INDEX_TUPLE_BYTES) {
            Some(header) => usize::from(u16_at(header, T_INFO) & SIZE_MASK),
            None => 0,
        };
        if size < INDEX_TUPLE_BYTES || size > bytes.len() {
            return Err(RmgrError::corrupt(format!(
                "index tuple of {size} bytes in {} bytes",
                bytes.len()
            )));
        }
        Ok(IndexTuple(&bytes[..size]))
    }

    /// The tuple at the start of `bytes` with its padding, and what follows.
    pub(super) fn split_aligned(bytes: &'a [u8]) -> Result<(&'a [u8], &'a [u8]), RmgrError> {
        let aligned = IndexTuple::first(bytes)?.0.len().next_multiple_of(8);
        bytes.split_at_checked(aligned).ok_or_else(|| {
            RmgrError::corrupt(format!(
                "index tuple of {aligned} bytes in {} bytes",
                bytes.len()
            ))
        })
    }

    /// The bytes, without padding.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.0
    }

    fn is_posting(self) -> bool {
        u16_at(self.0, T_INFO) & ALT_TID_MASK != 0 && u16_at(self.0, T_TID_OFFSET) & IS_POSTING != 0
    }

    fn posting(self) -> Result<Posting<'a>, RmgrError> {
        if !self.is_posting() {
            return Err(RmgrError::corrupt("index tuple has no posting list"));
        }
        let count = usize::from(u16_at(self.0, T_TID_OFFSET) & OFFSET_MASK);
        let start = downlink(self.0) as usize;
        let valid = start >= INDEX_TUPLE_BYTES
            && start.is_multiple_of(8)
            && self.0.len().is_multiple_of(8)
            && start <= self.0.len()
            && count * TID_BYTES <= self.0.len() - start;
        if !valid {
            return Err(RmgrError::corrupt(format!(
                "posting list of {count} TIDs at {start} in an index tuple of {} bytes",
                self.0.len()
            )));
        }
        Ok(Posting {
            key: &self.0[..start],
            tids: &self.0[start..start + count * TID_BYTES],
        })
    }

    /// Header and key, and the heap TIDs, of any tuple of a leaf page but the high key.
    fn key_and_tids(self) -> Result<Posting<'a>, RmgrError> {
        if u16_at(self.0, T_INFO) & ALT_TID_MASK != 0 {
            self.posting()
        } else {
            Ok(Posting {
                key: self.0,
                tids: &self.0[..TID_BYTES],
            })
        }
    }

    /// The heap TIDs: the posting list, or the tuple's own.
    pub(super) fn heap_tids(self) -> Result<&'a [u8], RmgrError> {
        Ok(self.key_and_tids()?.tids)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

/// `BTreeTupleGetDownLink`: the block number in `t_tid`, high half first.
pub(super) fn downlink(tuple: &[u8]) -> BlockNumber {
    u32::from(u16_at(tuple, 0)) << 16 | u32::from(u16_at(tuple, 2))
}

/// `BTreeTupleSetDownLink`. The offset part of `t_tid` stays.
pub(super) fn set_downlink(tuple: &mut [u8], block: BlockNumber) {
    tuple[..2].copy_from_slice(&((block >> 16) as u16).to_le_bytes());
    tuple[2..4].copy_from_slice(&(block as u16).to_le_bytes());
}

fn put_u16(tuple: &mut [u8], at: usize, value: u16) {
    tuple[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// The high key of a half-dead leaf: no attributes, just a link to the top of the subtree that is
/// being deleted (`BTreeTupleSetTopParent`).
pub(super) fn top_parent_tuple(top_parent: BlockNumber) -> [u8; INDEX_TUPLE_BYTES] {
    let mut tuple = [0; INDEX_TUPLE_BYTES];
    set_downlink(&mut tuple, top_parent);
    put_u16(&mut tuple, T_INFO, INDEX_TUPLE_BYTES as u16 | ALT_TID_MASK);
    tuple
}

/// `_bt_form_posting`: a tuple with the key of `base` and these heap TIDs. A single TID makes a
/// plain tuple.
pub(super) fn form_posting(base: IndexTuple<'_>, tids: &[u8]) -> Result<Vec<u8>, RmgrError> {
    build(base.key_and_tids()?.key, tids)
}

fn build(key: &[u8], tids: &[u8]) -> Result<Vec<u8>, RmgrError> {
    let count = tids.len() / TID_BYTES;
    let size = match count {
        1 => key.len(),
        _ => (key.len() + tids.len()).next_multiple_of(8),
    };
    if count == 0 || !key.len().is_multiple_of(8) || size > MAX_ITEM_BYTES {
        return Err(RmgrError::corrupt(format!(
            "a key of {} bytes and {count} TIDs do not make an index tuple",
            key.len()
        )));
    }
    let mut tuple = vec![0; size];
    tuple[..key.len()].copy_from_slice(key);
    let info = u16_at(key, T_INFO) & !SIZE_MASK | size as u16;
    if count == 1 {
        put_u16(&mut tuple, T_INFO, info & !ALT_TID_MASK);
        tuple[..TID_BYTES].copy_from_slice(tids);
    } else {
        put_u16(&mut tuple, T_INFO, info | ALT_TID_MASK);
        put_u16(&mut tuple, T_TID_OFFSET, count as u16 | IS_POSTING);
        set_downlink(&mut tuple, key.len() as u32);
        tuple[key.len()..key.len() + tids.len()].copy_from_slice(tids);
    }
    Ok(tuple)
}

/// `_bt_update_posting`: the tuple without the TIDs at `deleted`, which are positions in the
/// posting list, ascending. Some must be deleted and some must stay.
pub(super) fn update_posting(
    tuple: IndexTuple<'_>,
    deleted: impl ExactSizeIterator<Item = u16>,
) -> Result<Vec<u8>, RmgrError> {
    let posting = tuple.posting()?;
    let count = posting.tids.len() / TID_BYTES;
    let mut left = Vec::with_capacity(posting.tids.len());
    let mut deleted = deleted.map(usize::from).peekable();
    let deletions = deleted.len();
    for (i, tid) in posting.tids.chunks_exact(TID_BYTES).enumerate() {
        if deleted.next_if_eq(&i).is_none() {
            left.extend_from_slice(tid);
        }
    }
    if deleted.next().is_some() || deletions == 0 {
        return Err(RmgrError::corrupt(format!(
            "{deletions} TIDs cannot be deleted from a posting list of {count}"
        )));
    }
    build(posting.key, &left)
}

/// `_bt_swap_posting`: the TID of `new_item` belongs inside the posting list of `old`, before the
/// TID at `posting_off`. It goes there, and the new item carries the largest TID instead.
pub(super) fn swap_posting(
    new_item: &[u8],
    old: IndexTuple<'_>,
    posting_off: OffsetNumber,
) -> Result<SwappedPosting, RmgrError> {
    let new_item = IndexTuple::first(new_item)?;
    let Posting { key, tids } = old.posting()?;
    let count = tids.len() / TID_BYTES;
    let at = usize::from(posting_off) * TID_BYTES;
    if posting_off == 0 || at >= tids.len() {
        return Err(RmgrError::corrupt(format!(
            "posting list tuple with {count} items cannot be split at offset {posting_off}"
        )));
    }
    let mut posting = old.bytes().to_vec();
    let last = tids.len() - TID_BYTES;
    let list = &mut posting[key.len()..key.len() + tids.len()];
    list.copy_within(at..last, at + TID_BYTES);
    list[at..at + TID_BYTES].copy_from_slice(&new_item.bytes()[..TID_BYTES]);
    let mut new_item = new_item.bytes().to_vec();
    new_item[..TID_BYTES].copy_from_slice(&tids[last..]);
    Ok(SwappedPosting { new_item, posting })
}
