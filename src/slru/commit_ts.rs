//! `pg_commit_ts`: when and from where each transaction was committed
//! (`src/backend/access/transam/commit_ts.c`).

use std::path::PathBuf;

use super::pages::Pages;
use super::{Slru, SlruError, Truncation};
use crate::pgdata::DataDir;
use crate::types::{BLOCK_BYTES, RepOriginId, TransactionId};

/// `SizeOfCommitTimestampEntry`: an i64 and the origin, packed.
const ENTRY_BYTES: usize = 10;
/// `COMMIT_TS_XACTS_PER_PAGE`.
pub(super) const XIDS_PER_PAGE: u32 = (BLOCK_BYTES / ENTRY_BYTES) as u32;

/// The transactions that have a commit timestamp; both 0 while the module is off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CommitTsRange {
    /// `oldestCommitTsXid`.
    pub oldest: TransactionId,
    /// `newestCommitTsXid`.
    pub newest: TransactionId,
}

#[derive(Debug)]
pub(super) struct CommitTs {
    pages: Pages,
    active: bool,
    range: CommitTsRange,
}

impl CommitTs {
    pub(super) fn open(dir: &DataDir, range: CommitTsRange) -> CommitTs {
        CommitTs {
            pages: Pages::open(dir, Slru::CommitTs, 0),
            active: false,
            range,
        }
    }

    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    pub(super) fn range(&self) -> CommitTsRange {
        self.range
    }

    pub(super) fn activate(&mut self, next_xid: TransactionId) -> Result<(), SlruError> {
        if self.active {
            return Ok(());
        }
        let page = page_of(next_xid);
        self.pages.set_latest(page);
        if !self.range.oldest.is_valid() {
            self.range = CommitTsRange {
                oldest: next_xid,
                newest: next_xid,
            };
        }
        if !self.pages.exists(page)? {
            self.pages.zero_and_write(page)?;
        }
        self.active = true;
        Ok(())
    }

    pub(super) fn deactivate(&mut self) -> Result<(), SlruError> {
        self.active = false;
        self.range = CommitTsRange::default();
        self.pages.delete_segments(|_| true)
    }

    pub(super) fn set(
        &mut self,
        xid: TransactionId,
        subxids: impl Iterator<Item = TransactionId>,
        time: i64,
        origin: RepOriginId,
    ) -> Result<(), SlruError> {
        if !self.active {
            return Ok(());
        }
        let mut entry = [0; ENTRY_BYTES];
        entry[..8].copy_from_slice(&time.to_le_bytes());
        entry[8..].copy_from_slice(&origin.0.to_le_bytes());
        let mut last = xid;
        for xid in std::iter::once(xid).chain(subxids) {
            let at = (xid.0 % XIDS_PER_PAGE) as usize * ENTRY_BYTES;
            self.pages.page_mut(page_of(xid))?[at..at + ENTRY_BYTES].copy_from_slice(&entry);
            last = xid;
        }
        if self.range.newest.precedes(last) {
            self.range.newest = last;
        }
        Ok(())
    }

    pub(super) fn zero_page(&mut self, page: u64) -> Result<(), SlruError> {
        let page = self.pages.check(page)?;
        self.pages.zero_and_write(page)
    }

    /// `commit_ts_redo`. The record's page becomes the latest one, which lifts the check against
    /// a wraparound: in a server the real one is not known at this point.
    pub(super) fn truncate(
        &mut self,
        page: u64,
        oldest_xid: TransactionId,
    ) -> Result<Truncation, SlruError> {
        let cutoff = self.pages.check(page)?;
        let oldest = self.range.oldest;
        if oldest.is_valid() && oldest.precedes(oldest_xid) {
            self.range.oldest = oldest_xid;
        }
        self.pages.set_latest(cutoff);
        self.pages.truncate(cutoff)
    }

    /// `CompleteCommitTsInitialization`: with the module off, leftover files go.
    pub(super) fn finish(&mut self) -> Result<(), SlruError> {
        self.pages.end_replay();
        if self.active {
            return Ok(());
        }
        self.deactivate()
    }

    pub(super) fn flush(&mut self, sync: bool) -> Result<(), SlruError> {
        self.pages.flush(sync)
    }

    pub(super) fn files_read_as_zeros(&self) -> Vec<PathBuf> {
        self.pages.files_read_as_zeros()
    }
}

fn page_of(xid: TransactionId) -> u32 {
    xid.0 / XIDS_PER_PAGE
}
