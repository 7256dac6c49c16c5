//! Where to start, when to stop, what to leave behind (`StartupXLOG`,
//! `src/backend/access/transam/xlog.c`; `xlogrecovery.c`).
//!
//! A run has three parts, each a file here. [`Recovery::prepare`] looks at the directory and reads
//! all of the WAL without changing anything; whatever forbids a recovery is found there.
//! [`Recovery::run`] replays. What it leaves until its very end is a directory that a server, or
//! another run, recovers from the same checkpoint; then the shutdown checkpoint is written,
//! and pg_control after it.

mod copy;
mod error;
mod finish;
mod prepare;
mod run;
mod verify;

use std::path::PathBuf;

use crate::redo::TablespaceMap;
use crate::smgr::{NblocksCache, SyncMethod};
use crate::types::Lsn;

pub use copy::{Copy, CopyError, CopyMethod, CopyOptions};
pub use error::{RecoveryError, Refusal};
pub use prepare::{Prepared, Recovery, Survey};
pub use run::{Outcome, Seconds};
pub use verify::{Checked, FirstDifference, Verification};

/// In what order records are redone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedoOrder {
    /// One record after another, as PostgreSQL does.
    Record,
    /// Page by page, over windows of many records.
    Page,
}

/// How a recovery is to be done.
#[derive(Debug, Clone)]
pub struct RecoveryOptions {
    /// The data directory.
    pub data_directory: PathBuf,
    /// Directories with WAL segments, looked into before `pg_wal`.
    pub wal_directories: Vec<PathBuf>,
    /// In what order records are redone.
    pub order: RedoOrder,
    /// Workers, in the order of pages.
    pub jobs: usize,
    /// Memory for a window, in bytes, in the order of pages.
    pub memory: u64,
    /// Size of the buffer pool, in bytes, in the order of records.
    pub buffers: u64,
    /// Whether relation sizes are remembered.
    pub nblocks_cache: NblocksCache,
    /// How files are made durable.
    pub sync: SyncMethod,
    /// Refuse what PostgreSQL would carry on from silently.
    pub strict: bool,
    /// Stop before the first record that starts at or after this position, and leave the
    /// directory in recovery: for looking at a state in the middle.
    pub stop_before: Option<Lsn>,
    /// Locations of tablespaces that were moved.
    pub tablespaces: TablespaceMap,
}

/// Hears what happens during a recovery.
pub trait Observer {
    /// Something PostgreSQL logs too, in its words.
    fn log(&mut self, message: &str);

    /// Something that is not as it should be. The run ends well, but not silently.
    fn warning(&mut self, message: &str);

    /// Records before `lsn` are redone. Called often.
    fn progress(&mut self, lsn: Lsn) {
        let _ = lsn;
    }
}
