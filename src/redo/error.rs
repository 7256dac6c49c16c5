//! A record that could not be redone, with its place.

use std::fmt;

use thiserror::Error;

use crate::decode::{DecodeError, Record};
use crate::rmgr::{self, RmgrError};
use crate::slru::SlruError;
use crate::smgr::SmgrError;
use crate::sys::SysError;
use crate::types::{BlockTag, Lsn};

/// What went wrong.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum RedoErrorKind {
    #[error(transparent)]
    Rmgr(#[from] RmgrError),
    #[error(transparent)]
    Smgr(#[from] SmgrError),
    #[error(transparent)]
    Slru(#[from] SlruError),
    #[error(transparent)]
    Sys(#[from] SysError),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    RelationMap(#[from] crate::pgdata::relmap::RelationMapError),
    #[error(transparent)]
    TwoPhase(#[from] crate::pgdata::twophase::TwoPhaseError),
    #[error(transparent)]
    Origins(#[from] crate::pgdata::origins::OriginsError),
    #[error(transparent)]
    Slot(#[from] crate::pgdata::slots::SlotError),
    /// The record contradicts the state that earlier records left.
    #[error("{0}")]
    Inconsistent(String),
}

impl From<crate::decode::ImageError> for RedoErrorKind {
    fn from(error: crate::decode::ImageError) -> Self {
        RedoErrorKind::Rmgr(error.into())
    }
}

/// An error with the record, and where there is one the page, it belongs to. PostgreSQL adds the
/// same as error context.
#[derive(Debug, Error)]
pub struct RedoError {
    /// Start of the record.
    pub lsn: Lsn,
    /// Its name, `Heap/INSERT`.
    pub record: String,
    /// The page.
    pub tag: Option<BlockTag>,
    /// What went wrong.
    pub kind: RedoErrorKind,
}

impl fmt::Display for RedoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WAL redo at {} for {}", self.lsn, self.record)?;
        if let Some(tag) = self.tag {
            write!(f, ", {tag}")?;
        }
        write!(f, ": {}", self.kind)
    }
}

impl RedoError {
    /// A record whose contents contradict themselves, so that it has no name.
    pub fn undecodable(lsn: Lsn, error: DecodeError) -> Box<RedoError> {
        let record = "a record that cannot be decoded".to_owned();
        Box::new(RedoError {
            lsn,
            record,
            tag: None,
            kind: error.into(),
        })
    }

    /// An error of a window that belongs to none of its records.
    pub(super) fn in_window(lsn: Lsn, kind: RedoErrorKind) -> Box<RedoError> {
        let record = "a window of records that starts there".to_owned();
        Box::new(RedoError {
            lsn,
            record,
            tag: None,
            kind,
        })
    }

    /// An error of a record, and of one of its pages if there is one to name.
    pub fn new(
        record: &Record<'_>,
        tag: Option<BlockTag>,
        kind: impl Into<RedoErrorKind>,
    ) -> Box<RedoError> {
        Box::new(RedoError {
            lsn: record.lsn,
            record: record_name(record),
            tag,
            kind: kind.into(),
        })
    }
}

/// `Heap/INSERT`, `rmgr 130/UNKNOWN (10)`.
pub fn record_name(record: &Record<'_>) -> String {
    let name = rmgr::identify(record);
    match rmgr::rmgr(record.rmid) {
        Ok(rmgr) => format!("{}/{name}", rmgr.name),
        Err(_) => format!("rmgr {}/{name}", record.rmid),
    }
}
