//! The nblocks cache: sizes of forks, and every reason to forget or change one.
//!
//! PostgreSQL keeps the same number in `SMgrRelation.smgr_cached_nblocks` while it recovers
//! (`smgrnblocks`, `src/backend/storage/smgr/smgr.c`, since 14). Before that, and here with the
//! cache off, the kernel is asked at every block reference.

use crate::types::BlockNumber;

/// Whether sizes are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NblocksCache {
    /// Ask the kernel once for each fork and segment.
    On,
    /// Ask the kernel each time, as PostgreSQL 13 did.
    Off,
}

/// How often a size was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Answers from memory.
    pub hits: u64,
    /// Answers from the kernel.
    pub misses: u64,
}

/// What is known of the size of one fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ForkSize {
    /// Blocks the fork has; `None` if it must be asked for.
    logical: Option<BlockNumber>,
    /// Blocks that the files have. What lies between the two is zeros that were not written
    /// yet; with the cache off there is no such gap.
    on_disk: BlockNumber,
}

impl ForkSize {
    /// The size, if it is known.
    pub(super) fn known(self) -> Option<BlockNumber> {
        self.logical
    }

    /// Blocks that can be read from the files.
    pub(super) fn on_disk(self) -> BlockNumber {
        self.on_disk
    }

    /// The kernel was asked.
    pub(super) fn measured(&mut self, blocks: BlockNumber) {
        *self = ForkSize {
            logical: Some(blocks),
            on_disk: blocks,
        };
    }

    /// The first segment was made, empty.
    pub(super) fn created(&mut self) {
        self.measured(0);
    }

    /// The fork grew to `blocks`, for now in memory only.
    pub(super) fn extended(&mut self, blocks: BlockNumber) {
        self.logical = Some(self.logical.unwrap_or(0).max(blocks));
    }

    /// Blocks up to `blocks` were written.
    pub(super) fn written(&mut self, blocks: BlockNumber) {
        self.on_disk = self.on_disk.max(blocks);
        self.extended(blocks);
    }

    /// The fork was cut. A TRUNCATE to more than the fork has changes nothing: the files of a
    /// fork that were cut before a crash meet the record again.
    pub(super) fn truncated(&mut self, blocks: BlockNumber) {
        self.logical = self.logical.map(|old| old.min(blocks));
        self.on_disk = self.on_disk.min(blocks);
    }

    /// The files are gone, or somebody else may have changed them: the fork was dropped, its
    /// database was dropped or copied over, or changing it failed half-way.
    pub(super) fn forgotten(&mut self) {
        *self = ForkSize::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncate_to_more_than_there_is_changes_nothing() {
        let mut size = ForkSize::default();
        size.measured(10);
        size.truncated(20);
        assert_eq!((size.known(), size.on_disk()), (Some(10), 10));
        size.truncated(4);
        assert_eq!((size.known(), size.on_disk()), (Some(4), 4));
    }

    #[test]
    fn extension_is_known_before_it_is_on_disk() {
        let mut size = ForkSize::default();
        size.created();
        size.extended(7);
        assert_eq!((size.known(), size.on_disk()), (Some(7), 0));
        size.written(5);
        assert_eq!((size.known(), size.on_disk()), (Some(7), 5));
    }

    #[test]
    fn a_forgotten_size_must_be_asked_for() {
        let mut size = ForkSize::default();
        size.measured(10);
        size.forgotten();
        assert_eq!(size.known(), None);
    }
}
