//! Resource managers: what each record does, as pure functions.
//!
//! A record is a list of *touches*, one page each, and *changes* to things that are not pages.
//! For every resource manager there is one file with the record layouts, `touches`, `changes`,
//! `redo`, `desc` and `mask` together. Nothing here does I/O or knows a version number: the
//! caller reads the page, decides by its LSN whether the record is already in it, calls `redo`,
//! stamps the LSN and writes.

mod change;
mod fields;
mod mask;
mod table;
mod touch;

mod brin;
mod clog;
mod commit_ts;
mod dbase;
mod generic;
mod gin;
mod gist;
mod hash;
mod heap;
mod heap2;
mod logical_message;
mod btree;
mod multixact;
mod relmap;
mod replication_origin;
mod sequence;
mod spgist;
mod standby;
mod storage;
mod tablespace;
mod transaction;
mod xlog;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod testing_changes;

use std::borrow::Cow;

use thiserror::Error;

use crate::decode::{ImageError, Record};
use crate::page::{Page, PageError, vm};
use crate::types::{RmgrId, ShortRead};

pub use change::{
    Change, CommitTimestamp, CreateMultiXact, ListError, MemberList, MultiXactMember, OidList,
    Parameters, SlruKind, TruncateMultiXact, XidList, XidStatus,
};
pub use table::{RMGRS, Rmgr, rmgr};
pub use touch::{
    Effect, PageChange, PageState, ReadMode, RedoSettings, Target, Touch, TouchKind, Touches,
    explicit_touches,
};

/// A record that cannot be described or redone.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RmgrError {
    /// A structure in the record is cut short.
    #[error(transparent)]
    Short(#[from] ShortRead),
    /// The page does not allow what the record asks for.
    #[error(transparent)]
    Page(#[from] PageError),
    /// A page image does not unpack.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The operation code is unknown. The state after it could not be trusted.
    #[error("unknown op code {0:#04x}")]
    UnknownOpcode(u8),
    /// A block reference that the operation needs is missing.
    #[error("block reference {0} is missing")]
    MissingBlock(u8),
    /// A list whose length contradicts its count.
    #[error(transparent)]
    List(#[from] ListError),
    /// Anything else that cannot be.
    #[error("{0}")]
    Corrupt(Cow<'static, str>),
}

impl RmgrError {
    /// A record that contradicts itself or the page.
    pub fn corrupt(what: impl Into<Cow<'static, str>>) -> RmgrError {
        RmgrError::Corrupt(what.into())
    }
}

/// A block reference that the operation does not have.
fn unexpected_block(id: u8) -> RmgrError {
    RmgrError::corrupt(format!("unexpected block reference {id}"))
}

/// Lists the pages a record touches, in PostgreSQL's order.
pub fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    (rmgr(record.rmid)?.touches)(record, out)
}

/// Lists what else a record changes.
pub fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    (rmgr(record.rmid)?.changes)(record, out)
}

/// True if redo of the record may have free space recorded for a heap page.
pub fn may_record_free_space(record: &Record<'_>) -> bool {
    record.rmid == RmgrId::HEAP || record.rmid == RmgrId::HEAP2
}

/// Redoes a record on one page. `state` says what reading the page found; most records do
/// nothing unless it is [`PageState::Needs`]. A page that [`Touch::kind`] calls Init is
/// passed zeroed. The caller stamps the LSN if the effect asks for it.
pub fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    match touch.target {
        Target::VmClear { heap_block, bits } => {
            let changed = vm::clear(page, heap_block, bits);
            Ok(if changed {
                Effect::keep_lsn()
            } else {
                Effect::none()
            })
        }
        Target::Block(_) => (rmgr(record.rmid)?.redo)(record, touch, state, page, settings),
    }
}

/// The record's name as pg_waldump prints it, or `UNKNOWN (xx)`.
pub fn identify(record: &Record<'_>) -> Cow<'static, str> {
    let name = rmgr(record.rmid)
        .ok()
        .and_then(|r| (r.identify)(record.info));
    match name {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(format!("UNKNOWN ({:x})", record.rmgr_info())),
    }
}

/// Appends the description pg_waldump prints after the name; nothing if there is none.
pub fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    (rmgr(record.rmid)?.desc)(record, out)
}
