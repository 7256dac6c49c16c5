//! Workers of a window: each takes a unit of pages, reads them in runs, applies their queues and
//! writes them in runs. No page has two workers, so there are no locks.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::error::{RedoError, RedoErrorKind};
use super::on_page;
use super::plan::{Action, PagePlan};
use crate::decode::{ImageRestorer, Record};
use crate::page::{self, Page};
use crate::rmgr::{ReadMode, RedoSettings, Touch, TouchKind};
use crate::smgr::{ForkId, SmgrError, verify_page};
use crate::sys::{File, Kernel};
use crate::types::{BLOCK_BYTES, BlockNumber, BlockTag, RELSEG_BLOCKS};
use crate::wal::{Batch, WalLayout};

/// Pages in memory at once, for each worker: 512 KiB stay in its cache.
const RUN_PAGES: usize = 64;

/// Pages of one segment file, to be done by one worker.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Range in the ordered pages.
    pub(super) pages: Range<usize>,
    pub(super) fork: ForkId,
    /// Any page of the fork.
    pub(super) tag: BlockTag,
    pub(super) segment: u32,
    pub(super) path: PathBuf,
    /// Blocks of the fork that can be read.
    pub(super) on_disk: BlockNumber,
}

/// Free space that a page ended with.
#[derive(Debug, Clone, Copy)]
pub(super) struct FreeSpaceFound {
    pub(super) tag: BlockTag,
    /// The record that says so.
    pub(super) record: u32,
    pub(super) bytes: usize,
    /// The most that any of its records stored. A page of the map that was never initialised is
    /// so by the first category above zero, even if zero is what stays.
    pub(super) most_bytes: usize,
}

/// What the workers found, all together.
#[derive(Debug, Default)]
pub(super) struct PageResults {
    /// The highest block written in a segment of a fork, once for each chunk.
    pub(super) written: Vec<(ForkId, u32, BlockNumber)>,
    /// Pages that are there but were never initialised, and the records that asked for them.
    pub(super) missing: Vec<(BlockTag, u32)>,
    pub(super) free_space: Vec<FreeSpaceFound>,
    pub(super) images: u64,
    pub(super) pages_read: u64,
    pub(super) pages_written: u64,
}

impl PageResults {
    fn add(&mut self, other: PageResults) {
        self.written.extend(other.written);
        self.missing.extend(other.missing);
        self.free_space.extend(other.free_space);
        self.images += other.images;
        self.pages_read += other.pages_read;
        self.pages_written += other.pages_written;
    }
}

/// All that workers share while they do a window.
#[derive(Debug)]
pub(super) struct PageJob<'j> {
    pub(super) plan: &'j PagePlan,
    pub(super) order: &'j [u32],
    pub(super) chunks: &'j [Chunk],
    pub(super) batch: &'j Batch,
    pub(super) layout: &'j WalLayout,
    pub(super) settings: RedoSettings,
    pub(super) data_checksums: bool,
    pub(super) kernel: &'j Kernel,
}

impl PageJob<'_> {
    /// Does all chunks with up to `jobs` workers. Of several errors the one of the earliest record
    /// is returned, so that it does not depend on the number of workers.
    pub(super) fn run(&self, jobs: usize) -> Result<PageResults, Box<RedoError>> {
        let next = AtomicUsize::new(0);
        let errors: Mutex<Vec<Box<RedoError>>> = Mutex::new(Vec::new());
        let work = || {
            let mut worker = Worker::new(self);
            while let Some(chunk) = self.chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                if let Err(error) = worker.do_chunk(chunk) {
                    errors.lock().unwrap_or_else(|e| e.into_inner()).push(error);
                }
            }
            worker.results
        };
        let workers = jobs.clamp(1, self.chunks.len().max(1));
        let mut results = PageResults::default();
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
            results.add(work());
            for other in others {
                match other.join() {
                    Ok(theirs) => results.add(theirs),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
        let mut errors = errors.into_inner().unwrap_or_else(|e| e.into_inner());
        errors.sort_by_key(|e| e.lsn);
        match errors.into_iter().next() {
            Some(first) => Err(first),
            None => Ok(results),
        }
    }
}

struct Worker<'j> {
    job: &'j PageJob<'j>,
    pages: Vec<Page>,
    dirty: Vec<bool>,
    scratch: Vec<u8>,
    restorer: ImageRestorer,
    results: PageResults,
}

impl<'j> Worker<'j> {
    fn new(job: &'j PageJob<'j>) -> Worker<'j> {
        Worker {
            job,
            pages: vec![Page::zeroed(); RUN_PAGES],
            dirty: vec![false; RUN_PAGES],
            scratch: Vec::new(),
            restorer: ImageRestorer::default(),
            results: PageResults::default(),
        }
    }

    fn do_chunk(&mut self, chunk: &Chunk) -> Result<(), Box<RedoError>> {
        let pages = &self.job.order[chunk.pages.clone()];
        let first_record = |page: u32| self.job.plan.queue(page).next().map_or(0, |op| op.record);
        let lsn = self.job.batch.record_lsn(first_record(pages[0]) as usize);
        let failed = |kind: RedoErrorKind| RedoError::in_window(lsn, kind);
        let file = self
            .job
            .kernel
            .open_write(&chunk.path)
            .map_err(|e| failed(e.into()))?;
        let mut at = 0;
        while at < pages.len() {
            let first = self.job.plan.page(pages[at]).block;
            let run = (at..pages.len().min(at + RUN_PAGES))
                .take_while(|i| self.job.plan.page(pages[*i]).block - first == (*i - at) as u32)
                .count();
            self.do_run(chunk, &file, &pages[at..at + run])
                .map_err(|e| match e {
                    RunError::Redo(error) => error,
                    RunError::Other(kind) => failed(kind),
                })?;
            at += run;
        }
        Ok(())
    }

    /// Neighbouring pages: read those that must be, apply, write those that changed.
    fn do_run(&mut self, chunk: &Chunk, file: &File, pages: &[u32]) -> Result<(), RunError> {
        self.read_run(chunk, file, pages)?;
        for (i, page) in pages.iter().enumerate() {
            self.dirty[i] = self.apply_queue(chunk, *page, i)?;
        }
        self.write_run(chunk, file, pages)
    }

    fn offset(&self, chunk: &Chunk, page: u32) -> u64 {
        let block = self.job.plan.page(page).block - chunk.segment * RELSEG_BLOCKS;
        u64::from(block) * BLOCK_BYTES as u64
    }

    fn read_run(&mut self, chunk: &Chunk, file: &File, pages: &[u32]) -> Result<(), RunError> {
        let wanted = |page: &u32| {
            let block = self.job.plan.page(*page).block;
            self.job.plan.needs_read(*page) && block < chunk.on_disk
        };
        let wanted: Vec<bool> = pages.iter().map(wanted).collect();
        let mut i = 0;
        while i < pages.len() {
            if !wanted[i] {
                self.pages[i].bytes_mut().fill(0);
                i += 1;
                continue;
            }
            let n = wanted[i..].iter().take_while(|w| **w).count();
            let offset = self.offset(chunk, pages[i]);
            let mut buffers: Vec<&mut [u8]> = self.pages[i..i + n]
                .iter_mut()
                .map(|p| &mut p.bytes_mut()[..])
                .collect();
            let read = file
                .read_vectored_at(&mut buffers, offset)
                .map_err(RedoErrorKind::from)?;
            self.results.pages_read += n as u64;
            if read < n * BLOCK_BYTES {
                let block = self.job.plan.page(pages[i]).block + (read / BLOCK_BYTES) as u32;
                let path = chunk.path.clone();
                return Err(RedoErrorKind::from(SmgrError::ShortRead { path, block }).into());
            }
            for (j, page) in pages.iter().enumerate().skip(i).take(n) {
                self.verify(chunk, *page, j)?;
            }
            i += n;
        }
        Ok(())
    }

    /// A page that is not what was written stops the run, unless it is one of a map, which starts
    /// afresh.
    fn verify(&mut self, chunk: &Chunk, page: u32, i: usize) -> Result<(), RunError> {
        let block = self.job.plan.page(page).block;
        let Some(what) = verify_page(&self.pages[i], block, self.job.data_checksums) else {
            return Ok(());
        };
        let first = self.job.plan.queue(page).next().map(|op| op.action);
        if matches!(
            first,
            Some(Action::Touch {
                read: ReadMode::Normal,
                ..
            })
        ) {
            let tag = BlockTag { block, ..chunk.tag };
            let path = chunk.path.clone();
            return Err(RedoErrorKind::from(SmgrError::InvalidPage { tag, path, what }).into());
        }
        self.pages[i].bytes_mut().fill(0);
        Ok(())
    }

    /// Applies all operations of a page; says whether it must be written.
    fn apply_queue(&mut self, chunk: &Chunk, page: u32, i: usize) -> Result<bool, RunError> {
        let planned = *self.job.plan.page(page);
        let tag = BlockTag {
            block: planned.block,
            ..chunk.tag
        };
        let mut dirty = false;
        let mut free_space = None;
        let mut most_bytes = 0;
        let mut last = 0;
        for op in self.job.plan.queue(page) {
            last = op.record;
            let Action::Touch { target, kind, read } = op.action else {
                self.pages[i].init(0);
                dirty = true;
                continue;
            };
            let raw =
                self.job
                    .batch
                    .record_in(op.record as usize, &mut self.scratch, self.job.layout);
            let lsn = raw.lsn;
            let record = Record::decode(raw, self.job.layout.format)
                .map_err(|error| RedoError::undecodable(lsn, error))?;
            let touch = Touch {
                tag,
                kind,
                read,
                target,
            };
            let settings = &self.job.settings;
            let touched = on_page::redo(
                &record,
                &touch,
                &mut self.pages[i],
                &mut self.restorer,
                settings,
            )
            .map_err(|kind| RedoError::new(&record, Some(tag), kind))?;
            dirty |= touched.is_dirty;
            if touched.is_missing {
                self.results.missing.push((tag, op.record));
            }
            self.results.images += u64::from(touched.is_restored);
            if let Some(bytes) = touched.free_space {
                free_space = Some((op.record, bytes));
                most_bytes = most_bytes.max(bytes);
            }
            debug_assert!(kind != TouchKind::Image || touched.is_restored);
        }
        if free_space.is_none() && planned.owes_free_space {
            free_space = Some((last, self.pages[i].heap_free_space()));
        }
        if let Some((record, bytes)) = free_space {
            self.results.free_space.push(FreeSpaceFound {
                tag,
                record,
                bytes,
                most_bytes,
            });
        }
        Ok(dirty)
    }

    fn write_run(&mut self, chunk: &Chunk, file: &File, pages: &[u32]) -> Result<(), RunError> {
        let mut i = 0;
        while i < pages.len() {
            if !self.dirty[i] {
                i += 1;
                continue;
            }
            let n = self.dirty[i..pages.len()]
                .iter()
                .take_while(|d| **d)
                .count();
            if self.job.data_checksums {
                for (copy, page) in self.pages[i..i + n].iter_mut().zip(&pages[i..i + n]) {
                    page::stamp_checksum(copy, self.job.plan.page(*page).block);
                }
            }
            let buffers: Vec<&[u8]> = self.pages[i..i + n]
                .iter()
                .map(|p| &p.bytes()[..])
                .collect();
            let offset = self.offset(chunk, pages[i]);
            file.write_vectored_at(&buffers, offset)
                .map_err(RedoErrorKind::from)?;
            self.results.pages_written += n as u64;
            let last = self.job.plan.page(pages[i + n - 1]).block;
            self.note_written(chunk, last);
            i += n;
        }
        Ok(())
    }

    /// Runs of a chunk come in block order, so the last one has the highest block.
    fn note_written(&mut self, chunk: &Chunk, last: BlockNumber) {
        let same = |w: &&mut (ForkId, u32, BlockNumber)| w.0 == chunk.fork && w.1 == chunk.segment;
        match self.results.written.last_mut().filter(same) {
            Some(written) => written.2 = last,
            None => self.results.written.push((chunk.fork, chunk.segment, last)),
        }
    }
}

/// An error with its record, or one that has none of its own.
enum RunError {
    Redo(Box<RedoError>),
    Other(RedoErrorKind),
}

impl From<Box<RedoError>> for RunError {
    fn from(error: Box<RedoError>) -> RunError {
        RunError::Redo(error)
    }
}

impl From<RedoErrorKind> for RunError {
    fn from(kind: RedoErrorKind) -> RunError {
        RunError::Other(kind)
    }
}
