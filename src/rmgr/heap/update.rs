//! UPDATE and HOT_UPDATE: the end of one tuple and its next version.

use std::fmt::Write;

use super::infobits::Infobits;
use super::new_tuple::{HeapHeader, NewTuple, TupleBytes, inserted};
use super::{block_id, required_block, unexpected_block, vm_clear};
use crate::decode::Record;
use crate::page::heap_tuple::{HEAP_TUPLE_HEADER_BYTES, ItemPointer};
use crate::page::{PD_ALL_VISIBLE, Page, vm};
use crate::rmgr::{Effect, RmgrError, Touch, Touches, explicit_touches};
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
    match block_id(touch) {
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
        _ => Err(unexpected_block(touch)),
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
    let is_new_map = block_id(touch) == NEW_MAP;
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
    let _ = write!(out, "off {old_offnum} xmax {old_xmax} flags 0x{flags:02X} ");
    update.old_infobits_set.desc(out);
    let _ = write!(out, "; new off {new_offnum} xmax {new_xmax}");
    Ok(())
}
