//! Records put together from literal bytes, for tests of redo and descriptions.

use crate::decode::{BlockImage, BlockRef, Compression, Record};
use crate::format::WalFormat;
use crate::page::Page;
use crate::rmgr::{
    self, Effect, PageState, RMGRS, ReadMode, RedoSettings, RmgrError, Target, Touch, TouchKind,
};
use crate::types::{
    BlockNumber, BlockTag, ForkNumber, Lsn, Oid, RelFileLocator, RepOriginId, RmgrId, TransactionId,
};

/// A block reference to be given to [`record`].
pub(in crate::rmgr) fn block(id: u8, block: BlockNumber, data: &[u8]) -> BlockRef<'_> {
    BlockRef {
        id,
        tag: BlockTag {
            locator: RelFileLocator {
                spc: Oid(1663),
                db: Oid(5),
                rel: Oid(16384),
            },
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

impl BlockRef<'_> {
    /// The same, marked `BKPBLOCK_WILL_INIT`.
    pub(in crate::rmgr) fn init(mut self) -> Self {
        self.will_init = true;
        self
    }

    /// The same, with an image of no bytes.
    pub(in crate::rmgr) fn with_image(mut self, apply: bool) -> Self {
        self.image = Some(BlockImage {
            length: 0,
            hole_offset: 0,
            hole_length: 0,
            info: 0,
            apply,
            compression: Compression::None,
            bytes: &[],
        });
        self
    }
}

/// A record of the resource manager with this name.
pub(in crate::rmgr) fn record<'w>(
    rmgr: &str,
    info: u8,
    main_data: &'w [u8],
    blocks: &[BlockRef<'w>],
) -> Record<'w> {
    let rmid = RMGRS
        .iter()
        .position(|r| r.name == rmgr)
        .expect("a resource manager");
    Record {
        lsn: Lsn(0x100_0000),
        end_lsn: Lsn(0x100_0040),
        prev: Lsn(0xFF_FFC0),
        total_bytes: 64,
        xid: TransactionId(700),
        info,
        rmid: RmgrId(rmid as u8),
        origin: RepOriginId(0),
        toplevel_xid: None,
        blocks: blocks.iter().copied().collect(),
        main_data,
        format: WalFormat::ALL[0],
    }
}

/// Redoes the record on block reference `id`, which needs it.
pub(in crate::rmgr) fn redo_block(
    record: &Record<'_>,
    id: u8,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    redo_block_in(PageState::Needs, record, id, page)
}

/// The same, when reading the page found `state`.
pub(in crate::rmgr) fn redo_block_in(
    state: PageState,
    record: &Record<'_>,
    id: u8,
    page: &mut Page,
) -> Result<Effect, RmgrError> {
    let touch = Touch {
        tag: block(id, 0, &[]).tag,
        kind: TouchKind::Modify,
        read: ReadMode::Normal,
        target: Target::Block(id),
    };
    let settings = RedoSettings {
        hint_bits_are_logged: false,
    };
    rmgr::redo(record, &touch, state, page, &settings)
}

/// The description of a record.
pub(in crate::rmgr) fn desc(record: &Record<'_>) -> Result<String, RmgrError> {
    let mut out = String::new();
    rmgr::desc(record, &mut out)?;
    Ok(out)
}

/// A sequence of bytes that only looks random (xorshift), to be poured over pages and records.
pub(in crate::rmgr) struct Noise(pub(in crate::rmgr) u64);

impl Noise {
    /// The next number.
    pub(in crate::rmgr) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The next bytes.
    pub(in crate::rmgr) fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}
