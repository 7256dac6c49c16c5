//! Tests of the whole resource manager; those of each record are beside it.

use super::page::*;
use super::testing::{
    META, Noise, block, desc, fails, leaf, longs, page_of, plain, posting, record, redo_block,
    redo_block_in, tid, words,
};
use super::*;
use crate::page::LpFlags;
use crate::types::{BLOCK_BYTES, Lsn, TransactionId};

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
            [longs(&[1]), words(&[3, 4, 5])].concat(),
            "level 1, firstrightoff 3, newitemoff 4, postingoff 5",
        ),
        (
            0x40,
            [longs(&[0]), words(&[3, 4, 0])].concat(),
            "level 0, firstrightoff 3, newitemoff 4, postingoff 0",
        ),
        (0x50, words(&[7]), "off 7"),
        (0x60, words(&[2]), "nintervals 2"),
        (
            0x70,
            [longs(&[700]), words(&[2, 1])].concat(),
            "latestRemovedXid 700; ndeleted 2; nupdated 1",
        ),
        (0x80, longs(&[4, 6, 2, 0, 750, 1, 14, 16, 11]), unlinked),
        (0x90, longs(&[4, 6, 2, 0, 750, 1, 14, 16, 11]), unlinked),
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
