//! Redo, text and masks of all records, on literal bytes.

use super::page::*;
use super::*;
use crate::decode::BlockRef;
use crate::page::{LpFlags, PD_HAS_FREE_LINES};
use crate::rmgr::btree::testing::{Noise, block, desc, record, redo_block, redo_block_in};
use crate::types::{BLOCK_BYTES, INVALID_BLOCK, Lsn, TransactionId};

/// INIT_META_PAGE: 1000 tuples, function 450, 100 per bucket.
const INIT_META: [u8; 14] = [0, 0, 0, 0, 0, 0x40, 0x8F, 0x40, 0xC2, 1, 0, 0, 100, 0];

/// A tuple of 16 bytes with a key of eight equal bytes.
fn item(key: u8) -> Vec<u8> {
    let mut tuple = vec![0, 0, 1, 0, 1, 0, 16, 0];
    tuple.extend([key; 8]);
    tuple
}

/// The special area of a page in bucket 6, between blocks 11 and 12.
fn chained(flag: u16) -> Opaque {
    Opaque {
        prevblkno: 11,
        nextblkno: 12,
        bucket: 6,
        ..Opaque::without_bucket(flag)
    }
}

/// A page with these keys and dirt everywhere that redo may or may not keep.
fn page_of(opaque: Opaque, keys: &[u8]) -> Page {
    let mut page = empty(opaque);
    page.bytes_mut()[24..BLOCK_BYTES - 16].fill(0xDD);
    for key in keys {
        page.add_item(&item(*key), page.max_offset() + 1).unwrap();
    }
    page.set_lsn(Lsn(0x99));
    page.set_checksum_field(0x1234);
    page.set_flag(PD_HAS_FREE_LINES);
    page.set_prune_xid(TransactionId(33));
    page
}

/// The keys of a page in line pointer order.
fn keys(page: &Page) -> Vec<u8> {
    let key = |offset| page.item(offset).unwrap()[8];
    (1..=page.max_offset()).map(key).collect()
}

/// The metapage that [`INIT_META`] makes: 16 buckets, bitmap page to come.
fn meta_page() -> Page {
    redone(
        0x00,
        &INIT_META,
        &[block(0, 0, &[]).init()],
        0,
        &Page::zeroed(),
    )
}

/// A word of the metapage by its offset in `HashMetaPageData`.
fn meta_word(page: &Page, at: usize) -> u32 {
    page.u32_at(24 + at)
}

#[track_caller]
fn redone(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> Page {
    let mut page = page.clone();
    let record = record("Hash", info, main, blocks);
    assert_eq!(redo_block(&record, id, &mut page), Ok(Effect::changed()));
    page
}

fn fails(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> bool {
    let record = record("Hash", info, main, blocks);
    redo_block(&record, id, &mut page.clone()).is_err()
}

/// Expects an error for every length that the data of a block is cut to.
#[track_caller]
fn cut_data_fails(info: u8, main: &[u8], whole: BlockRef<'_>, page: &Page) {
    for len in 0..whole.data.len() {
        let mut cut = whole;
        cut.data = &whole.data[..len];
        let blocks = [block(0, 4, &[]), block(1, 5, &[])];
        let others = blocks.into_iter().filter(|other| other.id != cut.id);
        let blocks: Vec<_> = others.chain([cut]).collect();
        assert!(fails(info, main, &blocks, cut.id, page), "{len}");
    }
}

#[test]
fn metapage_is_built_from_the_record_alone() {
    let dirt = page_of(chained(LH_BUCKET_PAGE), &[1, 2]);
    let page = redone(0x00, &INIT_META, &[block(0, 0, &[]).init()], 0, &dirt);
    let mut expected = empty(Opaque::without_bucket(LH_META_PAGE));
    let head: [u8; 52] = [
        0x40, 0x06, 0x44, 0x06, 4, 0, 0, 0, // magic, version
        0, 0, 0, 0, 0, 0, 0, 0, // ntuples
        100, 0, 0xD8, 0x1F, 0, 0x10, 15, 0, // ffactor, bsize, bmsize, bmshift
        15, 0, 0, 0, 31, 0, 0, 0, 15, 0, 0, 0, // maxbucket, highmask, lowmask
        4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // ovflpoint, firstfree, nmaps
        0xC2, 1, 0, 0, // procid
    ];
    expected.bytes_mut()[24..76].copy_from_slice(&head);
    expected.bytes_mut()[24 + 52 + 4 * 4] = 1; // spares
    expected.set_lower(24 + 4544);
    assert!(page == expected);
    assert_eq!(
        page.bytes()[8176..],
        [[0xFF; 12].as_slice(), &[8, 0, 0x80, 0xFF]].concat()
    );
    assert!(
        fails(0x00, &INIT_META, &[block(0, 0, &[])], 0, &dirt),
        "not WILL_INIT"
    );
}

#[test]
fn buckets_to_start_with_fill_a_splitpoint_phase() {
    // Tuples, at ten per bucket; then highest bucket, high mask, splitpoint phase.
    for (tuples, maxbucket, highmask, phase) in [
        (0.0, 1, 3, 1),
        (20.0, 1, 3, 1),
        (30.0, 3, 7, 2),
        (5120.0, 511, 1023, 9),
        (5130.0, 639, 1023, 10),
        (6410.0, 767, 1023, 11),
        (10240.0, 1023, 2047, 13),
        (20480.0, 2047, 4095, 17),
        (1e300, 0x3FFF_FFFF, 0x7FFF_FFFF, 93),
        (f64::NAN, 0, 1, 0),
    ] {
        let main = [&f64::to_le_bytes(tuples)[..], &[0xC2, 1, 0, 0, 10, 0]].concat();
        let page = redone(0x00, &main, &[block(0, 0, &[]).init()], 0, &Page::zeroed());
        let found = [24, 28, 32, 36].map(|at| meta_word(&page, at));
        assert_eq!(
            found,
            [maxbucket, highmask, highmask >> 1, phase],
            "{tuples}"
        );
        assert_eq!(meta_word(&page, 52 + 4 * phase as usize), 1, "{tuples}");
    }
}

#[test]
fn first_bitmap_page_follows_the_buckets() {
    let blocks = [block(0, 17, &[]).init(), block(1, 0, &[])];
    let page = redone(0x10, &[0, 16], &blocks, 0, &page_of(chained(1), &[1]));
    let mut expected = empty(Opaque::without_bucket(LH_BITMAP_PAGE));
    expected.bytes_mut()[24..24 + 4096].fill(0xFF);
    expected.set_lower(24 + 4096);
    assert!(page == expected);

    let mut page = redone(0x10, &[0, 16], &blocks, 1, &meta_page());
    assert_eq!((meta_word(&page, 44), meta_word(&page, 444)), (1, 17));
    page.put_u32(24 + 44, 1023);
    let page = redone(0x10, &[0, 16], &blocks, 1, &page);
    assert_eq!(
        (meta_word(&page, 44), meta_word(&page, 444 + 4 * 1023)),
        (1024, 17)
    );
    assert!(fails(0x10, &[0, 16], &blocks, 1, &page), "1024 are all");
    assert!(
        fails(0x10, &[0xD9, 0x1F], &blocks, 0, &page),
        "larger than a page"
    );
    assert!(
        fails(0x10, &[0, 16], &[block(0, 17, &[])], 0, &page),
        "not WILL_INIT"
    );
}

#[test]
fn insertion_shifts_later_items_and_counts() {
    let before = page_of(chained(LH_BUCKET_PAGE), &[1, 3]);
    let new = item(2);
    let blocks = [block(0, 4, &new), block(1, 0, &[])];
    let page = redone(0x20, &[2, 0], &blocks, 0, &before);
    assert_eq!(keys(&page), [1, 2, 3]);
    assert_eq!(page.lsn(), Lsn(0x99), "the caller stamps it");
    assert!(fails(0x20, &[4, 0], &blocks, 0, &before));

    let page = redone(0x20, &[2, 0], &blocks, 1, &meta_page());
    let page = redone(0x20, &[2, 0], &blocks, 1, &page);
    assert_eq!(page.bytes()[32..40], 2f64.to_le_bytes());
}

#[test]
fn overflow_page_is_linked_and_marked() {
    let bits = [37, 0, 0, 0];
    let blocks = [
        block(0, 20, &[6, 0, 0, 0]).init(),
        block(1, 11, &[]),
        block(2, 17, &bits),
        block(3, 21, &[]).init(),
        block(4, 0, &[38, 0, 0, 0]),
    ];
    let main = [0, 16, 0];
    let page = redone(0x30, &main, &blocks, 0, &page_of(chained(0), &[1]));
    let opaque = Opaque {
        nextblkno: INVALID_BLOCK,
        ..chained(LH_OVERFLOW_PAGE)
    };
    assert!(page == empty(opaque));
    let page = redone(0x30, &main, &blocks, 1, &page_of(chained(2), &[1]));
    assert_eq!(Opaque::read(&page).unwrap().nextblkno, 20);

    let mut bitmap = empty(Opaque::without_bucket(LH_BITMAP_PAGE));
    bitmap.bytes_mut()[24] = 1;
    let page = redone(0x30, &main, &blocks, 2, &bitmap);
    assert_eq!(page.bytes()[24..32], [1, 0, 0, 0, 0x20, 0, 0, 0]);
    let page = redone(0x30, &main, &blocks, 3, &bitmap);
    assert_eq!((page.lower(), page.bytes()[4119]), (24 + 4096, 0xFF));

    // firstfree; nmaps and mapp; spares of the current phase.
    let counts = |page: &Page| [40, 44, 444, 52 + 16].map(|at| meta_word(page, at));
    let page = redone(0x30, &main, &blocks, 4, &meta_page());
    assert_eq!(
        counts(&page),
        [38, 1, 21, 3],
        "overflow page and bitmap page"
    );
    let without_bitmap = [blocks[0], blocks[1], blocks[4]];
    let page = redone(0x30, &main, &without_bitmap, 4, &meta_page());
    assert_eq!(counts(&page), [38, 0, 0, 2]);
    let page = redone(0x30, &[0, 16, 1], &blocks, 4, &meta_page());
    assert_eq!(counts(&page), [38, 0, 0, 1], "a free page was used again");

    for (at, page) in [(0, &bitmap), (2, &bitmap), (4, &meta_page())] {
        cut_data_fails(0x30, &main, blocks[at], page);
    }
    let outside = (8152 * 8u32).to_le_bytes();
    assert!(fails(0x30, &main, &[block(2, 17, &outside)], 2, &bitmap));
    assert!(
        fails(0x30, &main, &[blocks[0]], 0, &bitmap),
        "no page before it"
    );
    let mut beyond = meta_page();
    beyond.put_u32(24 + 36, 98);
    assert!(
        fails(0x30, &main, &blocks, 4, &beyond),
        "no such splitpoint"
    );
}

#[test]
fn split_sets_flags_on_restored_buckets_too() {
    let allocate = [9, 0, 0, 0, 0x22, 0, 0x12, 0, 3];
    let data: Vec<u8> = [15u32, 31, 5, 40]
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .collect();
    let blocks = [
        block(0, 4, &[]),
        block(1, 30, &[]).init(),
        block(2, 0, &data),
    ];
    let before = page_of(chained(LH_BUCKET_PAGE), &[1]);
    let mut expected = before.clone();
    Opaque {
        prevblkno: 9,
        ..chained(0x22)
    }
    .write(&mut expected);
    let allocation = record("Hash", 0x40, &allocate, &blocks);
    for state in [PageState::Needs, PageState::Restored] {
        let mut page = before.clone();
        let effect = redo_block_in(state, &allocation, 0, &mut page);
        assert_eq!(effect, Ok(Effect::changed()));
        assert!(page == expected);
    }
    let page = redone(0x40, &allocate, &blocks, 1, &before);
    let opaque = Opaque {
        prevblkno: 9,
        bucket: 9,
        ..Opaque::without_bucket(0x12)
    };
    assert!(page == empty(opaque));

    let page = redone(0x40, &allocate, &blocks, 2, &meta_page());
    let found = [24, 28, 32, 36, 52 + 20].map(|at| meta_word(&page, at));
    assert_eq!(found, [9, 31, 15, 5, 40]);
    let splitpoint_only = [9, 0, 0, 0, 0x22, 0, 0x12, 0, 2];
    let page = redone(
        0x40,
        &splitpoint_only,
        &[block(2, 0, &data[8..])],
        2,
        &meta_page(),
    );
    let found = [24, 28, 32, 36, 52 + 20].map(|at| meta_word(&page, at));
    assert_eq!(found, [9, 31, 15, 5, 40]);
    cut_data_fails(0x40, &allocate, blocks[2], &meta_page());

    let complete = record("Hash", 0x60, &[2, 0, 0x42, 0], &blocks[..2]);
    for (id, flag) in [(0, 2), (1, 0x42)] {
        for state in [PageState::Needs, PageState::Restored] {
            let mut page = before.clone();
            let effect = redo_block_in(state, &complete, id, &mut page);
            assert_eq!(effect, Ok(Effect::changed()));
            assert_eq!(Opaque::read(&page).unwrap(), chained(flag));
        }
    }
    let page = redone(0xA0, &[], &blocks[..1], 0, &page_of(chained(0xF2), &[]));
    assert_eq!(Opaque::read(&page).unwrap(), chained(0xB2));
}

#[test]
fn split_page_is_an_image_or_an_error() {
    let split = record("Hash", 0x50, &[], &[block(0, 4, &[])]);
    let mut page = page_of(chained(2), &[1]);
    let before = page.clone();
    let restored = redo_block_in(PageState::Restored, &split, 0, &mut page);
    assert_eq!(restored, Ok(Effect::none()));
    assert!(page == before);
    for state in [PageState::Needs, PageState::Done] {
        assert!(redo_block_in(state, &split, 0, &mut page).is_err());
    }
}

#[test]
fn moved_items_arrive_and_leave() {
    let data = [vec![1, 0, 3, 0], item(1), item(3)].concat();
    let blocks = [
        block(0, 4, &[]),
        block(1, 5, &data),
        block(2, 6, &[1, 0, 3, 0]),
    ];
    let before = page_of(chained(LH_OVERFLOW_PAGE), &[2, 4]);
    let page = redone(0x70, &[2, 0, 0], &blocks, 1, &before);
    assert_eq!(keys(&page), [1, 2, 3, 4]);
    let page = redone(0x70, &[2, 0, 0], &blocks, 2, &page);
    assert_eq!(keys(&page), [2, 4]);
    cut_data_fails(0x70, &[2, 0, 0], blocks[1], &before);
    assert!(
        fails(0x70, &[1, 0, 0], &blocks, 1, &before),
        "one offset, two tuples"
    );
    for size in [0, 7, 17] {
        let mut wrong = data.clone();
        wrong[4 + 6] = size;
        assert!(
            fails(0x70, &[2, 0, 0], &[block(1, 5, &wrong)], 1, &before),
            "{size}"
        );
    }
}

#[test]
fn squeezing_frees_the_page_and_joins_its_neighbours() {
    let data = [vec![1, 0], item(1)].concat();
    let blocks = [
        block(0, 4, &[]),
        block(1, 5, &data),
        block(2, 6, &[]),
        block(3, 11, &[]),
        block(4, 12, &[]),
        block(5, 17, &[33, 0, 0, 0]),
        block(6, 0, &[7, 0, 0, 0]),
    ];
    let before = page_of(chained(LH_OVERFLOW_PAGE), &[2]);
    let mut main = [21, 0, 0, 0, 22, 0, 0, 0, 1, 0, 0, 0];
    let opaque = |page: &Page| Opaque::read(page).unwrap();
    let page = redone(0x80, &main, &blocks, 1, &before);
    assert_eq!((keys(&page), opaque(&page).nextblkno), (vec![1, 2], 12));
    let page = redone(0x80, &main, &blocks, 2, &before);
    assert!(page == empty(Opaque::without_bucket(LH_UNUSED_PAGE)));
    let page = redone(0x80, &main, &blocks, 3, &before);
    assert_eq!((opaque(&page).prevblkno, opaque(&page).nextblkno), (11, 22));
    let page = redone(0x80, &main, &blocks, 4, &before);
    assert_eq!((opaque(&page).prevblkno, opaque(&page).nextblkno), (21, 12));
    let page = redone(0x80, &main, &blocks, 5, &before);
    assert_eq!(page.bytes()[28], before.bytes()[28] & !2);
    let page = redone(0x80, &main, &blocks, 6, &meta_page());
    assert_eq!(meta_word(&page, 40), 7);
    for (at, page) in [(1, &before), (5, &before), (6, &meta_page())] {
        cut_data_fails(0x80, &main, blocks[at], page);
    }

    // Nothing moves to the page before the freed one, but its link changes.
    (main[8], main[11]) = (0, 1);
    let page = redone(0x80, &main, &[block(1, 5, &[])], 1, &before);
    assert_eq!((keys(&page), opaque(&page).nextblkno), (vec![2], 22));
    assert!(
        fails(0x80, &main, &blocks, 3, &before),
        "it is named once only"
    );
}

#[test]
fn deletion_clears_the_mark_of_dead_items_if_asked() {
    let before = page_of(
        chained(LH_BUCKET_PAGE | LH_PAGE_HAS_DEAD_TUPLES),
        &[1, 2, 3, 4],
    );
    let offsets = [1, 0, 2, 0, 4, 0];
    for (main, flag) in [([0, 0], 0x82), ([1, 0], 0x02)] {
        let page = redone(0x90, &main, &[block(1, 4, &offsets)], 1, &before);
        assert_eq!(keys(&page), [3]);
        assert_eq!(page.item_id(1).unwrap().offset(), 8160, "laid out anew");
        assert_eq!(Opaque::read(&page).unwrap(), chained(flag));
    }
    assert!(fails(0x90, &[0, 0], &[block(1, 4, &[5, 0])], 1, &before));

    let main = [0xBC, 2, 0, 0, 2, 0, 0, 0, 1, 0, 2, 0];
    let blocks = [block(0, 4, &[]), block(1, 0, &[])];
    let page = redone(0xC0, &main, &blocks, 0, &before);
    assert_eq!(
        (keys(&page), Opaque::read(&page).unwrap()),
        (vec![3, 4], chained(2))
    );
    let counted = redone(0xB0, &5f64.to_le_bytes(), &blocks, 0, &meta_page());
    assert_eq!(counted.bytes()[32..40], 5f64.to_le_bytes());
    let page = redone(0xC0, &main, &blocks, 1, &counted);
    assert_eq!(page.bytes()[32..40], 3f64.to_le_bytes());
    let negative = [0xBC, 2, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF];
    assert!(fails(0xC0, &negative, &blocks, 1, &counted));
}

#[test]
fn locked_buckets_and_pages_that_need_nothing_stay() {
    let before = page_of(chained(2), &[1]);
    for (info, main, _) in texts() {
        let blocks = [block(0, 4, &[]).init(), block(1, 5, &[]).init()];
        let record = record("Hash", info, &main, &blocks);
        let mut page = before.clone();
        let done = redo_block_in(PageState::Done, &record, 1, &mut page);
        assert_eq!(done, Ok(Effect::none()), "{info:#x}");
        if matches!(info, 0x70..=0x90) {
            let locked = redo_block(&record, 0, &mut page);
            assert_eq!(locked, Ok(Effect::none()), "{info:#x}");
        }
        if !matches!(info, 0x40 | 0x60) {
            let restored = redo_block_in(PageState::Restored, &record, 0, &mut page);
            assert_eq!(restored, Ok(Effect::none()), "{info:#x}");
        }
        let new_bucket = redo_block_in(PageState::Restored, &record, 1, &mut page.clone());
        assert_eq!(
            new_bucket == Ok(Effect::changed()),
            info == 0x60,
            "{info:#x}"
        );
        assert!(page == before, "{info:#x}");
    }
}

/// Opcode, main data and what pg_waldump 15 prints for it.
fn texts() -> Vec<(u8, Vec<u8>, &'static str)> {
    let million_and_a_half = 1_500_000f64.to_le_bytes().to_vec();
    vec![
        (0x00, INIT_META.to_vec(), "num_tuples 1000, fillfactor 100"),
        (0x10, vec![0, 16], "bmsize 4096"),
        (0x20, vec![7, 1], "off 263"),
        (0x30, vec![0, 16, 1], "bmsize 4096, bmpage_found T"),
        (
            0x40,
            vec![9, 0, 0, 0, 0x22, 0, 0x12, 0, 2],
            "new_bucket 9, meta_page_masks_updated F, issplitpoint_changed T",
        ),
        (
            0x60,
            vec![2, 0, 66, 0],
            "old_bucket_flag 2, new_bucket_flag 66",
        ),
        (0x70, vec![3, 0, 1], "ntups 3, is_primary T"),
        (
            0x80,
            vec![1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1],
            "prevblkno 1, nextblkno 4294967295, ntups 0, is_primary F",
        ),
        (0x90, vec![1, 0], "clear_dead_marking T, is_primary F"),
        (0xB0, million_and_a_half, "ntuples 1.5e+06"),
        (
            0xC0,
            vec![0xBC, 2, 0, 0, 1, 0, 0, 0, 5, 0],
            "ntuples 1, latestRemovedXid 700",
        ),
    ]
}

#[test]
fn texts_are_those_of_pg_waldump() {
    for (info, main, text) in texts() {
        assert_eq!(desc(&record("Hash", info, &main, &[])).as_deref(), Ok(text));
        for len in 0..main.len() {
            let cut = record("Hash", info, &main[..len], &[block(1, 4, &[]).init()]);
            assert!(desc(&cut).is_err(), "{info:#x} {len}");
            assert!(
                redo_block(&cut, 1, &mut meta_page()).is_err(),
                "{info:#x} {len}"
            );
        }
    }
    for info in [0x50, 0xA0, 0xD0] {
        assert_eq!(desc(&record("Hash", info, &[], &[])).as_deref(), Ok(""));
    }
}

#[test]
fn numbers_have_six_digits() {
    for (number, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (0.5, "0.5"),
        (100_000.0, "100000"),
        (123_456.7, "123457"),
        (999_999.5, "1e+06"),
        (1_234_567.0, "1.23457e+06"),
        (-2.5e10, "-2.5e+10"),
        (1e100, "1e+100"),
        (0.0001, "0.0001"),
        (0.00001234, "1.234e-05"),
        (f64::NAN, "NaN"),
        (f64::NEG_INFINITY, "-Infinity"),
    ] {
        let update = f64::to_le_bytes(number);
        let expected = format!("ntuples {text}");
        assert_eq!(desc(&record("Hash", 0xB0, &update, &[])), Ok(expected));
    }
}

#[test]
fn names_follow_the_opcodes() {
    let names: Vec<_> = (0..16).map(|high| identify(high << 4)).collect();
    assert_eq!(names[0], Some("INIT_META_PAGE"));
    assert_eq!(names[5], Some("SPLIT_PAGE"));
    assert_eq!(names[8], Some("SQUEEZE_PAGE"));
    assert_eq!(names[12], Some("VACUUM_ONE_PAGE"));
    assert_eq!(names.iter().flatten().count(), 13);
    let unknown = record("Hash", 0xD0, &[], &[block(0, 4, &[])]);
    let result = redo_block(&unknown, 0, &mut Page::zeroed());
    assert_eq!(result, Err(RmgrError::UnknownOpcode(0xD0)));
}

#[test]
fn mask_hides_what_a_primary_changes_without_wal() {
    let masked = |page: &Page| {
        let mut page = page.clone();
        mask(&mut page, 4);
        page
    };
    for (kind, dead_is_hidden) in [
        (LH_BUCKET_PAGE, true),
        (LH_OVERFLOW_PAGE, true),
        (LH_BITMAP_PAGE, false),
    ] {
        let plainly = page_of(chained(kind), &[1, 2]);
        let mut hinted = plainly.clone();
        hinted.set_lsn(Lsn(1));
        hinted.set_prune_xid(TransactionId(1));
        hinted.bytes_mut()[4000] ^= 1;
        chained(kind | LH_PAGE_HAS_DEAD_TUPLES).write(&mut hinted);
        assert!(masked(&plainly) == masked(&hinted), "{kind}");
        let dead = hinted.item_id(2).unwrap().with_flags(LpFlags::Dead);
        hinted.set_item_id(2, dead).unwrap();
        assert_eq!(
            masked(&plainly) == masked(&hinted),
            dead_is_hidden,
            "{kind}"
        );
        hinted.item_mut(2).unwrap()[15] ^= 1;
        assert!(masked(&plainly) != masked(&hinted), "{kind}");
    }
    // Of a free page nothing counts.
    let free = empty(Opaque::without_bucket(LH_UNUSED_PAGE));
    assert!(masked(&free) == masked(&page_of(chained(LH_UNUSED_PAGE), &[1])));
}

#[test]
fn noise_is_never_a_panic() {
    let mut noise = Noise(0x5EED);
    let good = page_of(chained(LH_BUCKET_PAGE), &[5; 20]);
    for round in 0..20_000u32 {
        let mut page = if round % 8 == 1 {
            meta_page()
        } else {
            good.clone()
        };
        match round % 4 {
            0 => page.bytes_mut().copy_from_slice(&noise.bytes(BLOCK_BYTES)),
            // Plausible pages: header, contents or items with a few wrong bytes.
            kind => {
                let (from, len) = [(12, 12), (24, 80), (7856, 336)][kind as usize - 1];
                for _ in 0..=noise.next() % 4 {
                    let at = from + noise.next() as usize % len;
                    page.bytes_mut()[at] = noise.next() as u8;
                }
            }
        }
        // Small numbers reach further than large ones.
        let mut small = |len: u64| -> Vec<u8> {
            let words = 0..noise.next() % len;
            words.flat_map(|_| [(noise.next() % 24) as u8, 0]).collect()
        };
        let (main, data) = (small(12), small(60));
        let info = noise.next() as u8;
        let blocks: Vec<_> = (0..7).map(|id| block(id, 4, &data).init()).collect();
        let record = record("Hash", info, &main, &blocks);
        for id in 0..7 {
            let _ = redo_block(&record, id, &mut page.clone());
        }
        let _ = desc(&record);
        mask(&mut page, 4);
    }
}
