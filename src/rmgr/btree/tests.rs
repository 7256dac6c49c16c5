//! Redo of each record on pages of literal bytes.
//!
//! Items are 16 bytes: a heap TID or downlink, `t_info` and a key of eight equal bytes. On a page
//! built here item n of a list is line pointer n.

use super::page::*;
use super::tuple::{downlink, top_parent_tuple};
use super::*;
use crate::decode::BlockRef;
use crate::page::{ItemId, LpFlags, PD_HAS_FREE_LINES};
use crate::rmgr::btree::testing::{Noise, block, desc, record, redo_block, redo_block_in};
use crate::types::{BLOCK_BYTES, Lsn, OffsetNumber, TransactionId};

/// A plain tuple with key `key`, its TID (or downlink) in block `tid_block`.
fn plain(key: u8, tid_block: u8, tid_off: u8) -> Vec<u8> {
    let mut tuple = vec![0, 0, tid_block, 0, tid_off, 0, 16, 0];
    tuple.extend([key; 8]);
    tuple
}

/// The six bytes of a TID.
fn tid(tid_block: u8, tid_off: u8) -> [u8; 6] {
    [0, 0, tid_block, 0, tid_off, 0]
}

/// A posting tuple with key `key` and these TIDs.
fn posting(key: u8, tids: &[[u8; 6]]) -> Vec<u8> {
    let size = (16 + 6 * tids.len()).next_multiple_of(8);
    let mut tuple = vec![0, 0, 16, 0, tids.len() as u8, 0x20, size as u8, 0x20];
    tuple.extend([key; 8]);
    tuple.extend(tids.concat());
    tuple.resize(size, 0);
    tuple
}

/// A page with these items and dirt everywhere that redo may or may not keep.
fn page_of(opaque: Opaque, items: &[Vec<u8>]) -> Page {
    let mut page = empty(opaque);
    page.bytes_mut()[24..BLOCK_BYTES - 16].fill(0xDD);
    for item in items {
        append(&mut page, item).unwrap();
    }
    page.set_lsn(Lsn(0x99));
    page.set_checksum_field(0x1234);
    page.set_flag(PD_HAS_FREE_LINES);
    page.set_prune_xid(TransactionId(33));
    page
}

fn leaf(next: BlockNumber) -> Opaque {
    Opaque {
        prev: 2,
        next,
        level: 0,
        flags: BTP_LEAF,
        cycle_id: 0,
    }
}

/// What a page holds that was built anew: header and hole as `PageInit` leaves them, items one
/// below the other.
fn rebuilt(opaque: Opaque, items: &[Vec<u8>]) -> Page {
    let mut page = Page::zeroed();
    let mut upper = BLOCK_BYTES - 16;
    for (i, item) in items.iter().enumerate() {
        upper -= item.len();
        page.bytes_mut()[upper..upper + item.len()].copy_from_slice(item);
        page.put_u32(
            24 + 4 * i,
            ItemId::normal(upper as u16, item.len() as u16).0,
        );
    }
    page.set_lower((24 + 4 * items.len()) as u16);
    page.set_upper(upper as u16);
    page.put_u16(16, 8176);
    page.put_u16(18, 0x2004);
    page.put_u32(8176, opaque.prev);
    page.put_u32(8180, opaque.next);
    page.put_u32(8184, opaque.level);
    page.put_u16(8188, opaque.flags);
    page.put_u16(8190, opaque.cycle_id);
    page
}

fn items(page: &Page) -> Vec<Vec<u8>> {
    (1..=page.max_offset())
        .map(|o| page.item(o).unwrap().to_vec())
        .collect()
}

/// Main data or block data of little-endian words.
fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn longs(longs: &[u32]) -> Vec<u8> {
    longs.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// Redoes a record on one of its blocks and expects it to change.
#[track_caller]
fn redone(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> Page {
    let mut page = page.clone();
    let record = record("Btree", info, main, blocks);
    assert_eq!(redo_block(&record, id, &mut page), Ok(Effect::changed()));
    page
}

fn fails(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> bool {
    let record = record("Btree", info, main, blocks);
    redo_block(&record, id, &mut page.clone()).is_err()
}

const META: [u8; 28] = [
    4, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 1, 0xAA, 0xAA, 0xAA,
];

fn meta_page() -> Page {
    let opaque = Opaque {
        flags: BTP_META,
        ..Opaque::default()
    };
    let mut page = rebuilt(opaque, &[]);
    page.bytes_mut()[24..28].copy_from_slice(&[0x62, 0x31, 5, 0]);
    page.bytes_mut()[28..52].copy_from_slice(&META[..24]);
    page.bytes_mut()[56..64].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0xF0, 0xBF]);
    page.bytes_mut()[64] = 1;
    page.set_lower(72);
    page
}

#[test]
fn insert_moves_later_items_up_and_keeps_the_rest() {
    let before = page_of(leaf(0), &[plain(1, 1, 1), plain(3, 1, 3)]);
    let new = plain(2, 1, 2);
    let page = redone(0x00, &words(&[2]), &[block(0, 4, &new)], 0, &before);
    assert_eq!(items(&page), [plain(1, 1, 1), new, plain(3, 1, 3)]);
    assert_eq!(page.flags(), PD_HAS_FREE_LINES);
    assert_eq!(
        page.bytes()[36..usize::from(page.upper())],
        before.bytes()[36..8128]
    );
    assert_eq!(page.lsn(), before.lsn());
}

#[test]
fn insert_upper_and_meta_finish_the_split_of_the_child() {
    let mut opaque = leaf(9);
    opaque.flags |= BTP_INCOMPLETE_SPLIT;
    let before = page_of(opaque, &[plain(9, 0, 0)]);
    let new = plain(2, 1, 2);
    for info in [0x10, 0x20] {
        let blocks = [
            block(0, 4, &new),
            block(1, 5, &[]),
            block(2, 0, &META).init(),
        ];
        let page = redone(info, &words(&[1]), &blocks, 1, &before);
        assert_eq!(Opaque::read(&page).unwrap(), leaf(9));
        assert_eq!(items(&page), items(&before));
    }
    let blocks = [block(2, 0, &META).init()];
    let page = redone(0x20, &words(&[1]), &blocks, 2, &Page::zeroed());
    assert!(page == meta_page());
    // A leaf insert has no child, only INSERT_META has a metapage.
    assert!(fails(0x00, &words(&[1]), &[block(1, 5, &[])], 1, &before));
    assert!(fails(0x10, &words(&[1]), &blocks, 2, &Page::zeroed()));
}

#[test]
fn insert_post_swaps_the_largest_tid_into_the_new_item() {
    let old = posting(5, &[tid(1, 1), tid(1, 3), tid(1, 5), tid(1, 7)]);
    let before = page_of(leaf(0), &[old, plain(6, 9, 9)]);
    let mut data = words(&[2]);
    data.extend(plain(5, 1, 4));
    let page = redone(0x50, &words(&[2]), &[block(0, 4, &data)], 0, &before);
    let expected = [
        posting(5, &[tid(1, 1), tid(1, 3), tid(1, 4), tid(1, 5)]),
        plain(5, 1, 7),
        plain(6, 9, 9),
    ];
    assert_eq!(items(&page), expected);
}

#[test]
fn insert_post_rejects_positions_outside_the_posting_list() {
    let before = page_of(
        leaf(0),
        &[posting(5, &[tid(1, 1), tid(1, 3)]), plain(6, 9, 9)],
    );
    for (posting_off, offnum, works) in [
        (0, 2, false),
        (1, 2, true),
        (2, 2, false),
        (9, 2, false),
        (1, 3, false),
        (1, 1, false),
        (1, 0, false),
    ] {
        let mut data = words(&[posting_off]);
        data.extend(plain(5, 1, 2));
        let failed = fails(0x50, &words(&[offnum]), &[block(0, 4, &data)], 0, &before);
        assert_eq!(failed, !works, "{posting_off} {offnum}");
        data.extend([0; 8]);
        assert!(fails(
            0x50,
            &words(&[offnum]),
            &[block(0, 4, &data)],
            0,
            &before
        ));
    }
}

/// Main data of a split.
fn split(level: u32, first_right: u16, new_item: u16, posting_off: u16) -> Vec<u8> {
    [
        longs(&[level]),
        words(&[first_right, new_item, posting_off]),
    ]
    .concat()
}

/// The left page of a leaf split, block 4, with right page 6.
#[track_caller]
fn left_after(info: u8, main: &[u8], data: &[Vec<u8>], before: &Page) -> Page {
    let data = data.concat();
    let blocks = [block(0, 4, &data), block(1, 6, &[]).init()];
    redone(info, main, &blocks, 0, before)
}

fn split_leaf() -> Opaque {
    Opaque {
        prev: 2,
        next: 6,
        level: 0,
        flags: BTP_LEAF | BTP_INCOMPLETE_SPLIT,
        cycle_id: 0,
    }
}

#[test]
fn split_left_puts_the_new_item_between_old_ones_or_last() {
    let mut opaque = leaf(8);
    opaque.flags |= BTP_HAS_GARBAGE | BTP_SPLIT_END | BTP_ROOT;
    opaque.cycle_id = 77;
    let high = plain(9, 0, 1);
    let old: Vec<_> = (1..=4).map(|k| plain(k, 1, k)).collect();
    let mut before = page_of(opaque, &[&[high], &old[..]].concat());
    before
        .set_item_id(2, before.item_id(2).unwrap().with_flags(LpFlags::Dead))
        .unwrap();
    let (new, new_high) = (plain(7, 7, 7), plain(3, 0, 1));
    let data = [new.clone(), new_high.clone()];

    let page = left_after(0x30, &split(0, 4, 3, 0), &data, &before);
    let expected = [
        new_high.clone(),
        old[0].clone(),
        new.clone(),
        old[1].clone(),
    ];
    assert!(page == rebuilt(split_leaf(), &expected));

    let page = left_after(0x30, &split(0, 4, 4, 0), &data, &before);
    let expected = [
        new_high.clone(),
        old[0].clone(),
        old[1].clone(),
        new.clone(),
    ];
    assert!(page == rebuilt(split_leaf(), &expected));
}

#[test]
fn split_right_of_the_rightmost_page_adds_a_high_key() {
    let old: Vec<_> = (1..=4).map(|k| plain(k, 1, k)).collect();
    let before = page_of(leaf(0), &old);
    let high = plain(3, 0, 1);
    let page = left_after(
        0x40,
        &split(0, 3, 4, 0),
        std::slice::from_ref(&high),
        &before,
    );
    let expected = [high, old[0].clone(), old[1].clone()];
    assert!(page == rebuilt(split_leaf(), &expected));
}

#[test]
fn split_repeats_the_split_of_a_posting_list() {
    let old = posting(2, &[tid(1, 1), tid(1, 3), tid(1, 5)]);
    let before = page_of(leaf(0), &[plain(1, 1, 1), old, plain(8, 1, 8)]);
    let (new, high) = (plain(2, 1, 2), plain(7, 0, 1));
    let swapped = posting(2, &[tid(1, 1), tid(1, 2), tid(1, 3)]);
    let data = [new, high.clone()];

    // The new item, now with the last TID, follows the posting tuple on the left ...
    let page = left_after(0x30, &split(0, 3, 3, 1), &data, &before);
    let expected = [
        high.clone(),
        plain(1, 1, 1),
        swapped.clone(),
        plain(2, 1, 5),
    ];
    assert!(page == rebuilt(split_leaf(), &expected));
    // ... with old items after it ...
    let page = left_after(0x30, &split(0, 4, 3, 1), &data, &before);
    let more = [&expected[..], &[plain(8, 1, 8)]].concat();
    assert!(page == rebuilt(split_leaf(), &more));
    // ... or is the first on the right.
    let page = left_after(0x40, &split(0, 3, 3, 1), &data, &before);
    assert!(page == rebuilt(split_leaf(), &expected[..3]));
}

#[test]
fn split_builds_the_right_page_in_reverse() {
    let data = [plain(3, 1, 3), plain(2, 1, 2), plain(9, 0, 1)].concat();
    let blocks = [
        block(0, 4, &[]),
        block(1, 6, &data).init(),
        block(2, 8, &[]),
    ];
    let page = redone(0x40, &split(0, 3, 3, 0), &blocks, 1, &Page::zeroed());
    let opaque = Opaque {
        prev: 4,
        next: 8,
        ..leaf(8)
    };
    let expected = [plain(9, 0, 1), plain(2, 1, 2), plain(3, 1, 3)];
    assert!(page == rebuilt(opaque, &expected));

    let page = redone(0x30, &split(1, 3, 3, 0), &blocks[..2], 1, &Page::zeroed());
    let opaque = Opaque {
        prev: 4,
        next: 0,
        level: 1,
        flags: 0,
        cycle_id: 0,
    };
    assert!(page == rebuilt(opaque, &expected));
}

#[test]
fn split_relinks_the_old_sibling_and_finishes_the_split_below() {
    let mut opaque = leaf(0);
    opaque.flags |= BTP_INCOMPLETE_SPLIT;
    let before = page_of(opaque, &[]);
    let blocks = [
        block(0, 4, &[]),
        block(1, 6, &[]).init(),
        block(2, 8, &[]),
        block(3, 5, &[]),
    ];
    let page = redone(0x30, &split(1, 3, 3, 0), &blocks, 2, &before);
    assert_eq!(Opaque::read(&page).unwrap(), Opaque { prev: 6, ..opaque });
    let page = redone(0x30, &split(1, 3, 3, 0), &blocks, 3, &before);
    assert_eq!(Opaque::read(&page).unwrap(), leaf(0));
    assert!(fails(0x30, &split(0, 3, 3, 0), &blocks, 3, &before));
}

#[test]
fn split_with_contradicting_data_is_an_error() {
    let before = page_of(leaf(0), &[plain(1, 1, 1), plain(2, 1, 2)]);
    let data = [plain(5, 5, 5), plain(2, 0, 1)].concat();
    let right = block(1, 6, &[]).init();
    let check =
        |info, main: &[u8], data: &[u8]| fails(info, main, &[block(0, 4, data), right], 0, &before);
    assert!(!check(0x30, &split(0, 3, 3, 0), &data));
    assert!(check(0x40, &split(0, 3, 3, 0), &data), "left over");
    assert!(check(0x30, &split(0, 4, 3, 0), &data), "beyond the page");
    assert!(check(0x30, &split(0, 3, 3, 1), &data), "not a posting list");
    for len in 0..data.len() {
        assert!(check(0x30, &split(0, 3, 3, 0), &data[..len]), "{len}");
    }
    assert!(fails(
        0x30,
        &split(0, 3, 3, 0),
        &[block(0, 4, &data)],
        0,
        &before
    ));
}

#[test]
fn dedup_merges_each_interval_and_copies_the_rest() {
    let mut opaque = leaf(8);
    opaque.flags |= BTP_HAS_GARBAGE;
    opaque.cycle_id = 77;
    let high = plain(9, 0, 1);
    let before = page_of(
        opaque,
        &[
            high.clone(),
            plain(1, 1, 1),
            plain(2, 1, 2),
            posting(2, &[tid(1, 3), tid(1, 4)]),
            plain(2, 1, 5),
            plain(3, 1, 6),
            plain(4, 1, 7),
            plain(4, 1, 8),
        ],
    );
    let data = words(&[3, 3, 7, 2]);
    let page = redone(0x60, &words(&[2]), &[block(0, 4, &data)], 0, &before);
    let expected = [
        high,
        plain(1, 1, 1),
        posting(2, &[tid(1, 2), tid(1, 3), tid(1, 4), tid(1, 5)]),
        plain(3, 1, 6),
        posting(4, &[tid(1, 7), tid(1, 8)]),
    ];
    opaque.flags = BTP_LEAF;
    assert!(page == rebuilt(opaque, &expected));
    // Items after an interval are not merged into it, and all intervals must match.
    for wrong in [[3, 3, 8, 2], [3, 9, 7, 2], [2, 1, 7, 2], [0, 0, 0, 0]] {
        let data = words(&wrong);
        assert!(
            fails(0x60, &words(&[2]), &[block(0, 4, &data)], 0, &before),
            "{wrong:?}"
        );
    }
    let none = page_of(leaf(0), &[]);
    assert!(fails(0x60, &words(&[0]), &[block(0, 4, &[])], 0, &none));
}

/// DELETE and VACUUM with the same block data.
fn both_deletions(ndeleted: u16, nupdated: u16) -> [(u8, Vec<u8>); 2] {
    let counts = words(&[ndeleted, nupdated]);
    [
        (0x70, [longs(&[700]), counts.clone()].concat()),
        (0xC0, counts),
    ]
}

#[test]
fn deletion_shrinks_posting_lists_before_items_go() {
    let mut opaque = leaf(8);
    opaque.flags |= BTP_HAS_GARBAGE;
    opaque.cycle_id = 77;
    let before = page_of(
        opaque,
        &[
            plain(9, 0, 1),
            plain(1, 1, 1),
            posting(2, &[tid(1, 2), tid(1, 3), tid(1, 4)]),
            plain(3, 1, 5),
            posting(4, &[tid(1, 6), tid(1, 7)]),
        ],
    );
    let data = words(&[2, 4, 3, 5, 1, 1, 1, 0]);
    let expected = [
        plain(9, 0, 1),
        posting(2, &[tid(1, 2), tid(1, 4)]),
        plain(4, 1, 7),
    ];
    for (info, main) in both_deletions(2, 2) {
        let page = redone(info, &main, &[block(0, 4, &data)], 0, &before);
        assert_eq!(items(&page), expected);
        opaque.flags = BTP_LEAF;
        assert_eq!(Opaque::read(&page).unwrap(), opaque);
        for len in 0..data.len() {
            assert!(
                fails(info, &main, &[block(0, 4, &data[..len])], 0, &before),
                "{len}"
            );
        }
    }
}

#[test]
fn deletion_of_three_items_lays_out_the_rest_anew() {
    // Items lie on the page in another order than their line pointers.
    let mut before = page_of(
        leaf(0),
        &(2..=6).map(|k| plain(k, 1, k)).collect::<Vec<_>>(),
    );
    before.add_item(&plain(1, 1, 1), 1).unwrap();
    let offset = |page: &Page, off: OffsetNumber| page.item_id(off).unwrap().offset();
    for (info, main) in both_deletions(2, 0) {
        let page = redone(info, &main, &[block(0, 4, &words(&[3, 4]))], 0, &before);
        assert!(offset(&page, 1) < offset(&page, 2), "physical order kept");
    }
    for (info, main) in both_deletions(3, 0) {
        let page = redone(info, &main, &[block(0, 4, &words(&[3, 4, 5]))], 0, &before);
        assert_eq!([1, 2, 3].map(|o| offset(&page, o)), [8160, 8144, 8128]);
        assert_eq!(
            items(&page),
            [plain(1, 1, 1), plain(2, 1, 2), plain(6, 1, 6)]
        );
    }
}

#[test]
fn deletion_of_impossible_tids_is_an_error() {
    let before = page_of(
        leaf(0),
        &[posting(2, &[tid(1, 2), tid(1, 3)]), plain(3, 1, 5)],
    );
    for (data, works) in [
        (vec![1, 1, 0], true),
        (vec![1, 0], false),
        (vec![1, 1, 2], false),
        (vec![1, 2, 0, 1], false),
        (vec![1, 2, 1, 0], false),
        (vec![2, 1, 0], false),
        (vec![3, 1, 0], false),
    ] {
        let bytes = words(&data);
        for (info, main) in both_deletions(0, 1) {
            let failed = fails(info, &main, &[block(0, 4, &bytes)], 0, &before);
            assert_eq!(failed, !works, "{data:?}");
        }
    }
}

fn half_dead(prev: BlockNumber, next: BlockNumber, top_parent: BlockNumber) -> Page {
    let opaque = Opaque {
        prev,
        next,
        level: 0,
        flags: BTP_HALF_DEAD | BTP_LEAF,
        cycle_id: 0,
    };
    rebuilt(opaque, &[top_parent_tuple(top_parent).to_vec()])
}

#[test]
fn half_dead_leaf_loses_its_downlink() {
    assert_eq!(top_parent_tuple(0x1_0002), [1, 0, 2, 0, 0, 0, 8, 0x20]);
    let main = longs(&[2, 5, 4, 6, u32::MAX]);
    let blocks = [block(0, 5, &[]).init(), block(1, 9, &[])];
    let page = redone(0xB0, &main, &blocks, 0, &Page::zeroed());
    assert!(page == half_dead(4, 6, u32::MAX));

    let before = page_of(leaf(0), &[plain(1, 4, 1), plain(2, 5, 1), plain(3, 6, 9)]);
    let page = redone(0xB0, &main, &blocks, 1, &before);
    // The second item keeps its key and offset and leads to where the third led.
    assert_eq!(items(&page), [plain(1, 4, 1), plain(2, 6, 1)]);
    assert_eq!(downlink(page.item(2).unwrap()), 6);
    for poffset in [0, 3, 0xFFFF] {
        let main = longs(&[poffset, 5, 4, 6, u32::MAX]);
        assert!(fails(0xB0, &main, &blocks, 1, &before), "{poffset}");
    }
}

/// Main data of an unlink with left sibling `leftsib`.
fn unlink(leftsib: u32, level: u32) -> Vec<u8> {
    longs(&[leftsib, 6, level, 0, 750, 1, 14, 16, 11])
}

#[test]
fn unlinked_page_becomes_a_tombstone() {
    let blocks = [
        block(0, 5, &[]).init(),
        block(1, 4, &[]),
        block(2, 6, &[]),
        block(3, 15, &[]).init(),
        block(4, 0, &META).init(),
    ];
    for (level, flags) in [(0, 0x105), (2, 0x104)] {
        let page = redone(0x80, &unlink(4, level), &blocks, 0, &Page::zeroed());
        let opaque = Opaque {
            prev: 4,
            next: 6,
            level,
            flags,
            cycle_id: 0,
        };
        let mut expected = rebuilt(opaque, &[]);
        expected.bytes_mut()[24..32].copy_from_slice(&[0xEE, 2, 0, 0, 1, 0, 0, 0]);
        expected.set_lower(32);
        assert!(page == expected);
    }
    let before = page_of(leaf(5), &[plain(9, 0, 1)]);
    let left = redone(0x80, &unlink(4, 2), &blocks, 1, &before);
    assert_eq!(Opaque::read(&left).unwrap(), leaf(6));
    let right = redone(0x80, &unlink(4, 2), &blocks, 2, &before);
    assert_eq!(Opaque::read(&right).unwrap(), Opaque { prev: 4, ..leaf(5) });
    let below = redone(0x80, &unlink(4, 2), &blocks, 3, &Page::zeroed());
    assert!(below == half_dead(14, 16, 11));
    let meta = redone(0x90, &unlink(4, 2), &blocks, 4, &Page::zeroed());
    assert!(meta == meta_page());
    // Only UNLINK_PAGE_META has a metapage, and without a left sibling there is no block 1.
    assert!(fails(0x80, &unlink(4, 2), &blocks, 4, &Page::zeroed()));
    assert!(fails(0x80, &unlink(0, 2), &blocks, 1, &before));
}

#[test]
fn new_root_is_an_empty_leaf_or_has_two_downlinks() {
    let data = [plain(2, 6, 1), plain(1, 4, 1)].concat();
    let blocks = [
        block(0, 3, &data).init(),
        block(1, 4, &[]),
        block(2, 0, &META).init(),
    ];
    let root = |level, flags| Opaque {
        level,
        flags,
        ..Opaque::default()
    };
    let page = redone(0xA0, &longs(&[3, 1]), &blocks, 0, &Page::zeroed());
    assert!(page == rebuilt(root(1, BTP_ROOT), &[plain(1, 4, 1), plain(2, 6, 1)]));
    let page = redone(0xA0, &longs(&[1, 0]), &blocks, 0, &Page::zeroed());
    assert!(page == rebuilt(root(0, BTP_ROOT | BTP_LEAF), &[]));
    let page = redone(0xA0, &longs(&[1, 0]), &blocks, 2, &Page::zeroed());
    assert!(page == meta_page());

    let before = page_of(split_leaf(), &[plain(9, 0, 1)]);
    let page = redone(0xA0, &longs(&[3, 1]), &blocks, 1, &before);
    assert_eq!(Opaque::read(&page).unwrap(), leaf(6));
    for len in 1..data.len() {
        let cut = [block(0, 3, &data[..len]).init()];
        let failed = fails(0xA0, &longs(&[3, 1]), &cut, 0, &Page::zeroed());
        assert_eq!(failed, len != 16, "{len}");
    }
}

#[test]
fn metapage_is_built_from_the_record_alone() {
    let mut before = Page::zeroed();
    before.bytes_mut().fill(0xEE);
    let page = redone(0xE0, &[], &[block(0, 0, &META).init()], 0, &before);
    assert!(page == meta_page());
    for len in 0..META.len() {
        assert!(
            fails(0xE0, &[], &[block(0, 0, &META[..len]).init()], 0, &before),
            "{len}"
        );
    }
    assert!(
        fails(0xE0, &[], &[block(0, 0, &META)], 0, &before),
        "not WILL_INIT"
    );
}

#[test]
fn pages_that_need_no_redo_are_left_alone() {
    let before = page_of(leaf(0), &[plain(1, 1, 1)]);
    let new = plain(2, 1, 2);
    let main = words(&[2]);
    let record = record("Btree", 0x00, &main, &[block(0, 4, &new)]);
    for state in [PageState::Done, PageState::Restored] {
        let mut page = before.clone();
        assert_eq!(
            redo_block_in(state, &record, 0, &mut page),
            Ok(Effect::none())
        );
        assert!(page == before);
    }
}

/// Main data of every opcode and the text pg_waldump prints for it.
fn texts() -> Vec<(u8, Vec<u8>, &'static str)> {
    let halfdead = "topparent 4294967295; leaf 5; left 4; right 6";
    let unlinked = "left 4; right 6; level 2; safexid 1:750; \
                    leafleft 14; leafright 16; leaftopparent 11";
    vec![
        (0x00, words(&[7]), "off 7"),
        (0x10, words(&[7]), "off 7"),
        (0x20, words(&[7]), "off 7"),
        (
            0x30,
            split(1, 3, 4, 5),
            "level 1, firstrightoff 3, newitemoff 4, postingoff 5",
        ),
        (
            0x40,
            split(0, 3, 4, 0),
            "level 0, firstrightoff 3, newitemoff 4, postingoff 0",
        ),
        (0x50, words(&[7]), "off 7"),
        (0x60, words(&[2]), "nintervals 2"),
        (
            0x70,
            [longs(&[700]), words(&[2, 1])].concat(),
            "latestRemovedXid 700; ndeleted 2; nupdated 1",
        ),
        (0x80, unlink(4, 2), unlinked),
        (0x90, unlink(4, 2), unlinked),
        (0xA0, longs(&[3, 1]), "lev 1"),
        (0xB0, longs(&[2, 5, 4, 6, u32::MAX]), halfdead),
        (0xC0, words(&[2, 1]), "ndeleted 2; nupdated 1"),
        (
            0xD0,
            longs(&[1663, 5, 16384, 9, 750, 1]),
            "rel 1663/5/16384; latestRemovedXid 1:750",
        ),
    ]
}

#[test]
fn texts_are_those_of_pg_waldump() {
    for (info, main, text) in texts() {
        assert_eq!(
            desc(&record("Btree", info, &main, &[])).as_deref(),
            Ok(text)
        );
        for len in 0..main.len() {
            assert!(
                desc(&record("Btree", info, &main[..len], &[])).is_err(),
                "{info:#x} {len}"
            );
        }
    }
    let cleanup = record("Btree", 0xE0, &[], &[block(0, 0, &META).init()]);
    assert_eq!(desc(&cleanup).as_deref(), Ok("last_cleanup_num_delpages 7"));
    let missing = desc(&record("Btree", 0xE0, &[], &[]));
    assert_eq!(missing, Err(RmgrError::MissingBlock(0)));
    assert_eq!(desc(&record("Btree", 0xF0, &[], &[])).as_deref(), Ok(""));
}

#[test]
fn short_main_data_is_an_error_in_redo() {
    let before = page_of(leaf(8), &[plain(9, 0, 1), plain(1, 1, 1)]);
    for (info, main, _) in texts() {
        for len in 0..main.len() {
            let record = record("Btree", info, &main[..len], &[block(0, 4, &[]).init()]);
            let result = redo_block(&record, 0, &mut before.clone());
            assert!(result.is_err(), "{info:#x} {len}");
        }
    }
}

#[test]
fn names_follow_the_opcodes() {
    let names: Vec<_> = (0..16).map(|high| identify(high << 4)).collect();
    assert_eq!(names[0], Some("INSERT_LEAF"));
    assert_eq!(names[8], Some("UNLINK_PAGE"));
    assert_eq!(names[11], Some("MARK_PAGE_HALFDEAD"));
    assert_eq!(names[12], Some("VACUUM"));
    assert_eq!(names[15], None);
    assert_eq!(names.iter().flatten().count(), 15);
    let unknown = record("Btree", 0xF0, &[], &[block(0, 4, &[])]);
    let result = redo_block(&unknown, 0, &mut Page::zeroed());
    assert_eq!(result, Err(RmgrError::UnknownOpcode(0xF0)));
    assert!(fails(
        0xD0,
        &longs(&[0; 6]),
        &[block(0, 4, &[])],
        0,
        &Page::zeroed()
    ));
}

#[test]
fn mask_hides_what_a_primary_changes_without_wal() {
    let mut opaque = leaf(8);
    let plainly = page_of(opaque, &[plain(9, 0, 1), plain(1, 1, 1)]);
    let mut hinted = plainly.clone();
    hinted.set_lsn(Lsn(1));
    hinted.set_prune_xid(TransactionId(1));
    hinted.bytes_mut()[4000] ^= 1;
    let dead = hinted.item_id(2).unwrap().with_flags(LpFlags::Dead);
    hinted.set_item_id(2, dead).unwrap();
    opaque.flags |= BTP_HAS_GARBAGE | BTP_SPLIT_END;
    opaque.cycle_id = 5;
    opaque.write(&mut hinted);
    let masked = |page: &Page| {
        let mut page = page.clone();
        mask(&mut page, 4);
        page
    };
    assert!(masked(&plainly) == masked(&hinted));
    hinted.item_mut(2).unwrap()[15] ^= 1;
    assert!(masked(&plainly) != masked(&hinted));

    // On internal pages nobody marks items dead.
    let internal = page_of(
        Opaque {
            flags: 0,
            ..leaf(8)
        },
        &[plain(9, 0, 1)],
    );
    let flags = masked(&internal).item_id(1).unwrap().flags();
    assert_eq!(flags, LpFlags::Normal);
}

#[test]
fn noise_is_never_a_panic() {
    let mut noise = Noise(0x5EED);
    let posts = posting(5, &[tid(1, 1), tid(1, 3), tid(1, 5), tid(1, 7)]);
    let good = page_of(leaf(8), &vec![posts; 20]);
    for round in 0..40_000u32 {
        let mut page = good.clone();
        match round % 4 {
            0 => page.bytes_mut().copy_from_slice(&noise.bytes(BLOCK_BYTES)),
            // Plausible pages: header, line pointers or tuples with a few wrong bytes.
            kind => {
                let (from, len) = [(12, 12), (24, 80), (7376, 800)][kind as usize - 1];
                for _ in 0..=noise.next() % 4 {
                    let at = from + noise.next() as usize % len;
                    page.bytes_mut()[at] = noise.next() as u8;
                }
            }
        }
        // Small numbers reach further than large ones.
        let mut small = |len: u64| -> Vec<u8> {
            let len = (noise.next() % len) as usize;
            words(
                &(0..len)
                    .map(|_| (noise.next() % 24) as u16)
                    .collect::<Vec<_>>(),
            )
        };
        let (main, data) = (small(20), small(60));
        let info = noise.next() as u8;
        let blocks: Vec<_> = (0..5).map(|id| block(id, 4, &data)).collect();
        let record = record("Btree", info, &main, &blocks);
        for id in 0..5 {
            let _ = redo_block(&record, id, &mut page.clone());
        }
        let _ = desc(&record);
        mask(&mut page, 4);
    }
}
