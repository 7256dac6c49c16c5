//! VACUUM: dead line pointers that no index points to any more become unused.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::{ItemId, Page};
use crate::rmgr::heap::required_block;
use crate::rmgr::heap::vm_clear::HEAP;
use crate::rmgr::unexpected_block;
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
    if touch.block_id() != HEAP {
        return Err(unexpected_block(touch.block_id()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PD_HAS_FREE_LINES;
    use crate::rmgr::testing::{TUPLE, heap_block, heap_page, record};

    /// Tuples 1 and 3; 2 and 4 are dead.
    fn page_with_dead() -> Page {
        let mut page = heap_page(4);
        page.set_item_id(2, ItemId::dead()).unwrap();
        page.set_item_id(4, ItemId::dead()).unwrap();
        page
    }

    #[test]
    fn dead_pointers_become_unused_and_no_tuple_moves() {
        let vacuum = record(9, 0x20, &[2, 0]).with(heap_block(0, 0, &[2, 0, 4, 0]));
        let mut page = page_with_dead();
        let effect = vacuum.redo_touch(0, &mut page).unwrap();
        assert_eq!((page.max_offset(), page.upper()), (3, 8064));
        assert_eq!(page.item_id(2).unwrap(), ItemId::UNUSED);
        assert_eq!(page.item_id(3).unwrap(), ItemId::normal(8096, 32));
        assert_eq!(page.item(3).unwrap(), &TUPLE);
        assert_eq!(page.flags(), PD_HAS_FREE_LINES);
        assert_eq!(effect, Effect::changed().with_free_space(8064 - 36 - 4));
    }

    #[test]
    fn the_free_space_map_learns_of_pages_that_need_nothing() {
        let vacuum = record(9, 0x20, &[2, 0]).with(heap_block(0, 0, &[2, 0, 4, 0]));
        for state in [PageState::Done, PageState::Restored] {
            let effect = vacuum.redo_idle(state, &heap_page(1));
            assert_eq!(effect, Effect::none().with_free_space(8160 - 28 - 4));
        }
    }

    #[test]
    fn text_and_truncation() {
        let vacuum = record(9, 0x20, &[2, 0]).with(heap_block(0, 0, &[2, 0, 4, 0]));
        assert_eq!(vacuum.text(), "nunused 2");
        vacuum.cut_everywhere(&page_with_dead());
        let cut = record(9, 0x20, &[2, 0]).with(heap_block(0, 0, &[2, 0, 4]));
        assert!(cut.redo_touch(0, &mut page_with_dead()).is_err());
    }
}
