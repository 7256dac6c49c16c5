//! Tests of the whole resource manager; those of each record are beside it.

use super::page::*;
use super::testing::{data_page, fails, item_page, opaque, redone, tuple};
use super::*;
use crate::rmgr::btree::testing::{
    Noise, block, desc, longs, record, redo_block, redo_block_in, words,
};
use crate::types::{BLOCK_BYTES, Lsn, TransactionId};

#[test]
fn names_follow_the_opcodes() {
    let names: Vec<_> = (0..16).map(|high| identify(high << 4)).collect();
    let expected = [
        "CREATE_PTREE",
        "INSERT",
        "SPLIT",
        "VACUUM_PAGE",
        "DELETE_PAGE",
        "UPDATE_META_PAGE",
        "INSERT_LISTPAGE",
        "DELETE_LISTPAGE",
        "VACUUM_DATA_LEAF_PAGE",
    ];
    assert_eq!(names[1..10], expected.map(Some));
    assert_eq!(names.iter().flatten().count(), 9);
    let unknown = record("Gin", 0xA0, &[], &[block(0, 4, &[])]);
    let result = redo_block(&unknown, 0, &mut Page::zeroed());
    assert_eq!(result, Err(RmgrError::UnknownOpcode(0xA0)));
    assert_eq!(desc(&unknown).as_deref(), Ok(""));
}

/// An INSERT on an inner page: flags, left child 1, right child 0x0002_0003.
fn inner(flags: u16) -> Vec<u8> {
    words(&[flags, 0, 1, 2, 3])
}

#[test]
fn insertions_are_described_by_their_data() {
    let text = |main: &[u8], data: &[u8]| {
        desc(&record("Gin", 0x20, main, &[block(0, 4, data)])).expect("a whole record")
    };
    let entry = [&[2, 0, 1, 0][..], &tuple(1)].concat();
    let expected = "isdata: F isleaf: T isdelete: T";
    assert_eq!(text(&words(&[2]), &entry), expected);
    let entry = [&[2, 0, 0, 0][..], &tuple(1)].concat();
    let expected = "isdata: F isleaf: F children: 1/131075 isdelete: F";
    assert_eq!(text(&inner(0), &entry), expected);
    let item = words(&[2, 0, 9, 1, 5, 6]);
    let expected = "isdata: T isleaf: F children: 1/131075 pitem: 9-65541/6";
    assert_eq!(text(&inner(1), &item), expected);
    let segment = [0, 0, 3, 0, 1, 0, 1, 0, 7, 0];
    let actions = [
        &[5, 0, 0, 1, 3, 2][..],
        &segment,
        &[4, 3],
        &segment,
        &[7, 4, 1, 0, 1, 1, 1, 1, 1, 1, 9, 5],
    ]
    .concat();
    let expected = "isdata: T isleaf: T 5 segments: 0 (delete) 3 (insert) 4 (replace) \
                    7 (add 1 items) 9 unknown action 5 ???";
    assert_eq!(text(&words(&[3]), &actions), expected);
    for len in 0..actions.len() {
        let cut = [block(0, 4, &actions[..len])];
        assert!(desc(&record("Gin", 0x20, &words(&[3]), &cut)).is_err());
        assert!(desc(&record("Gin", 0x90, &[], &cut)).is_err());
    }
    let vacuum = record("Gin", 0x90, &[], &[block(0, 4, &[1, 0, 3, 1])]);
    assert_eq!(desc(&vacuum).as_deref(), Ok(" 1 segments: 3 (delete)"));
}

#[test]
fn images_stand_for_the_data_they_replace() {
    for (apply, text) in [
        (true, " (full page image)"),
        (false, " (full page image, for WAL verification)"),
    ] {
        let blocks = [block(0, 4, &[]).with_image(apply)];
        let vacuum = record("Gin", 0x90, &[], &blocks);
        assert_eq!(desc(&vacuum).as_deref(), Ok(text));
        let main = inner(1);
        let insert = record("Gin", 0x20, &main, &blocks);
        let expected = format!("isdata: T isleaf: F children: 1/131075{text}");
        assert_eq!(desc(&insert), Ok(expected));
    }
    let missing = desc(&record("Gin", 0x90, &[], &[]));
    assert_eq!(missing, Err(RmgrError::MissingBlock(0)));
}

#[test]
fn other_texts_come_from_main_data() {
    let split = |flags: u32| longs(&[1663, 5, 16384, 9, 1, 2, flags]);
    let cases = [
        (0x30, split(7), "isrootsplit: T isdata: T isleaf: T"),
        (0x30, split(0), "isrootsplit: F isdata: F isleaf: F"),
        (0x80, longs(&[0; 16]), "ndeleted: 0"),
        (
            0x80,
            [longs(&[0; 14]), longs(&[16, 0])].concat(),
            "ndeleted: 16",
        ),
    ];
    for (info, main, text) in cases {
        let described = |main: &[u8]| desc(&record("Gin", info, main, &[]));
        assert_eq!(described(&main).as_deref(), Ok(text));
        // DELETE_LISTPAGE ends in padding.
        let needed = if info == 0x80 { 60 } else { main.len() };
        for len in 0..needed {
            assert!(described(&main[..len]).is_err(), "{info:#x} {len}");
        }
    }
    for info in [0x10, 0x40, 0x50, 0x60, 0x70] {
        assert_eq!(desc(&record("Gin", info, &[], &[])).as_deref(), Ok(""));
    }
}

#[test]
fn pages_of_a_split_must_be_images() {
    let main = longs(&[1663, 5, 16384, 9, 1, 2, 4]);
    let blocks = [0, 1, 2, 3].map(|id| block(id, 4, &[]));
    let before = item_page(opaque(GIN_INCOMPLETE_SPLIT, 0), &[tuple(1)]);
    for (info, ids) in [(0x30, 0..3), (0x40, 0..1)] {
        let record = record("Gin", info, &main, &blocks);
        for id in ids {
            for state in [PageState::Needs, PageState::Done] {
                let result = redo_block_in(state, &record, id, &mut before.clone());
                assert!(result.is_err(), "{id}");
            }
            let mut page = before.clone();
            let restored = redo_block_in(PageState::Restored, &record, id, &mut page);
            assert_eq!(restored, Ok(Effect::none()));
            assert!(page == before);
        }
    }
    let child = redone(0x30, &main, &blocks, 3, &before);
    assert!(child == item_page(opaque(0, 0), &[tuple(1)]));
    // The split of a leaf finishes no other.
    let leaf = longs(&[1663, 5, 16384, 9, 1, 2, 6]);
    assert!(fails(0x30, &leaf, &blocks, 3, &before));
}

#[test]
fn pages_that_need_no_redo_are_left_alone() {
    let before = item_page(opaque(GIN_LEAF, 0), &[tuple(1)]);
    let data = [&[1, 0, 0, 0][..], &tuple(2)].concat();
    let main = words(&[2]);
    let record = record("Gin", 0x20, &main, &[block(0, 4, &data)]);
    for state in [PageState::Done, PageState::Restored] {
        let mut page = before.clone();
        let effect = redo_block_in(state, &record, 0, &mut page);
        assert_eq!(effect, Ok(Effect::none()));
        assert!(page == before);
    }
}

#[test]
fn short_main_data_is_an_error_in_redo() {
    let cases = [
        (0x20, 1, inner(0)),
        (0x30, 3, longs(&[1663, 5, 16384, 9, 1, 2, 0])),
        (0x50, 0, longs(&[1, 7, 750])),
        (0x60, 0, longs(&[0; 21])),
        (0x70, 0, longs(&[12, 0])),
        (0x80, 1, [longs(&[0; 14]), longs(&[1])].concat()),
    ];
    let page = item_page(opaque(0, 0), &[tuple(1)]);
    for (info, id, main) in cases {
        let blocks = [block(id, 4, &[]).init()];
        redone(info, &main, &blocks, id, &page);
        for len in 0..main.len() {
            let failed = fails(info, &main[..len], &blocks, id, &page);
            assert!(failed, "{info:#x} {len}");
        }
    }
}

#[test]
fn mask_hides_what_may_differ_on_a_primary() {
    let masked = |page: &Page| {
        let mut page = page.clone();
        mask(&mut page, 4);
        page
    };
    let plainly = item_page(opaque(GIN_LEAF, 0), &[tuple(1)]);
    let mut other = plainly.clone();
    other.set_lsn(Lsn(1));
    other.set_checksum_field(1);
    other.set_prune_xid(TransactionId(1));
    other.bytes_mut()[4000] ^= 1;
    assert!(masked(&plainly) == masked(&other));
    other.item_mut(1).expect("an item")[15] ^= 1;
    assert!(masked(&plainly) != masked(&other));

    // Where pd_lower says nothing, the hole is contents.
    let mut old = data_page(opaque(GIN_DATA, 3), &[1; 30]);
    old.set_lower(24);
    let mut other = old.clone();
    other.bytes_mut()[40] ^= 1;
    assert!(masked(&old) != masked(&other));

    // Of a deleted page nothing counts but its header, without the bounds in it.
    let deleted = data_page(opaque(GIN_DATA | GIN_DELETED, 3), &[1; 30]);
    let list = item_page(opaque(GIN_LIST | GIN_DELETED, 4), &[tuple(1)]);
    assert!(masked(&deleted) == masked(&list));
    assert_eq!(masked(&list).lower(), 0);
}

#[test]
fn noise_is_never_a_panic() {
    let mut noise = Noise(0x5EED);
    let segment = [0, 0, 2, 0, 1, 0, 2, 0, 1, 1];
    let good = [
        item_page(opaque(GIN_LEAF, 0), &vec![tuple(1); 20]),
        item_page(opaque(0, 0), &vec![tuple(1); 20]),
        data_page(opaque(GIN_DATA, 8), &[[1; 10]; 8].concat()),
        data_page(opaque(0x83, 0), &segment.repeat(8)),
        data_page(opaque(0x03, 8), &[0, 0, 1, 0, 1, 0].repeat(8)),
    ];
    let mut changed = 0;
    for round in 0..60_000usize {
        let mut page = good[round % 5].clone();
        match round / 5 % 4 {
            0 => page.bytes_mut().copy_from_slice(&noise.bytes(BLOCK_BYTES)),
            // Plausible pages: header, contents or special area with a few wrong bytes.
            kind => {
                let (from, len) = [(12, 12), (24, 100), (8184, 8)][kind - 1];
                for _ in 0..=noise.next() % 3 {
                    let at = from + noise.next() as usize % len;
                    page.bytes_mut()[at] = noise.next() as u8;
                }
            }
        }
        // Small numbers reach further than large ones.
        let mut small = |len: u64| -> Vec<u8> {
            let len = (noise.next() % len) as usize;
            (0..len).map(|_| (noise.next() % 6) as u8).collect()
        };
        let (main, data) = (small(100), small(60));
        let info = noise.next() as u8;
        let blocks: Vec<_> = (0..5).map(|id| block(id, 4, &data).init()).collect();
        let record = record("Gin", info, &main, &blocks);
        for id in 0..5 {
            changed += usize::from(redo_block(&record, id, &mut page.clone()).is_ok());
        }
        let _ = desc(&record);
        mask(&mut page, 4);
    }
    assert!(changed > 1000, "{changed}: the noise goes nowhere");
}
