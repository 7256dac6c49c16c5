//! PRUNE: tuples nobody can see any more are removed and the page is compacted.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::{ItemId, Page};
use crate::rmgr::heap::vm_clear::HEAP;
use crate::rmgr::heap::{block_id, required_block, unexpected_block};
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
