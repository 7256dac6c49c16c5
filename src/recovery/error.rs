//! Why a recovery was refused, or failed.

use std::path::PathBuf;

use thiserror::Error;

use crate::pgdata::control::{ControlError, DbState};
use crate::pgdata::lockfile::LockFileError;
use crate::pgdata::relmap::RelationMapError;
use crate::redo::{RedoError, RedoErrorKind};
use crate::sys::SysError;
use crate::types::Lsn;
use crate::wal::{AppendError, EndReason, WalError};

/// Nothing was written, and on purpose.
#[derive(Debug, Error)]
pub enum Refusal {
    /// Not a data directory, or not readable as one.
    #[error("\"{}\" is not a data directory: {why}", path.display())]
    NotADataDirectory {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// pg_control is damaged or of an unsupported major.
    #[error("pg_control cannot be used: {0}")]
    Control(#[from] ControlError),
    /// The marks of the version contradict each other.
    #[error(
        "version marks contradict each other: PG_VERSION says {file}, pg_control says {control}"
    )]
    Version {
        /// First line of PG_VERSION.
        file: String,
        /// Major of pg_control.
        control: String,
    },
    /// A server may be running.
    #[error(transparent)]
    LockFile(#[from] LockFileError),
    /// Files that ask for archive recovery.
    #[error(
        "\"{0}\" is present: recovery from a backup or an archive is not supported yet; let the \
         server recover this directory"
    )]
    ArchiveRecovery(&'static str),
    /// initdb did not finish.
    #[error("the cluster state is \"{0}\"; there is nothing to recover")]
    State(DbState),
    /// No valid checkpoint record where pg_control says.
    #[error("could not locate a valid checkpoint record at {lsn}: {why}")]
    NoCheckpoint {
        /// The place.
        lsn: Lsn,
        /// What is there.
        why: String,
    },
    /// The record at the redo location cannot be read.
    #[error(
        "could not find redo location {redo} referenced by checkpoint record at {checkpoint}: {why}"
    )]
    NoRedo {
        /// Where redo starts.
        redo: Lsn,
        /// The checkpoint.
        checkpoint: Lsn,
        /// What is there.
        why: EndReason,
    },
    /// A checkpoint that contradicts itself or pg_control.
    #[error("checkpoint record at {lsn} is unusable: {why}")]
    BadCheckpoint {
        /// The place.
        lsn: Lsn,
        /// What is wrong.
        why: String,
    },
    /// A record that cannot be redone.
    #[error("WAL record at {lsn} belongs to {rmgr}, which cannot be redone")]
    UnsupportedRmgr {
        /// The record.
        lsn: Lsn,
        /// Its resource manager.
        rmgr: String,
    },
    /// WAL of another cluster where the end of WAL was expected.
    #[error("{0}")]
    ForeignWal(EndReason),
    /// `--strict`: something that a server would carry on from silently.
    #[error("{0}")]
    Strict(String),
}

/// A recovery that did not come to its end. The directory can be recovered again, by a server or
/// by another run.
#[derive(Debug, Error)]
pub enum RecoveryError {
    /// Nothing was written.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// A record could not be redone.
    #[error(transparent)]
    Redo(#[from] Box<RedoError>),
    /// The start or the end of the redo failed.
    #[error("{doing}: {source}")]
    State {
        /// During what.
        doing: &'static str,
        /// What went wrong.
        source: Box<RedoErrorKind>,
    },
    /// WAL could not be read.
    #[error(transparent)]
    Wal(#[from] WalError),
    /// WAL could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A relation map is damaged, and no record replaced it: no catalog of its database can be
    /// found.
    #[error(
        "\"{}\": {error}; restore the file from a backup, or remove its directory if that is what \
         a CREATE DATABASE left that never finished",
        path.display()
    )]
    RelationMap {
        /// The map.
        path: PathBuf,
        /// What is wrong.
        error: RelationMapError,
    },
    /// `--strict`: references to missing pages are left.
    #[error("WAL contains references to {0} missing pages")]
    MissingPages(usize),
    /// The WAL that is read now is not the WAL that was surveyed.
    #[error("WAL changed while it was read: it ended at {surveyed} before, and at {now} now")]
    WalChanged {
        /// End at first.
        surveyed: Lsn,
        /// End now.
        now: Lsn,
    },
    /// The process was asked to stop.
    #[error("interrupted at {0}; the directory can be recovered by a server or by another run")]
    Interrupted(Lsn),
}

impl From<Refusal> for RecoveryError {
    fn from(refusal: Refusal) -> RecoveryError {
        RecoveryError::Refused(Box::new(refusal))
    }
}

impl RecoveryError {
    pub(super) fn state(doing: &'static str) -> impl Fn(RedoErrorKind) -> RecoveryError {
        move |source| RecoveryError::State {
            doing,
            source: Box::new(source),
        }
    }
}
