//! NEW_CID: command ids of catalog rows, for logical decoding only.

use std::fmt::Write;

use crate::decode::Record;
use crate::page::heap_tuple::ItemPointer;
use crate::rmgr::RmgrError;
use crate::types::{Cursor, Oid, RelFileLocator, ShortRead};

/// Main data of NEW_CID, 34 bytes. The top-level transaction at offset 0 is not needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_heap_new_cid")]
struct HeapNewCid {
    /// Offset 4.
    cmin: u32,
    /// Offset 8.
    cmax: u32,
    /// Offset 12.
    combocid: u32,
    /// Offset 16: `target_node`.
    target_locator: RelFileLocator,
    /// Offset 28.
    target_tid: ItemPointer,
}

impl HeapNewCid {
    fn decode(bytes: &[u8]) -> Result<HeapNewCid, ShortRead> {
        let mut c = Cursor::new("xl_heap_new_cid", bytes);
        c.skip("top_xid", 4)?;
        let (cmin, cmax, combocid) = (c.u32("cmin")?, c.u32("cmax")?, c.u32("combocid")?);
        let target_locator = RelFileLocator {
            spc: Oid(c.u32("spcNode")?),
            db: Oid(c.u32("dbNode")?),
            rel: Oid(c.u32("relNode")?),
        };
        let (high, low) = (c.u16("bi_hi")?, c.u16("bi_lo")?);
        let target_tid = ItemPointer {
            block: u32::from(high) << 16 | u32::from(low),
            offset: c.u16("ip_posid")?,
        };
        Ok(HeapNewCid {
            cmin,
            cmax,
            combocid,
            target_locator,
            target_tid,
        })
    }
}

pub(super) fn desc(record: &Record<'_>, out: &mut String) -> Result<(), RmgrError> {
    let HeapNewCid {
        cmin,
        cmax,
        combocid,
        target_locator,
        target_tid: ItemPointer { block, offset },
    } = HeapNewCid::decode(record.main_data)?;
    let _ = write!(out, "rel {target_locator}; tid {block}/{offset}");
    let _ = write!(out, "; cmin: {cmin}, cmax: {cmax}, combo: {combocid}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::page::Page;
    use crate::rmgr::testing::record;

    const MAIN_DATA: [u8; 34] = [
        9, 9, 9, 9, 1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 3, 0, 0, 0, 0x7F, 0x06, 0, 0, 5, 0, 0, 0,
        0xEB, 0x04, 0, 0, 1, 0, 2, 0, 7, 0,
    ];

    #[test]
    fn text_and_truncation() {
        let new_cid = record(9, 0x70, &MAIN_DATA);
        let expected = "rel 1663/5/1259; tid 65538/7; cmin: 1, cmax: 4294967295, combo: 3";
        assert_eq!(new_cid.text(), expected);
        new_cid.cut_everywhere(&Page::zeroed());
    }
}
