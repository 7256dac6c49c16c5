//! Transaction: transactions end or are prepared (`src/backend/access/transam/xact.c`,
//! `src/include/access/xact.h`, `src/backend/access/rmgrdesc/xactdesc.c`).
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 COMMIT | [`Completion`] | none |
//! | 0x10 PREPARE | [`Prepare`] | none |
//! | 0x20 ABORT | [`Completion`] | none |
//! | 0x30 COMMIT_PREPARED | [`Completion`] | none |
//! | 0x40 ABORT_PREPARED | [`Completion`] | none |
//! | 0x50 ASSIGNMENT | [`Assignment`] | none |
//! | 0x60 INVALIDATION | messages | none |
//!
//! The highest bit of the info byte does not belong to the opcode: it says that a commit or
//! abort has flags.

mod completion;
mod prepare;

use self::completion::{Completion, End};
use self::prepare::Prepare;
use super::fields::{Array, Element, append, counted, word};
use super::standby::Invalidation;
use super::{Change, RmgrError, XidList};
use crate::decode::Record;
use crate::format::RelationPath;
use crate::types::{Cursor, ForkNumber, Lsn, Oid, RelFileLocator, TimestampTz, TransactionId};

/// `XLOG_XACT_OPMASK`.
const OPCODE_MASK: u8 = 0x70;

#[derive(Debug, Clone, Copy)]
enum Opcode {
    Complete(End),
    Prepare,
    Assignment,
    Invalidation,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        match info & OPCODE_MASK {
            0x00 => Some(Opcode::Complete(End::Commit)),
            0x10 => Some(Opcode::Prepare),
            0x20 => Some(Opcode::Complete(End::Abort)),
            0x30 => Some(Opcode::Complete(End::CommitPrepared)),
            0x40 => Some(Opcode::Complete(End::AbortPrepared)),
            0x50 => Some(Opcode::Assignment),
            0x60 => Some(Opcode::Invalidation),
            _ => None,
        }
    }
}

impl Array<'_, RelFileLocator> {
    /// `xact_desc_relations`.
    fn desc(&self, label: &str, record: &Record<'_>, out: &mut String) {
        if self.is_empty() {
            return;
        }
        append(out, format_args!("; {label}:"));
        for locator in self.iter() {
            let path = RelationPath {
                format: record.format,
                locator,
                fork: ForkNumber::Main,
            };
            append(out, format_args!(" {path}"));
        }
    }
}

/// Statistics that go with a dropped object, 12 bytes. They live in memory during recovery, so
/// that no change comes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_xact_stats_item")]
struct StatsItem {
    /// Offset 0: `PgStat_Kind`.
    kind: i32,
    /// Offset 4: its database.
    db: Oid,
    /// Offset 8.
    object: Oid,
}

impl Element for StatsItem {
    const BYTES: usize = 12;

    fn from_bytes(bytes: &[u8]) -> StatsItem {
        StatsItem {
            kind: word(bytes, 0) as i32,
            db: Oid(word(bytes, 4)),
            object: Oid(word(bytes, 8)),
        }
    }
}

impl Array<'_, StatsItem> {
    /// `xact_desc_stats`.
    fn desc(&self, label: &str, out: &mut String) {
        if self.is_empty() {
            return;
        }
        append(out, format_args!("; {label}dropped stats:"));
        for StatsItem { kind, db, object } in self.iter() {
            append(out, format_args!(" {kind}/{db}/{object}"));
        }
    }
}

/// `xact_desc_subxacts`.
fn desc_subxacts(subxids: XidList<'_>, out: &mut String) {
    if !subxids.is_empty() {
        out.push_str("; subxacts:");
        for xid in subxids.iter() {
            append(out, format_args!(" {xid}"));
        }
    }
}

/// Where a replicated transaction comes from (`xl_xact_origin`), 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_xact_origin")]
struct Origin {
    /// Offset 0: position at the origin.
    lsn: Lsn,
    /// Offset 8: time at the origin.
    time: TimestampTz,
}

impl Origin {
    fn read(c: &mut Cursor<'_>) -> Result<Origin, RmgrError> {
        Ok(Origin {
            lsn: Lsn(c.u64("origin_lsn")?),
            time: TimestampTz(c.i64("origin_timestamp")?),
        })
    }

    fn desc(&self, record: &Record<'_>, out: &mut String) {
        let node = record.origin;
        let Origin { lsn, time } = self;
        append(
            out,
            format_args!("; origin: node {node}, lsn {lsn}, at {time}"),
        );
    }
}

/// `xl_xact_assignment`, 8 bytes and the list: subtransactions get their parent before the end
/// of the transaction, for a hot standby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_xact_assignment")]
struct Assignment<'w> {
    /// Offset 0: the top-level transaction.
    xtop: TransactionId,
    /// Offset 8, their number at offset 4.
    subxids: XidList<'w>,
}

impl<'w> Assignment<'w> {
    fn decode(data: &'w [u8]) -> Result<Assignment<'w>, RmgrError> {
        let mut c = Cursor::new("xl_xact_assignment", data);
        let xtop = TransactionId(c.u32("xtop")?);
        let subxids = counted(&mut c, "nsubxacts", "xsub", XidList::ELEMENT_BYTES)?;
        Ok(Assignment {
            xtop,
            subxids: XidList::new(subxids)?,
        })
    }

    /// `xact_desc_assignment`.
    fn desc(&self, out: &mut String) {
        append(out, format_args!("xtop {}: subxacts:", self.xtop));
        for xid in self.subxids.iter() {
            append(out, format_args!(" {xid}"));
        }
    }
}

fn decode_invalidation(data: &[u8]) -> Result<Array<'_, Invalidation>, RmgrError> {
    let mut c = Cursor::new("xl_xact_invals", data);
    Array::read(&mut c, "nmsgs", "msgs")
}

/// `xact_identify`.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(|opcode| match opcode {
        Opcode::Complete(end) => end.name(),
        Opcode::Prepare => "PREPARE",
        Opcode::Assignment => "ASSIGNMENT",
        Opcode::Invalidation => "INVALIDATION",
    })
}

/// `xact_redo`.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    match opcode {
        Opcode::Complete(end) => Completion::decode(record, end)?.changes(record, end, out),
        Opcode::Prepare => Prepare::decode(record.main_data)?.changes(record, out),
        // The first is for hot standbys, and what the second announces comes again with the
        // commit.
        Opcode::Assignment | Opcode::Invalidation => Ok(()),
    }
}

/// `xact_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Some(Opcode::Complete(end)) => Completion::decode(record, end)?.desc(record, end, out),
        Some(Opcode::Prepare) => Prepare::decode(record.main_data)?.desc(record, out),
        Some(Opcode::Assignment) => Assignment::decode(record.main_data)?.desc(out),
        Some(Opcode::Invalidation) => decode_invalidation(record.main_data)?.desc(None, out),
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing_changes::{abuse, changes, hex, record, text};
    use super::*;

    const TRANSACTION: u8 = 1;

    #[test]
    fn assignment() {
        let data = hex("FC020000 02000000 FE020000 FF020000");
        let r = record(TRANSACTION, 0x50, &data);
        assert_eq!(text(&r), "ASSIGNMENT xtop 764: subxacts: 766 767");
        assert_eq!(changes(&r), Ok(vec![]));
        abuse(TRANSACTION, 0x50, &data, 16);
    }

    #[test]
    fn invalidation() {
        let data = hex("01000000 15000000 05000000 AF3CD5A4 00000000");
        let r = record(TRANSACTION, 0x60, &data);
        assert_eq!(text(&r), "INVALIDATION ; inval msgs: catcache 21");
        assert_eq!(changes(&r), Ok(vec![]));
        abuse(TRANSACTION, 0x60, &data, 20);
    }

    #[test]
    fn the_unused_opcode_is_an_error_with_and_without_flags() {
        for info in [0x70, 0xF0] {
            let r = record(TRANSACTION, info, &[0; 64]);
            assert_eq!(changes(&r), Err(RmgrError::UnknownOpcode(info)));
            let name = format!("UNKNOWN ({info:x}) ");
            assert_eq!(text(&r), name);
        }
    }
}
