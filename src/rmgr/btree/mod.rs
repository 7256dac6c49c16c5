//! Btree: changes of B-tree indexes.
//!
//! Mirrors `src/backend/access/nbtree/nbtxlog.c`, `src/backend/access/rmgrdesc/nbtdesc.c` and
//! `src/include/access/nbtxlog.h`.
//!
//! | opcode | record             | block references                                              |
//! |--------|--------------------|---------------------------------------------------------------|
//! | 0x00   | INSERT_LEAF        | 0 leaf                                                        |
//! | 0x10   | INSERT_UPPER       | 0 internal page, 1 child whose split is finished              |
//! | 0x20   | INSERT_META        | as INSERT_UPPER, 2 metapage (init)                            |
//! | 0x30   | SPLIT_L            | 0 left, 1 right (init), 2 old right sibling, 3 child          |
//! | 0x40   | SPLIT_R            | as SPLIT_L                                                    |
//! | 0x50   | INSERT_POST        | 0 leaf                                                        |
//! | 0x60   | DEDUP              | 0 leaf                                                        |
//! | 0x70   | DELETE             | 0 leaf                                                        |
//! | 0x80   | UNLINK_PAGE        | 0 target (init), 1 and 2 its siblings, 3 leaf (init)          |
//! | 0x90   | UNLINK_PAGE_META   | as UNLINK_PAGE, 4 metapage (init)                             |
//! | 0xA0   | NEWROOT            | 0 root (init), 1 left child, 2 metapage (init)                |
//! | 0xB0   | MARK_PAGE_HALFDEAD | 0 leaf (init), 1 parent                                       |
//! | 0xC0   | VACUUM             | 0 leaf                                                        |
//! | 0xD0   | REUSE_PAGE         | none; a conflict with standby queries                         |
//! | 0xE0   | META_CLEANUP       | 0 metapage (init)                                             |
//!
//! Pages of one record depend on each other's block numbers only. Where PostgreSQL relies on
//! assertions about tuple sizes and posting lists, a contradiction is an error here.

mod dedup;
mod delete;
mod insert;
mod meta;
mod page;
mod page_delete;
mod split;
mod tuple;

#[cfg(test)]
pub(super) mod testing;

use std::fmt::Write as _;

use super::{Effect, PageState, RedoSettings, RmgrError, Touch, mask, unexpected_block};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::page::Page;
use crate::types::BlockNumber;
use page::Opaque;
use split::Side;

/// `XLOG_BTREE_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    InsertLeaf,
    InsertUpper,
    InsertMeta,
    SplitL,
    SplitR,
    InsertPost,
    Dedup,
    Delete,
    UnlinkPage,
    UnlinkPageMeta,
    NewRoot,
    MarkPageHalfDead,
    Vacuum,
    ReusePage,
    MetaCleanup,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        Some(match info & INFO_RMGR_MASK {
            0x00 => Opcode::InsertLeaf,
            0x10 => Opcode::InsertUpper,
            0x20 => Opcode::InsertMeta,
            0x30 => Opcode::SplitL,
            0x40 => Opcode::SplitR,
            0x50 => Opcode::InsertPost,
            0x60 => Opcode::Dedup,
            0x70 => Opcode::Delete,
            0x80 => Opcode::UnlinkPage,
            0x90 => Opcode::UnlinkPageMeta,
            0xA0 => Opcode::NewRoot,
            0xB0 => Opcode::MarkPageHalfDead,
            0xC0 => Opcode::Vacuum,
            0xD0 => Opcode::ReusePage,
            0xE0 => Opcode::MetaCleanup,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Opcode::InsertLeaf => "INSERT_LEAF",
            Opcode::InsertUpper => "INSERT_UPPER",
            Opcode::InsertMeta => "INSERT_META",
            Opcode::SplitL => "SPLIT_L",
            Opcode::SplitR => "SPLIT_R",
            Opcode::InsertPost => "INSERT_POST",
            Opcode::Dedup => "DEDUP",
            Opcode::Delete => "DELETE",
            Opcode::UnlinkPage => "UNLINK_PAGE",
            Opcode::UnlinkPageMeta => "UNLINK_PAGE_META",
            Opcode::NewRoot => "NEWROOT",
            Opcode::MarkPageHalfDead => "MARK_PAGE_HALFDEAD",
            Opcode::Vacuum => "VACUUM",
            Opcode::ReusePage => "REUSE_PAGE",
            Opcode::MetaCleanup => "META_CLEANUP",
        }
    }
}

/// `btree_identify`.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(Opcode::name)
}

/// `btree_desc`. An unknown operation has no description.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let Some(opcode) = Opcode::from_info(record.info) else {
        return Ok(());
    };
    match opcode {
        Opcode::InsertLeaf | Opcode::InsertUpper | Opcode::InsertMeta | Opcode::InsertPost => {
            insert::Insert::parse(record.main_data)?.desc(out)
        }
        Opcode::SplitL | Opcode::SplitR => append(out, &split::Split::parse(record.main_data)?),
        Opcode::Dedup => append(out, &dedup::Dedup::parse(record.main_data)?),
        Opcode::Delete => append(out, &delete::Delete::parse(record.main_data)?),
        Opcode::Vacuum => append(out, &delete::Vacuum::parse(record.main_data)?),
        Opcode::UnlinkPage | Opcode::UnlinkPageMeta => {
            append(out, &page_delete::UnlinkPage::parse(record.main_data)?)
        }
        Opcode::NewRoot => append(out, &meta::NewRoot::parse(record.main_data)?),
        Opcode::MarkPageHalfDead => append(
            out,
            &page_delete::MarkPageHalfDead::parse(record.main_data)?,
        ),
        Opcode::ReusePage => append(out, &page_delete::ReusePage::parse(record.main_data)?),
        Opcode::MetaCleanup => {
            let block = record.block(0).ok_or(RmgrError::MissingBlock(0))?;
            append(out, &meta::MetaData::parse(block.data)?)
        }
    }
    Ok(())
}

fn append(out: &mut String, text: &dyn std::fmt::Display) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{text}");
}

/// `btree_redo`. Every block that needs redo changes and takes the LSN.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    _settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    let id = touch.block_id();
    if state != PageState::Needs {
        return Ok(Effect::none());
    }
    let block = record.block(id).ok_or(RmgrError::MissingBlock(id))?;
    match opcode {
        Opcode::InsertLeaf | Opcode::InsertUpper | Opcode::InsertMeta | Opcode::InsertPost => {
            insert::redo(opcode, record, block, page)
        }
        Opcode::SplitL => split::redo(Side::Left, record, block, page),
        Opcode::SplitR => split::redo(Side::Right, record, block, page),
        Opcode::Dedup => dedup::redo(record, block, page),
        Opcode::Delete => delete::redo_delete(record, block, page),
        Opcode::Vacuum => delete::redo_vacuum(record, block, page),
        Opcode::UnlinkPage | Opcode::UnlinkPageMeta => {
            page_delete::redo_unlink_page(opcode, record, block, page)
        }
        Opcode::NewRoot => meta::redo_new_root(record, block, page),
        Opcode::MarkPageHalfDead => page_delete::redo_mark_page_half_dead(record, block, page),
        Opcode::ReusePage => Err(unexpected_block(id)),
        Opcode::MetaCleanup => meta::redo_meta_cleanup(block, page),
    }?;
    Ok(Effect::changed())
}

/// `btree_mask`.
pub(super) fn mask(page: &mut Page, _block: BlockNumber) {
    mask::lsn_and_checksum(page);
    mask::hint_bits(page);
    mask::unused_space(page);
    let Ok(mut opaque) = Opaque::read(page) else {
        return;
    };
    if opaque.is_leaf() {
        // Scans mark leaf items dead without WAL (`_bt_killitems`, `_bt_check_unique`).
        mask::line_pointer_flags(page);
    }
    // Goes with the dead items, so it is not logged either.
    opaque.flags &= !page::BTP_HAS_GARBAGE;
    // Redo of a split gives the right page neither the flag nor the cycle id of a running vacuum.
    opaque.flags &= !page::BTP_SPLIT_END;
    opaque.cycle_id = 0;
    opaque.write(page);
}

#[cfg(test)]
mod tests;
