//! Database: databases are created and dropped (`src/backend/commands/dbcommands.c`,
//! `src/backend/access/rmgrdesc/dbasedesc.c`).
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 CREATE_FILE_COPY | [`CreateFileCopy`] | none |
//! | 0x10 CREATE_WAL_LOG | [`CreateWalLog`] | none |
//! | 0x20 DROP | [`Drop`] | none |

use super::fields::{append, counted};
use super::{Change, OidList, RmgrError};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::types::{Cursor, Oid};

#[derive(Debug, Clone, Copy)]
enum Opcode {
    CreateFileCopy,
    CreateWalLog,
    Drop,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        match info & INFO_RMGR_MASK {
            0x00 => Some(Opcode::CreateFileCopy),
            0x10 => Some(Opcode::CreateWalLog),
            0x20 => Some(Opcode::Drop),
            _ => None,
        }
    }
}

/// `xl_dbase_create_file_copy_rec`, 16 bytes: one tablespace of the template is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_dbase_create_file_copy_rec")]
struct CreateFileCopy {
    /// Offset 0.
    db: Oid,
    /// Offset 4.
    spc: Oid,
    /// Offset 8.
    src_db: Oid,
    /// Offset 12.
    src_spc: Oid,
}

impl CreateFileCopy {
    fn decode(data: &[u8]) -> Result<CreateFileCopy, RmgrError> {
        let mut c = Cursor::new("xl_dbase_create_file_copy_rec", data);
        Ok(CreateFileCopy {
            db: Oid(c.u32("db_id")?),
            spc: Oid(c.u32("tablespace_id")?),
            src_db: Oid(c.u32("src_db_id")?),
            src_spc: Oid(c.u32("src_tablespace_id")?),
        })
    }
}

/// `xl_dbase_create_wal_log_rec`, 8 bytes: the files follow in records of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_dbase_create_wal_log_rec")]
struct CreateWalLog {
    /// Offset 0.
    db: Oid,
    /// Offset 4.
    spc: Oid,
}

impl CreateWalLog {
    fn decode(data: &[u8]) -> Result<CreateWalLog, RmgrError> {
        let mut c = Cursor::new("xl_dbase_create_wal_log_rec", data);
        Ok(CreateWalLog {
            db: Oid(c.u32("db_id")?),
            spc: Oid(c.u32("tablespace_id")?),
        })
    }
}

/// `xl_dbase_drop_rec`, 8 bytes and the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_dbase_drop_rec")]
struct Drop<'w> {
    /// Offset 0.
    db: Oid,
    /// Offset 8, its length at offset 4.
    spcs: OidList<'w>,
}

impl<'w> Drop<'w> {
    fn decode(data: &'w [u8]) -> Result<Drop<'w>, RmgrError> {
        let mut c = Cursor::new("xl_dbase_drop_rec", data);
        let db = Oid(c.u32("db_id")?);
        let spcs = counted(
            &mut c,
            "ntablespaces",
            "tablespace_ids",
            OidList::ELEMENT_BYTES,
        )?;
        Ok(Drop {
            db,
            spcs: OidList::new(spcs)?,
        })
    }
}

pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(|opcode| match opcode {
        Opcode::CreateFileCopy => "CREATE_FILE_COPY",
        Opcode::CreateWalLog => "CREATE_WAL_LOG",
        Opcode::Drop => "DROP",
    })
}

/// `dbase_redo`.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    out.push(match opcode {
        Opcode::CreateFileCopy => {
            let copy = CreateFileCopy::decode(record.main_data)?;
            Change::CopyDatabase {
                db: copy.db,
                spc: copy.spc,
                src_db: copy.src_db,
                src_spc: copy.src_spc,
            }
        }
        Opcode::CreateWalLog => {
            let CreateWalLog { db, spc } = CreateWalLog::decode(record.main_data)?;
            Change::CreateDatabase { db, spc }
        }
        Opcode::Drop => {
            let Drop { db, spcs } = Drop::decode(record.main_data)?;
            Change::DropDatabase { db, spcs }
        }
    });
    Ok(())
}

/// `dbase_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Some(Opcode::CreateFileCopy) => {
            let CreateFileCopy {
                db,
                spc,
                src_db,
                src_spc,
            } = CreateFileCopy::decode(record.main_data)?;
            append(
                out,
                format_args!("copy dir {src_spc}/{src_db} to {spc}/{db}"),
            );
        }
        Some(Opcode::CreateWalLog) => {
            let CreateWalLog { db, spc } = CreateWalLog::decode(record.main_data)?;
            append(out, format_args!("create dir {spc}/{db}"));
        }
        Some(Opcode::Drop) => {
            let Drop { db, spcs } = Drop::decode(record.main_data)?;
            out.push_str("dir");
            for spc in spcs.iter() {
                append(out, format_args!(" {spc}/{db}"));
            }
        }
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing_changes::{abuse, changes, hex, record, text};
    use super::*;

    const DATABASE: u8 = 4;

    #[test]
    fn create_by_file_copy() {
        let data = hex("0D400000 0E400000 05000000 7F060000");
        let r = record(DATABASE, 0x00, &data);
        assert_eq!(text(&r), "CREATE_FILE_COPY copy dir 1663/5 to 16398/16397");
        let expected = Change::CopyDatabase {
            db: Oid(16397),
            spc: Oid(16398),
            src_db: Oid(5),
            src_spc: Oid(1663),
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(DATABASE, 0x00, &data, 16);
    }

    #[test]
    fn create_by_wal() {
        let data = hex("0C400000 7F060000");
        let r = record(DATABASE, 0x10, &data);
        assert_eq!(text(&r), "CREATE_WAL_LOG create dir 1663/16396");
        let expected = Change::CreateDatabase {
            db: Oid(16396),
            spc: Oid(1663),
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(DATABASE, 0x10, &data, 8);
    }

    #[test]
    fn drop_in_every_tablespace() {
        let data = hex("0D400000 02000000 7F060000 0E400000");
        let r = record(DATABASE, 0x20, &data);
        assert_eq!(text(&r), "DROP dir 1663/16397 16398/16397");
        let expected = Change::DropDatabase {
            db: Oid(16397),
            spcs: OidList::new(&data[8..]).unwrap(),
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(DATABASE, 0x20, &data, 16);
    }

    #[test]
    fn bad_counts_and_unknown_opcodes_are_errors() {
        let negative = hex("0D400000 FFFFFFFF 7F060000");
        assert!(changes(&record(DATABASE, 0x20, &negative)).is_err());
        let huge = hex("0D400000 FFFFFF7F 7F060000");
        assert!(changes(&record(DATABASE, 0x20, &huge)).is_err());
        let unknown = changes(&record(DATABASE, 0x30, &[0; 16]));
        assert_eq!(unknown, Err(RmgrError::UnknownOpcode(0x30)));
    }
}
