//! The counters that WAL moves and pg_control keeps: next transaction, next OID, multixacts.
//!
//! `ApplyWalRecord` and `xlog_redo` (`src/backend/access/transam/xlogrecovery.c`, `xlog.c`).

use crate::types::{
    CheckPoint, FullTransactionId, MultiXactId, MultiXactOffset, Oid, TimeLineId, TransactionId,
};

/// The counters, as of the last record that was redone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counters {
    /// Next transaction id.
    pub next_xid: FullTransactionId,
    /// Next object id.
    pub next_oid: Oid,
    /// Next multixact.
    pub next_multi: MultiXactId,
    /// Next place for members.
    pub next_multi_offset: MultiXactOffset,
    /// Oldest transaction that is not frozen everywhere.
    pub oldest_xid: TransactionId,
    /// Its database.
    pub oldest_xid_db: Oid,
    /// Oldest multixact that is still in use.
    pub oldest_multi: MultiXactId,
    /// Its database.
    pub oldest_multi_db: Oid,
    /// full_page_writes as the WAL last said it.
    pub full_page_writes: bool,
    /// Timeline of the last record.
    pub tli: TimeLineId,
}

impl Counters {
    /// What the checkpoint that recovery starts from says.
    pub fn starting_from(checkpoint: &CheckPoint) -> Counters {
        Counters {
            next_xid: checkpoint.next_xid,
            next_oid: checkpoint.next_oid,
            next_multi: checkpoint.next_multi,
            next_multi_offset: checkpoint.next_multi_offset,
            oldest_xid: checkpoint.oldest_xid,
            oldest_xid_db: checkpoint.oldest_xid_db,
            oldest_multi: checkpoint.oldest_multi,
            oldest_multi_db: checkpoint.oldest_multi_db,
            full_page_writes: checkpoint.full_page_writes,
            tli: checkpoint.this_tli,
        }
    }

    /// A transaction id is in use.
    pub fn see_xid(&mut self, xid: TransactionId) {
        self.next_xid = self.next_xid.past(xid);
    }

    /// `MultiXactAdvanceNextMXact`.
    pub fn see_multi(&mut self, next: MultiXactId, next_offset: MultiXactOffset) {
        if self.next_multi.precedes(next) {
            self.next_multi = next;
        }
        if self.next_multi_offset.precedes(next_offset) {
            self.next_multi_offset = next_offset;
        }
    }

    /// `MultiXactAdvanceOldest`.
    fn see_oldest_multi(&mut self, oldest: MultiXactId, db: Oid) {
        if self.oldest_multi.precedes(oldest) {
            self.oldest_multi = oldest;
            self.oldest_multi_db = db;
        }
    }

    /// CHECKPOINT_SHUTDOWN: nothing else ran, so its counters hold exactly.
    pub fn shutdown_checkpoint(&mut self, checkpoint: &CheckPoint) {
        self.next_xid = checkpoint.next_xid;
        self.next_oid = checkpoint.next_oid;
        self.next_multi = checkpoint.next_multi;
        self.next_multi_offset = checkpoint.next_multi_offset;
        self.see_oldest_multi(checkpoint.oldest_multi, checkpoint.oldest_multi_db);
        self.oldest_xid = checkpoint.oldest_xid;
        self.oldest_xid_db = checkpoint.oldest_xid_db;
        self.tli = checkpoint.this_tli;
    }

    /// CHECKPOINT_ONLINE: others ran meanwhile, so its counters are lower bounds. Its next OID is
    /// not used: an earlier NEXTOID has said more.
    pub fn online_checkpoint(&mut self, checkpoint: &CheckPoint) {
        self.next_xid = self.next_xid.max(checkpoint.next_xid);
        self.see_multi(checkpoint.next_multi, checkpoint.next_multi_offset);
        self.see_oldest_multi(checkpoint.oldest_multi, checkpoint.oldest_multi_db);
        if self.oldest_xid.precedes(checkpoint.oldest_xid) {
            self.oldest_xid = checkpoint.oldest_xid;
            self.oldest_xid_db = checkpoint.oldest_xid_db;
        }
    }

    /// MultiXact TRUNCATE_ID: `SetMultiXactIdLimit`.
    pub fn truncate_multi(&mut self, oldest: MultiXactId, db: Oid) {
        self.oldest_multi = oldest;
        self.oldest_multi_db = db;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> CheckPoint {
        CheckPoint {
            next_xid: FullTransactionId(1000),
            next_oid: Oid(20000),
            next_multi: MultiXactId(10),
            next_multi_offset: MultiXactOffset(30),
            oldest_xid: TransactionId(700),
            oldest_multi: MultiXactId(1),
            ..CheckPoint::default()
        }
    }

    #[test]
    fn an_online_checkpoint_only_raises_and_does_not_know_the_next_oid() {
        let mut counters = Counters::starting_from(&checkpoint());
        counters.see_xid(TransactionId(1500));
        counters.next_oid = Oid(28192);
        counters.online_checkpoint(&CheckPoint {
            oldest_xid: TransactionId(800),
            ..checkpoint()
        });
        assert_eq!(counters.next_xid, FullTransactionId(1501));
        assert_eq!(counters.next_oid, Oid(28192));
        assert_eq!(counters.oldest_xid, TransactionId(800));
    }

    #[test]
    fn a_shutdown_checkpoint_may_take_counters_back() {
        let mut counters = Counters::starting_from(&checkpoint());
        counters.see_xid(TransactionId(1500));
        counters.next_oid = Oid(28192);
        counters.shutdown_checkpoint(&checkpoint());
        assert_eq!(counters, Counters::starting_from(&checkpoint()));
    }

    #[test]
    fn multixacts_advance_modulo() {
        let mut counters = Counters::starting_from(&checkpoint());
        counters.next_multi = MultiXactId(u32::MAX);
        counters.see_multi(MultiXactId(1), MultiXactOffset(31));
        assert_eq!(counters.next_multi, MultiXactId(1));
        counters.see_multi(MultiXactId(u32::MAX), MultiXactOffset(5));
        assert_eq!(
            (counters.next_multi.0, counters.next_multi_offset.0),
            (1, 31)
        );
    }
}
