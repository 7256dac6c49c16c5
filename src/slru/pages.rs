//! Pages of one SLRU in memory, and its segment files (`src/backend/access/transam/slru.c`).
//!
//! What a recovery leaves must not depend on when a page is written back, so the rules are about
//! files: a segment file is made by the first write of any of its pages and is as long as the
//! highest page written; a page of a missing file is zeros while WAL is replayed; a file that is
//! there but too short is an error.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rustc_hash::FxHashMap;

use super::{PAGES_PER_SEGMENT, Slru, SlruError, Truncation};
use crate::pgdata::DataDir;
use crate::sys::{Create, found};
use crate::types::BLOCK_BYTES;

/// Pages kept in memory for each SLRU.
const SLOTS: usize = 128;

type PageBytes = [u8; BLOCK_BYTES];

#[derive(Debug)]
struct Slot {
    page: u32,
    dirty: bool,
    /// When it was last asked for, to find the least recently used one.
    used: u64,
    bytes: Box<PageBytes>,
}

#[derive(Debug)]
pub(super) struct Pages {
    dir: DataDir,
    slru: Slru,
    slots: Vec<Slot>,
    index: FxHashMap<u32, usize>,
    /// The slot of the last look-up: commits of neighbouring transactions share a page.
    last: usize,
    clock: u64,
    /// `latest_page_number`: a truncation must not reach it.
    latest: u32,
    /// Segments that were missing when they were read. A write-back makes the file as long as
    /// the page written, which must not turn later pages of it, zeros until then, into an error.
    missing: BTreeSet<u32>,
    /// False once the WAL is replayed.
    missing_is_zeros: bool,
    unsynced: BTreeSet<u32>,
    names_changed: bool,
}

impl Pages {
    pub(super) fn open(dir: &DataDir, slru: Slru, latest: u32) -> Pages {
        Pages {
            dir: dir.clone(),
            slru,
            slots: Vec::new(),
            index: FxHashMap::default(),
            last: 0,
            clock: 0,
            latest,
            missing: BTreeSet::new(),
            missing_is_zeros: true,
            unsynced: BTreeSet::new(),
            names_changed: false,
        }
    }

    /// A page number from a record, bounded.
    pub(super) fn check(&self, page: u64) -> Result<u32, SlruError> {
        let (slru, max) = (self.slru, self.slru.max_page());
        match u32::try_from(page) {
            Ok(number) if number <= max => Ok(number),
            _ => Err(SlruError::PageOutOfRange { slru, page, max }),
        }
    }

    pub(super) fn set_latest(&mut self, page: u32) {
        self.latest = page;
    }

    /// From here on a missing file is an error.
    pub(super) fn end_replay(&mut self) {
        self.missing_is_zeros = false;
    }

    /// A page, to be looked at.
    pub(super) fn page(&mut self, page: u32) -> Result<&PageBytes, SlruError> {
        let slot = self.slot(page)?;
        Ok(&self.slots[slot].bytes)
    }

    /// A page, to be changed.
    pub(super) fn page_mut(&mut self, page: u32) -> Result<&mut PageBytes, SlruError> {
        let slot = self.slot(page)?;
        let slot = &mut self.slots[slot];
        slot.dirty = true;
        Ok(&mut slot.bytes)
    }

    /// `SimpleLruZeroPage`: zeros in memory; the page becomes the latest one.
    pub(super) fn zero(&mut self, page: u32) -> Result<&mut PageBytes, SlruError> {
        let slot = match self.cached(page) {
            Some(slot) => slot,
            None => self.insert(page, Box::new([0; BLOCK_BYTES]))?,
        };
        self.latest = page;
        let slot = &mut self.slots[slot];
        slot.bytes.fill(0);
        slot.dirty = true;
        Ok(&mut slot.bytes)
    }

    /// Zeros, in the file as well. Redo of ZEROPAGE does this so that the file exists from
    /// there on.
    pub(super) fn zero_and_write(&mut self, page: u32) -> Result<(), SlruError> {
        self.zero(page)?;
        self.write_pages(&[page])
    }

    /// `SimpleLruDoesPhysicalPageExist`, after dirty pages were written.
    pub(super) fn exists(&mut self, page: u32) -> Result<bool, SlruError> {
        self.write_dirty()?;
        let path = self.path(page / PAGES_PER_SEGMENT);
        let bytes = found(self.dir.kernel().metadata(&path))?.map_or(0, |m| m.bytes);
        Ok(bytes >= offset_in_segment(page) + BLOCK_BYTES as u64)
    }

    /// `SimpleLruTruncate`: removes the segments wholly before `cutoff`, unless that would take
    /// the latest page away.
    pub(super) fn truncate(&mut self, cutoff: u32) -> Result<Truncation, SlruError> {
        let slru = self.slru;
        if slru.page_precedes(self.latest, cutoff) {
            return Ok(Truncation::ApparentWraparound);
        }
        let goes = |segment: u32| {
            let first = segment * PAGES_PER_SEGMENT;
            slru.page_precedes(first, cutoff)
                && slru.page_precedes(first + PAGES_PER_SEGMENT - 1, cutoff)
        };
        // A page before the cutoff in a segment that stays keeps its last contents.
        self.delete_segments(goes)?;
        Ok(Truncation::Done)
    }

    /// Removes the segments `goes` says, and forgets their pages.
    pub(super) fn delete_segments(&mut self, goes: impl Fn(u32) -> bool) -> Result<(), SlruError> {
        self.forget_pages(|page| goes(page / PAGES_PER_SEGMENT));
        let directory = self.dir.path(self.slru.directory());
        for entry in self.dir.kernel().read_dir(&directory)? {
            let Some(segment) = entry.name.to_str().and_then(parse_segment_name) else {
                continue;
            };
            if goes(segment) {
                self.dir
                    .kernel()
                    .unlink_if_any(&directory.join(&entry.name))?;
                self.unsynced.remove(&segment);
                self.names_changed = true;
            }
        }
        Ok(())
    }

    /// Writes changed pages; with `sync` makes everything written so far durable, names included.
    pub(super) fn flush(&mut self, sync: bool) -> Result<(), SlruError> {
        self.write_dirty()?;
        if !sync {
            return Ok(());
        }
        for segment in &self.unsynced {
            self.dir
                .kernel()
                .open_write(&self.path(*segment))?
                .fsync()?;
        }
        self.unsynced.clear();
        if self.names_changed {
            let directory = self.dir.path(self.slru.directory());
            self.dir.kernel().sync_dir(&directory)?;
            self.names_changed = false;
        }
        Ok(())
    }

    /// Files that were missing when a page of them was needed.
    pub(super) fn files_read_as_zeros(&self) -> Vec<PathBuf> {
        self.missing.iter().map(|s| self.path(*s)).collect()
    }

    fn path(&self, segment: u32) -> PathBuf {
        let directory = self.slru.directory();
        self.dir.path(format!("{directory}/{segment:04X}"))
    }

    fn slot(&mut self, page: u32) -> Result<usize, SlruError> {
        match self.cached(page) {
            Some(slot) => Ok(slot),
            None => {
                let bytes = self.read(page)?;
                self.insert(page, bytes)
            }
        }
    }

    fn cached(&mut self, page: u32) -> Option<usize> {
        let slot = match self.slots.get(self.last) {
            Some(slot) if slot.page == page => self.last,
            _ => *self.index.get(&page)?,
        };
        self.clock += 1;
        self.slots[slot].used = self.clock;
        self.last = slot;
        Some(slot)
    }

    /// Puts a page that is not cached into a slot, in place of the least recently used one if
    /// all are taken.
    fn insert(&mut self, page: u32, bytes: Box<PageBytes>) -> Result<usize, SlruError> {
        assert!(page <= self.slru.max_page(), "{:?} {page}", self.slru);
        self.clock += 1;
        let new = Slot {
            page,
            dirty: false,
            used: self.clock,
            bytes,
        };
        let slot = if self.slots.len() < SLOTS {
            self.slots.push(new);
            self.slots.len() - 1
        } else {
            let oldest = self.least_recently_used();
            let victim = self.slots[oldest].page;
            if self.slots[oldest].dirty {
                self.write_pages(&[victim])?;
            }
            self.index.remove(&victim);
            self.slots[oldest] = new;
            oldest
        };
        self.index.insert(page, slot);
        self.last = slot;
        Ok(slot)
    }

    fn least_recently_used(&self) -> usize {
        let oldest = self.slots.iter().enumerate().min_by_key(|(_, s)| s.used);
        oldest.map(|(slot, _)| slot).expect("the slots are full")
    }

    /// `SlruPhysicalReadPage`.
    fn read(&mut self, page: u32) -> Result<Box<PageBytes>, SlruError> {
        let segment = page / PAGES_PER_SEGMENT;
        let path = self.path(segment);
        let mut bytes = Box::new([0; BLOCK_BYTES]);
        let Some(file) = found(self.dir.kernel().open_read(&path))? else {
            if !self.missing_is_zeros {
                return Err(SlruError::MissingFile { path, page });
            }
            self.missing.insert(segment);
            return Ok(bytes);
        };
        let read = file.read_at(&mut bytes[..], offset_in_segment(page))?;
        if read == BLOCK_BYTES {
            return Ok(bytes);
        }
        if self.missing_is_zeros && self.missing.contains(&segment) {
            return Ok(Box::new([0; BLOCK_BYTES]));
        }
        Err(SlruError::ShortFile { path, page, read })
    }

    fn write_dirty(&mut self) -> Result<(), SlruError> {
        let dirty = self.slots.iter().filter(|s| s.dirty).map(|s| s.page);
        let mut pages: Vec<u32> = dirty.collect();
        pages.sort_unstable();
        for segment in pages.chunk_by(|a, b| a / PAGES_PER_SEGMENT == b / PAGES_PER_SEGMENT) {
            self.write_pages(segment)?;
        }
        Ok(())
    }

    /// `SlruPhysicalWritePage` for cached pages of one segment, in order: neighbours go in one
    /// call.
    fn write_pages(&mut self, pages: &[u32]) -> Result<(), SlruError> {
        let segment = pages[0] / PAGES_PER_SEGMENT;
        let path = self.path(segment);
        let kernel = self.dir.kernel();
        let file = match found(kernel.open_write(&path))? {
            Some(file) => file,
            None => {
                self.names_changed = true;
                kernel.create(&path, Create::IfMissing, self.dir.file_mode())?
            }
        };
        for run in pages.chunk_by(|a, b| a + 1 == *b) {
            let slot = |page: &u32| &self.slots[self.index[page]].bytes[..];
            let buffers: Vec<&[u8]> = run.iter().map(slot).collect();
            file.write_vectored_at(&buffers, offset_in_segment(run[0]))?;
        }
        self.unsynced.insert(segment);
        for page in pages {
            self.slots[self.index[page]].dirty = false;
        }
        Ok(())
    }

    fn forget_pages(&mut self, gone: impl Fn(u32) -> bool) {
        self.slots.retain(|slot| !gone(slot.page));
        let slots = self.slots.iter().enumerate();
        self.index = slots.map(|(i, slot)| (slot.page, i)).collect();
        self.last = 0;
    }
}

fn offset_in_segment(page: u32) -> u64 {
    u64::from(page % PAGES_PER_SEGMENT) * BLOCK_BYTES as u64
}

/// A name `SlruScanDirectory` takes for a segment: four to six upper-case hexadecimal digits.
fn parse_segment_name(name: &str) -> Option<u32> {
    let digits = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
    if (4..=6).contains(&name.len()) && name.bytes().all(digits) {
        u32::from_str_radix(name, 16).ok()
    } else {
        None
    }
}
