//! Records and pages put together from literal bytes, for tests of redo and descriptions.
//!
//! Items of pages are 16 bytes: a heap TID or downlink, `t_info` and a key of eight equal bytes.
//! Item n of a list is line pointer n.

use super::page::{BTP_INCOMPLETE_SPLIT, BTP_LEAF, BTP_META, Opaque, append, empty};
use crate::decode::{BlockImage, BlockRef, Compression, Record};
use crate::format::WalFormat;
use crate::page::{ItemId, PD_HAS_FREE_LINES, Page};
use crate::rmgr::{
    self, Effect, PageState, RMGRS, ReadMode, RedoSettings, RmgrError, Target, Touch, TouchKind,
};
use crate::types::{
    BLOCK_BYTES, BlockNumber, BlockTag, ForkNumber, Lsn, Oid, RelFileLocator, RepOriginId, RmgrId,
    TransactionId,
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
        overwritten: Lsn(0),
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

/// A plain tuple with key `key`, its TID (or downlink) in block `tid_block`.
pub(super) fn plain(key: u8, tid_block: u8, tid_off: u8) -> Vec<u8> {
    let mut tuple = vec![0, 0, tid_block, 0, tid_off, 0, 16, 0];
    tuple.extend([key; 8]);
    tuple
}

/// The six bytes of a TID.
pub(super) fn tid(tid_block: u8, tid_off: u8) -> [u8; 6] {
    [0, 0, tid_block, 0, tid_off, 0]
}

/// A posting tuple with key `key` and these TIDs.
pub(super) fn posting(key: u8, tids: &[[u8; 6]]) -> Vec<u8> {
    let size = (16 + 6 * tids.len()).next_multiple_of(8);
    let mut tuple = vec![0, 0, 16, 0, tids.len() as u8, 0x20, size as u8, 0x20];
    tuple.extend([key; 8]);
    tuple.extend(tids.concat());
    tuple.resize(size, 0);
    tuple
}

/// A page with these items and dirt everywhere that redo may or may not keep.
pub(super) fn page_of(opaque: Opaque, items: &[Vec<u8>]) -> Page {
    let mut page = empty(opaque);
    page.bytes_mut()[24..BLOCK_BYTES - 16].fill(0xDD);
    for item in items {
        append(&mut page, item).unwrap();
    }
    page.set_lsn(Lsn(0x99));
    page.set_checksum_field(0x1234);
    page.set_flag(PD_HAS_FREE_LINES);
    page.set_prune_xid(TransactionId(33));
    page
}

/// A leaf with left sibling 2.
pub(super) fn leaf(next: BlockNumber) -> Opaque {
    Opaque {
        prev: 2,
        next,
        level: 0,
        flags: BTP_LEAF,
        cycle_id: 0,
    }
}

/// A leaf that was just split, with right sibling 6.
pub(super) fn split_leaf() -> Opaque {
    Opaque {
        prev: 2,
        next: 6,
        level: 0,
        flags: BTP_LEAF | BTP_INCOMPLETE_SPLIT,
        cycle_id: 0,
    }
}

/// What a page holds that was built anew: header and hole as `PageInit` leaves them, items one
/// below the other.
pub(super) fn rebuilt(opaque: Opaque, items: &[Vec<u8>]) -> Page {
    let mut page = Page::zeroed();
    let mut upper = BLOCK_BYTES - 16;
    for (i, item) in items.iter().enumerate() {
        upper -= item.len();
        page.bytes_mut()[upper..upper + item.len()].copy_from_slice(item);
        page.put_u32(
            24 + 4 * i,
            ItemId::normal(upper as u16, item.len() as u16).0,
        );
    }
    page.set_lower((24 + 4 * items.len()) as u16);
    page.set_upper(upper as u16);
    page.put_u16(16, 8176);
    page.put_u16(18, 0x2004);
    page.put_u32(8176, opaque.prev);
    page.put_u32(8180, opaque.next);
    page.put_u32(8184, opaque.level);
    page.put_u16(8188, opaque.flags);
    page.put_u16(8190, opaque.cycle_id);
    page
}

/// The items of a page in line pointer order.
pub(super) fn items(page: &Page) -> Vec<Vec<u8>> {
    (1..=page.max_offset())
        .map(|o| page.item(o).unwrap().to_vec())
        .collect()
}

/// Main data or block data of little-endian 16-bit words.
pub(in crate::rmgr) fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// The same of 32-bit words.
pub(in crate::rmgr) fn longs(longs: &[u32]) -> Vec<u8> {
    longs.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// Block data of a metapage (`xl_btree_metadata`).
pub(super) const META: [u8; 28] = [
    4, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 1, 0xAA, 0xAA, 0xAA,
];

/// The metapage that [`META`] makes.
pub(super) fn meta_page() -> Page {
    let opaque = Opaque {
        flags: BTP_META,
        ..Opaque::default()
    };
    let mut page = rebuilt(opaque, &[]);
    page.bytes_mut()[24..28].copy_from_slice(&[0x62, 0x31, 5, 0]);
    page.bytes_mut()[28..52].copy_from_slice(&META[..24]);
    page.bytes_mut()[56..64].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0xF0, 0xBF]);
    page.bytes_mut()[64] = 1;
    page.set_lower(72);
    page
}

/// Redoes a record on one of its blocks and expects it to change.
#[track_caller]
pub(super) fn redone(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> Page {
    let mut page = page.clone();
    let record = record("Btree", info, main, blocks);
    assert_eq!(redo_block(&record, id, &mut page), Ok(Effect::changed()));
    page
}

/// True if redo of block `id` is an error.
pub(super) fn fails(info: u8, main: &[u8], blocks: &[BlockRef<'_>], id: u8, page: &Page) -> bool {
    let record = record("Btree", info, main, blocks);
    redo_block(&record, id, &mut page.clone()).is_err()
}
