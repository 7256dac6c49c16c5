//! MultiXact: multixacts are created, their pages begin and their segments go
//! (`src/backend/access/transam/multixact.c`, `src/backend/access/rmgrdesc/mxactdesc.c`).
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 ZERO_OFF_PAGE | page number | none |
//! | 0x10 ZERO_MEM_PAGE | page number | none |
//! | 0x20 CREATE_ID | [`CreateMultiXact`] | none |
//! | 0x30 TRUNCATE_ID | [`TruncateMultiXact`] | none |

use super::fields::{append, counted, slru_page};
use super::{Change, CreateMultiXact, MemberList, RmgrError, SlruKind, TruncateMultiXact};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::types::{Cursor, MultiXactId, MultiXactOffset, Oid};

/// `MaxMultiXactStatus`.
const MAX_STATUS: u32 = 5;

#[derive(Debug, Clone, Copy)]
enum Opcode {
    ZeroOffPage,
    ZeroMemPage,
    CreateId,
    TruncateId,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        match info & INFO_RMGR_MASK {
            0x00 => Some(Opcode::ZeroOffPage),
            0x10 => Some(Opcode::ZeroMemPage),
            0x20 => Some(Opcode::CreateId),
            0x30 => Some(Opcode::TruncateId),
            _ => None,
        }
    }
}

fn decode_zero_page(data: &[u8]) -> Result<u64, RmgrError> {
    slru_page(&mut Cursor::new("XLOG_MULTIXACT_ZERO_PAGE", data))
}

impl<'w> CreateMultiXact<'w> {
    /// `xl_multixact_create`, 12 bytes and the members.
    fn decode(data: &'w [u8]) -> Result<CreateMultiXact<'w>, RmgrError> {
        let mut c = Cursor::new("xl_multixact_create", data);
        let id = MultiXactId(c.u32("mid")?);
        let offset = MultiXactOffset(c.u32("moff")?);
        let members = counted(&mut c, "nmembers", "members", MemberList::ELEMENT_BYTES)?;
        Ok(CreateMultiXact {
            id,
            offset,
            members: MemberList::new(members)?,
        })
    }

    /// A status is stored in eight bits next to those of other members, so that a larger one
    /// would spoil them.
    fn check(self) -> Result<CreateMultiXact<'w>, RmgrError> {
        match self.members.iter().find(|m| m.status > MAX_STATUS) {
            None => Ok(self),
            Some(bad) => Err(RmgrError::corrupt(format!(
                "member {} of multixact {} has the invalid status {}",
                bad.xid, self.id, bad.status
            ))),
        }
    }

    fn desc(&self, out: &mut String) {
        let CreateMultiXact {
            id,
            offset,
            members,
        } = self;
        let n = members.len();
        append(out, format_args!("{id} offset {offset} nmembers {n}: "));
        for member in members.iter() {
            let status = match member.status {
                0 => "keysh",
                1 => "sh",
                2 => "fornokeyupd",
                3 => "forupd",
                4 => "nokeyupd",
                5 => "upd",
                _ => "unk",
            };
            append(out, format_args!("{} ({status}) ", member.xid));
        }
    }
}

impl TruncateMultiXact {
    /// `xl_multixact_truncate`, 20 bytes.
    fn decode(data: &[u8]) -> Result<TruncateMultiXact, RmgrError> {
        let mut c = Cursor::new("xl_multixact_truncate", data);
        Ok(TruncateMultiXact {
            oldest_multi_db: Oid(c.u32("oldestMultiDB")?),
            start_trunc_off: MultiXactId(c.u32("startTruncOff")?),
            end_trunc_off: MultiXactId(c.u32("endTruncOff")?),
            start_trunc_memb: MultiXactOffset(c.u32("startTruncMemb")?),
            end_trunc_memb: MultiXactOffset(c.u32("endTruncMemb")?),
        })
    }

    fn desc(&self, out: &mut String) {
        append(
            out,
            format_args!(
                "offsets [{}, {}), members [{}, {})",
                self.start_trunc_off,
                self.end_trunc_off,
                self.start_trunc_memb,
                self.end_trunc_memb
            ),
        );
    }
}

pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(|opcode| match opcode {
        Opcode::ZeroOffPage => "ZERO_OFF_PAGE",
        Opcode::ZeroMemPage => "ZERO_MEM_PAGE",
        Opcode::CreateId => "CREATE_ID",
        Opcode::TruncateId => "TRUNCATE_ID",
    })
}

/// `multixact_redo`. That the offsets page of the next multixact may have to begin with
/// CREATE_ID, and that ZERO_OFF_PAGE is then skipped, depends on what was replayed before and is
/// left to whoever applies the changes.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    let opcode = Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    let data = record.main_data;
    out.push(match opcode {
        Opcode::ZeroOffPage => Change::SlruZeroPage {
            slru: SlruKind::MultiXactOffsets,
            page: decode_zero_page(data)?,
        },
        Opcode::ZeroMemPage => Change::SlruZeroPage {
            slru: SlruKind::MultiXactMembers,
            page: decode_zero_page(data)?,
        },
        Opcode::CreateId => Change::CreateMultiXact(CreateMultiXact::decode(data)?.check()?),
        Opcode::TruncateId => Change::TruncateMultiXact(TruncateMultiXact::decode(data)?),
    });
    Ok(())
}

/// `multixact_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    match Opcode::from_info(record.info) {
        Some(Opcode::ZeroOffPage | Opcode::ZeroMemPage) => {
            let page = decode_zero_page(record.main_data)?;
            append(out, format_args!("{page}"));
        }
        Some(Opcode::CreateId) => CreateMultiXact::decode(record.main_data)?.desc(out),
        Some(Opcode::TruncateId) => TruncateMultiXact::decode(record.main_data)?.desc(out),
        None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing_changes::{abuse, changes, hex, record, text};
    use super::*;

    const MULTIXACT: u8 = 6;

    #[test]
    fn zero_pages() {
        let data = hex("01000000");
        for (info, name, slru) in [
            (0x00, "ZERO_OFF_PAGE", SlruKind::MultiXactOffsets),
            (0x10, "ZERO_MEM_PAGE", SlruKind::MultiXactMembers),
        ] {
            let r = record(MULTIXACT, info, &data);
            assert_eq!(text(&r), format!("{name} 1"));
            let expected = Change::SlruZeroPage { slru, page: 1 };
            assert_eq!(changes(&r).unwrap(), [expected]);
            abuse(MULTIXACT, info, &data, 4);
        }
    }

    #[test]
    fn create() {
        let data = hex("01000000 01000000 02000000 AB030000 01000000 AC030000 00000000");
        let r = record(MULTIXACT, 0x20, &data);
        assert_eq!(
            text(&r),
            "CREATE_ID 1 offset 1 nmembers 2: 939 (sh) 940 (keysh) "
        );
        let expected = Change::CreateMultiXact(CreateMultiXact {
            id: MultiXactId(1),
            offset: MultiXactOffset(1),
            members: MemberList::new(&data[12..]).unwrap(),
        });
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(MULTIXACT, 0x20, &data, 28);
    }

    #[test]
    fn an_unknown_status_is_described_and_not_redone() {
        let statuses = [
            "keysh",
            "sh",
            "fornokeyupd",
            "forupd",
            "nokeyupd",
            "upd",
            "unk",
        ];
        for (status, name) in statuses.into_iter().enumerate() {
            let mut data = hex("01000000 01000000 01000000 AB030000 00000000");
            data[16] = status as u8;
            let r = record(MULTIXACT, 0x20, &data);
            let expected = format!("CREATE_ID 1 offset 1 nmembers 1: 939 ({name}) ");
            assert_eq!(text(&r), expected);
            assert_eq!(changes(&r).is_ok(), status <= 5);
        }
    }

    #[test]
    fn truncate() {
        let data = hex("05000000 01000000 01080000 02000000 65060000");
        let r = record(MULTIXACT, 0x30, &data);
        assert_eq!(text(&r), "TRUNCATE_ID offsets [1, 2049), members [2, 1637)");
        let expected = Change::TruncateMultiXact(TruncateMultiXact {
            oldest_multi_db: Oid(5),
            start_trunc_off: MultiXactId(1),
            end_trunc_off: MultiXactId(2049),
            start_trunc_memb: MultiXactOffset(2),
            end_trunc_memb: MultiXactOffset(1637),
        });
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(MULTIXACT, 0x30, &data, 20);
    }

    #[test]
    fn bad_counts_pages_and_opcodes_are_errors() {
        let negative = hex("01000000 01000000 FFFFFFFF AB030000 01000000");
        assert!(changes(&record(MULTIXACT, 0x20, &negative)).is_err());
        assert!(changes(&record(MULTIXACT, 0x00, &hex("000000FF"))).is_err());
        let unknown = changes(&record(MULTIXACT, 0x40, &[0; 32]));
        assert_eq!(unknown, Err(RmgrError::UnknownOpcode(0x40)));
    }
}
