//! Segment bytes to raw records: finding and mapping segments, page headers, records across
//! pages and segments, CRC-32C, and every form of the end of WAL.

use crate::types::Lsn;

/// A record as it stands in the WAL, put together if pages split it. Its header, length and CRC
/// are checked.
#[derive(Debug, Clone, Copy)]
pub struct RawRecord<'w> {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where it ends, rounded up to 8; after a SWITCH the start of the next segment.
    pub end_lsn: Lsn,
    /// `xl_tot_len` bytes, header included.
    pub bytes: &'w [u8],
}
