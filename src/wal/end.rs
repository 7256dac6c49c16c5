//! The end of WAL, which is a value and not an error.

use std::fmt;

use super::RECORD_HEADER_BYTES;
use super::SegmentName;
use crate::types::{Lsn, TimeLineId};

/// Why reading stopped. Displayed in the words of PostgreSQL's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// The segment is not there.
    NoSegment {
        /// Which one.
        name: SegmentName,
        /// Its file name.
        file: String,
    },
    /// The file of the segment ends before the page.
    ShortSegment {
        /// The page.
        at: Lsn,
        /// Its file name.
        file: String,
    },
    /// Another magic than the major's.
    Magic {
        /// The page.
        at: Lsn,
        /// What is there.
        found: u16,
    },
    /// Unknown flags, or a short header where a long one must be.
    InfoBits {
        /// The page.
        at: Lsn,
        /// What is there.
        found: u16,
    },
    /// WAL of another cluster.
    OtherSystem {
        /// Whose WAL it is.
        found: u64,
        /// Whose it should be.
        expected: u64,
    },
    /// Another segment size.
    SegmentSize {
        /// What is there.
        found: u32,
    },
    /// Another page size.
    PageSize {
        /// What is there.
        found: u32,
    },
    /// A page of another place: a recycled segment.
    PageAddress {
        /// The page.
        at: Lsn,
        /// What is there.
        found: Lsn,
    },
    /// A timeline older than that of an earlier page.
    TimelineOrder {
        /// The page.
        at: Lsn,
        /// What is there.
        found: TimeLineId,
        /// That of the earlier page.
        after: TimeLineId,
    },
    /// A timeline that does not lead to the one that is replayed.
    UnexpectedTimeline {
        /// The page.
        at: Lsn,
        /// What is there.
        found: TimeLineId,
    },
    /// A position inside a page header.
    RecordOffset {
        /// The position.
        at: Lsn,
    },
    /// The page begins with the rest of another record.
    ContrecordRequested {
        /// The position.
        at: Lsn,
    },
    /// No record: a length below that of a header, zero usually.
    RecordLength {
        /// The position.
        at: Lsn,
        /// What is there.
        found: u32,
    },
    /// No resource manager has this id.
    RmgrId {
        /// The record.
        at: Lsn,
        /// What is there.
        found: u8,
    },
    /// The link to the previous record is wrong.
    PrevLink {
        /// The record.
        at: Lsn,
        /// What is there.
        found: Lsn,
    },
    /// The next page does not continue the record.
    NoContrecordFlag {
        /// The record.
        at: Lsn,
    },
    /// The next page continues a record of another length.
    ContrecordLength {
        /// The record.
        at: Lsn,
        /// What is there.
        found: u32,
        /// What is left of the record.
        expected: i64,
    },
    /// The CRC is wrong.
    Checksum {
        /// The record.
        at: Lsn,
    },
    /// The CRC is right, but the contents contradict themselves.
    Undecodable {
        /// The record.
        at: Lsn,
        /// The contradiction.
        what: String,
    },
    /// The reader was told to stop here.
    Limit,
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndReason::NoSegment { file, .. } => write!(f, "WAL segment {file} is missing"),
            EndReason::ShortSegment { at, file } => {
                write!(f, "WAL segment {file} ends before the page at {at}")
            }
            EndReason::Magic { at, found } => {
                write!(f, "invalid magic number {found:04X} in WAL page at {at}")
            }
            EndReason::InfoBits { at, found } => {
                write!(f, "invalid info bits {found:04X} in WAL page at {at}")
            }
            EndReason::OtherSystem { found, expected } => write!(
                f,
                "WAL file is from different database system: WAL file database system \
                 identifier is {found}, pg_control database system identifier is {expected}"
            ),
            EndReason::SegmentSize { found } => write!(
                f,
                "WAL file is from different database system: incorrect segment size {found} in \
                 page header"
            ),
            EndReason::PageSize { found } => write!(
                f,
                "WAL file is from different database system: incorrect XLOG_BLCKSZ {found} in \
                 page header"
            ),
            EndReason::PageAddress { at, found } => {
                write!(f, "unexpected pageaddr {found} in WAL page at {at}")
            }
            EndReason::TimelineOrder { at, found, after } => write!(
                f,
                "out-of-sequence timeline ID {found} (after {after}) in WAL page at {at}"
            ),
            EndReason::UnexpectedTimeline { at, found } => {
                write!(f, "unexpected timeline ID {found} in WAL page at {at}")
            }
            EndReason::RecordOffset { at } => write!(f, "invalid record offset at {at}"),
            EndReason::ContrecordRequested { at } => {
                write!(f, "contrecord is requested by {at}")
            }
            EndReason::RecordLength { at, found } => write!(
                f,
                "invalid record length at {at}: wanted {RECORD_HEADER_BYTES}, got {found}"
            ),
            EndReason::RmgrId { at, found } => {
                write!(f, "invalid resource manager ID {found} at {at}")
            }
            EndReason::PrevLink { at, found } => {
                write!(f, "record with incorrect prev-link {found} at {at}")
            }
            EndReason::NoContrecordFlag { at } => {
                write!(f, "there is no contrecord flag at {at}")
            }
            EndReason::ContrecordLength {
                at,
                found,
                expected,
            } => write!(
                f,
                "invalid contrecord length {found} (expected {expected}) at {at}"
            ),
            EndReason::Checksum { at } => {
                write!(
                    f,
                    "incorrect resource manager data checksum in record at {at}"
                )
            }
            EndReason::Undecodable { at, what } => write!(f, "{what} in record at {at}"),
            EndReason::Limit => f.write_str("end of the requested range"),
        }
    }
}

impl EndReason {
    /// WAL of another cluster or layout: a mistake of the caller, not a crash.
    pub fn is_foreign(&self) -> bool {
        matches!(
            self,
            EndReason::OtherSystem { .. }
                | EndReason::SegmentSize { .. }
                | EndReason::PageSize { .. }
        )
    }
}

/// Where and why reading stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndOfWal {
    /// End of the last record that was read: where new WAL goes, unless a record was torn.
    pub lsn: Lsn,
    /// Why there is no next record.
    pub reason: EndReason,
    /// A record that began and was not finished, and the page where its rest is missing. New WAL
    /// of a crash recovery goes to that page.
    pub torn: Option<TornRecord>,
}

/// A record whose rest was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TornRecord {
    /// Where it starts (`abortedRecPtr`).
    pub aborted: Lsn,
    /// The page that should continue it (`missingContrecPtr`).
    pub missing: Lsn,
}

/// WAL that exists after the end of WAL.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LaterWal {
    /// Segments after the last one that was read, each with a valid first page. A server makes a
    /// segment durable before it begins the next, so these prove that WAL was lost or damaged.
    pub segments: Vec<SegmentName>,
    /// The last valid page after the end in the same segment. The kernel may have written pages
    /// in any order before a crash, so this proves nothing.
    pub last_page: Option<Lsn>,
}
