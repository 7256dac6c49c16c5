//! Hash: changes of hash indexes.
//!
//! Mirrors `src/backend/access/hash/hash_xlog.c`, `src/backend/access/rmgrdesc/hashdesc.c` and
//! `src/include/access/hash_xlog.h`.
//!
//! | opcode | record              | block references                                            |
//! |--------|---------------------|-------------------------------------------------------------|
//! | 0x00   | INIT_META_PAGE      | 0 metapage (init)                                           |
//! | 0x10   | INIT_BITMAP_PAGE    | 0 bitmap page (init), 1 metapage                            |
//! | 0x20   | INSERT              | 0 bucket or overflow page, 1 metapage                       |
//! | 0x30   | ADD_OVFL_PAGE       | 0 overflow page (init), 1 the page before it, 2 bitmap      |
//! |        |                     | page, 3 new bitmap page (init), 4 metapage                  |
//! | 0x40   | SPLIT_ALLOCATE_PAGE | 0 old bucket, 1 new bucket (init), 2 metapage               |
//! | 0x50   | SPLIT_PAGE          | 0 a page of the new bucket, always an image                 |
//! | 0x60   | SPLIT_COMPLETE      | 0 old bucket, 1 new bucket                                  |
//! | 0x70   | MOVE_PAGE_CONTENTS  | 0 bucket (lock), 1 page that gains, 2 page that loses items |
//! | 0x80   | SQUEEZE_PAGE        | 0 and 1 as above, 2 freed page, 3 the page before it, 4     |
//! |        |                     | the page after it, 5 bitmap page, 6 metapage                |
//! | 0x90   | DELETE              | 0 bucket (lock), 1 page that loses items                    |
//! | 0xA0   | SPLIT_CLEANUP       | 0 bucket                                                    |
//! | 0xB0   | UPDATE_META_PAGE    | 0 metapage                                                  |
//! | 0xC0   | VACUUM_ONE_PAGE     | 0 bucket or overflow page, 1 metapage                       |
//!
//! Pages of one record depend on each other's block numbers only. A bucket marked "lock" is named
//! for the cleanup lock that keeps scans out; the page does not change. Array indexes that
//! PostgreSQL trusts (spares, bitmap pages) are checked here.

mod delete;
mod insert;
mod meta;
mod overflow;
mod page;
mod split;
mod squeeze;

use super::{Effect, PageState, RedoSettings, RmgrError, Touch, mask, unexpected_block};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::page::Page;
use crate::types::BlockNumber;
use page::Opaque;

/// `XLOG_HASH_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    InitMetaPage,
    InitBitmapPage,
    Insert,
    AddOvflPage,
    SplitAllocatePage,
    SplitPage,
    SplitComplete,
    MovePageContents,
    SqueezePage,
    Delete,
    SplitCleanup,
    UpdateMetaPage,
    VacuumOnePage,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        Some(match info & INFO_RMGR_MASK {
            0x00 => Opcode::InitMetaPage,
            0x10 => Opcode::InitBitmapPage,
            0x20 => Opcode::Insert,
            0x30 => Opcode::AddOvflPage,
            0x40 => Opcode::SplitAllocatePage,
            0x50 => Opcode::SplitPage,
            0x60 => Opcode::SplitComplete,
            0x70 => Opcode::MovePageContents,
            0x80 => Opcode::SqueezePage,
            0x90 => Opcode::Delete,
            0xA0 => Opcode::SplitCleanup,
            0xB0 => Opcode::UpdateMetaPage,
            0xC0 => Opcode::VacuumOnePage,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Opcode::InitMetaPage => "INIT_META_PAGE",
            Opcode::InitBitmapPage => "INIT_BITMAP_PAGE",
            Opcode::Insert => "INSERT",
            Opcode::AddOvflPage => "ADD_OVFL_PAGE",
            Opcode::SplitAllocatePage => "SPLIT_ALLOCATE_PAGE",
            Opcode::SplitPage => "SPLIT_PAGE",
            Opcode::SplitComplete => "SPLIT_COMPLETE",
            Opcode::MovePageContents => "MOVE_PAGE_CONTENTS",
            Opcode::SqueezePage => "SQUEEZE_PAGE",
            Opcode::Delete => "DELETE",
            Opcode::SplitCleanup => "SPLIT_CLEANUP",
            Opcode::UpdateMetaPage => "UPDATE_META_PAGE",
            Opcode::VacuumOnePage => "VACUUM_ONE_PAGE",
        }
    }

    /// Block reference `id` is there for its lock only.
    fn only_locks(self, id: u8) -> bool {
        let squeezes = matches!(
            self,
            Opcode::MovePageContents | Opcode::SqueezePage | Opcode::Delete
        );
        squeezes && id == 0
    }

    /// Block reference `id` is changed in the given state. Flags of buckets are set on restored
    /// pages as well: their images were taken before the flags changed.
    fn changes(self, id: u8, state: PageState) -> bool {
        match state {
            PageState::Needs => !self.only_locks(id),
            PageState::Restored => {
                self == Opcode::SplitComplete || (self, id) == (Opcode::SplitAllocatePage, 0)
            }
            PageState::Done => false,
        }
    }
}

/// `hash_identify`.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(Opcode::name)
}

/// `hash_desc`. SPLIT_PAGE, SPLIT_CLEANUP and unknown operations have no description.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let Some(opcode) = Opcode::from_info(record.info) else {
        return Ok(());
    };
    let main = record.main_data;
    let text = match opcode {
        Opcode::InitMetaPage => meta::InitMetaPage::parse(main)?.to_string(),
        Opcode::InitBitmapPage => overflow::InitBitmapPage::parse(main)?.to_string(),
        Opcode::Insert => insert::Insert::parse(main)?.to_string(),
        Opcode::AddOvflPage => overflow::AddOvflPage::parse(main)?.to_string(),
        Opcode::SplitAllocatePage => split::SplitAllocatePage::parse(main)?.to_string(),
        Opcode::SplitComplete => split::SplitComplete::parse(main)?.to_string(),
        Opcode::MovePageContents => squeeze::MovePageContents::parse(main)?.to_string(),
        Opcode::SqueezePage => squeeze::SqueezePage::parse(main)?.to_string(),
        Opcode::Delete => delete::Delete::parse(main)?.to_string(),
        Opcode::UpdateMetaPage => meta::UpdateMetaPage::parse(main)?.to_string(),
        Opcode::VacuumOnePage => delete::VacuumOnePage::parse(main)?.to_string(),
        Opcode::SplitPage | Opcode::SplitCleanup => return Ok(()),
    };
    out.push_str(&text);
    Ok(())
}

/// `hash_redo`. Every block that changes takes the LSN.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    _settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    let id = touch.block_id();
    if opcode == Opcode::SplitPage {
        return split::redo_split_page(state);
    }
    if !opcode.changes(id, state) {
        return Ok(Effect::none());
    }
    let block = record.block(id).ok_or(RmgrError::MissingBlock(id))?;
    match opcode {
        Opcode::InitMetaPage => meta::redo_init_meta_page(record, block, page),
        Opcode::InitBitmapPage => overflow::redo_init_bitmap_page(record, block, page),
        Opcode::Insert => insert::redo(record, block, page),
        Opcode::AddOvflPage => overflow::redo_add_ovfl_page(record, block, page),
        Opcode::SplitAllocatePage => split::redo_split_allocate_page(record, block, page),
        Opcode::SplitPage => unreachable!("it changes no page"),
        Opcode::SplitComplete => split::redo_split_complete(record, block, page),
        Opcode::MovePageContents => squeeze::redo_move_page_contents(record, block, page),
        Opcode::SqueezePage => squeeze::redo_squeeze_page(record, block, page),
        Opcode::Delete => delete::redo_delete(record, block, page),
        Opcode::SplitCleanup => split::redo_split_cleanup(block, page),
        Opcode::UpdateMetaPage => meta::redo_update_meta_page(record, block, page),
        Opcode::VacuumOnePage => delete::redo_vacuum_one_page(record, block, page),
    }?;
    Ok(Effect::changed())
}

/// A truth value as descriptions print it.
fn letter(truth: bool) -> char {
    if truth { 'T' } else { 'F' }
}

/// `hash_mask`.
pub(super) fn mask(page: &mut Page, _block: BlockNumber) {
    mask::lsn_and_checksum(page);
    mask::hint_bits(page);
    mask::unused_space(page);
    let Ok(mut opaque) = Opaque::read(page) else {
        return;
    };
    match opaque.flag & page::LH_PAGE_TYPE {
        page::LH_UNUSED_PAGE => {
            // Whoever takes a free page builds it anew, so what it holds never matters.
            mask::page_content(page);
            return;
        }
        // Scans mark items dead without WAL (`_hash_kill_items`).
        page::LH_BUCKET_PAGE | page::LH_OVERFLOW_PAGE => mask::line_pointer_flags(page),
        _ => {}
    }
    // Goes with the dead items, so it is not logged either.
    opaque.flag &= !page::LH_PAGE_HAS_DEAD_TUPLES;
    opaque.write(page);
}

#[cfg(test)]
mod tests;
