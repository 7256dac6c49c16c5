//! Redo, text and masks of all records, on literal bytes.

use super::*;
use crate::decode::BlockRef;
use crate::rmgr::btree::testing::{Noise, block, desc, record, redo_block, redo_block_in};
use crate::types::{BLOCK_BYTES, Lsn, TransactionId};

/// INSERT of range 1363 of three blocks each at line pointer 2; UPDATE of line pointer 3 to it.
const INSERT: [u8; 10] = [0xF9, 0x0F, 0, 0, 3, 0, 0, 0, 2, 0];
const UPDATE: [u8; 14] = [3, 0, 0xEE, 0xEE, 0xF9, 0x0F, 0, 0, 3, 0, 0, 0, 2, 0];
const DESUMMARIZE: [u8; 10] = [3, 0, 0, 0, 0xF9, 0x0F, 0, 0, 2, 0];

/// An empty page of a kind, with dirt in its hole.
fn page_of(kind: PageType) -> Page {
    let mut page = Page::zeroed();
    page::init(&block(0, 0, &[]).init(), &mut page, kind).unwrap();
    page.bytes_mut()[24..BLOCK_BYTES - 8].fill(0xDD);
    page.set_lsn(Lsn(0x99));
    page
}

/// A regular page with tuples of 16 bytes; line pointer 2 is unused.
fn regular_page() -> Page {
    let mut page = page_of(PageType::Regular);
    for offset in 1..=4u16 {
        page.add_item_overwrite(&[offset as u8; 16], offset)
            .unwrap();
    }
    page.index_tuple_delete_no_compact(2).unwrap();
    page
}

#[track_caller]
fn redone(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> Page {
    let mut page = page.clone();
    let record = record("BRIN", info, main, blocks);
    assert_eq!(redo_block(&record, id, &mut page), Ok(Effect::changed()));
    page
}

fn fails(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> bool {
    let record = record("BRIN", info, main, blocks);
    redo_block(&record, id, &mut page.clone()).is_err()
}

#[test]
fn metapage_is_built_and_learns_of_the_revmap() {
    let create = [128, 0, 0, 0, 1, 0];
    let page = redone(
        0x00,
        &create,
        &[block(0, 0, &[]).init()],
        0,
        &regular_page(),
    );
    let mut expected = Page::zeroed();
    expected.init(8);
    expected.bytes_mut()[24..40]
        .copy_from_slice(&[0xFA, 0x9C, 0x10, 0xA8, 1, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0]);
    expected.bytes_mut()[8184..].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0x91, 0xF0]);
    expected.set_lower(40);
    assert!(page == expected);
    assert!(
        fails(0x00, &create, &[block(0, 0, &[])], 0, &page),
        "not WILL_INIT"
    );

    let extend = [7, 0, 0, 0];
    let blocks = [block(0, 0, &[]), block(1, 7, &[]).init()];
    let mut old = expected.clone();
    old.set_lower(24);
    expected.bytes_mut()[36] = 7;
    assert!(
        redone(0x40, &extend, &blocks, 0, &old) == expected,
        "pd_lower is mended"
    );
    let page = redone(0x40, &extend, &blocks, 1, &regular_page());
    let mut revmap = Page::zeroed();
    revmap.init(8);
    revmap.bytes_mut()[8190..].copy_from_slice(&[0x92, 0xF0]);
    assert!(page == revmap);
}

#[test]
fn insertion_takes_the_free_line_pointer_and_enters_the_map() {
    let blocks = [block(0, 0x2_0009, &[8; 24]), block(1, 1, &[])];
    let page = redone(0x10, &INSERT, &blocks, 0, &regular_page());
    assert_eq!(page.max_offset(), 4);
    assert_eq!(page.item(2).unwrap(), [8; 24]);
    assert!(
        fails(0x10, &INSERT, &blocks, 0, &page),
        "line pointer 2 is taken"
    );

    let before = page_of(PageType::Revmap);
    let page = redone(0x10, &INSERT, &blocks, 1, &before);
    let mut expected = before.clone();
    // Range 1363 is entry 3 of the second page.
    expected.bytes_mut()[42..48].copy_from_slice(&[2, 0, 9, 0, 2, 0]);
    assert!(page == expected);
    let mut no_pages = INSERT;
    no_pages[4] = 0;
    assert!(fails(0x10, &no_pages, &blocks, 1, &before));
    assert!(
        fails(0x10, &INSERT, &blocks[1..], 1, &before),
        "no regular page"
    );
}

#[test]
fn first_tuple_of_a_page_initialises_it() {
    let mut first = INSERT;
    first[8] = 1;
    let init = [block(0, 9, &[8; 24]).init()];
    let page = redone(0x90, &first, &init, 0, &regular_page());
    assert_eq!(
        (page.max_offset(), page.upper(), page.lsn()),
        (1, 8160, Lsn(0))
    );
    assert_eq!(page.bytes()[8184..], [0, 0, 0, 0, 0, 0, 0x93, 0xF0]);
    // Opcode and block reference must agree.
    let modify = [block(0, 9, &[8; 24])];
    assert!(fails(0x90, &first, &modify, 0, &regular_page()));
    assert!(fails(0x10, &INSERT, &init, 0, &regular_page()));

    let mut update = UPDATE;
    update[12] = 1;
    assert!(redone(0xA0, &update, &init, 0, &regular_page()) == page);
}

#[test]
fn update_removes_the_old_tuple_elsewhere() {
    let blocks = [block(0, 9, &[8; 24]), block(1, 1, &[]), block(2, 8, &[])];
    let page = redone(0x20, &UPDATE, &blocks, 2, &regular_page());
    assert_eq!(page.max_offset(), 4);
    assert!(!page.item_id(3).unwrap().is_used());
    assert_eq!(page.item(4).unwrap(), [4; 16]);
    let page = redone(0x20, &UPDATE, &blocks, 0, &regular_page());
    assert_eq!(page.item(2).unwrap(), [8; 24]);
    let page = redone(0x20, &UPDATE, &blocks, 1, &page_of(PageType::Revmap));
    assert_eq!(page.bytes()[42..48], [0, 0, 9, 0, 2, 0]);
    assert!(fails(
        0x20,
        &UPDATE,
        &[block(3, 8, &[])],
        3,
        &regular_page()
    ));
}

#[test]
fn update_in_place_resizes_the_tuple() {
    let page = redone(0x30, &[3, 0], &[block(0, 9, &[8; 30])], 0, &regular_page());
    assert_eq!(page.item(3).unwrap(), [8; 30]);
    assert_eq!(page.item(4).unwrap(), [4; 16]);
    for gone in [2, 5] {
        assert!(fails(
            0x30,
            &[gone, 0],
            &[block(0, 9, &[8; 30])],
            0,
            &regular_page()
        ));
    }
}

#[test]
fn forgotten_range_leaves_map_and_page() {
    let mut main = DESUMMARIZE;
    main[8] = 4;
    let blocks = [block(0, 1, &[]), block(1, 9, &[])];
    let page = redone(0x50, &main, &blocks, 0, &page_of(PageType::Revmap));
    assert_eq!(page.bytes()[42..48], [0xFF, 0xFF, 0xFF, 0xFF, 0, 0]);
    let page = redone(0x50, &main, &blocks, 1, &regular_page());
    assert_eq!(page.max_offset(), 3, "the last line pointer goes");
}

#[test]
fn pages_that_need_nothing_stay() {
    for (info, main, _) in texts() {
        let record = record("BRIN", info, &main, &[block(0, 9, &[8; 24])]);
        let mut page = regular_page();
        for state in [PageState::Done, PageState::Restored] {
            let effect = redo_block_in(state, &record, 0, &mut page);
            assert_eq!(effect, Ok(Effect::none()), "{info:#x}");
        }
        assert!(page == regular_page(), "{info:#x}");
    }
}

/// Opcode, main data and what pg_waldump 15 prints for it.
fn texts() -> Vec<(u8, Vec<u8>, &'static str)> {
    let insert = "heapBlk 4089 pagesPerRange 3 offnum 2";
    let update = "heapBlk 4089 pagesPerRange 3 old offnum 3, new offnum 2";
    vec![
        (0x00, vec![128, 0, 0, 0, 1, 0], "v1 pagesPerRange 128"),
        (0x10, INSERT.to_vec(), insert),
        (0x90, INSERT.to_vec(), insert),
        (0x20, UPDATE.to_vec(), update),
        (0xA0, UPDATE.to_vec(), update),
        (0x30, vec![3, 0], "offnum 3"),
        (0x40, vec![7, 0, 0, 0], "targetBlk 7"),
        (
            0x50,
            DESUMMARIZE.to_vec(),
            "pagesPerRange 3, heapBlk 4089, page offset 2",
        ),
    ]
}

#[test]
fn texts_are_those_of_pg_waldump() {
    for (info, main, text) in texts() {
        assert_eq!(desc(&record("BRIN", info, &main, &[])).as_deref(), Ok(text));
        for len in 0..main.len() {
            let blocks = [block(0, 4, &[8; 24]).init(), block(1, 5, &[]).init()];
            let cut = record("BRIN", info, &main[..len], &blocks);
            assert!(desc(&cut).is_err(), "{info:#x} {len}");
            for id in 0..2 {
                let result = redo_block(&cut, id, &mut regular_page());
                assert!(result.is_err(), "{info:#x} {len}");
            }
        }
    }
    assert_eq!(desc(&record("BRIN", 0x60, &[], &[])).as_deref(), Ok(""));
}

#[test]
fn names_follow_the_opcodes() {
    let names = |init: u8| {
        (0..8)
            .map(|op| identify(op << 4 | init))
            .collect::<Vec<_>>()
    };
    let plain = [
        "CREATE_INDEX",
        "INSERT",
        "UPDATE",
        "SAMEPAGE_UPDATE",
        "REVMAP_EXTEND",
        "DESUMMARIZE",
    ];
    assert_eq!(names(0)[..6], plain.map(Some));
    assert_eq!(names(0)[6..], [None; 2]);
    let mut init = [None; 8];
    (init[1], init[2]) = (Some("INSERT+INIT"), Some("UPDATE+INIT"));
    assert_eq!(names(0x80), init);
    let unknown = record("BRIN", 0xE0, &[], &[block(0, 4, &[])]);
    let result = redo_block(&unknown, 0, &mut regular_page());
    assert_eq!(result, Err(RmgrError::UnknownOpcode(0xE0)));
}

#[test]
fn mask_hides_the_hole_where_there_is_one() {
    let masked = |page: &Page| {
        let mut page = page.clone();
        mask(&mut page, 4);
        page
    };
    let mut meta = page_of(PageType::Meta);
    let old_meta = meta.clone();
    meta.set_lower(40);
    for (plainly, hole_is_hidden) in [
        (regular_page(), true),
        (meta, true),
        (old_meta, false),
        (page_of(PageType::Revmap), false),
    ] {
        let mut hinted = plainly.clone();
        hinted.set_lsn(Lsn(1));
        hinted.set_checksum_field(2);
        hinted.set_prune_xid(TransactionId(3));
        hinted.bytes_mut()[8188] |= 1; // BRIN_EVACUATE_PAGE
        assert!(masked(&plainly) == masked(&hinted));
        hinted.bytes_mut()[4000] ^= 1;
        assert_eq!(masked(&plainly) == masked(&hinted), hole_is_hidden);
        hinted.bytes_mut()[8188] |= 2;
        assert!(masked(&plainly) != masked(&hinted));
    }
}

#[test]
fn noise_is_never_a_panic() {
    let mut noise = Noise(0xB412);
    for round in 0..20_000u32 {
        let mut page = regular_page();
        match round % 4 {
            0 => page.bytes_mut().copy_from_slice(&noise.bytes(BLOCK_BYTES)),
            // Plausible pages: header, line pointers or special area with a few wrong bytes.
            kind => {
                let (from, len) = [(12, 12), (24, 24), (8184, 8)][kind as usize - 1];
                for _ in 0..=noise.next() % 4 {
                    let at = from + noise.next() as usize % len;
                    page.bytes_mut()[at] = noise.next() as u8;
                }
            }
        }
        let len = (noise.next() % 16) as usize;
        let mut main = noise.bytes(len);
        main.iter_mut().step_by(2).for_each(|byte| *byte %= 6);
        main.iter_mut()
            .skip(1)
            .step_by(2)
            .for_each(|byte| *byte = 0);
        let len = (noise.next() % 40) as usize;
        let data = noise.bytes(len);
        let info = noise.next() as u8;
        let blocks: Vec<_> = (0..3).map(|id| block(id, 4, &data)).collect();
        let record = record("BRIN", info, &main, &blocks);
        for id in 0..3 {
            let _ = redo_block(&record, id, &mut page.clone());
        }
        let _ = desc(&record);
        mask(&mut page, 4);
    }
}
