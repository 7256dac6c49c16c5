//! Transaction ids and their order.

use std::fmt;

/// A 32-bit transaction id. Ids below 3 are special; the others are ordered modulo 2^32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TransactionId(pub u32);

impl TransactionId {
    /// `InvalidTransactionId`.
    pub const INVALID: TransactionId = TransactionId(0);
    /// `FrozenTransactionId`.
    pub const FROZEN: TransactionId = TransactionId(2);
    /// `FirstNormalTransactionId`.
    pub const FIRST_NORMAL: TransactionId = TransactionId(3);

    /// True for every value but 0.
    pub fn is_valid(self) -> bool {
        self.0 != 0
    }

    /// True from 3 on (`TransactionIdIsNormal`).
    pub fn is_normal(self) -> bool {
        self.0 >= 3
    }

    /// `TransactionIdPrecedes` (`src/backend/access/transam/transam.c`): special ids by value,
    /// normal ones modulo 2^32.
    pub fn precedes(self, other: TransactionId) -> bool {
        if self.is_normal() && other.is_normal() {
            (self.0.wrapping_sub(other.0) as i32) < 0
        } else {
            self.0 < other.0
        }
    }

    /// The id after this one, skipping the special ones (`TransactionIdAdvance`).
    pub fn next(self) -> TransactionId {
        TransactionId(self.0.wrapping_add(1).max(3))
    }
}

impl fmt::Display for TransactionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A 64-bit transaction id: the epoch in the high half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FullTransactionId(pub u64);

impl FullTransactionId {
    /// The 32-bit id.
    pub fn xid(self) -> TransactionId {
        TransactionId(self.0 as u32)
    }

    /// How often 32 bits have wrapped.
    pub fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// From epoch and 32-bit id.
    pub fn new(epoch: u32, xid: TransactionId) -> FullTransactionId {
        FullTransactionId(u64::from(epoch) << 32 | u64::from(xid.0))
    }

    /// `AdvanceNextFullTransactionIdPastXid` (`src/backend/access/transam/varsup.c`): the next
    /// id to assign once `xid` is known to be in use.
    pub fn past(self, xid: TransactionId) -> FullTransactionId {
        if !xid.is_normal() || xid.precedes(self.xid()) {
            return self;
        }
        let next = xid.next();
        let epoch = self.epoch().wrapping_add(u32::from(next.0 < self.xid().0));
        FullTransactionId::new(epoch, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_modular_for_normal_ids_only() {
        assert!(TransactionId(u32::MAX).precedes(TransactionId(3)));
        assert!(TransactionId(2).precedes(TransactionId(u32::MAX)));
        assert!(!TransactionId(5).precedes(TransactionId(5)));
    }

    #[test]
    fn advancing_skips_special_ids_and_counts_the_epoch() {
        let next = FullTransactionId::new(0, TransactionId(100));
        assert_eq!(next.past(TransactionId(99)), next);
        assert_eq!(next.past(TransactionId(100)).0, 101);
        let late = FullTransactionId::new(0, TransactionId(u32::MAX));
        assert_eq!(
            late.past(TransactionId(u32::MAX)),
            FullTransactionId::new(1, TransactionId(3))
        );
    }
}
