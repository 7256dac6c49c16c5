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

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{
        block, fails, leaf, page_of, plain, posting, rebuilt, redone, tid, words,
    };

    #[test]
    fn dedup_merges_each_interval_and_copies_the_rest() {
        let mut opaque = leaf(8);
        opaque.flags |= BTP_HAS_GARBAGE;
        opaque.cycle_id = 77;
        let high = plain(9, 0, 1);
        let before = page_of(
            opaque,
            &[
                high.clone(),
                plain(1, 1, 1),
                plain(2, 1, 2),
                posting(2, &[tid(1, 3), tid(1, 4)]),
                plain(2, 1, 5),
                plain(3, 1, 6),
                plain(4, 1, 7),
                plain(4, 1, 8),
            ],
        );
        let data = words(&[3, 3, 7, 2]);
        let page = redone(0x60, &words(&[2]), &[block(0, 4, &data)], 0, &before);
        let expected = [
            high,
            plain(1, 1, 1),
            posting(2, &[tid(1, 2), tid(1, 3), tid(1, 4), tid(1, 5)]),
            plain(3, 1, 6),
            posting(4, &[tid(1, 7), tid(1, 8)]),
        ];
        opaque.flags = BTP_LEAF;
        assert!(page == rebuilt(opaque, &expected));
        // Items after an interval are not merged into it, and all intervals must match.
        for wrong in [[3, 3, 8, 2], [3, 9, 7, 2], [2, 1, 7, 2], [0, 0, 0, 0]] {
            let data = words(&wrong);
            assert!(
                fails(0x60, &words(&[2]), &[block(0, 4, &data)], 0, &before),
                "{wrong:?}"
            );
        }
        let none = page_of(leaf(0), &[]);
        assert!(fails(0x60, &words(&[0]), &[block(0, 4, &[])], 0, &none));
    }
}
