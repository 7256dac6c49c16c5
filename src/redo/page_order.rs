//! Redo in the order of pages: a window of records is planned in LSN order, then each page it
//! touches is read at most once, changed by all that survives, and written at most once.
//!
//! What is not a page - files, SLRUs, counters - is changed while the window is planned, in LSN
//! order. So are the sizes of forks, which decide what a touch finds. What cannot be reordered
//! against pages ends the window first.

use rustc_hash::FxHashMap;

use super::error::RedoError;
use super::missing::MissingPage;
use super::plan::{Action, FreeSpace, PagePlan};
use super::worker::{Chunk, PageJob, PageResults};
use super::{Redo, RedoErrorKind};
use crate::decode::Record;
use crate::format::VmExtension;
use crate::page::fsm::FsmAddress;
use crate::rmgr::{self, Change, ReadMode, Touch, TouchKind, Touches};
use crate::smgr::SmgrError;
use crate::types::{BlockTag, ForkNumber, RELSEG_BLOCKS, RelFileLocator};
use crate::wal::{Batch, WalLayout};

/// Most pages one worker takes at a time.
const CHUNK_PAGES: usize = 256;

/// A window of records in the making.
#[derive(Debug, Default)]
pub struct PageWindow {
    plan: PagePlan,
    touches: Touches,
    /// Blocks that the free space map of a relation can already tell of.
    mapped_blocks: FxHashMap<RelFileLocator, u64>,
}

impl PageWindow {
    /// A window without records.
    pub fn new() -> PageWindow {
        PageWindow::default()
    }

    /// Bytes of memory it takes, roughly; the records themselves not counted.
    pub fn memory(&self) -> usize {
        self.plan.memory()
    }
}

/// True for changes that must find every page as earlier records left it.
fn ends_window(change: &Change<'_>) -> bool {
    matches!(
        change,
        Change::TruncateRelation { .. }
            | Change::CopyDatabase { .. }
            | Change::CreateDatabase { .. }
            | Change::DropDatabase { .. }
            | Change::CreateTablespace { .. }
            | Change::DropTablespace { .. }
    )
}

impl Redo {
    /// Plans the record with this index in `batch`. All records since the last flush must be in
    /// the same batch.
    pub fn plan_record(
        &mut self,
        window: &mut PageWindow,
        batch: &Batch,
        layout: &WalLayout,
        (index, record): (usize, &Record<'_>),
    ) -> Result<(), Box<RedoError>> {
        let failed = |kind| RedoError::new(record, None, kind);
        self.note_record(record);
        let mut changes = Vec::new();
        rmgr::changes(record, &mut changes).map_err(|e| failed(e.into()))?;
        let ends_window = changes.iter().any(ends_window);
        if ends_window {
            self.flush_window(window, batch, layout)?;
        }
        for change in &changes {
            if let Change::DropRelation { locator } = change {
                self.forget_planned(window, *locator);
            }
            self.apply_change(record, change).map_err(failed)?;
        }
        if ends_window {
            // What a truncation did to the maps lies in the pool.
            self.empty_pool().map_err(|e| failed(e.into()))?;
        }
        let mut touches = std::mem::take(&mut window.touches);
        touches.clear();
        let listed = rmgr::touches(record, &mut touches).map_err(|e| failed(e.into()));
        let planned = listed.and_then(|()| {
            touches.iter().try_for_each(|touch| {
                self.plan_touch(window, index as u32, record, touch)
                    .map_err(|e| RedoError::new(record, Some(touch.tag), e))
            })
        });
        window.touches = touches;
        planned
    }

    fn forget_planned(&mut self, window: &mut PageWindow, locator: RelFileLocator) {
        for number in ForkNumber::ALL {
            if let Some(fork) = self.smgr.known_fork(locator, number) {
                window.plan.drop_fork(fork);
            }
        }
        window.mapped_blocks.remove(&locator);
    }

    /// Finds out what the touch meets, as the sizes are at its record, and queues it.
    fn plan_touch(
        &mut self,
        window: &mut PageWindow,
        index: u32,
        record: &Record<'_>,
        touch: &Touch,
    ) -> Result<(), SmgrError> {
        let (tag, block) = (touch.tag, touch.tag.block);
        let fork = self.smgr.fork(tag.locator, tag.fork);
        self.smgr.create(fork)?;
        let blocks = self.smgr.nblocks(fork)?;
        match (touch.kind, touch.read) {
            (TouchKind::Modify, ReadMode::Normal) if block >= blocks => {
                let missing = MissingPage {
                    lsn: record.lsn,
                    is_zero: false,
                };
                self.missing.add(tag, missing);
                return Ok(());
            }
            (TouchKind::Modify, ReadMode::Normal) => {}
            (TouchKind::Modify, ReadMode::VisibilityMap) => {
                match self.smgr.dir().format().vm_extension {
                    VmExtension::InitialisedPages => {
                        for new in blocks..=block {
                            let action = Action::InitMapPage;
                            window
                                .plan
                                .push((fork, new), index, action, FreeSpace::Never, false);
                        }
                    }
                }
                self.extend_over(fork, block, blocks)?;
            }
            _ => self.extend_over(fork, block, blocks)?,
        }
        let free_space = match tag.fork {
            ForkNumber::Main if rmgr::may_record_free_space(record) => FreeSpace::Possible,
            _ => FreeSpace::Never,
        };
        let keep_earlier = touch.kind != TouchKind::Modify && !self.map_has(window, tag)?;
        let action = Action::Touch {
            target: touch.target,
            kind: touch.kind,
            read: touch.read,
        };
        window
            .plan
            .push((fork, block), index, action, free_space, keep_earlier);
        Ok(())
    }

    /// True if the free space map has a place for a heap block already. Only then may what
    /// earlier records stored there be made up for from the page as it ends: whether they made
    /// the map grow cannot be told without doing them.
    fn map_has(&mut self, window: &mut PageWindow, tag: BlockTag) -> Result<bool, SmgrError> {
        if tag.fork != ForkNumber::Main {
            return Ok(true);
        }
        let map_block = u64::from(FsmAddress::of_heap_block(tag.block).0.block());
        if let Some(blocks) = window.mapped_blocks.get(&tag.locator) {
            return Ok(map_block < *blocks);
        }
        let fork = self.smgr.fork(tag.locator, ForkNumber::Fsm);
        let blocks = match self.smgr.exists(fork)? {
            true => u64::from(self.smgr.nblocks(fork)?),
            false => 0,
        };
        window.mapped_blocks.insert(tag.locator, blocks);
        Ok(map_block < blocks)
    }

    /// Does what was planned and empties the window.
    pub fn flush_window(
        &mut self,
        window: &mut PageWindow,
        batch: &Batch,
        layout: &WalLayout,
    ) -> Result<(), Box<RedoError>> {
        if window.plan.is_empty() {
            return Ok(());
        }
        let at_start = |kind: RedoErrorKind| RedoError::in_window(batch.record_lsn(0), kind);
        self.empty_pool().map_err(|e| at_start(e.into()))?;
        let order = window.plan.ordered_pages();
        let chunks = self
            .chunks(&window.plan, &order)
            .map_err(|e| at_start(e.into()))?;
        let job = PageJob {
            plan: &window.plan,
            order: &order,
            chunks: &chunks,
            batch,
            layout,
            settings: self.settings,
            data_checksums: self.smgr.data_checksums(),
            kernel: self.dir.kernel(),
        };
        let results = job.run(self.jobs)?;
        self.take_results(window, batch, results)
            .map_err(|e| at_start(e.into()))?;
        self.stats.touches_dead += window.plan.dead();
        window.plan.clear();
        window.mapped_blocks.clear();
        Ok(())
    }

    /// Divides the pages among units of work: neighbours in one segment file stay together.
    fn chunks(&mut self, plan: &PagePlan, order: &[u32]) -> Result<Vec<Chunk>, SmgrError> {
        let mut chunks: Vec<Chunk> = Vec::new();
        for (at, page) in order.iter().enumerate() {
            let page = plan.page(*page);
            let segment = page.block / RELSEG_BLOCKS;
            if let Some(last) = chunks.last_mut() {
                let same = last.fork == page.fork && last.segment == segment;
                if same && last.pages.len() < CHUNK_PAGES {
                    last.pages.end = at + 1;
                    continue;
                }
            }
            // A file must be full before the next segment has anything.
            if segment > 0 {
                self.smgr.settle(page.fork)?;
            }
            chunks.push(Chunk {
                pages: at..at + 1,
                fork: page.fork,
                tag: self.smgr.tag(page.fork, 0),
                segment,
                path: self.smgr.segment_path(page.fork, segment),
                on_disk: self.smgr.on_disk(page.fork),
            });
        }
        Ok(chunks)
    }

    /// Takes over what the workers found: sizes, missing pages, free space.
    fn take_results(
        &mut self,
        window: &PageWindow,
        batch: &Batch,
        results: PageResults,
    ) -> Result<(), SmgrError> {
        for (fork, segment, last) in results.written {
            self.smgr.pages_written(fork, segment, last);
        }
        for (tag, record) in results.missing {
            let lsn = batch.record_lsn(record as usize);
            self.missing.add(tag, MissingPage { lsn, is_zero: true });
        }
        let mut free_space = results.free_space;
        free_space.sort_unstable_by_key(|f| (f.tag, f.record));
        for found in free_space {
            let (address, _) = FsmAddress::of_heap_block(found.tag.block);
            let map = self.smgr.fork(found.tag.locator, ForkNumber::Fsm);
            // An image of the map itself that came later has the last word.
            let image = window.plan.replaced_by(map, address.block());
            if image.is_none_or(|image| image < found.record) {
                let (locator, block) = (found.tag.locator, found.tag.block);
                if found.most_bytes > found.bytes {
                    self.record_free_space(locator, block, found.most_bytes)?;
                }
                self.record_free_space(locator, block, found.bytes)?;
            }
        }
        self.empty_pool()?;
        self.stats.images += results.images;
        self.stats.pages_read += results.pages_read;
        self.stats.pages_written += results.pages_written;
        Ok(())
    }

    /// The pool keeps nothing between windows: workers read and write the files.
    fn empty_pool(&mut self) -> Result<(), SmgrError> {
        self.pool.flush_all(&mut self.smgr)?;
        self.pool.discard_all();
        Ok(())
    }
}
