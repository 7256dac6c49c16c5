//! What may differ between a primary's heap page and a replica's (`heap_mask`,
//! `src/backend/access/common/bufmask.c`).

use crate::page::Page;
use crate::page::heap_tuple::{
    HEAP_XACT_MASK, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HeapTuple, ItemPointer,
};
use crate::rmgr::mask as common;
use crate::types::{BLOCK_BYTES, BlockNumber, OffsetNumber, TransactionId};

/// `heap_mask`: sets to zero what replay need not reproduce.
pub(in crate::rmgr) fn mask(page: &mut Page, block: BlockNumber) {
    // LSN: hints may have been logged on one side only.
    common::lsn_and_checksum(page);
    // Pruning changes its hints on the primary without a record of its own, and VISIBLE leaves
    // a page alone whose LSN has gone past it.
    common::hint_bits(page);
    // PostgreSQL gives up on a header that is out of order; here the bytes then stay and the
    // comparison decides.
    common::unused_space(page);
    for offset in 1..=page.max_offset() {
        mask_item(page, block, offset);
    }
}

fn mask_item(page: &mut Page, block: BlockNumber, offset: OffsetNumber) {
    if let Ok(mut tuple) = page.heap_tuple_mut(offset) {
        mask_tuple(&mut tuple, ItemPointer { block, offset });
    }
    // Bytes that align the next item are never written.
    if let Ok(range) = page.item_range(offset) {
        let aligned_end = range.end.next_multiple_of(8).min(BLOCK_BYTES);
        page.bytes_mut()[range.end..aligned_end].fill(0);
    }
}

fn mask_tuple(tuple: &mut HeapTuple<&mut [u8]>, itself: ItemPointer) {
    // Hint bits are set without WAL. Frozen is no hint, but xmax may still have some.
    let hints = if tuple.is_xmin_frozen() {
        HEAP_XMAX_INVALID | HEAP_XMAX_COMMITTED
    } else {
        HEAP_XACT_MASK
    };
    tuple.set_infomask(tuple.infomask() & !hints);
    // Command ids are replayed as 0.
    tuple.set_xvac(TransactionId::INVALID);
    // The token of a speculative insertion is not logged; replay stores the tuple's own place.
    // The mark of a row that moved to another partition is logged and must agree.
    if tuple.is_speculative() {
        tuple.set_ctid(itself);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::testing::{TUPLE, heap_page};
    use crate::types::Lsn;

    /// One tuple of 29 bytes with random surroundings, masked as block 0xA_000B.
    fn masked(tuple: &[u8]) -> Page {
        let mut page = heap_page(0);
        page.bytes_mut()[24..].fill(0xEE);
        page.add_item_overwrite(tuple, 1).unwrap();
        mask(&mut page, 0xA_000B);
        page
    }

    #[test]
    fn header_hints_hole_and_padding_go() {
        let mut page = heap_page(1);
        page.bytes_mut()[28..8160].fill(0xEE);
        page.set_lsn(Lsn(0x1_0000_0001));
        page.set_checksum_field(7);
        page.set_prune_xid(TransactionId(9));
        page.set_flags(0xFFFF);
        mask(&mut page, 0);
        assert_eq!(page.bytes()[..10], [0; 10]);
        assert_eq!((page.flags(), page.prune_xid().0), (0xFFF8, 0));
        assert!(page.bytes()[28..8160].iter().all(|b| *b == 0));
        assert_eq!(masked(&TUPLE[..29]).bytes()[8160 + 29..], [0; 3]);
    }

    #[test]
    fn hint_bits_and_command_id_go() {
        let mut tuple = TUPLE;
        tuple[20..22].copy_from_slice(&[0xFF, 0xFD]);
        let page = masked(&tuple);
        let mut expected = tuple;
        expected[8..12].fill(0);
        expected[20..22].copy_from_slice(&[0x0F, 0]);
        assert_eq!(page.item(1).unwrap(), &expected);
    }

    #[test]
    fn a_frozen_tuple_keeps_all_but_xmax_hints() {
        let page = masked(&TUPLE);
        assert_eq!(page.heap_tuple(1).unwrap().infomask(), 0xF3FF);
    }

    #[test]
    fn a_speculative_token_becomes_the_own_place_and_a_moved_mark_stays() {
        let mut tuple = TUPLE;
        tuple[16..18].copy_from_slice(&[0xFE, 0xFF]);
        let itself = ItemPointer {
            block: 0xA_000B,
            offset: 1,
        };
        assert_eq!(masked(&tuple).heap_tuple(1).unwrap().ctid(), itself);
        tuple[12..18].copy_from_slice(&ItemPointer::MOVED_PARTITIONS.to_bytes());
        let ctid = masked(&tuple).heap_tuple(1).unwrap().ctid();
        assert_eq!(ctid, ItemPointer::MOVED_PARTITIONS);
    }
}
