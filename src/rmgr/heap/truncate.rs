//! TRUNCATE: for logical decoding only. The files change through Storage records.

use std::fmt::Write;

use crate::decode::Record;
use crate::rmgr::{OidList, RmgrError};
use crate::types::Cursor;

/// `XLH_TRUNCATE_CASCADE`.
const CASCADE: u8 = 0x01;
/// `XLH_TRUNCATE_RESTART_SEQS`.
const RESTART_SEQS: u8 = 0x02;

/// Main data of TRUNCATE, 12 bytes and the relations. The database at offset 0 is not needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_truncate")]
struct HeapTruncate<'w> {
    /// Offset 8: `XLH_TRUNCATE_*`.
    flags: u8,
    /// Offset 12; how many stands at offset 4.
    relids: OidList<'w>,
}

impl<'w> HeapTruncate<'w> {
    fn decode(bytes: &'w [u8]) -> Result<HeapTruncate<'w>, RmgrError> {
        let mut c = Cursor::new("xl_heap_truncate", bytes);
        c.skip("dbId", 4)?;
        let nrelids = c.u32("nrelids")?;
        let flags = c.u8("flags")?;
        c.skip("padding", 3)?;
        let list_bytes = (nrelids as usize).saturating_mul(OidList::ELEMENT_BYTES);
        let relids = OidList::new(c.bytes("relids", list_bytes)?)?;
        Ok(HeapTruncate { flags, relids })
    }
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapTruncate { flags, relids } = HeapTruncate::decode(record.main_data)?;
    if flags & CASCADE != 0 {
        out.push_str("cascade ");
    }
    if flags & RESTART_SEQS != 0 {
        out.push_str("restart_seqs ");
    }
    let _ = write!(out, "nrelids {} relids", relids.len());
    for relid in relids.iter() {
        let _ = write!(out, " {relid}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::page::Page;
    use crate::rmgr::testing::{heap_block, heap_page, record};

    const MAIN_DATA: [u8; 20] = [
        5, 0, 0, 0, 2, 0, 0, 0, 3, 9, 9, 9, 0x00, 0x40, 0, 0, 0x01, 0x40, 0, 0,
    ];

    #[test]
    fn text_and_truncation() {
        let truncate = record(10, 0x30, &MAIN_DATA);
        assert_eq!(
            truncate.text(),
            "cascade restart_seqs nrelids 2 relids 16384 16385"
        );
        truncate.cut_everywhere(&Page::zeroed());
        let mut plain = MAIN_DATA;
        plain[8] = 0;
        assert_eq!(
            record(10, 0x30, &plain).text(),
            "nrelids 2 relids 16384 16385"
        );
    }

    #[test]
    fn it_changes_no_page() {
        assert!(record(10, 0x30, &MAIN_DATA).touches().unwrap().is_empty());
        let odd = record(10, 0x30, &MAIN_DATA).with(heap_block(0, 0, &[]));
        assert!(odd.redo_touch(0, &mut heap_page(1)).is_err());
    }
}
