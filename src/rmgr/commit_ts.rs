//! CommitTs: pages of `pg_commit_ts` begin and segments go
//! (`src/backend/access/transam/commit_ts.c`, `src/backend/access/rmgrdesc/committsdesc.c`).
//! The timestamps themselves come with the commit records.
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 ZEROPAGE | page number | none |
//! | 0x10 TRUNCATE | [`Truncate`] | none |

use super::fields::{append, slru_page};
use super::{Change, RmgrError, SlruKind};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::types::{Cursor, TransactionId};

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
    slru_page(&mut Cursor::new("COMMIT_TS_ZEROPAGE", data))
}

/// `xl_commit_ts_truncate`, 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_commit_ts_truncate")]
struct Truncate {
    /// Offset 0: the first page kept.
    page: u64,
    /// Offset 4: the oldest transaction whose timestamp is kept.
    oldest_xid: TransactionId,
}

impl Truncate {
    fn decode(data: &[u8]) -> Result<Truncate, RmgrError> {
        let mut c = Cursor::new("xl_commit_ts_truncate", data);
        Ok(Truncate {
            page: slru_page(&mut c)?,
            oldest_xid: TransactionId(c.u32("oldestXid")?),
        })
    }
}

/// `commit_ts_identify`, which compares all eight bits: a record with a flag set in the low ones
/// has no name.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    match info {
        0x00 => Some("ZEROPAGE"),
        0x10 => Some("TRUNCATE"),
        _ => None,
    }
}

/// `commit_ts_redo`.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    out.push(match opcode {
        Opcode::ZeroPage => Change::SlruZeroPage {
            slru: SlruKind::CommitTs,
            page: decode_zero_page(record.main_data)?,
        },
        Opcode::Truncate => {
            let Truncate { page, oldest_xid } = Truncate::decode(record.main_data)?;
            Change::TruncateCommitTs { page, oldest_xid }
        }
    });
    Ok(())
}

/// `commit_ts_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Some(Opcode::ZeroPage) => {
            let page = decode_zero_page(record.main_data)?;
            append(out, format_args!("{page}"));
        }
        Some(Opcode::Truncate) => {
            let Truncate { page, oldest_xid } = Truncate::decode(record.main_data)?;
            append(out, format_args!("pageno {page}, oldestXid {oldest_xid}"));
        }
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing_changes::{abuse, changes, hex, record, text};
    use super::*;

    const COMMIT_TS: u8 = 18;

    #[test]
    fn zero_page() {
        let data = hex("01000000");
        let r = record(COMMIT_TS, 0x00, &data);
        assert_eq!(text(&r), "ZEROPAGE 1");
        let expected = Change::SlruZeroPage {
            slru: SlruKind::CommitTs,
            page: 1,
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(COMMIT_TS, 0x00, &data, 4);
    }

    #[test]
    fn truncate() {
        let data = hex("20000000 4C660000");
        let r = record(COMMIT_TS, 0x10, &data);
        assert_eq!(text(&r), "TRUNCATE pageno 32, oldestXid 26188");
        let expected = Change::TruncateCommitTs {
            page: 32,
            oldest_xid: TransactionId(26188),
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(COMMIT_TS, 0x10, &data, 8);
    }

    #[test]
    fn negative_pages_and_unknown_opcodes_are_errors() {
        assert!(changes(&record(COMMIT_TS, 0x10, &hex("FFFFFFFF 03000000"))).is_err());
        let unknown = changes(&record(COMMIT_TS, 0x20, &[0; 16]));
        assert_eq!(unknown, Err(RmgrError::UnknownOpcode(0x20)));
    }

    #[test]
    fn a_flag_hides_the_name_only() {
        let data = hex("01000000");
        assert_eq!(text(&record(COMMIT_TS, 0x02, &data)), "UNKNOWN (0) 1");
    }
}
