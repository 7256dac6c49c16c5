//! Segment bytes to raw records: finding and mapping segments, page headers, records across
//! pages and segments, CRC-32C, and every form of the end of WAL. And the other way round, for
//! the few records that end a recovery.

mod append;
mod end;
mod header;
mod reader;
mod segment;
mod timeline;

pub use append::{AppendError, NewRecord, WalAppender};
pub use end::{EndOfWal, EndReason, LaterWal};
pub use header::{PageHeader, PageInfo, WAL_PAGE_BYTES};
pub use reader::{Batch, RawRecord, WalReader};
pub use segment::{Segment, SegmentName, SegmentSource, WalLayout};
pub use timeline::{History, HistoryError};

use crate::sys::SysError;
use thiserror::Error;

/// Bytes of `XLogRecord`, the fixed header of a record.
pub const RECORD_HEADER_BYTES: usize = 24;

/// WAL that cannot be read for a reason that is not an end of WAL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WalError {
    /// A system call failed for another reason than a missing file.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A timeline history file is not well-formed.
    #[error(transparent)]
    History(#[from] HistoryError),
}
