//! CLOG: pages of `pg_xact` begin and segments go (`src/backend/access/transam/clog.c`,
//! `src/backend/access/rmgrdesc/clogdesc.c`).
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 ZEROPAGE | page number | none |
//! | 0x10 TRUNCATE | [`Truncate`] | none |

use super::fields::{append, slru_page};
use super::{Change, RmgrError, SlruKind};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::types::{Cursor, Oid, TransactionId};

#[derive(Debug, Clone, Copy)]
enum Opcode {
    ZeroPage,
    Truncate,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        match info & INFO_RMGR_MASK {
            0x00 => Some(Opcode::ZeroPage),
            0x10 => Some(Opcode::Truncate),
            _ => None,
        }
    }
}

fn decode_zero_page(data: &[u8]) -> Result<u64, RmgrError> {
    slru_page(&mut Cursor::new("CLOG_ZEROPAGE", data))
}

/// `xl_clog_truncate`, 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_clog_truncate")]
struct Truncate {
    /// Offset 0: the first page kept.
    page: u64,
    /// Offset 4: the oldest transaction whose status is kept.
    oldest_xact: TransactionId,
    /// Offset 8: its database.
    oldest_xact_db: Oid,
}

impl Truncate {
    fn decode(data: &[u8]) -> Result<Truncate, RmgrError> {
        let mut c = Cursor::new("xl_clog_truncate", data);
        Ok(Truncate {
            page: slru_page(&mut c)?,
            oldest_xact: TransactionId(c.u32("oldestXact")?),
            oldest_xact_db: Oid(c.u32("oldestXactDb")?),
        })
    }
}

pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(|opcode| match opcode {
        Opcode::ZeroPage => "ZEROPAGE",
        Opcode::Truncate => "TRUNCATE",
    })
}

/// `clog_redo`.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    out.push(match opcode {
        Opcode::ZeroPage => Change::SlruZeroPage {
            slru: SlruKind::Clog,
            page: decode_zero_page(record.main_data)?,
        },
        Opcode::Truncate => {
            let truncate = Truncate::decode(record.main_data)?;
            Change::TruncateClog {
                page: truncate.page,
                oldest_xid: truncate.oldest_xact,
                oldest_xid_db: truncate.oldest_xact_db,
            }
        }
    });
    Ok(())
}

/// `clog_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Some(Opcode::ZeroPage) => {
            let page = decode_zero_page(record.main_data)?;
            append(out, format_args!("page {page}"));
        }
        Some(Opcode::Truncate) => {
            let Truncate {
                page, oldest_xact, ..
            } = Truncate::decode(record.main_data)?;
            append(out, format_args!("page {page}; oldestXact {oldest_xact}"));
        }
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing_changes::{abuse, changes, hex, record, text};
    use super::*;

    const CLOG: u8 = 3;

    #[test]
    fn zero_page() {
        let data = hex("02010000");
        let r = record(CLOG, 0x00, &data);
        assert_eq!(text(&r), "ZEROPAGE page 258");
        let expected = Change::SlruZeroPage {
            slru: SlruKind::Clog,
            page: 258,
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(CLOG, 0x00, &data, 4);
    }

    #[test]
    fn truncate() {
        let data = hex("20000000 03001000 05000000");
        let r = record(CLOG, 0x10, &data);
        assert_eq!(text(&r), "TRUNCATE page 32; oldestXact 1048579");
        let expected = Change::TruncateClog {
            page: 32,
            oldest_xid: TransactionId(0x10_0003),
            oldest_xid_db: Oid(5),
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(CLOG, 0x10, &data, 12);
    }

    #[test]
    fn negative_pages_and_unknown_opcodes_are_errors() {
        assert!(changes(&record(CLOG, 0x00, &hex("FFFFFFFF"))).is_err());
        let unknown = changes(&record(CLOG, 0x20, &[0; 16]));
        assert_eq!(unknown, Err(RmgrError::UnknownOpcode(0x20)));
    }
}
