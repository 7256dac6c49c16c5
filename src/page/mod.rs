//! The page format: bytes of a block and what may be done to them, without any I/O.
//!
//! [`Page`] is the 8192 bytes of one block. The header and line pointers are reached through
//! accessors over offset constants; the operations redo needs (`PageAddItem`,
//! `PageRepairFragmentation`, ...) keep PostgreSQL's names and leave PostgreSQL's bytes, stale
//! ones in the hole included. Offsets read from a page are untrusted: an operation that would
//! leave the page reports a [`PageError`].

mod checksum;
pub mod fsm;
pub mod heap_tuple;
mod items;
pub mod vm;

use std::fmt;

use thiserror::Error;

use crate::types::{BLOCK_BYTES, Lsn, OffsetNumber, TransactionId};

pub use checksum::{checksum, stamp_checksum};
pub use items::{ItemId, LpFlags};

const PD_LSN: usize = 0;
const PD_CHECKSUM: usize = PD_LSN + 8;
const PD_FLAGS: usize = PD_CHECKSUM + 2;
const PD_LOWER: usize = PD_FLAGS + 2;
const PD_UPPER: usize = PD_LOWER + 2;
const PD_SPECIAL: usize = PD_UPPER + 2;
const PD_PAGESIZE_VERSION: usize = PD_SPECIAL + 2;
const PD_PRUNE_XID: usize = PD_PAGESIZE_VERSION + 2;

/// Bytes of the page header, where line pointers start (`SizeOfPageHeaderData`).
pub const PAGE_HEADER_BYTES: usize = PD_PRUNE_XID + 4;
const _: () = assert!(PAGE_HEADER_BYTES == 24);

/// Page size and layout version 4, as `pd_pagesize_version` holds them.
const PAGESIZE_VERSION: u16 = 0x2004;

/// `PD_HAS_FREE_LINES`: there may be unused line pointers.
pub const PD_HAS_FREE_LINES: u16 = 0x0001;
/// `PD_PAGE_FULL`: an update did not find room here.
pub const PD_PAGE_FULL: u16 = 0x0002;
/// `PD_ALL_VISIBLE`: every tuple is visible to everyone.
pub const PD_ALL_VISIBLE: u16 = 0x0004;
const PD_VALID_FLAG_BITS: u16 = PD_HAS_FREE_LINES | PD_PAGE_FULL | PD_ALL_VISIBLE;

/// `MaxHeapTuplesPerPage`.
pub const MAX_HEAP_TUPLES_PER_PAGE: u16 = 291;
/// `MaxHeapTupleSize`, in bytes.
pub const MAX_HEAP_TUPLE_BYTES: usize = 8160;

/// A page whose bytes do not allow what a record asks for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PageError {
    /// pd_lower, pd_upper and pd_special are not in order.
    #[error("page header is corrupt: lower {lower}, upper {upper}, special {special}")]
    Header {
        /// pd_lower.
        lower: u16,
        /// pd_upper.
        upper: u16,
        /// pd_special.
        special: u16,
    },
    /// A line pointer number outside 1..=max.
    #[error("line pointer {offset} is out of range, the page has {max}")]
    OffsetOutOfRange {
        /// The number asked for.
        offset: OffsetNumber,
        /// Line pointers on the page.
        max: OffsetNumber,
    },
    /// A line pointer that leads out of the tuple area.
    #[error("line pointer {offset} is corrupt: offset {start}, length {len}")]
    ItemOutOfPage {
        /// The line pointer.
        offset: OffsetNumber,
        /// Its lp_off.
        start: u16,
        /// Its lp_len.
        len: u16,
    },
    /// A line pointer is not of the kind the record expects.
    #[error("line pointer {offset} is {found:?}, the record expects {expected}")]
    ItemKind {
        /// The line pointer.
        offset: OffsetNumber,
        /// What it is.
        found: LpFlags,
        /// What it should be.
        expected: &'static str,
    },
    /// No room for an item.
    #[error("no room for an item of {bytes} bytes: lower {lower}, upper {upper}")]
    NoRoom {
        /// Its length.
        bytes: usize,
        /// pd_lower.
        lower: u16,
        /// pd_upper.
        upper: u16,
    },
    /// A tuple or special area shorter than a field in it.
    #[error("{what} is too short: {bytes} bytes")]
    TooShort {
        /// What is too short.
        what: &'static str,
        /// Its length.
        bytes: usize,
    },
}

/// The bytes of one block.
#[derive(Clone, PartialEq, Eq)]
#[repr(transparent)]
pub struct Page([u8; BLOCK_BYTES]);

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("lsn", &self.lsn())
            .field("flags", &self.flags())
            .field("lower", &self.lower())
            .field("upper", &self.upper())
            .field("special", &self.special())
            .finish_non_exhaustive()
    }
}

impl Default for Page {
    fn default() -> Self {
        Page::zeroed()
    }
}

impl Page {
    /// A page of zeros, which is what a file is extended with.
    pub const fn zeroed() -> Page {
        Page([0; BLOCK_BYTES])
    }

    /// A page with these bytes.
    pub const fn from_bytes(bytes: [u8; BLOCK_BYTES]) -> Page {
        Page(bytes)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; BLOCK_BYTES] {
        &self.0
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8; BLOCK_BYTES] {
        &mut self.0
    }

    /// Little-endian u16 at a fixed offset of the page.
    pub fn u16_at(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }

    /// Little-endian u32 at a fixed offset of the page.
    pub fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    /// Stores a u16 at a fixed offset.
    pub fn put_u16(&mut self, at: usize, value: u16) {
        self.0[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    /// Stores a u32 at a fixed offset.
    pub fn put_u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Stores a u64 at a fixed offset.
    pub fn put_u64(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// pd_lsn. The high half comes first, so this is not a plain u64.
    pub fn lsn(&self) -> Lsn {
        Lsn::from_halves(self.u32_at(PD_LSN), self.u32_at(PD_LSN + 4))
    }

    /// Stores pd_lsn (`PageSetLSN`).
    pub fn set_lsn(&mut self, lsn: Lsn) {
        self.put_u32(PD_LSN, lsn.high());
        self.put_u32(PD_LSN + 4, lsn.low());
    }

    /// pd_checksum as it is in memory; it is computed only when a page is written.
    pub fn checksum_field(&self) -> u16 {
        self.u16_at(PD_CHECKSUM)
    }

    /// Stores pd_checksum.
    pub fn set_checksum_field(&mut self, value: u16) {
        self.put_u16(PD_CHECKSUM, value);
    }

    /// pd_flags.
    pub fn flags(&self) -> u16 {
        self.u16_at(PD_FLAGS)
    }

    /// Stores pd_flags.
    pub fn set_flags(&mut self, flags: u16) {
        self.put_u16(PD_FLAGS, flags);
    }

    /// Sets `flag` in pd_flags.
    pub fn set_flag(&mut self, flag: u16) {
        self.set_flags(self.flags() | flag);
    }

    /// Clears `flag` in pd_flags.
    pub fn clear_flag(&mut self, flag: u16) {
        self.set_flags(self.flags() & !flag);
    }

    /// pd_lower: end of the line pointers.
    pub fn lower(&self) -> u16 {
        self.u16_at(PD_LOWER)
    }

    /// Stores pd_lower.
    pub fn set_lower(&mut self, lower: u16) {
        self.put_u16(PD_LOWER, lower);
    }

    /// pd_upper: start of the tuples.
    pub fn upper(&self) -> u16 {
        self.u16_at(PD_UPPER)
    }

    /// Stores pd_upper.
    pub fn set_upper(&mut self, upper: u16) {
        self.put_u16(PD_UPPER, upper);
    }

    /// pd_special: start of the access method's own area.
    pub fn special(&self) -> u16 {
        self.u16_at(PD_SPECIAL)
    }

    /// pd_prune_xid.
    pub fn prune_xid(&self) -> TransactionId {
        TransactionId(self.u32_at(PD_PRUNE_XID))
    }

    /// Stores pd_prune_xid.
    pub fn set_prune_xid(&mut self, xid: TransactionId) {
        self.put_u32(PD_PRUNE_XID, xid.0);
    }

    /// `PageSetPrunable`: remembers the oldest transaction whose end makes pruning worthwhile.
    pub fn set_prunable(&mut self, xid: TransactionId) {
        let old = self.prune_xid();
        if !old.is_valid() || xid.precedes(old) {
            self.set_prune_xid(xid);
        }
    }

    /// `PageIsNew`: never initialised. Such a page counts as missing for ordinary reads.
    pub fn is_new(&self) -> bool {
        self.upper() == 0
    }

    /// `PageInit`: an empty page with a special area of `special_bytes`, rounded up to 8.
    pub fn init(&mut self, special_bytes: usize) {
        assert!(
            special_bytes <= BLOCK_BYTES - PAGE_HEADER_BYTES,
            "{special_bytes}"
        );
        let special = (BLOCK_BYTES - special_bytes.next_multiple_of(8)) as u16;
        self.0.fill(0);
        self.set_lower(PAGE_HEADER_BYTES as u16);
        self.set_upper(special);
        self.put_u16(PD_SPECIAL, special);
        self.put_u16(PD_PAGESIZE_VERSION, PAGESIZE_VERSION);
    }

    /// What `PageIsVerified` asks of the header of a page that was read.
    pub fn header_is_sane(&self) -> bool {
        let (lower, upper, special) = (self.lower(), self.upper(), self.special());
        self.flags() & !PD_VALID_FLAG_BITS == 0
            && lower <= upper
            && upper <= special
            && usize::from(special) <= BLOCK_BYTES
            && special % 8 == 0
    }

    /// The header's three offsets, checked to be in order and inside the page.
    pub fn checked_bounds(&self) -> Result<(usize, usize, usize), PageError> {
        let (lower, upper, special) = (self.lower(), self.upper(), self.special());
        let ok = usize::from(lower) >= PAGE_HEADER_BYTES
            && lower <= upper
            && upper <= special
            && usize::from(special) <= BLOCK_BYTES
            && special % 8 == 0;
        if ok {
            Ok((lower.into(), upper.into(), special.into()))
        } else {
            Err(PageError::Header {
                lower,
                upper,
                special,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn init_lays_an_empty_page() {
        let mut page = Page::zeroed();
        page.bytes_mut().fill(0xFF);
        page.init(16);
        assert_eq!(
            (page.lower(), page.upper(), page.special()),
            (24, 8176, 8176)
        );
        assert_eq!(page.u16_at(PD_PAGESIZE_VERSION), 0x2004);
        assert_eq!(page.bytes()[24..].iter().filter(|b| **b != 0).count(), 0);
        assert!(!page.is_new());
    }

    #[test]
    fn lsn_is_stored_high_half_first() {
        let mut page = Page::zeroed();
        page.set_lsn(Lsn(0x1_2345_6789));
        assert_eq!(page.bytes()[..8], [1, 0, 0, 0, 0x89, 0x67, 0x45, 0x23]);
        assert_eq!(page.lsn(), Lsn(0x1_2345_6789));
    }

    #[test]
    fn prunable_keeps_the_oldest() {
        let mut page = Page::zeroed();
        page.set_prunable(TransactionId(100));
        page.set_prunable(TransactionId(200));
        assert_eq!(page.prune_xid(), TransactionId(100));
        page.set_prunable(TransactionId(50));
        assert_eq!(page.prune_xid(), TransactionId(50));
    }

    #[test]
    fn bounds_out_of_order_are_an_error() {
        let mut page = Page::zeroed();
        page.init(0);
        page.set_lower(100);
        page.set_upper(50);
        assert!(matches!(
            page.checked_bounds(),
            Err(PageError::Header { .. })
        ));
    }
}
