//! Building the tuples that INSERT, UPDATE and MULTI_INSERT add.

use smallvec::SmallVec;

use crate::page::heap_tuple::{HEAP_COMBOCID, HEAP_TUPLE_HEADER_BYTES, HeapTuple, ItemPointer};
use crate::page::{MAX_HEAP_TUPLE_BYTES, Page};
use crate::rmgr::{Effect, RmgrError};
use crate::types::{BLOCK_BYTES, Cursor, ShortRead, TransactionId};

/// Below this many bytes of free space redo records the page in the free space map. A fifth of
/// the page, for want of the table's fillfactor.
const LOW_FREE_SPACE_BYTES: usize = BLOCK_BYTES / 5;

/// Room for any tuple, on the stack: [`NewTuple::build`] never lets it spill.
pub(in crate::rmgr) type TupleBytes = SmallVec<[u8; MAX_HEAP_TUPLE_BYTES]>;

/// What a record keeps of a tuple header (`xl_heap_header`, 5 bytes); the rest follows from the
/// record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_header")]
pub(in crate::rmgr) struct HeapHeader {
    /// Offset 0.
    pub(in crate::rmgr) infomask2: u16,
    /// Offset 2.
    pub(in crate::rmgr) infomask: u16,
    /// Offset 4, in bytes.
    pub(in crate::rmgr) hoff: u8,
}

impl HeapHeader {
    /// Reads the five bytes.
    pub(in crate::rmgr) fn decode(c: &mut Cursor<'_>) -> Result<HeapHeader, ShortRead> {
        Ok(HeapHeader {
            infomask2: c.u16("t_infomask2")?,
            infomask: c.u16("t_infomask")?,
            hoff: c.u8("t_hoff")?,
        })
    }
}

/// The header of a tuple to be added. Its command id is 0: they are never replayed.
#[derive(Debug, Clone, Copy)]
pub(in crate::rmgr) struct NewTuple {
    /// From the record.
    pub(in crate::rmgr) header: HeapHeader,
    /// The inserting transaction.
    pub(in crate::rmgr) xmin: TransactionId,
    /// The deleting or locking one.
    pub(in crate::rmgr) xmax: TransactionId,
    /// Where it will be.
    pub(in crate::rmgr) tid: ItemPointer,
}

impl NewTuple {
    /// Fills `out` with the header and the parts of what follows it.
    pub(in crate::rmgr) fn build(
        &self,
        parts: &[&[u8]],
        out: &mut TupleBytes,
    ) -> Result<(), RmgrError> {
        let bytes = HEAP_TUPLE_HEADER_BYTES + parts.iter().map(|part| part.len()).sum::<usize>();
        if bytes > MAX_HEAP_TUPLE_BYTES {
            return Err(RmgrError::corrupt(format!(
                "tuple of {bytes} bytes, more than {MAX_HEAP_TUPLE_BYTES}"
            )));
        }
        let mut header = [0; HEAP_TUPLE_HEADER_BYTES];
        let mut tuple = HeapTuple::new(&mut header[..])?;
        tuple.set_xmin(self.xmin);
        tuple.set_xmax(self.xmax);
        tuple.set_ctid(self.tid);
        tuple.set_infomask2(self.header.infomask2);
        tuple.set_infomask(self.header.infomask & !HEAP_COMBOCID);
        tuple.set_hoff(self.header.hoff);
        out.clear();
        out.extend_from_slice(&header);
        for part in parts {
            out.extend_from_slice(part);
        }
        Ok(())
    }
}

/// The page changed, and the free space map learns of it if little is left. A restored page is
/// never recorded: PostgreSQL keeps the map only roughly right here.
pub(in crate::rmgr) fn inserted(page: &Page) -> Effect {
    let free = page.heap_free_space();
    if free < LOW_FREE_SPACE_BYTES {
        Effect::changed().with_free_space(free)
    } else {
        Effect::changed()
    }
}
