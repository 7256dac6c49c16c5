//! Redo on pages: reading, deciding by the LSN, restoring images, and the free space map
//! (`XLogReadBufferForRedoExtended`, `src/backend/access/transam/xlogutils.c`).

use super::missing::MissingPage;
use super::{Redo, RedoErrorKind};
use crate::buffer::Frame;
use crate::decode::Record;
use crate::format::VmExtension;
use crate::page::fsm::{self, FsmAddress};
use crate::rmgr::{self, PageChange, PageState, ReadMode, Target, Touch, TouchKind};
use crate::smgr::{ForkId, SmgrError};
use crate::types::{BlockNumber, ForkNumber, RelFileLocator};

impl Redo {
    /// Redoes one touch of a record.
    pub(super) fn apply_touch(
        &mut self,
        record: &Record<'_>,
        touch: &Touch,
    ) -> Result<(), RedoErrorKind> {
        let Some((frame, state)) = self.read_for_redo(record, touch)? else {
            return Ok(());
        };
        let settings = self.settings;
        let page = self.pool.page_mut(frame);
        let effect = rmgr::redo(record, touch, state, page, &settings)?;
        match effect.change {
            PageChange::None => {}
            PageChange::Changed => {
                page.set_lsn(record.end_lsn);
                self.pool.mark_dirty(frame);
            }
            PageChange::ChangedKeepLsn => self.pool.mark_dirty(frame),
        }
        if let Some(bytes) = effect.free_space {
            self.record_free_space(touch.tag.locator, touch.tag.block, bytes)?;
        }
        Ok(())
    }

    /// The page of a touch and what was found; `None` if it is missing.
    fn read_for_redo(
        &mut self,
        record: &Record<'_>,
        touch: &Touch,
    ) -> Result<Option<(Frame, PageState)>, RedoErrorKind> {
        let tag = touch.tag;
        let fork = self.smgr.fork(tag.locator, tag.fork);
        self.smgr.create(fork)?;
        let blocks = self.smgr.nblocks(fork)?;
        match touch.kind {
            TouchKind::Image => {
                self.extend_over(fork, tag.block, blocks)?;
                let frame = self.pool.claim(&mut self.smgr, fork, tag.block)?;
                self.restore_image(record, touch, frame)?;
                Ok(Some((frame, PageState::Restored)))
            }
            TouchKind::Init => {
                let frame = self.zeroed_block(fork, tag.block, blocks)?;
                Ok(Some((frame, PageState::Needs)))
            }
            TouchKind::Modify => {
                let Some(frame) = self.existing_block(record, touch, fork, blocks)? else {
                    return Ok(None);
                };
                let has_lsn = matches!(touch.target, Target::Block(_));
                let is_done = has_lsn && record.end_lsn <= self.pool.page(frame).lsn();
                let state = if is_done {
                    PageState::Done
                } else {
                    PageState::Needs
                };
                Ok(Some((frame, state)))
            }
        }
    }

    /// The frame of a block that is rebuilt; the fork grows to hold it.
    fn zeroed_block(
        &mut self,
        fork: ForkId,
        block: BlockNumber,
        blocks: BlockNumber,
    ) -> Result<Frame, SmgrError> {
        self.extend_over(fork, block, blocks)?;
        self.pool.zeroed(&mut self.smgr, fork, block)
    }

    /// A fork of `blocks` blocks grows, if it must, to hold `block`.
    fn extend_over(
        &mut self,
        fork: ForkId,
        block: BlockNumber,
        blocks: BlockNumber,
    ) -> Result<(), SmgrError> {
        if block >= blocks {
            self.smgr.extend(fork, block.saturating_add(1))?;
        }
        Ok(())
    }

    fn restore_image(
        &mut self,
        record: &Record<'_>,
        touch: &Touch,
        frame: Frame,
    ) -> Result<(), RedoErrorKind> {
        let Target::Block(id) = touch.target else {
            unreachable!("only block references have images");
        };
        let image = record
            .block(id)
            .and_then(|block| block.image)
            .expect("the touch says so");
        let page = self.pool.page_mut(frame);
        self.restorer.restore(&image, page)?;
        // A page that was never initialised keeps its LSN of zero.
        if !page.is_new() {
            page.set_lsn(record.end_lsn);
        }
        self.pool.mark_dirty(frame);
        self.stats.images += 1;
        Ok(())
    }

    /// The frame of a block that is changed in place.
    fn existing_block(
        &mut self,
        record: &Record<'_>,
        touch: &Touch,
        fork: ForkId,
        blocks: BlockNumber,
    ) -> Result<Option<Frame>, SmgrError> {
        let block = touch.tag.block;
        match touch.read {
            ReadMode::Normal => {
                let missing = |is_zero| MissingPage {
                    lsn: record.lsn,
                    is_zero,
                };
                if block >= blocks {
                    self.missing.add(touch.tag, missing(false));
                    return Ok(None);
                }
                let frame = self.pool.read(&mut self.smgr, fork, block)?;
                if self.pool.page(frame).is_new() {
                    self.missing.add(touch.tag, missing(true));
                    return Ok(None);
                }
                Ok(Some(frame))
            }
            ReadMode::ZeroOnError => self.block_or_zeros(fork, block, blocks).map(Some),
            ReadMode::VisibilityMap => self.map_block(fork, block, blocks).map(Some),
        }
    }

    /// `RBM_ZERO_ON_ERROR`: a missing block is added, a damaged one is taken for zeros.
    fn block_or_zeros(
        &mut self,
        fork: ForkId,
        block: BlockNumber,
        blocks: BlockNumber,
    ) -> Result<Frame, SmgrError> {
        self.extend_over(fork, block, blocks)?;
        match self.pool.read(&mut self.smgr, fork, block) {
            Err(SmgrError::InvalidPage { .. }) => self.pool.zeroed(&mut self.smgr, fork, block),
            other => other,
        }
    }

    /// `visibilitymap_pin`: the map grows page by page, and a page of zeros is initialised in
    /// memory, which reaches the disk only if a bit changes.
    fn map_block(
        &mut self,
        fork: ForkId,
        block: BlockNumber,
        blocks: BlockNumber,
    ) -> Result<Frame, SmgrError> {
        match self.smgr.dir().format().vm_extension {
            VmExtension::InitialisedPages => {
                for new in blocks..=block {
                    let frame = self.zeroed_block(fork, new, new)?;
                    self.pool.page_mut(frame).init(0);
                    self.pool.mark_dirty(frame);
                }
            }
        }
        let frame = self.block_or_zeros(fork, block, blocks.max(block.saturating_add(1)))?;
        let page = self.pool.page_mut(frame);
        if page.is_new() {
            page.init(0);
        }
        Ok(frame)
    }

    /// `XLogRecordPageWithFreeSpace` (`src/backend/storage/freespace/freespace.c`): stores the
    /// category of a heap block in the bottom page. Upper pages are left to vacuum.
    fn record_free_space(
        &mut self,
        locator: RelFileLocator,
        heap_block: BlockNumber,
        bytes: usize,
    ) -> Result<(), SmgrError> {
        let (address, slot) = FsmAddress::of_heap_block(heap_block);
        let fork = self.smgr.fork(locator, ForkNumber::Fsm);
        self.smgr.create(fork)?;
        let blocks = self.smgr.nblocks(fork)?;
        let frame = self.block_or_zeros(fork, address.block(), blocks)?;
        let page = self.pool.page_mut(frame);
        if page.is_new() {
            page.init(0);
        }
        if fsm::set(page, slot, fsm::category(bytes)) {
            self.pool.mark_dirty(frame);
        }
        Ok(())
    }
}
