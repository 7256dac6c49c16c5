//! RelMap: the map from nailed and shared catalogs to their files is replaced
//! (`src/backend/utils/cache/relmapper.c`, `src/backend/access/rmgrdesc/relmapdesc.c`).
//!
//! | opcode | record | block references |
//! |---|---|---|
//! | 0x00 UPDATE | [`Update`] | none |

use super::fields::append;
use super::{Change, RmgrError};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::types::{Cursor, Oid};

const UPDATE: u8 = 0x00;

/// `xl_relmap_update`, 12 bytes and the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_relmap_update")]
struct Update<'w> {
    /// Offset 0: 0 for the shared map.
    db: Oid,
    /// Offset 4.
    spc: Oid,
    /// Offset 8: `nbytes`.
    map_bytes: i32,
    /// Offset 12: all that follows.
    rest: &'w [u8],
}

impl<'w> Update<'w> {
    fn decode(data: &'w [u8]) -> Result<Update<'w>, RmgrError> {
        let mut c = Cursor::new("xl_relmap_update", data);
        Ok(Update {
            db: Oid(c.u32("dbid")?),
            spc: Oid(c.u32("tsid")?),
            map_bytes: c.i32("nbytes")?,
            rest: c.rest(),
        })
    }

    /// The map, which must be as long as the file is in this major (`relmap_redo`).
    fn map(&self, expected_bytes: usize) -> Result<&'w [u8], RmgrError> {
        if usize::try_from(self.map_bytes) != Ok(expected_bytes) {
            let found = self.map_bytes;
            return Err(RmgrError::corrupt(format!(
                "wrong size {found} in relmap update record, expected {expected_bytes}"
            )));
        }
        Ok(Cursor::new("RelMapFile", self.rest).bytes("data", expected_bytes)?)
    }
}

pub(super) fn identify(info: u8) -> Option<&'static str> {
    (info & INFO_RMGR_MASK == UPDATE).then_some("UPDATE")
}

/// `relmap_redo`.
pub(super) fn changes<'w>(record: &Record<'w>, out: &mut Vec<Change<'w>>) -> Result<(), RmgrError> {
    if record.rmgr_info() != UPDATE {
        return Err(RmgrError::UnknownOpcode(record.info));
    }
    let update = Update::decode(record.main_data)?;
    out.push(Change::RelationMap {
        db: update.db,
        spc: update.spc,
        map: update.map(record.format.relmap_bytes)?,
    });
    Ok(())
}

/// `relmap_desc`, which does not look at the map.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    if record.rmgr_info() == UPDATE {
        let Update {
            db,
            spc,
            map_bytes: bytes,
            ..
        } = Update::decode(record.main_data)?;
        append(
            out,
            format_args!("database {db} tablespace {spc} size {bytes}"),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing_changes::{abuse, changes, hex, record, text};
    use super::*;

    const RELMAP: u8 = 7;

    fn update(map_bytes: usize) -> Vec<u8> {
        let mut data = hex("05000000 7F060000 00020000");
        data.extend((0..map_bytes).map(|i| i as u8));
        data
    }

    #[test]
    fn update_carries_the_whole_map() {
        let data = update(512);
        let r = record(RELMAP, UPDATE, &data);
        assert_eq!(text(&r), "UPDATE database 5 tablespace 1663 size 512");
        let expected = Change::RelationMap {
            db: Oid(5),
            spc: Oid(1663),
            map: &data[12..],
        };
        assert_eq!(changes(&r).unwrap(), [expected]);
        abuse(RELMAP, UPDATE, &data, 12);
    }

    #[test]
    fn a_map_of_another_size_is_an_error() {
        for len in 0..512 {
            assert!(changes(&record(RELMAP, UPDATE, &update(len))).is_err());
        }
        for size in ["FF010000", "01020000", "000200FF", "00000000"] {
            let mut data = update(600);
            data[8..12].copy_from_slice(&hex(size));
            assert!(changes(&record(RELMAP, UPDATE, &data)).is_err(), "{size}");
        }
    }

    #[test]
    fn unknown_opcodes_are_errors() {
        let data = update(512);
        let unknown = changes(&record(RELMAP, 0x10, &data));
        assert_eq!(unknown, Err(RmgrError::UnknownOpcode(0x10)));
    }
}
