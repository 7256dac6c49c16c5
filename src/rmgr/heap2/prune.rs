//! PRUNE: tuples nobody can see any more are removed and the page is compacted.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::{ItemId, Page};
use crate::rmgr::heap::required_block;
use crate::rmgr::heap::vm_clear::HEAP;
use crate::rmgr::unexpected_block;
use crate::rmgr::{Effect, PageState, RmgrError, Touch};
use crate::types::{Cursor, ShortRead, TransactionId};

/// Main data of PRUNE, 8 bytes. Block 0 has line pointer numbers of two bytes each: pairs from
/// and to for the redirected ones, the dead ones, and up to the end those now unused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_prune")]
struct HeapPrune {
    /// Offset 0: `latestRemovedXid`. Queries on a standby wait for it, redo of the page does not.
    latest_removed_xid: TransactionId,
    /// Offset 4: pairs.
    nredirected: u16,
    /// Offset 6.
    ndead: u16,
}

impl HeapPrune {
    fn decode(bytes: &[u8]) -> Result<HeapPrune, ShortRead> {
        let mut c = Cursor::new("xl_heap_prune", bytes);
        Ok(HeapPrune {
            latest_removed_xid: TransactionId(c.u32("latestRemovedXid")?),
            nredirected: c.u16("nredirected")?,
            ndead: c.u16("ndead")?,
        })
    }
}

/// `heap_xlog_prune`. The free space map learns of the page whether or not it had to change,
/// because the map is not in a page image.
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

/// `heap_page_prune_execute`. The hints that the primary also changed, pd_prune_xid and
/// PD_PAGE_FULL, stay as they are.
fn execute(record: &Record<'_>, page: &mut Page) -> Result<(), RmgrError> {
    let prune = HeapPrune::decode(record.main_data)?;
    let mut offsets = Cursor::new("xl_heap_prune offsets", required_block(record, HEAP)?.data);
    for _ in 0..prune.nredirected {
        let from = offsets.u16("redirected from")?;
        let to = offsets.u16("redirected to")?;
        page.set_item_id(from, ItemId::redirect(to))?;
    }
    for _ in 0..prune.ndead {
        page.set_item_id(offsets.u16("nowdead")?, ItemId::dead())?;
    }
    while !offsets.is_empty() {
        page.set_item_id(offsets.u16("nowunused")?, ItemId::UNUSED)?;
    }
    page.repair_fragmentation(record.format.prune_truncates_line_pointers)?;
    Ok(())
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapPrune {
        latest_removed_xid,
        nredirected,
        ndead,
    } = HeapPrune::decode(record.main_data)?;
    let _ = write!(
        out,
        "latestRemovedXid {latest_removed_xid} nredirected {nredirected} ndead {ndead}"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{LpFlags, PD_ALL_VISIBLE, PD_HAS_FREE_LINES, PD_PAGE_FULL};
    use crate::rmgr::testing::{heap_block, heap_page, record};

    /// One redirect, one dead.
    const MAIN_DATA: [u8; 8] = [0x14, 0x13, 0x12, 0x11, 1, 0, 1, 0];
    /// 1 to 4; 2; 3 and 6.
    const DATA: [u8; 10] = [1, 0, 4, 0, 2, 0, 3, 0, 6, 0];

    #[test]
    fn pointers_change_and_the_page_is_compacted() {
        let prune = record(9, 0x10, &MAIN_DATA).with(heap_block(0, 0, &DATA));
        let mut page = heap_page(6);
        for offset in 1..=6 {
            page.item_mut(offset).unwrap()[24] = offset as u8;
        }
        page.set_prune_xid(TransactionId(77));
        page.set_flags(PD_PAGE_FULL | PD_ALL_VISIBLE);
        let effect = prune.redo_touch(0, &mut page).unwrap();
        let ids = (1..=5)
            .map(|o| page.item_id(o).unwrap())
            .collect::<Vec<_>>();
        let expected = [
            ItemId::redirect(4),
            ItemId::dead(),
            ItemId::UNUSED,
            ItemId::normal(8160, 32),
            ItemId::normal(8128, 32),
        ];
        assert_eq!(ids, expected);
        // Line pointer 6 was the last and is cut off.
        assert_eq!(
            (page.max_offset(), page.lower(), page.upper()),
            (5, 44, 8128)
        );
        assert_eq!(
            (page.item(4).unwrap()[24], page.item(5).unwrap()[24]),
            (4, 5)
        );
        assert_eq!(
            page.flags(),
            PD_PAGE_FULL | PD_ALL_VISIBLE | PD_HAS_FREE_LINES
        );
        assert_eq!(page.prune_xid(), TransactionId(77));
        assert_eq!(effect, Effect::changed().with_free_space(8128 - 44 - 4));
    }

    #[test]
    fn the_free_space_map_learns_of_pages_that_need_nothing() {
        let prune = record(9, 0x10, &MAIN_DATA).with(heap_block(0, 0, &DATA));
        for state in [PageState::Done, PageState::Restored] {
            let effect = prune.redo_idle(state, &heap_page(1));
            assert_eq!(effect, Effect::none().with_free_space(8160 - 28 - 4));
        }
    }

    #[test]
    fn a_pointer_that_is_not_there_is_an_error() {
        let prune = record(9, 0x10, &MAIN_DATA).with(heap_block(0, 0, &DATA));
        let mut page = heap_page(5);
        assert!(prune.redo_touch(0, &mut page).is_err());
        assert_eq!(page.item_id(2).unwrap().flags(), LpFlags::Dead);
        let odd = record(9, 0x10, &MAIN_DATA).with(heap_block(0, 0, &DATA[..9]));
        assert!(odd.redo_touch(0, &mut heap_page(6)).is_err());
    }

    #[test]
    fn text_and_truncation() {
        let prune = record(9, 0x10, &MAIN_DATA).with(heap_block(0, 0, &DATA));
        assert_eq!(
            prune.text(),
            "latestRemovedXid 286397204 nredirected 1 ndead 1"
        );
        prune.cut_everywhere(&heap_page(6));
    }
}
