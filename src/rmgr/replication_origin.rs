//! ReplicationOrigin: progress of replication from other nodes
//! (`src/backend/replication/logical/origin.c`,
//! `src/backend/access/rmgrdesc/replorigindesc.c`). Commits carry progress too.
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 SET | [`Set`] | none |
//! | 0x10 DROP | `xl_replorigin_drop`: the origin | none |

use super::fields::append;
use super::{Change, RmgrError};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::types::{Cursor, Lsn, RepOriginId};

/// `InvalidRepOriginId`.
const NO_ORIGIN: RepOriginId = RepOriginId(0);
/// `DoNotReplicateId`: marks changes that must not be sent on, and has no progress.
const DO_NOT_REPLICATE: RepOriginId = RepOriginId(u16::MAX);

#[derive(Debug, Clone, Copy)]
enum Opcode {
    Set,
    Drop,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        match info & INFO_RMGR_MASK {
            0x00 => Some(Opcode::Set),
            0x10 => Some(Opcode::Drop),
            _ => None,
        }
    }
}

/// `xl_replorigin_set`, 16 bytes, the last five of them padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_replorigin_set")]
struct Set {
    /// Offset 0: position at the remote node.
    remote_lsn: Lsn,
    /// Offset 8.
    origin: RepOriginId,
    /// Offset 10: the position may go back.
    force: bool,
}

impl Set {
    fn decode(data: &[u8]) -> Result<Set, RmgrError> {
        let mut c = Cursor::new("xl_replorigin_set", data);
        Ok(Set {
            remote_lsn: Lsn(c.u64("remote_lsn")?),
            origin: RepOriginId(c.u16("node_id")?),
            force: c.bool("force")?,
        })
    }
}

fn decode_drop(data: &[u8]) -> Result<RepOriginId, RmgrError> {
    let mut c = Cursor::new("xl_replorigin_drop", data);
    Ok(RepOriginId(c.u16("node_id")?))
}

/// Progress as `replorigin_advance` takes it: the two origins that are none have no entry.
pub(super) fn advance(
    origin: RepOriginId,
    remote_lsn: Lsn,
    force: bool,
    out: &mut Vec<Change<'_>>,
) {
    if origin != NO_ORIGIN && origin != DO_NOT_REPLICATE {
        out.push(Change::AdvanceOrigin {
            origin,
            remote_lsn,
            force,
        });
    }
}

/// `replorigin_identify`, which compares all eight bits: a record with a flag set in the low
/// ones has no name.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    match info {
        0x00 => Some("SET"),
        0x10 => Some("DROP"),
        _ => None,
    }
}

/// `replorigin_redo`.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    match opcode {
        Opcode::Set => {
            let set = Set::decode(record.main_data)?;
            advance(set.origin, set.remote_lsn, set.force, out);
        }
        Opcode::Drop => out.push(Change::DropOrigin {
            origin: decode_drop(record.main_data)?,
        }),
    }
    Ok(())
}

/// `replorigin_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Some(Opcode::Set) => {
            let Set {
                remote_lsn,
                origin,
                force,
            } = Set::decode(record.main_data)?;
            let force = u8::from(force);
            append(
                out,
                format_args!("set {origin}; lsn {remote_lsn}; force: {force}"),
            );
        }
        Some(Opcode::Drop) => {
            let origin = decode_drop(record.main_data)?;
            append(out, format_args!("drop {origin}"));
        }
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing_changes::{abuse, changes, hex, record, text};
    use super::*;

    const REPLICATION_ORIGIN: u8 = 19;

    #[test]
    fn set() {
        let data = hex("00000000 02000000 0100 01 0000000000");
        let r = record(REPLICATION_ORIGIN, 0x00, &data);
        assert_eq!(text(&r), "SET set 1; lsn 2/0; force: 1");
        let expected = Change::AdvanceOrigin {
            origin: RepOriginId(1),
            remote_lsn: Lsn(0x2_0000_0000),
            force: true,
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(REPLICATION_ORIGIN, 0x00, &data, 11);
    }

    #[test]
    fn origins_without_progress_change_nothing() {
        for origin in ["0000", "FFFF"] {
            let data = hex(&format!("00000000 02000000 {origin} 00 0000000000"));
            assert_eq!(
                changes(&record(REPLICATION_ORIGIN, 0x00, &data)),
                Ok(vec![])
            );
        }
    }

    #[test]
    fn drop() {
        let data = hex("0100");
        let r = record(REPLICATION_ORIGIN, 0x10, &data);
        assert_eq!(text(&r), "DROP drop 1");
        let expected = Change::DropOrigin {
            origin: RepOriginId(1),
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(REPLICATION_ORIGIN, 0x10, &data, 2);
    }

    #[test]
    fn unknown_opcodes_are_errors() {
        let unknown = changes(&record(REPLICATION_ORIGIN, 0x20, &[0; 16]));
        assert_eq!(unknown, Err(RmgrError::UnknownOpcode(0x20)));
    }
}
