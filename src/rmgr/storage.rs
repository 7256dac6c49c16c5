//! Storage: relation forks are created and truncated (`src/backend/catalog/storage.c`,
//! `src/backend/access/rmgrdesc/smgrdesc.c`). Dropping them is part of commit and abort.
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x10 CREATE | [`Create`] | none |
//! | 0x20 TRUNCATE | [`Truncate`] | none |

use super::fields::{append, locator};
use super::{Change, RmgrError};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::format::RelationPath;
use crate::types::{BlockNumber, Cursor, ForkNumber, RelFileLocator};

const TRUNCATE_HEAP: i32 = 0x1;
const TRUNCATE_VM: i32 = 0x2;
const TRUNCATE_FSM: i32 = 0x4;

#[derive(Debug, Clone, Copy)]
enum Opcode {
    Create,
    Truncate,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        match info & INFO_RMGR_MASK {
            0x10 => Some(Opcode::Create),
            0x20 => Some(Opcode::Truncate),
            _ => None,
        }
    }
}

/// `xl_smgr_create`, 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_smgr_create")]
struct Create {
    /// Offset 0.
    locator: RelFileLocator,
    /// Offset 12: a C enum, four bytes.
    fork: ForkNumber,
}

impl Create {
    fn decode(data: &[u8]) -> Result<Create, RmgrError> {
        let mut c = Cursor::new("xl_smgr_create", data);
        let locator = locator(&mut c)?;
        let number = c.u32("forkNum")?;
        let fork = ForkNumber::from_number(number)
            .ok_or_else(|| RmgrError::corrupt(format!("invalid fork number {number}")))?;
        Ok(Create { locator, fork })
    }
}

/// `xl_smgr_truncate`, 20 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_smgr_truncate")]
struct Truncate {
    /// Offset 0: new length of the main fork, in blocks.
    blocks: BlockNumber,
    /// Offset 4.
    locator: RelFileLocator,
    /// Offset 16: which forks; other bits mean nothing to the server.
    flags: i32,
}

impl Truncate {
    fn decode(data: &[u8]) -> Result<Truncate, RmgrError> {
        let mut c = Cursor::new("xl_smgr_truncate", data);
        Ok(Truncate {
            blocks: c.u32("blkno")?,
            locator: locator(&mut c)?,
            flags: c.i32("flags")?,
        })
    }
}

pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(|opcode| match opcode {
        Opcode::Create => "CREATE",
        Opcode::Truncate => "TRUNCATE",
    })
}

/// `smgr_redo`.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    out.push(match opcode {
        Opcode::Create => {
            let Create { locator, fork } = Create::decode(record.main_data)?;
            Change::CreateFork { locator, fork }
        }
        Opcode::Truncate => {
            let truncate = Truncate::decode(record.main_data)?;
            Change::TruncateRelation {
                locator: truncate.locator,
                blocks: truncate.blocks,
                main: truncate.flags & TRUNCATE_HEAP != 0,
                vm: truncate.flags & TRUNCATE_VM != 0,
                fsm: truncate.flags & TRUNCATE_FSM != 0,
            }
        }
    });
    Ok(())
}

/// `smgr_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let format = record.format;
    match Opcode::from_info(record.info) {
        Some(Opcode::Create) => {
            let Create { locator, fork } = Create::decode(record.main_data)?;
            let path = RelationPath {
                format,
                locator,
                fork,
            };
            append(out, format_args!("{path}"));
        }
        Some(Opcode::Truncate) => {
            let truncate = Truncate::decode(record.main_data)?;
            let path = RelationPath {
                format,
                locator: truncate.locator,
                fork: ForkNumber::Main,
            };
            let Truncate { blocks, flags, .. } = truncate;
            append(out, format_args!("{path} to {blocks} blocks flags {flags}"));
        }
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing_changes::{abuse, changes, hex, record, text};
    use super::*;
    use crate::types::Oid;

    const STORAGE: u8 = 2;

    const RELATION: RelFileLocator = RelFileLocator {
        spc: Oid(1663),
        db: Oid(5),
        rel: Oid(16391),
    };

    #[test]
    fn create() {
        let data = hex("7F060000 05000000 07400000 03000000");
        let r = record(STORAGE, 0x10, &data);
        assert_eq!(text(&r), "CREATE base/5/16391_init");
        let expected = Change::CreateFork {
            locator: RELATION,
            fork: ForkNumber::Init,
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(STORAGE, 0x10, &data, 16);
    }

    #[test]
    fn a_fork_that_does_not_exist_is_an_error() {
        for number in ["04000000", "FFFFFFFF"] {
            let data = hex(&format!("7F060000 05000000 07400000 {number}"));
            assert!(changes(&record(STORAGE, 0x10, &data)).is_err());
        }
    }

    #[test]
    fn truncate_of_each_fork() {
        for flags in 0..8u8 {
            let mut data = hex("09000000 7F060000 05000000 07400000 00000000");
            data[16] = flags;
            let r = record(STORAGE, 0x20, &data);
            let expected = format!("TRUNCATE base/5/16391 to 9 blocks flags {flags}");
            assert_eq!(text(&r), expected);
            let expected = Change::TruncateRelation {
                locator: RELATION,
                blocks: 9,
                main: flags & 1 != 0,
                vm: flags & 2 != 0,
                fsm: flags & 4 != 0,
            };
            assert_eq!(changes(&r).unwrap(), [expected]);
            abuse(STORAGE, 0x20, &data, 20);
        }
    }

    #[test]
    fn unknown_opcodes_are_errors() {
        for info in [0x00, 0x30, 0xF0] {
            let unknown = changes(&record(STORAGE, info, &[0; 32]));
            assert_eq!(unknown, Err(RmgrError::UnknownOpcode(info)));
        }
    }
}
