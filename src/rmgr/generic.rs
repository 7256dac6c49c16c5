//! Generic: changes of pages that belong to extensions without a resource manager of their own.
//!
//! Mirrors `src/backend/access/transam/generic_xlog.c` and
//! `src/backend/access/rmgrdesc/genericdesc.c`.
//!
//! | opcode | record  | block references     |
//! |--------|---------|----------------------|
//! | any    | Generic | 0 to 3, any of them  |
//!
//! The data of a block are fragments that overwrite parts of the page; there is no main data.

use super::{Effect, PageState, RedoSettings, RmgrError, Target, Touch, fields, mask as blank};
use crate::decode::Record;
use crate::page::{Page, PageError};
use crate::types::{BLOCK_BYTES, BlockNumber, Cursor, ShortRead};

/// `MAX_GENERIC_XLOG_PAGES`.
const MAX_PAGES: u8 = 4;

/// New bytes of a part of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fragment<'w> {
    /// Offset 0: where it lies on the page.
    offset: u16,
    /// Offset 4, behind their count: the bytes.
    bytes: &'w [u8],
}

impl<'w> Fragment<'w> {
    fn read(c: &mut Cursor<'w>) -> Result<Fragment<'w>, ShortRead> {
        let offset = c.u16("offset")?;
        let length = c.u16("length")?;
        Ok(Fragment {
            offset,
            bytes: c.bytes("fragment", length.into())?,
        })
    }

    fn apply(&self, page: &mut Page) -> Result<(), RmgrError> {
        let start = usize::from(self.offset);
        let end = start + self.bytes.len();
        let part = page.bytes_mut().get_mut(start..end).ok_or_else(|| {
            RmgrError::corrupt(format!("fragment from {start} to {end} leaves the page"))
        })?;
        part.copy_from_slice(self.bytes);
        Ok(())
    }
}

/// `generic_identify`: there is one kind only.
pub(super) fn identify(_info: u8) -> Option<&'static str> {
    Some("Generic")
}

/// `generic_desc`. It looks for fragments in the main data, where there have never been any, so
/// that nothing is printed.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let mut c = Cursor::new("generic main data", record.main_data);
    while !c.is_empty() {
        let Fragment { offset, bytes } = Fragment::read(&mut c)?;
        let end = if c.is_empty() { "" } else { "; " };
        fields::append(
            out,
            format_args!("offset {offset}, length {}{end}", bytes.len()),
        );
    }
    Ok(())
}

/// `generic_redo`. The writer leaves the hole out of its comparison and clears it; which bytes
/// are the hole is for the new header to say.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    _settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    let id = match touch.target {
        Target::Block(id) if id < MAX_PAGES => id,
        other => return Err(RmgrError::corrupt(format!("unexpected {other:?}"))),
    };
    if state != PageState::Needs {
        return Ok(Effect::none());
    }
    let block = record.block(id).ok_or(RmgrError::MissingBlock(id))?;
    let mut c = Cursor::new("generic block data", block.data);
    while !c.is_empty() {
        Fragment::read(&mut c)?.apply(page)?;
    }
    clear_hole(page)?;
    Ok(Effect::changed())
}

/// Only the two bounds of the hole count: what else a page holds is the extension's affair.
fn clear_hole(page: &mut Page) -> Result<(), PageError> {
    let (lower, upper) = (page.lower(), page.upper());
    if lower > upper || usize::from(upper) > BLOCK_BYTES {
        let special = page.special();
        return Err(PageError::Header {
            lower,
            upper,
            special,
        });
    }
    page.bytes_mut()[lower.into()..upper.into()].fill(0);
    Ok(())
}

/// `generic_mask`. What an extension changes without WAL is not known here.
pub(super) fn mask(page: &mut Page, _block: BlockNumber) {
    blank::lsn_and_checksum(page);
    blank::unused_space(page);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::btree::testing::{Noise, block, record, redo_block, redo_block_in};
    use crate::types::Lsn;

    /// Bytes 100 and 101, and pd_lower 40.
    const DATA: [u8; 12] = [12, 0, 2, 0, 40, 0, 100, 0, 2, 0, 7, 8];

    fn dirty_page() -> Page {
        let mut page = Page::zeroed();
        page.init(8);
        page.bytes_mut()[24..].fill(0xEE);
        page.set_lower(32);
        page.set_upper(50);
        page
    }

    #[test]
    fn fragments_come_before_the_hole_of_the_new_header() {
        let before = dirty_page();
        let generic = record("Generic", 0, &[], &[block(2, 7, &DATA)]);
        let mut page = before.clone();
        assert_eq!(redo_block(&generic, 2, &mut page), Ok(Effect::changed()));
        let mut expected = before.clone();
        expected.set_lower(40);
        expected.bytes_mut()[100..102].copy_from_slice(&[7, 8]);
        expected.bytes_mut()[40..50].fill(0);
        assert!(page == expected);

        let mut page = before.clone();
        for state in [PageState::Done, PageState::Restored] {
            let effect = redo_block_in(state, &generic, 2, &mut page);
            assert_eq!(effect, Ok(Effect::none()));
            assert!(page == before);
        }
    }

    #[test]
    fn cut_fragments_are_errors() {
        for len in 0..DATA.len() {
            let generic = record("Generic", 0, &[], &[block(0, 7, &DATA[..len])]);
            let result = redo_block(&generic, 0, &mut dirty_page());
            let whole = len == 0 || len == 6;
            assert_eq!(result.is_ok(), whole, "{len}");
        }
    }

    #[test]
    fn fragments_and_hole_stay_on_the_page() {
        for data in [
            [0xFF, 0x1F, 2, 0, 1, 1],
            // pd_lower behind pd_upper, and pd_upper behind the page.
            [12, 0, 2, 0, 60, 0],
            [14, 0, 2, 0, 0, 0x21],
        ] {
            let generic = record("Generic", 0, &[], &[block(0, 7, &data)]);
            let result = redo_block(&generic, 0, &mut dirty_page());
            assert!(result.is_err(), "{data:?}");
        }
        let last = [0xFE, 0x1F, 2, 0, 1, 1];
        let generic = record("Generic", 0, &[], &[block(0, 7, &last)]);
        assert!(redo_block(&generic, 0, &mut dirty_page()).is_ok());
        let fifth = record("Generic", 0, &[], &[block(4, 7, &last)]);
        assert!(redo_block(&fifth, 4, &mut dirty_page()).is_err());
    }

    #[test]
    fn text_is_that_of_pg_waldump() {
        let text = |main| {
            let mut out = String::new();
            desc(&record("Generic", 0, main, &[]), &mut out).map(|()| out)
        };
        assert_eq!(text(&[]).as_deref(), Ok(""));
        let both = "offset 12, length 2; offset 100, length 2";
        assert_eq!(text(&DATA).as_deref(), Ok(both));
        for len in (1..DATA.len()).filter(|len| *len != 6) {
            assert!(text(&DATA[..len]).is_err(), "{len}");
        }
        assert_eq!(
            (identify(0), identify(0xF0)),
            (Some("Generic"), Some("Generic"))
        );
    }

    #[test]
    fn mask_hides_lsn_checksum_and_hole() {
        let (mut one, mut other) = (dirty_page(), dirty_page());
        other.set_lsn(Lsn(5));
        other.set_checksum_field(6);
        other.bytes_mut()[33] = 1;
        mask(&mut one, 0);
        mask(&mut other, 0);
        assert!(one == other);
        other.set_flags(1);
        assert!(one != other, "flags are compared");
    }

    #[test]
    fn noise_is_never_a_panic() {
        let mut noise = Noise(0x6E0);
        for round in 0..5000 {
            let mut page = dirty_page();
            if round % 2 == 0 {
                page.bytes_mut().copy_from_slice(&noise.bytes(BLOCK_BYTES));
            }
            let mut data = noise.bytes(40);
            (data[1], data[3]) = (data[1] % 33, 0);
            let generic = record("Generic", 0, &data, &[block(0, 7, &data)]);
            let _ = redo_block(&generic, 0, &mut page);
            let _ = desc(&generic, &mut String::new());
            mask(&mut page, 0);
        }
    }
}
