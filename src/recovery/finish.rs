//! The end of a recovery: from the last record to a directory that needs none.

use std::time::{SystemTime, UNIX_EPOCH};

use super::run::report;
use super::{Observer, Recovery, RecoveryError};
use crate::pgdata::control::{CONTROL_FILE_PATH, ControlFile, DbState};
use crate::pgdata::relmap::RelationMapError;
use crate::pgdata::sync::{sync_file_systems, sync_tree};
use crate::pgdata::{cleanup, lockfile, reinit, relmap, slots};
use crate::redo::Redo;
use crate::smgr::SyncMethod;
use crate::types::{CheckPoint, Lsn, MultiXactId, RmgrId, TimeLineId, TimestampTz, TransactionId};
use crate::wal::{NewRecord, WAL_PAGE_BYTES, WalAppender};

const XLOG_CHECKPOINT_SHUTDOWN: u8 = 0x00;
const XLOG_OVERWRITE_CONTRECORD: u8 = 0xD0;

/// `FirstNormalUnloggedLSN`.
const FIRST_UNLOGGED_LSN: Lsn = Lsn(1000);

impl Recovery {
    /// What `StartupXLOG` does after the last record, up to its checkpoint. The order matters:
    /// everything is durable before the checkpoint record, and that before pg_control.
    pub(super) fn finish(
        &self,
        redo: &mut Redo,
        observer: &mut dyn Observer,
    ) -> Result<Lsn, RecoveryError> {
        self.judge_missing(redo, observer)?;
        self.judge_relation_maps(observer)?;
        let failed = RecoveryError::state("finishing recovery");
        redo.finish().map_err(&failed)?;
        report(redo, observer);
        let sync = self.options.sync == SyncMethod::Fsync;
        reinit::init_unlogged_relations(&self.dir, sync)?;
        let slots = slots::restore_slots(&self.dir).map_err(|e| failed(e.into()))?;
        let wal = self.end_of_wal();
        cleanup::remove_logical_leftovers(&self.dir, wal.checkpoint, &slots)?;
        lockfile::remove_lock_file(&self.dir)?;
        redo.sync().map_err(&failed)?;
        self.sync_directory()?;
        let checkpoint = self.checkpoint_body(redo, wal.checkpoint);
        self.append(wal, &checkpoint)?;
        self.write_control(self.final_control(redo, checkpoint))?;
        Ok(checkpoint.redo)
    }

    /// References to missing pages that nothing has explained: a server forgets them.
    fn judge_missing(&self, redo: &Redo, observer: &mut dyn Observer) -> Result<(), RecoveryError> {
        if redo.missing().is_empty() {
            return Ok(());
        }
        for (tag, missing) in redo.missing().iter().take(20) {
            let what = if missing.is_zero {
                "is uninitialized"
            } else {
                "does not exist"
            };
            observer.warning(&format!(
                "page {} of relation {} fork {} {what}, first referenced by the record at {}",
                tag.block,
                tag.locator,
                tag.fork.name(),
                missing.lsn
            ));
        }
        let count = redo.missing().len();
        if self.options.strict {
            return Err(RecoveryError::MissingPages(count));
        }
        observer.warning(&format!("WAL contains references to {count} missing pages"));
        Ok(())
    }

    /// Damage of a relation map would show when sessions come, and no sooner. An empty one is
    /// what a crash leaves of CREATE DATABASE by file copy, before any WAL of it: nobody needs it.
    fn judge_relation_maps(&self, observer: &mut dyn Observer) -> Result<(), RecoveryError> {
        for (path, error) in relmap::check_relation_maps(&self.dir)? {
            let is_empty = matches!(error, RelationMapError::Length { bytes: 0, .. });
            if !is_empty || path.starts_with(self.dir.path("global")) {
                return Err(RecoveryError::RelationMap { path, error });
            }
            observer.warning(&format!("\"{}\" is empty", path.display()));
        }
        Ok(())
    }

    /// Where the records that end the recovery go.
    fn end_of_wal(&self) -> End {
        let end = &self.survey.end;
        let tli = self.source.history().timeline_of(end.lsn);
        let tli = tli.unwrap_or(self.source.history().target());
        let layout = *self.source.layout();
        let appender = match end.torn {
            Some(torn) => WalAppender::new(layout, tli, self.survey.last_record, torn.missing, &[])
                .overwriting_contrecord(),
            None => {
                let tail = self.tail_before(end.lsn);
                WalAppender::new(layout, tli, self.survey.last_record, end.lsn, &tail)
            }
        };
        let mut end = End {
            appender,
            checkpoint: Lsn::INVALID,
        };
        if let Some(torn) = self.survey.end.torn {
            let mut body = torn.aborted.0.to_le_bytes().to_vec();
            body.extend(
                TimestampTz::from_unix_seconds(unix_seconds())
                    .0
                    .to_le_bytes(),
            );
            end.appender.append(NewRecord {
                rmid: RmgrId::XLOG,
                info: XLOG_OVERWRITE_CONTRECORD,
                main_data: &body,
            });
        }
        end.checkpoint = end.appender.next_record();
        end
    }

    /// The bytes of the page that holds `end`, before it.
    fn tail_before(&self, end: Lsn) -> Vec<u8> {
        let page = Lsn(end.0 - end.0 % WAL_PAGE_BYTES);
        let used = (end.0 - page.0) as usize;
        if used == 0 {
            return Vec::new();
        }
        let segno = self.source.layout().segno(page);
        let segment = self.source.open(segno, TimeLineId(0)).ok().flatten();
        let segment = segment.expect("the segment was read a moment ago");
        segment.page(page).expect("the page was read a moment ago")[..used].to_vec()
    }

    fn append(&self, mut wal: End, checkpoint: &CheckPoint) -> Result<(), RecoveryError> {
        let at = wal.appender.append(NewRecord {
            rmid: RmgrId::XLOG,
            info: XLOG_CHECKPOINT_SHUTDOWN,
            main_data: &checkpoint.to_bytes(),
        });
        assert_eq!(
            at, checkpoint.redo,
            "a shutdown checkpoint is its own redo location"
        );
        // A server looks for the segment in pg_wal only.
        let first = self.source.layout().segno(self.survey.end.lsn);
        let elsewhere = self
            .source
            .open(first, TimeLineId(0))?
            .map(|s| s.bytes().to_vec());
        let sync = self.options.sync != SyncMethod::None;
        let directory = self.dir.path("pg_wal");
        wal.appender.write(
            self.dir.kernel(),
            directory,
            elsewhere.as_deref(),
            self.dir.file_mode(),
            sync,
        )?;
        Ok(())
    }

    /// `CreateCheckPoint` at the end of recovery.
    fn checkpoint_body(&self, redo: &Redo, at: Lsn) -> CheckPoint {
        let counters = redo.counters();
        let commit_ts = redo.commit_ts_range();
        CheckPoint {
            redo: at,
            this_tli: counters.tli,
            prev_tli: counters.tli,
            full_page_writes: counters.full_page_writes,
            wal_level: 0,
            next_xid: counters.next_xid,
            next_oid: counters.next_oid,
            next_multi: MultiXactId(counters.next_multi.0.max(1)),
            next_multi_offset: counters.next_multi_offset,
            oldest_xid: counters.oldest_xid,
            oldest_xid_db: counters.oldest_xid_db,
            oldest_multi: counters.oldest_multi,
            oldest_multi_db: counters.oldest_multi_db,
            time: unix_seconds(),
            oldest_commit_ts_xid: commit_ts.oldest,
            newest_commit_ts_xid: commit_ts.newest,
            oldest_active_xid: TransactionId::INVALID,
        }
    }

    /// pg_control of a cluster that was shut down.
    fn final_control(&self, redo: &Redo, checkpoint: CheckPoint) -> ControlFile {
        let parameters = redo.parameters();
        ControlFile {
            state: DbState::Shutdowned,
            check_point: checkpoint.redo,
            check_point_copy: checkpoint,
            unlogged_lsn: FIRST_UNLOGGED_LSN,
            min_recovery_point: Lsn::INVALID,
            min_recovery_point_tli: TimeLineId(0),
            backup_start_point: Lsn::INVALID,
            backup_end_point: Lsn::INVALID,
            backup_end_required: false,
            wal_level: parameters.wal_level,
            wal_log_hints: parameters.wal_log_hints,
            max_connections: parameters.max_connections,
            max_worker_processes: parameters.max_worker_processes,
            max_wal_senders: parameters.max_wal_senders,
            max_prepared_xacts: parameters.max_prepared_xacts,
            max_locks_per_xact: parameters.max_locks_per_xact,
            track_commit_timestamp: parameters.track_commit_timestamp,
            ..self.control.clone()
        }
    }

    /// Writes pg_control with the time of now, durably (`update_controlfile`,
    /// `src/common/controldata_utils.c`). One call overwrites it in place, as the server does: its
    /// fields fit into a sector, and a run that is cut off leaves no temporary file that the
    /// server would never remove.
    pub(super) fn write_control(&self, mut control: ControlFile) -> Result<(), RecoveryError> {
        control.time = unix_seconds();
        let path = self.dir.path(CONTROL_FILE_PATH);
        let file = self.dir.kernel().open_write(&path)?;
        file.write_at(&control.to_bytes(), 0)?;
        Ok(file.fsync()?)
    }

    /// `SyncDataDirectory`: files that the crashed server, or a killed run, had written and not
    /// synced need no redo from the checkpoint that is about to be written, so they must be safe
    /// now. PostgreSQL does the same when it starts after a crash.
    fn sync_directory(&self) -> Result<(), RecoveryError> {
        match self.options.sync {
            SyncMethod::None => Ok(()),
            SyncMethod::Syncfs => Ok(sync_file_systems(self.dir.kernel(), self.dir.root())?),
            SyncMethod::Fsync => {
                // WAL segments were not written by this run and are read-only input.
                let skip = Some(self.dir.path("pg_wal"));
                let kernel = self.dir.kernel();
                Ok(sync_tree(kernel, self.dir.root(), skip.as_deref())?)
            }
        }
    }
}

/// The records after the end of WAL, in the making.
struct End {
    appender: WalAppender,
    checkpoint: Lsn,
}

fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| d.as_secs() as i64)
}
