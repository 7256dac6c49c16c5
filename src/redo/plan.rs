//! What a window does to pages: one queue of operations for each page, in LSN order.
//!
//! The plan is made record by record, with the sizes of forks as they are at each record. An
//! operation that a later image, init, or drop of its page makes pointless is cut out of its
//! queue at once, so that only what survives is ever applied.

use rustc_hash::FxHashMap;

use crate::rmgr::{ReadMode, Target, TouchKind};
use crate::smgr::ForkId;
use crate::types::BlockNumber;

/// No operation.
const NONE: u32 = u32::MAX;

/// What is done to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// A touch of the record.
    Touch {
        /// Block reference, or a clear of map bits.
        target: Target,
        /// What happens to the old bytes.
        kind: TouchKind,
        /// How a page that is not as expected is treated.
        read: ReadMode,
    },
    /// The page was added to a visibility map and starts out initialised.
    InitMapPage,
}

impl Action {
    /// The old bytes do not matter.
    fn replaces(self) -> bool {
        match self {
            Action::Touch { kind, .. } => kind != TouchKind::Modify,
            Action::InitMapPage => true,
        }
    }
}

/// One operation of one record on one page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    /// Index of the record in the batch of the window.
    pub(super) record: u32,
    /// Next operation on the same page.
    next: u32,
    pub(super) action: Action,
}

/// A page and its queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlannedPage {
    pub(super) fork: ForkId,
    pub(super) block: BlockNumber,
    first: u32,
    last: u32,
    /// An operation that may have stored the page's free space was cut out: the free space map
    /// must be told of the page as it ends.
    pub(super) owes_free_space: bool,
    /// The queue has an operation that may store free space.
    may_store_free_space: bool,
}

impl PlannedPage {
    fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

/// The pages of one fork in this window.
#[derive(Debug, Default)]
struct ForkPlan {
    by_block: FxHashMap<BlockNumber, u32>,
    pages: Vec<u32>,
}

/// What a new operation means for the free space map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FreeSpace {
    /// It never stores free space.
    Never,
    /// It may.
    Possible,
}

/// The queues of a window.
#[derive(Debug, Default)]
pub(super) struct PagePlan {
    ops: Vec<Op>,
    pages: Vec<PlannedPage>,
    forks: Vec<ForkPlan>,
    used_forks: Vec<ForkId>,
    dead: u64,
}

impl PagePlan {
    /// Bytes of memory the plan takes, roughly.
    pub(super) fn memory(&self) -> usize {
        self.ops.len() * size_of::<Op>() + self.pages.len() * (size_of::<PlannedPage>() + 16)
    }

    /// True if there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Operations that were cut out since the last [`PagePlan::clear`].
    pub(super) fn dead(&self) -> u64 {
        self.dead
    }

    fn page_index(&mut self, fork: ForkId, block: BlockNumber) -> usize {
        if self.forks.len() <= fork.index() {
            self.forks.resize_with(fork.index() + 1, ForkPlan::default);
        }
        let plan = &mut self.forks[fork.index()];
        let next = self.pages.len() as u32;
        let index = *plan.by_block.entry(block).or_insert(next);
        if index == next {
            if plan.pages.is_empty() {
                self.used_forks.push(fork);
            }
            plan.pages.push(next);
            self.pages.push(PlannedPage {
                fork,
                block,
                first: NONE,
                last: NONE,
                owes_free_space: false,
                may_store_free_space: false,
            });
        }
        index as usize
    }

    /// Adds an operation. If it replaces the page, what was queued before is cut out; unless
    /// `keep_earlier` says that free space those operations store could not be made up for.
    pub(super) fn push(
        &mut self,
        (fork, block): (ForkId, BlockNumber),
        record: u32,
        action: Action,
        free_space: FreeSpace,
        keep_earlier: bool,
    ) {
        let index = self.page_index(fork, block);
        if action.replaces() && !(keep_earlier && self.pages[index].may_store_free_space) {
            self.cut(index);
        }
        let at = self.ops.len() as u32;
        self.ops.push(Op {
            record,
            next: NONE,
            action,
        });
        let page = &mut self.pages[index];
        if page.is_empty() {
            page.first = at;
        } else {
            self.ops[page.last as usize].next = at;
        }
        page.last = at;
        page.may_store_free_space |= free_space == FreeSpace::Possible;
    }

    /// Empties the queue of a page.
    fn cut(&mut self, index: usize) {
        self.dead += self.queue(index as u32).count() as u64;
        let page = &mut self.pages[index];
        page.owes_free_space |= page.may_store_free_space;
        page.may_store_free_space = false;
        page.first = NONE;
        page.last = NONE;
    }

    /// A fork was dropped: nothing that was queued for it needs to be done.
    pub(super) fn drop_fork(&mut self, fork: ForkId) {
        let Some(plan) = self.forks.get_mut(fork.index()) else {
            return;
        };
        let pages = std::mem::take(&mut plan.pages);
        plan.by_block.clear();
        if pages.is_empty() {
            return;
        }
        for index in pages {
            self.cut(index as usize);
            self.pages[index as usize].owes_free_space = false;
        }
    }

    /// The operations on a page, in LSN order.
    pub(super) fn queue(&self, page: u32) -> impl Iterator<Item = &Op> {
        let mut at = self.pages[page as usize].first;
        std::iter::from_fn(move || {
            let op = self.ops.get(at as usize)?;
            at = op.next;
            Some(op)
        })
    }

    /// True if the first operation needs the bytes that are in the file.
    pub(super) fn needs_read(&self, page: u32) -> bool {
        self.queue(page)
            .next()
            .is_some_and(|op| !op.action.replaces())
    }

    /// A page.
    pub(super) fn page(&self, page: u32) -> &PlannedPage {
        &self.pages[page as usize]
    }

    /// The record of the last image or init in the queue of a page, if the page has one.
    pub(super) fn replaced_by(&self, fork: ForkId, block: BlockNumber) -> Option<u32> {
        let page = *self.forks.get(fork.index())?.by_block.get(&block)?;
        self.queue(page)
            .filter(|op| op.action.replaces())
            .last()
            .map(|op| op.record)
    }

    /// Pages with something to do, fork by fork, in block order.
    pub(super) fn ordered_pages(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.pages.len() as u32)
            .filter(|page| !self.pages[*page as usize].is_empty())
            .collect();
        order.sort_unstable_by_key(|page| {
            let page = &self.pages[*page as usize];
            (page.fork, page.block)
        });
        order
    }

    /// Forgets the window.
    pub(super) fn clear(&mut self) {
        self.ops.clear();
        self.pages.clear();
        for fork in self.used_forks.drain(..) {
            self.forks[fork.index()] = ForkPlan::default();
        }
        self.dead = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modify(n: u8) -> Action {
        let target = Target::Block(n);
        Action::Touch {
            target,
            kind: TouchKind::Modify,
            read: ReadMode::Normal,
        }
    }

    fn image() -> Action {
        let target = Target::Block(0);
        Action::Touch {
            target,
            kind: TouchKind::Image,
            read: ReadMode::Normal,
        }
    }

    fn records(plan: &PagePlan, page: u32) -> Vec<u32> {
        plan.queue(page).map(|op| op.record).collect()
    }

    #[test]
    fn an_image_makes_what_came_before_pointless() {
        let mut plan = PagePlan::default();
        let tag = (ForkId::from_index(3), 7);
        plan.push(tag, 0, modify(0), FreeSpace::Never, false);
        plan.push(tag, 1, modify(0), FreeSpace::Never, false);
        assert!(plan.needs_read(0));
        plan.push(tag, 2, image(), FreeSpace::Never, false);
        plan.push(tag, 3, modify(0), FreeSpace::Never, false);
        assert_eq!((records(&plan, 0), plan.dead()), (vec![2, 3], 2));
        assert!(!plan.needs_read(0));
        assert_eq!(plan.replaced_by(tag.0, tag.1), Some(2));
    }

    #[test]
    fn free_space_that_was_cut_out_is_owed_or_kept() {
        let mut plan = PagePlan::default();
        let tag = (ForkId::from_index(0), 1);
        plan.push(tag, 0, modify(0), FreeSpace::Possible, false);
        plan.push(tag, 1, image(), FreeSpace::Never, false);
        assert!(plan.page(0).owes_free_space);
        let kept = (ForkId::from_index(0), 2);
        plan.push(kept, 2, modify(0), FreeSpace::Possible, false);
        plan.push(kept, 3, image(), FreeSpace::Never, true);
        assert_eq!(records(&plan, 1), vec![2, 3]);
        assert!(!plan.page(1).owes_free_space);
    }

    #[test]
    fn a_dropped_fork_has_nothing_to_do_and_may_come_back() {
        let mut plan = PagePlan::default();
        let (a, b) = (ForkId::from_index(0), ForkId::from_index(1));
        plan.push((a, 0), 0, modify(0), FreeSpace::Never, false);
        plan.push((b, 0), 0, modify(1), FreeSpace::Never, false);
        plan.drop_fork(a);
        assert_eq!((plan.ordered_pages(), plan.dead()), (vec![1], 1));
        plan.push((a, 5), 1, image(), FreeSpace::Never, false);
        assert_eq!(plan.ordered_pages(), vec![2, 1]);
        plan.clear();
        assert!(plan.is_empty() && plan.ordered_pages().is_empty());
    }
}
