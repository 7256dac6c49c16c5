//! The end of a transaction: COMMIT, ABORT and the same of prepared transactions.

use super::{Origin, StatsItem, desc_subxacts};
use crate::decode::Record;
use crate::rmgr::fields::{Array, append, c_string, counted};
use crate::rmgr::standby::Invalidation;
use crate::rmgr::{Change, CommitTimestamp, RmgrError, XidList, XidStatus, replication_origin};
use crate::types::{Cursor, Oid, RelFileLocator, TimestampTz, TransactionId};

/// `XLOG_XACT_HAS_INFO` in the record's info byte: `xinfo` is there.
const INFO_HAS_XINFO: u8 = 0x80;

/// Bits of `xinfo` (`XACT_XINFO_HAS_*`, `XACT_COMPLETION_*`).
mod xinfo {
    pub(super) const DBINFO: u32 = 1 << 0;
    pub(super) const SUBXACTS: u32 = 1 << 1;
    pub(super) const RELFILELOCATORS: u32 = 1 << 2;
    pub(super) const INVALS: u32 = 1 << 3;
    pub(super) const TWOPHASE: u32 = 1 << 4;
    pub(super) const ORIGIN: u32 = 1 << 5;
    pub(super) const GID: u32 = 1 << 7;
    pub(super) const DROPPED_STATS: u32 = 1 << 8;
    pub(super) const APPLY_FEEDBACK: u32 = 1 << 29;
    pub(super) const UPDATE_RELCACHE_FILE: u32 = 1 << 30;
    pub(super) const FORCE_SYNC_COMMIT: u32 = 1 << 31;
}

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Commit,
    Abort,
    CommitPrepared,
    AbortPrepared,
}

impl End {
    pub(super) fn name(self) -> &'static str {
        match self {
            End::Commit => "COMMIT",
            End::Abort => "ABORT",
            End::CommitPrepared => "COMMIT_PREPARED",
            End::AbortPrepared => "ABORT_PREPARED",
        }
    }

    fn status(self) -> XidStatus {
        match self {
            End::Commit | End::CommitPrepared => XidStatus::Committed,
            End::Abort | End::AbortPrepared => XidStatus::Aborted,
        }
    }

    fn prepared(self) -> bool {
        matches!(self, End::CommitPrepared | End::AbortPrepared)
    }
}

/// `xl_xact_commit` or `xl_xact_abort` with the parts that `xinfo` announces, in their order. A
/// part that is not there is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[doc(alias = "xl_xact_commit")]
#[doc(alias = "xl_xact_abort")]
#[doc(alias = "xl_xact_parsed_commit")]
#[doc(alias = "xl_xact_parsed_abort")]
pub(super) struct Completion<'w> {
    /// Offset 0: when the transaction ended.
    time: TimestampTz,
    /// Offset 8, if the info byte says so: which parts follow and what else is to be done.
    xinfo: u32,
    /// `xl_xact_dbinfo`: the session's database.
    db: Oid,
    /// `xl_xact_dbinfo`: its tablespace.
    spc: Oid,
    /// `xl_xact_subxacts`.
    subxids: XidList<'w>,
    /// `xl_xact_relfilelocators`: relations whose files go. Dropped ones at commit, created ones
    /// at abort.
    relations: Array<'w, RelFileLocator>,
    /// `xl_xact_stats_items`.
    stats: Array<'w, StatsItem>,
    /// `xl_xact_invals`, never in an abort.
    messages: Array<'w, Invalidation>,
    /// `xl_xact_twophase`: the prepared transaction.
    twophase_xid: Option<TransactionId>,
    /// `xl_xact_origin`, not aligned because the identifier of a prepared transaction may
    /// precede it.
    origin: Option<Origin>,
}

impl<'w> Completion<'w> {
    /// `ParseCommitRecord`, `ParseAbortRecord`.
    pub(super) fn decode(record: &Record<'w>, end: End) -> Result<Completion<'w>, RmgrError> {
        let structure = match end.status() {
            XidStatus::Committed => "xl_xact_commit",
            XidStatus::Aborted => "xl_xact_abort",
        };
        let c = &mut Cursor::new(structure, record.main_data);
        let mut it = Completion {
            time: TimestampTz(c.i64("xact_time")?),
            ..Completion::default()
        };
        if record.info & INFO_HAS_XINFO != 0 {
            it.xinfo = c.u32("xinfo")?;
        }
        if it.has(xinfo::DBINFO) {
            it.db = Oid(c.u32("dbId")?);
            it.spc = Oid(c.u32("tsId")?);
        }
        if it.has(xinfo::SUBXACTS) {
            let bytes = counted(c, "nsubxacts", "subxacts", XidList::ELEMENT_BYTES)?;
            it.subxids = XidList::new(bytes)?;
        }
        if it.has(xinfo::RELFILELOCATORS) {
            it.relations = Array::read(c, "nrels", "xnodes")?;
        }
        if it.has(xinfo::DROPPED_STATS) {
            it.stats = Array::read(c, "nitems", "items")?;
        }
        // An abort has no messages, and the server does not look for them whatever xinfo says.
        if it.has(xinfo::INVALS) && end.status() == XidStatus::Committed {
            it.messages = Array::read(c, "nmsgs", "msgs")?;
        }
        if it.has(xinfo::TWOPHASE) {
            it.twophase_xid = Some(TransactionId(c.u32("twophase xid")?));
            if it.has(xinfo::GID) {
                c_string(c, "twophase_gid")?;
            }
        }
        if it.has(xinfo::ORIGIN) {
            it.origin = Some(Origin::read(c)?);
        }
        Ok(it)
    }

    fn has(&self, bit: u32) -> bool {
        self.xinfo & bit != 0
    }

    /// Whose relcache init file goes, by database and tablespace.
    fn init_file(&self) -> Option<(Oid, Oid)> {
        self.has(xinfo::UPDATE_RELCACHE_FILE)
            .then_some((self.db, self.spc))
    }

    /// The transaction that ends. Zero would be taken for one that has no status.
    fn xid(&self, record: &Record<'_>, end: End) -> Result<TransactionId, RmgrError> {
        let xid = match end.prepared() {
            true => self.twophase_xid.unwrap_or_default(),
            false => record.xid,
        };
        if !xid.is_valid() {
            let name = end.name();
            return Err(RmgrError::corrupt(format!("{name} without a transaction")));
        }
        Ok(xid)
    }

    /// `xact_redo_commit`, `xact_redo_abort`. Dropped relations come last, so that the status is
    /// known before their files are gone.
    pub(super) fn changes(
        &self,
        record: &Record<'w>,
        end: End,
        out: &mut Vec<Change<'w>>,
    ) -> Result<(), RmgrError> {
        let xid = self.xid(record, end)?;
        let status = end.status();
        if status == XidStatus::Committed {
            out.push(Change::CommitTimestamp(CommitTimestamp {
                xid,
                subxids: self.subxids,
                time: self.origin.map_or(self.time, |origin| origin.time).0,
                origin: record.origin,
            }));
        }
        out.push(Change::XidStatus {
            xid,
            subxids: self.subxids,
            status,
        });
        self.messages.changes(self.init_file(), out);
        if let Some(origin) = self.origin {
            replication_origin::advance(record.origin, origin.lsn, false, out);
        }
        for locator in self.relations.iter() {
            out.push(Change::DropRelation { locator });
        }
        if end.prepared() {
            out.push(Change::FinishPrepared { xid });
        }
        Ok(())
    }

    /// `xact_desc_commit`, `xact_desc_abort`: the same parts in another order.
    pub(super) fn desc(&self, record: &Record<'_>, end: End, out: &mut String) {
        if let Some(xid) = self.twophase_xid.filter(|xid| xid.is_valid()) {
            append(out, format_args!("{xid}: "));
        }
        append(out, format_args!("{}", self.time));
        self.relations.desc("rels", record, out);
        desc_subxacts(self.subxids, out);
        match end.status() {
            XidStatus::Committed => {
                self.stats.desc("", out);
                self.messages.desc(self.init_file(), out);
                if self.has(xinfo::APPLY_FEEDBACK) {
                    out.push_str("; apply_feedback");
                }
                if self.has(xinfo::FORCE_SYNC_COMMIT) {
                    out.push_str("; sync");
                }
                self.desc_origin(record, out);
            }
            XidStatus::Aborted => {
                self.desc_origin(record, out);
                self.stats.desc("", out);
            }
        }
    }

    fn desc_origin(&self, record: &Record<'_>, out: &mut String) {
        if let Some(origin) = self.origin {
            origin.desc(record, out);
        }
    }
}
