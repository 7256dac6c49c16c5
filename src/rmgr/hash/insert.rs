//! INSERT: an item is added to a page that has room for it.

use std::fmt;

use super::{RmgrError, meta, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::Page;
use crate::types::{Cursor, OffsetNumber, ShortRead};

/// Main data (`xl_hash_insert`, 2 bytes).
#[doc(alias = "xl_hash_insert")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Insert {
    /// Offset 0: where the item goes; items are in the order of their hash values.
    offnum: OffsetNumber,
}

impl Insert {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<Insert, ShortRead> {
        let mut c = Cursor::new("xl_hash_insert", main);
        Ok(Insert {
            offnum: c.u16("offnum")?,
        })
    }
}

impl fmt::Display for Insert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "off {}", self.offnum)
    }
}

/// `hash_xlog_insert`.
pub(super) fn redo(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let Insert { offnum } = Insert::parse(record.main_data)?;
    match block.id {
        0 => Ok(page.add_item(block.data, offnum)?),
        1 => {
            meta::add_to_ntuples(page, 1.0);
            Ok(())
        }
        id => Err(unexpected_block(id)),
    }
}
