//! Storage TRUNCATE (`smgr_redo`, `src/backend/catalog/storage.c`), with what it does to the
//! maps of a heap.

use super::Redo;
use crate::buffer::Frame;
use crate::page::fsm::{self, FsmAddress};
use crate::page::vm;
use crate::smgr::{ForkId, SmgrError};
use crate::types::{BlockNumber, ForkNumber, RelFileLocator};

/// Which forks a record truncates.
#[derive(Debug, Clone, Copy)]
pub(super) struct TruncateForks {
    pub(super) main: bool,
    pub(super) vm: bool,
    pub(super) fsm: bool,
}

impl Redo {
    pub(super) fn truncate_relation(
        &mut self,
        locator: RelFileLocator,
        blocks: BlockNumber,
        forks: TruncateForks,
    ) -> Result<(), SmgrError> {
        let main = self.smgr.fork(locator, ForkNumber::Main);
        self.smgr.create(main)?;
        let mut cuts: Vec<(ForkId, BlockNumber)> = Vec::new();
        if forks.main {
            self.missing.forget_from(locator, ForkNumber::Main, blocks);
            cuts.push((main, blocks));
        }
        let mut fsm_was_cut = None;
        if forks.fsm {
            let fork = self.smgr.fork(locator, ForkNumber::Fsm);
            if let Some(keep) = self.prepare_fsm_truncate(fork, blocks)? {
                cuts.push((fork, keep));
                fsm_was_cut = Some(fork);
            }
        }
        if forks.vm {
            let fork = self.smgr.fork(locator, ForkNumber::Vm);
            if let Some(keep) = self.prepare_vm_truncate(fork, blocks)? {
                cuts.push((fork, keep));
            }
        }
        for (fork, keep) in cuts {
            self.pool.discard(fork, keep);
            self.smgr.truncate(fork, keep)?;
        }
        if let Some(fork) = fsm_was_cut {
            self.vacuum_fsm_page(fork, FsmAddress::ROOT, blocks)?;
        }
        Ok(())
    }

    /// `FreeSpaceMapPrepareTruncateRel`: clears what lies beyond the new end of the heap and
    /// returns how many blocks of the map stay; `None` if there is nothing to cut.
    fn prepare_fsm_truncate(
        &mut self,
        fork: ForkId,
        heap_blocks: BlockNumber,
    ) -> Result<Option<BlockNumber>, SmgrError> {
        if !self.smgr.exists(fork)? {
            return Ok(None);
        }
        let (address, slot) = FsmAddress::of_heap_block(heap_blocks);
        if slot > 0 {
            let Some(frame) = self.fsm_page(fork, address)? else {
                return Ok(None);
            };
            fsm::truncate(self.pool.page_mut(frame), slot);
            self.pool.mark_dirty(frame);
            return Ok(Some(address.block() + 1));
        }
        let keep = address.block();
        Ok((self.smgr.nblocks(fork)? > keep).then_some(keep))
    }

    /// `visibilitymap_prepare_truncate`.
    fn prepare_vm_truncate(
        &mut self,
        fork: ForkId,
        heap_blocks: BlockNumber,
    ) -> Result<Option<BlockNumber>, SmgrError> {
        if !self.smgr.exists(fork)? {
            return Ok(None);
        }
        let mut keep = vm::map_block(heap_blocks);
        if !heap_blocks.is_multiple_of(vm::HEAP_BLOCKS_PER_PAGE) {
            let blocks = self.smgr.nblocks(fork)?;
            if keep >= blocks {
                return Ok(None);
            }
            let frame = self.map_page(fork, keep)?;
            vm::clear_tail(self.pool.page_mut(frame), heap_blocks);
            self.pool.mark_dirty(frame);
            keep += 1;
        }
        Ok((self.smgr.nblocks(fork)? > keep).then_some(keep))
    }

    /// `fsm_readbuf` without extending: `None` past the end of the map.
    fn fsm_page(&mut self, fork: ForkId, address: FsmAddress) -> Result<Option<Frame>, SmgrError> {
        if address.block() >= self.smgr.nblocks(fork)? {
            return Ok(None);
        }
        self.map_page(fork, address.block()).map(Some)
    }

    /// A page of either map that is within its fork. Damaged or never initialised ones start
    /// afresh, in memory.
    fn map_page(&mut self, fork: ForkId, block: BlockNumber) -> Result<Frame, SmgrError> {
        let frame = match self.pool.read(&mut self.smgr, fork, block) {
            Err(SmgrError::InvalidPage { .. }) => self.pool.zeroed(&mut self.smgr, fork, block)?,
            other => other?,
        };
        let page = self.pool.page_mut(frame);
        if page.is_new() {
            page.init(0);
        }
        Ok(frame)
    }

    /// `fsm_vacuum_page` from `first` on (`FreeSpaceMapVacuumRange`): brings the upper pages up to
    /// date and returns the best category below `address`. In recovery with logged hint bits
    /// PostgreSQL does not mark these pages dirty, so what it changes in them is lost unless
    /// something else does.
    fn vacuum_fsm_page(
        &mut self,
        fork: ForkId,
        address: FsmAddress,
        first: BlockNumber,
    ) -> Result<Option<u8>, SmgrError> {
        let Some(frame) = self.fsm_page(fork, address)? else {
            return Ok(None);
        };
        if !address.is_bottom() {
            let mut at_end = false;
            for slot in address.slots_from(first) {
                let below = if at_end {
                    None
                } else {
                    self.vacuum_fsm_page(fork, address.child(slot), first)?
                };
                at_end |= below.is_none();
                self.set_upper_slot(fork, address, slot, below.unwrap_or(0))?;
            }
        }
        let frame = self.fsm_page(fork, address)?.unwrap_or(frame);
        let page = self.pool.page_mut(frame);
        let best = fsm::root(page);
        // The search for free space starts anew; nobody marks the page dirty for that.
        fsm::set_next_slot(page, 0);
        Ok(Some(best))
    }

    /// Looked up anew each time: reading pages below may have evicted this one.
    fn set_upper_slot(
        &mut self,
        fork: ForkId,
        address: FsmAddress,
        slot: u32,
        value: u8,
    ) -> Result<(), SmgrError> {
        let Some(frame) = self.fsm_page(fork, address)? else {
            return Ok(());
        };
        let page = self.pool.page_mut(frame);
        if fsm::get(page, slot) != value {
            fsm::set(page, slot, value);
            if !self.settings.hint_bits_are_logged {
                self.pool.mark_dirty(frame);
            }
        }
        Ok(())
    }
}
