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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::testing_changes::{abuse, changes, hex, record, text};
    use crate::types::{Lsn, RepOriginId};

    const TRANSACTION: u8 = 1;

    fn relation(rel: u32) -> RelFileLocator {
        RelFileLocator {
            spc: Oid(1663),
            db: Oid(5),
            rel: Oid(rel),
        }
    }

    fn status(xid: u32, subxids: &[u8], status: XidStatus) -> Change<'_> {
        Change::XidStatus {
            xid: TransactionId(xid),
            subxids: XidList::new(subxids).unwrap(),
            status,
        }
    }

    fn timestamp(xid: u32, subxids: &[u8], time: i64, origin: u16) -> Change<'_> {
        Change::CommitTimestamp(CommitTimestamp {
            xid: TransactionId(xid),
            subxids: XidList::new(subxids).unwrap(),
            time,
            origin: RepOriginId(origin),
        })
    }

    fn advance(remote_lsn: u64) -> Change<'static> {
        Change::AdvanceOrigin {
            origin: RepOriginId(1),
            remote_lsn: Lsn(remote_lsn),
            force: false,
        }
    }

    #[test]
    fn a_commit_of_nothing_but_a_time() {
        let data = hex("5C28289585040300");
        let r = record(TRANSACTION, 0x00, &data);
        let time = TimestampTz(849_396_709_730_396);
        assert_eq!(text(&r), format!("COMMIT {time}"));
        let expected = [
            timestamp(700, &[], time.0, 0),
            status(700, &[], XidStatus::Committed),
        ];
        assert_eq!(changes(&r).unwrap(), expected);
        abuse(TRANSACTION, 0x00, &data, 8);
    }

    #[test]
    fn a_replicated_commit_takes_time_and_position_from_its_origin() {
        let data = hex(
            "4DE1309585040300 23000000 05000000 7F060000 01000000 F3020000 \
             AB00000001000000 E615EF361E3E0200",
        );
        let mut r = record(TRANSACTION, 0x80, &data);
        r.origin = RepOriginId(1);
        let time = TimestampTz(849_396_710_302_029);
        let origin_time = TimestampTz(631_249_445_000_678);
        assert_eq!(
            text(&r),
            format!("COMMIT {time}; subxacts: 755; origin: node 1, lsn 1/AB, at {origin_time}")
        );
        let subxids = &data[24..28];
        let expected = [
            timestamp(700, subxids, origin_time.0, 1),
            status(700, subxids, XidStatus::Committed),
            advance(0x1_0000_00AB),
        ];
        assert_eq!(changes(&r).unwrap(), expected);
        abuse(TRANSACTION, 0x80, &data, data.len());
    }

    #[test]
    fn an_abort_drops_what_it_created() {
        let data = hex(
            "11BF2D9585040300 44010000 01000000 7F060000050000000A400000 \
             01000000 02000000050000000A400000",
        );
        let r = record(TRANSACTION, 0xA1, &data);
        let time = TimestampTz(849_396_710_096_657);
        assert_eq!(
            text(&r),
            format!("ABORT {time}; rels: base/5/16394; dropped stats: 2/5/16394")
        );
        let locator = relation(16394);
        let expected = [
            status(700, &[], XidStatus::Aborted),
            Change::DropRelation { locator },
        ];
        assert_eq!(changes(&r).unwrap(), expected);
        abuse(TRANSACTION, 0xA1, &data, data.len());
    }

    #[test]
    fn an_end_of_a_prepared_transaction_names_it() {
        let data = hex(
            "53E5309585040300 F1000000 05000000 7F060000 F4020000 6F6700 \
             AE00000001000000 C0970D371E3E0200",
        );
        let mut r = record(TRANSACTION, 0xB0, &data);
        r.xid = TransactionId::INVALID;
        r.origin = RepOriginId(1);
        let time = TimestampTz(849_396_710_303_059);
        let origin_time = TimestampTz(631_249_447_000_000);
        assert_eq!(
            text(&r),
            format!("COMMIT_PREPARED 756: {time}; origin: node 1, lsn 1/AE, at {origin_time}")
        );
        let xid = TransactionId(756);
        let expected = [
            timestamp(756, &[], origin_time.0, 1),
            status(756, &[], XidStatus::Committed),
            advance(0x1_0000_00AE),
            Change::FinishPrepared { xid },
        ];
        assert_eq!(changes(&r).unwrap(), expected);
        abuse(TRANSACTION, 0xB0, &data, data.len());

        r.info = 0xC0;
        assert_eq!(
            text(&r),
            format!("ABORT_PREPARED 756: {time}; origin: node 1, lsn 1/AE, at {origin_time}")
        );
        let expected = [
            status(756, &[], XidStatus::Aborted),
            advance(0x1_0000_00AE),
            Change::FinishPrepared { xid },
        ];
        assert_eq!(changes(&r).unwrap(), expected);
    }

    /// Every part of a commit, and every flag.
    const EVERYTHING: &str = "
        0000000000000000 FFFFFFFF 05000000 7F060000
        02000000 BD020000 BE020000
        02000000 7F060000050000000A400000 7F060000050000000B400000
        01000000 02000000050000000A400000
        01000000 FE000000 05000000 0A400000 00000000
        F1020000 6769642D3100
        AB00000001000000 40420F0000000000";

    #[test]
    fn everything_in_the_servers_order() {
        let data = hex(EVERYTHING);
        let mut r = record(TRANSACTION, 0xB0, &data);
        r.origin = RepOriginId(1);
        let (time, origin_time) = (TimestampTz(0), TimestampTz(1_000_000));
        assert_eq!(
            text(&r),
            format!(
                "COMMIT_PREPARED 753: {time}; rels: base/5/16394 base/5/16395; subxacts: 701 \
                 702; dropped stats: 2/5/16394; relcache init file inval dbid 5 tsid 1663; inval \
                 msgs: relcache 16394; apply_feedback; sync; origin: node 1, lsn 1/AB, at \
                 {origin_time}"
            )
        );
        let subxids = &data[24..32];
        let expected = [
            timestamp(753, subxids, 1_000_000, 1),
            status(753, subxids, XidStatus::Committed),
            Change::RelcacheInitFile {
                db: Oid(5),
                spc: Oid(1663),
            },
            advance(0x1_0000_00AB),
            Change::DropRelation {
                locator: relation(16394),
            },
            Change::DropRelation {
                locator: relation(16395),
            },
            Change::FinishPrepared {
                xid: TransactionId(753),
            },
        ];
        assert_eq!(changes(&r).unwrap(), expected);
        abuse(TRANSACTION, 0xB0, &data, data.len());
    }

    #[test]
    fn an_abort_prints_its_origin_before_its_stats() {
        let data = hex(
            "0000000000000000 20010000 01000000 02000000050000000A400000 \
             AB00000001000000 40420F0000000000",
        );
        let mut r = record(TRANSACTION, 0xA0, &data);
        r.origin = RepOriginId(1);
        let (time, origin_time) = (TimestampTz(0), TimestampTz(1_000_000));
        assert_eq!(
            text(&r),
            format!(
                "ABORT {time}; origin: node 1, lsn 1/AB, at {origin_time}; dropped stats: \
                 2/5/16394"
            )
        );
    }

    #[test]
    fn an_abort_has_no_messages_whatever_its_flags_say() {
        let data = hex("0000000000000000 18000000 F1020000");
        let r = record(TRANSACTION, 0xC0, &data);
        assert_eq!(text(&r), format!("ABORT_PREPARED 753: {}", TimestampTz(0)));
    }

    #[test]
    fn flags_count_only_with_the_bit_that_announces_them() {
        let data = hex(EVERYTHING);
        let expected = [
            timestamp(700, &[], 0, 0),
            status(700, &[], XidStatus::Committed),
        ];
        assert_eq!(
            changes(&record(TRANSACTION, 0x00, &data)).unwrap(),
            expected
        );
    }

    #[test]
    fn ends_of_no_transaction_and_negative_counts_are_errors() {
        let data = hex("5C28289585040300 00000000");
        let mut r = record(TRANSACTION, 0x80, &data);
        r.xid = TransactionId::INVALID;
        assert!(changes(&r).is_err());
        assert!(changes(&record(TRANSACTION, 0xB0, &data)).is_err());
        for part in ["02000000", "04000000", "08000000", "00010000"] {
            let data = hex(&format!(
                "5C28289585040300 {part} FFFFFFFF 0000000000000000"
            ));
            assert!(
                changes(&record(TRANSACTION, 0x80, &data)).is_err(),
                "{part}"
            );
        }
    }
}
