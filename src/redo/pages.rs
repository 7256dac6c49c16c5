//! Redo on pages in the order of records, over the buffer pool (`XLogReadBufferExtended`,
//! `src/backend/access/transam/xlogutils.c`), and the free space map.

use super::missing::MissingPage;
use super::{Redo, RedoErrorKind, on_page};
use crate::buffer::Frame;
use crate::decode::Record;
use crate::format::VmExtension;
use crate::page::fsm::{self, FsmAddress};
use crate::rmgr::{ReadMode, Touch, TouchKind};
use crate::smgr::{ForkId, SmgrError};
use crate::types::{BlockNumber, ForkNumber, RelFileLocator};

impl Redo {
    /// Redoes one touch of a record.
    pub(super) fn apply_touch(
        &mut self,
        record: &Record<'_>,
        touch: &Touch,
    ) -> Result<(), RedoErrorKind> {
        let missing = |is_zero| MissingPage {
            lsn: record.lsn,
            is_zero,
        };
        let Some(frame) = self.frame_for(touch)? else {
            self.missing.add(touch.tag, missing(false));
            return Ok(());
        };
        let settings = self.settings;
        let page = self.pool.page_mut(frame);
        let touched = on_page::redo(record, touch, page, &mut self.restorer, &settings)?;
        if touched.is_missing {
            self.missing.add(touch.tag, missing(true));
        }
        if touched.is_dirty {
            self.pool.mark_dirty(frame);
        }
        self.stats.images += u64::from(touched.is_restored);
        match touched.free_space {
            Some(bytes) => Ok(self.record_free_space(touch.tag.locator, touch.tag.block, bytes)?),
            None => Ok(()),
        }
    }

    /// The frame of the touched page; `None` if the fork ends before it and the touch does not
    /// extend. The file is made if it is missing, in any case.
    fn frame_for(&mut self, touch: &Touch) -> Result<Option<Frame>, SmgrError> {
        let (tag, block) = (touch.tag, touch.tag.block);
        let fork = self.smgr.fork(tag.locator, tag.fork);
        self.smgr.create(fork)?;
        let blocks = self.smgr.nblocks(fork)?;
        match (touch.kind, touch.read) {
            (TouchKind::Image | TouchKind::Init, _) => {
                self.extend_over(fork, block, blocks)?;
                self.pool.claim(&mut self.smgr, fork, block).map(Some)
            }
            (TouchKind::Modify, ReadMode::Normal) if block >= blocks => Ok(None),
            (TouchKind::Modify, ReadMode::Normal) => {
                self.pool.read(&mut self.smgr, fork, block).map(Some)
            }
            (TouchKind::Modify, ReadMode::ZeroOnError) => {
                self.block_or_zeros(fork, block, blocks).map(Some)
            }
            (TouchKind::Modify, ReadMode::VisibilityMap) => {
                self.map_block(fork, block, blocks).map(Some)
            }
        }
    }

    /// A fork of `blocks` blocks grows, if it must, to hold `block`.
    pub(super) fn extend_over(
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

    /// `visibilitymap_pin`: the map grows page by page.
    fn map_block(
        &mut self,
        fork: ForkId,
        block: BlockNumber,
        blocks: BlockNumber,
    ) -> Result<Frame, SmgrError> {
        match self.smgr.dir().format().vm_extension {
            VmExtension::InitialisedPages => {
                for new in blocks..=block {
                    self.extend_over(fork, new, new)?;
                    let frame = self.pool.zeroed(&mut self.smgr, fork, new)?;
                    self.pool.page_mut(frame).init(0);
                    self.pool.mark_dirty(frame);
                }
            }
        }
        self.block_or_zeros(fork, block, blocks.max(block.saturating_add(1)))
    }

    /// `XLogRecordPageWithFreeSpace` (`src/backend/storage/freespace/freespace.c`): stores the
    /// category of a heap block in the bottom page. Upper pages are left to vacuum.
    pub(super) fn record_free_space(
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
