//! VACUUM: dead line pointers that no index points to any more become unused.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::{ItemId, Page};
use crate::rmgr::heap::vm_clear::HEAP;
use crate::rmgr::heap::{block_id, required_block, unexpected_block};
use crate::rmgr::{Effect, PageState, RmgrError, Touch};
use crate::types::{Cursor, ShortRead};

/// Main data of VACUUM, 2 bytes. Block 0 has the line pointer numbers, two bytes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_vacuum")]
struct HeapVacuum {
    /// Offset 0.
    nunused: u16,
}

impl HeapVacuum {
    fn decode(bytes: &[u8]) -> Result<HeapVacuum, ShortRead> {
        let mut c = Cursor::new("xl_heap_vacuum", bytes);
        Ok(HeapVacuum {
            nunused: c.u16("nunused")?,
        })
    }
}

/// `heap_xlog_vacuum`. As for PRUNE, the free space map always learns of the page.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    if block_id(touch) != HEAP {
        return Err(unexpected_block(touch));
    }
    let effect = match state {
        PageState::Needs => {
            execute(record, page)?;
            Effect::changed()
        }
        PageState::Done | PageState::Restored => Effect::none(),
    };
    Ok(effect.with_free_space(page.heap_free_space()))
}

/// Dead line pointers have no storage, so no tuple moves.
fn execute(record: &Record<'_>, page: &mut Page) -> Result<(), RmgrError> {
    let HeapVacuum { nunused } = HeapVacuum::decode(record.main_data)?;
    let mut offsets = Cursor::new("xl_heap_vacuum offsets", required_block(record, HEAP)?.data);
    for _ in 0..nunused {
        page.set_item_id(offsets.u16("nowunused")?, ItemId::UNUSED)?;
    }
    page.truncate_line_pointers()?;
    Ok(())
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapVacuum { nunused } = HeapVacuum::decode(record.main_data)?;
    let _ = write!(out, "nunused {nunused}");
    Ok(())
}
