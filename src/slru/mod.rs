//! The SLRUs that WAL changes: `pg_xact`, `pg_multixact` and `pg_commit_ts`.
//!
//! [`Slrus`] is what the redo loop speaks to. Behind it `pages` keeps a bounded number of
//! pages per SLRU in memory (`src/backend/access/transam/slru.c`), and one file per SLRU knows
//! what the bytes mean.
//!
//! `pg_subtrans` has no part here. It does not outlive a run of the server: every start makes it
//! anew from the prepared transactions (`StartupSUBTRANS`), so what a recovery leaves in it is
//! read by nobody.

mod clog;
mod commit_ts;
mod multixact;
mod pages;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

use thiserror::Error;

use crate::pgdata::DataDir;
use crate::sys::SysError;
use crate::types::{MultiXactId, MultiXactOffset, RepOriginId, TransactionId};

pub use clog::XidState;
pub use commit_ts::CommitTsRange;
pub use multixact::MembersCutoff;

use clog::Clog;
use commit_ts::CommitTs;
use multixact::MultiXact;

/// Pages in one segment file (`SLRU_PAGES_PER_SEGMENT`).
pub const PAGES_PER_SEGMENT: u32 = 32;

/// One of the SLRUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slru {
    /// `pg_xact`.
    Clog,
    /// `pg_multixact/offsets`.
    MultiXactOffsets,
    /// `pg_multixact/members`.
    MultiXactMembers,
    /// `pg_commit_ts`.
    CommitTs,
}

impl Slru {
    /// Its directory below the data directory.
    pub fn directory(self) -> &'static str {
        match self {
            Slru::Clog => "pg_xact",
            Slru::MultiXactOffsets => "pg_multixact/offsets",
            Slru::MultiXactMembers => "pg_multixact/members",
            Slru::CommitTs => "pg_commit_ts",
        }
    }

    /// Ids, or members, on one page.
    pub fn entries_per_page(self) -> u32 {
        match self {
            Slru::Clog => clog::XIDS_PER_PAGE,
            Slru::MultiXactOffsets => multixact::OFFSETS_PER_PAGE,
            Slru::MultiXactMembers => multixact::MEMBERS_PER_PAGE,
            Slru::CommitTs => commit_ts::XIDS_PER_PAGE,
        }
    }

    /// The page of the highest 32-bit id. No valid record names a page above it.
    pub fn max_page(self) -> u32 {
        u32::MAX / self.entries_per_page()
    }

    /// `PagePrecedes` of this SLRU: `a` is wholly before `b` in the order of the ids, which
    /// wraps. The constants added keep the two ids compared off the special ones.
    fn page_precedes(self, a: u32, b: u32) -> bool {
        let per_page = self.entries_per_page();
        let first = |page: u32, add: u32| page.wrapping_mul(per_page).wrapping_add(add);
        let last = per_page - 1;
        match self {
            Slru::Clog | Slru::CommitTs => {
                let add = TransactionId::FIRST_NORMAL.0 + 1;
                let (a, b) = (first(a, add), first(b, add));
                let before = |x| TransactionId(a).precedes(TransactionId(x));
                before(b) && before(b.wrapping_add(last))
            }
            Slru::MultiXactOffsets => {
                let add = MultiXactId::FIRST.0 + 1;
                let (a, b) = (first(a, add), first(b, add));
                let before = |x| MultiXactId(a).precedes(MultiXactId(x));
                before(b) && before(b.wrapping_add(last))
            }
            Slru::MultiXactMembers => {
                let (a, b) = (first(a, 0), first(b, 0));
                let before = |x| MultiXactOffset(a).precedes(MultiXactOffset(x));
                before(b) && before(b.wrapping_add(last))
            }
        }
    }
}

/// What came of a request to remove old segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a server logs an apparent wraparound"]
pub enum Truncation {
    /// The segments before the cutoff are gone.
    Done,
    /// Nothing was removed: the cutoff is ahead of the newest page. A server logs
    /// `could not truncate directory "...": apparent wraparound` and goes on.
    ApparentWraparound,
}

/// A record, or a file, that does not fit the SLRU.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SlruError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A page number beyond the one of the highest 32-bit id.
    #[error("page {page} of {} is out of range, the last possible one is {max}", slru.directory())]
    PageOutOfRange {
        /// The SLRU.
        slru: Slru,
        /// The page asked for.
        page: u64,
        /// The highest page there can be.
        max: u32,
    },
    /// A segment file is there but ends before the page. A server stops here too.
    #[error(
        "could not read page {page} from file \"{}\": {read} of {} bytes are there",
        path.display(), crate::types::BLOCK_BYTES
    )]
    ShortFile {
        /// The segment file.
        path: PathBuf,
        /// The page asked for, counted from the start of the SLRU.
        page: u32,
        /// Bytes of it that are there.
        read: usize,
    },
    /// A page is needed after the end of the replay, and its segment file is missing.
    #[error("file \"{}\" is missing, page {page} must be in it", path.display())]
    MissingFile {
        /// The segment file.
        path: PathBuf,
        /// The page asked for, counted from the start of the SLRU.
        page: u32,
    },
}

/// The counters of a checkpoint that say where the SLRUs end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlruEnds {
    /// The next transaction id.
    pub next_xid: TransactionId,
    /// The next multixact.
    pub next_multi: MultiXactId,
    /// Where the members of the next multixact start.
    pub next_multi_offset: MultiXactOffset,
}

/// All SLRUs of a data directory.
#[derive(Debug)]
pub struct Slrus {
    clog: Clog,
    multixact: MultiXact,
    commit_ts: CommitTs,
}

impl Slrus {
    /// Starts with the counters of the starting checkpoint (`StartupCLOG`, `StartupMultiXact`).
    /// No file is touched. Commit timestamps are off until [`Slrus::activate_commit_ts`].
    pub fn open(dir: &DataDir, ends: SlruEnds, commit_ts: CommitTsRange) -> Slrus {
        Slrus {
            clog: Clog::open(dir, ends.next_xid),
            multixact: MultiXact::open(dir, ends.next_multi, ends.next_multi_offset),
            commit_ts: CommitTs::open(dir, commit_ts),
        }
    }

    /// Marks a transaction and its subtransactions as finished (`TransactionIdSetTreeStatus`).
    pub fn set_xid_status(
        &mut self,
        xid: TransactionId,
        subxids: impl Iterator<Item = TransactionId>,
        state: XidState,
    ) -> Result<(), SlruError> {
        self.clog.set_tree_state(xid, subxids, state)
    }

    /// How a transaction stands in pg_xact.
    pub fn xid_state(&mut self, xid: TransactionId) -> Result<XidState, SlruError> {
        self.clog.state(xid)
    }

    /// Stores the commit time of a transaction and its subtransactions, if the module is active
    /// (`TransactionTreeSetCommitTsData`). `time` counts microseconds since 2000-01-01.
    pub fn set_commit_timestamp(
        &mut self,
        xid: TransactionId,
        subxids: impl Iterator<Item = TransactionId>,
        time: i64,
        origin: RepOriginId,
    ) -> Result<(), SlruError> {
        self.commit_ts.set(xid, subxids, time, origin)
    }

    /// Turns commit timestamps on (`ActivateCommitTs`): at the start if pg_control says so, and
    /// when PARAMETER_CHANGE does. Does nothing if they are on.
    pub fn activate_commit_ts(&mut self, next_xid: TransactionId) -> Result<(), SlruError> {
        self.commit_ts.activate(next_xid)
    }

    /// Turns commit timestamps off and removes all of them (`DeactivateCommitTs`).
    pub fn deactivate_commit_ts(&mut self) -> Result<(), SlruError> {
        self.commit_ts.deactivate()
    }

    /// True while commit timestamps are stored.
    pub fn commit_ts_is_active(&self) -> bool {
        self.commit_ts.is_active()
    }

    /// The oldest and newest transaction with a commit timestamp, for the checkpoint record.
    pub fn commit_ts_range(&self) -> CommitTsRange {
        self.commit_ts.range()
    }

    /// A ZEROPAGE record: the page is written as zeros at once.
    pub fn zero_page(&mut self, slru: Slru, page: u64) -> Result<(), SlruError> {
        match slru {
            Slru::Clog => self.clog.zero_page(page),
            Slru::MultiXactOffsets => self.multixact.zero_offsets_page(page),
            Slru::MultiXactMembers => self.multixact.zero_members_page(page),
            Slru::CommitTs => self.commit_ts.zero_page(page),
        }
    }

    /// CLOG TRUNCATE: segments before `page` go.
    pub fn truncate_clog(&mut self, page: u64) -> Result<Truncation, SlruError> {
        self.clog.truncate(page)
    }

    /// COMMIT_TS TRUNCATE: segments before `page` go, `oldest_xid` is the oldest one kept.
    pub fn truncate_commit_ts(
        &mut self,
        page: u64,
        oldest_xid: TransactionId,
    ) -> Result<Truncation, SlruError> {
        self.commit_ts.truncate(page, oldest_xid)
    }

    /// MultiXact CREATE_ID; members are transaction and `MultiXactStatus`.
    pub fn create_multixact(
        &mut self,
        id: MultiXactId,
        offset: MultiXactOffset,
        members: impl ExactSizeIterator<Item = (TransactionId, u8)>,
    ) -> Result<(), SlruError> {
        self.multixact.create(id, offset, members)
    }

    /// MultiXact TRUNCATE_ID: members in `members` and offsets before `end_multi` go, segment by
    /// segment.
    pub fn truncate_multixact(
        &mut self,
        end_multi: MultiXactId,
        members: MembersCutoff,
    ) -> Result<Truncation, SlruError> {
        self.multixact.truncate(end_multi, members)
    }

    /// After the last record: what lies beyond the counters is zeroed (`TrimCLOG`,
    /// `TrimMultiXact`), and commit timestamps are removed if they are off. From here on a
    /// missing file is an error.
    pub fn trim(&mut self, ends: SlruEnds) -> Result<(), SlruError> {
        self.clog.trim(ends.next_xid)?;
        self.multixact
            .trim(ends.next_multi, ends.next_multi_offset)?;
        self.commit_ts.finish()
    }

    /// Writes all changed pages and, with `sync`, makes everything written so far durable.
    pub fn flush(&mut self, sync: bool) -> Result<(), SlruError> {
        self.clog.flush(sync)?;
        self.multixact.flush(sync)?;
        self.commit_ts.flush(sync)
    }

    /// Segment files that were missing when a page of them was needed, and were read as zeros.
    /// A server logs each of them.
    pub fn files_read_as_zeros(&self) -> Vec<PathBuf> {
        let mut paths = self.clog.files_read_as_zeros();
        paths.extend(self.multixact.files_read_as_zeros());
        paths.extend(self.commit_ts.files_read_as_zeros());
        paths
    }
}
