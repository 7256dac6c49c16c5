//! UPDATE and HOT_UPDATE: the end of one tuple and its next version.

use super::infobits::Infobits;
use super::new_tuple::{HeapHeader, NewTuple, TupleBytes, inserted};
use super::{required_block, unexpected_block, vm_clear};
use crate::decode::Record;
use crate::page::heap_tuple::{HEAP_TUPLE_HEADER_BYTES, ItemPointer};
use crate::page::{PD_ALL_VISIBLE, Page, vm};
use crate::rmgr::{Effect, RmgrError, Touch, Touches, explicit_touches};
use crate::types::digits::{push_decimal, push_hex};
use crate::types::{BlockNumber, Cursor, OffsetNumber, ShortRead, TransactionId};

/// Block reference of the page with the new version, and the old one too if there is no other.
const NEW: u8 = 0;
/// Block reference of the page with the old version.
const OLD: u8 = 1;
/// Block reference of the visibility-map page of the new page, if registered.
const NEW_MAP: u8 = 2;
/// Block reference of the visibility-map page of the old page, if registered and another one.
const OLD_MAP: u8 = 3;

/// `XLH_UPDATE_OLD_ALL_VISIBLE_CLEARED`.
const OLD_ALL_VISIBLE_CLEARED: u8 = 0x01;
/// `XLH_UPDATE_NEW_ALL_VISIBLE_CLEARED`.
const NEW_ALL_VISIBLE_CLEARED: u8 = 0x02;
/// `XLH_UPDATE_PREFIX_FROM_OLD`: the new row starts as the old one does.
const PREFIX_FROM_OLD: u8 = 0x20;
/// `XLH_UPDATE_SUFFIX_FROM_OLD`: the new row ends as the old one does.
const SUFFIX_FROM_OLD: u8 = 0x40;

/// Which of the two records it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateKind {
    /// UPDATE.
    Cold,
    /// HOT_UPDATE: no index knows the new version, it is reached through the old one.
    Hot,
}

/// Main data of UPDATE and HOT_UPDATE, 14 bytes. The old key or tuple may follow; only logical
/// decoding reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_update")]
struct HeapUpdate {
    /// Offset 0.
    old_xmax: TransactionId,
    /// Offset 4.
    old_offnum: OffsetNumber,
    /// Offset 6.
    old_infobits_set: Infobits,
    /// Offset 7: `XLH_UPDATE_*`.
    flags: u8,
    /// Offset 8.
    new_xmax: TransactionId,
    /// Offset 12.
    new_offnum: OffsetNumber,
}

impl HeapUpdate {
    fn decode(bytes: &[u8]) -> Result<HeapUpdate, ShortRead> {
        let mut c = Cursor::new("xl_heap_update", bytes);
        Ok(HeapUpdate {
            old_xmax: TransactionId(c.u32("old_xmax")?),
            old_offnum: c.u16("old_offnum")?,
            old_infobits_set: Infobits(c.u8("old_infobits_set")?),
            flags: c.u8("flags")?,
            new_xmax: TransactionId(c.u32("new_xmax")?),
            new_offnum: c.u16("new_offnum")?,
        })
    }

    fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Where the two versions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Blocks {
    old: BlockNumber,
    new: BlockNumber,
}

impl Blocks {
    fn of(record: &Record<'_>) -> Result<Blocks, RmgrError> {
        let new = required_block(record, NEW)?.tag.block;
        let old = record.block(OLD).map_or(new, |block| block.tag.block);
        Ok(Blocks { old, new })
    }
}

/// The old page is cleared first. If one of the map's pages is registered, PostgreSQL does not
/// fall back to the other form for the other page.
pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    let update = HeapUpdate::decode(record.main_data)?;
    let new = required_block(record, NEW)?;
    let old = record.block(OLD).unwrap_or(new);
    if record.block(NEW_MAP).is_none() && record.block(OLD_MAP).is_none() {
        let pages = [
            (OLD_ALL_VISIBLE_CLEARED, old),
            (NEW_ALL_VISIBLE_CLEARED, new),
        ];
        for (flag, block) in pages {
            if update.has(flag) {
                out.push(vm_clear::unregistered(block.tag, vm::VALID_BITS));
            }
        }
    }
    explicit_touches(record, out)
}

/// `heap_xlog_update`. With both versions on one page, its state is asked once and both changes
/// are made in one go, the old version first.
pub(super) fn redo(
    kind: UpdateKind,
    record: &Record<'_>,
    touch: &Touch,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let update = HeapUpdate::decode(record.main_data)?;
    let blocks = Blocks::of(record)?;
    match touch.block_id() {
        NEW if record.block(OLD).is_none() => {
            redo_old(update, kind, blocks, record, page)?;
            redo_new(update, kind, blocks, record, page)
        }
        NEW => redo_new(update, kind, blocks, record, page),
        OLD => {
            redo_old(update, kind, blocks, record, page)?;
            Ok(Effect::changed())
        }
        NEW_MAP | OLD_MAP => redo_map(update, blocks, touch, page),
        _ => Err(unexpected_block(touch.block_id())),
    }
}

/// Ends the old version and links it to the new one.
fn redo_old(
    update: HeapUpdate,
    kind: UpdateKind,
    blocks: Blocks,
    record: &Record<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let mut tuple = page.heap_tuple_mut(update.old_offnum)?;
    update.old_infobits_set.apply(&mut tuple);
    match kind {
        UpdateKind::Hot => tuple.set_hot_updated(),
        UpdateKind::Cold => tuple.clear_hot_updated(),
    }
    tuple.set_xmax(update.old_xmax);
    tuple.clear_cid();
    tuple.set_ctid(ItemPointer {
        block: blocks.new,
        offset: update.new_offnum,
    });
    page.set_prunable(record.xid);
    if update.has(OLD_ALL_VISIBLE_CLEARED) {
        page.clear_flag(PD_ALL_VISIBLE);
    }
    Ok(())
}

/// Adds the new version. After a HOT update the free space map is left alone: one of the two
/// versions will be pruned soon.
fn redo_new(
    update: HeapUpdate,
    kind: UpdateKind,
    blocks: Blocks,
    record: &Record<'_>,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let data = required_block(record, NEW)?.data;
    let mut bytes = TupleBytes::new();
    build_new(update, blocks, record, data, page, &mut bytes)?;
    page.add_item_overwrite(&bytes, update.new_offnum)?;
    if update.has(NEW_ALL_VISIBLE_CLEARED) {
        page.clear_flag(PD_ALL_VISIBLE);
    }
    match kind {
        UpdateKind::Hot => Ok(Effect::changed()),
        UpdateKind::Cold => Ok(inserted(page)),
    }
}

/// Puts the new version together from the record and from what it shares with the old one.
/// The record has the null bitmap in front of the part that differs; the shared prefix goes
/// between the two.
fn build_new(
    update: HeapUpdate,
    blocks: Blocks,
    record: &Record<'_>,
    data: &[u8],
    page: &Page,
    out: &mut TupleBytes,
) -> Result<(), RmgrError> {
    let mut c = Cursor::new("xl_heap_update data", data);
    let prefix_bytes = if update.has(PREFIX_FROM_OLD) {
        c.u16("prefixlen")?
    } else {
        0
    };
    let suffix_bytes = if update.has(SUFFIX_FROM_OLD) {
        c.u16("suffixlen")?
    } else {
        0
    };
    let header = HeapHeader::decode(&mut c)?;
    let tuple = NewTuple {
        header,
        xmin: record.xid,
        xmax: update.new_xmax,
        tid: ItemPointer {
            block: blocks.new,
            offset: update.new_offnum,
        },
    };
    if prefix_bytes == 0 && suffix_bytes == 0 {
        return tuple.build(&[c.rest()], out);
    }
    if record.block(OLD).is_some() {
        return Err(RmgrError::corrupt(
            "a row shares bytes with one on another page",
        ));
    }
    let bitmap_bytes = usize::from(header.hoff).saturating_sub(HEAP_TUPLE_HEADER_BYTES);
    let bitmap = if prefix_bytes > 0 {
        c.bytes("null bitmap", bitmap_bytes)?
    } else {
        &[]
    };
    let old = page.heap_tuple(update.old_offnum)?;
    let prefix = old.user_data()?.get(..prefix_bytes.into());
    let old_item = page.item(update.old_offnum)?;
    let suffix = old_item.len().checked_sub(suffix_bytes.into());
    let (Some(prefix), Some(suffix)) = (prefix, suffix) else {
        return Err(RmgrError::corrupt(format!(
            "prefix of {prefix_bytes} and suffix of {suffix_bytes} bytes from a tuple of {} bytes",
            old_item.len()
        )));
    };
    tuple.build(&[bitmap, prefix, c.rest(), &old_item[suffix..]], out)
}

/// Redo on a registered page of the map. The old page's bits are cleared with the new page's if
/// one page of the map has both.
fn redo_map(
    update: HeapUpdate,
    blocks: Blocks,
    touch: &Touch,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let is_new_map = touch.block_id() == NEW_MAP;
    let covers_old = !is_new_map || touch.tag.block == vm::map_block(blocks.old);
    let mut changed = false;
    if covers_old && update.has(OLD_ALL_VISIBLE_CLEARED) {
        changed |= vm_clear::clear(touch, page, blocks.old, vm::VALID_BITS)?;
    }
    if is_new_map && update.has(NEW_ALL_VISIBLE_CLEARED) {
        changed |= vm_clear::clear(touch, page, blocks.new, vm::VALID_BITS)?;
    }
    Ok(vm_clear::effect(changed))
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let update = HeapUpdate::decode(record.main_data)?;
    let HeapUpdate {
        old_xmax,
        old_offnum,
        flags,
        new_xmax,
        new_offnum,
        ..
    } = update;
    out.push_str("off ");
    push_decimal(out, old_offnum.into());
    out.push_str(" xmax ");
    push_decimal(out, old_xmax.0);
    out.push_str(" flags 0x");
    push_hex(out, flags.into(), 2);
    out.push(' ');
    update.old_infobits_set.desc(out);
    out.push_str("; new off ");
    push_decimal(out, new_offnum.into());
    out.push_str(" xmax ");
    push_decimal(out, new_xmax.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::testing::{TUPLE, XID, heap_block, heap_page, map_block, record};
    use crate::rmgr::{Target, TouchKind};
    use crate::types::ForkNumber;

    /// Old: xmax 0x11121314, line pointer 1. New: xmax 0x21222324, line pointer 2.
    fn main_data(infobits: u8, flags: u8) -> [u8; 14] {
        [
            0x14, 0x13, 0x12, 0x11, 1, 0, infobits, flags, 0x24, 0x23, 0x22, 0x21, 2, 0,
        ]
    }

    /// t_infomask2 3, t_infomask 0x2822 (with the combo bit), t_hoff 24, a bitmap byte, "xyz".
    const DATA: [u8; 9] = [3, 0, 0x22, 0x28, 24, 0x0F, b'x', b'y', b'z'];

    /// The new version's header and bitmap on block 0xA_000B.
    const NEW_HEADER: [u8; 24] = [
        0x0D, 0x0C, 0x0B, 0x0A, 0x24, 0x23, 0x22, 0x21, 0, 0, 0, 0, 0x0A, 0, 0x0B, 0, 2, 0, 3, 0,
        0x02, 0x28, 24, 0x0F,
    ];

    /// The old version's header on whatever page, linked to the new one.
    fn expected_old(infomask2_high: u8) -> [u8; 32] {
        let mut expected = TUPLE;
        expected[4..8].copy_from_slice(&[0x14, 0x13, 0x12, 0x11]);
        expected[8..18].copy_from_slice(&[0, 0, 0, 0, 0x0A, 0, 0x0B, 0, 2, 0]);
        expected[18..22].copy_from_slice(&[0xFF, infomask2_high, 0x0F, 0x23]);
        expected
    }

    #[test]
    fn one_page_gets_both_changes() {
        for (info, infomask2_high) in [(0x20, 0x9F), (0x40, 0xDF)] {
            let main_data = main_data(0, 0);
            let update = record(10, info, &main_data).with(heap_block(0, 0xA_000B, &DATA));
            let mut page = heap_page(1);
            assert_eq!(update.redo_touch(0, &mut page).unwrap(), Effect::changed());
            assert_eq!(page.item(1).unwrap(), &expected_old(infomask2_high));
            assert_eq!(page.item(2).unwrap(), &[&NEW_HEADER[..], b"xyz"].concat());
            assert_eq!(page.prune_xid(), XID);
        }
    }

    #[test]
    fn old_infobits_are_applied_and_hot_updated_is_set_anew() {
        let main_data = main_data(0x10, 0);
        let update = record(10, 0x40, &main_data).with(heap_block(0, 0, &DATA));
        let mut page = heap_page(1);
        page.heap_tuple_mut(1).unwrap().set_infomask2(0x0003);
        update.redo_touch(0, &mut page).unwrap();
        assert_eq!(page.heap_tuple(1).unwrap().infomask2(), 0x6003);
    }

    #[test]
    fn two_pages_are_changed_apart() {
        let main_data = main_data(0, 0);
        let update = record(10, 0x20, &main_data)
            .with(heap_block(0, 0xA_000B, &DATA))
            .with(heap_block(1, 3, &[]));
        let mut new = heap_page(1);
        assert_eq!(update.redo_touch(0, &mut new).unwrap(), Effect::changed());
        assert_eq!(new.item(1).unwrap(), &TUPLE);
        assert_eq!(new.item(2).unwrap(), &[&NEW_HEADER[..], b"xyz"].concat());
        assert_eq!(new.prune_xid(), TransactionId::INVALID);
        let mut old = heap_page(1);
        assert_eq!(update.redo_touch(1, &mut old).unwrap(), Effect::changed());
        assert_eq!(old.item(1).unwrap(), &expected_old(0x9F));
        assert_eq!((old.max_offset(), old.prune_xid()), (1, XID));
    }

    #[test]
    fn init_concerns_the_new_page_only() {
        let mut main_data = main_data(0, 0);
        main_data[12] = 1;
        let update = record(10, 0xA0, &main_data)
            .with(heap_block(0, 0xA_000B, &DATA))
            .with(heap_block(1, 3, &[]))
            .with_init();
        let kinds = update
            .touches()
            .unwrap()
            .iter()
            .map(|t| t.kind)
            .collect::<Vec<_>>();
        assert_eq!(kinds, [TouchKind::Init, TouchKind::Modify]);
        let mut new = heap_page(5);
        update.redo_touch(0, &mut new).unwrap();
        assert_eq!(new.max_offset(), 1);
        let mut old = heap_page(1);
        update.redo_touch(1, &mut old).unwrap();
        assert_eq!(old.heap_tuple(1).unwrap().ctid().offset, 1);
    }

    /// The new version's user data after prefix and suffix from `A0 .. A7` round "xyz".
    fn shared(flags: u8, lengths: &[u8]) -> Result<Vec<u8>, RmgrError> {
        let main_data = main_data(0, flags);
        let data = [lengths, &DATA].concat();
        let update = record(10, 0x40, &main_data).with(heap_block(0, 0xA_000B, &data));
        let mut page = heap_page(1);
        update.redo_touch(0, &mut page)?;
        let item = page.item(2)?;
        assert_eq!(item[..24], NEW_HEADER);
        Ok(item[24..].to_vec())
    }

    #[test]
    fn the_new_version_shares_its_ends_with_the_old_one() {
        assert_eq!(shared(0x20, &[2, 0]).unwrap(), b"\xA0\xA1xyz");
        assert_eq!(shared(0x40, &[3, 0]).unwrap(), b"xyz\xA5\xA6\xA7");
        assert_eq!(shared(0x60, &[1, 0, 1, 0]).unwrap(), b"\xA0xyz\xA7");
        assert_eq!(shared(0x60, &[0, 0, 0, 0]).unwrap(), b"xyz");
    }

    #[test]
    fn sharing_more_than_there_is_is_an_error() {
        assert!(shared(0x20, &[8, 0]).is_ok());
        assert!(shared(0x20, &[9, 0]).is_err());
        assert!(shared(0x40, &[33, 0]).is_err());
        let main_data = main_data(0, 0x20);
        let data = [&[1, 0], &DATA[..]].concat();
        let apart = record(10, 0x20, &main_data)
            .with(heap_block(0, 0, &data))
            .with(heap_block(1, 1, &[]));
        assert!(apart.redo_touch(0, &mut heap_page(1)).is_err());
    }

    #[test]
    fn the_prefix_starts_at_the_old_hoff() {
        let main_data = main_data(0, 0x20);
        let data = [&[2, 0], &DATA[..]].concat();
        let update = record(10, 0x40, &main_data).with(heap_block(0, 0, &data));
        let mut page = heap_page(1);
        page.heap_tuple_mut(1).unwrap().set_hoff(26);
        update.redo_touch(0, &mut page).unwrap();
        assert_eq!(page.item(2).unwrap()[24..], *b"\xA2\xA3xyz");
    }

    #[test]
    fn the_free_space_map_learns_of_cold_updates_only() {
        let main_data = main_data(0, 0);
        let data = [24u8; 7000];
        let free = |info: u8| {
            let update = record(10, info, &main_data).with(heap_block(0, 0, &data));
            update.redo_touch(0, &mut heap_page(1)).unwrap().free_space
        };
        // 8168 less the old tuple and its pointer, less 7018 rounded up and a pointer, less 4.
        assert_eq!(free(0x20), Some(8168 - 36 - 7024 - 4 - 4));
        assert_eq!(free(0x40), None);
    }

    #[test]
    fn page_flags_follow_old_and_new_apart() {
        let flags_left = |flags: u8, touch: usize| {
            let main_data = main_data(0, flags);
            let update = record(10, 0x20, &main_data)
                .with(heap_block(0, 9, &DATA))
                .with(heap_block(1, 3, &[]))
                .with(map_block(2, 0));
            let mut page = heap_page(1);
            page.set_flag(PD_ALL_VISIBLE);
            update.redo_touch(touch, &mut page).unwrap();
            page.flags()
        };
        assert_eq!(
            (flags_left(0x01, 0), flags_left(0x02, 0)),
            (PD_ALL_VISIBLE, 0)
        );
        assert_eq!(
            (flags_left(0x01, 1), flags_left(0x02, 1)),
            (0, PD_ALL_VISIBLE)
        );
    }

    #[test]
    fn map_clears_come_first_the_old_page_before_the_new() {
        let main_data = main_data(0, 0x03);
        let update = record(10, 0x20, &main_data)
            .with(heap_block(0, 40_000, &DATA))
            .with(heap_block(1, 3, &[]));
        let touches = update.touches().unwrap();
        let places = touches
            .iter()
            .map(|t| (t.tag.fork, t.tag.block))
            .collect::<Vec<_>>();
        let (main, map) = (ForkNumber::Main, ForkNumber::Vm);
        assert_eq!(places, [(map, 0), (map, 1), (main, 40_000), (main, 3)]);
        let cleared = |heap_block| Target::VmClear {
            heap_block,
            bits: 3,
        };
        assert_eq!(touches[0].target, cleared(3));
        assert_eq!(touches[1].target, cleared(40_000));
    }

    #[test]
    fn one_flag_clears_one_page() {
        for (flags, block) in [(0x01, 3), (0x02, 9)] {
            let main_data = main_data(0, flags);
            let update = record(10, 0x20, &main_data)
                .with(heap_block(0, 9, &DATA))
                .with(heap_block(1, 3, &[]));
            let touches = update.touches().unwrap();
            assert_eq!(touches.len(), 3);
            let target = Target::VmClear {
                heap_block: block,
                bits: 3,
            };
            assert_eq!(touches[0].target, target);
        }
    }

    /// Bits of blocks 3 (old) and `new` after redo on registered reference `id`, and the effect.
    fn registered(flags: u8, new: u32, id: u8) -> (u8, u8, Effect) {
        let main_data = main_data(0, flags);
        let update = record(10, 0x20, &main_data)
            .with(heap_block(0, new, &DATA))
            .with(heap_block(1, 3, &[]))
            .with(map_block(id, if id == 2 { vm::map_block(new) } else { 0 }));
        let touches = update.touches().unwrap();
        assert_eq!(touches.len(), 3, "no other form for the other page");
        let mut map = Page::zeroed();
        vm::set(&mut map, 3, 3);
        vm::set(&mut map, new, 3);
        let effect = update.redo_touch(2, &mut map).unwrap();
        (vm::get(&map, 3), vm::get(&map, new), effect)
    }

    #[test]
    fn registered_map_pages_may_have_both_bits() {
        assert_eq!(registered(0x03, 9, 2), (0, 0, Effect::changed()));
        assert_eq!(registered(0x01, 9, 2), (0, 3, Effect::changed()));
        assert_eq!(registered(0x02, 9, 2), (3, 0, Effect::changed()));
        assert_eq!(registered(0x00, 9, 2), (3, 3, Effect::none()));
        assert_eq!(registered(0x03, 40_000, 2), (3, 0, Effect::changed()));
        assert_eq!(registered(0x03, 40_000, 3), (0, 3, Effect::changed()));
    }

    #[test]
    fn text_and_truncation() {
        let main_data = main_data(0x1F, 0x60);
        let data = [&[1, 0, 2, 0], &DATA[..]].concat();
        let update = record(10, 0x20, &main_data).with(heap_block(0, 0, &data));
        let expected = "off 1 xmax 286397204 flags 0x60 IS_MULTI LOCK_ONLY EXCL_LOCK KEYSHR_LOCK \
                        KEYS_UPDATED ; new off 2 xmax 555885348";
        assert_eq!(update.text(), expected);
        update.cut_everywhere(&heap_page(1));
    }
}
