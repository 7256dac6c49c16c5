//! The visibility map: two bits for each heap block (`src/backend/access/heap/visibilitymap.c`).

use super::{PAGE_HEADER_BYTES, Page};
use crate::types::{BLOCK_BYTES, BlockNumber};

/// `VISIBILITYMAP_ALL_VISIBLE`.
pub const ALL_VISIBLE: u8 = 0x01;
/// `VISIBILITYMAP_ALL_FROZEN`.
pub const ALL_FROZEN: u8 = 0x02;
/// `VISIBILITYMAP_VALID_BITS`.
pub const VALID_BITS: u8 = ALL_VISIBLE | ALL_FROZEN;

const HEAP_BLOCKS_PER_BYTE: u32 = 4;

/// Heap blocks that one page of the map covers.
pub const HEAP_BLOCKS_PER_PAGE: u32 =
    (BLOCK_BYTES - PAGE_HEADER_BYTES) as u32 * HEAP_BLOCKS_PER_BYTE;
const _: () = assert!(HEAP_BLOCKS_PER_PAGE == 32_672);

/// The page of the map that covers `heap_block`.
pub fn map_block(heap_block: BlockNumber) -> BlockNumber {
    heap_block / HEAP_BLOCKS_PER_PAGE
}

/// Byte on the page, and shift within the byte.
fn place(heap_block: BlockNumber) -> (usize, u32) {
    let within = heap_block % HEAP_BLOCKS_PER_PAGE;
    let byte = PAGE_HEADER_BYTES + (within / HEAP_BLOCKS_PER_BYTE) as usize;
    (byte, 2 * (within % HEAP_BLOCKS_PER_BYTE))
}

/// The bits of `heap_block`.
pub fn get(page: &Page, heap_block: BlockNumber) -> u8 {
    let (byte, shift) = place(heap_block);
    page.bytes()[byte] >> shift & VALID_BITS
}

/// Sets bits; the others stay. The caller has compared first: PostgreSQL changes nothing when
/// the bits are already equal.
pub fn set(page: &mut Page, heap_block: BlockNumber, bits: u8) {
    let (byte, shift) = place(heap_block);
    page.bytes_mut()[byte] |= (bits & VALID_BITS) << shift;
}

/// `visibilitymap_clear`: clears bits and says whether any was set.
pub fn clear(page: &mut Page, heap_block: BlockNumber, bits: u8) -> bool {
    let (byte, shift) = place(heap_block);
    let mask = bits << shift;
    let was_set = page.bytes()[byte] & mask != 0;
    page.bytes_mut()[byte] &= !mask;
    was_set
}

/// The part of `visibilitymap_prepare_truncate` that changes the page on which `heap_blocks`, the
/// new length of the heap, falls: every bit from there on is cleared.
pub fn clear_tail(page: &mut Page, heap_blocks: BlockNumber) {
    let (byte, shift) = place(heap_blocks);
    page.bytes_mut()[byte + 1..].fill(0);
    page.bytes_mut()[byte] &= (1u8 << shift) - 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_neighbours_do_not_mix() {
        let mut page = Page::zeroed();
        page.init(0);
        set(&mut page, 5, ALL_VISIBLE);
        set(&mut page, 6, VALID_BITS);
        assert_eq!((get(&page, 4), get(&page, 5), get(&page, 6)), (0, 1, 3));
        assert!(clear(&mut page, 6, ALL_FROZEN));
        assert!(!clear(&mut page, 6, ALL_FROZEN));
        assert_eq!((get(&page, 5), get(&page, 6)), (1, 1));
    }

    #[test]
    fn second_page_starts_at_block_32672() {
        assert_eq!(map_block(32_671), 0);
        assert_eq!(map_block(32_672), 1);
        let mut page = Page::zeroed();
        set(&mut page, 32_672, ALL_VISIBLE);
        assert_eq!(page.bytes()[24], 1);
    }

    #[test]
    fn truncation_clears_from_the_new_end_on() {
        let mut page = Page::zeroed();
        page.init(0);
        page.bytes_mut()[24..].fill(0xFF);
        clear_tail(&mut page, 6);
        assert_eq!(page.bytes()[24..27], [0xFF, 0x0F, 0]);
        assert_eq!(page.bytes()[8191], 0);
    }
}
