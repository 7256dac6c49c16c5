//! Redo that leaves the directory as it is: pages live in the buffer pool, which is as large as
//! it has to be, over relation files that are only read.
//!
//! What concerns no page of a relation is not redone at all: transaction status, prepared
//! transactions, relation maps, replication. Redo of pages never asks for it.

use super::{OtherState, Redo, RedoErrorKind, RedoOptions};
use crate::buffer::BufferPool;
use crate::pgdata::DataDir;
use crate::pgdata::control::ControlFile;
use crate::pgdata::origins::Origins;
use crate::pgdata::twophase::TwoPhase;
use crate::rmgr::Change;
use crate::slru::{CommitTsRange, SlruEnds, Slrus};
use crate::smgr::Smgr;
use crate::types::{CheckPoint, Oid};

impl Redo {
    /// The state as the starting checkpoint describes it, over files that are only read. The
    /// size of the buffer pool in `options` does not count.
    pub fn start_overlay(
        dir: DataDir,
        control: &ControlFile,
        checkpoint: &CheckPoint,
        options: RedoOptions,
    ) -> Redo {
        let commit_ts = CommitTsRange {
            oldest: checkpoint.oldest_commit_ts_xid,
            newest: checkpoint.newest_commit_ts_xid,
        };
        let state = OtherState {
            slrus: Slrus::open(&dir, SlruEnds::default(), commit_ts),
            two_phase: TwoPhase::none(&dir),
            origins: Origins::default(),
        };
        let smgr = Smgr::overlay(dir.clone(), options.smgr);
        let pool = BufferPool::new(usize::MAX);
        Redo::with(dir, control, checkpoint, (smgr, pool), state, options)
    }

    /// Whether pages, or which pages there are, depend on the change.
    pub(super) fn concerns_pages(&self, change: &Change<'_>) -> bool {
        match change {
            Change::CreateFork { .. }
            | Change::TruncateRelation { .. }
            | Change::DropRelation { .. }
            | Change::CopyDatabase { .. }
            | Change::DropDatabase { .. } => true,
            // The directory only: forks follow in records of their own.
            Change::CreateDatabase { .. }
            | Change::CreateTablespace { .. }
            | Change::DropTablespace { .. }
            | Change::RelationMap { .. }
            | Change::RelcacheInitFile { .. }
            | Change::Prepare { .. }
            | Change::FinishPrepared { .. }
            | Change::AdvanceOrigin { .. }
            | Change::DropOrigin { .. }
            | Change::RewriteMapping { .. }
            | Change::XidStatus { .. }
            | Change::CommitTimestamp(_)
            | Change::SlruZeroPage { .. }
            | Change::TruncateClog { .. }
            | Change::TruncateCommitTs { .. }
            | Change::CreateMultiXact(_)
            | Change::TruncateMultiXact(_)
            | Change::NextOid(_)
            | Change::ShutdownCheckpoint(_)
            | Change::OnlineCheckpoint(_)
            | Change::FullPageWrites(_)
            | Change::Parameters(_)
            | Change::EndOfRecovery { .. }
            | Change::BackupEnd { .. }
            | Change::OverwriteContrecord { .. } => false,
        }
    }

    /// CREATE DATABASE with the FILE_COPY strategy: the new forks read the template's files, and
    /// pages in memory are copied.
    pub(super) fn copy_database_in_memory(
        &mut self,
        (spc, db): (Oid, Oid),
        source: (Oid, Oid),
    ) -> Result<(), RedoErrorKind> {
        for fork in self.smgr.forks_of_database(db, Some(spc)) {
            self.pool.discard(fork, 0);
        }
        for copied in self.smgr.copy_database((spc, db), source)? {
            self.pool
                .copy_fork(&mut self.smgr, copied.from, copied.to)?;
        }
        Ok(())
    }
}
