//! Heap2: pruning, freezing, the visibility map and bulk insertion; the rest of heap's records.
//!
//! Mirrors `src/backend/access/heap/heapam.c` and `pruneheap.c` (redo),
//! `src/include/access/heapam_xlog.h` (layouts) and
//! `src/backend/access/rmgrdesc/heapdesc.c` (text).
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 | REWRITE | none |
//! | 0x10 | PRUNE | 0 heap |
//! | 0x20 | VACUUM | 0 heap |
//! | 0x30 | FREEZE_PAGE | 0 heap |
//! | 0x40 | VISIBLE | 0 map, 1 heap |
//! | 0x50 | MULTI_INSERT (+INIT) | 0 heap, [1 map] |
//! | 0x60 | LOCK_UPDATED | 0 heap, [1 map] |
//! | 0x70 | NEW_CID | none |

mod freeze_page;
mod lock_updated;
mod multi_insert;
mod new_cid;
mod prune;
mod vacuum;
mod visible;

use super::heap::{INFO_INIT_PAGE, init_if_asked};
use super::{
    Change, Effect, PageState, RedoSettings, RmgrError, Touch, Touches, explicit_touches,
    unexpected_block,
};
use crate::decode::Record;
use crate::page::Page;

pub(super) use super::heap::mask;

/// `info & XLOG_HEAP_OPMASK`. All eight codes are taken, none is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    Rewrite,
    Prune,
    Vacuum,
    FreezePage,
    Visible,
    MultiInsert,
    LockUpdated,
    NewCid,
}

impl Opcode {
    fn from_info(info: u8) -> Opcode {
        match info >> 4 & 7 {
            0 => Opcode::Rewrite,
            1 => Opcode::Prune,
            2 => Opcode::Vacuum,
            3 => Opcode::FreezePage,
            4 => Opcode::Visible,
            5 => Opcode::MultiInsert,
            6 => Opcode::LockUpdated,
            _ => Opcode::NewCid,
        }
    }
}

/// `heap2_identify`.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    let init = info & INFO_INIT_PAGE != 0;
    match (Opcode::from_info(info), init) {
        (Opcode::MultiInsert, true) => Some("MULTI_INSERT+INIT"),
        (_, true) => None,
        (Opcode::Rewrite, false) => Some("REWRITE"),
        (Opcode::Prune, false) => Some("PRUNE"),
        (Opcode::Vacuum, false) => Some("VACUUM"),
        (Opcode::FreezePage, false) => Some("FREEZE_PAGE"),
        (Opcode::Visible, false) => Some("VISIBLE"),
        (Opcode::MultiInsert, false) => Some("MULTI_INSERT"),
        (Opcode::LockUpdated, false) => Some("LOCK_UPDATED"),
        (Opcode::NewCid, false) => Some("NEW_CID"),
    }
}

/// Visibility-map clears that are not registered, then the block references.
pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Opcode::Visible => visible::touches(record, out),
        Opcode::MultiInsert => multi_insert::touches(record, out),
        Opcode::LockUpdated => lock_updated::touches(record, out),
        Opcode::Rewrite | Opcode::Prune | Opcode::Vacuum | Opcode::FreezePage | Opcode::NewCid => {
            explicit_touches(record, out)
        }
    }
}

/// REWRITE appends to a file of logical decoding; the others change pages only.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    if Opcode::from_info(record.info) == Opcode::Rewrite {
        out.push(Change::RewriteMapping {
            data: record.main_data,
        });
    }
    Ok(())
}

/// `heap2_redo`.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    init_if_asked(record, touch, page)?;
    match Opcode::from_info(record.info) {
        Opcode::Prune => prune::redo(record, touch, state, page),
        Opcode::Vacuum => vacuum::redo(record, touch, state, page),
        Opcode::FreezePage => freeze_page::redo(record, touch, state, page),
        Opcode::Visible => visible::redo(record, touch, state, page, settings),
        Opcode::MultiInsert => multi_insert::redo(record, touch, state, page),
        Opcode::LockUpdated => lock_updated::redo(record, touch, state, page),
        Opcode::Rewrite | Opcode::NewCid => Err(unexpected_block(touch.block_id())),
    }
}

/// `heap2_desc`, which has nothing to say of REWRITE.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Opcode::Rewrite => Ok(()),
        Opcode::Prune => prune::desc(record, out),
        Opcode::Vacuum => vacuum::desc(record, out),
        Opcode::FreezePage => freeze_page::desc(record, out),
        Opcode::Visible => visible::desc(record, out),
        Opcode::MultiInsert => multi_insert::desc(record, out),
        Opcode::LockUpdated => lock_updated::desc(record, out),
        Opcode::NewCid => new_cid::desc(record, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::testing::{SETTINGS, heap_block, map_block, random_page, record};

    #[test]
    fn names_are_those_of_pg_waldump() {
        let names = |init: u8| {
            (0..8)
                .map(|op| identify(op << 4 | init))
                .collect::<Vec<_>>()
        };
        let plain = [
            "REWRITE",
            "PRUNE",
            "VACUUM",
            "FREEZE_PAGE",
            "VISIBLE",
            "MULTI_INSERT",
            "LOCK_UPDATED",
            "NEW_CID",
        ];
        assert_eq!(names(0), plain.map(Some));
        let mut init = [None; 8];
        init[5] = Some("MULTI_INSERT+INIT");
        assert_eq!(names(0x80), init);
    }

    #[test]
    fn rewrite_is_the_only_change_that_is_no_page() {
        let data = [7; 40];
        for op in 0..8 {
            let mut out = Vec::new();
            changes(&record(9, op << 4, &data), &mut out).unwrap();
            let expected = match op {
                0 => vec![Change::RewriteMapping { data: &data }],
                _ => vec![],
            };
            assert_eq!(out, expected);
        }
        assert_eq!(record(9, 0x00, &data).text(), "");
    }

    #[test]
    fn random_pages_and_records_never_panic() {
        let mut seed = 0x9E37_79B9_7F4A_7C15;
        for round in 0..3000usize {
            let page = random_page(&mut seed);
            let mut main_data = [0; 34];
            main_data.copy_from_slice(&page.bytes()[4000 + round % 64..][..34]);
            // Counts and line pointers that are likely to be there.
            for pair in main_data[2..].chunks_exact_mut(2) {
                (pair[0], pair[1]) = (pair[0] % 16, 0);
            }
            let mut data = page.bytes()[6000..][..round % 200].to_vec();
            for pair in data.chunks_exact_mut(2) {
                (pair[0], pair[1]) = (pair[0] % 16, 0);
            }
            for op in 0..8 {
                let record = record(9, op << 4, &main_data)
                    .with(heap_block(0, 0, &data))
                    .with(map_block(1, 0));
                for touch in record.touches().unwrap_or_default() {
                    for state in [PageState::Needs, PageState::Done] {
                        let mut page = page.clone();
                        let _ = super::super::redo(&record, &touch, state, &mut page, &SETTINGS);
                    }
                }
            }
        }
    }
}
