//! Standby: what a hot standby must know of running transactions, locks and caches
//! (`src/backend/storage/ipc/standby.c`, `src/backend/access/rmgrdesc/standbydesc.c`,
//! `src/include/storage/sinval.h`). No file depends on it but the relcache init files.
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 LOCK | [`Lock`]s | none |
//! | 0x10 RUNNING_XACTS | [`RunningXacts`] | none |
//! | 0x20 INVALIDATIONS | [`Invalidations`] | none |

use super::fields::{Array, Element, append, count, elements, word};
use super::{Change, RmgrError, XidList};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::types::{Cursor, Oid, TransactionId};

#[derive(Debug, Clone, Copy)]
enum Opcode {
    Lock,
    RunningXacts,
    Invalidations,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        match info & INFO_RMGR_MASK {
            0x00 => Some(Opcode::Lock),
            0x10 => Some(Opcode::RunningXacts),
            0x20 => Some(Opcode::Invalidations),
            _ => None,
        }
    }
}

/// An access exclusive lock on a table (`xl_standby_lock`), 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_standby_lock")]
struct Lock {
    /// Offset 0: who holds it.
    xid: TransactionId,
    /// Offset 4: the table's database.
    db: Oid,
    /// Offset 8: the table, by its OID.
    rel: Oid,
}

impl Element for Lock {
    const BYTES: usize = 12;

    fn from_bytes(bytes: &[u8]) -> Lock {
        Lock {
            xid: TransactionId(word(bytes, 0)),
            db: Oid(word(bytes, 4)),
            rel: Oid(word(bytes, 8)),
        }
    }
}

fn decode_locks(data: &[u8]) -> Result<Array<'_, Lock>, RmgrError> {
    let mut c = Cursor::new("xl_standby_locks", data);
    Array::read(&mut c, "nlocks", "locks")
}

/// `xl_running_xacts`, 24 bytes, the transactions and the subtransactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_running_xacts")]
struct RunningXacts<'w> {
    /// Offset 8: subtransactions are missing.
    subxid_overflow: bool,
    /// Offset 12.
    next_xid: TransactionId,
    /// Offset 16.
    oldest_running_xid: TransactionId,
    /// Offset 20.
    latest_completed_xid: TransactionId,
    /// Offset 24: `xcnt` (offset 0) transactions. The `subxcnt` (offset 4) subtransactions after
    /// them are never printed.
    xids: XidList<'w>,
}

impl<'w> RunningXacts<'w> {
    fn decode(data: &'w [u8]) -> Result<RunningXacts<'w>, RmgrError> {
        let mut c = Cursor::new("xl_running_xacts", data);
        let xcnt = count(&mut c, "xcnt")?;
        let subxcnt = count(&mut c, "subxcnt")?;
        let subxid_overflow = c.bool("subxid_overflow")?;
        c.skip("padding", 3)?;
        let next_xid = TransactionId(c.u32("nextXid")?);
        let oldest_running_xid = TransactionId(c.u32("oldestRunningXid")?);
        let latest_completed_xid = TransactionId(c.u32("latestCompletedXid")?);
        let xids = elements(&mut c, "xids", xcnt, XidList::ELEMENT_BYTES)?;
        elements(&mut c, "subxids", subxcnt, XidList::ELEMENT_BYTES)?;
        Ok(RunningXacts {
            subxid_overflow,
            next_xid,
            oldest_running_xid,
            latest_completed_xid,
            xids: XidList::new(xids)?,
        })
    }

    fn desc(&self, out: &mut String) {
        append(
            out,
            format_args!(
                "nextXid {} latestCompletedXid {} oldestRunningXid {}",
                self.next_xid, self.latest_completed_xid, self.oldest_running_xid
            ),
        );
        if !self.xids.is_empty() {
            append(out, format_args!("; {} xacts:", self.xids.len()));
            for xid in self.xids.iter() {
                append(out, format_args!(" {xid}"));
            }
        }
        if self.subxid_overflow {
            out.push_str("; subxid ovf");
        }
    }
}

/// `xl_invalidations`, 16 bytes and the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_invalidations")]
struct Invalidations<'w> {
    /// Offset 0.
    db: Oid,
    /// Offset 4.
    spc: Oid,
    /// Offset 8: `relcacheInitFileInval`.
    init_file: bool,
    /// Offset 16, their number at offset 12.
    messages: Array<'w, Invalidation>,
}

impl<'w> Invalidations<'w> {
    fn decode(data: &'w [u8]) -> Result<Invalidations<'w>, RmgrError> {
        let mut c = Cursor::new("xl_invalidations", data);
        let db = Oid(c.u32("dbId")?);
        let spc = Oid(c.u32("tsId")?);
        let init_file = c.bool("relcacheInitFileInval")?;
        c.skip("padding", 3)?;
        Ok(Invalidations {
            db,
            spc,
            init_file,
            messages: Array::read(&mut c, "nmsgs", "msgs")?,
        })
    }
}

/// What one message tells other backends to forget (`SharedInvalidationMessage`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "SharedInvalidationMessage")]
pub(super) enum Invalidation {
    /// Entries of the catalog cache with this number.
    CatCache(i8),
    /// All entries made from a catalog.
    Catalog(Oid),
    /// A relation's descriptor; 0 for all.
    RelCache(Oid),
    /// The open files of a relation. Not expected in WAL.
    Smgr,
    /// The relation map of a database. Not expected in WAL.
    RelMap(Oid),
    /// Snapshots used to scan a catalog.
    Snapshot(Oid),
    /// Something else.
    Unrecognized(i8),
}

impl Element for Invalidation {
    const BYTES: usize = 16;

    /// The type is at offset 0, the database at 4, the relation or catalog at 8.
    fn from_bytes(bytes: &[u8]) -> Invalidation {
        let rel = Oid(word(bytes, 8));
        match bytes[0] as i8 {
            id @ 0.. => Invalidation::CatCache(id),
            -1 => Invalidation::Catalog(rel),
            -2 => Invalidation::RelCache(rel),
            -3 => Invalidation::Smgr,
            -4 => Invalidation::RelMap(Oid(word(bytes, 4))),
            -5 => Invalidation::Snapshot(rel),
            id => Invalidation::Unrecognized(id),
        }
    }
}

impl Array<'_, Invalidation> {
    /// `standby_desc_invalidations`. `init_file` names database and tablespace if their relcache
    /// init file goes.
    pub(super) fn desc(&self, init_file: Option<(Oid, Oid)>, out: &mut String) {
        if self.is_empty() {
            return;
        }
        if let Some((db, spc)) = init_file {
            append(
                out,
                format_args!("; relcache init file inval dbid {db} tsid {spc}"),
            );
        }
        out.push_str("; inval msgs:");
        for message in self.iter() {
            match message {
                Invalidation::CatCache(id) => append(out, format_args!(" catcache {id}")),
                Invalidation::Catalog(cat) => append(out, format_args!(" catalog {cat}")),
                Invalidation::RelCache(rel) => append(out, format_args!(" relcache {rel}")),
                Invalidation::Smgr => out.push_str(" smgr"),
                Invalidation::RelMap(db) => append(out, format_args!(" relmap db {db}")),
                Invalidation::Snapshot(rel) => append(out, format_args!(" snapshot {rel}")),
                Invalidation::Unrecognized(id) => {
                    append(out, format_args!(" unrecognized id {id}"));
                }
            }
        }
    }

    /// `ProcessCommittedInvalidationMessages`: without messages the init files stay.
    pub(super) fn changes(&self, init_file: Option<(Oid, Oid)>, out: &mut Vec<Change<'_>>) {
        if let Some((db, spc)) = init_file.filter(|_| !self.is_empty()) {
            out.push(Change::RelcacheInitFile { db, spc });
        }
    }
}

impl Invalidations<'_> {
    fn init_file(&self) -> Option<(Oid, Oid)> {
        self.init_file.then_some((self.db, self.spc))
    }
}

pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(|opcode| match opcode {
        Opcode::Lock => "LOCK",
        Opcode::RunningXacts => "RUNNING_XACTS",
        Opcode::Invalidations => "INVALIDATIONS",
    })
}

/// `standby_redo`, as far as it reaches files.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Some(Opcode::Lock | Opcode::RunningXacts) => Ok(()),
        Some(Opcode::Invalidations) => {
            let invalidations = Invalidations::decode(record.main_data)?;
            let init_file = invalidations.init_file();
            invalidations.messages.changes(init_file, out);
            Ok(())
        }
        None => Err(RmgrError::UnknownOpcode(record.info)),
    }
}

/// `standby_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Some(Opcode::Lock) => {
            for Lock { xid, db, rel } in decode_locks(record.main_data)?.iter() {
                append(out, format_args!("xid {xid} db {db} rel {rel} "));
            }
        }
        Some(Opcode::RunningXacts) => RunningXacts::decode(record.main_data)?.desc(out),
        Some(Opcode::Invalidations) => {
            let invalidations = Invalidations::decode(record.main_data)?;
            let init_file = invalidations.init_file();
            invalidations.messages.desc(init_file, out);
        }
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing_changes::{abuse, changes, hex, record, text};
    use super::*;

    const STANDBY: u8 = 8;

    #[test]
    fn locks() {
        let data = hex("02000000 04000000 01000000 E7040000 05000000 01000000 DF040000");
        let r = record(STANDBY, 0x00, &data);
        assert_eq!(text(&r), "LOCK xid 4 db 1 rel 1255 xid 5 db 1 rel 1247 ");
        assert_eq!(changes(&r), Ok(vec![]));
        abuse(STANDBY, 0x00, &data, 28);
    }

    #[test]
    fn running_xacts() {
        let data =
            hex("01000000 02000000 00000000 D3020000 D1020000 D0020000 D1020000 D2020000 D4020000");
        let r = record(STANDBY, 0x10, &data);
        assert_eq!(
            text(&r),
            "RUNNING_XACTS nextXid 723 latestCompletedXid 720 oldestRunningXid 721; 1 xacts: 721"
        );
        assert_eq!(changes(&r), Ok(vec![]));
        abuse(STANDBY, 0x10, &data, 36);

        let data = hex("00000000 00000000 01000000 D3020000 D1020000 D0020000");
        assert_eq!(
            text(&record(STANDBY, 0x10, &data)),
            "RUNNING_XACTS nextXid 723 latestCompletedXid 720 oldestRunningXid 721; subxid ovf"
        );
    }

    /// One message of every kind, relation or catalog 2604, database 5.
    fn messages() -> String {
        let mut all = String::from("07000000");
        for id in ["37", "FF", "FE", "FD", "FC", "FB", "FA"] {
            all += &format!("{id}000000 05000000 2C0A0000 00000000");
        }
        all
    }

    #[test]
    fn invalidations_of_every_kind() {
        let data = hex(&format!("01000000 7F060000 01000000 {}", messages()));
        let r = record(STANDBY, 0x20, &data);
        assert_eq!(
            text(&r),
            "INVALIDATIONS ; relcache init file inval dbid 1 tsid 1663; inval msgs: catcache 55 \
             catalog 2604 relcache 2604 smgr relmap db 5 snapshot 2604 unrecognized id -6"
        );
        let expected = Change::RelcacheInitFile {
            db: Oid(1),
            spc: Oid(1663),
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(STANDBY, 0x20, &data, data.len());
    }

    #[test]
    fn init_files_stay_without_flag_or_messages() {
        let without_flag = hex(&format!("01000000 7F060000 00000000 {}", messages()));
        assert_eq!(changes(&record(STANDBY, 0x20, &without_flag)), Ok(vec![]));
        let without_messages = hex("01000000 7F060000 01000000 00000000");
        let r = record(STANDBY, 0x20, &without_messages);
        assert_eq!(changes(&r), Ok(vec![]));
        assert_eq!(text(&r), "INVALIDATIONS ");
    }

    #[test]
    fn unknown_opcodes_are_errors() {
        let unknown = changes(&record(STANDBY, 0x30, &[0; 32]));
        assert_eq!(unknown, Err(RmgrError::UnknownOpcode(0x30)));
    }
}
