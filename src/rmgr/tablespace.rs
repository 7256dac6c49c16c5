//! Tablespace: tablespaces are created and dropped (`src/backend/commands/tablespace.c`,
//! `src/backend/access/rmgrdesc/tblspcdesc.c`).
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 CREATE | [`Create`] | none |
//! | 0x10 DROP | `xl_tblspc_drop_rec`: the tablespace | none |

use super::fields::{append, c_string};
use super::{Change, RmgrError};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::types::{Cursor, Oid};

#[derive(Debug, Clone, Copy)]
enum Opcode {
    Create,
    Drop,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        match info & INFO_RMGR_MASK {
            0x00 => Some(Opcode::Create),
            0x10 => Some(Opcode::Drop),
            _ => None,
        }
    }
}

/// `xl_tblspc_create_rec`, 4 bytes and the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_tblspc_create_rec")]
struct Create<'w> {
    /// Offset 0.
    spc: Oid,
    /// Offset 4: NUL-terminated; empty for a tablespace inside the data directory.
    path: &'w [u8],
}

impl<'w> Create<'w> {
    fn decode(data: &'w [u8]) -> Result<Create<'w>, RmgrError> {
        let mut c = Cursor::new("xl_tblspc_create_rec", data);
        Ok(Create {
            spc: Oid(c.u32("ts_id")?),
            path: c_string(&mut c, "ts_path")?,
        })
    }
}

fn decode_drop(data: &[u8]) -> Result<Oid, RmgrError> {
    let mut c = Cursor::new("xl_tblspc_drop_rec", data);
    Ok(Oid(c.u32("ts_id")?))
}

pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(|opcode| match opcode {
        Opcode::Create => "CREATE",
        Opcode::Drop => "DROP",
    })
}

/// `tblspc_redo`.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    out.push(match opcode {
        Opcode::Create => {
            let Create { spc, path } = Create::decode(record.main_data)?;
            Change::CreateTablespace { spc, path }
        }
        Opcode::Drop => Change::DropTablespace {
            spc: decode_drop(record.main_data)?,
        },
    });
    Ok(())
}

/// `tblspc_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Some(Opcode::Create) => {
            let Create { spc, path } = Create::decode(record.main_data)?;
            let path = String::from_utf8_lossy(path);
            append(out, format_args!("{spc} \"{path}\""));
        }
        Some(Opcode::Drop) => {
            let spc = decode_drop(record.main_data)?;
            append(out, format_args!("{spc}"));
        }
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing_changes::{abuse, changes, hex, record, text};
    use super::*;

    const TABLESPACE: u8 = 5;

    #[test]
    fn create_elsewhere_and_in_place() {
        let data = hex("0E400000 2F747331 00");
        let r = record(TABLESPACE, 0x00, &data);
        assert_eq!(text(&r), "CREATE 16398 \"/ts1\"");
        let expected = Change::CreateTablespace {
            spc: Oid(16398),
            path: b"/ts1",
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(TABLESPACE, 0x00, &data, 9);

        let data = hex("0F400000 00");
        let r = record(TABLESPACE, 0x00, &data);
        assert_eq!(text(&r), "CREATE 16399 \"\"");
        abuse(TABLESPACE, 0x00, &data, 5);
    }

    #[test]
    fn drop() {
        let data = hex("0E400000");
        let r = record(TABLESPACE, 0x10, &data);
        assert_eq!(text(&r), "DROP 16398");
        let expected = Change::DropTablespace { spc: Oid(16398) };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(TABLESPACE, 0x10, &data, 4);
    }

    #[test]
    fn unknown_opcodes_are_errors() {
        let unknown = changes(&record(TABLESPACE, 0x20, &[0; 16]));
        assert_eq!(unknown, Err(RmgrError::UnknownOpcode(0x20)));
    }
}
