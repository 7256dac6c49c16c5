//! Posting lists: sorted heap TIDs, packed (`src/backend/access/gin/ginpostinglist.c`).
//!
//! A segment is a first TID as it is, a count of bytes, and that many bytes of distances from one
//! TID to the next. For this a TID is the number `block * 2048 + offset`; a distance is stored
//! seven bits per byte, low bits first, and all bytes but its last have the high bit set. A byte of
//! zero fills an odd count up to an even size.

use super::RmgrError;
use crate::page::heap_tuple::ItemPointer;
use crate::types::BLOCK_BYTES;

const NBYTES: usize = ItemPointer::BYTES;
/// Bytes before the distances (`offsetof(GinPostingList, bytes)`).
const HEADER_BYTES: usize = NBYTES + 2;
const _: () = assert!(HEADER_BYTES == 8);

/// `MaxHeapTuplesPerPageBits`: bits of the offset in the number of a TID.
const OFFSET_BITS: u32 = 11;
/// `MaxBytesPerInteger`: bytes of the largest distance, of 43 bits.
const MAX_DISTANCE_BYTES: usize = 7;

/// A segment; the slice is exactly as long as its header says, padding included.
#[doc(alias = "GinPostingList")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PostingList<'a>(&'a [u8]);

impl<'a> PostingList<'a> {
    /// The segment at the start of `bytes`, and what follows (`GinNextPostingListSegment`).
    pub(super) fn split(bytes: &'a [u8]) -> Result<(PostingList<'a>, &'a [u8]), RmgrError> {
        let size = bytes.get(NBYTES..HEADER_BYTES).map(|nbytes| {
            let nbytes = usize::from(u16::from_le_bytes([nbytes[0], nbytes[1]]));
            HEADER_BYTES + nbytes.next_multiple_of(2)
        });
        size.and_then(|size| bytes.split_at_checked(size))
            .map(|(segment, rest)| (PostingList(segment), rest))
            .ok_or_else(|| {
                RmgrError::corrupt(format!(
                    "posting list does not fit in the {} bytes that are left",
                    bytes.len()
                ))
            })
    }

    /// The bytes, with padding.
    pub(super) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The TIDs (`ginPostingListDecode`).
    pub(super) fn decode(self) -> Result<Vec<ItemPointer>, RmgrError> {
        let (header, rest) = self.0.split_at(HEADER_BYTES);
        let nbytes = usize::from(u16::from_le_bytes([header[NBYTES], header[NBYTES + 1]]));
        let mut distances = &rest[..nbytes];
        let first = header[..NBYTES].try_into().expect("six bytes are a TID");
        let first = ItemPointer::from_bytes(first);
        let mut number = to_number(first)?;
        let mut tids = vec![first];
        while !distances.is_empty() {
            // 43 and 49 bits: the sum does not overflow.
            number += take_distance(&mut distances)?;
            tids.push(from_number(number)?);
        }
        Ok(tids)
    }
}

/// `itemptr_to_uint64`. PostgreSQL asserts that the offset has its eleven bits at most.
fn to_number(tid: ItemPointer) -> Result<u64, RmgrError> {
    if tid.offset == 0 || tid.offset >> OFFSET_BITS != 0 {
        return Err(bad_tid(tid));
    }
    Ok(u64::from(tid.block) << OFFSET_BITS | u64::from(tid.offset))
}

/// `uint64_to_itemptr`.
fn from_number(number: u64) -> Result<ItemPointer, RmgrError> {
    let tid = ItemPointer {
        block: u32::try_from(number >> OFFSET_BITS)
            .map_err(|_| RmgrError::corrupt(format!("posting list reaches {number:#x}")))?,
        offset: (number & ((1 << OFFSET_BITS) - 1)) as u16,
    };
    if tid.offset == 0 {
        return Err(bad_tid(tid));
    }
    Ok(tid)
}

fn bad_tid(tid: ItemPointer) -> RmgrError {
    RmgrError::corrupt(format!(
        "({},{}) in a posting list is not a heap TID",
        tid.block, tid.offset
    ))
}

/// `decode_varbyte`.
fn take_distance(bytes: &mut &[u8]) -> Result<u64, RmgrError> {
    let len = bytes
        .iter()
        .take(MAX_DISTANCE_BYTES)
        .position(|byte| byte & 0x80 == 0)
        .map(|last| last + 1)
        .ok_or_else(|| RmgrError::corrupt("a distance in a posting list does not end"))?;
    let (distance, rest) = bytes.split_at(len);
    *bytes = rest;
    let add = |value: u64, byte: &u8| value << 7 | u64::from(byte & 0x7F);
    Ok(distance.iter().rev().fold(0, add))
}

/// `encode_varbyte`.
fn put_distance(out: &mut Vec<u8>, mut distance: u64) {
    while distance > 0x7F {
        out.push(0x80 | (distance & 0x7F) as u8);
        distance >>= 7;
    }
    out.push(distance as u8);
}

/// One segment of all of `tids` (`ginCompressPostingList`), nothing for no TIDs. It must fit on a
/// page: redo encodes what the primary has encoded before.
pub(super) fn encode(tids: &[ItemPointer]) -> Result<Vec<u8>, RmgrError> {
    let Some((first, others)) = tids.split_first() else {
        return Ok(Vec::new());
    };
    let mut segment = first.to_bytes().to_vec();
    segment.extend([0, 0]);
    let mut before = to_number(*first)?;
    for tid in others {
        let number = to_number(*tid)?;
        if number <= before {
            return Err(RmgrError::corrupt("TIDs of a posting list do not ascend"));
        }
        put_distance(&mut segment, number - before);
        before = number;
    }
    if segment.len() > BLOCK_BYTES {
        return Err(RmgrError::corrupt(format!(
            "posting list of {} TIDs takes {} bytes",
            tids.len(),
            segment.len()
        )));
    }
    let nbytes = (segment.len() - HEADER_BYTES) as u16;
    segment[NBYTES..HEADER_BYTES].copy_from_slice(&nbytes.to_le_bytes());
    segment.resize(segment.len().next_multiple_of(2), 0);
    Ok(segment)
}

/// Two sorted lists as one; a TID in both is kept once (`ginMergeItemPointers`).
pub(super) fn merge(a: &[ItemPointer], b: &[ItemPointer]) -> Vec<ItemPointer> {
    let key = |tid: &ItemPointer| (tid.block, tid.offset);
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    let mut merged = Vec::with_capacity(a.len() + b.len());
    while let (Some(from_a), Some(from_b)) = (a.peek(), b.peek()) {
        let order = key(from_a).cmp(&key(from_b));
        merged.push(if order.is_lt() { **from_a } else { **from_b });
        a.next_if(|_| order.is_le());
        b.next_if(|_| order.is_ge());
    }
    merged.extend(a.chain(b).copied());
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tid(block: u32, offset: u16) -> ItemPointer {
        ItemPointer { block, offset }
    }

    #[test]
    fn distances_take_seven_bits_per_byte() {
        let tids = [
            tid(0x1_0002, 3),
            tid(0x1_0002, 4),
            tid(0x1_0002, 131),
            tid(0x1_0002, 259),
            tid(0x1_0003, 259),
        ];
        let segment = encode(&tids).unwrap();
        // 1, 127, 128 and 2048 in the varbyte encoding.
        let expected = [1, 0, 2, 0, 3, 0, 6, 0, 0x01, 0x7F, 0x80, 0x01, 0x80, 0x10];
        assert_eq!(segment, expected);
        let (list, rest) = PostingList::split(&expected).unwrap();
        assert_eq!((list.decode().unwrap(), rest.len()), (tids.to_vec(), 0));
    }

    #[test]
    fn odd_lists_end_in_a_zero_that_is_not_counted() {
        let segment = encode(&[tid(0, 1), tid(0, 3)]).unwrap();
        assert_eq!(segment, [0, 0, 0, 0, 1, 0, 1, 0, 2, 0]);
        let alone = encode(&[tid(0, 7)]).unwrap();
        assert_eq!(alone, [0, 0, 0, 0, 7, 0, 0, 0]);
        assert_eq!(encode(&[]), Ok(Vec::new()));
        // The next segment starts behind the padding.
        let both = [segment, alone].concat();
        let (list, rest) = PostingList::split(&both).unwrap();
        assert_eq!(list.decode().unwrap(), [tid(0, 1), tid(0, 3)]);
        let (list, rest) = PostingList::split(rest).unwrap();
        assert_eq!((list.decode().unwrap(), rest.len()), (vec![tid(0, 7)], 0));
    }

    #[test]
    fn the_widest_distance_has_seven_bytes() {
        let tids = [tid(0, 1), tid(u32::MAX, 2047)];
        let segment = encode(&tids).unwrap();
        assert_eq!(
            segment[6..],
            [7, 0, 0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0]
        );
        let (list, _) = PostingList::split(&segment).unwrap();
        assert_eq!(list.decode().unwrap(), tids);
    }

    #[test]
    fn contradicting_segments_are_errors() {
        let whole = [0, 0, 0, 0, 1, 0, 3, 0, 2, 0x80, 0x01, 0];
        assert!(PostingList::split(&whole).is_ok());
        for len in 0..whole.len() {
            assert!(PostingList::split(&whole[..len]).is_err(), "{len}");
        }
        let decode = |bytes: &[u8]| PostingList::split(bytes).unwrap().0.decode();
        let endless = [0, 0, 0, 0, 1, 0, 2, 0, 2, 0x80];
        assert!(decode(&endless).is_err());
        let eight_bytes = [
            0, 0, 0, 0, 1, 0, 8, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0,
        ];
        assert!(decode(&eight_bytes).is_err());
        let beyond = [
            0, 0, 0, 0, 1, 0, 7, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0,
        ];
        assert!(decode(&beyond).is_err());
        // A distance of 2047 from offset 1 leads to offset 0 of the next block.
        assert!(decode(&[0, 0, 0, 0, 1, 0, 2, 0, 0xFF, 0x0F]).is_err());
        assert!(decode(&[0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(decode(&[0, 0, 0, 0, 0, 8, 0, 0]).is_err());
        assert!(encode(&[tid(0, 2), tid(0, 1)]).is_err());
        assert!(encode(&[tid(0, 2), tid(0, 2)]).is_err());
        assert!(encode(&(1..9000).map(|block| tid(block, 1)).collect::<Vec<_>>()).is_err());
    }

    #[test]
    fn merging_keeps_order_and_drops_repetitions() {
        let a = [tid(1, 1), tid(1, 3), tid(2, 1)];
        let b = [tid(1, 2), tid(1, 3), tid(3, 1), tid(3, 2)];
        let both = [
            tid(1, 1),
            tid(1, 2),
            tid(1, 3),
            tid(2, 1),
            tid(3, 1),
            tid(3, 2),
        ];
        assert_eq!(merge(&a, &b), both);
        assert_eq!(merge(&b, &a), both);
        assert_eq!(merge(&a, &[]), a);
        assert_eq!(merge(&[], &a), a);
    }
}
