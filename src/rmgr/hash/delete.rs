//! DELETE and VACUUM_ONE_PAGE: items are removed by VACUUM, or by an insertion that needs room.

use std::fmt;

use super::page::{self, LH_PAGE_HAS_DEAD_TUPLES};
use super::{RmgrError, letter, meta, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::rmgr::fields;
use crate::types::{Cursor, ShortRead, TransactionId};

/// Main data of DELETE (`xl_hash_delete`, 2 bytes). The items are the data of block 1.
#[doc(alias = "xl_hash_delete")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delete {
    /// Offset 0: no item is marked dead any more.
    clear_dead_marking: bool,
    /// Offset 1: the page is the first of its bucket, and block reference 0 is left out.
    is_primary_bucket_page: bool,
}

/// Main data of VACUUM_ONE_PAGE (`xl_hash_vacuum_one_page`, 8 bytes, and the items).
#[doc(alias = "xl_hash_vacuum_one_page")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VacuumOnePage<'w> {
    /// Offset 0: standby queries that may still see its rows are in conflict.
    latest_removed_xid: TransactionId,
    /// Offset 4: items that go, a C `int`.
    ntuples: usize,
    /// Offset 8: their offset numbers, two bytes each.
    offsets: &'w [u8],
}

impl Delete {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<Delete, ShortRead> {
        let mut c = Cursor::new("xl_hash_delete", main);
        Ok(Delete {
            clear_dead_marking: c.bool("clear_dead_marking")?,
            is_primary_bucket_page: c.bool("is_primary_bucket_page")?,
        })
    }
}

impl<'w> VacuumOnePage<'w> {
    /// Reads the main data.
    pub(super) fn parse(main: &'w [u8]) -> Result<VacuumOnePage<'w>, RmgrError> {
        let mut c = Cursor::new("xl_hash_vacuum_one_page", main);
        let latest_removed_xid = TransactionId(c.u32("latestRemovedXid")?);
        let ntuples = fields::count(&mut c, "ntuples")?;
        Ok(VacuumOnePage {
            latest_removed_xid,
            ntuples,
            offsets: fields::elements(&mut c, "offsets", ntuples, 2)?,
        })
    }
}

impl fmt::Display for Delete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "clear_dead_marking {}, is_primary {}",
            letter(self.clear_dead_marking),
            letter(self.is_primary_bucket_page)
        )
    }
}

impl fmt::Display for VacuumOnePage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ntuples {}, latestRemovedXid {}",
            self.ntuples, self.latest_removed_xid
        )
    }
}

fn clear_dead_marking(page: &mut Page) -> Result<(), RmgrError> {
    page::update_opaque(page, |opaque| opaque.flag &= !LH_PAGE_HAS_DEAD_TUPLES)
}

/// `hash_xlog_delete`. Items that a split has copied elsewhere go as well; then others may still
/// be marked dead.
pub(super) fn redo_delete(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let xlrec = Delete::parse(record.main_data)?;
    if block.id != 1 {
        return Err(unexpected_block(block.id));
    }
    page::delete_items(page, block.data)?;
    if xlrec.clear_dead_marking {
        clear_dead_marking(page)?;
    }
    Ok(())
}

/// `hash_xlog_vacuum_one_page`.
pub(super) fn redo_vacuum_one_page(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let xlrec = VacuumOnePage::parse(record.main_data)?;
    match block.id {
        0 => {
            page::delete_items(page, xlrec.offsets)?;
            clear_dead_marking(page)
        }
        1 => {
            meta::add_to_ntuples(page, -(xlrec.ntuples as f64));
            Ok(())
        }
        id => Err(unexpected_block(id)),
    }
}
