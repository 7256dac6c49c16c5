//! The free space map: a tree of categories on each page, three levels of pages
//! (`src/backend/storage/freespace/`).

use std::cmp::Ordering;
use std::ops::Range;

use super::{MAX_HEAP_TUPLE_BYTES, PAGE_HEADER_BYTES, Page};
use crate::types::{BLOCK_BYTES, BlockNumber, INVALID_BLOCK};

/// `fp_next_slot`, then the nodes.
const FP_NEXT_SLOT: usize = PAGE_HEADER_BYTES;
const FP_NODES: usize = FP_NEXT_SLOT + 4;
/// `NodesPerPage`.
const NODES: usize = BLOCK_BYTES - FP_NODES;
/// `NonLeafNodesPerPage`.
const NON_LEAF_NODES: usize = BLOCK_BYTES / 2 - 1;
/// `SlotsPerFSMPage`: leaf nodes, one for each page below.
pub const SLOTS_PER_PAGE: u32 = (NODES - NON_LEAF_NODES) as u32;
const _: () = assert!(SLOTS_PER_PAGE == 4069);

/// Levels of pages (`FSM_TREE_DEPTH`); level 0 holds the categories of heap blocks.
const TREE_DEPTH: u32 = 3;
/// Bytes of free space in one category (`FSM_CAT_STEP`).
const CATEGORY_STEP: usize = BLOCK_BYTES / 256;

/// A page of the map by its place in the tree (`FSMAddress`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FsmAddress {
    level: u32,
    page: u32,
}

impl FsmAddress {
    /// The top of the tree.
    pub const ROOT: FsmAddress = FsmAddress {
        level: TREE_DEPTH - 1,
        page: 0,
    };

    /// `fsm_get_location`: the bottom page and slot of a heap block.
    pub fn of_heap_block(heap_block: BlockNumber) -> (FsmAddress, u32) {
        let address = FsmAddress {
            level: 0,
            page: heap_block / SLOTS_PER_PAGE,
        };
        (address, heap_block % SLOTS_PER_PAGE)
    }

    /// True for pages whose slots are heap blocks.
    pub fn is_bottom(self) -> bool {
        self.level == 0
    }

    /// `fsm_get_child`.
    pub fn child(self, slot: u32) -> FsmAddress {
        assert!(self.level > 0, "bottom pages have no children");
        FsmAddress {
            level: self.level - 1,
            page: self.page * SLOTS_PER_PAGE + slot,
        }
    }

    /// The slots of an upper page under which heap blocks from `first` on can be, up to the last
    /// block a heap can have (`fsm_vacuum_page` with an open end).
    pub fn slots_from(self, first: BlockNumber) -> Range<u32> {
        let (start_page, start_slot) = self.path_to(first);
        let (end_page, end_slot) = self.path_to(INVALID_BLOCK);
        let start = match start_page.cmp(&self.page) {
            Ordering::Less => 0,
            Ordering::Equal => start_slot,
            Ordering::Greater => SLOTS_PER_PAGE,
        };
        let end = match end_page.cmp(&self.page) {
            Ordering::Less => 0,
            Ordering::Equal => end_slot + 1,
            Ordering::Greater => SLOTS_PER_PAGE,
        };
        start..end
    }

    /// Page and slot, on the level of this page, that lead to a heap block.
    fn path_to(self, heap_block: BlockNumber) -> (u32, u32) {
        let (mut page, mut slot) = (heap_block / SLOTS_PER_PAGE, heap_block % SLOTS_PER_PAGE);
        for _ in 0..self.level {
            slot = page % SLOTS_PER_PAGE;
            page /= SLOTS_PER_PAGE;
        }
        (page, slot)
    }

    /// `fsm_logical_to_physical`: the block of the fork. Pages are stored depth first.
    pub fn block(self) -> BlockNumber {
        let mut leaf = u64::from(self.page);
        for _ in 0..self.level {
            leaf *= u64::from(SLOTS_PER_PAGE);
        }
        let mut pages = 0;
        for _ in 0..TREE_DEPTH {
            pages += leaf + 1;
            leaf /= u64::from(SLOTS_PER_PAGE);
        }
        (pages - u64::from(self.level) - 1) as BlockNumber
    }
}

/// `fsm_space_avail_to_cat`: the category of `bytes` of free space.
pub fn category(bytes: usize) -> u8 {
    if bytes >= MAX_HEAP_TUPLE_BYTES {
        255
    } else {
        (bytes / CATEGORY_STEP).min(254) as u8
    }
}

fn node(page: &Page, n: usize) -> u8 {
    page.bytes()[FP_NODES + n]
}

/// The larger child of a node; children past the end count as 0.
fn max_child(page: &Page, n: usize) -> u8 {
    let left = 2 * n + 1;
    let child = |c| if c < NODES { node(page, c) } else { 0 };
    child(left).max(child(left + 1))
}

/// `fsm_get_avail`: the category of a slot.
pub fn get(page: &Page, slot: u32) -> u8 {
    node(page, NON_LEAF_NODES + slot as usize)
}

/// `fsm_get_max_avail`: the root of the page's tree.
pub fn root(page: &Page) -> u8 {
    node(page, 0)
}

/// `fsm_set_avail`: stores a category and carries it up; says whether anything changed.
pub fn set(page: &mut Page, slot: u32, value: u8) -> bool {
    let mut n = NON_LEAF_NODES + slot as usize;
    let old = node(page, n);
    if old == value && value <= root(page) {
        return false;
    }
    page.bytes_mut()[FP_NODES + n] = value;
    while n > 0 {
        n = (n - 1) / 2;
        let new = max_child(page, n);
        if node(page, n) == new {
            break;
        }
        page.bytes_mut()[FP_NODES + n] = new;
    }
    // Only a torn page gets here with a root that is too small.
    if value > root(page) {
        rebuild(page);
    }
    true
}

/// `fsm_truncate_avail`: clears the slots from `slots` on; says whether anything changed.
pub fn truncate(page: &mut Page, slots: u32) -> bool {
    let tail = &mut page.bytes_mut()[FP_NODES + NON_LEAF_NODES + slots as usize..];
    let changed = tail.iter().any(|b| *b != 0);
    tail.fill(0);
    if changed {
        rebuild(page);
    }
    changed
}

/// `fsm_rebuild_page`: recomputes the inner nodes; says whether anything changed.
pub fn rebuild(page: &mut Page) -> bool {
    let mut changed = false;
    for n in (0..NON_LEAF_NODES).rev() {
        let new = max_child(page, n);
        if node(page, n) != new {
            page.bytes_mut()[FP_NODES + n] = new;
            changed = true;
        }
    }
    changed
}

/// Stores `fp_next_slot`, where the next search starts.
pub fn set_next_slot(page: &mut Page, slot: u32) {
    page.put_u32(FP_NEXT_SLOT, slot);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_laid_depth_first() {
        assert_eq!(FsmAddress::ROOT.block(), 0);
        assert_eq!(FsmAddress { level: 1, page: 0 }.block(), 1);
        let physical = |heap| FsmAddress::of_heap_block(heap).0.block();
        assert_eq!(physical(0), 2);
        assert_eq!(physical(4069), 3);
        let n = 4069u32;
        assert_eq!(physical(n * n), n + n / 4069 + n / (4069 * 4069) + 2);
        assert_eq!(
            FsmAddress { level: 1, page: 1 }.block(),
            physical(n * n) - 1
        );
    }

    #[test]
    fn slots_of_upper_pages() {
        assert_eq!(FsmAddress::ROOT.slots_from(0), 0..260);
        assert_eq!(FsmAddress::ROOT.slots_from(4069 * 4069 * 7), 7..260);
        let below = FsmAddress::ROOT.child(1);
        assert_eq!(below.slots_from(0), 0..4069);
        assert_eq!(below.slots_from(4069 * 4069 + 4069 * 3), 3..4069);
        assert!(below.slots_from(4069 * 4069 * 2).is_empty());
    }

    #[test]
    fn categories() {
        assert_eq!(category(0), 0);
        assert_eq!(category(31), 0);
        assert_eq!(category(32), 1);
        assert_eq!(category(8159), 254);
        assert_eq!(category(8160), 255);
    }

    #[test]
    fn a_value_is_carried_to_the_root() {
        let mut page = Page::zeroed();
        page.init(0);
        assert!(set(&mut page, 100, 7));
        assert!(!set(&mut page, 100, 7));
        assert_eq!((get(&page, 100), root(&page)), (7, 7));
        assert!(set(&mut page, 4068, 9));
        assert_eq!(root(&page), 9);
        assert!(set(&mut page, 4068, 1));
        assert_eq!(root(&page), 7);
    }

    #[test]
    fn last_write_wins_gives_the_rebuilt_tree() {
        let mut page = Page::zeroed();
        page.init(0);
        for i in 0..5000u32 {
            set(&mut page, (i * 7919) % SLOTS_PER_PAGE, (i % 256) as u8);
        }
        let mut rebuilt = page.clone();
        assert!(!rebuild(&mut rebuilt));
        assert_eq!(page.bytes(), rebuilt.bytes());
    }

    #[test]
    fn a_torn_tree_is_rebuilt() {
        let mut page = Page::zeroed();
        page.init(0);
        set(&mut page, 0, 3);
        // A leaf that its ancestors do not know of.
        page.bytes_mut()[FP_NODES + NON_LEAF_NODES + 500] = 200;
        assert!(set(&mut page, 500, 200));
        assert_eq!(root(&page), 200);
    }

    #[test]
    fn truncation_clears_the_tail() {
        let mut page = Page::zeroed();
        page.init(0);
        set(&mut page, 10, 5);
        set(&mut page, 20, 50);
        assert!(truncate(&mut page, 15));
        assert!(!truncate(&mut page, 15));
        assert_eq!((get(&page, 10), get(&page, 20), root(&page)), (5, 0, 5));
    }
}
