//! What may differ between a primary's heap page and a replica's (`heap_mask`,
//! `src/backend/access/common/bufmask.c`).

use crate::page::heap_tuple::{
    HEAP_XACT_MASK, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HeapTuple, ItemPointer,
};
use crate::page::{PD_ALL_VISIBLE, PD_HAS_FREE_LINES, PD_PAGE_FULL, Page};
use crate::types::{BLOCK_BYTES, BlockNumber, Lsn, OffsetNumber, TransactionId};

/// `heap_mask`: sets to zero what replay need not reproduce.
pub(in crate::rmgr) fn mask(page: &mut Page, block: BlockNumber) {
    // The LSN differs when hints were logged on one side only, and the checksum with it.
    page.set_lsn(Lsn::INVALID);
    page.set_checksum_field(0);
    // Pruning changes these three on the primary without a record of its own.
    page.set_prune_xid(TransactionId::INVALID);
    page.clear_flag(PD_PAGE_FULL);
    page.clear_flag(PD_HAS_FREE_LINES);
    // VISIBLE leaves a page alone whose LSN has gone past it.
    page.clear_flag(PD_ALL_VISIBLE);
    // The hole keeps whatever was there. PostgreSQL gives up on a header that is out of order;
    // here the bytes then stay and the comparison decides.
    if let Ok((lower, upper, _)) = page.checked_bounds() {
        page.bytes_mut()[lower..upper].fill(0);
    }
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
