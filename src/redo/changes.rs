//! Changes to everything but pages, each in the order PostgreSQL's redo has.

use super::truncate::TruncateForks;
use super::{Redo, RedoErrorKind};
use crate::decode::Record;
use crate::pgdata::relmap::write_relation_map;
use crate::pgdata::twophase::Prepared;
use crate::rmgr::{Change, CreateMultiXact, Parameters, SlruKind, XidStatus};
use crate::slru::{MembersCutoff, Slru, Truncation, XidState};
use crate::types::{ForkNumber, MultiXactOffset, RelFileLocator};

impl Redo {
    /// Redoes one change of a record.
    pub(super) fn apply_change(
        &mut self,
        record: &Record<'_>,
        change: &Change<'_>,
    ) -> Result<(), RedoErrorKind> {
        if self.smgr.is_overlay() && !self.concerns_pages(change) {
            return Ok(());
        }
        match change {
            Change::CreateFork { locator, fork } => {
                let fork = self.smgr.fork(*locator, *fork);
                Ok(self.smgr.create(fork)?)
            }
            Change::TruncateRelation {
                locator,
                blocks,
                main,
                vm,
                fsm,
            } => {
                let forks = TruncateForks {
                    main: *main,
                    vm: *vm,
                    fsm: *fsm,
                };
                Ok(self.truncate_relation(*locator, *blocks, forks)?)
            }
            Change::DropRelation { locator } => self.drop_relation(*locator),
            Change::CopyDatabase {
                db,
                spc,
                src_db,
                src_spc,
            } => self.copy_database((*spc, *db), (*src_spc, *src_db)),
            Change::CreateDatabase { db, spc } => self.create_database(*spc, *db),
            Change::DropDatabase { db, spcs } => self.drop_database(*db, spcs.iter()),
            Change::CreateTablespace { spc, path } => self.create_tablespace(*spc, path),
            Change::DropTablespace { spc } => self.drop_tablespace(*spc),
            Change::RelationMap { db, spc, map } => {
                Ok(write_relation_map(&self.dir, *spc, *db, map)?)
            }
            Change::RelcacheInitFile { .. } => {
                // All of them were removed before the first record, and nobody makes new ones
                // while no server runs (`RelationCacheInitFileRemove`).
                Ok(())
            }
            Change::Prepare { xid, data } => {
                if self.two_phase.prepare(*xid, data)? == Prepared::RestoredFromDisk {
                    self.notices.push(format!(
                        "two-phase state file has been found in WAL record {}, but this \
                         transaction has already been restored from disk",
                        record.lsn
                    ));
                }
                Ok(())
            }
            Change::FinishPrepared { xid } => Ok(self.two_phase.finish(*xid)?),
            Change::AdvanceOrigin {
                origin,
                remote_lsn,
                force,
            } => {
                self.origins.advance(*origin, *remote_lsn, *force);
                Ok(())
            }
            Change::DropOrigin { origin } => {
                self.origins.drop_origin(*origin);
                Ok(())
            }
            Change::RewriteMapping { data } => self.write_rewrite_mapping(record, data),
            Change::XidStatus { .. }
            | Change::CommitTimestamp(_)
            | Change::SlruZeroPage { .. }
            | Change::TruncateClog { .. }
            | Change::TruncateCommitTs { .. }
            | Change::CreateMultiXact(_)
            | Change::TruncateMultiXact(_) => self.apply_slru_change(record, change),
            Change::NextOid(_)
            | Change::ShutdownCheckpoint(_)
            | Change::OnlineCheckpoint(_)
            | Change::FullPageWrites(_)
            | Change::Parameters(_)
            | Change::EndOfRecovery { .. }
            | Change::BackupEnd { .. }
            | Change::OverwriteContrecord { .. } => self.apply_control_change(record, change),
        }
    }

    /// `DropRelationFiles` in redo: all forks at once, pages in memory with them.
    fn drop_relation(&mut self, locator: RelFileLocator) -> Result<(), RedoErrorKind> {
        self.missing.forget_relation(locator);
        for number in ForkNumber::ALL {
            if let Some(fork) = self.smgr.known_fork(locator, number) {
                self.pool.discard(fork, 0);
            }
        }
        Ok(self.smgr.unlink(locator)?)
    }

    fn apply_slru_change(
        &mut self,
        record: &Record<'_>,
        change: &Change<'_>,
    ) -> Result<(), RedoErrorKind> {
        match change {
            Change::XidStatus {
                xid,
                subxids,
                status,
            } => {
                // xid and subxids are one group: the newest of them moves the counter.
                self.counters.see_xid(*xid);
                subxids.iter().for_each(|sub| self.counters.see_xid(sub));
                let state = match status {
                    XidStatus::Committed => XidState::Committed,
                    XidStatus::Aborted => XidState::Aborted,
                };
                Ok(self.slrus.set_xid_status(*xid, subxids.iter(), state)?)
            }
            Change::CommitTimestamp(ts) => {
                let subxids = ts.subxids.iter();
                Ok(self
                    .slrus
                    .set_commit_timestamp(ts.xid, subxids, ts.time, ts.origin)?)
            }
            Change::SlruZeroPage { slru, page } => {
                Ok(self.slrus.zero_page(slru_of(*slru), *page)?)
            }
            Change::TruncateClog { page, .. } => {
                let done = self.slrus.truncate_clog(*page)?;
                self.note_truncation(Slru::Clog, done);
                Ok(())
            }
            Change::TruncateCommitTs { page, oldest_xid } => {
                let done = self.slrus.truncate_commit_ts(*page, *oldest_xid)?;
                self.note_truncation(Slru::CommitTs, done);
                Ok(())
            }
            Change::CreateMultiXact(create) => self.create_multixact(record, create),
            Change::TruncateMultiXact(t) => {
                self.counters
                    .truncate_multi(t.end_trunc_off, t.oldest_multi_db);
                let members = MembersCutoff {
                    start: t.start_trunc_memb,
                    end: t.end_trunc_memb,
                };
                let done = self.slrus.truncate_multixact(t.end_trunc_off, members)?;
                self.note_truncation(Slru::MultiXactOffsets, done);
                Ok(())
            }
            other => unreachable!("{other:?} does not change an SLRU"),
        }
    }

    fn note_truncation(&mut self, slru: Slru, done: Truncation) {
        if done == Truncation::ApparentWraparound {
            self.notices.push(format!(
                "could not truncate directory \"{}\": apparent wraparound",
                slru.directory()
            ));
        }
    }

    fn create_multixact(
        &mut self,
        record: &Record<'_>,
        create: &CreateMultiXact<'_>,
    ) -> Result<(), RedoErrorKind> {
        let members = create.members.iter().map(|m| (m.xid, m.status as u8));
        self.slrus
            .create_multixact(create.id, create.offset, members)?;
        let after = create.offset.0.wrapping_add(create.members.len() as u32);
        // The counter itself may wrap to 0; whoever assigns from it skips that.
        let next = crate::types::MultiXactId(create.id.0.wrapping_add(1));
        self.counters.see_multi(next, MultiXactOffset(after));
        self.counters.see_xid(record.xid);
        create
            .members
            .iter()
            .for_each(|m| self.counters.see_xid(m.xid));
        Ok(())
    }

    fn apply_control_change(
        &mut self,
        record: &Record<'_>,
        change: &Change<'_>,
    ) -> Result<(), RedoErrorKind> {
        match change {
            Change::NextOid(oid) => self.counters.next_oid = *oid,
            Change::ShutdownCheckpoint(checkpoint) => {
                self.counters.shutdown_checkpoint(checkpoint);
            }
            Change::OnlineCheckpoint(checkpoint) => {
                if checkpoint.this_tli != self.counters.tli {
                    return Err(RedoErrorKind::Inconsistent(format!(
                        "unexpected timeline ID {} (should be {}) in online checkpoint record",
                        checkpoint.this_tli, self.counters.tli
                    )));
                }
                self.counters.online_checkpoint(checkpoint);
            }
            Change::FullPageWrites(on) => self.counters.full_page_writes = *on,
            Change::Parameters(parameters) => self.change_parameters(parameters)?,
            Change::EndOfRecovery {
                this_tli, prev_tli, ..
            } => {
                if *prev_tli != self.counters.tli {
                    return Err(RedoErrorKind::Inconsistent(format!(
                        "unexpected previous timeline ID {prev_tli} (current timeline ID {}) in \
                         end-of-recovery record",
                        self.counters.tli
                    )));
                }
                self.counters.tli = *this_tli;
            }
            Change::OverwriteContrecord { overwritten } => {
                if *overwritten != self.skipped_contrecord {
                    return Err(RedoErrorKind::Inconsistent(format!(
                        "mismatching overwritten LSN {overwritten} -> {}",
                        self.skipped_contrecord
                    )));
                }
                self.notices.push(format!(
                    "successfully skipped missing contrecord at {overwritten}, overwritten at {}",
                    record.lsn
                ));
            }
            Change::BackupEnd { .. } => {}
            other => unreachable!("{other:?} is not a matter of pg_control"),
        }
        Ok(())
    }

    /// PARAMETER_CHANGE. Commit timestamps go on or off with it; pg_control is written at the
    /// end only.
    fn change_parameters(&mut self, parameters: &Parameters) -> Result<(), RedoErrorKind> {
        match (
            self.parameters.track_commit_timestamp,
            parameters.track_commit_timestamp,
        ) {
            (_, true) => self
                .slrus
                .activate_commit_ts(self.counters.next_xid.xid())?,
            (true, false) => self.slrus.deactivate_commit_ts()?,
            (false, false) => {}
        }
        self.parameters = *parameters;
        Ok(())
    }
}

fn slru_of(kind: SlruKind) -> Slru {
    match kind {
        SlruKind::Clog => Slru::Clog,
        SlruKind::MultiXactOffsets => Slru::MultiXactOffsets,
        SlruKind::MultiXactMembers => Slru::MultiXactMembers,
        SlruKind::CommitTs => Slru::CommitTs,
    }
}
