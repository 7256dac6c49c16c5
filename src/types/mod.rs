//! The words everything else is written in: identifiers, positions and a cursor over bytes.
//!
//! Names are PostgreSQL's own (16 and later) in Rust case.

mod checkpoint;
mod cursor;
pub mod digits;
mod ids;
mod lsn;
mod rel;
mod timestamp;
mod xid;

pub use checkpoint::CheckPoint;
pub use cursor::{Cursor, ShortRead};
pub use ids::{MultiXactId, MultiXactOffset, Oid, RepOriginId, RmgrId, TimeLineId};
pub use lsn::{Lsn, ParseLsnError};
pub use rel::{
    BlockNumber, BlockTag, DEFAULT_TABLESPACE, ForkNumber, GLOBAL_TABLESPACE, INVALID_BLOCK,
    OffsetNumber, RelFileLocator,
};
pub use timestamp::TimestampTz;
pub use xid::{FullTransactionId, TransactionId};

/// Bytes in a block of a relation, an SLRU page and a WAL page (`BLCKSZ`, `XLOG_BLCKSZ`).
pub const BLOCK_BYTES: usize = 8192;

/// Blocks in one segment file of a relation fork (`RELSEG_SIZE`): 1 GiB.
pub const RELSEG_BLOCKS: u32 = 131_072;
