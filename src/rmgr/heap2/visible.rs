//! VISIBLE: a heap page is all-visible, perhaps all-frozen, and the visibility map says so.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::{PD_ALL_VISIBLE, Page, vm};
use crate::rmgr::heap::required_block;
use crate::rmgr::heap::vm_clear::check_map_block;
use crate::rmgr::unexpected_block;
use crate::rmgr::{
    Effect, PageState, ReadMode, RedoSettings, RmgrError, Target, Touch, Touches, explicit_touches,
};
use crate::types::{Cursor, ShortRead, TransactionId};

/// Block reference of the page of the map.
const MAP: u8 = 0;
/// Block reference of the heap page.
const HEAP: u8 = 1;

/// Main data of VISIBLE, 5 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_visible")]
struct HeapVisible {
    /// Offset 0. Queries on a standby wait for it, redo of the pages does not.
    cutoff_xid: TransactionId,
    /// Offset 4: the bits of the map; other bits are none of it.
    flags: u8,
}

impl HeapVisible {
    fn decode(bytes: &[u8]) -> Result<HeapVisible, ShortRead> {
        let mut c = Cursor::new("xl_heap_visible", bytes);
        Ok(HeapVisible {
            cutoff_xid: TransactionId(c.u32("cutoff_xid")?),
            flags: c.u8("flags")?,
        })
    }

    /// The bits to set.
    fn map_bits(self) -> u8 {
        self.flags & vm::VALID_BITS
    }
}

/// The block references. The page of the map is made if it is missing. PostgreSQL goes to the
/// heap page first; the two do not depend on each other.
pub(super) fn touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    explicit_touches(record, out)?;
    for touch in out.iter_mut().filter(|t| t.target == Target::Block(MAP)) {
        touch.read = ReadMode::ZeroOnError;
    }
    Ok(())
}

pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
    settings: &RedoSettings,
) -> Result<Effect, RmgrError> {
    let visible = HeapVisible::decode(record.main_data)?;
    match touch.block_id() {
        MAP => redo_map(visible, record, touch, state, page),
        HEAP => Ok(redo_heap(visible, state, page, settings)),
        _ => Err(unexpected_block(touch.block_id())),
    }
}

/// The first half of `heap_xlog_visible`. PD_ALL_VISIBLE is a hint where hints are not logged, and
/// then the page keeps its LSN. The free space map learns of the page whatever its state, lest
/// VACUUM trust an old figure for a page that it will skip from now on.
fn redo_heap(
    visible: HeapVisible,
    state: PageState,
    page: &mut Page,
    settings: &RedoSettings,
) -> Effect {
    let effect = match state {
        PageState::Needs => {
            page.set_flag(PD_ALL_VISIBLE);
            if settings.hint_bits_are_logged {
                Effect::changed()
            } else {
                Effect::keep_lsn()
            }
        }
        PageState::Done | PageState::Restored => Effect::none(),
    };
    if visible.map_bits() == 0 {
        return effect;
    }
    // Not the heap variant: PostgreSQL does not count line pointers here.
    effect.with_free_space(page.free_space())
}

/// The second half of `heap_xlog_visible`, and `visibilitymap_set`: bits are added, none is
/// cleared, and a page that has just these already keeps its LSN.
fn redo_map(
    visible: HeapVisible,
    record: &Record<'_>,
    touch: &Touch,
    state: PageState,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    if state != PageState::Needs {
        return Ok(Effect::none());
    }
    let heap_block = required_block(record, HEAP)?.tag.block;
    check_map_block(touch, heap_block)?;
    if page.is_new() {
        page.init(0);
    }
    if vm::get(page, heap_block) == visible.map_bits() {
        return Ok(Effect::none());
    }
    vm::set(page, heap_block, visible.map_bits());
    Ok(Effect::changed())
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapVisible { cutoff_xid, flags } = HeapVisible::decode(record.main_data)?;
    let _ = write!(out, "cutoff xid {cutoff_xid} flags 0x{flags:02X}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rmgr::TouchKind;
    use crate::rmgr::testing::{SETTINGS, heap_block, heap_page, map_block, record};

    const MAIN_DATA: [u8; 5] = [0x14, 0x13, 0x12, 0x11, 3];

    fn visible(main_data: &[u8]) -> Record<'_> {
        record(9, 0x40, main_data)
            .with(map_block(0, 1))
            .with(heap_block(1, 32_673, &[]))
    }

    #[test]
    fn a_missing_page_of_the_map_is_made() {
        let touches = visible(&MAIN_DATA).touches().unwrap();
        assert_eq!(
            (touches[0].read, touches[0].kind),
            (ReadMode::ZeroOnError, TouchKind::Modify)
        );
        assert_eq!(touches[1].read, ReadMode::Normal);
    }

    #[test]
    fn the_map_gets_the_bits() {
        let mut map = Page::zeroed();
        let effect = visible(&MAIN_DATA).redo_touch(0, &mut map).unwrap();
        assert_eq!(effect, Effect::changed());
        assert_eq!(
            (map.lower(), map.upper()),
            (24, 8192),
            "a new page is initialised"
        );
        assert_eq!(map.bytes()[24..26], [0x0C, 0]);
        assert_eq!(
            visible(&MAIN_DATA).redo_touch(0, &mut map).unwrap(),
            Effect::none()
        );
    }

    #[test]
    fn bits_are_added_even_where_more_are_set() {
        let mut map = Page::zeroed();
        map.init(0);
        vm::set(&mut map, 32_673, 3);
        let mut main_data = MAIN_DATA;
        main_data[4] = 1;
        let effect = visible(&main_data).redo_touch(0, &mut map).unwrap();
        assert_eq!((effect, vm::get(&map, 32_673)), (Effect::changed(), 3));
    }

    #[test]
    fn the_map_must_cover_the_heap_page() {
        let odd = record(9, 0x40, &MAIN_DATA)
            .with(map_block(0, 0))
            .with(heap_block(1, 32_673, &[]));
        assert!(odd.redo_touch(0, &mut Page::zeroed()).is_err());
    }

    #[test]
    fn the_heap_page_takes_the_lsn_only_where_hints_are_logged() {
        let record = visible(&MAIN_DATA);
        let touch = record.touches().unwrap()[1];
        let settings = RedoSettings {
            hint_bits_are_logged: true,
        };
        let free = 8160 - 28 - 4;
        for (settings, expected) in [
            (settings, Effect::changed()),
            (SETTINGS, Effect::keep_lsn()),
        ] {
            let mut page = heap_page(1);
            let effect = redo(&record, &touch, PageState::Needs, &mut page, &settings).unwrap();
            assert_eq!(effect, expected.with_free_space(free));
            assert_eq!(page.flags(), PD_ALL_VISIBLE);
        }
    }

    #[test]
    fn the_free_space_map_learns_of_any_heap_page() {
        // All 291 line pointers in use: to this record the space counts all the same.
        let mut page = heap_page(0);
        page.set_lower(24 + 4 * 291);
        for state in [PageState::Done, PageState::Restored] {
            let effect = visible(&MAIN_DATA).redo_idle(state, &page);
            assert_eq!(
                effect,
                Effect::none().with_free_space(8192 - 24 - 4 * 291 - 4)
            );
            let mut main_data = MAIN_DATA;
            main_data[4] = 4;
            assert_eq!(visible(&main_data).redo_idle(state, &page), Effect::none());
        }
        let record = visible(&MAIN_DATA);
        let touch = record.touches().unwrap()[0];
        let effect = redo(&record, &touch, PageState::Done, &mut page, &SETTINGS).unwrap();
        assert_eq!(effect, Effect::none(), "the map's own page is no heap page");
    }

    #[test]
    fn text_and_truncation() {
        assert_eq!(
            visible(&MAIN_DATA).text(),
            "cutoff xid 286397204 flags 0x03"
        );
        visible(&MAIN_DATA).cut_everywhere(&heap_page(1));
    }
}
