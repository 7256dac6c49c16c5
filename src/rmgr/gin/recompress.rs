//! Leaves of posting trees: what an insertion or VACUUM does to the segments of a page.
//! VACUUM_DATA_LEAF_PAGE is nothing but this; INSERT is it on a leaf.

use super::page::{self, GIN_COMPRESSED, Level, Opaque};
use super::posting_list::{PostingList, encode, merge};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::page::heap_tuple::ItemPointer;
use crate::rmgr::fields::append;
use crate::types::Cursor;

/// `GIN_SEGMENT_*`: what happens to one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action<'w> {
    /// The segment goes.
    Delete,
    /// A new one comes before it, or after the last.
    Insert(PostingList<'w>),
    /// Another one takes its place.
    Replace(PostingList<'w>),
    /// These TIDs, six bytes each, are packed into it.
    AddItems(&'w [u8]),
}

/// One step of a recompression.
enum Step<'w> {
    /// An action on segment `segno` of the original page, from 0.
    Action(u8, Action<'w>),
    /// An action of a kind that does not exist; where it ends cannot be known.
    Unknown(u8, u8),
}

/// Block data (`ginxlogRecompressDataLeaf`): a count at offset 0, then the actions, each a segment
/// number, a kind and what the kind needs.
#[doc(alias = "ginxlogRecompressDataLeaf")]
struct Recompress<'w> {
    actions_left: u16,
    cursor: Cursor<'w>,
}

impl<'w> Recompress<'w> {
    fn parse(data: &'w [u8]) -> Result<Recompress<'w>, RmgrError> {
        let mut cursor = Cursor::new("ginxlogRecompressDataLeaf", data);
        let actions_left = cursor.u16("nactions")?;
        Ok(Recompress {
            actions_left,
            cursor,
        })
    }

    /// The next step, `None` after the last.
    fn next(&mut self) -> Result<Option<Step<'w>>, RmgrError> {
        let Some(left) = self.actions_left.checked_sub(1) else {
            return Ok(None);
        };
        self.actions_left = left;
        let segno = self.cursor.u8("segno")?;
        let action = match self.cursor.u8("type")? {
            1 => Action::Delete,
            2 => Action::Insert(self.segment()?),
            3 => Action::Replace(self.segment()?),
            4 => {
                let nitems = usize::from(self.cursor.u16("nitems")?);
                let bytes = nitems * ItemPointer::BYTES;
                Action::AddItems(self.cursor.bytes("items", bytes)?)
            }
            unknown => return Ok(Some(Step::Unknown(segno, unknown))),
        };
        Ok(Some(Step::Action(segno, action)))
    }

    fn segment(&mut self) -> Result<PostingList<'w>, RmgrError> {
        let (segment, _) = PostingList::split(self.cursor.clone().rest())?;
        self.cursor.skip("segment", segment.bytes().len())?;
        Ok(segment)
    }
}

/// `desc_recompress_leaf`.
pub(super) fn desc(data: &[u8], out: &mut String) -> Result<(), RmgrError> {
    let mut steps = Recompress::parse(data)?;
    append(out, format_args!(" {} segments:", steps.actions_left));
    while let Some(step) = steps.next()? {
        let (segno, action) = match step {
            Step::Action(segno, action) => (segno, action),
            Step::Unknown(segno, kind) => {
                append(out, format_args!(" {segno} unknown action {kind} ???"));
                break;
            }
        };
        append(out, format_args!(" {segno} "));
        match action {
            Action::AddItems(items) => {
                let nitems = items.len() / ItemPointer::BYTES;
                append(out, format_args!("(add {nitems} items)"));
            }
            Action::Delete => out.push_str("(delete)"),
            Action::Insert(_) => out.push_str("(insert)"),
            Action::Replace(_) => out.push_str("(replace)"),
        }
    }
    Ok(())
}

/// `ginRedoVacuumDataLeafPage`.
pub(super) fn redo_vacuum(block: &BlockRef<'_>, page: &mut Page) -> Result<(), RmgrError> {
    match block.id {
        0 => redo(block.data, page),
        id => Err(unexpected_block(id)),
    }
}

/// `XLOG_GIN_VACUUM_DATA_LEAF_PAGE` in words.
pub(super) fn desc_vacuum(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let block = record.block(0).ok_or(RmgrError::MissingBlock(0))?;
    if super::desc_image(block, out) {
        return Ok(());
    }
    desc(block.data, out)
}

/// `ginRedoRecompress`. PostgreSQL writes from left to right and never beyond the new end, so that
/// what lies behind it is stale; the same bytes come from building the new contents beside the
/// page. Where PostgreSQL asserts, a contradiction is an error here, and so is a record without
/// any action, which is never written and would empty the page.
pub(super) fn redo(data: &[u8], page: &mut Page) -> Result<(), RmgrError> {
    let mut steps = Recompress::parse(data)?;
    let opaque = page::posting_tree_page(page, Level::Leaf)?;
    if steps.actions_left == 0 {
        return Err(RmgrError::corrupt("recompression without an action"));
    }
    if opaque.flags & GIN_COMPRESSED == 0 {
        compress_old_page(page, opaque)?;
    }
    let old = page::data(page, page::posting_lists_bytes(page)?)?;
    let mut leaf = Rebuild {
        segno: 0,
        rest: old,
        built: Vec::with_capacity(old.len()),
    };
    while let Some(step) = steps.next()? {
        match step {
            Step::Action(segno, action) => leaf.apply(segno.into(), action)?,
            Step::Unknown(_, kind) => {
                return Err(RmgrError::corrupt(format!(
                    "unexpected GIN leaf action: {kind}"
                )));
            }
        }
    }
    let built = [&leaf.built[..], leaf.rest].concat();
    page::set_data(page, 0, &built)
}

/// A leaf written before 9.4, which only pg_upgrade can have brought here, has plain TIDs.
fn compress_old_page(page: &mut Page, mut opaque: Opaque) -> Result<(), RmgrError> {
    let bytes = usize::from(opaque.maxoff) * ItemPointer::BYTES;
    let segment = encode(&tids(page::data(page, bytes)?))?;
    page::set_data(page, 0, &segment)?;
    opaque.flags |= GIN_COMPRESSED;
    opaque.maxoff = 0;
    opaque.write(page);
    Ok(())
}

/// Whole TIDs, six bytes each.
fn tids(bytes: &[u8]) -> Vec<ItemPointer> {
    let tid = |bytes: &[u8]| ItemPointer::from_bytes(bytes.try_into().expect("six bytes"));
    bytes.chunks_exact(ItemPointer::BYTES).map(tid).collect()
}

/// A leaf on the way from its old segments to its new ones.
struct Rebuild<'p> {
    /// Number of the first segment of `rest` on the original page.
    segno: usize,
    /// Old segments that no action has reached.
    rest: &'p [u8],
    /// New contents so far.
    built: Vec<u8>,
}

impl<'p> Rebuild<'p> {
    fn take(&mut self) -> Result<PostingList<'p>, RmgrError> {
        let (segment, rest) = PostingList::split(self.rest)?;
        self.rest = rest;
        self.segno += 1;
        Ok(segment)
    }

    fn apply(&mut self, segno: usize, action: Action<'_>) -> Result<(), RmgrError> {
        if segno < self.segno {
            return Err(RmgrError::corrupt(format!(
                "action on segment {segno} after segment {}",
                self.segno
            )));
        }
        while self.segno < segno {
            let kept = self.take()?;
            self.built.extend(kept.bytes());
        }
        match action {
            Action::Delete => {
                self.take()?;
            }
            Action::Insert(new) => self.built.extend(new.bytes()),
            Action::Replace(new) => {
                self.take()?;
                self.built.extend(new.bytes());
            }
            Action::AddItems(items) => {
                let old = self.take()?.decode()?;
                self.built.extend(encode(&merge(&tids(items), &old))?);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{clean, data_page, fails, opaque, redone};
    use super::*;
    use crate::rmgr::btree::testing::block;

    const LEAF: u16 = GIN_DATA | GIN_LEAF | GIN_COMPRESSED;
    /// (1,1) (1,3), with padding; (2,1) (2,2) (2,3); (4,5).
    const A: &[u8] = &[0, 0, 1, 0, 1, 0, 1, 0, 2, 0];
    const B: &[u8] = &[0, 0, 2, 0, 1, 0, 2, 0, 1, 1];
    const C: &[u8] = &[0, 0, 4, 0, 5, 0, 0, 0];
    /// A new segment: (3,1).
    const NEW: &[u8] = &[0, 0, 3, 0, 1, 0, 0, 0];

    fn leaf() -> Page {
        data_page(opaque(LEAF, 0), &[A, B, C].concat())
    }

    /// Block data of `count` actions.
    fn actions(count: u8, actions: &[&[u8]]) -> Vec<u8> {
        [&[count, 0][..], &actions.concat()].concat()
    }

    #[track_caller]
    fn check(count: u8, list: &[&[u8]], expected: &[&[u8]]) {
        let data = actions(count, list);
        let page = redone(0x90, &[], &[block(0, 4, &data)], 0, &leaf());
        let contents = expected.concat();
        // Behind the new end the old bytes stay.
        let mut whole = leaf();
        whole.bytes_mut()[32..32 + contents.len()].copy_from_slice(&contents);
        whole.set_lower((32 + contents.len()) as u16);
        assert!(page == whole, "{:?}", &page.bytes()[32..80]);
    }

    #[test]
    fn actions_name_segments_of_the_original_page() {
        check(1, &[&[0, 1]], &[B, C]);
        check(1, &[&[2, 1]], &[A, B]);
        check(3, &[&[0, 1], &[1, 1], &[2, 1]], &[]);
        check(1, &[&[1, 2], NEW], &[A, NEW, B, C]);
        check(1, &[&[3, 2], NEW], &[A, B, C, NEW]);
        check(1, &[&[1, 3], NEW], &[A, NEW, C]);
        check(3, &[&[0, 3], NEW, &[1, 2], A, &[1, 1]], &[NEW, A, C]);
        check(2, &[&[1, 2], NEW, &[3, 2], A], &[A, NEW, B, C, A]);
    }

    #[test]
    fn added_items_are_merged_and_packed_again() {
        // (1,2) between, (1,131) behind: distances 1, 1, 128.
        let add = [0, 4, 2, 0, 0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 131, 0];
        let packed = [0, 0, 1, 0, 1, 0, 4, 0, 1, 1, 0x80, 1];
        check(1, &[&add], &[&packed, B, C]);
        // An odd count of bytes gets its padding.
        let add = [2, 4, 1, 0, 0, 0, 4, 0, 6, 0];
        let packed = [0, 0, 4, 0, 5, 0, 1, 0, 1, 0];
        check(1, &[&add], &[A, B, &packed]);
    }

    #[test]
    fn leaves_of_old_versions_are_packed_first() {
        // (1,1) (1,3) (4,5) as they are, and a pd_lower that says nothing.
        let tids = [0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 3, 0, 0, 0, 4, 0, 5, 0];
        let mut old = data_page(opaque(GIN_DATA | GIN_LEAF, 3), &tids);
        old.set_lower(24);
        let data = actions(1, &[&[1, 2], NEW]);
        let page = redone(0x90, &[], &[block(0, 4, &data)], 0, &old);
        let packed = [0, 0, 1, 0, 1, 0, 3, 0, 2, 0x82, 0x30, 0];
        assert_eq!(page.bytes()[32..52], [&packed[..], NEW].concat());
        assert_eq!(page.lower(), 52);
        assert_eq!(Opaque::read(&page), Ok(opaque(LEAF, 0)));

        let mut empty = data_page(opaque(GIN_DATA | GIN_LEAF, 0), &[]);
        empty.set_lower(24);
        let data = actions(1, &[&[0, 2], NEW]);
        let page = redone(0x90, &[], &[block(0, 4, &data)], 0, &empty);
        assert!(page == data_page(opaque(LEAF, 0), NEW));
    }

    #[test]
    fn contradicting_actions_are_errors() {
        let check = |data: &[u8], page: &Page| fails(0x90, &[], &[block(0, 4, data)], 0, page);
        assert!(!check(&actions(1, &[&[0, 1]]), &leaf()));
        assert!(check(&actions(0, &[]), &leaf()), "no action");
        assert!(check(&actions(1, &[&[3, 1]]), &leaf()), "beyond the end");
        assert!(check(&actions(1, &[&[4, 2], NEW]), &leaf()), "beyond");
        assert!(check(&actions(1, &[&[0, 5]]), &leaf()), "unknown action");
        let backwards = actions(2, &[&[1, 1], &[1, 1]]);
        assert!(check(&backwards, &leaf()), "the same segment twice");
        for flags in [GIN_LEAF | GIN_COMPRESSED, GIN_DATA, 0] {
            let other = data_page(opaque(flags, 0), A);
            assert!(check(&actions(1, &[&[0, 1]]), &other), "{flags:#x}");
        }
        let mut low = leaf();
        low.set_lower(31);
        assert!(check(&actions(1, &[&[0, 2], NEW]), &low));
        let full = data_page(opaque(LEAF, 0), &C.repeat(1019));
        assert!(check(&actions(1, &[&[0, 2], NEW]), &full), "no room");
        assert!(check(&actions(1, &[&[0, 1]]), &clean(opaque(0, 0))));
        let data = actions(
            3,
            &[&[0, 2], A, &[0, 3], NEW, &[1, 4, 1, 0, 0, 0, 2, 0, 9, 0]],
        );
        assert!(!check(&data, &leaf()));
        for len in 0..data.len() {
            assert!(check(&data[..len], &leaf()), "{len}");
        }
    }
}
