//! SPLIT: its pages come as images, in both trees. VACUUM_PAGE, of a leaf of the entry tree, is an
//! image and nothing else.

use super::insert::PageKind;
use super::page::clear_incomplete_split;
use super::{RmgrError, true_or_false, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::rmgr::fields::append;
use crate::types::{Cursor, ShortRead};

/// `GIN_SPLIT_ROOT`.
const SPLIT_ROOT: u16 = 0x04;

/// Main data (`ginxlogSplit`, 28 bytes). Relation, right link and children, offsets 0 to 23, are
/// in the images and used by nobody.
#[doc(alias = "ginxlogSplit")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Split {
    /// Offset 24: flags.
    kind: PageKind,
    /// Offset 24: the page was the root, which is block 2 now.
    is_root: bool,
}

impl Split {
    fn parse(main: &[u8]) -> Result<Split, ShortRead> {
        let mut c = Cursor::new("ginxlogSplit", main);
        c.skip("node, rrlink, children", 24)?;
        let flags = c.u16("flags")?;
        c.skip("padding", 2)?;
        Ok(Split {
            kind: PageKind::from_flags(flags),
            is_root: flags & SPLIT_ROOT != 0,
        })
    }
}

/// `ginRedoSplit`. All but the child of an inner page, whose own split this finishes, are images.
pub(super) fn redo(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let split = Split::parse(record.main_data)?;
    match block.id {
        3 if !split.kind.is_leaf => clear_incomplete_split(page),
        id => Err(unexpected_block(id)),
    }
}

/// `XLOG_GIN_SPLIT` in words.
pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let split = Split::parse(record.main_data)?;
    let is_root = true_or_false(split.is_root);
    append(out, format_args!("isrootsplit: {is_root} "));
    split.kind.desc(out);
    Ok(())
}
