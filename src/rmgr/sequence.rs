//! Sequence: the single page of a sequence.
//!
//! Mirrors `seq_redo` and `seq_mask` in `src/backend/commands/sequence.c` and
//! `src/backend/access/rmgrdesc/seqdesc.c`.
//!
//! | opcode | record | block references       |
//! |--------|--------|------------------------|
//! | 0x00   | LOG    | 0 the page (init)      |

use std::fmt::Write as _;

use super::{Effect, PageState, RedoSettings, RmgrError, Target, Touch, mask as blank};
use crate::decode::{INFO_RMGR_MASK, Record};
use crate::page::Page;
use crate::types::{BLOCK_BYTES, BlockNumber, Cursor, Oid, RelFileLocator, ShortRead};

/// `sizeof(sequence_magic)`.
const SPECIAL_BYTES: usize = 4;
/// The special area is rounded up to 8 bytes.
const SEQUENCE_MAGIC: usize = BLOCK_BYTES - SPECIAL_BYTES.next_multiple_of(8);
/// `SEQ_MAGIC`.
const SEQ_MAGIC: u32 = 0x1717;

/// `XLOG_SEQ_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    Log,
}

impl Opcode {
    fn from_info(info: u8) -> Option<Opcode> {
        (info & INFO_RMGR_MASK == 0x00).then_some(Opcode::Log)
    }
}

/// Main data (`xl_seq_rec`, 12 bytes, and a heap tuple).
#[doc(alias = "xl_seq_rec")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SequenceLog<'w> {
    /// Offset 0: the sequence.
    locator: RelFileLocator,
    /// Offset 12: its only tuple, header included.
    tuple: &'w [u8],
}

impl<'w> SequenceLog<'w> {
    fn parse(main: &'w [u8]) -> Result<SequenceLog<'w>, ShortRead> {
        let mut c = Cursor::new("xl_seq_rec", main);
        Ok(SequenceLog {
            locator: RelFileLocator {
                spc: Oid(c.u32("spcNode")?),
                db: Oid(c.u32("dbNode")?),
                rel: Oid(c.u32("relNode")?),
            },
            tuple: c.rest(),
        })
    }

    /// `seq_redo`: the page is built anew each time, so what it was does not matter.
    fn redo(&self, page: &mut Page) -> Result<(), RmgrError> {
        page.init(SPECIAL_BYTES);
        page.put_u32(SEQUENCE_MAGIC, SEQ_MAGIC);
        Ok(page.add_item(self.tuple, 1)?)
    }
}

/// `seq_identify`.
pub(super) fn identify(info: u8) -> Option<&'static str> {
    Opcode::from_info(info).map(|Opcode::Log| "LOG")
}

/// `seq_desc`.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    if let Some(Opcode::Log) = Opcode::from_info(record.info) {
        let xlrec = SequenceLog::parse(record.main_data)?;
        write!(out, "rel {}", xlrec.locator).expect("a String takes any text");
    }
    Ok(())
}

/// `seq_redo`.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    _settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    let Opcode::Log =
        Opcode::from_info(record.info).ok_or(RmgrError::UnknownOpcode(record.info))?;
    if touch.target != Target::Block(0) {
        return Err(RmgrError::corrupt("a sequence has one page only"));
    }
    if state != PageState::Needs {
        return Ok(Effect::none());
    }
    SequenceLog::parse(record.main_data)?.redo(page)?;
    Ok(Effect::changed())
}

/// `seq_mask`.
pub(super) fn mask(page: &mut Page, _block: BlockNumber) {
    blank::lsn_and_checksum(page);
    blank::unused_space(page);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::btree::testing::{block, record, redo_block, redo_block_in};
    use crate::types::Lsn;

    const MAIN: [u8; 20] = [
        0x7F, 6, 0, 0, 5, 0, 0, 0, 0, 0x40, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
    ];

    #[test]
    fn the_page_is_built_from_the_record_alone() {
        let record = record("Sequence", 0x00, &MAIN, &[block(0, 0, &[]).init()]);
        let mut page = Page::zeroed();
        page.bytes_mut().fill(0xEE);
        assert_eq!(redo_block(&record, 0, &mut page), Ok(Effect::changed()));
        let mut expected = Page::zeroed();
        expected.bytes_mut()[12..20].copy_from_slice(&[28, 0, 0xF0, 0x1F, 0xF8, 0x1F, 4, 0x20]);
        expected.bytes_mut()[24..28].copy_from_slice(&[0xF0, 0x9F, 0x10, 0]);
        expected.bytes_mut()[8176..8184].copy_from_slice(&MAIN[12..]);
        expected.bytes_mut()[8184..8186].copy_from_slice(&[0x17, 0x17]);
        assert!(page == expected);
    }

    #[test]
    fn a_page_that_has_the_change_is_left_alone() {
        let record = record("Sequence", 0x00, &MAIN, &[block(0, 0, &[]).init()]);
        for state in [PageState::Done, PageState::Restored] {
            let mut page = Page::zeroed();
            let effect = redo_block_in(state, &record, 0, &mut page);
            assert_eq!(effect, Ok(Effect::none()));
            assert!(page == Page::zeroed());
        }
    }

    #[test]
    fn prints_the_relation() {
        let record = record("Sequence", 0x00, &MAIN, &[]);
        let mut out = String::new();
        desc(&record, &mut out).unwrap();
        assert_eq!(out, "rel 1663/5/16384");
        assert_eq!(identify(0x01), Some("LOG"));
        assert_eq!(identify(0x10), None);
    }

    #[test]
    fn short_and_unknown_records_are_errors() {
        for len in 0..12 {
            let record = record("Sequence", 0x00, &MAIN[..len], &[block(0, 0, &[]).init()]);
            let result = redo_block(&record, 0, &mut Page::zeroed());
            assert!(matches!(result, Err(RmgrError::Short(_))), "{len}");
            assert!(desc(&record, &mut String::new()).is_err());
        }
        let record = record("Sequence", 0x10, &MAIN, &[block(0, 0, &[]).init()]);
        let result = redo_block(&record, 0, &mut Page::zeroed());
        assert_eq!(result, Err(RmgrError::UnknownOpcode(0x10)));
    }

    #[test]
    fn mask_keeps_the_tuple() {
        let record = record("Sequence", 0x00, &MAIN, &[block(0, 0, &[]).init()]);
        let mut page = Page::zeroed();
        redo_block(&record, 0, &mut page).unwrap();
        let built = page.clone();
        page.set_lsn(Lsn(77));
        page.bytes_mut()[4000] = 1;
        mask(&mut page, 0);
        assert!(page == built);
    }
}
