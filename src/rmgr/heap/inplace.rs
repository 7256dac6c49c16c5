//! INPLACE: a tuple is overwritten without a new version, as VACUUM does to pg_class.

use std::fmt::Write;

use super::vm_clear::HEAP;
use super::{block_id, required_block, unexpected_block};
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
    if block_id(touch) != HEAP {
        return Err(unexpected_block(touch));
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
