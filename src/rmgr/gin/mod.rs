//! Gin: changes of inverted indexes.
//!
//! Mirrors `src/backend/access/gin/ginxlog.c`, `src/backend/access/rmgrdesc/gindesc.c` and
//! `src/include/access/ginxlog.h`.
//!
//! | opcode | record                | block references                                            |
//! |--------|-----------------------|-------------------------------------------------------------|
//! | 0x10   | CREATE_PTREE          | 0 root of a posting tree (init)                             |
//! | 0x20   | INSERT                | 0 page, 1 child whose split is finished                     |
//! | 0x30   | SPLIT                 | 0 left, 1 right, 2 root (all images), 3 child               |
//! | 0x40   | VACUUM_PAGE           | 0 leaf of the entry tree (image)                            |
//! | 0x50   | DELETE_PAGE           | 0 target, 1 parent, 2 left sibling                          |
//! | 0x60   | UPDATE_META_PAGE      | 0 metapage (init), 1 tail of the pending list               |
//! | 0x70   | INSERT_LISTPAGE       | 0 page of the pending list (init)                           |
//! | 0x80   | DELETE_LISTPAGE       | 0 metapage (init), 1 to 16 pages of the pending list (init) |
//! | 0x90   | VACUUM_DATA_LEAF_PAGE | 0 leaf of a posting tree                                    |
//!
//! The entry tree is a tree of keys. A key with few TIDs has them in its tuple, one with many in a
//! posting tree of its own. Pages of one record do not depend on each other at all.

mod insert;
mod page;
mod pending_list;
mod posting_list;
mod posting_tree;
mod recompress;
mod split;

#[cfg(test)]
mod testing;

use super::{Effect, PageState, RedoSettings, RmgrError, Touch, mask, unexpected_block};
use crate::decode::{BlockRef, INFO_RMGR_MASK, Record};
use crate::page::{PAGE_HEADER_BYTES, Page};
use crate::types::BlockNumber;
use page::Opaque;

/// `XLOG_GIN_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    CreatePtree,
    Insert,
    Split,
    VacuumPage,
    DeletePage,
    UpdateMetaPage,
    InsertListPage,
    DeleteListPage,
    VacuumDataLeafPage,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        Some(match info & INFO_RMGR_MASK {
            0x10 => Opcode::CreatePtree,
            0x20 => Opcode::Insert,
            0x30 => Opcode::Split,
            0x40 => Opcode::VacuumPage,
            0x50 => Opcode::DeletePage,
            0x60 => Opcode::UpdateMetaPage,
            0x70 => Opcode::InsertListPage,
            0x80 => Opcode::DeleteListPage,
            0x90 => Opcode::VacuumDataLeafPage,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Opcode::CreatePtree => "CREATE_PTREE",
            Opcode::Insert => "INSERT",
            Opcode::Split => "SPLIT",
            Opcode::VacuumPage => "VACUUM_PAGE",
            Opcode::DeletePage => "DELETE_PAGE",
            Opcode::UpdateMetaPage => "UPDATE_META_PAGE",
            Opcode::InsertListPage => "INSERT_LISTPAGE",
            Opcode::DeleteListPage => "DELETE_LISTPAGE",
            Opcode::VacuumDataLeafPage => "VACUUM_DATA_LEAF_PAGE",
        }
    }

    /// Block `id` of such a record is redone by nothing but its image.
    fn needs_image(self, id: u8) -> bool {
        match self {
            Opcode::Split => id <= 2,
            Opcode::VacuumPage => id == 0,
            _ => false,
        }
    }
}

/// `gin_identify`.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(Opcode::name)
}

/// `gin_desc`. An unknown operation has no description, and neither have most of the known.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let Some(opcode) = Opcode::from_info(record.info) else {
        return Ok(());
    };
    match opcode {
        Opcode::Insert => insert::desc(record, out),
        Opcode::Split => split::desc(record, out),
        Opcode::DeleteListPage => pending_list::desc_delete_list_pages(record, out),
        Opcode::VacuumDataLeafPage => recompress::desc_vacuum(record, out),
        Opcode::CreatePtree
        | Opcode::VacuumPage
        | Opcode::DeletePage
        | Opcode::UpdateMetaPage
        | Opcode::InsertListPage => Ok(()),
    }
}

/// Says that the page is an image, if it is, in which case the block data is not described.
fn desc_image(block: &BlockRef<'_>, out: &mut String) -> bool {
    match block.image {
        None => return false,
        Some(image) if image.apply => out.push_str(" (full page image)"),
        Some(_) => out.push_str(" (full page image, for WAL verification)"),
    }
    true
}

/// How gindesc.c prints a bool.
fn true_or_false(value: bool) -> char {
    if value { 'T' } else { 'F' }
}

/// `gin_redo`. Every block that needs redo changes and takes the LSN.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    _settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    let id = touch.block_id();
    if opcode.needs_image(id) && state != PageState::Restored {
        return Err(RmgrError::corrupt(format!(
            "block reference {id} has no page image"
        )));
    }
    if state != PageState::Needs {
        return Ok(Effect::none());
    }
    let block = record.block(id).ok_or(RmgrError::MissingBlock(id))?;
    match opcode {
        Opcode::CreatePtree => posting_tree::redo_create(record, block, page),
        Opcode::Insert => insert::redo(record, block, page),
        Opcode::Split => split::redo(record, block, page),
        Opcode::VacuumPage => Err(unexpected_block(id)),
        Opcode::DeletePage => posting_tree::redo_delete_page(record, block, page),
        Opcode::UpdateMetaPage => pending_list::redo_update_meta(record, block, page),
        Opcode::InsertListPage => pending_list::redo_insert_list_page(record, block, page),
        Opcode::DeleteListPage => pending_list::redo_delete_list_pages(record, block, page),
        Opcode::VacuumDataLeafPage => recompress::redo_vacuum(block, page),
    }?;
    Ok(Effect::changed())
}

/// `gin_mask`.
pub(super) fn mask(page: &mut Page, _block: BlockNumber) {
    mask::lsn_and_checksum(page);
    // Among them pd_prune_xid, where a deleted page keeps its transaction.
    mask::hint_bits(page);
    let Ok(opaque) = Opaque::read(page) else {
        return;
    };
    if opaque.flags & page::GIN_DELETED != 0 {
        // Redo initialises a page that goes from the pending list; the primary only flags it.
        mask_content(page);
    } else if usize::from(page.lower()) > PAGE_HEADER_BYTES {
        // pd_lower is not set on posting tree pages that are older than 9.4.
        mask::unused_space(page);
    }
}

/// `mask_page_content`: all but the header, and where contents begin and end.
fn mask_content(page: &mut Page) {
    page.bytes_mut()[PAGE_HEADER_BYTES..].fill(0);
    page.set_lower(0);
    page.set_upper(0);
}

#[cfg(test)]
mod tests;
