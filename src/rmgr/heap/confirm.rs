//! HEAP_CONFIRM: a speculative insertion is there to stay.

use std::fmt::Write;

use super::vm_clear::HEAP;
use super::{required_block, unexpected_block};
use crate::decode::Record;
use crate::page::Page;
use crate::page::heap_tuple::ItemPointer;
use crate::rmgr::{Effect, RmgrError, Touch};
use crate::types::{Cursor, OffsetNumber, ShortRead};

/// Main data of HEAP_CONFIRM, 2 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_confirm")]
struct HeapConfirm {
    /// Offset 0.
    offnum: OffsetNumber,
}

impl HeapConfirm {
    fn decode(bytes: &[u8]) -> Result<HeapConfirm, ShortRead> {
        let mut c = Cursor::new("xl_heap_confirm", bytes);
        Ok(HeapConfirm {
            offnum: c.u16("offnum")?,
        })
    }
}

/// `heap_xlog_confirm`: t_ctid becomes the tuple's own place.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let HeapConfirm { offnum } = HeapConfirm::decode(record.main_data)?;
    if touch.block_id() != HEAP {
        return Err(unexpected_block(touch.block_id()));
    }
    let block = required_block(record, HEAP)?.tag.block;
    page.heap_tuple_mut(offnum)?.set_ctid(ItemPointer {
        block,
        offset: offnum,
    });
    Ok(Effect::changed())
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapConfirm { offnum } = HeapConfirm::decode(record.main_data)?;
    let _ = write!(out, "off {offnum}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::testing::{TUPLE, heap_block, heap_page, record};

    #[test]
    fn ctid_becomes_the_tuples_own_place() {
        let confirm = record(10, 0x50, &[2, 0]).with(heap_block(0, 0xA_000B, &[]));
        let mut page = heap_page(2);
        assert_eq!(confirm.redo_touch(0, &mut page).unwrap(), Effect::changed());
        let mut expected = TUPLE;
        expected[12..18].copy_from_slice(&[0x0A, 0, 0x0B, 0, 2, 0]);
        assert_eq!(page.item(2).unwrap(), &expected);
        assert_eq!(page.item(1).unwrap(), &TUPLE);
    }

    #[test]
    fn text_and_truncation() {
        let confirm = record(10, 0x50, &[2, 0]).with(heap_block(0, 0, &[]));
        assert_eq!(confirm.text(), "off 2");
        confirm.cut_everywhere(&heap_page(2));
    }
}
