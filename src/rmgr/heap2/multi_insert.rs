//! MULTI_INSERT: many new tuples on one page, as COPY writes them.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::heap_tuple::ItemPointer;
use crate::page::{PD_ALL_VISIBLE, Page, vm};
use crate::rmgr::heap::insert::ALL_VISIBLE_CLEARED;
use crate::rmgr::heap::new_tuple::{HeapHeader, NewTuple, TupleBytes, inserted};
use crate::rmgr::heap::vm_clear::{self, HEAP, MAP};
use crate::rmgr::heap::{INFO_INIT_PAGE, required_block};
use crate::rmgr::unexpected_block;
use crate::rmgr::{Effect, PageState, RmgrError, Touch, Touches};
use crate::types::{Cursor, OffsetNumber, ShortRead, TransactionId};

/// `XLH_INSERT_ALL_FROZEN_SET`: COPY FREEZE; a VISIBLE record for the map follows.
const ALL_FROZEN_SET: u8 = 0x20;

/// Main data of MULTI_INSERT, 4 bytes and the line pointer numbers, which +INIT does without.
/// Block 0 has a [`HeapHeader`] and the tuple after its header for each, see [`TupleReader`].
#[derive(Debug, Clone)]
#[doc(alias = "xl_heap_multi_insert")]
struct HeapMultiInsert<'w> {
    /// Offset 0: `XLH_INSERT_*`.
    flags: u8,
    /// Offset 2.
    ntuples: u16,
    /// Offset 4: two bytes each.
    offsets: Cursor<'w>,
}

impl<'w> HeapMultiInsert<'w> {
    fn decode(bytes: &'w [u8]) -> Result<HeapMultiInsert<'w>, ShortRead> {
        let mut c = Cursor::new("xl_heap_multi_insert", bytes);
        let flags = c.u8("flags")?;
        c.skip("padding", 1)?;
        Ok(HeapMultiInsert {
            flags,
            ntuples: c.u16("ntuples")?,
            offsets: c,
        })
    }

    /// Bits of the visibility map that go.
    fn cleared_bits(&self) -> u8 {
        if self.flags & ALL_VISIBLE_CLEARED != 0 {
            vm::VALID_BITS
        } else {
            0
        }
    }
}

/// Reads tuples from the block's data: length, [`HeapHeader`] and bytes
/// (`xl_multi_insert_tuple`, 7 bytes, and the tuple), each from an even offset on.
struct TupleReader<'w>(Cursor<'w>);

impl<'w> TupleReader<'w> {
    fn next(&mut self) -> Result<(HeapHeader, &'w [u8]), ShortRead> {
        let c = &mut self.0;
        c.skip("alignment", c.position() % 2)?;
        let datalen = c.u16("datalen")?;
        let header = HeapHeader::decode(c)?;
        Ok((header, c.bytes("tuple", datalen.into())?))
    }
}

pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    let insert = HeapMultiInsert::decode(record.main_data)?;
    vm_clear::touches(record, insert.cleared_bits(), out)
}

pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    if state != PageState::Needs {
        return Ok(Effect::none());
    }
    let insert = HeapMultiInsert::decode(record.main_data)?;
    match touch.block_id() {
        HEAP => redo_heap(insert, record, page),
        MAP => vm_clear::redo(record, insert.cleared_bits(), touch, page),
        _ => Err(unexpected_block(touch.block_id())),
    }
}

/// `heap_xlog_multi_insert`.
fn redo_heap(
    insert: HeapMultiInsert<'_>,
    record: &Record<'_>,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let block = required_block(record, HEAP)?;
    let mut tuples = TupleReader(Cursor::new("xl_multi_insert_tuple", block.data));
    let mut offsets = insert.offsets.clone();
    let is_init = record.info & INFO_INIT_PAGE != 0;
    let mut bytes = TupleBytes::new();
    for i in 0..insert.ntuples {
        let offset: OffsetNumber = if is_init {
            i.saturating_add(1)
        } else {
            offsets.u16("offsets")?
        };
        let (header, rest) = tuples.next()?;
        let tuple = NewTuple {
            header,
            xmin: record.xid,
            xmax: TransactionId::INVALID,
            tid: ItemPointer {
                block: block.tag.block,
                offset,
            },
        };
        tuple.build(&[rest], &mut bytes)?;
        page.add_item_overwrite(&bytes, offset)?;
    }
    if !tuples.0.is_empty() {
        return Err(RmgrError::corrupt(format!(
            "{} bytes are left after {} tuples",
            tuples.0.remaining(),
            insert.ntuples
        )));
    }
    if insert.flags & ALL_VISIBLE_CLEARED != 0 {
        page.clear_flag(PD_ALL_VISIBLE);
    }
    if insert.flags & ALL_FROZEN_SET != 0 {
        page.set_flag(PD_ALL_VISIBLE);
    }
    Ok(inserted(page))
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapMultiInsert { flags, ntuples, .. } = HeapMultiInsert::decode(record.main_data)?;
    let _ = write!(out, "{ntuples} tuples flags 0x{flags:02X}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::Target;
    use crate::rmgr::testing::{heap_block, heap_page, map_block, record};

    /// "ab" and "c" behind their bitmap bytes. 7 and 3 bytes are even: no padding between them.
    const DATA: [u8; 19] = [
        3, 0, 1, 0, 0x22, 0x08, 24, 0x11, b'a', b'b', 2, 0, 2, 0, 0x02, 0x09, 24, 0x12, b'c',
    ];

    const FIRST: [u8; 26] = [
        0x0D, 0x0C, 0x0B, 0x0A, 0, 0, 0, 0, 0, 0, 0, 0, 0x0A, 0, 0x0B, 0, 1, 0, 1, 0, 0x02, 0x08,
        24, 0x11, b'a', b'b',
    ];
    const SECOND: [u8; 25] = [
        0x0D, 0x0C, 0x0B, 0x0A, 0, 0, 0, 0, 0, 0, 0, 0, 0x0A, 0, 0x0B, 0, 3, 0, 2, 0, 0x02, 0x09,
        24, 0x12, b'c',
    ];

    #[test]
    fn tuples_go_to_the_pointers_listed() {
        let insert =
            record(9, 0x50, &[0, 0xEE, 2, 0, 1, 0, 3, 0]).with(heap_block(0, 0xA_000B, &DATA));
        let mut page = heap_page(2);
        page.set_item_id(1, crate::page::ItemId::UNUSED).unwrap();
        assert_eq!(insert.redo_touch(0, &mut page).unwrap(), Effect::changed());
        assert_eq!(page.item(1).unwrap(), &FIRST);
        assert_eq!(page.item(3).unwrap(), &SECOND);
    }

    #[test]
    fn headers_start_at_even_offsets() {
        // "a" alone makes the first tuple 9 bytes, and one byte follows that says nothing.
        let data = [
            2, 0, 1, 0, 0x22, 0x08, 24, 0x11, b'a', 0xEE, 2, 0, 2, 0, 0x02, 0x09, 24, 0x12, b'c',
        ];
        let insert = record(9, 0x50, &[0, 0, 2, 0, 1, 0, 2, 0]).with(heap_block(0, 0, &data));
        let mut page = heap_page(0);
        insert.redo_touch(0, &mut page).unwrap();
        assert_eq!(page.item(1).unwrap()[23..], [0x11, b'a']);
        assert_eq!(page.item(2).unwrap()[23..], [0x12, b'c']);
    }

    #[test]
    fn init_has_no_list_of_pointers() {
        let insert = record(9, 0xD0, &[0, 0, 2, 0])
            .with(heap_block(0, 0xA_000B, &DATA))
            .with_init();
        let mut page = heap_page(3);
        assert_eq!(insert.redo_touch(0, &mut page).unwrap(), Effect::changed());
        assert_eq!((page.max_offset(), page.flags()), (2, 0));
        assert_eq!(page.item(1).unwrap(), &FIRST);
        assert_eq!(page.item(2).unwrap()[16..18], [2, 0]);
    }

    #[test]
    fn all_visible_is_cleared_or_set_as_flagged() {
        let flags_after = |flags: u8, before: u16| {
            let main_data = [flags, 0, 2, 0, 1, 0, 2, 0];
            let insert = record(9, 0x50, &main_data).with(heap_block(0, 5, &DATA));
            let mut page = heap_page(0);
            page.set_flags(before);
            let heap = insert.touches().unwrap().len() - 1;
            insert.redo_touch(heap, &mut page).unwrap();
            page.flags()
        };
        assert_eq!(flags_after(0, PD_ALL_VISIBLE), PD_ALL_VISIBLE);
        assert_eq!(flags_after(ALL_VISIBLE_CLEARED, PD_ALL_VISIBLE), 0);
        assert_eq!(flags_after(ALL_FROZEN_SET, 0), PD_ALL_VISIBLE);
    }

    #[test]
    fn the_map_loses_both_bits() {
        let main_data = [ALL_VISIBLE_CLEARED, 0, 2, 0, 1, 0, 2, 0];
        let insert = record(9, 0x50, &main_data).with(heap_block(0, 5, &DATA));
        let target = Target::VmClear {
            heap_block: 5,
            bits: 3,
        };
        assert_eq!(insert.touches().unwrap()[0].target, target);
        let registered = insert.with(map_block(1, 0));
        let mut map = Page::zeroed();
        vm::set(&mut map, 5, 3);
        assert_eq!(
            registered.redo_touch(1, &mut map).unwrap(),
            Effect::changed()
        );
        assert_eq!(vm::get(&map, 5), 0);
    }

    #[test]
    fn the_free_space_map_learns_of_a_page_with_little_left() {
        let mut data = vec![0; 7 + 7000];
        data[..7].copy_from_slice(&[0x58, 0x1B, 1, 0, 0, 0, 24]);
        let insert = record(9, 0x50, &[0, 0, 1, 0, 1, 0]).with(heap_block(0, 0, &data));
        let effect = insert.redo_touch(0, &mut heap_page(0)).unwrap();
        assert_eq!(
            effect,
            Effect::changed().with_free_space(8168 - 7024 - 4 - 4)
        );
        for state in [PageState::Done, PageState::Restored] {
            assert_eq!(insert.redo_idle(state, &heap_page(0)), Effect::none());
        }
    }

    #[test]
    fn bytes_left_over_are_an_error() {
        let insert = record(9, 0x50, &[0, 0, 1, 0, 1, 0]).with(heap_block(0, 0, &DATA));
        assert!(insert.redo_touch(0, &mut heap_page(0)).is_err());
    }

    #[test]
    fn text_and_truncation() {
        let insert = record(9, 0x50, &[0x0A, 0, 2, 0, 1, 0, 2, 0]).with(heap_block(0, 0, &DATA));
        assert_eq!(insert.text(), "2 tuples flags 0x0A");
        insert.cut_everywhere(&heap_page(0));
        let cut = record(9, 0x50, &[0, 0, 2, 0, 1, 0, 2, 0]).with(heap_block(0, 0, &DATA[..18]));
        assert!(cut.redo_touch(0, &mut heap_page(0)).is_err());
    }
}
