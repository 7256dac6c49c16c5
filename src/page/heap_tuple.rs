//! The heap tuple header (`src/include/access/htup_details.h`), as offsets into an item.
//!
//! [`HeapTuple`] is a view over the bytes of one item, checked once to be as long as the header,
//! so that its accessors need no error. The view owns nothing: over `&[u8]` it reads, over
//! `&mut [u8]` it also writes.

use super::{LpFlags, Page, PageError};
use crate::types::{BlockNumber, INVALID_BLOCK, OffsetNumber, TransactionId};

const T_XMIN: usize = 0;
const T_XMAX: usize = T_XMIN + 4;
/// `t_cid`; `t_xvac` lives in the same four bytes.
const T_CID: usize = T_XMAX + 4;
const T_CTID: usize = T_CID + 4;
const T_INFOMASK2: usize = T_CTID + 6;
const T_INFOMASK: usize = T_INFOMASK2 + 2;
const T_HOFF: usize = T_INFOMASK + 2;

/// Bytes of the header without the null bitmap (`SizeofHeapTupleHeader`).
pub const HEAP_TUPLE_HEADER_BYTES: usize = T_HOFF + 1;
const _: () = assert!(HEAP_TUPLE_HEADER_BYTES == 23);

/// t_infomask: xmax is a key-shared locker.
pub const HEAP_XMAX_KEYSHR_LOCK: u16 = 0x0010;
/// t_infomask: t_cid is a combo command id.
pub const HEAP_COMBOCID: u16 = 0x0020;
/// t_infomask: xmax is an exclusive locker.
pub const HEAP_XMAX_EXCL_LOCK: u16 = 0x0040;
/// t_infomask: xmax, if valid, only locks.
pub const HEAP_XMAX_LOCK_ONLY: u16 = 0x0080;
/// t_infomask: xmin committed and invalid at once, which no transaction can be.
pub const HEAP_XMIN_FROZEN: u16 = 0x0300;
/// t_infomask: xmax committed.
pub const HEAP_XMAX_COMMITTED: u16 = 0x0400;
/// t_infomask: xmax aborted or none.
pub const HEAP_XMAX_INVALID: u16 = 0x0800;
/// t_infomask: xmax is a multixact.
pub const HEAP_XMAX_IS_MULTI: u16 = 0x1000;
/// t_infomask: moved by a VACUUM FULL before 9.0.
pub const HEAP_MOVED: u16 = 0xC000;
/// t_infomask: everything about visibility.
pub const HEAP_XACT_MASK: u16 = 0xFFF0;
/// t_infomask: a shared locker has both lock bits.
pub const HEAP_LOCK_MASK: u16 = HEAP_XMAX_EXCL_LOCK | HEAP_XMAX_KEYSHR_LOCK;
/// t_infomask: everything about xmax.
pub const HEAP_XMAX_BITS: u16 = HEAP_XMAX_COMMITTED
    | HEAP_XMAX_INVALID
    | HEAP_XMAX_IS_MULTI
    | HEAP_LOCK_MASK
    | HEAP_XMAX_LOCK_ONLY;
const _: () = assert!(HEAP_XMAX_BITS == 0x1CD0);

/// t_infomask2: deleted, or updated in a key column.
pub const HEAP_KEYS_UPDATED: u16 = 0x2000;
/// t_infomask2: the next version is heap-only.
pub const HEAP_HOT_UPDATED: u16 = 0x4000;

/// Offset number that marks t_ctid as the token of a speculative insertion.
const SPEC_TOKEN_OFFSET: OffsetNumber = 0xFFFE;

/// Where a tuple is (`ItemPointerData`): six bytes, the high half of the block number first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "ItemPointerData")]
pub struct ItemPointer {
    /// Block of the relation.
    pub block: BlockNumber,
    /// Line pointer on it.
    pub offset: OffsetNumber,
}

impl ItemPointer {
    /// Bytes it takes.
    pub const BYTES: usize = 6;

    /// What t_ctid holds when an update has moved the row to another partition
    /// (`ItemPointerSetMovedPartitions`).
    pub const MOVED_PARTITIONS: ItemPointer = ItemPointer {
        block: INVALID_BLOCK,
        offset: 0xFFFD,
    };

    /// From its six bytes.
    pub fn from_bytes(bytes: [u8; ItemPointer::BYTES]) -> ItemPointer {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        ItemPointer {
            block: u32::from(word(0)) << 16 | u32::from(word(2)),
            offset: word(4),
        }
    }

    /// Its six bytes.
    pub fn to_bytes(self) -> [u8; ItemPointer::BYTES] {
        let [high, low] = [(self.block >> 16) as u16, self.block as u16].map(u16::to_le_bytes);
        let offset = self.offset.to_le_bytes();
        [high[0], high[1], low[0], low[1], offset[0], offset[1]]
    }
}

/// The bytes of a heap tuple, at least a header long (`HeapTupleHeaderData`).
#[derive(Debug)]
#[doc(alias = "HeapTupleHeaderData")]
pub struct HeapTuple<B>(B);

impl<B: AsRef<[u8]>> HeapTuple<B> {
    /// A view of `bytes`.
    pub fn new(bytes: B) -> Result<HeapTuple<B>, PageError> {
        let len = bytes.as_ref().len();
        if len < HEAP_TUPLE_HEADER_BYTES {
            return Err(PageError::TooShort {
                what: "heap tuple",
                bytes: len,
            });
        }
        Ok(HeapTuple(bytes))
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.as_ref()[at..at + N]
            .try_into()
            .expect("the view is longer than the header")
    }

    /// t_xmin.
    pub fn xmin(&self) -> TransactionId {
        TransactionId(u32::from_le_bytes(self.field(T_XMIN)))
    }

    /// t_xmax.
    pub fn xmax(&self) -> TransactionId {
        TransactionId(u32::from_le_bytes(self.field(T_XMAX)))
    }

    /// t_cid.
    pub fn cid(&self) -> u32 {
        u32::from_le_bytes(self.field(T_CID))
    }

    /// t_ctid.
    pub fn ctid(&self) -> ItemPointer {
        ItemPointer::from_bytes(self.field(T_CTID))
    }

    /// t_infomask2.
    pub fn infomask2(&self) -> u16 {
        u16::from_le_bytes(self.field(T_INFOMASK2))
    }

    /// t_infomask.
    pub fn infomask(&self) -> u16 {
        u16::from_le_bytes(self.field(T_INFOMASK))
    }

    /// t_hoff: where user data starts. Untrusted.
    pub fn hoff(&self) -> u8 {
        self.0.as_ref()[T_HOFF]
    }

    /// What follows t_hoff.
    pub fn user_data(&self) -> Result<&[u8], PageError> {
        let bytes = self.0.as_ref();
        bytes
            .get(usize::from(self.hoff())..)
            .ok_or(too_short_for_hoff(bytes.len()))
    }

    /// `HeapTupleHeaderXminFrozen`.
    pub fn is_xmin_frozen(&self) -> bool {
        self.infomask() & HEAP_XMIN_FROZEN == HEAP_XMIN_FROZEN
    }

    /// `HeapTupleHeaderIsSpeculative`.
    pub fn is_speculative(&self) -> bool {
        self.ctid().offset == SPEC_TOKEN_OFFSET
    }

    /// `HEAP_XMAX_IS_LOCKED_ONLY`: xmax does not end the life of this version. Without the
    /// explicit bit this is so for the exclusive locks of releases before 9.3.
    pub fn is_locked_only(&self) -> bool {
        let infomask = self.infomask();
        infomask & HEAP_XMAX_LOCK_ONLY != 0
            || infomask & (HEAP_XMAX_IS_MULTI | HEAP_LOCK_MASK) == HEAP_XMAX_EXCL_LOCK
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> HeapTuple<B> {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0.as_mut()[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Stores t_xmin.
    pub fn set_xmin(&mut self, xid: TransactionId) {
        self.put(T_XMIN, &xid.0.to_le_bytes());
    }

    /// Stores t_xmax.
    pub fn set_xmax(&mut self, xid: TransactionId) {
        self.put(T_XMAX, &xid.0.to_le_bytes());
    }

    /// Stores t_xvac, which is also t_cid.
    pub fn set_xvac(&mut self, xid: TransactionId) {
        self.put(T_CID, &xid.0.to_le_bytes());
    }

    /// `HeapTupleHeaderSetCmax` with `FirstCommandId`: command ids are never replayed, they mean
    /// nothing once their transaction is over.
    pub fn clear_cid(&mut self) {
        self.put(T_CID, &[0; 4]);
        self.set_infomask(self.infomask() & !HEAP_COMBOCID);
    }

    /// Stores t_ctid.
    pub fn set_ctid(&mut self, tid: ItemPointer) {
        self.put(T_CTID, &tid.to_bytes());
    }

    /// Stores t_infomask2.
    pub fn set_infomask2(&mut self, infomask2: u16) {
        self.put(T_INFOMASK2, &infomask2.to_le_bytes());
    }

    /// Stores t_infomask.
    pub fn set_infomask(&mut self, infomask: u16) {
        self.put(T_INFOMASK, &infomask.to_le_bytes());
    }

    /// Stores t_hoff.
    pub fn set_hoff(&mut self, hoff: u8) {
        self.put(T_HOFF, &[hoff]);
    }

    /// `HeapTupleHeaderClearHotUpdated`.
    pub fn clear_hot_updated(&mut self) {
        self.set_infomask2(self.infomask2() & !HEAP_HOT_UPDATED);
    }

    /// `HeapTupleHeaderSetHotUpdated`.
    pub fn set_hot_updated(&mut self) {
        self.set_infomask2(self.infomask2() | HEAP_HOT_UPDATED);
    }

    /// What follows t_hoff, to be changed.
    pub fn user_data_mut(&mut self) -> Result<&mut [u8], PageError> {
        let hoff = usize::from(self.hoff());
        let bytes = self.0.as_mut();
        let len = bytes.len();
        bytes.get_mut(hoff..).ok_or(too_short_for_hoff(len))
    }
}

fn too_short_for_hoff(bytes: usize) -> PageError {
    PageError::TooShort {
        what: "heap tuple for its t_hoff",
        bytes,
    }
}

impl Page {
    /// The heap tuple behind line pointer `offset`, which must be a normal one.
    pub fn heap_tuple(&self, offset: OffsetNumber) -> Result<HeapTuple<&[u8]>, PageError> {
        self.check_normal(offset)?;
        HeapTuple::new(self.item(offset)?)
    }

    /// The same, to be changed.
    pub fn heap_tuple_mut(
        &mut self,
        offset: OffsetNumber,
    ) -> Result<HeapTuple<&mut [u8]>, PageError> {
        self.check_normal(offset)?;
        HeapTuple::new(self.item_mut(offset)?)
    }

    fn check_normal(&self, offset: OffsetNumber) -> Result<(), PageError> {
        let found = self.item_id(offset)?.flags();
        if found == LpFlags::Normal {
            return Ok(());
        }
        Err(PageError::ItemKind {
            offset,
            found,
            expected: "a normal one",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each byte of the header has a value of its own.
    const HEADER: [u8; 25] = [
        1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 5, 0, 6, 0, 7, 0x40, 8, 1, 24, 0xAA, 0xBB,
    ];

    #[test]
    fn fields_lie_where_postgres_puts_them() {
        let t = HeapTuple::new(&HEADER[..]).unwrap();
        assert_eq!((t.xmin().0, t.xmax().0, t.cid()), (1, 2, 3));
        let ctid = ItemPointer {
            block: 0x4_0005,
            offset: 6,
        };
        assert_eq!(t.ctid(), ctid);
        assert_eq!((t.infomask2(), t.infomask(), t.hoff()), (0x4007, 0x108, 24));
        assert_eq!(t.user_data().unwrap(), &[0xBB]);
    }

    #[test]
    fn setters_are_the_inverse_of_getters() {
        let mut bytes = [0u8; 25];
        let mut t = HeapTuple::new(&mut bytes[..]).unwrap();
        t.set_xmin(TransactionId(1));
        t.set_xmax(TransactionId(2));
        t.set_xvac(TransactionId(3));
        t.set_ctid(ItemPointer {
            block: 0x4_0005,
            offset: 6,
        });
        t.set_infomask2(7);
        t.set_hot_updated();
        t.set_infomask(0x108);
        t.set_hoff(24);
        t.user_data_mut().unwrap()[0] = 0xBB;
        bytes[23] = 0xAA;
        assert_eq!(bytes, HEADER);
    }

    #[test]
    fn short_items_are_an_error() {
        for len in 0..HEAP_TUPLE_HEADER_BYTES {
            assert!(HeapTuple::new(&HEADER[..len]).is_err(), "{len}");
        }
        let t = HeapTuple::new(&HEADER[..23]).unwrap();
        assert!(t.user_data().is_err());
    }

    #[test]
    fn locked_only_has_an_old_form() {
        let locked = |infomask: u16| {
            let mut bytes = HEADER;
            let mut t = HeapTuple::new(&mut bytes[..]).unwrap();
            t.set_infomask(infomask);
            t.is_locked_only()
        };
        assert!(locked(0x80) && locked(0x40));
        assert!(!locked(0) && !locked(0x10) && !locked(0x50) && !locked(0x1040));
    }

    #[test]
    fn only_normal_pointers_are_tuples() {
        let mut page = Page::zeroed();
        page.init(0);
        page.add_item_overwrite(&HEADER, 1).unwrap();
        page.add_item_overwrite(&HEADER[..22], 2).unwrap();
        assert_eq!(page.heap_tuple(1).unwrap().xmin(), TransactionId(1));
        assert!(matches!(
            page.heap_tuple(2),
            Err(PageError::TooShort { bytes: 22, .. })
        ));
        assert!(page.heap_tuple_mut(3).is_err());
        let id = page.item_id(1).unwrap().with_flags(LpFlags::Dead);
        page.set_item_id(1, id).unwrap();
        assert!(matches!(
            page.heap_tuple(1),
            Err(PageError::ItemKind { offset: 1, .. })
        ));
    }
}
