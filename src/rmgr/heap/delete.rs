//! DELETE: the end of one tuple.

use super::infobits::Infobits;
use super::vm_clear::{self, HEAP, MAP};
use super::{required_block, unexpected_block};
use crate::decode::Record;
use crate::page::heap_tuple::ItemPointer;
use crate::page::{PD_ALL_VISIBLE, Page, vm};
use crate::rmgr::{Effect, RmgrError, Touch, Touches};
use crate::types::digits::{push_decimal, push_hex};
use crate::types::{Cursor, OffsetNumber, ShortRead, TransactionId};

/// `XLH_DELETE_ALL_VISIBLE_CLEARED`.
const ALL_VISIBLE_CLEARED: u8 = 0x01;
/// `XLH_DELETE_IS_SUPER`: a speculative insertion is undone.
const IS_SUPER: u8 = 0x08;
/// `XLH_DELETE_IS_PARTITION_MOVE`: an update moved the row to another partition.
const IS_PARTITION_MOVE: u8 = 0x10;

/// Main data of DELETE, 8 bytes. The old key or tuple may follow; only logical decoding reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_delete")]
struct HeapDelete {
    /// Offset 0.
    xmax: TransactionId,
    /// Offset 4.
    offnum: OffsetNumber,
    /// Offset 6.
    infobits_set: Infobits,
    /// Offset 7: `XLH_DELETE_*`.
    flags: u8,
}

impl HeapDelete {
    fn decode(bytes: &[u8]) -> Result<HeapDelete, ShortRead> {
        let mut c = Cursor::new("xl_heap_delete", bytes);
        Ok(HeapDelete {
            xmax: TransactionId(c.u32("xmax")?),
            offnum: c.u16("offnum")?,
            infobits_set: Infobits(c.u8("infobits_set")?),
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
    let delete = HeapDelete::decode(record.main_data)?;
    vm_clear::touches(record, delete.cleared_bits(), out)
}

pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let delete = HeapDelete::decode(record.main_data)?;
    match touch.block_id() {
        HEAP => redo_heap(delete, record, page),
        MAP => vm_clear::redo(record, delete.cleared_bits(), touch, page),
        _ => Err(unexpected_block(touch.block_id())),
    }
}

/// `heap_xlog_delete`. The page becomes prunable by the record's transaction, which need not be
/// xmax: that may be a multixact.
fn redo_heap(
    delete: HeapDelete,
    record: &Record<'_>,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let itself = ItemPointer {
        block: required_block(record, HEAP)?.tag.block,
        offset: delete.offnum,
    };
    let mut tuple = page.heap_tuple_mut(delete.offnum)?;
    delete.infobits_set.apply(&mut tuple);
    tuple.clear_hot_updated();
    if delete.flags & IS_SUPER != 0 {
        // Without xmin nobody ever sees the tuple; xmax stays as it was.
        tuple.set_xmin(TransactionId::INVALID);
    } else {
        tuple.set_xmax(delete.xmax);
    }
    tuple.clear_cid();
    tuple.set_ctid(if delete.flags & IS_PARTITION_MOVE != 0 {
        ItemPointer::MOVED_PARTITIONS
    } else {
        itself
    });
    page.set_prunable(record.xid);
    if delete.flags & ALL_VISIBLE_CLEARED != 0 {
        page.clear_flag(PD_ALL_VISIBLE);
    }
    Ok(Effect::changed())
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let delete = HeapDelete::decode(record.main_data)?;
    out.push_str("off ");
    push_decimal(out, delete.offnum.into());
    out.push_str(" flags 0x");
    push_hex(out, delete.flags.into(), 2);
    out.push(' ');
    delete.infobits_set.desc(out);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::testing::{TUPLE, XID, heap_block, heap_page, map_block, record};
    use crate::rmgr::{PageState, Target};

    /// xmax 0x11121314, line pointer 2, infobits and flags.
    fn main_data(infobits: u8, flags: u8) -> [u8; 8] {
        [0x14, 0x13, 0x12, 0x11, 2, 0, infobits, flags]
    }

    /// The tuple after redo.
    fn deleted(infobits: u8, flags: u8) -> Vec<u8> {
        let main_data = main_data(infobits, flags);
        let delete = record(10, 0x10, &main_data).with(heap_block(0, 0xA_000B, &[]));
        let mut page = heap_page(2);
        let effect = delete.redo_touch(delete.touches().unwrap().len() - 1, &mut page);
        assert_eq!(effect.unwrap(), Effect::changed());
        assert_eq!(page.item(1).unwrap(), &TUPLE);
        page.item(2).unwrap().to_vec()
    }

    #[test]
    fn ends_the_tuple() {
        // xmin stays, xmax is new, cid 0, ctid itself. KEYS_UPDATED and HOT_UPDATED are gone and
        // so are all xmax bits, the moved bits and the combo bit.
        let mut expected = TUPLE;
        expected[4..8].copy_from_slice(&[0x14, 0x13, 0x12, 0x11]);
        expected[8..18].copy_from_slice(&[0, 0, 0, 0, 0x0A, 0, 0x0B, 0, 2, 0]);
        expected[18..22].copy_from_slice(&[0xFF, 0x9F, 0x0F, 0x23]);
        assert_eq!(deleted(0, 0), expected);
        // With all infobits: multi, lock only, both locks, keys updated.
        expected[18..22].copy_from_slice(&[0xFF, 0xBF, 0xDF, 0x33]);
        assert_eq!(deleted(0x1F, 0), expected);
    }

    #[test]
    fn a_super_deletion_takes_xmin_instead_of_xmax() {
        let tuple = deleted(0, IS_SUPER);
        assert_eq!(tuple[..8], [0, 0, 0, 0, 101, 0, 0, 0]);
    }

    #[test]
    fn a_partition_move_marks_ctid() {
        let tuple = deleted(0, IS_PARTITION_MOVE);
        assert_eq!(tuple[12..18], [0xFF, 0xFF, 0xFF, 0xFF, 0xFD, 0xFF]);
    }

    #[test]
    fn the_page_is_prunable_and_all_visible_goes_only_if_flagged() {
        for (flags, left) in [(0, PD_ALL_VISIBLE), (ALL_VISIBLE_CLEARED, 0)] {
            let main_data = main_data(0, flags);
            let delete = record(10, 0x10, &main_data).with(heap_block(0, 0, &[]));
            let mut page = heap_page(2);
            page.set_flag(PD_ALL_VISIBLE);
            let heap = delete.touches().unwrap().len() - 1;
            delete.redo_touch(heap, &mut page).unwrap();
            assert_eq!((page.flags(), page.prune_xid()), (left, XID));
        }
    }

    #[test]
    fn the_map_loses_both_bits() {
        let main_data = main_data(0, ALL_VISIBLE_CLEARED);
        let delete = record(10, 0x10, &main_data).with(heap_block(0, 4, &[]));
        let target = Target::VmClear {
            heap_block: 4,
            bits: 3,
        };
        assert_eq!(delete.touches().unwrap()[0].target, target);
        let registered = delete.with(map_block(1, 0));
        assert_eq!(registered.touches().unwrap().len(), 2);
        let mut map = Page::zeroed();
        vm::set(&mut map, 4, 3);
        assert_eq!(
            registered.redo_touch(1, &mut map).unwrap(),
            Effect::changed()
        );
        assert_eq!(vm::get(&map, 4), 0);
        // Without the flag the page of the map is none of the record's business.
        let unflagged_data = [0; 8];
        let unflagged = record(10, 0x10, &unflagged_data)
            .with(heap_block(0, 4, &[]))
            .with(map_block(1, 0));
        vm::set(&mut map, 4, 3);
        assert_eq!(unflagged.redo_touch(1, &mut map).unwrap(), Effect::none());
        assert_eq!(vm::get(&map, 4), 3);
    }

    #[test]
    fn only_a_normal_tuple_can_be_deleted() {
        let main_data = main_data(0, 0);
        let delete = record(10, 0x10, &main_data).with(heap_block(0, 0, &[]));
        assert!(delete.redo_touch(0, &mut heap_page(1)).is_err());
        assert_eq!(
            delete.redo_idle(PageState::Done, &heap_page(1)),
            Effect::none()
        );
        assert!(
            record(10, 0x10, &main_data)
                .with(heap_block(3, 0, &[]))
                .redo_touch(0, &mut heap_page(2))
                .is_err()
        );
    }

    #[test]
    fn text_and_truncation() {
        let main_data = main_data(0x11, 0x0A);
        let delete = record(10, 0x10, &main_data).with(heap_block(0, 0, &[]));
        assert_eq!(delete.text(), "off 2 flags 0x0A IS_MULTI KEYS_UPDATED ");
        delete.cut_everywhere(&heap_page(2));
    }
}
