//! SPGist: changes of SP-GiST indexes.
//!
//! Mirrors `src/backend/access/spgist/spgxlog.c`, `src/backend/access/rmgrdesc/spgdesc.c` and
//! `src/include/access/spgxlog.h`.
//!
//! | opcode | record          | block references                                              |
//! |--------|-----------------|---------------------------------------------------------------|
//! | 0x10   | ADD_LEAF        | 0 leaf (init if new), 1 parent                                |
//! | 0x20   | MOVE_LEAFS      | 0 source, 1 destination (init if new), 2 parent               |
//! | 0x30   | ADD_NODE        | 0 original, 1 new place (init if new), 2 parent, if elsewhere |
//! | 0x40   | SPLIT_TUPLE     | 0 prefix, 1 postfix, if elsewhere (init if new)               |
//! | 0x50   | PICKSPLIT       | 0 source, 1 destination, 2 inner (init if new), 3 parent      |
//! | 0x60   | VACUUM_LEAF     | 0 leaf                                                        |
//! | 0x70   | VACUUM_ROOT     | 0 root that is a leaf                                         |
//! | 0x80   | VACUUM_REDIRECT | 0 page                                                        |
//!
//! Everything is in the main data, tuples without alignment; blocks have no data of their own.
//! Pages of one record depend on each other's block numbers only. The free-page cache of the
//! metapage is not logged, so redo never touches it.

mod add_leaf;
mod add_node;
mod move_leafs;
mod page;
mod picksplit;
mod split_tuple;
mod tuple;
mod vacuum;

use super::{Effect, PageState, RedoSettings, RmgrError, Touch, mask, unexpected_block};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::page::Page;
use crate::types::BlockNumber;

/// `XLOG_SPGIST_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    AddLeaf,
    MoveLeafs,
    AddNode,
    SplitTuple,
    PickSplit,
    VacuumLeaf,
    VacuumRoot,
    VacuumRedirect,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        Some(match info & INFO_RMGR_MASK {
            0x10 => Opcode::AddLeaf,
            0x20 => Opcode::MoveLeafs,
            0x30 => Opcode::AddNode,
            0x40 => Opcode::SplitTuple,
            0x50 => Opcode::PickSplit,
            0x60 => Opcode::VacuumLeaf,
            0x70 => Opcode::VacuumRoot,
            0x80 => Opcode::VacuumRedirect,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Opcode::AddLeaf => "ADD_LEAF",
            Opcode::MoveLeafs => "MOVE_LEAFS",
            Opcode::AddNode => "ADD_NODE",
            Opcode::SplitTuple => "SPLIT_TUPLE",
            Opcode::PickSplit => "PICKSPLIT",
            Opcode::VacuumLeaf => "VACUUM_LEAF",
            Opcode::VacuumRoot => "VACUUM_ROOT",
            Opcode::VacuumRedirect => "VACUUM_REDIRECT",
        }
    }
}

/// `spg_identify`.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(Opcode::name)
}

/// `spg_desc`. An unknown operation has no description.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let Some(opcode) = Opcode::from_info(record.info) else {
        return Ok(());
    };
    let main = record.main_data;
    let text = match opcode {
        Opcode::AddLeaf => add_leaf::AddLeaf::parse(main)?.to_string(),
        Opcode::MoveLeafs => move_leafs::MoveLeafs::parse(main)?.to_string(),
        Opcode::AddNode => add_node::AddNode::parse(main)?.to_string(),
        Opcode::SplitTuple => split_tuple::SplitTuple::parse(main)?.to_string(),
        Opcode::PickSplit => picksplit::PickSplit::parse(main)?.to_string(),
        Opcode::VacuumLeaf => vacuum::VacuumLeaf::parse(main)?.to_string(),
        Opcode::VacuumRoot => vacuum::VacuumRoot::parse(main)?.to_string(),
        Opcode::VacuumRedirect => vacuum::VacuumRedirect::parse(main)?.to_string(),
    };
    out.push_str(&text);
    Ok(())
}

/// `spg_redo`. Every block that needs redo changes and takes the LSN.
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
        Opcode::AddLeaf => add_leaf::redo(record, block, page),
        Opcode::MoveLeafs => move_leafs::redo(record, block, page),
        Opcode::AddNode => add_node::redo(record, block, page),
        Opcode::SplitTuple => split_tuple::redo(record, block, page),
        Opcode::PickSplit => picksplit::redo(record, block, page),
        Opcode::VacuumLeaf => vacuum::redo_leaf(record, block, page),
        Opcode::VacuumRoot => vacuum::redo_root(record, block, page),
        Opcode::VacuumRedirect => vacuum::redo_redirect(record, block, page),
    }?;
    Ok(Effect::changed())
}

fn block_number(record: &Record<'_>, id: u8) -> Result<BlockNumber, RmgrError> {
    let block = record.block(id).ok_or(RmgrError::MissingBlock(id))?;
    Ok(block.tag.block)
}

/// `spg_mask`. Nobody marks items dead here, and no field of the special area is a hint.
pub(super) fn mask(page: &mut Page, _block: BlockNumber) {
    mask::lsn_and_checksum(page);
    mask::hint_bits(page);
    // Metapages of old indexes have a pd_lower that says nothing; such a page is left alone.
    mask::unused_space(page);
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
