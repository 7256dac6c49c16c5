//! Pages put together from literal bytes, and redo on them, for tests.

use super::page::Opaque;
use crate::decode::BlockRef;
use crate::page::{Page, PageError};
use crate::rmgr::Effect;
use crate::rmgr::btree::testing::{record, redo_block};
use crate::types::{Lsn, TransactionId};

/// An index tuple of 16 bytes: TID (0x0002_0003, 1), `t_info` and a key of eight equal bytes.
pub(super) fn tuple(key: u8) -> Vec<u8> {
    let mut tuple = vec![2, 0, 3, 0, 1, 0, 16, 0];
    tuple.extend([key; 8]);
    tuple
}

/// The special area of a page with right sibling 9.
pub(super) fn opaque(flags: u16, maxoff: u16) -> Opaque {
    Opaque {
        rightlink: 9,
        maxoff,
        flags,
    }
}

/// An empty page, 0xDD wherever something may be stale, and a header that redo may not touch.
fn dirty(opaque: Opaque) -> Page {
    let mut page = Page::zeroed();
    page.init(8);
    page.bytes_mut()[24..8184].fill(0xDD);
    opaque.write(&mut page);
    page.set_lsn(Lsn(0x99));
    page.set_checksum_field(0x1234);
    page.set_prune_xid(TransactionId(33));
    page
}

/// A page of the entry tree or of the pending list with these tuples.
pub(super) fn item_page(opaque: Opaque, tuples: &[Vec<u8>]) -> Page {
    let mut page = dirty(opaque);
    let add = |(tuple, offset): (&Vec<u8>, u16)| -> Result<(), PageError> {
        page.add_item(tuple, offset)
    };
    tuples.iter().zip(1..).try_for_each(add).expect("room");
    page
}

/// A page of a posting tree with these contents.
pub(super) fn data_page(opaque: Opaque, contents: &[u8]) -> Page {
    let mut page = dirty(opaque);
    page.bytes_mut()[32..32 + contents.len()].copy_from_slice(contents);
    page.set_lower((32 + contents.len()) as u16);
    page
}

/// What a page holds that was built anew: no LSN, no dirt.
pub(super) fn clean(opaque: Opaque) -> Page {
    let mut page = Page::zeroed();
    page.bytes_mut()[12..20].copy_from_slice(&[24, 0, 0xF8, 0x1F, 0xF8, 0x1F, 4, 0x20]);
    page.put_u32(8184, opaque.rightlink);
    page.put_u16(8188, opaque.maxoff);
    page.put_u16(8190, opaque.flags);
    page
}

/// The items of a page in line pointer order.
pub(super) fn items(page: &Page) -> Vec<Vec<u8>> {
    (1..=page.max_offset())
        .map(|offset| page.item(offset).expect("it exists").to_vec())
        .collect()
}

/// Redoes a record on one of its blocks and expects it to change.
#[track_caller]
pub(super) fn redone(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> Page {
    let mut page = page.clone();
    let record = record("Gin", info, main, blocks);
    assert_eq!(redo_block(&record, id, &mut page), Ok(Effect::changed()));
    page
}

/// True if redo of block `id` is an error.
pub(super) fn fails(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> bool {
    let record = record("Gin", info, main, blocks);
    redo_block(&record, id, &mut page.clone()).is_err()
}
