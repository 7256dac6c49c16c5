//! NEWROOT and META_CLEANUP, and the metapage that several other records rebuild too.

use std::fmt;

use super::page::{self, BTP_LEAF, BTP_META, BTP_ROOT, Opaque, P_NONE};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::{PAGE_HEADER_BYTES, Page};
use crate::types::{BlockNumber, Cursor, ShortRead};

const BTM_MAGIC: usize = PAGE_HEADER_BYTES;
const BTM_VERSION: usize = BTM_MAGIC + 4;
const BTM_ROOT: usize = BTM_VERSION + 4;
const BTM_LEVEL: usize = BTM_ROOT + 4;
const BTM_FASTROOT: usize = BTM_LEVEL + 4;
const BTM_FASTLEVEL: usize = BTM_FASTROOT + 4;
const BTM_LAST_CLEANUP_NUM_DELPAGES: usize = BTM_FASTLEVEL + 4;
const BTM_LAST_CLEANUP_NUM_HEAP_TUPLES: usize = BTM_LAST_CLEANUP_NUM_DELPAGES + 8;
const BTM_ALLEQUALIMAGE: usize = BTM_LAST_CLEANUP_NUM_HEAP_TUPLES + 8;
/// End of `BTMetaPageData`, tail padding included.
const BTM_END: usize = BTM_ALLEQUALIMAGE + 8;
const _: () = assert!(BTM_END - BTM_MAGIC == 48);

/// `BTREE_MAGIC`.
const MAGIC: u32 = 0x0005_3162;

/// The metapage as records carry it (`xl_btree_metadata`, 28 bytes).
#[doc(alias = "xl_btree_metadata")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MetaData {
    /// Offset 0: `btm_version`.
    version: u32,
    /// Offset 4: the root.
    root: BlockNumber,
    /// Offset 8: its level.
    level: u32,
    /// Offset 12: where searches start; below the root if levels have one page only.
    fastroot: BlockNumber,
    /// Offset 16: its level.
    fastlevel: u32,
    /// Offset 20: deleted pages that the last cleanup found.
    last_cleanup_num_delpages: u32,
    /// Offset 24: equal values are always identical, so they may be deduplicated.
    allequalimage: bool,
}

impl MetaData {
    /// Reads the block data.
    pub(super) fn parse(data: &[u8]) -> Result<MetaData, ShortRead> {
        let mut c = Cursor::new("xl_btree_metadata", data);
        let meta = MetaData {
            version: c.u32("version")?,
            root: c.u32("root")?,
            level: c.u32("level")?,
            fastroot: c.u32("fastroot")?,
            fastlevel: c.u32("fastlevel")?,
            last_cleanup_num_delpages: c.u32("last_cleanup_num_delpages")?,
            allequalimage: c.bool("allequalimage")?,
        };
        c.skip("padding", 3)?;
        Ok(meta)
    }
}

/// What pg_waldump prints for META_CLEANUP.
impl fmt::Display for MetaData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "last_cleanup_num_delpages {}",
            self.last_cleanup_num_delpages
        )
    }
}

/// `_bt_restore_meta`: the metapage is always built from nothing.
pub(super) fn restore(block: &BlockRef<'_>, page: &mut Page) -> Result<(), RmgrError> {
    let meta = MetaData::parse(block.data)?;
    let opaque = Opaque {
        flags: BTP_META,
        ..Opaque::default()
    };
    page::init(block, page, opaque)?;
    page.put_u32(BTM_MAGIC, MAGIC);
    page.put_u32(BTM_VERSION, meta.version);
    page.put_u32(BTM_ROOT, meta.root);
    page.put_u32(BTM_LEVEL, meta.level);
    page.put_u32(BTM_FASTROOT, meta.fastroot);
    page.put_u32(BTM_FASTLEVEL, meta.fastlevel);
    page.put_u32(
        BTM_LAST_CLEANUP_NUM_DELPAGES,
        meta.last_cleanup_num_delpages,
    );
    // Not logged: the field is obsolete and -1 says that nothing is known.
    page.put_u64(BTM_LAST_CLEANUP_NUM_HEAP_TUPLES, (-1.0f64).to_bits());
    page.bytes_mut()[BTM_ALLEQUALIMAGE] = meta.allequalimage.into();
    // Without this an image of the page would leave the contents out as hole.
    page.set_lower(BTM_END as u16);
    Ok(())
}

/// `XLOG_BTREE_META_CLEANUP`.
pub(super) fn redo_meta_cleanup(block: &BlockRef<'_>, page: &mut Page) -> Result<(), RmgrError> {
    match block.id {
        0 => restore(block, page),
        id => Err(unexpected_block(id)),
    }
}

/// Main data (`xl_btree_newroot`, 8 bytes).
#[doc(alias = "xl_btree_newroot")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewRoot {
    /// Offset 4: level of the root; 0 is the first root of an index, a leaf.
    level: u32,
}

impl NewRoot {
    /// Reads the main data. The block number at offset 0 is that of block 0.
    pub(super) fn parse(main: &[u8]) -> Result<NewRoot, ShortRead> {
        let mut c = Cursor::new("xl_btree_newroot", main);
        c.skip("rootblk", 4)?;
        Ok(NewRoot {
            level: c.u32("level")?,
        })
    }
}

impl fmt::Display for NewRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "lev {}", self.level)
    }
}

/// `btree_xlog_newroot`. A root above a split page finishes that split.
pub(super) fn redo_new_root(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let NewRoot { level } = NewRoot::parse(record.main_data)?;
    match block.id {
        0 => {
            let leaf = if level == 0 { BTP_LEAF } else { 0 };
            let opaque = Opaque {
                prev: P_NONE,
                next: P_NONE,
                level,
                flags: BTP_ROOT | leaf,
                cycle_id: 0,
            };
            page::init(block, page, opaque)?;
            if level > 0 {
                page::restore(page, block.data)?;
            }
            Ok(())
        }
        1 if level > 0 => page::clear_incomplete_split(page),
        2 => restore(block, page),
        id => Err(unexpected_block(id)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::*;
    use super::super::testing::{
        META, block, fails, leaf, longs, meta_page, page_of, plain, rebuilt, redone, split_leaf,
    };
    use super::*;

    #[test]
    fn new_root_is_an_empty_leaf_or_has_two_downlinks() {
        let data = [plain(2, 6, 1), plain(1, 4, 1)].concat();
        let blocks = [
            block(0, 3, &data).init(),
            block(1, 4, &[]),
            block(2, 0, &META).init(),
        ];
        let root = |level, flags| Opaque {
            level,
            flags,
            ..Opaque::default()
        };
        let page = redone(0xA0, &longs(&[3, 1]), &blocks, 0, &Page::zeroed());
        assert!(page == rebuilt(root(1, BTP_ROOT), &[plain(1, 4, 1), plain(2, 6, 1)]));
        let page = redone(0xA0, &longs(&[1, 0]), &blocks, 0, &Page::zeroed());
        assert!(page == rebuilt(root(0, BTP_ROOT | BTP_LEAF), &[]));
        let page = redone(0xA0, &longs(&[1, 0]), &blocks, 2, &Page::zeroed());
        assert!(page == meta_page());

        let before = page_of(split_leaf(), &[plain(9, 0, 1)]);
        let page = redone(0xA0, &longs(&[3, 1]), &blocks, 1, &before);
        assert_eq!(Opaque::read(&page).unwrap(), leaf(6));
        for len in 1..data.len() {
            let cut = [block(0, 3, &data[..len]).init()];
            let failed = fails(0xA0, &longs(&[3, 1]), &cut, 0, &Page::zeroed());
            assert_eq!(failed, len != 16, "{len}");
        }
    }

    #[test]
    fn metapage_is_built_from_the_record_alone() {
        let mut before = Page::zeroed();
        before.bytes_mut().fill(0xEE);
        let page = redone(0xE0, &[], &[block(0, 0, &META).init()], 0, &before);
        assert!(page == meta_page());
        for len in 0..META.len() {
            assert!(
                fails(0xE0, &[], &[block(0, 0, &META[..len]).init()], 0, &before),
                "{len}"
            );
        }
        assert!(
            fails(0xE0, &[], &[block(0, 0, &META)], 0, &before),
            "not WILL_INIT"
        );
    }
}
