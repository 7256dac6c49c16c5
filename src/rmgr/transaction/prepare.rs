//! PREPARE TRANSACTION: the record's data are the state file of the transaction, without its
//! CRC (`src/backend/access/transam/twophase.c`).

use super::{Origin, StatsItem, desc_subxacts};
use crate::decode::Record;
use crate::rmgr::fields::{Array, Element, append, count};
use crate::rmgr::standby::Invalidation;
use crate::rmgr::{Change, RmgrError, XidList, replication_origin};
use crate::types::{Cursor, Oid, RelFileLocator, RepOriginId, TimestampTz, TransactionId};

/// `TWOPHASE_MAGIC`.
const MAGIC: u32 = 0x57F9_4534;
/// `GIDSIZE`, with the NUL.
const MAX_GID_BYTES: u16 = 200;
/// The CRC at the end of the file, which `total_len` counts and the record does not have.
const CRC_BYTES: usize = 4;
/// `TWOPHASE_RM_END_ID`.
const RM_END: u8 = 0;
/// `TWOPHASE_RM_MAX_ID`.
const RM_MAX: u8 = 4;

/// `xl_xact_prepare`, 72 bytes, and the parts behind it. Each part is padded to a multiple of
/// eight bytes, as the header is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_xact_prepare")]
#[doc(alias = "TwoPhaseFileHeader")]
pub(super) struct Prepare<'w> {
    /// Offset 8, after magic and length.
    xid: TransactionId,
    /// Offset 12: the session's database.
    db: Oid,
    /// Offset 16. The owner is at 24.
    prepared_at: TimestampTz,
    /// Offset 52: `initfileinval`.
    init_file: bool,
    /// Offset 56.
    origin: Origin,
    /// `gidlen` (offset 54) bytes, here without the NUL at their end.
    gid: &'w [u8],
    /// `nsubxacts`, offset 28.
    subxids: XidList<'w>,
    /// `ncommitrels`, offset 32: files that go at commit.
    commit_relations: Array<'w, RelFileLocator>,
    /// `nabortrels`, offset 36: files that go at abort.
    abort_relations: Array<'w, RelFileLocator>,
    /// `ncommitstats`, offset 40.
    commit_stats: Array<'w, StatsItem>,
    /// `nabortstats`, offset 44.
    abort_stats: Array<'w, StatsItem>,
    /// `ninvalmsgs`, offset 48.
    messages: Array<'w, Invalidation>,
    /// What the resource managers of two-phase commit stored: `TwoPhaseRecordOnDisk` and its
    /// data, repeated.
    records: &'w [u8],
    /// All of it.
    data: &'w [u8],
}

/// Reads one part and its padding.
fn part<'w>(c: &mut Cursor<'w>, field: &'static str, len: usize) -> Result<&'w [u8], RmgrError> {
    let bytes = c.bytes(field, len)?;
    c.skip(field, len.next_multiple_of(8) - len)?;
    Ok(bytes)
}

impl<'w> Prepare<'w> {
    /// `ParsePrepareRecord`, with the checks of `ReadTwoPhaseFile`.
    pub(super) fn decode(data: &'w [u8]) -> Result<Prepare<'w>, RmgrError> {
        let c = &mut Cursor::new("xl_xact_prepare", data);
        let magic = c.u32("magic")?;
        if magic != MAGIC {
            let what = format!("invalid magic number {magic:08X} of a two-phase state file");
            return Err(RmgrError::corrupt(what));
        }
        let total_len = c.u32("total_len")?;
        let file_bytes = data.len() + CRC_BYTES;
        if usize::try_from(total_len) != Ok(file_bytes) {
            return Err(RmgrError::corrupt(format!(
                "two-phase state file of {total_len} bytes, {file_bytes} expected"
            )));
        }
        let xid = TransactionId(c.u32("xid")?);
        let db = Oid(c.u32("database")?);
        let prepared_at = TimestampTz(c.i64("prepared_at")?);
        c.skip("owner", 4)?;
        let subxids = count(c, "nsubxacts")? * XidList::ELEMENT_BYTES;
        let commit_relations = count(c, "ncommitrels")? * RelFileLocator::BYTES;
        let abort_relations = count(c, "nabortrels")? * RelFileLocator::BYTES;
        let commit_stats = count(c, "ncommitstats")? * StatsItem::BYTES;
        let abort_stats = count(c, "nabortstats")? * StatsItem::BYTES;
        let messages = count(c, "ninvalmsgs")? * Invalidation::BYTES;
        let init_file = c.bool("initfileinval")?;
        c.skip("padding", 1)?;
        let gid_bytes = c.u16("gidlen")?;
        let origin = Origin::read(c)?;
        Ok(Prepare {
            xid,
            db,
            prepared_at,
            init_file,
            origin,
            gid: read_gid(c, gid_bytes)?,
            subxids: XidList::new(part(c, "subxacts", subxids)?)?,
            commit_relations: Array::new(part(c, "commitrels", commit_relations)?),
            abort_relations: Array::new(part(c, "abortrels", abort_relations)?),
            commit_stats: Array::new(part(c, "commitstats", commit_stats)?),
            abort_stats: Array::new(part(c, "abortstats", abort_stats)?),
            messages: Array::new(part(c, "invalmsgs", messages)?),
            records: c.rest(),
            data,
        })
    }

    /// Walks the records of the resource managers as `ProcessRecords` will when the transaction
    /// ends. It trusts them, so this is the place to find out that they run out of the file.
    fn check_records(&self) -> Result<(), RmgrError> {
        let c = &mut Cursor::new("TwoPhaseRecordOnDisk", self.records);
        loop {
            let len = c.u32("len")? as usize;
            let rmid = c.u8("rmid")?;
            c.skip("info", 3)?;
            match rmid {
                RM_END if len == 0 && c.is_empty() => return Ok(()),
                RM_END => {
                    let what = "two-phase state file goes on after its last record";
                    return Err(RmgrError::corrupt(what));
                }
                1..=RM_MAX => part(c, "data", len)?,
                _ => {
                    let what = format!("two-phase resource manager {rmid} is unknown");
                    return Err(RmgrError::corrupt(what));
                }
            };
        }
    }

    /// `PrepareRedoAdd`. Data that could not be read back are not written.
    pub(super) fn changes(
        &self,
        record: &Record<'w>,
        out: &mut Vec<Change<'w>>,
    ) -> Result<(), RmgrError> {
        if !self.xid.is_valid() {
            return Err(RmgrError::corrupt("PREPARE without a transaction"));
        }
        self.check_records()?;
        out.push(Change::Prepare {
            xid: self.xid,
            data: self.data,
        });
        // Unlike a commit, PREPARE always has room for progress: the record's origin tells
        // whether it is meant.
        replication_origin::advance(record.origin, self.origin.lsn, false, out);
        Ok(())
    }

    /// `xact_desc_prepare`. The state file does not know the database's tablespace, so that 0 is
    /// printed for it.
    pub(super) fn desc(&self, record: &Record<'_>, out: &mut String) {
        let gid = String::from_utf8_lossy(self.gid);
        append(out, format_args!("gid {gid}: {}", self.prepared_at));
        self.commit_relations.desc("rels(commit)", record, out);
        self.abort_relations.desc("rels(abort)", record, out);
        self.commit_stats.desc("commit ", out);
        self.abort_stats.desc("abort ", out);
        desc_subxacts(self.subxids, out);
        let init_file = self.init_file.then_some((self.db, Oid(0)));
        self.messages.desc(init_file, out);
        if record.origin != RepOriginId(0) {
            self.origin.desc(record, out);
        }
    }
}

/// Reads the identifier, which must be a string that fits the server's buffer.
fn read_gid<'w>(c: &mut Cursor<'w>, gid_bytes: u16) -> Result<&'w [u8], RmgrError> {
    if gid_bytes > MAX_GID_BYTES {
        let what = format!("transaction identifier of {gid_bytes} bytes is too long");
        return Err(RmgrError::corrupt(what));
    }
    match part(c, "gid", gid_bytes.into())?.split_last() {
        Some((0, gid)) if !gid.contains(&0) => Ok(gid),
        _ => Err(RmgrError::corrupt(
            "transaction identifier does not end with its only NUL",
        )),
    }
}
