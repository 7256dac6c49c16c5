//! Gist: changes of GiST indexes.
//!
//! Mirrors `src/backend/access/gist/gistxlog.c`, `src/backend/access/rmgrdesc/gistdesc.c` and
//! `src/include/access/gistxlog.h`.
//!
//! | opcode | record      | block references                                                  |
//! |--------|-------------|-------------------------------------------------------------------|
//! | 0x00   | PAGE_UPDATE | 0 page, 1 left half of the split that this finishes               |
//! | 0x10   | DELETE      | 0 leaf                                                            |
//! | 0x20   | PAGE_REUSE  | none; a conflict with standby queries                             |
//! | 0x30   | PAGE_SPLIT  | 0 left half of a split below that this finishes, 1.. pages (init) |
//! | 0x60   | PAGE_DELETE | 0 leaf, 1 parent                                                  |
//! | 0x70   | ASSIGN_LSN  | none; it only moves the LSN on                                    |
//!
//! The left half of a finished split takes the record's LSN as its NSN even when its image was
//! just restored: the image was taken before.

mod page;
mod page_delete;
mod split;
mod update;

use super::{Effect, PageState, RedoSettings, RmgrError, Touch, mask, unexpected_block};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::page::Page;
use crate::types::{BlockNumber, Lsn};
use page::Opaque;

/// `XLOG_GIST_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    PageUpdate,
    Delete,
    PageReuse,
    PageSplit,
    PageDelete,
    AssignLsn,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        Some(match info & INFO_RMGR_MASK {
            0x00 => Opcode::PageUpdate,
            0x10 => Opcode::Delete,
            0x20 => Opcode::PageReuse,
            0x30 => Opcode::PageSplit,
            0x60 => Opcode::PageDelete,
            0x70 => Opcode::AssignLsn,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Opcode::PageUpdate => "PAGE_UPDATE",
            Opcode::Delete => "DELETE",
            Opcode::PageReuse => "PAGE_REUSE",
            Opcode::PageSplit => "PAGE_SPLIT",
            Opcode::PageDelete => "PAGE_DELETE",
            Opcode::AssignLsn => "ASSIGN_LSN",
        }
    }

    /// The block reference that is the left half of a finished split.
    fn left_child(self) -> Option<u8> {
        match self {
            Opcode::PageUpdate => Some(1),
            Opcode::PageSplit => Some(0),
            Opcode::Delete | Opcode::PageReuse | Opcode::PageDelete | Opcode::AssignLsn => None,
        }
    }
}

/// `gist_identify`.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(Opcode::name)
}

/// `gist_desc`. An unknown operation has no description.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let Some(opcode) = Opcode::from_info(record.info) else {
        return Ok(());
    };
    let text = match opcode {
        Opcode::PageUpdate | Opcode::AssignLsn => return Ok(()),
        Opcode::Delete => update::Delete::parse(record.main_data)?.to_string(),
        Opcode::PageReuse => page_delete::PageReuse::parse(record.main_data)?.to_string(),
        Opcode::PageSplit => split::PageSplit::parse(record.main_data)?.to_string(),
        Opcode::PageDelete => page_delete::PageDelete::parse(record.main_data)?.to_string(),
    };
    out.push_str(&text);
    Ok(())
}

/// `gist_redo`. Every block that needs redo changes and takes the LSN, and so does a restored
/// left child.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    _settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    let id = touch.block_id();
    let is_left_child = opcode.left_child() == Some(id);
    match state {
        PageState::Needs => {}
        PageState::Restored if is_left_child => {}
        PageState::Done | PageState::Restored => return Ok(Effect::none()),
    }
    if is_left_child {
        clear_follow_right(record, page)?;
        return Ok(Effect::changed());
    }
    let block = record.block(id).ok_or(RmgrError::MissingBlock(id))?;
    match opcode {
        Opcode::PageUpdate => update::redo_page_update(record, block, page),
        Opcode::Delete => update::redo_delete(record, block, page),
        Opcode::PageSplit => split::redo(record, block, page),
        Opcode::PageDelete => page_delete::redo(record, block, page),
        Opcode::PageReuse | Opcode::AssignLsn => Err(unexpected_block(id)),
    }?;
    Ok(Effect::changed())
}

/// `gistRedoClearFollowRight`: the page's right sibling got its downlink, as of this record.
fn clear_follow_right(record: &Record<'_>, page: &mut Page) -> Result<(), RmgrError> {
    page::update_opaque(page, |opaque| {
        opaque.nsn = record.end_lsn;
        opaque.flags &= !page::F_FOLLOW_RIGHT;
    })
}

/// `gist_mask`.
pub(super) fn mask(page: &mut Page, _block: BlockNumber) {
    mask::lsn_and_checksum(page);
    mask::hint_bits(page);
    mask::unused_space(page);
    let Ok(mut opaque) = Opaque::read(page) else {
        return;
    };
    // An NSN is the LSN of another moment, so what holds for pd_lsn holds for it.
    opaque.nsn = Lsn::INVALID;
    // The primary clears it on the left child after the image was taken (`gistplacetopage`).
    opaque.flags |= page::F_FOLLOW_RIGHT;
    if opaque.is_leaf() {
        // Scans mark leaf items dead without WAL (`gistkillitems`).
        mask::line_pointer_flags(page);
    }
    // Goes with the dead items; redo never sets it.
    opaque.flags &= !page::F_HAS_GARBAGE;
    opaque.write(page);
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
