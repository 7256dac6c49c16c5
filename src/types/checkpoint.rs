//! The body of a checkpoint record, which is also a part of `pg_control`.

use super::{
    Cursor, FullTransactionId, Lsn, MultiXactId, MultiXactOffset, Oid, ShortRead, TimeLineId,
    TransactionId,
};

/// `CheckPoint` (`src/include/catalog/pg_control.h`), 88 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckPoint {
    /// Offset 0: where redo starts.
    pub redo: Lsn,
    /// Offset 8.
    pub this_tli: TimeLineId,
    /// Offset 12: differs from `this_tli` only in the record that begins a timeline.
    pub prev_tli: TimeLineId,
    /// Offset 16.
    pub full_page_writes: bool,
    /// Offset 20: 17 and later, zero padding before.
    pub wal_level: u32,
    /// Offset 24.
    pub next_xid: FullTransactionId,
    /// Offset 32.
    pub next_oid: Oid,
    /// Offset 36.
    pub next_multi: MultiXactId,
    /// Offset 40.
    pub next_multi_offset: MultiXactOffset,
    /// Offset 44.
    pub oldest_xid: TransactionId,
    /// Offset 48.
    pub oldest_xid_db: Oid,
    /// Offset 52.
    pub oldest_multi: MultiXactId,
    /// Offset 56.
    pub oldest_multi_db: Oid,
    /// Offset 64: seconds since 1970.
    pub time: i64,
    /// Offset 72: 0 when commit timestamps are off.
    pub oldest_commit_ts_xid: TransactionId,
    /// Offset 76.
    pub newest_commit_ts_xid: TransactionId,
    /// Offset 80: 0 in shutdown checkpoints.
    pub oldest_active_xid: TransactionId,
}

impl CheckPoint {
    /// `sizeof(CheckPoint)`.
    pub const BYTES: usize = 88;

    /// Reads the 88 bytes.
    pub fn parse(bytes: &[u8]) -> Result<CheckPoint, ShortRead> {
        let mut c = Cursor::new("CheckPoint", bytes);
        let redo = Lsn(c.u64("redo")?);
        let this_tli = TimeLineId(c.u32("ThisTimeLineID")?);
        let prev_tli = TimeLineId(c.u32("PrevTimeLineID")?);
        let full_page_writes = c.bool("fullPageWrites")?;
        c.skip("padding", 3)?;
        let wal_level = c.u32("wal_level")?;
        let next_xid = FullTransactionId(c.u64("nextXid")?);
        let next_oid = Oid(c.u32("nextOid")?);
        let next_multi = MultiXactId(c.u32("nextMulti")?);
        let next_multi_offset = MultiXactOffset(c.u32("nextMultiOffset")?);
        let oldest_xid = TransactionId(c.u32("oldestXid")?);
        let oldest_xid_db = Oid(c.u32("oldestXidDB")?);
        let oldest_multi = MultiXactId(c.u32("oldestMulti")?);
        let oldest_multi_db = Oid(c.u32("oldestMultiDB")?);
        c.skip("padding", 4)?;
        let time = c.i64("time")?;
        let oldest_commit_ts_xid = TransactionId(c.u32("oldestCommitTsXid")?);
        let newest_commit_ts_xid = TransactionId(c.u32("newestCommitTsXid")?);
        let oldest_active_xid = TransactionId(c.u32("oldestActiveXid")?);
        c.skip("padding", 4)?;
        Ok(CheckPoint {
            redo,
            this_tli,
            prev_tli,
            full_page_writes,
            wal_level,
            next_xid,
            next_oid,
            next_multi,
            next_multi_offset,
            oldest_xid,
            oldest_xid_db,
            oldest_multi,
            oldest_multi_db,
            time,
            oldest_commit_ts_xid,
            newest_commit_ts_xid,
            oldest_active_xid,
        })
    }

    /// The 88 bytes, padding zero.
    pub fn to_bytes(&self) -> [u8; CheckPoint::BYTES] {
        let mut out = [0; CheckPoint::BYTES];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.redo.0.to_le_bytes());
        put(8, &self.this_tli.0.to_le_bytes());
        put(12, &self.prev_tli.0.to_le_bytes());
        put(16, &[u8::from(self.full_page_writes)]);
        put(20, &self.wal_level.to_le_bytes());
        put(24, &self.next_xid.0.to_le_bytes());
        put(32, &self.next_oid.0.to_le_bytes());
        put(36, &self.next_multi.0.to_le_bytes());
        put(40, &self.next_multi_offset.0.to_le_bytes());
        put(44, &self.oldest_xid.0.to_le_bytes());
        put(48, &self.oldest_xid_db.0.to_le_bytes());
        put(52, &self.oldest_multi.0.to_le_bytes());
        put(56, &self.oldest_multi_db.0.to_le_bytes());
        put(64, &self.time.to_le_bytes());
        put(72, &self.oldest_commit_ts_xid.0.to_le_bytes());
        put(76, &self.newest_commit_ts_xid.0.to_le_bytes());
        put(80, &self.oldest_active_xid.0.to_le_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_of_every_field_and_short_at_every_length() {
        let mut bytes = [0u8; CheckPoint::BYTES];
        for (i, b) in bytes.iter_mut().enumerate() {
            // Padding stays zero; a bool is 1.
            *b = match i {
                16 => 1,
                17..=19 | 60..=63 | 84..=87 => 0,
                _ => i as u8 + 1,
            };
        }
        assert_eq!(CheckPoint::parse(&bytes).unwrap().to_bytes(), bytes);
        for len in 0..CheckPoint::BYTES {
            assert!(CheckPoint::parse(&bytes[..len]).is_err(), "{len}");
        }
    }
}
