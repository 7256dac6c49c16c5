//! Records and pages put together from literal bytes.

use super::page::{Opaque, append_tuples, init};
use crate::decode::BlockRef;
use crate::page::{PD_HAS_FREE_LINES, Page};
use crate::rmgr::{Effect, PageState};
use crate::types::{Lsn, TransactionId};

pub(super) use crate::rmgr::btree::testing::{
    Noise, block, desc, items, longs, record, redo_block, redo_block_in, words,
};

/// End of every test record.
pub(super) const END_LSN: Lsn = Lsn(0x100_0040);

/// An index tuple of `size` bytes, its key and its TID made of `key`.
pub(super) fn tuple(key: u8, size: u8) -> Vec<u8> {
    let mut tuple = vec![0, 0, key, 0, key, 0, size, 0];
    tuple.resize(size.into(), key);
    tuple
}

/// A page with these items, right sibling 55, NSN 2/44 and dirt everywhere that redo may or may
/// not keep.
pub(super) fn page_of(flags: u16, tuples: &[Vec<u8>]) -> Page {
    let mut page = Page::zeroed();
    init(&block(1, 7, &[]).init(), &mut page, flags).unwrap();
    page.bytes_mut()[24..8176].fill(0xDD);
    let opaque = Opaque {
        nsn: Lsn(0x2_0000_0044),
        rightlink: 55,
        flags,
    };
    opaque.write(&mut page);
    append_tuples(&mut page, &tuples.concat()).unwrap();
    page.set_lsn(Lsn(0x99));
    page.set_checksum_field(0x1234);
    page.set_flag(PD_HAS_FREE_LINES);
    page.set_prune_xid(TransactionId(33));
    page
}

/// The flags of a page.
pub(super) fn flags(page: &Page) -> u16 {
    Opaque::read(page).unwrap().flags
}

/// The NSN of a page.
pub(super) fn nsn(page: &Page) -> Lsn {
    Opaque::read(page).unwrap().nsn
}

/// Redoes a record on one of its blocks and expects it to change.
#[track_caller]
pub(super) fn redone(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> Page {
    redone_in(PageState::Needs, info, main, blocks, id, page)
}

/// The same, when reading the page found `state`.
#[track_caller]
pub(super) fn redone_in(
    state: PageState,
    info: u8,
    main: &[u8],
    blocks: &[BlockRef<'_>],
    id: u8,
    page: &Page,
) -> Page {
    let mut page = page.clone();
    let record = record("Gist", info, main, blocks);
    let effect = redo_block_in(state, &record, id, &mut page);
    assert_eq!(effect, Ok(Effect::changed()));
    page
}

/// True if redo of block `id` is an error.
pub(super) fn fails(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> bool {
    let record = record("Gist", info, main, blocks);
    redo_block(&record, id, &mut page.clone()).is_err()
}
