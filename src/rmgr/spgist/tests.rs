//! Tests of the whole resource manager; those of each record are beside it.

use super::testing::{
    Noise, PLACEHOLDER, block, desc, inner, leaf, longs, page_of, record, redirect, redo_block,
    redo_block_in, state, words,
};
use super::*;
use crate::types::{BLOCK_BYTES, Lsn, TransactionId};

#[test]
fn pages_that_need_no_redo_are_left_alone() {
    let before = page_of(&[leaf(1, 16, 0)]);
    let main = [words(&[0, 2, 0, 0, 0]), leaf(2, 16, 0)].concat();
    let record = record("SPGist", 0x10, &main, &[block(0, 4, &[])]);
    for state in [PageState::Done, PageState::Restored] {
        let mut page = before.clone();
        let effect = redo_block_in(state, &record, 0, &mut page);
        assert_eq!(effect, Ok(Effect::none()));
        assert!(page == before);
    }
}

/// The fixed part of the main data of every opcode and the text pg_waldump prints for it.
fn texts() -> Vec<(u8, Vec<u8>, &'static str)> {
    let state = state(0).to_vec();
    vec![
        (
            0x10,
            [vec![1, 1], words(&[2, 3, 4, 5])].concat(),
            "off: 2, headoff: 3, parentoff: 4, nodeI: 5 (newpage) (nulls)",
        ),
        (
            0x20,
            [vec![3, 0, 1, 1, 1, 0], words(&[4, 5, 0]), state.clone()].concat(),
            "nmoves: 3, parentoff: 4, nodeI: 5 (newpage) (replacedead) (nulls)",
        ),
        (
            0x30,
            [vec![1, 0, 2, 0, 1, 255], words(&[4, 5, 0]), state.clone()].concat(),
            "off: 1, newoff: 2, parentBlk: -1, parentoff: 4, nodeI: 5 (newpage)",
        ),
        (
            0x40,
            vec![1, 0, 2, 0, 1, 1],
            "prefixoff: 1, postfixoff: 2 (newpage) (same)",
        ),
        (
            0x50,
            [words(&[1, 6, 7, 0, 8, 0x0100, 1, 4, 5, 0]), state.clone()].concat(),
            "ndelete: 6, ninsert: 7, inneroff: 8, parentoff: 4, nodeI: 5 \
             (innerIsParent) (nulls) (isRootSplit)",
        ),
        (
            0x60,
            [words(&[1, 2, 3, 4]), state.clone()].concat(),
            "ndead: 1, nplaceholder: 2, nmove: 3, nchain: 4",
        ),
        (0x70, [words(&[9, 0]), state].concat(), "ndelete: 9"),
        (
            0x80,
            [words(&[2, 7]), longs(&[701])].concat(),
            "ntoplaceholder: 2, firstplaceholder: 7, newestredirectxid: 701",
        ),
    ]
}

#[test]
fn texts_are_those_of_pg_waldump() {
    for (info, mut main, text) in texts() {
        let described = |main: &[u8]| desc(&record("SPGist", info, main, &[]));
        assert_eq!(described(&main).as_deref(), Ok(text));
        for len in 0..main.len() {
            assert!(described(&main[..len]).is_err(), "{info:#x} {len}");
        }
        // Without flags there is nothing behind the numbers.
        main.iter_mut().for_each(|byte| *byte = 0);
        assert!(!described(&main).unwrap().contains('('));
    }
    assert_eq!(desc(&record("SPGist", 0x00, &[], &[])).as_deref(), Ok(""));
}

#[test]
fn names_follow_the_opcodes() {
    let names: Vec<_> = (0..16).filter_map(|high| identify(high << 4)).collect();
    let expected = [
        "ADD_LEAF",
        "MOVE_LEAFS",
        "ADD_NODE",
        "SPLIT_TUPLE",
        "PICKSPLIT",
        "VACUUM_LEAF",
        "VACUUM_ROOT",
        "VACUUM_REDIRECT",
    ];
    assert_eq!(names, expected);
    assert_eq!(identify(0x10), Some("ADD_LEAF"));
    assert_eq!(identify(0x00), None);
    let unknown = record("SPGist", 0x90, &[], &[block(0, 4, &[])]);
    let result = redo_block(&unknown, 0, &mut Page::zeroed());
    assert_eq!(result, Err(RmgrError::UnknownOpcode(0x90)));
}

#[test]
fn mask_hides_header_and_hole_only() {
    let plainly = page_of(&[leaf(9, 16, 0), PLACEHOLDER.to_vec()]);
    let mut hinted = plainly.clone();
    hinted.set_lsn(Lsn(1));
    hinted.set_prune_xid(TransactionId(1));
    hinted.bytes_mut()[4000] ^= 1;
    let masked = |page: &Page| {
        let mut page = page.clone();
        mask(&mut page, 4);
        page
    };
    assert!(masked(&plainly) == masked(&hinted));
    hinted.put_u16(8186, 5);
    assert!(masked(&plainly) != masked(&hinted));
    let mut meta = plainly.clone();
    meta.set_lower(0);
    assert!(masked(&meta).bytes()[4000..] == meta.bytes()[4000..]);
}

#[test]
fn noise_is_never_a_panic() {
    let mut noise = Noise(0x5EED);
    let mut tuples = vec![PLACEHOLDER.to_vec(); 6];
    tuples.extend(vec![leaf(5, 24, 1); 6]);
    tuples.extend(vec![inner(5, &[(1, 1), (1, 2)]); 4]);
    tuples.extend(vec![redirect(3, 3); 4]);
    let good = page_of(&tuples);
    let used = usize::from(good.upper());
    for round in 0..40_000u32 {
        let mut page = good.clone();
        match round % 4 {
            0 => page.bytes_mut().copy_from_slice(&noise.bytes(BLOCK_BYTES)),
            // Plausible pages: header, line pointers or tuples with a few wrong bytes.
            kind => {
                let ranges = [(12, 12), (24, 80), (used, BLOCK_BYTES - used)];
                let (from, len) = ranges[kind as usize - 1];
                for _ in 0..=noise.next() % 4 {
                    let at = from + noise.next() as usize % len;
                    page.bytes_mut()[at] = noise.next() as u8;
                }
            }
        }
        // Small numbers reach further than large ones; most main data end in tuples.
        let len = (noise.next() % 20) as usize;
        let numbers: Vec<u16> = (0..len).map(|_| (noise.next() % 24) as u16).collect();
        let main = [words(&numbers), tuples[round as usize % 20].repeat(3)].concat();
        let info = noise.next() as u8;
        let blocks: Vec<_> = (0..5)
            .map(|id| {
                let plain = block(id, 4, &[]);
                if round % 3 == 0 { plain.init() } else { plain }
            })
            .collect();
        let record = record("SPGist", info, &main, &blocks);
        for id in 0..5 {
            let _ = redo_block(&record, id, &mut page.clone());
        }
        let _ = desc(&record);
        mask(&mut page, 4);
    }
}
