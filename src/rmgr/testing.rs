//! Records and pages for the tests of resource managers.

use super::{Effect, PageState, RedoSettings, RmgrError, Touch, TouchKind, Touches};
use crate::decode::{BlockRef, Record};
use crate::format::WalFormat;
use crate::page::{ItemId, LpFlags, Page};
use crate::types::{
    BlockNumber, BlockTag, ForkNumber, Lsn, Oid, RelFileLocator, RepOriginId, RmgrId, TransactionId,
};

/// Every test record's transaction.
pub(super) const XID: TransactionId = TransactionId(0x0A0B_0C0D);

/// The relation of every test block.
pub(super) const LOCATOR: RelFileLocator = RelFileLocator {
    spc: Oid(1663),
    db: Oid(5),
    rel: Oid(16384),
};

/// Settings without logged hint bits.
pub(super) const SETTINGS: RedoSettings = RedoSettings {
    hint_bits_are_logged: false,
};

/// A record of PostgreSQL 15 without block references.
pub(super) fn record(rmid: u8, info: u8, main_data: &[u8]) -> Record<'_> {
    Record {
        lsn: Lsn(0x100_0000),
        end_lsn: Lsn(0x100_0100),
        overwritten: Lsn(0),
        prev: Lsn(0xFF_FF00),
        total_bytes: 0x100,
        xid: XID,
        info,
        rmid: RmgrId(rmid),
        origin: RepOriginId(0),
        toplevel_xid: None,
        blocks: Default::default(),
        main_data,
        format: WalFormat::ALL[0],
    }
}

/// A reference to block `block` of the main fork.
pub(super) fn heap_block(id: u8, block: BlockNumber, data: &[u8]) -> BlockRef<'_> {
    BlockRef {
        id,
        tag: BlockTag {
            locator: LOCATOR,
            fork: ForkNumber::Main,
            block,
        },
        will_init: false,
        same_rel: false,
        has_data: !data.is_empty(),
        image: None,
        data,
    }
}

/// A reference to block `block` of the visibility map.
pub(super) fn map_block(id: u8, block: BlockNumber) -> BlockRef<'static> {
    let mut reference = heap_block(id, block, &[]);
    reference.tag.fork = ForkNumber::Vm;
    reference
}

impl<'w> Record<'w> {
    /// The same record with one more block reference.
    pub(super) fn with(mut self, block: BlockRef<'w>) -> Record<'w> {
        self.blocks.push(block);
        self
    }

    /// The same record, with a first block reference that initialises its page.
    pub(super) fn with_init(mut self) -> Record<'w> {
        self.blocks[0].will_init = true;
        self
    }

    /// Its touches.
    pub(super) fn touches(&self) -> Result<Touches, RmgrError> {
        let mut out = Touches::new();
        super::touches(self, &mut out)?;
        Ok(out)
    }

    /// Its description.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        super::desc(self, &mut out).expect("a whole record");
        out
    }

    /// Redoes it on the page of touch number `touch`, which needs it.
    pub(super) fn redo_touch(&self, touch: usize, page: &mut Page) -> Result<Effect, RmgrError> {
        let touch: Touch = self.touches()?[touch];
        if touch.kind == TouchKind::Init {
            *page = Page::zeroed();
        }
        super::redo(self, &touch, PageState::Needs, page, &SETTINGS)
    }

    /// Redoes it on its last page in another state, which changes nothing; the effect.
    pub(super) fn redo_idle(&self, state: PageState, page: &Page) -> Effect {
        let touch = *self
            .touches()
            .expect("a whole record")
            .last()
            .expect("a page");
        let mut after = page.clone();
        let effect = super::redo(self, &touch, state, &mut after, &SETTINGS).expect("no change");
        assert_eq!(after.bytes(), page.bytes(), "{state:?}");
        effect
    }

    /// Cuts main data and block data at every length; nothing may panic, and whatever main
    /// data lacks must be an error.
    pub(super) fn cut_everywhere(&self, page: &Page) {
        let attempt = |record: &Record<'_>| {
            let described = super::desc(record, &mut String::new());
            let Ok(touches) = record.touches() else {
                return false;
            };
            let redone = touches.iter().all(|touch| {
                let mut page = page.clone();
                super::redo(record, touch, PageState::Needs, &mut page, &SETTINGS).is_ok()
            });
            described.is_ok() && redone
        };
        assert!(attempt(self), "the whole record is right");
        for len in 0..self.main_data.len() {
            let mut cut = self.clone();
            cut.main_data = &self.main_data[..len];
            assert!(!attempt(&cut), "main data cut to {len} bytes");
        }
        let block_bytes = self.blocks.first().map_or(0, |block| block.data.len());
        for len in 0..block_bytes {
            let mut cut = self.clone();
            cut.blocks[0].data = &cut.blocks[0].data[..len];
            attempt(&cut);
        }
    }
}

/// A heap tuple of 32 bytes with every bit set that a record may clear: xmin 100, xmax 101, cid
/// 102, ctid (0x0007_0008, 9), all infomask bits, t_hoff 24, user data `A0 A1 .. A7`.
pub(super) const TUPLE: [u8; 32] = [
    100, 0, 0, 0, 101, 0, 0, 0, 102, 0, 0, 0, 7, 0, 8, 0, 9, 0, 0xFF, 0xFF, 0xFF, 0xFF, 24, 0x55,
    0xA0, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0xA6, 0xA7,
];

/// A heap page with `n` times [`TUPLE`], at 8160 and downwards.
pub(super) fn heap_page(n: u16) -> Page {
    let mut page = Page::zeroed();
    page.init(0);
    for offset in 1..=n {
        page.add_item_overwrite(&TUPLE, offset).expect("room");
    }
    page
}

/// A page with random bytes behind a header that is in order, and mostly sane line pointers, so
/// that redo gets as far as it can.
pub(super) fn random_page(seed: &mut u64) -> Page {
    let mut next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed
    };
    let mut page = Page::zeroed();
    for chunk in page.bytes_mut().chunks_mut(8) {
        chunk.copy_from_slice(&next().to_le_bytes());
    }
    let pointers = (next() % 20) as u16;
    page.set_lower(24 + 4 * pointers);
    page.set_upper(128 + (next() % 8000) as u16);
    page.put_u16(16, 8192);
    for offset in 1..=pointers {
        let id = ItemId::normal((next() % 8192) as u16, (next() % 64) as u16);
        if next() % 4 != 0 {
            page.set_item_id(offset, id.with_flags(LpFlags::Normal))
                .expect("it exists");
        }
    }
    page
}
