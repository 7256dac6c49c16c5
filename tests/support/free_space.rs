//! What free space maps may differ in when records are redone in the order of pages: a block may
//! have the category of its page as it ended, instead of one that PostgreSQL stored before.

use std::path::Path;

use super::compare::Difference;

const PAGE_BYTES: usize = 8192;
/// Where the nodes of a map page begin, and how many of them are not leaves.
const NODES: usize = 28;
const INNER_NODES: usize = 4095;
/// The first map page that tells of heap blocks; the two above it tell of map pages.
const FIRST_BOTTOM_PAGE: usize = 2;
/// Where a page has its checksum, which follows the rest.
const CHECKSUM: std::ops::Range<usize> = 8..10;

/// True if the difference is no more than that.
pub fn is_allowed(difference: &Difference, theirs: &Path, ours: &Path) -> bool {
    let Some(heap) = difference.path.strip_suffix("_fsm") else {
        return false;
    };
    let read = |root: &Path, path: &str| std::fs::read(root.join(path)).unwrap_or_default();
    let (their_map, our_map) = (read(theirs, &difference.path), read(ours, &difference.path));
    let heap = read(ours, heap);
    their_map.len() == our_map.len()
        && (their_map
            .chunks_exact(PAGE_BYTES)
            .zip(our_map.chunks_exact(PAGE_BYTES)))
        .enumerate()
        .all(|(block, (theirs, ours))| page_is_allowed(block, theirs, ours, &heap))
}

fn page_is_allowed(block: usize, theirs: &[u8], ours: &[u8], heap: &[u8]) -> bool {
    if theirs == ours {
        return true;
    }
    let head = |page: &[u8]| {
        let mut head = page[..NODES].to_vec();
        head[CHECKSUM].fill(0);
        head
    };
    // Maps of more than one upper page are not compared by this rule.
    if block < FIRST_BOTTOM_PAGE || head(theirs) != head(ours) {
        return false;
    }
    let nodes = &ours[NODES..];
    let leaves = nodes.len() - INNER_NODES;
    let leaf = |slot: usize| nodes[INNER_NODES + slot];
    let first = (block - FIRST_BOTTOM_PAGE) * leaves;
    let right = |slot: usize| {
        leaf(slot) == theirs[NODES + INNER_NODES + slot]
            || Some(leaf(slot)) == category(heap, first + slot)
    };
    let child = |node: usize| nodes.get(node).copied().unwrap_or(0);
    (0..leaves).all(right)
        && (0..INNER_NODES).all(|n| nodes[n] == child(2 * n + 1).max(child(2 * n + 2)))
}

/// The category of a heap block by its page.
fn category(heap: &[u8], block: usize) -> Option<u8> {
    let page = heap.get(block * PAGE_BYTES..(block + 1) * PAGE_BYTES)?;
    let word = |at: usize| usize::from(u16::from_le_bytes([page[at], page[at + 1]]));
    let free = word(14).saturating_sub(word(12)).saturating_sub(4);
    Some(match free {
        8160.. => 255,
        _ => u8::try_from(free / 32).expect("below 255"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map page with one leaf, and a heap page with so much space between its pointers.
    fn map(category: u8) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        let mut node = INNER_NODES;
        page[NODES + node] = category;
        while node > 0 {
            node = (node - 1) / 2;
            page[NODES + node] = category;
        }
        page
    }

    #[test]
    fn only_the_true_category_may_differ() {
        let mut heap = vec![0; PAGE_BYTES];
        heap[12..14].copy_from_slice(&24u16.to_le_bytes());
        heap[14..16].copy_from_slice(&(24 + 4 + 3200u16).to_le_bytes());
        assert!(page_is_allowed(2, &map(255), &map(100), &heap));
        assert!(!page_is_allowed(2, &map(255), &map(99), &heap));
        let mut torn = map(100);
        torn[NODES] = 7;
        assert!(!page_is_allowed(2, &map(255), &torn, &heap));
        assert!(!page_is_allowed(1, &map(255), &map(100), &heap));
    }
}
