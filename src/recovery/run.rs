//! The replay itself.

use std::time::Instant;

use super::prepare::{BATCH_BYTES, BATCH_RECORDS};
use super::{Observer, Recovery, RecoveryError};
use crate::buffer::PoolStats;
use crate::decode::Record;
use crate::pgdata::control::DbState;
use crate::pgdata::{cleanup, reinit, slots};
use crate::redo::{Redo, RedoError, RedoErrorKind, RedoOptions, RedoStats, Window};
use crate::smgr::{CacheStats, SmgrOptions};
use crate::sys::interrupted;
use crate::types::Lsn;
use crate::wal::{Batch, RawRecord};

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
        let end = self.replay(&mut redo, observer, &mut seconds)?;
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
        let options = RedoOptions {
            buffers: self.options.buffers,
            smgr: SmgrOptions {
                nblocks_cache: self.options.nblocks_cache,
                data_checksums: self.control.data_checksums(),
                sync: self.options.sync,
            },
            tablespaces: self.options.tablespaces.clone(),
        };
        Redo::start(self.dir.clone(), &self.control, &self.checkpoint, options).map_err(failed)
    }

    /// Redoes all records; the end of the last one.
    fn replay(
        &self,
        redo: &mut Redo,
        observer: &mut dyn Observer,
        seconds: &mut Seconds,
    ) -> Result<Lsn, RecoveryError> {
        let mut reader = self.reader();
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
                if end.lsn != self.survey.end.lsn {
                    let (surveyed, now) = (self.survey.end.lsn, end.lsn);
                    return Err(RecoveryError::WalChanged { surveyed, now });
                }
                return Ok(end.lsn);
            }
            if interrupted() {
                return Err(RecoveryError::Interrupted(reader.position()));
            }
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
        Record::decode(raw, self.source.layout().format).map_err(|error| {
            Box::new(RedoError {
                lsn: raw.lsn,
                record: "a record that cannot be decoded".to_owned(),
                tag: None,
                kind: RedoErrorKind::Decode(error),
            })
        })
    }
}

/// Passes on what PostgreSQL would have logged.
pub(super) fn report(redo: &mut Redo, observer: &mut dyn Observer) {
    for notice in redo.take_notices() {
        observer.log(&notice);
    }
}
