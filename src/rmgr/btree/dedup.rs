//! DEDUP: equal tuples of a leaf page are merged into posting lists.

use std::fmt;

use super::page::{self, BTP_HAS_GARBAGE, Opaque, P_HIKEY};
use super::tuple::{IndexTuple, form_posting};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, OffsetNumber, ShortRead};

/// Main data (`xl_btree_dedup`, 2 bytes).
#[doc(alias = "xl_btree_dedup")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dedup {
    /// Offset 0: intervals in the data of block 0.
    pub(super) nintervals: u16,
}

impl Dedup {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<Dedup, ShortRead> {
        let mut c = Cursor::new("xl_btree_dedup", main);
        Ok(Dedup {
            nintervals: c.u16("nintervals")?,
        })
    }
}

impl fmt::Display for Dedup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nintervals {}", self.nintervals)
    }
}

/// Items that become one tuple (`BTDedupInterval`, 4 bytes).
#[doc(alias = "BTDedupInterval")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Interval {
    /// Offset 0: the first item.
    base_off: OffsetNumber,
    /// Offset 2: how many items there are.
    nitems: u16,
}

/// The tuple in the making (`BTDedupState`).
struct Pending<'p> {
    base: IndexTuple<'p>,
    base_off: OffsetNumber,
    nitems: u16,
    tids: Vec<u8>,
}

impl<'p> Pending<'p> {
    /// `_bt_dedup_start_pending`.
    fn start(base: IndexTuple<'p>, base_off: OffsetNumber) -> Result<Pending<'p>, RmgrError> {
        Ok(Pending {
            base,
            base_off,
            nitems: 1,
            tids: base.heap_tids()?.to_vec(),
        })
    }

    /// `_bt_dedup_save_htid`.
    fn merge(&mut self, item: IndexTuple<'p>) -> Result<(), RmgrError> {
        self.tids.extend_from_slice(item.heap_tids()?);
        self.nitems += 1;
        Ok(())
    }

    /// True if the next item belongs here too.
    fn continues(&self, interval: Option<&Interval>) -> bool {
        interval.is_some_and(|i| i.base_off == self.base_off && self.nitems < i.nitems)
    }

    /// `_bt_dedup_finish_pending`: adds the tuple; an item that was merged with no other stays
    /// as it is. Returns how many intervals are done by it.
    fn finish(self, page: &mut Page) -> Result<usize, RmgrError> {
        if self.nitems == 1 {
            page::append(page, self.base.bytes())?;
            return Ok(0);
        }
        page::append(page, &form_posting(self.base, &self.tids)?)?;
        Ok(1)
    }
}

/// `btree_xlog_dedup`. The page is built anew, items in line pointer order; marks of dead items
/// are lost with the old page. The special area stays but for `BTP_HAS_GARBAGE`.
pub(super) fn redo(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    if block.id != 0 {
        return Err(unexpected_block(block.id));
    }
    let Dedup { nintervals } = Dedup::parse(record.main_data)?;
    let mut c = Cursor::new("DEDUP block data", block.data);
    let intervals = (0..nintervals)
        .map(|_| {
            Ok(Interval {
                base_off: c.u16("baseoff")?,
                nitems: c.u16("nitems")?,
            })
        })
        .collect::<Result<Vec<_>, ShortRead>>()?;

    let mut opaque = Opaque::read(page)?;
    opaque.flags &= !BTP_HAS_GARBAGE;
    let mut rebuilt = page::empty(opaque);
    if !opaque.is_rightmost() {
        page::append(&mut rebuilt, page.item(P_HIKEY)?)?;
    }
    merge_items(page, opaque.first_data_key(), &intervals, &mut rebuilt)?;
    *page = rebuilt;
    Ok(())
}

/// Copies the items from `first` on, merging those of each interval.
fn merge_items(
    page: &Page,
    first: OffsetNumber,
    intervals: &[Interval],
    rebuilt: &mut Page,
) -> Result<(), RmgrError> {
    let mut pending = Pending::start(IndexTuple::first(page.item(first)?)?, first)?;
    let mut done = 0;
    for off in first + 1..=page.max_offset() {
        let item = IndexTuple::first(page.item(off)?)?;
        if pending.continues(intervals.get(done)) {
            pending.merge(item)?;
        } else {
            done += pending.finish(rebuilt)?;
            pending = Pending::start(item, off)?;
        }
    }
    done += pending.finish(rebuilt)?;
    if done != intervals.len() {
        return Err(RmgrError::corrupt(format!(
            "{done} of {} deduplication intervals match the page",
            intervals.len()
        )));
    }
    Ok(())
}
