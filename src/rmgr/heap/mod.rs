//! Heap: changes to single tuples of tables.
//!
//! Mirrors `src/backend/access/heap/heapam.c` (redo), `src/include/access/heapam_xlog.h`
//! (layouts) and `src/backend/access/rmgrdesc/heapdesc.c` (text). Heap2, the other half, shares
//! the pieces here.
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 | INSERT (+INIT) | 0 heap, [1 map] |
//! | 0x10 | DELETE | 0 heap, [1 map] |
//! | 0x20 | UPDATE (+INIT) | 0 new, [1 old, if another page], [2 map of new], [3 map of old] |
//! | 0x30 | TRUNCATE | none |
//! | 0x40 | HOT_UPDATE | as UPDATE |
//! | 0x50 | HEAP_CONFIRM | 0 heap |
//! | 0x60 | LOCK | 0 heap, [1 map] |
//! | 0x70 | INPLACE | 0 heap |
//!
//! *map* is the visibility-map page of the heap page. WAL that does not register it clears its
//! bits all the same, see [`vm_clear`].

mod confirm;
mod delete;
pub(super) mod infobits;
mod inplace;
pub(super) mod insert;
pub(super) mod lock;
mod mask;
pub(super) mod new_tuple;
mod truncate;
mod update;
pub(super) mod vm_clear;

use super::{
    Effect, PageState, RedoSettings, RmgrError, Target, Touch, TouchKind, Touches,
    explicit_touches, unexpected_block,
};
use crate::decode::{BlockRef, Record};
use crate::page::Page;

pub(super) use mask::mask;
use update::UpdateKind;

/// `XLOG_HEAP_INIT_PAGE`: the first tuple of a page, which is initialised for it.
pub(super) const INFO_INIT_PAGE: u8 = 0x80;

/// `info & XLOG_HEAP_OPMASK`. All eight codes are taken, none is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    Insert,
    Delete,
    Update,
    Truncate,
    HotUpdate,
    Confirm,
    Lock,
    Inplace,
}

impl Opcode {
    fn from_info(info: u8) -> Opcode {
        match info >> 4 & 7 {
            0 => Opcode::Insert,
            1 => Opcode::Delete,
            2 => Opcode::Update,
            3 => Opcode::Truncate,
            4 => Opcode::HotUpdate,
            5 => Opcode::Confirm,
            6 => Opcode::Lock,
            _ => Opcode::Inplace,
        }
    }
}

/// `heap_identify`.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    let init = info & INFO_INIT_PAGE != 0;
    match (Opcode::from_info(info), init) {
        (Opcode::Insert, false) => Some("INSERT"),
        (Opcode::Insert, true) => Some("INSERT+INIT"),
        (Opcode::Delete, false) => Some("DELETE"),
        (Opcode::Update, false) => Some("UPDATE"),
        (Opcode::Update, true) => Some("UPDATE+INIT"),
        (Opcode::Truncate, false) => Some("TRUNCATE"),
        (Opcode::HotUpdate, false) => Some("HOT_UPDATE"),
        (Opcode::HotUpdate, true) => Some("HOT_UPDATE+INIT"),
        (Opcode::Confirm, false) => Some("HEAP_CONFIRM"),
        (Opcode::Lock, false) => Some("LOCK"),
        (Opcode::Inplace, false) => Some("INPLACE"),
        (
            Opcode::Delete | Opcode::Truncate | Opcode::Confirm | Opcode::Lock | Opcode::Inplace,
            true,
        ) => None,
    }
}

/// Visibility-map clears that are not registered, then the block references.
pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Opcode::Insert => insert::touches(record, out),
        Opcode::Delete => delete::touches(record, out),
        Opcode::Update | Opcode::HotUpdate => update::touches(record, out),
        Opcode::Lock => lock::touches(record, out),
        Opcode::Confirm | Opcode::Inplace | Opcode::Truncate => explicit_touches(record, out),
    }
}

/// `heap_redo`. Nothing here looks at a page that is restored or already has the change.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    _settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    if state != PageState::Needs {
        return Ok(Effect::none());
    }
    init_if_asked(record, touch, page)?;
    match Opcode::from_info(record.info) {
        Opcode::Insert => insert::redo(record, touch, page),
        Opcode::Delete => delete::redo(record, touch, page),
        Opcode::Update => update::redo(UpdateKind::Cold, record, touch, page),
        Opcode::HotUpdate => update::redo(UpdateKind::Hot, record, touch, page),
        Opcode::Truncate => Err(unexpected_block(touch.block_id())),
        Opcode::Confirm => confirm::redo(record, touch, page),
        Opcode::Lock => lock::redo(record, touch, page),
        Opcode::Inplace => inplace::redo(record, touch, page),
    }
}

/// `heap_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Opcode::Insert => insert::desc(record, out),
        Opcode::Delete => delete::desc(record, out),
        Opcode::Update | Opcode::HotUpdate => update::desc(record, out),
        Opcode::Truncate => truncate::desc(record, out),
        Opcode::Confirm => confirm::desc(record, out),
        Opcode::Lock => lock::desc(record, out),
        Opcode::Inplace => inplace::desc(record, out),
    }
}

/// Initialises the page if the record is the first of it. The opcode and the block reference
/// both say so, and PostgreSQL panics if they disagree.
pub(super) fn init_if_asked(
    record: &Record<'_>,
    touch: &Touch,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let asked = record.info & INFO_INIT_PAGE != 0 && touch.target == Target::Block(0);
    match (touch.kind, asked) {
        (TouchKind::Image, _) | (TouchKind::Modify, false) => Ok(()),
        (TouchKind::Init, true) => {
            page.init(0);
            Ok(())
        }
        (TouchKind::Init, false) | (TouchKind::Modify, true) => Err(RmgrError::corrupt(
            "opcode and block reference disagree on initialising the page",
        )),
    }
}

/// Block reference `id`, which the record must have.
pub(super) fn required_block<'r, 'w>(
    record: &'r Record<'w>,
    id: u8,
) -> Result<&'r BlockRef<'w>, RmgrError> {
    record.block(id).ok_or(RmgrError::MissingBlock(id))
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
            "INSERT",
            "DELETE",
            "UPDATE",
            "TRUNCATE",
            "HOT_UPDATE",
            "HEAP_CONFIRM",
            "LOCK",
            "INPLACE",
        ];
        assert_eq!(names(0), plain.map(Some));
        let mut init = [None; 8];
        init[0] = Some("INSERT+INIT");
        init[2] = Some("UPDATE+INIT");
        init[4] = Some("HOT_UPDATE+INIT");
        assert_eq!(names(0x80), init);
        assert_eq!(identify(0x03), Some("INSERT"), "the low bits are not ours");
    }

    #[test]
    fn random_pages_and_records_never_panic() {
        let mut seed = 0x2545_F491_4F6C_DD1D;
        for round in 0..3000usize {
            let page = random_page(&mut seed);
            let main_data = &page.bytes()[4000 + round % 64..][..14];
            let data = &page.bytes()[6000..][..round % 200];
            for op in 0..8 {
                let mut small = [0; 14];
                small.copy_from_slice(main_data);
                // Line pointers that are likely to be there.
                (small[1], small[5], small[13]) = (0, 0, 0);
                (small[0], small[4], small[12]) = (small[0] % 16, small[4] % 16, small[12] % 16);
                let record = record(10, op << 4, &small)
                    .with(heap_block(0, 3, data))
                    .with(heap_block(1, 2, &[]))
                    .with(map_block(2, 0));
                for touch in record.touches().unwrap_or_default() {
                    let mut page = page.clone();
                    let _ =
                        super::super::redo(&record, &touch, PageState::Needs, &mut page, &SETTINGS);
                }
            }
            let mut page = page.clone();
            mask(&mut page, 1);
        }
    }
}
