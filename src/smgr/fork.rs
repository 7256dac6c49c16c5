//! Forks of relations as files (`src/backend/storage/smgr/md.c`, `smgr.c`).

use std::collections::BTreeSet;
use std::path::PathBuf;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cache::ForkSize;
use super::overlay::Overlay;
use super::segments::{FileAccess, OpenFiles, SegmentKey};
use super::{CacheStats, NblocksCache, SmgrError};
use crate::page::{self, Page};
use crate::pgdata::DataDir;
use crate::pgdata::sync::sync_file_systems;
use crate::sys::found;
use crate::types::{
    BLOCK_BYTES, BlockNumber, BlockTag, ForkNumber, GLOBAL_TABLESPACE, Oid, RELSEG_BLOCKS,
    RelFileLocator,
};

/// Most pages written by one call.
const MAX_RUN: usize = 256;

/// A fork that was seen, as a small number. Stays the same for the life of the [`Smgr`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ForkId(u32);

impl ForkId {
    /// The fork of an index that [`ForkId::index`] gave.
    pub fn from_index(index: usize) -> ForkId {
        ForkId(index as u32)
    }

    /// For tables indexed by fork.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// How files are made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMethod {
    /// fsync of each file that was written.
    Fsync,
    /// One syncfs for each file system.
    Syncfs,
    /// Not at all: the result must not outlive a crash of the machine.
    None,
}

/// How relation files are treated.
#[derive(Debug, Clone, Copy)]
pub struct SmgrOptions {
    /// Whether sizes are remembered.
    pub nblocks_cache: NblocksCache,
    /// Pages carry checksums.
    pub data_checksums: bool,
    /// How files are made durable.
    pub sync: SyncMethod,
}

#[derive(Debug)]
pub(super) struct Fork {
    pub(super) locator: RelFileLocator,
    pub(super) number: ForkNumber,
    pub(super) size: ForkSize,
    /// The first segment is known to be there.
    pub(super) exists: bool,
    /// Whose files these are: in an overlay, those of the database that was copied.
    pub(super) files: RelFileLocator,
    /// In an overlay: whatever files there are do not count.
    pub(super) hidden: bool,
}

/// Relation files.
#[derive(Debug)]
pub struct Smgr {
    pub(super) dir: DataDir,
    options: SmgrOptions,
    /// Files are only read, and changes live in memory.
    pub(super) overlay: Option<Overlay>,
    ids: FxHashMap<(RelFileLocator, ForkNumber), ForkId>,
    pub(super) forks: Vec<Fork>,
    pub(super) files: OpenFiles,
    /// Segments written since the last sync.
    unsynced: BTreeSet<(ForkId, u32)>,
    /// Directories in which names came or went since the last sync.
    unsynced_dirs: BTreeSet<PathBuf>,
    /// Database directories known to be there.
    database_dirs: FxHashSet<(Oid, Oid)>,
    stats: CacheStats,
}

impl Smgr {
    /// Relation files of `dir`.
    pub fn new(dir: DataDir, options: SmgrOptions) -> Smgr {
        Smgr::with(dir, options, FileAccess::ReadWrite, None)
    }

    pub(super) fn with(
        dir: DataDir,
        options: SmgrOptions,
        access: FileAccess,
        overlay: Option<Overlay>,
    ) -> Smgr {
        Smgr {
            dir,
            options,
            overlay,
            ids: FxHashMap::default(),
            forks: Vec::new(),
            files: OpenFiles::new(access),
            unsynced: BTreeSet::new(),
            unsynced_dirs: BTreeSet::new(),
            database_dirs: FxHashSet::default(),
            stats: CacheStats::default(),
        }
    }

    /// The data directory.
    pub fn dir(&self) -> &DataDir {
        &self.dir
    }

    /// How often sizes were asked for.
    pub fn cache_stats(&self) -> CacheStats {
        self.stats
    }

    /// The small number of a fork.
    pub fn fork(&mut self, locator: RelFileLocator, number: ForkNumber) -> ForkId {
        let next = ForkId(self.forks.len() as u32);
        let id = *self.ids.entry((locator, number)).or_insert(next);
        if id == next {
            let size = ForkSize::default();
            self.forks.push(Fork {
                locator,
                number,
                size,
                exists: false,
                files: locator,
                hidden: self.overlay.as_ref().is_some_and(|o| o.hides(locator)),
            });
        }
        id
    }

    /// The fork's small number, if it was ever seen.
    pub fn known_fork(&self, locator: RelFileLocator, number: ForkNumber) -> Option<ForkId> {
        self.ids.get(&(locator, number)).copied()
    }

    /// The page a block of a fork is.
    pub fn tag(&self, id: ForkId, block: BlockNumber) -> BlockTag {
        let fork = &self.forks[id.index()];
        BlockTag {
            locator: fork.locator,
            fork: fork.number,
            block,
        }
    }

    fn key(&self, id: ForkId, segment: u32) -> SegmentKey {
        let fork = &self.forks[id.index()];
        SegmentKey {
            fork: id,
            locator: fork.files,
            number: fork.number,
            segment,
        }
    }

    fn path(&self, id: ForkId, segment: u32) -> PathBuf {
        let fork = &self.forks[id.index()];
        self.dir.relation_path(fork.files, fork.number, segment)
    }

    /// `smgrexists`: is the first segment there.
    pub fn exists(&mut self, id: ForkId) -> Result<bool, SmgrError> {
        if self.forks[id.index()].hidden {
            return Ok(false);
        }
        if !self.forks[id.index()].exists {
            let key = self.key(id, 0);
            let exists = self.files.get(&self.dir, key)?.is_some();
            self.forks[id.index()].exists = exists;
        }
        Ok(self.forks[id.index()].exists)
    }

    /// `smgrcreate` in redo: makes the first segment, and the directories above it, if they are
    /// missing. Redo calls it at every block reference, before it looks at the size.
    pub fn create(&mut self, id: ForkId) -> Result<(), SmgrError> {
        if self.forks[id.index()].exists {
            return Ok(());
        }
        if self.overlay.is_some() {
            return self.create_in_memory(id);
        }
        let locator = self.forks[id.index()].locator;
        self.create_database_dir(locator.spc, locator.db)?;
        let key = self.key(id, 0);
        let (_, created) = self.files.get_or_create(&self.dir, key)?;
        let fork = &mut self.forks[id.index()];
        fork.exists = true;
        if created {
            fork.size.created();
            self.unsynced.insert((id, 0));
            self.unsynced_dirs
                .insert(self.dir.database_dir(locator.spc, locator.db));
        }
        Ok(())
    }

    /// `TablespaceCreateDbspace` in redo: the directory of a database, with missing levels above it
    /// as plain directories. They go again when the drop that explains them is redone.
    fn create_database_dir(&mut self, spc: Oid, db: Oid) -> Result<(), SmgrError> {
        if spc == GLOBAL_TABLESPACE || self.database_dirs.contains(&(spc, db)) {
            return Ok(());
        }
        let path = self.dir.database_dir(spc, db);
        let kernel = self.dir.kernel();
        if !kernel.exists(&path)? {
            let mode = self.dir.dir_mode();
            let tablespace = self.dir.tablespace_dir(spc);
            if let Some(link) = tablespace
                .parent()
                .filter(|p| p.starts_with(self.dir.path("pg_tblspc")))
            {
                kernel.mkdir_if_missing(link, mode)?;
            }
            kernel.mkdir_if_missing(&tablespace, mode)?;
            kernel.mkdir_if_missing(&path, mode)?;
            self.unsynced_dirs.insert(tablespace);
        }
        self.database_dirs.insert((spc, db));
        Ok(())
    }

    /// `smgrnblocks`: blocks of a fork whose first segment is there.
    pub fn nblocks(&mut self, id: ForkId) -> Result<BlockNumber, SmgrError> {
        if self.options.nblocks_cache == NblocksCache::On
            && let Some(blocks) = self.forks[id.index()].size.known()
        {
            self.stats.hits += 1;
            return Ok(blocks);
        }
        self.stats.misses += 1;
        let blocks = self.measure(id)?;
        self.forks[id.index()].size.measured(blocks);
        Ok(blocks)
    }

    /// `mdnblocks`: full segments, then the first that is not full. Segments known to be full
    /// are not asked again. A partial block at the end does not count.
    fn measure(&mut self, id: ForkId) -> Result<BlockNumber, SmgrError> {
        let known = self.forks[id.index()].size.known().unwrap_or(0);
        let mut segment = known / RELSEG_BLOCKS;
        if known > 0 && known.is_multiple_of(RELSEG_BLOCKS) {
            segment -= 1;
        }
        loop {
            let key = self.key(id, segment);
            let Some(file) = self.files.get(&self.dir, key)? else {
                return Ok(segment * RELSEG_BLOCKS);
            };
            let blocks = (file.seek_end()? / BLOCK_BYTES as u64) as u32;
            if blocks < RELSEG_BLOCKS {
                return Ok(segment * RELSEG_BLOCKS + blocks);
            }
            segment += 1;
        }
    }

    /// Grows a fork to `blocks`, with zeros. With the cache on this is a matter of memory until
    /// the pages are written or [`Smgr::settle`] is called.
    pub fn extend(&mut self, id: ForkId, blocks: BlockNumber) -> Result<(), SmgrError> {
        self.forks[id.index()].size.extended(blocks);
        match self.options.nblocks_cache {
            NblocksCache::On => Ok(()),
            NblocksCache::Off => self.settle(id),
        }
    }

    /// Brings the files of a fork to its size: every segment but the last is full.
    pub fn settle(&mut self, id: ForkId) -> Result<(), SmgrError> {
        let size = self.forks[id.index()].size;
        match size.known() {
            Some(blocks) if blocks > size.on_disk() => self.grow_files(id, blocks),
            _ => Ok(()),
        }
    }

    fn grow_files(&mut self, id: ForkId, blocks: BlockNumber) -> Result<(), SmgrError> {
        assert!(
            self.overlay.is_none(),
            "files below an overlay are never written"
        );
        let mut have = self.forks[id.index()].size.on_disk();
        while have < blocks {
            let segment = have / RELSEG_BLOCKS;
            let upto = blocks.min((segment + 1).saturating_mul(RELSEG_BLOCKS));
            let in_segment = u64::from(upto - segment * RELSEG_BLOCKS);
            let key = self.key(id, segment);
            let (file, _) = self.files.get_or_create(&self.dir, key)?;
            file.truncate(in_segment * BLOCK_BYTES as u64)?;
            self.unsynced.insert((id, segment));
            have = upto;
        }
        self.forks[id.index()].size.written(blocks);
        Ok(())
    }

    /// Brings the files of every fork to their sizes.
    pub fn settle_all(&mut self) -> Result<(), SmgrError> {
        (0..self.forks.len()).try_for_each(|i| self.settle(ForkId(i as u32)))
    }

    /// Reads a block that is within the fork, without judging it.
    pub fn read(
        &mut self,
        id: ForkId,
        block: BlockNumber,
        page: &mut Page,
    ) -> Result<(), SmgrError> {
        if block >= self.forks[id.index()].size.on_disk() {
            // Extended in memory and not written since.
            page.bytes_mut().fill(0);
            return Ok(());
        }
        let segment = block / RELSEG_BLOCKS;
        let offset = u64::from(block % RELSEG_BLOCKS) * BLOCK_BYTES as u64;
        let key = self.key(id, segment);
        let read = match self.files.get(&self.dir, key)? {
            Some(file) => file.read_at(page.bytes_mut(), offset)?,
            None => 0,
        };
        if read < BLOCK_BYTES {
            return Err(SmgrError::ShortRead {
                path: self.path(id, segment),
                block,
            });
        }
        Ok(())
    }

    /// Checks a page that was read from the fork.
    pub fn verify(&self, id: ForkId, block: BlockNumber, page: &Page) -> Result<(), SmgrError> {
        match verify_page(page, block, self.options.data_checksums) {
            None => Ok(()),
            Some(what) => {
                let path = self.path(id, block / RELSEG_BLOCKS);
                Err(SmgrError::InvalidPage {
                    tag: self.tag(id, block),
                    path,
                    what,
                })
            }
        }
    }

    /// Writes neighbouring blocks, `pages[0]` being block `first`, with checksums if the cluster
    /// has them. Segments below are filled up first.
    pub fn write(
        &mut self,
        id: ForkId,
        first: BlockNumber,
        pages: &[&Page],
    ) -> Result<(), SmgrError> {
        let mut done = 0;
        while done < pages.len() {
            let block = first + done as u32;
            let segment = block / RELSEG_BLOCKS;
            let in_segment = block % RELSEG_BLOCKS;
            let room = (RELSEG_BLOCKS - in_segment) as usize;
            let run = &pages[done..(done + room.min(MAX_RUN)).min(pages.len())];
            self.fill_below(id, segment)?;
            self.write_run(id, segment, in_segment, block, run)?;
            done += run.len();
        }
        self.forks[id.index()]
            .size
            .written(first + pages.len() as u32);
        Ok(())
    }

    /// Files of lower segments must be full before a higher one has anything: a server would not
    /// see the higher one otherwise.
    fn fill_below(&mut self, id: ForkId, segment: u32) -> Result<(), SmgrError> {
        let below = segment * RELSEG_BLOCKS;
        if self.forks[id.index()].size.on_disk() < below {
            self.grow_files(id, below)?;
        }
        Ok(())
    }

    fn write_run(
        &mut self,
        id: ForkId,
        segment: u32,
        in_segment: u32,
        block: BlockNumber,
        run: &[&Page],
    ) -> Result<(), SmgrError> {
        assert!(
            self.overlay.is_none(),
            "files below an overlay are never written"
        );
        let key = self.key(id, segment);
        let (file, _) = self.files.get_or_create(&self.dir, key)?;
        let offset = u64::from(in_segment) * BLOCK_BYTES as u64;
        if self.options.data_checksums {
            let stamped: Vec<Page> = run
                .iter()
                .zip(block..)
                .map(|(page, block)| with_checksum(page, block))
                .collect();
            let buffers: Vec<&[u8]> = stamped.iter().map(|p| &p.bytes()[..]).collect();
            file.write_vectored_at(&buffers, offset)?;
        } else {
            let buffers: Vec<&[u8]> = run.iter().map(|p| &p.bytes()[..]).collect();
            file.write_vectored_at(&buffers, offset)?;
        }
        self.unsynced.insert((id, segment));
        Ok(())
    }

    /// `mdtruncate`: cuts a fork. Segments beyond the new end become empty files and stay. More
    /// blocks than there are is no change.
    pub fn truncate(&mut self, id: ForkId, blocks: BlockNumber) -> Result<(), SmgrError> {
        let current = self.nblocks(id)?;
        if blocks >= current {
            return Ok(());
        }
        let on_disk = self.forks[id.index()].size.on_disk();
        if blocks < on_disk && self.overlay.is_none() {
            let first = blocks / RELSEG_BLOCKS;
            let last = (on_disk - 1) / RELSEG_BLOCKS;
            for segment in (first..=last).rev() {
                let keep = blocks
                    .saturating_sub(segment * RELSEG_BLOCKS)
                    .min(RELSEG_BLOCKS);
                let key = self.key(id, segment);
                if let Some(file) = self.files.get(&self.dir, key)? {
                    file.truncate(u64::from(keep) * BLOCK_BYTES as u64)?;
                    self.unsynced.insert((id, segment));
                }
            }
        }
        self.forks[id.index()].size.truncated(blocks);
        Ok(())
    }

    /// `mdunlink` in redo: removes every fork and segment of a relation.
    pub fn unlink(&mut self, locator: RelFileLocator) -> Result<(), SmgrError> {
        if self.overlay.is_some() {
            self.hide(locator);
            return Ok(());
        }
        let mut any = false;
        for number in ForkNumber::ALL {
            if let Some(id) = self.known_fork(locator, number) {
                self.forget(id);
            }
            let mut segment = 0;
            while self
                .dir
                .kernel()
                .unlink_if_any(&self.dir.relation_path(locator, number, segment))?
            {
                any = true;
                segment += 1;
            }
        }
        if any {
            self.unsynced_dirs
                .insert(self.dir.database_dir(locator.spc, locator.db));
        }
        Ok(())
    }

    /// Forgets all that is known of a fork whose files are gone or were replaced.
    pub(super) fn forget(&mut self, id: ForkId) {
        self.files.close(id);
        let fork = &mut self.forks[id.index()];
        fork.size.forgotten();
        fork.exists = false;
        fork.hidden = self.overlay.is_some();
        let segments: Vec<(ForkId, u32)> = self
            .unsynced
            .range((id, 0)..=(id, u32::MAX))
            .copied()
            .collect();
        for segment in segments {
            self.unsynced.remove(&segment);
        }
    }

    /// Forks of a database that were seen, in one tablespace or in all.
    pub fn forks_of_database(&self, db: Oid, spc: Option<Oid>) -> Vec<ForkId> {
        let belongs = |f: &Fork| f.locator.db == db && spc.is_none_or(|spc| f.locator.spc == spc);
        (0..self.forks.len())
            .filter(|i| belongs(&self.forks[*i]))
            .map(|i| ForkId(i as u32))
            .collect()
    }

    /// Forgets all forks of a database in a tablespace: its directory was removed or replaced.
    pub fn forget_database(&mut self, db: Oid, spc: Oid) {
        for id in self.forks_of_database(db, Some(spc)) {
            self.forget(id);
        }
        if let Some(overlay) = &mut self.overlay {
            overlay.hide_database(db, spc);
        }
        self.database_dirs.remove(&(spc, db));
        let path = self.dir.database_dir(spc, db);
        self.unsynced_dirs.remove(&path);
    }

    /// Pages carry checksums.
    pub fn data_checksums(&self) -> bool {
        self.options.data_checksums
    }

    /// The file of a segment, for workers that open it themselves.
    pub fn segment_path(&self, id: ForkId, segment: u32) -> PathBuf {
        self.path(id, segment)
    }

    /// Blocks of a fork that can be read from its files.
    pub fn on_disk(&self, id: ForkId) -> BlockNumber {
        self.forks[id.index()].size.on_disk()
    }

    /// A worker wrote pages of a segment, `last` being the highest block.
    pub fn pages_written(&mut self, id: ForkId, segment: u32, last: BlockNumber) {
        self.forks[id.index()].size.written(last.saturating_add(1));
        self.unsynced.insert((id, segment));
    }

    /// Remembers that names in a directory changed, so that it is synced.
    pub fn directory_changed(&mut self, path: PathBuf) {
        self.unsynced_dirs.insert(path);
    }

    /// Makes everything written so far durable.
    pub fn sync(&mut self) -> Result<(), SmgrError> {
        let unsynced = std::mem::take(&mut self.unsynced);
        let dirs = std::mem::take(&mut self.unsynced_dirs);
        match self.options.sync {
            SyncMethod::None => Ok(()),
            SyncMethod::Syncfs => Ok(sync_file_systems(self.dir.kernel(), self.dir.root())?),
            SyncMethod::Fsync => {
                for (id, segment) in unsynced {
                    let key = self.key(id, segment);
                    if let Some(file) = self.files.get(&self.dir, key)? {
                        file.fsync()?;
                    }
                }
                for dir in dirs {
                    // A directory that was dropped since needs no sync.
                    found(self.dir.kernel().sync_dir(&dir))?;
                }
                Ok(())
            }
        }
    }
}

/// `PageIsVerified`: what is wrong with a page that was read, if anything. The checksum counts if
/// the cluster has them, then the header. A page of zeros is good.
pub fn verify_page(page: &Page, block: BlockNumber, data_checksums: bool) -> Option<String> {
    if page.is_new() {
        let is_zero = page.bytes().iter().all(|b| *b == 0);
        return (!is_zero).then(|| "its header is zero and its contents are not".to_owned());
    }
    if data_checksums {
        let (calculated, found) = (page::checksum(page, block), page.checksum_field());
        if calculated != found {
            return Some(format!(
                "page verification failed, calculated checksum {calculated} but expected {found}"
            ));
        }
    }
    (!page.header_is_sane()).then(|| format!("the header is corrupt: {page:?}"))
}

/// A copy as it goes to disk (`PageSetChecksumCopy`).
fn with_checksum(page: &Page, block: BlockNumber) -> Page {
    let mut copy = page.clone();
    page::stamp_checksum(&mut copy, block);
    copy
}
