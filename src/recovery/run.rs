//! The replay itself.

use std::time::Instant;

use super::prepare::{BATCH_BYTES, BATCH_RECORDS};
use super::{Observer, Recovery, RecoveryError, RedoOrder};
use crate::buffer::PoolStats;
use crate::decode::Record;
use crate::pgdata::control::DbState;
use crate::pgdata::{cleanup, reinit, slots};
use crate::redo::{PageWindow, Redo, RedoError, RedoOptions, RedoStats, Window};
use crate::smgr::{CacheStats, SmgrOptions};
use crate::sys::interrupted;
use crate::types::Lsn;
use crate::wal::{Batch, RawRecord};

/// Size of the pool in the order of pages, where it holds free space maps only, in bytes.
const MAP_BUFFERS: u64 = 32 << 20;

/// Where the time went.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seconds {
    /// Reading WAL.
    pub wal: f64,
    /// Redo.
    pub redo: f64,
    /// Writing what was only in memory and making it durable.
    pub flush: f64,
    /// All of it.
    pub total: f64,
}

/// A recovery that came to its end.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Where redo started.
    pub start: Lsn,
    /// End of the last record that was redone.
    pub end: Lsn,
    /// The shutdown checkpoint; 0 if the directory was left in recovery.
    pub checkpoint: Lsn,
    /// What was redone.
    pub redo: RedoStats,
    /// What the buffer pool did.
    pub pool: PoolStats,
    /// How often sizes were asked for.
    pub nblocks_cache: CacheStats,
    /// Where the time went.
    pub seconds: Seconds,
    /// References to missing pages that nothing explained.
    pub missing_pages: usize,
}

impl Outcome {
    /// Pages read from files, by the pool and by workers.
    pub fn pages_read(&self) -> u64 {
        self.pool.read + self.redo.pages_read
    }

    /// Pages written to files, by the pool and by workers.
    pub fn pages_written(&self) -> u64 {
        self.pool.written + self.redo.pages_written
    }
}

impl Recovery {
    /// Replays, and leaves a directory that a server starts from without recovery.
    pub fn run(self, observer: &mut dyn Observer) -> Result<Outcome, RecoveryError> {
        let started = Instant::now();
        self.begin()?;
        let mut seconds = Seconds::default();
        let mut redo = self.start_redo()?;
        report(&mut redo, observer);
        let loop_started = Instant::now();
        if self.survey.records > 0 {
            observer.log(&format!("redo starts at {}", self.redo_start));
        }
        let end = match self.options.order {
            RedoOrder::Record => self.replay(&mut redo, observer, &mut seconds)?,
            RedoOrder::Page => self.replay_pages(&mut redo, observer, &mut seconds)?,
        };
        seconds.redo = loop_started.elapsed().as_secs_f64() - seconds.wal;
        if self.survey.records > 0 {
            observer.log(&format!(
                "redo done at {} system usage: elapsed: {:.2} s",
                self.survey.last_record,
                loop_started.elapsed().as_secs_f64()
            ));
        } else {
            observer.log("redo is not required");
        }
        let flush_started = Instant::now();
        let mut outcome = Outcome {
            start: self.redo_start,
            end,
            checkpoint: Lsn::INVALID,
            redo: RedoStats::default(),
            pool: PoolStats::default(),
            nblocks_cache: CacheStats::default(),
            seconds,
            missing_pages: redo.missing().len(),
        };
        match self.options.stop_before {
            Some(_) => redo.flush().map_err(RecoveryError::state("flushing"))?,
            None => outcome.checkpoint = self.finish(&mut redo, observer)?,
        }
        outcome.redo = redo.stats();
        outcome.pool = redo.pool_stats();
        outcome.nblocks_cache = redo.cache_stats();
        outcome.seconds.flush = flush_started.elapsed().as_secs_f64();
        outcome.seconds.total = started.elapsed().as_secs_f64();
        Ok(outcome)
    }

    /// Decodes all records and lists what they would do, without reading or writing a page.
    pub fn rehearse(&self) -> Result<(), RecoveryError> {
        let mut reader = self.reader();
        let mut batch = Batch::new();
        loop {
            reader.fill(&mut batch, BATCH_RECORDS, BATCH_BYTES)?;
            let mut window = Window::new();
            for raw in batch.records() {
                window.clear();
                window.push(self.decode(raw)?)?;
            }
            if batch.end().is_some() {
                return Ok(());
            }
        }
    }

    /// What a server does before the first record. pg_control comes first: it keeps the
    /// checkpoint, so whoever starts on the directory from here on recovers it once more.
    fn begin(&self) -> Result<(), RecoveryError> {
        let mut control = self.control.clone();
        control.state = DbState::InCrashRecovery;
        self.write_control(control)?;
        let dir = &self.dir;
        cleanup::remove_temporary_files(dir)?;
        cleanup::empty_notify(dir)?;
        cleanup::remove_temporary_wal(dir)?;
        cleanup::remove_relcache_init_files(dir)?;
        cleanup::remove_statistics(dir)?;
        reinit::remove_unlogged_relations(dir)?;
        cleanup::remove_exported_snapshots(dir)?;
        Ok(())
    }

    fn start_redo(&self) -> Result<Redo, RecoveryError> {
        let failed = RecoveryError::state("starting redo");
        slots::restore_slots(&self.dir).map_err(|e| failed(e.into()))?;
        let mut options = self.redo_options();
        if self.options.order == RedoOrder::Page {
            options.buffers = MAP_BUFFERS;
        }
        Redo::start(self.dir.clone(), &self.control, &self.checkpoint, options).map_err(failed)
    }

    pub(super) fn redo_options(&self) -> RedoOptions {
        RedoOptions {
            buffers: self.options.buffers,
            smgr: SmgrOptions {
                nblocks_cache: self.options.nblocks_cache,
                data_checksums: self.control.data_checksums(),
                sync: self.options.sync,
            },
            jobs: self.options.jobs,
            tablespaces: self.options.tablespaces.clone(),
        }
    }

    /// Redoes all records; the end of the last one.
    fn replay(
        &self,
        redo: &mut Redo,
        observer: &mut dyn Observer,
        seconds: &mut Seconds,
    ) -> Result<Lsn, RecoveryError> {
        let mut reader = self.reader().checked_to(self.survey.end.lsn);
        let mut batch = Batch::new();
        let stop = self.options.stop_before.unwrap_or(Lsn(u64::MAX));
        loop {
            let reading = Instant::now();
            reader.fill(&mut batch, BATCH_RECORDS, BATCH_BYTES)?;
            seconds.wal += reading.elapsed().as_secs_f64();
            if let Some(end) = self.replay_batch(redo, &batch, stop)? {
                return Ok(end);
            }
            report(redo, observer);
            observer.progress(reader.position());
            if let Some(end) = batch.end() {
                return self.checked_end(end.lsn);
            }
            if interrupted() {
                return Err(RecoveryError::Interrupted(reader.position()));
            }
        }
    }

    /// Redoes all records in windows, page by page; the end of the last one.
    fn replay_pages(
        &self,
        redo: &mut Redo,
        observer: &mut dyn Observer,
        seconds: &mut Seconds,
    ) -> Result<Lsn, RecoveryError> {
        let layout = *self.source.layout();
        let mut reader = self.reader().checked_to(self.survey.end.lsn);
        let mut batch = Batch::lean();
        let mut window = PageWindow::new();
        let mut scratch = Vec::new();
        let stop = self.options.stop_before.unwrap_or(Lsn(u64::MAX));
        loop {
            let reading = Instant::now();
            let first = batch.len();
            reader.append(&mut batch, BATCH_RECORDS, BATCH_BYTES)?;
            seconds.wal += reading.elapsed().as_secs_f64();
            for index in first..batch.len() {
                let raw = batch.record_in(index, &mut scratch, &layout);
                if raw.lsn >= stop {
                    let at = raw.lsn;
                    redo.flush_window(&mut window, &batch, &layout)?;
                    return Ok(at);
                }
                let record = self.decode(raw)?;
                redo.plan_record(&mut window, &batch, &layout, (index, &record))?;
            }
            let end = batch.end().cloned();
            let is_full = (batch.memory() + window.memory()) as u64 >= self.options.memory;
            if end.is_some() || is_full {
                redo.flush_window(&mut window, &batch, &layout)?;
                batch.clear();
            }
            report(redo, observer);
            observer.progress(reader.position());
            if let Some(end) = end {
                return self.checked_end(end.lsn);
            }
            if interrupted() {
                return Err(RecoveryError::Interrupted(reader.position()));
            }
        }
    }

    /// The end of WAL must be the one that was surveyed.
    fn checked_end(&self, now: Lsn) -> Result<Lsn, RecoveryError> {
        match self.survey.end.lsn {
            surveyed if surveyed == now => Ok(now),
            surveyed => Err(RecoveryError::WalChanged { surveyed, now }),
        }
    }

    /// Redoes the records of a batch, one to a window. Returns where it stopped, if it did.
    fn replay_batch(
        &self,
        redo: &mut Redo,
        batch: &Batch,
        stop: Lsn,
    ) -> Result<Option<Lsn>, RecoveryError> {
        let mut window = Window::new();
        for raw in batch.records() {
            if raw.lsn >= stop {
                return Ok(Some(raw.lsn));
            }
            let record = self.decode(raw)?;
            window.clear();
            window.push(record)?;
            redo.apply(&window)?;
        }
        Ok(None)
    }

    pub(super) fn decode<'w>(&self, raw: RawRecord<'w>) -> Result<Record<'w>, Box<RedoError>> {
        let decoded = Record::decode(raw, self.source.layout().format);
        decoded.map_err(|error| RedoError::undecodable(raw.lsn, error))
    }
}

/// Passes on what PostgreSQL would have logged.
pub(super) fn report(redo: &mut Redo, observer: &mut dyn Observer) {
    for notice in redo.take_notices() {
        observer.log(&notice);
    }
}
