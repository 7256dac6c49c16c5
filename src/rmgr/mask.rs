//! What `wal_consistency_checking` blanks before it compares two pages
//! (`src/backend/access/common/bufmask.c`). Blanked bytes become 0 (`MASK_MARKER`).
//!
//! A page whose header is corrupt is left as it is, so that the comparison reports it.

use crate::page::{
    LpFlags, PAGE_HEADER_BYTES, PD_ALL_VISIBLE, PD_HAS_FREE_LINES, PD_PAGE_FULL, Page, PageError,
};
use crate::types::{Lsn, TransactionId};

/// `mask_page_lsn_and_checksum`: the primary's page may have moved on since the image was taken,
/// and a checksum over masked bytes means nothing.
pub(super) fn lsn_and_checksum(page: &mut Page) {
    page.set_lsn(Lsn::INVALID);
    page.set_checksum_field(0);
}

/// `mask_page_hint_bits`: all of these change on a primary without WAL, or (all-visible) are
/// skipped in redo when the page is ahead of the record.
pub(super) fn hint_bits(page: &mut Page) {
    page.set_prune_xid(TransactionId::INVALID);
    page.clear_flag(PD_PAGE_FULL | PD_HAS_FREE_LINES | PD_ALL_VISIBLE);
}

/// `mask_unused_space`: images carry no hole, so what it held is unknown to the other side.
pub(super) fn unused_space(page: &mut Page) {
    if let Ok((lower, upper, _)) = page.checked_bounds() {
        page.bytes_mut()[lower..upper].fill(0);
    }
}

/// `mask_page_content`: nothing on the page counts any more, not even where its hole is.
pub(super) fn page_content(page: &mut Page) {
    page.bytes_mut()[PAGE_HEADER_BYTES..].fill(0);
    page.set_lower(0);
    page.set_upper(0);
}

/// `mask_lp_flags`: index scans mark items dead without WAL.
pub(super) fn line_pointer_flags(page: &mut Page) {
    let unflag = |page: &mut Page, offset| -> Result<(), PageError> {
        let id = page.item_id(offset)?;
        page.set_item_id(offset, id.with_flags(LpFlags::Unused))
    };
    // Offsets up to the maximum exist by definition, so nothing is left out on an error.
    let _ = (1..=page.max_offset()).try_for_each(|offset| unflag(page, offset));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::ItemId;

    #[test]
    fn each_mask_blanks_its_own_bytes_only() {
        let mut page = Page::zeroed();
        page.init(16);
        page.add_item(&[7; 16], 1).unwrap();
        page.set_lsn(Lsn(0x1_0000_0002));
        page.set_checksum_field(9);
        page.set_prune_xid(TransactionId(50));
        page.set_flags(0x000F);
        page.bytes_mut()[1000] = 1;

        let mut masked = page.clone();
        lsn_and_checksum(&mut masked);
        assert_eq!((masked.lsn(), masked.checksum_field()), (Lsn(0), 0));
        assert_eq!(masked.bytes()[10..], page.bytes()[10..]);

        let mut masked = page.clone();
        hint_bits(&mut masked);
        assert_eq!((masked.prune_xid().0, masked.flags()), (0, 0x0008));

        let mut masked = page.clone();
        unused_space(&mut masked);
        assert!(masked.bytes()[28..8160].iter().all(|b| *b == 0));
        assert_eq!(masked.bytes()[8160..], page.bytes()[8160..]);

        line_pointer_flags(&mut page);
        assert_eq!(page.item_id(1), Ok(ItemId(8160 | 16 << 17)));

        page_content(&mut page);
        assert_eq!((page.lower(), page.upper(), page.special()), (0, 0, 8176));
        assert!(page.bytes()[24..].iter().all(|b| *b == 0));
    }

    #[test]
    fn a_corrupt_header_is_left_for_the_comparison() {
        let mut page = Page::zeroed();
        page.bytes_mut().fill(0xFF);
        unused_space(&mut page);
        assert!(page.bytes().iter().all(|b| *b == 0xFF));
    }
}
