//! INSERT: one new tuple.

use super::new_tuple::{HeapHeader, NewTuple, TupleBytes, inserted};
use super::vm_clear::{self, HEAP, MAP};
use super::{required_block, unexpected_block};
use crate::decode::Record;
use crate::page::heap_tuple::ItemPointer;
use crate::page::{PD_ALL_VISIBLE, Page, vm};
use crate::rmgr::{Effect, RmgrError, Touch, Touches};
use crate::types::digits::{push_decimal, push_hex};
use crate::types::{Cursor, OffsetNumber, ShortRead, TransactionId};

/// `XLH_INSERT_ALL_VISIBLE_CLEARED`; MULTI_INSERT has the same flags.
pub(in crate::rmgr) const ALL_VISIBLE_CLEARED: u8 = 0x01;

/// Main data of INSERT, 3 bytes. Block 0 has a [`HeapHeader`] and the tuple after its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_insert")]
struct HeapInsert {
    /// Offset 0.
    offnum: OffsetNumber,
    /// Offset 2: `XLH_INSERT_*`.
    flags: u8,
}

impl HeapInsert {
    fn decode(bytes: &[u8]) -> Result<HeapInsert, ShortRead> {
        let mut c = Cursor::new("xl_heap_insert", bytes);
        Ok(HeapInsert {
            offnum: c.u16("offnum")?,
            flags: c.u8("flags")?,
        })
    }

    /// Bits of the visibility map that go.
    fn cleared_bits(self) -> u8 {
        if self.flags & ALL_VISIBLE_CLEARED != 0 {
            vm::VALID_BITS
        } else {
            0
        }
    }
}

pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    let insert = HeapInsert::decode(record.main_data)?;
    vm_clear::touches(record, insert.cleared_bits(), out)
}

pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let insert = HeapInsert::decode(record.main_data)?;
    match touch.block_id() {
        HEAP => redo_heap(insert, record, page),
        MAP => vm_clear::redo(record, insert.cleared_bits(), touch, page),
        _ => Err(unexpected_block(touch.block_id())),
    }
}

/// `heap_xlog_insert`. A speculative tuple gets its own place as t_ctid where the primary had a
/// token; the CONFIRM that follows changes nothing more.
fn redo_heap(
    insert: HeapInsert,
    record: &Record<'_>,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let block = required_block(record, HEAP)?;
    let mut data = Cursor::new("xl_heap_header", block.data);
    let tuple = NewTuple {
        header: HeapHeader::decode(&mut data)?,
        xmin: record.xid,
        xmax: TransactionId::INVALID,
        tid: ItemPointer {
            block: block.tag.block,
            offset: insert.offnum,
        },
    };
    let mut bytes = TupleBytes::new();
    tuple.build(&[data.rest()], &mut bytes)?;
    page.add_item_overwrite(&bytes, insert.offnum)?;
    if insert.flags & ALL_VISIBLE_CLEARED != 0 {
        page.clear_flag(PD_ALL_VISIBLE);
    }
    Ok(inserted(page))
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapInsert { offnum, flags } = HeapInsert::decode(record.main_data)?;
    out.push_str("off ");
    push_decimal(out, offnum.into());
    out.push_str(" flags 0x");
    push_hex(out, flags.into(), 2);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::testing::{XID, heap_block, heap_page, map_block, record};
    use crate::rmgr::{PageState, ReadMode, Target, TouchKind};
    use crate::types::ForkNumber;

    /// t_infomask2 3, t_infomask 0x0822 (with the combo bit), t_hoff 24, one byte, "abc".
    const DATA: [u8; 9] = [3, 0, 0x22, 0x08, 24, 0, b'a', b'b', b'c'];

    #[test]
    fn adds_the_tuple_with_its_own_place_as_ctid() {
        let insert = record(10, 0x00, &[2, 0, 0x00]).with(heap_block(0, 0x7_0008, &DATA));
        let mut page = heap_page(1);
        page.set_flag(PD_ALL_VISIBLE);
        let effect = insert.redo_touch(0, &mut page).unwrap();
        assert_eq!(effect, Effect::changed());
        let expected = [
            0x0D, 0x0C, 0x0B, 0x0A, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 8, 0, 2, 0, 3, 0, 0x02, 0x08, 24,
            0, b'a', b'b', b'c',
        ];
        assert_eq!(page.item(2).unwrap(), &expected);
        assert_eq!(
            page.flags(),
            PD_ALL_VISIBLE,
            "the record does not say cleared"
        );
        assert_eq!(page.prune_xid(), TransactionId::INVALID);
    }

    #[test]
    fn clears_all_visible_on_the_page_and_first_in_the_map() {
        let insert = record(10, 0x00, &[1, 0, 0x01]).with(heap_block(0, 32_673, &DATA));
        let touches = insert.touches().unwrap();
        assert_eq!(touches.len(), 2);
        assert_eq!(
            (touches[0].tag.fork, touches[0].tag.block),
            (ForkNumber::Vm, 1)
        );
        assert_eq!(
            (touches[0].kind, touches[0].read),
            (TouchKind::Modify, ReadMode::VisibilityMap)
        );
        let target = Target::VmClear {
            heap_block: 32_673,
            bits: 3,
        };
        assert_eq!(touches[0].target, target);
        assert_eq!(touches[1].target, Target::Block(0));

        let mut map = Page::zeroed();
        map.init(0);
        vm::set(&mut map, 32_673, 3);
        assert_eq!(insert.redo_touch(0, &mut map).unwrap(), Effect::keep_lsn());
        assert_eq!(vm::get(&map, 32_673), 0);
        let mut page = heap_page(0);
        page.set_flag(PD_ALL_VISIBLE);
        insert.redo_touch(1, &mut page).unwrap();
        assert_eq!(page.flags(), 0);
    }

    #[test]
    fn a_registered_map_page_takes_the_lsn_if_a_bit_was_set() {
        let insert = record(10, 0x00, &[1, 0, 0x01])
            .with(heap_block(0, 5, &DATA))
            .with(map_block(1, 0));
        assert_eq!(insert.touches().unwrap()[0].target, Target::Block(0));
        let mut map = Page::zeroed();
        map.init(0);
        vm::set(&mut map, 5, 1);
        vm::set(&mut map, 6, 3);
        assert_eq!(insert.redo_touch(1, &mut map).unwrap(), Effect::changed());
        assert_eq!((vm::get(&map, 5), vm::get(&map, 6)), (0, 3));
        assert_eq!(insert.redo_touch(1, &mut map).unwrap(), Effect::none());
    }

    #[test]
    fn a_map_page_that_does_not_cover_the_heap_page_is_an_error() {
        let insert = record(10, 0x00, &[1, 0, 0x01])
            .with(heap_block(0, 5, &DATA))
            .with(map_block(1, 1));
        assert!(insert.redo_touch(1, &mut Page::zeroed()).is_err());
    }

    #[test]
    fn init_starts_from_an_empty_page() {
        let insert = record(10, 0x80, &[1, 0, 0x00]).with(heap_block(0, 0, &DATA));
        assert!(
            insert.redo_touch(0, &mut heap_page(0)).is_err(),
            "the block says no init"
        );
        let insert = insert.with_init();
        assert_eq!(insert.touches().unwrap()[0].kind, TouchKind::Init);
        let mut page = heap_page(3);
        insert.redo_touch(0, &mut page).unwrap();
        assert_eq!((page.max_offset(), page.upper()), (1, 8160));
        let tuple = page.heap_tuple(1).unwrap();
        assert_eq!((tuple.xmin(), tuple.xmax()), (XID, TransactionId::INVALID));
        let plain = record(10, 0x00, &[1, 0, 0x00])
            .with(heap_block(0, 0, &DATA))
            .with_init();
        assert!(
            plain.redo_touch(0, &mut heap_page(0)).is_err(),
            "the opcode says no init"
        );
    }

    #[test]
    fn the_free_space_map_learns_of_a_page_with_little_left() {
        // 8168 bytes are free; the tuple, its pointer and room for another pointer go.
        let with_tuple = |len: usize| {
            let data = vec![24u8; 5 + len - 23];
            let insert = record(10, 0x00, &[1, 0, 0x00]).with(heap_block(0, 0, &data));
            insert.redo_touch(0, &mut heap_page(0)).unwrap().free_space
        };
        assert_eq!(with_tuple(6520), None);
        assert_eq!(with_tuple(6521), Some(8168 - 6528 - 8));
    }

    #[test]
    fn done_or_restored_pages_are_left_alone() {
        let insert = record(10, 0x00, &[1, 0, 0x00]).with(heap_block(0, 0, &DATA));
        for state in [PageState::Done, PageState::Restored] {
            assert_eq!(insert.redo_idle(state, &heap_page(0)), Effect::none());
        }
    }

    #[test]
    fn a_tuple_that_does_not_fit_is_an_error() {
        let data = [0; 9000];
        let insert = record(10, 0x00, &[1, 0, 0x00]).with(heap_block(0, 0, &data));
        assert!(insert.redo_touch(0, &mut heap_page(0)).is_err());
        let gap = record(10, 0x00, &[3, 0, 0x00]).with(heap_block(0, 0, &DATA));
        assert!(gap.redo_touch(0, &mut heap_page(1)).is_err());
    }

    #[test]
    fn text_and_truncation() {
        let insert = record(10, 0x00, &[2, 1, 0x0A]).with(heap_block(0, 0, &DATA));
        assert_eq!(insert.text(), "off 258 flags 0x0A");
        let insert = record(10, 0x00, &[1, 0, 0x01]).with(heap_block(0, 0, &DATA));
        insert.cut_everywhere(&heap_page(0));
    }
}
