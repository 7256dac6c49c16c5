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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::testing_changes::{abuse, changes, hex, record, text};
    use crate::types::Lsn;

    const TRANSACTION: u8 = 1;
    const PREPARE: u8 = 0x10;

    /// As a server wrote it: two locks and the counters of one table.
    const REPLICATED: &str = "
        3445F957 DC000000 F4020000 05000000 C5E1309585040300 0A000000
        00000000 00000000 00000000 00000000 00000000 00000000 00 00 0300
        AC00000001000000 60B4F6361E3E0200 6F67000000000000
        14000000 01 56 0000 F4020000000000000000000000000501 0700000000000000
        14000000 01 7F 0000 05000000004000000000000000000001 0300000005000000
        38000000 02 00 0000 01000000
        0000000000000000000000000000000000000000000000000000000000000000
        0000000000000000000000000000000000400000
        00000000 00 00 0000";

    /// Every part once, with the padding after those of 4 and 12 bytes.
    const EVERYTHING: &str = "
        3445F957 DC000000 F1020000 05000000 0000000000000000 0A000000
        01000000 01000000 01000000 01000000 02000000 01000000 01 00 0600
        0000000000000000 0000000000000000 6769642D31000000
        BD020000 00000000
        7F060000050000000A400000 00000000
        7F060000050000000B400000 00000000
        02000000050000000A400000 00000000
        02000000050000000B400000 02000000050000000C400000
        FE000000 05000000 0A400000 00000000
        04000000 03 00 0000 01000000 00000000
        00000000 00 00 0000";

    /// The bytes, with the length in the header made true.
    fn prepare(digits: &str) -> Vec<u8> {
        let mut data = hex(digits);
        let total_len = data.len() + CRC_BYTES;
        data[4..8].copy_from_slice(&(total_len as u32).to_le_bytes());
        data
    }

    #[test]
    fn a_replicated_transaction() {
        let data = hex(REPLICATED);
        let mut r = record(TRANSACTION, PREPARE, &data);
        r.origin = RepOriginId(1);
        let time = TimestampTz(849_396_710_302_149);
        let origin_time = TimestampTz(631_249_445_500_000);
        assert_eq!(
            text(&r),
            format!("PREPARE gid og: {time}; origin: node 1, lsn 1/AC, at {origin_time}")
        );
        let expected = [
            Change::Prepare {
                xid: TransactionId(756),
                data: &data,
            },
            Change::AdvanceOrigin {
                origin: RepOriginId(1),
                remote_lsn: Lsn(0x1_0000_00AC),
                force: false,
            },
        ];
        assert_eq!(changes(&r).unwrap(), expected);

        r.origin = RepOriginId(0);
        assert_eq!(text(&r), format!("PREPARE gid og: {time}"));
        assert_eq!(changes(&r).unwrap(), expected[..1]);
        abuse(TRANSACTION, PREPARE, &data, data.len());
    }

    #[test]
    fn every_part() {
        let data = prepare(EVERYTHING);
        let r = record(TRANSACTION, PREPARE, &data);
        assert_eq!(
            text(&r),
            format!(
                "PREPARE gid gid-1: {}; rels(commit): base/5/16394; rels(abort): base/5/16395; \
                 commit dropped stats: 2/5/16394; abort dropped stats: 2/5/16395 2/5/16396; \
                 subxacts: 701; relcache init file inval dbid 5 tsid 0; inval msgs: relcache \
                 16394",
                TimestampTz(0)
            )
        );
        let xid = TransactionId(753);
        let expected = [Change::Prepare { xid, data: &data }];
        assert_eq!(changes(&r).unwrap(), expected);
        abuse(TRANSACTION, PREPARE, &data, data.len());
    }

    #[test]
    fn data_cut_anywhere_are_not_written_even_if_the_length_agrees() {
        let whole = prepare(EVERYTHING);
        for len in 8..whole.len() {
            let mut data = whole[..len].to_vec();
            data[4..8].copy_from_slice(&((len + CRC_BYTES) as u32).to_le_bytes());
            assert!(
                changes(&record(TRANSACTION, PREPARE, &data)).is_err(),
                "{len}"
            );
        }
    }

    #[test]
    fn headers_that_could_not_be_read_back_are_errors() {
        // Offset and value of one byte: magic, length, transaction, counts, identifier.
        for (at, value) in [
            (0, 0x35),
            (4, 0xDB),
            (31, 0x80),
            (35, 0x7F),
            (39, 0xFF),
            (43, 0xFF),
            (47, 0xFF),
            (51, 0xFF),
            (54, 0x00),
            (54, 0x05),
            (54, 0x07),
            (54, 0xC9),
        ] {
            let mut data = prepare(EVERYTHING);
            data[at] = value;
            let r = record(TRANSACTION, PREPARE, &data);
            assert!(changes(&r).is_err(), "{value} at {at}");
        }
        let mut data = prepare(EVERYTHING);
        data[8..12].fill(0);
        assert!(changes(&record(TRANSACTION, PREPARE, &data)).is_err());
    }

    #[test]
    fn records_that_run_out_of_the_file_are_errors() {
        let records = prepare(EVERYTHING).len() - 24;
        // Offset from the first record, and a value: length, resource manager, end.
        for (at, value) in [
            (0, 0x20),
            (3, 0xFF),
            (4, 0x05),
            (4, 0x00),
            (16, 0x01),
            (20, 0x01),
        ] {
            let mut data = prepare(EVERYTHING);
            data[records + at] = value;
            let r = record(TRANSACTION, PREPARE, &data);
            assert!(changes(&r).is_err(), "{value} at {at}");
        }
        let beyond = prepare(&format!("{EVERYTHING} 0000000000000000"));
        assert!(changes(&record(TRANSACTION, PREPARE, &beyond)).is_err());
    }
}
