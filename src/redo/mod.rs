//! The redo loop: windows of records, applied to pages and to everything else.
//!
//! [`Redo`] holds the state of the cluster while WAL is redone. Records come in through a
//! [`Window`]; what they do comes from `rmgr`; where it is done is here. The theory is in
//! `README.md` beside this file.

mod changes;
mod consistency;
mod counters;
mod database;
mod error;
mod missing;
mod on_page;
mod overlay;
mod page_order;
mod pages;
mod plan;
mod rewrite;
mod tablespace;
mod truncate;
mod window;
mod worker;

use crate::buffer::{BufferPool, PoolStats};
use crate::decode::{ImageRestorer, Record};
use crate::pgdata::DataDir;
use crate::pgdata::control::ControlFile;
use crate::pgdata::origins::Origins;
use crate::pgdata::twophase::{Dropped, TwoPhase};
use crate::rmgr::{Parameters, RedoSettings};
use crate::slru::{CommitTsRange, SlruEnds, Slrus};
use crate::smgr::{CacheStats, Smgr, SmgrOptions, SyncMethod};
use crate::types::{BLOCK_BYTES, CheckPoint, Lsn, TransactionId};

pub use consistency::{Difference, PageCheck};
pub use counters::Counters;
pub use error::{RedoError, RedoErrorKind, record_name};
pub use missing::{MissingPage, MissingPages};
pub use page_order::PageWindow;
pub use tablespace::TablespaceMap;
pub use window::{Window, WindowChange, WindowTouch};

/// How the loop works.
#[derive(Debug, Clone)]
pub struct RedoOptions {
    /// Size of the buffer pool, in bytes.
    pub buffers: u64,
    /// How relation files are treated.
    pub smgr: SmgrOptions,
    /// Workers of a window.
    pub jobs: usize,
    /// Where locations of tablespaces in the WAL lead to.
    pub tablespaces: TablespaceMap,
}

/// What was redone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RedoStats {
    /// Records.
    pub records: u64,
    /// Their block references.
    pub block_refs: u64,
    /// Page images restored.
    pub images: u64,
    /// Touches that later records made pointless.
    pub touches_dead: u64,
    /// Pages read from files by the workers of windows.
    pub pages_read: u64,
    /// Pages they wrote.
    pub pages_written: u64,
}

/// The cluster while WAL is redone.
#[derive(Debug)]
pub struct Redo {
    dir: DataDir,
    smgr: Smgr,
    pool: BufferPool,
    slrus: Slrus,
    two_phase: TwoPhase,
    origins: Origins,
    counters: Counters,
    parameters: Parameters,
    missing: MissingPages,
    settings: RedoSettings,
    restorer: ImageRestorer,
    tablespaces: TablespaceMap,
    sync: SyncMethod,
    jobs: usize,
    /// The unfinished record that the current one replaces, if any.
    skipped_contrecord: Lsn,
    /// Things PostgreSQL would log, for the caller to report.
    notices: Vec<String>,
    stats: RedoStats,
}

/// What is neither pages nor counters.
struct OtherState {
    slrus: Slrus,
    two_phase: TwoPhase,
    origins: Origins,
}

impl Redo {
    /// The state as the starting checkpoint describes it. Reads the two-phase files and the origin
    /// positions that are there; the caller has cleaned the directory up.
    pub fn start(
        dir: DataDir,
        control: &ControlFile,
        checkpoint: &CheckPoint,
        options: RedoOptions,
    ) -> Result<Redo, RedoErrorKind> {
        let ends = SlruEnds {
            next_xid: checkpoint.next_xid.xid(),
            next_multi: checkpoint.next_multi,
            next_multi_offset: checkpoint.next_multi_offset,
        };
        let commit_ts = CommitTsRange {
            oldest: checkpoint.oldest_commit_ts_xid,
            newest: checkpoint.newest_commit_ts_xid,
        };
        let mut slrus = Slrus::open(&dir, ends, commit_ts);
        if control.track_commit_timestamp {
            slrus.activate_commit_ts(checkpoint.next_xid.xid())?;
        }
        let next_xid = checkpoint.next_xid.xid();
        let (two_phase, dropped) =
            TwoPhase::restore(&dir, next_xid, |xid| is_finished(&mut slrus, xid))?;
        let origins = Origins::read(&dir)?;
        let state = OtherState {
            slrus,
            two_phase,
            origins,
        };
        let smgr = Smgr::new(dir.clone(), options.smgr);
        let pool = BufferPool::new((options.buffers / BLOCK_BYTES as u64) as usize);
        let notices = dropped.into_iter().map(dropped_notice).collect();
        Ok(Redo {
            notices,
            ..Redo::with(dir, control, checkpoint, (smgr, pool), state, options)
        })
    }

    fn with(
        dir: DataDir,
        control: &ControlFile,
        checkpoint: &CheckPoint,
        (smgr, pool): (Smgr, BufferPool),
        state: OtherState,
        options: RedoOptions,
    ) -> Redo {
        Redo {
            smgr,
            pool,
            slrus: state.slrus,
            two_phase: state.two_phase,
            origins: state.origins,
            counters: Counters::starting_from(checkpoint),
            parameters: parameters_of(control),
            missing: MissingPages::default(),
            settings: RedoSettings {
                hint_bits_are_logged: control.data_checksums() || control.wal_log_hints,
            },
            restorer: ImageRestorer::default(),
            tablespaces: options.tablespaces,
            sync: options.smgr.sync,
            jobs: options.jobs,
            skipped_contrecord: Lsn::INVALID,
            notices: Vec::new(),
            stats: RedoStats::default(),
            dir,
        }
    }

    /// Redoes a window, record by record: first what changes files and state, then pages. A
    /// record does one or the other.
    pub fn apply(&mut self, window: &Window<'_>) -> Result<(), Box<RedoError>> {
        let mut changes = window.changes().iter().peekable();
        let mut touches = window.touches().iter().peekable();
        for (index, record) in window.records().iter().enumerate() {
            self.note_record(record);
            while let Some(change) = changes.next_if(|c| c.record == index) {
                self.apply_change(record, &change.change)
                    .map_err(|kind| RedoError::new(record, None, kind))?;
            }
            while let Some(touch) = touches.next_if(|t| t.record == index) {
                let tag = Some(touch.touch.tag);
                self.apply_touch(record, &touch.touch)
                    .map_err(|kind| RedoError::new(record, tag, kind))?;
            }
        }
        Ok(())
    }

    /// What every record does, whatever it is.
    fn note_record(&mut self, record: &Record<'_>) {
        self.counters.see_xid(record.xid);
        self.skipped_contrecord = record.overwritten;
        self.stats.records += 1;
        self.stats.block_refs += record.blocks.len() as u64;
    }

    /// The counters as of the last record.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The parameters as of the last record.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The commit timestamps there are, for the checkpoint.
    pub fn commit_ts_range(&self) -> CommitTsRange {
        self.slrus.commit_ts_range()
    }

    /// What follows the last record: pages to their files, transactions that are still prepared
    /// to theirs, SLRUs trimmed to the counters (`StartupXLOG` after the loop). Nothing is
    /// synced yet.
    pub fn finish(&mut self) -> Result<(), RedoErrorKind> {
        self.pool.flush_all(&mut self.smgr)?;
        self.smgr.settle_all()?;
        let slrus = &mut self.slrus;
        let dropped = self
            .two_phase
            .prescan(&mut self.counters.next_xid, |xid| is_finished(slrus, xid))?;
        self.notices.extend(dropped.into_iter().map(dropped_notice));
        self.slrus.trim(SlruEnds {
            next_xid: self.counters.next_xid.xid(),
            next_multi: self.counters.next_multi,
            next_multi_offset: self.counters.next_multi_offset,
        })?;
        let sync = self.sync == SyncMethod::Fsync;
        self.slrus.flush(sync)?;
        self.two_phase.write_files(sync)?;
        self.origins.write(&self.dir)?;
        self.notices
            .extend(self.slrus.files_read_as_zeros().iter().map(|path| {
                format!(
                    "file \"{}\" doesn't exist, reading as zeroes",
                    path.display()
                )
            }));
        Ok(())
    }

    /// Writes all that is only in memory and makes it durable, without ending anything.
    pub fn flush(&mut self) -> Result<(), RedoErrorKind> {
        self.pool.flush_all(&mut self.smgr)?;
        self.smgr.settle_all()?;
        self.slrus.flush(self.sync != SyncMethod::None)?;
        self.sync()
    }

    /// Makes relation files durable.
    pub fn sync(&mut self) -> Result<(), RedoErrorKind> {
        Ok(self.smgr.sync()?)
    }

    /// References to missing pages that nothing has explained.
    pub fn missing(&self) -> &MissingPages {
        &self.missing
    }

    /// What PostgreSQL would have logged since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    /// What was redone.
    pub fn stats(&self) -> RedoStats {
        self.stats
    }

    /// What the buffer pool did.
    pub fn pool_stats(&self) -> PoolStats {
        self.pool.stats()
    }

    /// How often sizes were asked for.
    pub fn cache_stats(&self) -> CacheStats {
        self.smgr.cache_stats()
    }
}

fn is_finished(slrus: &mut Slrus, xid: TransactionId) -> Result<bool, RedoErrorKind> {
    Ok(slrus.xid_state(xid)?.is_finished())
}

fn dropped_notice(dropped: Dropped) -> String {
    match dropped {
        Dropped::Stale(xid) => {
            format!("removing stale two-phase state file for transaction {xid}")
        }
        Dropped::Future(xid) => {
            format!("removing future two-phase state file for transaction {xid}")
        }
    }
}

fn parameters_of(control: &ControlFile) -> Parameters {
    Parameters {
        max_connections: control.max_connections,
        max_worker_processes: control.max_worker_processes,
        max_wal_senders: control.max_wal_senders,
        max_prepared_xacts: control.max_prepared_xacts,
        max_locks_per_xact: control.max_locks_per_xact,
        wal_level: control.wal_level,
        wal_log_hints: control.wal_log_hints,
        track_commit_timestamp: control.track_commit_timestamp,
    }
}
