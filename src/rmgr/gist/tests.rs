//! Tests of the whole resource manager; those of each record are beside it.

use super::page::*;
use super::testing::{
    Noise, block, desc, fails, longs, page_of, record, redo_block, redo_block_in, tuple, words,
};
use super::*;
use crate::page::LpFlags;
use crate::types::{BLOCK_BYTES, TransactionId};

#[test]
fn pages_that_need_no_redo_are_left_alone() {
    let before = page_of(F_LEAF | F_FOLLOW_RIGHT, &[tuple(1, 16)]);
    let new = tuple(2, 16);
    let main = words(&[0, 1]);
    let record = record("Gist", 0x00, &main, &[block(0, 4, &new), block(1, 5, &[])]);
    for (state, id) in [
        (PageState::Done, 0),
        (PageState::Restored, 0),
        (PageState::Done, 1),
    ] {
        let mut page = before.clone();
        let effect = redo_block_in(state, &record, id, &mut page);
        assert_eq!(effect, Ok(Effect::none()));
        assert!(page == before);
    }
}

/// Main data of every opcode and the text pg_waldump prints for it.
fn texts() -> Vec<(u8, Vec<u8>, &'static str)> {
    vec![
        (
            0x10,
            [longs(&[700]), words(&[3])].concat(),
            "delete: latestRemovedXid 700, nitems: 3",
        ),
        (
            0x20,
            longs(&[1663, 5, 16384, 9, 750, 1]),
            "rel 1663/5/16384; blk 9; latestRemovedXid 1:750",
        ),
        (
            0x30,
            longs(&[40, 0, 0x77, 5, 0x0003_0001, 1]),
            "page_split: splits to 3 pages",
        ),
        (
            0x60,
            [longs(&[750, 1]), words(&[12])].concat(),
            "deleteXid 1:750; downlink 12",
        ),
    ]
}

#[test]
fn texts_are_those_of_pg_waldump() {
    for (info, main, text) in texts() {
        assert_eq!(desc(&record("Gist", info, &main, &[])).as_deref(), Ok(text));
        for len in 0..main.len() {
            let short = desc(&record("Gist", info, &main[..len], &[]));
            assert!(short.is_err(), "{info:#x} {len}");
        }
    }
    for info in [0x00, 0x70, 0x40] {
        assert_eq!(desc(&record("Gist", info, &[], &[])).as_deref(), Ok(""));
    }
}

#[test]
fn names_follow_the_opcodes() {
    let names: Vec<_> = (0..16).filter_map(|high| identify(high << 4)).collect();
    let expected = [
        "PAGE_UPDATE",
        "DELETE",
        "PAGE_REUSE",
        "PAGE_SPLIT",
        "PAGE_DELETE",
        "ASSIGN_LSN",
    ];
    assert_eq!(names, expected);
    assert_eq!(identify(0x60), Some("PAGE_DELETE"));
    let unknown = record("Gist", 0x40, &[], &[block(0, 4, &[])]);
    let result = redo_block(&unknown, 0, &mut Page::zeroed());
    assert_eq!(result, Err(RmgrError::UnknownOpcode(0x40)));
    let page = page_of(F_LEAF, &[]);
    for info in [0x20, 0x70] {
        assert!(fails(info, &longs(&[0; 6]), &[block(0, 4, &[])], 0, &page));
    }
}

#[test]
fn mask_hides_what_a_primary_changes_without_wal() {
    let plainly = page_of(F_LEAF, &[tuple(9, 16), tuple(1, 16)]);
    let mut hinted = plainly.clone();
    hinted.set_lsn(Lsn(1));
    hinted.set_prune_xid(TransactionId(1));
    hinted.bytes_mut()[4000] ^= 1;
    let dead = hinted.item_id(2).unwrap().with_flags(LpFlags::Dead);
    hinted.set_item_id(2, dead).unwrap();
    let mut opaque = Opaque::read(&hinted).unwrap();
    opaque.nsn = Lsn(8);
    opaque.flags |= F_HAS_GARBAGE | F_FOLLOW_RIGHT;
    opaque.write(&mut hinted);
    let masked = |page: &Page| {
        let mut page = page.clone();
        mask(&mut page, 4);
        page
    };
    assert!(masked(&plainly) == masked(&hinted));
    hinted.item_mut(2).unwrap()[15] ^= 1;
    assert!(masked(&plainly) != masked(&hinted));

    // On inner pages nobody marks items dead.
    let inner = masked(&page_of(0, &[tuple(9, 16)]));
    assert_eq!(inner.item_id(1).unwrap().flags(), LpFlags::Normal);
}

#[test]
fn noise_is_never_a_panic() {
    let mut noise = Noise(0x5EED);
    let good = page_of(F_LEAF, &vec![tuple(5, 24); 20]);
    for round in 0..40_000u32 {
        let mut page = good.clone();
        match round % 4 {
            0 => page.bytes_mut().copy_from_slice(&noise.bytes(BLOCK_BYTES)),
            // Plausible pages: header, line pointers or tuples with a few wrong bytes.
            kind => {
                let (from, len) = [(12, 12), (24, 80), (7696, 480)][kind as usize - 1];
                for _ in 0..=noise.next() % 4 {
                    let at = from + noise.next() as usize % len;
                    page.bytes_mut()[at] = noise.next() as u8;
                }
            }
        }
        // Small numbers reach further than large ones.
        let mut small = |len: u64| -> Vec<u8> {
            let len = (noise.next() % len) as usize;
            let words_of: Vec<u16> = (0..len).map(|_| (noise.next() % 24) as u16).collect();
            words(&words_of)
        };
        let (main, data) = (small(20), small(60));
        let info = noise.next() as u8;
        let blocks: Vec<_> = (0..5).map(|id| block(id, 4, &data).init()).collect();
        let record = record("Gist", info, &main, &blocks);
        for id in 0..5 {
            let _ = redo_block(&record, id, &mut page.clone());
        }
        let _ = desc(&record);
        mask(&mut page, 4);
    }
}
