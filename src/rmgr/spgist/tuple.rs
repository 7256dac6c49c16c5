//! SP-GiST tuples: leaf, inner and dead ones (`src/include/access/spgist_private.h`).
//!
//! All begin with a word whose lowest two bits are the state. In leaf and dead tuples the other
//! bits are the size; inner tuples have the number of nodes and the size of the prefix there.

use super::RmgrError;
use crate::types::{BlockNumber, Cursor, INVALID_BLOCK, OffsetNumber, TransactionId};

/// `t_info` of a leaf tuple.
const T_INFO: usize = 4;
/// The TID of a leaf or dead tuple.
const POINTER: usize = T_INFO + 2;
/// `xid` of a dead tuple.
const XID: usize = POINTER + Link::BYTES;
/// `SGDTSIZE`.
pub(super) const DEAD_TUPLE_BYTES: usize = XID + 4;
const _: () = assert!(DEAD_TUPLE_BYTES == 16);

/// `sizeof(SpGistLeafTupleData)`, without what is in the way of alignment.
const LEAF_HEADER_BYTES: usize = XID;
/// `SGITHDRSZ`.
const INNER_HEADER_BYTES: usize = 8;
/// `sizeof(SpGistNodeTupleData)`, an index tuple header.
const NODE_HEADER_BYTES: usize = 8;
/// `t_info` of a node.
const NODE_T_INFO: usize = 6;
/// `INDEX_SIZE_MASK`.
const NODE_SIZE_MASK: u16 = 0x1FFF;

const STATE_MASK: u32 = 0x3;
/// Bits of `t_info` that `SGLT_SET_NEXTOFFSET` sets.
const NEXT_OFFSET_MASK: u16 = 0x3FFF;

/// `tupstate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum TupleState {
    /// `SPGIST_LIVE`.
    Live = 0,
    /// `SPGIST_REDIRECT`.
    Redirect = 1,
    /// `SPGIST_DEAD`.
    Dead = 2,
    /// `SPGIST_PLACEHOLDER`.
    Placeholder = 3,
}

/// A place inside the index, stored as a TID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    /// The page.
    pub(super) block: BlockNumber,
    /// The tuple.
    pub(super) offset: OffsetNumber,
}

impl Link {
    /// `ItemPointerSetInvalid`.
    pub(super) const INVALID: Link = Link {
        block: INVALID_BLOCK,
        offset: 0,
    };
    const BYTES: usize = 6;

    /// `ItemPointerData`: the block number is two 16-bit halves, the high one first.
    fn to_bytes(self) -> [u8; Link::BYTES] {
        let high = ((self.block >> 16) as u16).to_le_bytes();
        let low = (self.block as u16).to_le_bytes();
        let offset = self.offset.to_le_bytes();
        [high[0], high[1], low[0], low[1], offset[0], offset[1]]
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn too_short(what: &'static str, bytes: &[u8]) -> RmgrError {
    RmgrError::corrupt(format!("{what} is too short: {} bytes", bytes.len()))
}

/// The tuple at the reader's place, which is `size` bytes long as it says itself.
fn take<'w>(
    c: &mut Cursor<'w>,
    what: &'static str,
    size: usize,
    header_bytes: usize,
) -> Result<&'w [u8], RmgrError> {
    if size < header_bytes {
        return Err(RmgrError::corrupt(format!("{what} of {size} bytes")));
    }
    Ok(c.bytes(what, size)?)
}

/// The next leaf tuple of a record.
pub(super) fn read_leaf<'w>(c: &mut Cursor<'w>) -> Result<&'w [u8], RmgrError> {
    let size = c.clone().u32("leaf tuple")? >> 2;
    take(c, "leaf tuple", size as usize, LEAF_HEADER_BYTES)
}

/// The next inner tuple of a record.
pub(super) fn read_inner<'w>(c: &mut Cursor<'w>) -> Result<&'w [u8], RmgrError> {
    let header = c.clone().bytes("inner tuple", INNER_HEADER_BYTES)?;
    let size = u16_at(header, 4);
    take(c, "inner tuple", size.into(), INNER_HEADER_BYTES)
}

/// The state of any tuple.
pub(super) fn state(tuple: &[u8]) -> Result<TupleState, RmgrError> {
    let word = tuple.first().ok_or_else(|| too_short("tuple", tuple))?;
    Ok(match u32::from(*word) & STATE_MASK {
        0 => TupleState::Live,
        1 => TupleState::Redirect,
        2 => TupleState::Dead,
        _ => TupleState::Placeholder,
    })
}

/// A dead tuple.
pub(super) fn dead(state: TupleState, to: Link, xid: TransactionId) -> [u8; DEAD_TUPLE_BYTES] {
    let mut tuple = [0; DEAD_TUPLE_BYTES];
    let word = state as u32 | (DEAD_TUPLE_BYTES as u32) << 2;
    tuple[..T_INFO].copy_from_slice(&word.to_le_bytes());
    tuple[POINTER..XID].copy_from_slice(&to.to_bytes());
    tuple[XID..].copy_from_slice(&xid.0.to_le_bytes());
    tuple
}

/// Makes a placeholder of a redirect. Its transaction id stays, though it means nothing any more.
pub(super) fn redirect_to_placeholder(tuple: &mut [u8]) -> Result<(), RmgrError> {
    if tuple.len() < XID {
        return Err(too_short("redirect", tuple));
    }
    tuple[0] |= TupleState::Placeholder as u8;
    tuple[POINTER..XID].copy_from_slice(&Link::INVALID.to_bytes());
    Ok(())
}

/// `SGLT_SET_NEXTOFFSET`: links a leaf tuple to the next of its chain; the flags beside it stay.
pub(super) fn set_next_offset(tuple: &mut [u8], next: OffsetNumber) -> Result<(), RmgrError> {
    if tuple.len() < LEAF_HEADER_BYTES {
        return Err(too_short("leaf tuple", tuple));
    }
    let info = u16_at(tuple, T_INFO) & !NEXT_OFFSET_MASK | next & NEXT_OFFSET_MASK;
    tuple[T_INFO..POINTER].copy_from_slice(&info.to_le_bytes());
    Ok(())
}

/// `spgUpdateNodeLink`: node `index` of an inner tuple links to another place.
pub(super) fn set_node_link(tuple: &mut [u8], index: u16, to: Link) -> Result<(), RmgrError> {
    if tuple.len() < INNER_HEADER_BYTES {
        return Err(too_short("inner tuple", tuple));
    }
    let word = u32_at(tuple, 0);
    let (nodes, prefix_bytes) = (word >> 3 & 0x1FFF, word >> 16);
    if u32::from(index) >= nodes {
        return Err(RmgrError::corrupt(format!(
            "node {index} of an inner tuple with {nodes} nodes"
        )));
    }
    let mut at = INNER_HEADER_BYTES + prefix_bytes as usize;
    for _ in 0..index {
        at += node_bytes(tuple, at)?;
    }
    node_bytes(tuple, at)?;
    tuple[at..at + Link::BYTES].copy_from_slice(&to.to_bytes());
    Ok(())
}

/// Size of the node that starts at `at` of an inner tuple, which holds it.
fn node_bytes(tuple: &[u8], at: usize) -> Result<usize, RmgrError> {
    let rest = tuple.get(at..).unwrap_or(&[]);
    if rest.len() < NODE_HEADER_BYTES {
        return Err(too_short("node", rest));
    }
    let size = usize::from(u16_at(rest, NODE_T_INFO) & NODE_SIZE_MASK);
    if size < NODE_HEADER_BYTES || size > rest.len() {
        return Err(RmgrError::corrupt(format!(
            "node of {size} bytes in {} bytes",
            rest.len()
        )));
    }
    Ok(size)
}
