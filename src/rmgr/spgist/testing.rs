//! Records and pages put together from literal bytes.

use super::page::{SPGIST_LEAF, init_if};
use crate::decode::BlockRef;
use crate::page::Page;
use crate::rmgr::Effect;
use crate::types::{Lsn, OffsetNumber, TransactionId};

pub(super) use crate::rmgr::btree::testing::{
    Noise, block, desc, items, longs, record, redo_block, redo_block_in, words,
};

/// A leaf tuple of `size` bytes: `next` in its chain, its TID and datum made of `key`.
pub(super) fn leaf(key: u8, size: u8, next: OffsetNumber) -> Vec<u8> {
    let mut tuple = longs(&[u32::from(size) << 2]);
    tuple.extend(words(&[0x8000 | next]));
    tuple.resize(size.into(), key);
    tuple
}

/// An inner tuple with a prefix of 8 bytes and nodes of 16 bytes that link to these places.
pub(super) fn inner(prefix: u8, links: &[(u8, u8)]) -> Vec<u8> {
    let nodes = links.len() as u32;
    let mut tuple = longs(&[nodes << 3 | 8 << 16]);
    tuple.extend(words(&[(16 + 16 * nodes) as u16, 0]));
    tuple.extend([prefix; 8]);
    for (n, (block, offset)) in links.iter().enumerate() {
        tuple.extend([0, 0, *block, 0, *offset, 0, 16, 0]);
        tuple.extend([n as u8; 8]);
    }
    tuple
}

/// A redirect made by transaction 700.
pub(super) fn redirect(block: u8, offset: u8) -> Vec<u8> {
    let mut tuple = vec![0x41, 0, 0, 0, 0, 0, 0, 0, block, 0, offset, 0];
    tuple.extend([0xBC, 2, 0, 0]);
    tuple
}

/// A placeholder as `spgFormDeadTuple` makes it.
pub(super) const PLACEHOLDER: [u8; 16] = [
    0x43, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0,
];

/// A dead head of a chain.
pub(super) const DEAD: [u8; 16] = [
    0x42, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0,
];

/// `spgxlogState` of transaction 700.
pub(super) fn state(is_build: u8) -> [u8; 8] {
    [0xBC, 2, 0, 0, is_build, 0xEE, 0xEE, 0xEE]
}

/// Counts in the special area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) redirections: u16,
    pub(super) placeholders: u16,
}

/// A leaf page with these items, counts that fit them and dirt in the hole.
pub(super) fn page_of(items: &[Vec<u8>]) -> Page {
    let mut page = Page::zeroed();
    init_if(true, &block(0, 7, &[]).init(), &mut page, SPGIST_LEAF).unwrap();
    page.bytes_mut()[24..8184].fill(0xDD);
    for (item, offset) in items.iter().zip(1..) {
        page.add_item(item, offset).unwrap();
    }
    let in_state = |state: u8| items.iter().filter(|item| item[0] & 3 == state).count() as u16;
    page.put_u16(8186, in_state(1));
    page.put_u16(8188, in_state(3));
    page.set_lsn(Lsn(0x99));
    page.set_prune_xid(TransactionId(33));
    page
}

/// The counts of a page.
pub(super) fn counts(page: &Page) -> Counts {
    Counts {
        redirections: page.u16_at(8186),
        placeholders: page.u16_at(8188),
    }
}

/// Redoes a record on one of its blocks and expects it to change.
#[track_caller]
pub(super) fn redone(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> Page {
    let mut page = page.clone();
    let record = record("SPGist", info, main, blocks);
    assert_eq!(redo_block(&record, id, &mut page), Ok(Effect::changed()));
    page
}

/// True if redo of block `id` is an error.
pub(super) fn fails(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> bool {
    let record = record("SPGist", info, main, blocks);
    redo_block(&record, id, &mut page.clone()).is_err()
}

/// Checks that main data cut anywhere make redo of block `id` an error.
#[track_caller]
pub(super) fn fails_cut(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) {
    for len in 0..main.len() {
        assert!(
            fails(info, &main[..len], blocks, id, page),
            "{info:#x} {len}"
        );
    }
}
