//! Line pointers and the operations on items (`src/backend/storage/page/bufpage.c`).

use smallvec::SmallVec;

use super::{MAX_HEAP_TUPLES_PER_PAGE, PAGE_HEADER_BYTES, PD_HAS_FREE_LINES, Page, PageError};
use crate::types::{BLOCK_BYTES, OffsetNumber};

/// Bytes of a line pointer.
const ITEM_ID_BYTES: usize = 4;

/// State of a line pointer (`lp_flags`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum LpFlags {
    /// `LP_UNUSED`.
    Unused = 0,
    /// `LP_NORMAL`.
    Normal = 1,
    /// `LP_REDIRECT`: the offset field is the number of another line pointer.
    Redirect = 2,
    /// `LP_DEAD`.
    Dead = 3,
}

/// A line pointer (`ItemIdData`): 15 bits of offset, 2 of flags, 15 of length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemId(pub u32);

impl ItemId {
    /// An unused line pointer.
    pub const UNUSED: ItemId = ItemId(0);

    /// `ItemIdSetNormal`. Offset and length in bytes, both below 2^15.
    pub fn normal(offset: u16, len: u16) -> ItemId {
        ItemId(u32::from(offset) | (LpFlags::Normal as u32) << 15 | u32::from(len) << 17)
    }

    /// `ItemIdSetRedirect`.
    pub fn redirect(to: OffsetNumber) -> ItemId {
        ItemId(u32::from(to & 0x7FFF) | (LpFlags::Redirect as u32) << 15)
    }

    /// `ItemIdSetDead`: without storage.
    pub fn dead() -> ItemId {
        ItemId((LpFlags::Dead as u32) << 15)
    }

    /// `lp_off`, in bytes; for a redirect the line pointer it leads to.
    pub fn offset(self) -> u16 {
        (self.0 & 0x7FFF) as u16
    }

    /// `lp_flags`.
    pub fn flags(self) -> LpFlags {
        match self.0 >> 15 & 3 {
            0 => LpFlags::Unused,
            1 => LpFlags::Normal,
            2 => LpFlags::Redirect,
            _ => LpFlags::Dead,
        }
    }

    /// `lp_len`, in bytes.
    pub fn len(self) -> u16 {
        (self.0 >> 17) as u16
    }

    /// `ItemIdHasStorage`, turned round: there are no bytes behind this pointer.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// `ItemIdIsUsed`.
    pub fn is_used(self) -> bool {
        self.flags() != LpFlags::Unused
    }

    fn with_offset(self, offset: u16) -> ItemId {
        ItemId(self.0 & !0x7FFF | u32::from(offset))
    }

    fn with_len(self, len: u16) -> ItemId {
        ItemId(self.0 & 0x1_FFFF | u32::from(len) << 17)
    }

    /// The same pointer with other flags (`ItemIdMarkDead`, the masks).
    pub fn with_flags(self, flags: LpFlags) -> ItemId {
        ItemId(self.0 & !(3 << 15) | (flags as u32) << 15)
    }
}

fn slot(offset: OffsetNumber) -> usize {
    PAGE_HEADER_BYTES + ITEM_ID_BYTES * (usize::from(offset) - 1)
}

/// A tuple that keeps its storage through a compaction.
#[derive(Clone, Copy)]
struct Kept {
    /// Line pointer that will hold it, from 1.
    target: OffsetNumber,
    start: u16,
    aligned: u16,
}

/// Bytes an item of `len` bytes occupies.
fn aligned(len: u16) -> u16 {
    len.next_multiple_of(8)
}

impl Page {
    /// `PageGetMaxOffsetNumber`: line pointers on the page. Never more than fit on a page,
    /// whatever pd_lower says.
    pub fn max_offset(&self) -> OffsetNumber {
        let lower = usize::from(self.lower()).min(BLOCK_BYTES);
        (lower.saturating_sub(PAGE_HEADER_BYTES) / ITEM_ID_BYTES) as u16
    }

    /// Line pointer `offset`, from 1.
    pub fn item_id(&self, offset: OffsetNumber) -> Result<ItemId, PageError> {
        let max = self.max_offset();
        if offset == 0 || offset > max {
            return Err(PageError::OffsetOutOfRange { offset, max });
        }
        Ok(ItemId(self.u32_at(slot(offset))))
    }

    /// Replaces line pointer `offset`.
    pub fn set_item_id(&mut self, offset: OffsetNumber, id: ItemId) -> Result<(), PageError> {
        self.item_id(offset)?;
        self.put_u32(slot(offset), id.0);
        Ok(())
    }

    /// Where the bytes of item `offset` lie on the page. The pointer must have storage, whatever
    /// its flags.
    pub fn item_range(&self, offset: OffsetNumber) -> Result<std::ops::Range<usize>, PageError> {
        let id = self.item_id(offset)?;
        let (start, len) = (usize::from(id.offset()), usize::from(id.len()));
        if id.is_empty() || start < PAGE_HEADER_BYTES || start + len > BLOCK_BYTES {
            return Err(PageError::ItemOutOfPage {
                offset,
                start: id.offset(),
                len: id.len(),
            });
        }
        Ok(start..start + len)
    }

    /// The bytes of item `offset`.
    pub fn item(&self, offset: OffsetNumber) -> Result<&[u8], PageError> {
        let range = self.item_range(offset)?;
        Ok(&self.bytes()[range])
    }

    /// The bytes of item `offset`, to be changed.
    pub fn item_mut(&mut self, offset: OffsetNumber) -> Result<&mut [u8], PageError> {
        let range = self.item_range(offset)?;
        Ok(&mut self.bytes_mut()[range])
    }

    /// `PageAddItemExtended` with `PAI_OVERWRITE`: heap and BRIN. A line pointer that exists
    /// must be unused; otherwise `offset` must be the next one.
    pub fn add_item_overwrite(
        &mut self,
        item: &[u8],
        offset: OffsetNumber,
    ) -> Result<(), PageError> {
        let max = self.max_offset();
        if offset <= max && offset > 0 {
            let id = self.item_id(offset)?;
            if id.is_used() || !id.is_empty() {
                let (found, expected) = (id.flags(), "an unused one");
                return Err(PageError::ItemKind {
                    offset,
                    found,
                    expected,
                });
            }
        }
        self.place_item(item, offset, max)
    }

    /// `PageAddItemExtended` without flags: indexes. Line pointers from `offset` on move up.
    pub fn add_item(&mut self, item: &[u8], offset: OffsetNumber) -> Result<(), PageError> {
        let max = self.max_offset();
        if offset > 0 && offset <= max {
            let (lower, upper, _) = self.checked_bounds()?;
            let wanted = item.len().next_multiple_of(8) + ITEM_ID_BYTES;
            if wanted > upper - lower {
                return Err(self.no_room(item.len()));
            }
            self.bytes_mut()
                .copy_within(slot(offset)..slot(max + 1), slot(offset + 1));
            self.set_lower((lower + ITEM_ID_BYTES) as u16);
            return self.store_item(item, offset);
        }
        self.place_item(item, offset, max)
    }

    fn no_room(&self, bytes: usize) -> PageError {
        PageError::NoRoom {
            bytes,
            lower: self.lower(),
            upper: self.upper(),
        }
    }

    /// Adds at `offset`, which is an existing, free line pointer or the one after the last.
    fn place_item(
        &mut self,
        item: &[u8],
        offset: OffsetNumber,
        max: OffsetNumber,
    ) -> Result<(), PageError> {
        let (lower, upper, _) = self.checked_bounds()?;
        if offset == 0 || offset > max + 1 {
            return Err(PageError::OffsetOutOfRange { offset, max });
        }
        let grown = if offset > max { ITEM_ID_BYTES } else { 0 };
        if item.len().next_multiple_of(8) + lower + grown > upper {
            return Err(self.no_room(item.len()));
        }
        self.set_lower((lower + grown) as u16);
        self.store_item(item, offset)
    }

    /// Takes room below pd_upper. Bytes between the item and its aligned end keep what the hole
    /// held, as PostgreSQL leaves them.
    fn store_item(&mut self, item: &[u8], offset: OffsetNumber) -> Result<(), PageError> {
        let upper = usize::from(self.upper()) - item.len().next_multiple_of(8);
        self.bytes_mut()[upper..upper + item.len()].copy_from_slice(item);
        self.put_u32(
            slot(offset),
            ItemId::normal(upper as u16, item.len() as u16).0,
        );
        self.set_upper(upper as u16);
        Ok(())
    }

    /// Checks that the storage of `id` lies between pd_upper and pd_special.
    fn checked_storage(
        &self,
        offset: OffsetNumber,
        id: ItemId,
        (upper, special): (usize, usize),
    ) -> Result<Kept, PageError> {
        let (start, len) = (id.offset(), id.len());
        if usize::from(start) < upper || usize::from(start) + usize::from(aligned(len)) > special {
            return Err(PageError::ItemOutOfPage { offset, start, len });
        }
        Ok(Kept {
            target: offset,
            start,
            aligned: aligned(len),
        })
    }

    /// `compactify_tuples`: the kept items, in the order given, are laid out downwards from
    /// pd_special. Everything below the new pd_upper keeps its old bytes.
    fn compactify(&mut self, kept: &[Kept], special: usize) -> Result<(), PageError> {
        let old = self.bytes().to_owned();
        let mut upper = special;
        for item in kept {
            let len = usize::from(item.aligned);
            if len + PAGE_HEADER_BYTES > upper {
                return Err(self.no_room(len));
            }
            upper -= len;
            let start = usize::from(item.start);
            self.bytes_mut()[upper..upper + len].copy_from_slice(&old[start..start + len]);
            let id = ItemId(self.u32_at(slot(item.target))).with_offset(upper as u16);
            self.put_u32(slot(item.target), id.0);
        }
        self.set_upper(upper as u16);
        Ok(())
    }

    /// `PageRepairFragmentation`: heap pruning's compaction. With `truncate` (15 and later)
    /// trailing unused line pointers are cut off, possibly all of them.
    pub fn repair_fragmentation(&mut self, truncate: bool) -> Result<(), PageError> {
        let (_, upper, special) = self.checked_bounds()?;
        let max = self.max_offset();
        let mut kept: SmallVec<[Kept; 300]> = SmallVec::new();
        let mut unused = 0u16;
        let mut last_used = 0;
        for offset in 1..=max {
            let id = self.item_id(offset)?;
            if id.is_used() {
                last_used = offset;
                if !id.is_empty() {
                    kept.push(self.checked_storage(offset, id, (upper, special))?);
                }
            } else {
                // Stale offset and length bits of an unused pointer are wiped.
                self.put_u32(slot(offset), ItemId::UNUSED.0);
                unused += 1;
            }
        }
        if kept.is_empty() {
            self.set_upper(special as u16);
        } else {
            self.compactify(&kept, special)?;
        }
        if truncate && last_used != max {
            unused -= max - last_used;
            self.set_lower(slot(last_used + 1) as u16);
        }
        self.set_free_lines(unused > 0);
        Ok(())
    }

    fn set_free_lines(&mut self, any: bool) {
        if any {
            self.set_flag(PD_HAS_FREE_LINES);
        } else {
            self.clear_flag(PD_HAS_FREE_LINES);
        }
    }

    /// `PageTruncateLinePointerArray`: cuts trailing unused line pointers, but keeps the first.
    pub fn truncate_line_pointers(&mut self) -> Result<(), PageError> {
        let max = self.max_offset();
        let mut trailing = 0;
        let mut any_left = false;
        for offset in (1..=max).rev() {
            let used = self.item_id(offset)?.is_used();
            match (used, any_left) {
                (false, false) if offset > 1 && trailing == max - offset => trailing += 1,
                (false, _) => {
                    any_left = true;
                    break;
                }
                (true, _) => {}
            }
        }
        if trailing > 0 {
            self.set_lower(slot(max - trailing + 1) as u16);
        }
        self.set_free_lines(any_left);
        Ok(())
    }

    /// Moves the bytes between pd_upper and `start` up by `size`, and every pointer with storage
    /// at or below `start` with them.
    fn close_gap(&mut self, start: usize, size: usize, max: OffsetNumber) {
        let upper = usize::from(self.upper());
        self.bytes_mut().copy_within(upper..start, upper + size);
        self.set_upper((upper + size) as u16);
        for offset in 1..=max {
            let id = ItemId(self.u32_at(slot(offset)));
            if !id.is_empty() && usize::from(id.offset()) <= start {
                self.put_u32(slot(offset), id.with_offset(id.offset() + size as u16).0);
            }
        }
    }

    /// `PageIndexTupleDelete`: removes line pointer `offset`; later ones move down.
    pub fn index_tuple_delete(&mut self, offset: OffsetNumber) -> Result<(), PageError> {
        let (lower, upper, special) = self.checked_bounds()?;
        let max = self.max_offset();
        let id = self.item_id(offset)?;
        let gone = self.checked_storage(offset, id, (upper, special))?;
        self.bytes_mut()
            .copy_within(slot(offset + 1)..slot(max + 1), slot(offset));
        self.set_lower((lower - ITEM_ID_BYTES) as u16);
        self.close_gap(gone.start.into(), gone.aligned.into(), max - 1);
        Ok(())
    }

    /// `PageIndexTupleDeleteNoCompact` (BRIN): as above, but the pointer becomes unused unless it
    /// is the last.
    pub fn index_tuple_delete_no_compact(&mut self, offset: OffsetNumber) -> Result<(), PageError> {
        let (lower, upper, special) = self.checked_bounds()?;
        let max = self.max_offset();
        let id = self.item_id(offset)?;
        let gone = self.checked_storage(offset, id, (upper, special))?;
        let mut left = max;
        if offset < max {
            self.put_u32(slot(offset), ItemId::UNUSED.0);
        } else {
            self.set_lower((lower - ITEM_ID_BYTES) as u16);
            left -= 1;
        }
        self.close_gap(gone.start.into(), gone.aligned.into(), left);
        Ok(())
    }

    /// `PageIndexMultiDelete`. `offsets` ascend. Up to two items go one at a time, last first,
    /// which keeps the physical order of the others; more are done by a compaction in line
    /// pointer order. The layouts differ, so the threshold matters.
    pub fn index_multi_delete(&mut self, offsets: &[OffsetNumber]) -> Result<(), PageError> {
        if offsets.len() <= 2 {
            return offsets
                .iter()
                .rev()
                .try_for_each(|o| self.index_tuple_delete(*o));
        }
        let (_, upper, special) = self.checked_bounds()?;
        let max = self.max_offset();
        let mut doomed = offsets.iter().copied().peekable();
        let mut kept: SmallVec<[Kept; 408]> = SmallVec::new();
        let mut ids: SmallVec<[ItemId; 408]> = SmallVec::new();
        for offset in 1..=max {
            if doomed.next_if_eq(&offset).is_some() {
                continue;
            }
            let id = self.item_id(offset)?;
            let mut item = self.checked_storage(offset, id, (upper, special))?;
            ids.push(id);
            item.target = ids.len() as u16;
            kept.push(item);
        }
        if let Some(offset) = doomed.next() {
            return Err(PageError::OffsetOutOfRange { offset, max });
        }
        for (i, id) in ids.iter().enumerate() {
            self.put_u32(slot(i as u16 + 1), id.0);
        }
        self.set_lower(slot(ids.len() as u16 + 1) as u16);
        if kept.is_empty() {
            self.set_upper(special as u16);
            Ok(())
        } else {
            self.compactify(&kept, special)
        }
    }

    /// `PageIndexTupleOverwrite`: replaces item `offset` by one of another length; the flags of
    /// the line pointer stay.
    pub fn index_tuple_overwrite(
        &mut self,
        offset: OffsetNumber,
        item: &[u8],
    ) -> Result<(), PageError> {
        let (lower, upper, special) = self.checked_bounds()?;
        let max = self.max_offset();
        let id = self.item_id(offset)?;
        let old = self.checked_storage(offset, id, (upper, special))?;
        let new_aligned = item.len().next_multiple_of(8);
        let room = upper - lower + usize::from(old.aligned);
        if new_aligned > room {
            return Err(self.no_room(item.len()));
        }
        let old_aligned = usize::from(old.aligned);
        let start = usize::from(old.start);
        let moved = (start + old_aligned) - new_aligned;
        if new_aligned != old_aligned {
            let new_upper = upper + old_aligned - new_aligned;
            self.bytes_mut().copy_within(upper..start, new_upper);
            self.set_upper(new_upper as u16);
            for other in 1..=max {
                let id = ItemId(self.u32_at(slot(other)));
                let at = usize::from(id.offset());
                if !id.is_empty() && at <= start {
                    // A corrupt pointer into the header wraps, as it does in C.
                    let shifted = (at + old_aligned).wrapping_sub(new_aligned) & 0x7FFF;
                    self.put_u32(slot(other), id.with_offset(shifted as u16).0);
                }
            }
        }
        let id = ItemId(self.u32_at(slot(offset))).with_len(item.len() as u16);
        self.put_u32(slot(offset), id.with_offset(moved as u16).0);
        self.bytes_mut()[moved..moved + item.len()].copy_from_slice(item);
        Ok(())
    }

    /// `PageGetFreeSpace`: bytes for one more item, its line pointer included in the
    /// reckoning.
    pub fn free_space(&self) -> usize {
        let space = i32::from(self.upper()) - i32::from(self.lower());
        if space < ITEM_ID_BYTES as i32 {
            0
        } else {
            space as usize - ITEM_ID_BYTES
        }
    }

    /// `PageGetHeapFreeSpace`: the same, but 0 on a page that has all line pointers it may have
    /// and none of them free.
    pub fn heap_free_space(&self) -> usize {
        let space = self.free_space();
        let max = self.max_offset();
        if space == 0 || max < MAX_HEAP_TUPLES_PER_PAGE {
            return space;
        }
        let has_free_line = self.flags() & PD_HAS_FREE_LINES != 0
            && (1..=max).any(|o| self.item_id(o).is_ok_and(|id| !id.is_used()));
        if has_free_line { space } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap_page(items: &[&[u8]]) -> Page {
        let mut page = Page::zeroed();
        page.init(0);
        for (i, item) in items.iter().enumerate() {
            page.add_item_overwrite(item, i as u16 + 1).unwrap();
        }
        page
    }

    fn index_page(n: u8) -> Page {
        let mut page = Page::zeroed();
        page.init(16);
        for i in 1..=n {
            page.add_item(&[i; 16], u16::from(i)).unwrap();
        }
        page
    }

    #[test]
    fn items_grow_down_and_padding_keeps_the_hole() {
        let mut page = Page::zeroed();
        page.init(0);
        page.bytes_mut()[8184..8192].fill(0xEE);
        page.add_item_overwrite(&[1, 2, 3], 1).unwrap();
        assert_eq!(page.item(1).unwrap(), &[1, 2, 3]);
        assert_eq!(
            page.bytes()[8184..],
            [1, 2, 3, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE]
        );
        assert_eq!((page.lower(), page.upper()), (28, 8184));
    }

    #[test]
    fn overwrite_takes_unused_pointers_only() {
        let mut page = heap_page(&[&[1; 8], &[2; 8]]);
        assert!(matches!(
            page.add_item_overwrite(&[3; 8], 1),
            Err(PageError::ItemKind { offset: 1, .. })
        ));
        page.set_item_id(1, ItemId::UNUSED).unwrap();
        page.add_item_overwrite(&[3; 8], 1).unwrap();
        assert_eq!(page.item(1).unwrap(), &[3; 8]);
        assert_eq!(page.max_offset(), 2);
        assert!(page.add_item_overwrite(&[4; 8], 4).is_err());
    }

    #[test]
    fn shuffle_moves_later_pointers_up() {
        let mut page = index_page(3);
        page.add_item(&[9; 8], 2).unwrap();
        assert_eq!(page.item(1).unwrap(), &[1; 16]);
        assert_eq!(page.item(2).unwrap(), &[9; 8]);
        assert_eq!(page.item(3).unwrap(), &[2; 16]);
        assert_eq!(page.item(4).unwrap(), &[3; 16]);
    }

    #[test]
    fn a_full_page_refuses() {
        let mut page = heap_page(&[&[7; 8160]]);
        assert!(matches!(
            page.add_item_overwrite(&[1; 8], 2),
            Err(PageError::NoRoom { .. })
        ));
    }

    #[test]
    fn repair_compacts_in_pointer_order_and_cuts_the_tail() {
        let mut page = heap_page(&[&[1; 8], &[2; 8], &[3; 8], &[4; 8]]);
        page.set_item_id(1, ItemId::redirect(3)).unwrap();
        page.set_item_id(2, ItemId::dead()).unwrap();
        page.set_item_id(4, ItemId::UNUSED).unwrap();
        let mut kept = page.clone();
        page.repair_fragmentation(true).unwrap();
        assert_eq!((page.max_offset(), page.upper()), (3, 8184));
        assert_eq!(page.item(3).unwrap(), &[3; 8]);
        assert_eq!(page.flags() & PD_HAS_FREE_LINES, 0);
        kept.repair_fragmentation(false).unwrap();
        assert_eq!(kept.max_offset(), 4);
        assert_eq!(kept.flags() & PD_HAS_FREE_LINES, PD_HAS_FREE_LINES);
    }

    #[test]
    fn repair_of_an_empty_page_cuts_all_pointers() {
        let mut page = heap_page(&[&[1; 8]]);
        page.set_item_id(1, ItemId::UNUSED).unwrap();
        page.repair_fragmentation(true).unwrap();
        assert_eq!((page.max_offset(), page.upper()), (0, 8192));
    }

    #[test]
    fn truncation_keeps_the_first_pointer() {
        let mut page = heap_page(&[&[1; 8], &[2; 8], &[3; 8]]);
        for offset in 1..=3 {
            page.set_item_id(offset, ItemId::UNUSED).unwrap();
        }
        page.truncate_line_pointers().unwrap();
        assert_eq!(page.max_offset(), 1);
        assert_eq!(page.flags() & PD_HAS_FREE_LINES, PD_HAS_FREE_LINES);

        let mut page = heap_page(&[&[1; 8], &[2; 8], &[3; 8]]);
        page.set_item_id(1, ItemId::UNUSED).unwrap();
        page.set_item_id(3, ItemId::UNUSED).unwrap();
        page.truncate_line_pointers().unwrap();
        assert_eq!(page.max_offset(), 2);
        assert_eq!(page.flags() & PD_HAS_FREE_LINES, PD_HAS_FREE_LINES);
    }

    #[test]
    fn deleting_two_keeps_physical_order_deleting_three_sorts() {
        // Items are added out of order, so that pointer order and physical order differ.
        let build = || {
            let mut page = Page::zeroed();
            page.init(16);
            for (i, at) in [(1u8, 1u16), (2, 1), (3, 1), (4, 1), (5, 1)] {
                page.add_item(&[i; 8], at).unwrap();
            }
            page
        };
        let mut two = build();
        two.index_multi_delete(&[1, 3]).unwrap();
        assert_eq!(two.item(1).unwrap(), &[4; 8]);
        let starts: Vec<u16> = (1..=3).map(|o| two.item_id(o).unwrap().offset()).collect();
        assert!(starts.is_sorted(), "physical order is kept: {starts:?}");

        let mut three = build();
        three.index_multi_delete(&[1, 3, 5]).unwrap();
        assert_eq!(three.item(1).unwrap(), &[4; 8]);
        assert_eq!(three.item(2).unwrap(), &[2; 8]);
        assert!(three.item_id(1).unwrap().offset() > three.item_id(2).unwrap().offset());
    }

    #[test]
    fn deleting_unknown_or_unsorted_offsets_is_an_error() {
        assert!(index_page(5).index_multi_delete(&[1, 2, 9]).is_err());
        assert!(index_page(5).index_multi_delete(&[3, 2, 1]).is_err());
        assert!(index_page(5).index_multi_delete(&[9]).is_err());
    }

    #[test]
    fn no_compact_leaves_an_unused_pointer() {
        let mut page = index_page(3);
        page.index_tuple_delete_no_compact(2).unwrap();
        assert_eq!(page.max_offset(), 3);
        assert!(!page.item_id(2).unwrap().is_used());
        assert_eq!(page.item(3).unwrap(), &[3; 16]);
        page.index_tuple_delete_no_compact(3).unwrap();
        assert_eq!(page.max_offset(), 2);
    }

    #[test]
    fn overwriting_survives_a_corrupt_neighbour() {
        let mut page = index_page(2);
        page.set_item_id(2, ItemId::normal(0, 8)).unwrap();
        page.index_tuple_overwrite(1, &[9; 24]).unwrap();
        assert_eq!(page.item(1).unwrap(), &[9; 24]);
        assert_eq!(page.item_id(2), Ok(ItemId::normal(0x7FF8, 8)));
    }

    #[test]
    fn overwriting_shifts_the_tuples_below() {
        let mut page = index_page(3);
        let id = page.item_id(2).unwrap().with_flags(LpFlags::Dead);
        page.set_item_id(2, id).unwrap();
        page.index_tuple_overwrite(2, &[8; 8]).unwrap();
        assert_eq!(page.item(1).unwrap(), &[1; 16]);
        assert_eq!(page.item(2).unwrap(), &[8; 8]);
        assert_eq!(page.item(3).unwrap(), &[3; 16]);
        assert_eq!(page.item_id(2).unwrap().flags(), LpFlags::Dead);
        page.index_tuple_overwrite(2, &[7; 24]).unwrap();
        assert_eq!(page.item(2).unwrap(), &[7; 24]);
        assert_eq!(page.item(3).unwrap(), &[3; 16]);
    }

    #[test]
    fn free_space_counts_the_line_pointer() {
        let page = heap_page(&[]);
        assert_eq!(page.free_space(), 8164);
        assert_eq!(page.heap_free_space(), 8164);
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut seed = 0x9E37_79B9_7F4A_7C15u64;
        let mut next = || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..2000 {
            let mut page = Page::zeroed();
            for chunk in page.bytes_mut().chunks_mut(8) {
                chunk.copy_from_slice(&next().to_le_bytes());
            }
            page.set_lower((next() % 8300) as u16);
            page.set_upper((next() % 8300) as u16);
            let offset = (next() % 2100) as u16;
            let mut p = page.clone();
            let _ = p.repair_fragmentation(true);
            let mut p = page.clone();
            let _ = p.truncate_line_pointers();
            let mut p = page.clone();
            let _ = p.index_tuple_delete(offset);
            let mut p = page.clone();
            let _ = p.index_tuple_delete_no_compact(offset);
            let mut p = page.clone();
            let _ = p.index_multi_delete(&[1, 2, 3, offset]);
            let mut p = page.clone();
            let _ = p.index_tuple_overwrite(offset, &[1; 32]);
            let mut p = page.clone();
            let _ = p.add_item(&[1; 32], offset);
            let _ = page.heap_free_space();
            let _ = page.item(offset);
        }
    }
}
