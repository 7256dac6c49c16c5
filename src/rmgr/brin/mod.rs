//! BRIN: changes of block range indexes.
//!
//! Mirrors `src/backend/access/brin/brin_xlog.c`, `src/backend/access/rmgrdesc/brindesc.c` and
//! `src/include/access/brin_xlog.h`.
//!
//! | opcode     | record               | block references                                      |
//! |------------|----------------------|-------------------------------------------------------|
//! | 0x00       | CREATE_INDEX         | 0 metapage (init)                                     |
//! | 0x10, 0x90 | INSERT, INSERT+INIT  | 0 regular page (init), 1 revmap page                  |
//! | 0x20, 0xA0 | UPDATE, UPDATE+INIT  | as INSERT, 2 regular page with the old tuple          |
//! | 0x30       | SAMEPAGE_UPDATE      | 0 regular page                                        |
//! | 0x40       | REVMAP_EXTEND        | 0 metapage, 1 revmap page (init)                      |
//! | 0x50       | DESUMMARIZE          | 0 revmap page, 1 regular page                         |
//!
//! Pages of one record depend on each other's block numbers only.

mod page;
mod revmap;
mod tuple;

use super::{Effect, PageState, RedoSettings, RmgrError, Touch, mask, unexpected_block};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::page::{PAGE_HEADER_BYTES, Page};
use crate::types::BlockNumber;
use page::PageType;

/// `XLOG_BRIN_OPMASK`.
const INFO_OPCODE_MASK: u8 = 0x70;
/// `XLOG_BRIN_INIT_PAGE`: the first tuple of a page, which is initialised for it.
const INFO_INIT_PAGE: u8 = 0x80;

/// `info & XLOG_BRIN_OPMASK`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    CreateIndex,
    Insert,
    Update,
    SamepageUpdate,
    RevmapExtend,
    Desummarize,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        Some(match info & INFO_OPCODE_MASK {
            0x00 => Opcode::CreateIndex,
            0x10 => Opcode::Insert,
            0x20 => Opcode::Update,
            0x30 => Opcode::SamepageUpdate,
            0x40 => Opcode::RevmapExtend,
            0x50 => Opcode::Desummarize,
            _ => return None,
        })
    }
}

/// `brin_identify`. Only insertions have a name with the bit for a new page.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    let init = info & INFO_INIT_PAGE != 0;
    match (Opcode::from_info(info)?, init) {
        (Opcode::CreateIndex, false) => Some("CREATE_INDEX"),
        (Opcode::Insert, false) => Some("INSERT"),
        (Opcode::Insert, true) => Some("INSERT+INIT"),
        (Opcode::Update, false) => Some("UPDATE"),
        (Opcode::Update, true) => Some("UPDATE+INIT"),
        (Opcode::SamepageUpdate, false) => Some("SAMEPAGE_UPDATE"),
        (Opcode::RevmapExtend, false) => Some("REVMAP_EXTEND"),
        (Opcode::Desummarize, false) => Some("DESUMMARIZE"),
        (
            Opcode::CreateIndex
            | Opcode::SamepageUpdate
            | Opcode::RevmapExtend
            | Opcode::Desummarize,
            true,
        ) => None,
    }
}

/// `brin_desc`. An unknown operation has no description.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let Some(opcode) = Opcode::from_info(record.info) else {
        return Ok(());
    };
    let main = record.main_data;
    let text = match opcode {
        Opcode::CreateIndex => revmap::CreateIndex::parse(main)?.to_string(),
        Opcode::Insert => tuple::Insert::parse(main)?.to_string(),
        Opcode::Update => tuple::Update::parse(main)?.to_string(),
        Opcode::SamepageUpdate => tuple::SamepageUpdate::parse(main)?.to_string(),
        Opcode::RevmapExtend => revmap::RevmapExtend::parse(main)?.to_string(),
        Opcode::Desummarize => revmap::Desummarize::parse(main)?.to_string(),
    };
    out.push_str(&text);
    Ok(())
}

/// `brin_redo`. Every block that needs redo changes and takes the LSN.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    _settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    let unknown = RmgrError::UnknownOpcode(record.info & INFO_RMGR_MASK);
    let opcode = Opcode::from_info(record.info).ok_or(unknown)?;
    let id = touch.block_id();
    if state != PageState::Needs {
        return Ok(Effect::none());
    }
    let block = record.block(id).ok_or(RmgrError::MissingBlock(id))?;
    match opcode {
        Opcode::CreateIndex => revmap::redo_create_index(record, block, page),
        Opcode::Insert => tuple::redo_insert(record, block, page),
        Opcode::Update => tuple::redo_update(record, block, page),
        Opcode::SamepageUpdate => tuple::redo_samepage_update(record, block, page),
        Opcode::RevmapExtend => revmap::redo_revmap_extend(record, block, page),
        Opcode::Desummarize => revmap::redo_desummarize(record, block, page),
    }?;
    Ok(Effect::changed())
}

/// `brin_mask`.
pub(super) fn mask(page: &mut Page, _block: BlockNumber) {
    mask::lsn_and_checksum(page);
    mask::hint_bits(page);
    if page.checked_bounds().is_err() {
        return;
    }
    // A revmap page has its entries where others have the hole. So has a metapage from before
    // version 11, which did not set pd_lower.
    let has_hole = match PageType::of(page) {
        Some(PageType::Regular) => true,
        Some(PageType::Meta) => usize::from(page.lower()) > PAGE_HEADER_BYTES,
        Some(PageType::Revmap) | None => false,
    };
    if has_hole {
        mask::unused_space(page);
    }
    // Of no use in recovery, so it is not logged (`brin_start_evacuating_page`).
    page::clear_evacuate(page);
}

#[cfg(test)]
mod tests;
