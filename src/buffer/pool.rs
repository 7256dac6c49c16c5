//! The pool (`src/backend/storage/buffer/bufmgr.c`, `freelist.c`).

use super::resident::Resident;
use crate::page::Page;
use crate::smgr::{ForkId, Smgr, SmgrError};
use crate::types::BlockNumber;

/// `BM_MAX_USAGE_COUNT`: sweeps a page survives after it was used.
const MAX_USAGE: u8 = 5;
/// A dirty victim takes dirty neighbours with it, up to this many blocks on each side.
const NEIGHBOURS: u32 = 31;

/// A place in the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame(u32);

impl Frame {
    pub(super) const NONE: Frame = Frame(u32::MAX);

    pub(super) fn new(index: usize) -> Frame {
        Frame(index as u32)
    }

    pub(super) fn is_some(self) -> bool {
        self != Frame::NONE
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone, Copy)]
struct Meta {
    fork: ForkId,
    block: BlockNumber,
    usage: u8,
    dirty: bool,
}

/// What the pool has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolStats {
    /// Pages asked for.
    pub lookups: u64,
    /// Of those, found in the pool.
    pub hits: u64,
    /// Pages read from files.
    pub read: u64,
    /// Pages written to files.
    pub written: u64,
    /// Pages thrown out to make room.
    pub evicted: u64,
    /// Table entries looked at to drop or truncate forks, or to write their pages.
    pub discard_visits: u64,
}

/// A bounded number of pages.
#[derive(Debug)]
pub struct BufferPool {
    pages: Vec<Page>,
    /// Parallel to `pages`; `None` for a frame that holds nothing.
    metas: Vec<Option<Meta>>,
    capacity: usize,
    /// Frames that were emptied.
    free: Vec<Frame>,
    hand: usize,
    forks: Vec<Resident>,
    stats: PoolStats,
}

impl BufferPool {
    /// A pool of `capacity` pages, at least 16. Room is reserved at once, so that pages never
    /// move; memory is taken as they come in.
    pub fn new(capacity: usize) -> BufferPool {
        let mut pages = Vec::new();
        // A pool that the machine cannot promise at once, or that has no bound, grows as it can.
        let _ = pages.try_reserve_exact(capacity.max(16));
        BufferPool {
            pages,
            metas: Vec::new(),
            capacity: capacity.max(16),
            free: Vec::new(),
            hand: 0,
            forks: Vec::new(),
            stats: PoolStats::default(),
        }
    }

    /// What the pool has done.
    pub fn stats(&self) -> PoolStats {
        self.stats
    }

    /// The page in a frame.
    pub fn page(&self, frame: Frame) -> &Page {
        &self.pages[frame.index()]
    }

    /// The page in a frame, to be changed. Who changes it calls [`BufferPool::mark_dirty`].
    pub fn page_mut(&mut self, frame: Frame) -> &mut Page {
        &mut self.pages[frame.index()]
    }

    /// The page must be written before it is forgotten.
    pub fn mark_dirty(&mut self, frame: Frame) {
        self.meta_mut(frame).dirty = true;
    }

    fn meta_mut(&mut self, frame: Frame) -> &mut Meta {
        self.metas[frame.index()]
            .as_mut()
            .expect("the frame holds a page")
    }

    fn resident(&mut self, fork: ForkId) -> &mut Resident {
        if self.forks.len() <= fork.index() {
            self.forks.resize_with(fork.index() + 1, Resident::default);
        }
        &mut self.forks[fork.index()]
    }

    fn find(&mut self, fork: ForkId, block: BlockNumber) -> Option<Frame> {
        self.stats.lookups += 1;
        let frame = self.forks.get(fork.index())?.get(block)?;
        self.stats.hits += 1;
        let meta = self.meta_mut(frame);
        meta.usage = (meta.usage + 1).min(MAX_USAGE);
        Some(frame)
    }

    /// The frame of a block that is within its fork, read and verified if it is not in the pool.
    pub fn read(
        &mut self,
        smgr: &mut Smgr,
        fork: ForkId,
        block: BlockNumber,
    ) -> Result<Frame, SmgrError> {
        if let Some(frame) = self.find(fork, block) {
            return Ok(frame);
        }
        let frame = self.take_frame(smgr)?;
        self.stats.read += 1;
        let page = &mut self.pages[frame.index()];
        let read = smgr
            .read(fork, block, page)
            .and_then(|()| smgr.verify(fork, block, page));
        match read {
            Ok(()) => Ok(self.settle(frame, fork, block)),
            Err(error) => {
                self.free.push(frame);
                Err(error)
            }
        }
    }

    /// The frame of a block that is about to be rebuilt, zeroed, whatever is in the file.
    pub fn zeroed(
        &mut self,
        smgr: &mut Smgr,
        fork: ForkId,
        block: BlockNumber,
    ) -> Result<Frame, SmgrError> {
        let frame = self.claim(smgr, fork, block)?;
        self.pages[frame.index()].bytes_mut().fill(0);
        Ok(frame)
    }

    /// The frame of a block all of whose bytes are about to be replaced. They are unspecified
    /// until then, so the caller must not fail half-way.
    pub fn claim(
        &mut self,
        smgr: &mut Smgr,
        fork: ForkId,
        block: BlockNumber,
    ) -> Result<Frame, SmgrError> {
        match self.find(fork, block) {
            Some(frame) => Ok(frame),
            None => {
                let frame = self.take_frame(smgr)?;
                Ok(self.settle(frame, fork, block))
            }
        }
    }

    /// Puts a filled frame under its block.
    fn settle(&mut self, frame: Frame, fork: ForkId, block: BlockNumber) -> Frame {
        self.metas[frame.index()] = Some(Meta {
            fork,
            block,
            usage: 1,
            dirty: false,
        });
        self.resident(fork).insert(block, frame);
        frame
    }

    /// A frame that holds nothing: a new one, an emptied one, or the clock sweep's victim.
    fn take_frame(&mut self, smgr: &mut Smgr) -> Result<Frame, SmgrError> {
        if let Some(frame) = self.free.pop() {
            return Ok(frame);
        }
        if self.pages.len() < self.capacity {
            self.pages.push(Page::zeroed());
            self.metas.push(None);
            return Ok(Frame::new(self.pages.len() - 1));
        }
        loop {
            let frame = Frame::new(self.hand);
            self.hand = (self.hand + 1) % self.capacity;
            let Some(meta) = &mut self.metas[frame.index()] else {
                continue;
            };
            if meta.usage > 0 {
                meta.usage -= 1;
                continue;
            }
            let victim = *meta;
            if victim.dirty {
                self.write_around(smgr, victim)?;
            }
            self.stats.evicted += 1;
            self.resident(victim.fork).remove(victim.block);
            self.metas[frame.index()] = None;
            return Ok(frame);
        }
    }

    /// Writes a dirty page together with the dirty pages beside it, which saves calls and
    /// spares the file system small writes.
    fn write_around(&mut self, smgr: &mut Smgr, victim: Meta) -> Result<(), SmgrError> {
        let resident = &self.forks[victim.fork.index()];
        let is_dirty = |block: BlockNumber| {
            let frame = resident.get(block);
            frame.filter(|f| self.metas[f.index()].is_some_and(|m| m.dirty))
        };
        let mut first = victim.block;
        while first > 0 && victim.block - first < NEIGHBOURS && is_dirty(first - 1).is_some() {
            first -= 1;
        }
        let upto = victim.block.saturating_add(NEIGHBOURS);
        let frames: Vec<Frame> = (first..=upto).map_while(is_dirty).collect();
        self.write_frames(smgr, victim.fork, first, &frames)
    }

    fn write_frames(
        &mut self,
        smgr: &mut Smgr,
        fork: ForkId,
        first: BlockNumber,
        frames: &[Frame],
    ) -> Result<(), SmgrError> {
        let pages: Vec<&Page> = frames.iter().map(|f| &self.pages[f.index()]).collect();
        smgr.write(fork, first, &pages)?;
        self.stats.written += frames.len() as u64;
        for frame in frames {
            self.meta_mut(*frame).dirty = false;
        }
        Ok(())
    }

    /// `DropRelationBuffers`: forgets the blocks of a fork from `first` on, dirty or not.
    pub fn discard(&mut self, fork: ForkId, first: BlockNumber) {
        let Some(resident) = self.forks.get(fork.index()) else {
            return;
        };
        let (blocks, visits) = resident.blocks_from(first);
        self.stats.discard_visits += visits;
        for (block, frame) in blocks {
            self.metas[frame.index()] = None;
            self.free.push(frame);
            self.forks[fork.index()].remove(block);
        }
    }

    /// Forgets all pages, which must be clean.
    pub fn discard_all(&mut self) {
        for i in 0..self.forks.len() {
            self.discard(ForkId::from_index(i), 0);
        }
    }

    /// Gives a fork that has no pages here copies of another's. They count as dirty, as no file
    /// has them.
    pub fn copy_fork(
        &mut self,
        smgr: &mut Smgr,
        from: ForkId,
        to: ForkId,
    ) -> Result<(), SmgrError> {
        let Some(resident) = self.forks.get(from.index()) else {
            return Ok(());
        };
        for (block, source) in resident.blocks_from(0).0 {
            let page = self.pages[source.index()].clone();
            let frame = self.take_frame(smgr)?;
            self.pages[frame.index()] = page;
            let frame = self.settle(frame, to, block);
            self.mark_dirty(frame);
        }
        Ok(())
    }

    /// Writes the dirty pages of one fork, in order, in runs.
    pub fn flush_fork(&mut self, smgr: &mut Smgr, fork: ForkId) -> Result<(), SmgrError> {
        let Some(resident) = self.forks.get(fork.index()) else {
            return Ok(());
        };
        if resident.len() == 0 {
            return Ok(());
        }
        let (blocks, visits) = resident.blocks_from(0);
        self.stats.discard_visits += visits;
        let mut run: Vec<Frame> = Vec::new();
        let mut run_first = 0;
        for (block, frame) in blocks {
            if !self.metas[frame.index()].is_some_and(|m| m.dirty) {
                continue;
            }
            if block != run_first + run.len() as u32 && !run.is_empty() {
                self.write_frames(smgr, fork, run_first, &run)?;
                run.clear();
            }
            if run.is_empty() {
                run_first = block;
            }
            run.push(frame);
        }
        if !run.is_empty() {
            self.write_frames(smgr, fork, run_first, &run)?;
        }
        Ok(())
    }

    /// Writes all dirty pages, fork by fork.
    pub fn flush_all(&mut self, smgr: &mut Smgr) -> Result<(), SmgrError> {
        (0..self.forks.len()).try_for_each(|i| self.flush_fork(smgr, ForkId::from_index(i)))
    }
}
