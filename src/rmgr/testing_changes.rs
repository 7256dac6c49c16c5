//! Records for the tests of resource managers without pages.

use super::{Change, RmgrError};
use crate::decode::{BlockRefs, Record};
use crate::format::WalFormat;
use crate::types::{Lsn, RepOriginId, RmgrId, TransactionId};

/// A record of transaction 700 without block references.
pub(super) fn record(rmid: u8, info: u8, main_data: &[u8]) -> Record<'_> {
    Record {
        lsn: Lsn(0x0100_0000),
        end_lsn: Lsn(0x0100_0040),
        overwritten: Lsn(0),
        prev: Lsn(0x00FF_FFC0),
        total_bytes: main_data.len() as u32,
        xid: TransactionId(700),
        info,
        rmid: RmgrId(rmid),
        origin: RepOriginId(0),
        toplevel_xid: None,
        blocks: BlockRefs::new(),
        main_data,
        format: WalFormat::from_page_magic(0xD110).unwrap(),
    }
}

/// Bytes from hexadecimal digits; blanks between them are for the reader.
pub(super) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|d| d as u8)
        .collect();
    digits.chunks_exact(2).map(|d| d[0] << 4 | d[1]).collect()
}

/// Name and description, as pg_waldump prints them.
pub(super) fn text(record: &Record<'_>) -> String {
    let mut out = format!("{} ", super::identify(record));
    super::desc(record, &mut out).unwrap();
    out
}

/// The changes of a record.
pub(super) fn changes<'w>(record: &Record<'w>) -> Result<Vec<Change<'w>>, RmgrError> {
    let mut out = Vec::new();
    super::changes(record, &mut out)?;
    Ok(out)
}

/// Checks that a record is rejected at every length shorter than `needed`, that it is accepted
/// from there on, and that no flipped bit makes it panic.
pub(super) fn abuse(rmid: u8, info: u8, main_data: &[u8], needed: usize) {
    for len in 0..=main_data.len() {
        let cut = record(rmid, info, &main_data[..len]);
        let done = super::desc(&cut, &mut String::new());
        assert_eq!(done.is_ok(), len >= needed, "{len} bytes: {done:?}");
    }
    let mut flipped = main_data.to_vec();
    for bit in 0..main_data.len() * 8 {
        flipped[bit / 8] ^= 1 << (bit % 8);
        {
            let bad = record(rmid, info, &flipped);
            // Either outcome will do: many flips give another valid record.
            let _ = super::desc(&bad, &mut String::new());
            let _ = changes(&bad);
        }
        flipped[bit / 8] ^= 1 << (bit % 8);
    }
}
