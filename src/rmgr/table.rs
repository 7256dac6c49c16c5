//! The resource managers in PostgreSQL's order (`src/include/access/rmgrlist.h`).

use super::{
    Change, Effect, PageState, RedoSettings, RmgrError, Touch, Touches, brin, btree, clog,
    commit_ts, dbase, explicit_touches, generic, gin, gist, hash, heap, heap2, logical_message,
    multixact, relmap, replication_origin, sequence, spgist, standby, storage, tablespace,
    transaction, xlog,
};
use crate::decode::Record;
use crate::page::Page;
use crate::types::{BlockNumber, RmgrId};

/// Lists the pages a record touches.
type TouchesFn = fn(&Record<'_>, &mut Touches) -> Result<(), RmgrError>;
/// Lists what else a record changes.
type ChangesFn = for<'w> fn(&Record<'w>, &mut Vec<Change<'w>>) -> Result<(), RmgrError>;
/// Redoes a record on one page.
type RedoFn =
    fn(&Record<'_>, &Touch, PageState, &mut Page, &RedoSettings) -> Result<Effect, RmgrError>;
/// Appends a description.
type DescFn = fn(&Record<'_>, &mut String) -> Result<(), RmgrError>;
/// Blanks what may differ between a primary and a replica.
type MaskFn = fn(&mut Page, BlockNumber);

/// One resource manager (`RmgrData`).
#[derive(Debug)]
#[doc(alias = "RmgrData")]
pub struct Rmgr {
    /// As pg_waldump prints it.
    pub name: &'static str,
    /// Name of a record by its `xl_info`.
    pub identify: fn(u8) -> Option<&'static str>,
    /// Pages touched.
    pub touches: TouchesFn,
    /// Other changes.
    pub changes: ChangesFn,
    /// Redo on one page.
    pub redo: RedoFn,
    /// Description.
    pub desc: DescFn,
    /// Mask for wal_consistency_checking, where PostgreSQL has one.
    pub mask: Option<MaskFn>,
}

/// Resource manager `id`; extensions' own are not known here.
pub fn rmgr(id: RmgrId) -> Result<&'static Rmgr, RmgrError> {
    RMGRS
        .get(usize::from(id.0))
        .ok_or_else(|| RmgrError::corrupt(format!("resource manager {id} is an extension's")))
}

fn no_changes(_: &Record<'_>, _: &mut Vec<Change<'_>>) -> Result<(), RmgrError> {
    Ok(())
}

fn no_pages(
    _: &Record<'_>,
    _: &Touch,
    _: PageState,
    _: &mut Page,
    _: &RedoSettings,
) -> Result<Effect, RmgrError> {
    Err(RmgrError::corrupt(
        "block reference in a record of a resource manager without pages",
    ))
}

/// A resource manager with pages of its own.
macro_rules! pages {
    ($name:literal, $module:ident, $touches:expr, $changes:expr) => {
        Rmgr {
            name: $name,
            identify: $module::identify,
            touches: $touches,
            changes: $changes,
            redo: $module::redo,
            desc: $module::desc,
            mask: Some($module::mask),
        }
    };
}

/// A resource manager whose records change no pages.
macro_rules! no_pages {
    ($name:literal, $module:ident) => {
        Rmgr {
            name: $name,
            identify: $module::identify,
            touches: explicit_touches,
            changes: $module::changes,
            redo: no_pages,
            desc: $module::desc,
            mask: None,
        }
    };
}

/// All resource managers, by id.
pub static RMGRS: [Rmgr; 22] = [
    Rmgr {
        touches: xlog::touches,
        redo: xlog::redo,
        ..no_pages!("XLOG", xlog)
    },
    no_pages!("Transaction", transaction),
    no_pages!("Storage", storage),
    no_pages!("CLOG", clog),
    no_pages!("Database", dbase),
    no_pages!("Tablespace", tablespace),
    no_pages!("MultiXact", multixact),
    no_pages!("RelMap", relmap),
    no_pages!("Standby", standby),
    pages!("Heap2", heap2, heap2::touches, heap2::changes),
    pages!("Heap", heap, heap::touches, no_changes),
    pages!("Btree", btree, explicit_touches, no_changes),
    pages!("Hash", hash, explicit_touches, no_changes),
    pages!("Gin", gin, explicit_touches, no_changes),
    pages!("Gist", gist, explicit_touches, no_changes),
    pages!("Sequence", sequence, explicit_touches, no_changes),
    pages!("SPGist", spgist, explicit_touches, no_changes),
    pages!("BRIN", brin, explicit_touches, no_changes),
    no_pages!("CommitTs", commit_ts),
    no_pages!("ReplicationOrigin", replication_origin),
    pages!("Generic", generic, explicit_touches, no_changes),
    no_pages!("LogicalMessage", logical_message),
];
