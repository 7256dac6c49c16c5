//! INPLACE: a tuple is overwritten without a new version, as VACUUM does to pg_class.

use std::fmt::Write;

use super::vm_clear::HEAP;
use super::{required_block, unexpected_block};
use crate::decode::Record;
use crate::page::Page;
use crate::rmgr::{Effect, RmgrError, Touch};
use crate::types::{Cursor, OffsetNumber, ShortRead};

/// Main data of INPLACE, 2 bytes. Block 0 has the new bytes after t_hoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_inplace")]
struct HeapInplace {
    /// Offset 0.
    offnum: OffsetNumber,
}

impl HeapInplace {
    fn decode(bytes: &[u8]) -> Result<HeapInplace, ShortRead> {
        let mut c = Cursor::new("xl_heap_inplace", bytes);
        Ok(HeapInplace {
            offnum: c.u16("offnum")?,
        })
    }
}

/// `heap_xlog_inplace`: the header and the length stay.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let HeapInplace { offnum } = HeapInplace::decode(record.main_data)?;
    if touch.block_id() != HEAP {
        return Err(unexpected_block(touch.block_id()));
    }
    let new = required_block(record, HEAP)?.data;
    let mut tuple = page.heap_tuple_mut(offnum)?;
    let old = tuple.user_data_mut()?;
    if old.len() != new.len() {
        return Err(RmgrError::corrupt(format!(
            "{} bytes to overwrite {} in place",
            new.len(),
            old.len()
        )));
    }
    old.copy_from_slice(new);
    Ok(Effect::changed())
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapInplace { offnum } = HeapInplace::decode(record.main_data)?;
    let _ = write!(out, "off {offnum}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::testing::{TUPLE, heap_block, heap_page, record};

    #[test]
    fn user_data_is_replaced_and_the_header_stays() {
        let inplace = record(10, 0x70, &[1, 0]).with(heap_block(0, 0, b"abcdefgh"));
        let mut page = heap_page(1);
        assert_eq!(inplace.redo_touch(0, &mut page).unwrap(), Effect::changed());
        assert_eq!(page.item(1).unwrap(), &[&TUPLE[..24], b"abcdefgh"].concat());
    }

    #[test]
    fn another_length_is_an_error() {
        let inplace = record(10, 0x70, &[1, 0]).with(heap_block(0, 0, b"abcdefghi"));
        assert!(inplace.redo_touch(0, &mut heap_page(1)).is_err());
    }

    #[test]
    fn text_and_truncation() {
        let inplace = record(10, 0x70, &[1, 0]).with(heap_block(0, 0, b"abcdefgh"));
        assert_eq!(inplace.text(), "off 1");
        inplace.cut_everywhere(&heap_page(1));
    }
}
