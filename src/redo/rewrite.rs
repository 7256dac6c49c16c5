//! Logical rewrite mappings (`heap_xlog_logical_rewrite`,
//! `src/backend/access/heap/rewriteheap.c`).

use super::{Redo, RedoErrorKind};
use crate::decode::Record;
use crate::rmgr::RmgrError;
use crate::smgr::SyncMethod;
use crate::sys::Create;
use crate::types::{Cursor, Lsn, ShortRead};

/// Bytes of one mapping: two relations and two TIDs.
const MAPPING_BYTES: usize = 36;

/// The head of the record (`xl_heap_rewrite_mapping`), then the mappings.
struct Mappings<'w> {
    mapped_xid: u32,
    mapped_db: u32,
    mapped_rel: u32,
    offset: i64,
    start_lsn: Lsn,
    bytes: &'w [u8],
}

impl<'w> Mappings<'w> {
    fn parse(data: &'w [u8]) -> Result<Mappings<'w>, ShortRead> {
        let mut c = Cursor::new("xl_heap_rewrite_mapping", data);
        let mapped_xid = c.u32("mapped_xid")?;
        let mapped_db = c.u32("mapped_db")?;
        let mapped_rel = c.u32("mapped_rel")?;
        c.skip("padding", 4)?;
        let offset = c.i64("offset")?;
        let count = c.u32("num_mappings")? as usize;
        c.skip("padding", 4)?;
        let start_lsn = Lsn(c.u64("start_lsn")?);
        let bytes = c.bytes("mappings", count.saturating_mul(MAPPING_BYTES))?;
        Ok(Mappings {
            mapped_xid,
            mapped_db,
            mapped_rel,
            offset,
            start_lsn,
            bytes,
        })
    }
}

impl Redo {
    /// Cuts the mapping file to where this piece belongs and writes it there.
    pub(super) fn write_rewrite_mapping(
        &mut self,
        record: &Record<'_>,
        data: &[u8],
    ) -> Result<(), RedoErrorKind> {
        let m = Mappings::parse(data).map_err(RmgrError::from)?;
        let offset = u64::try_from(m.offset)
            .map_err(|_| RmgrError::corrupt(format!("negative file offset {}", m.offset)))?;
        let directory = self.dir.path("pg_logical/mappings");
        let path = directory.join(format!(
            "map-{:x}-{:x}-{:X}_{:X}-{:x}-{:x}",
            m.mapped_db,
            m.mapped_rel,
            m.start_lsn.high(),
            m.start_lsn.low(),
            m.mapped_xid,
            record.xid.0
        ));
        let kernel = self.dir.kernel();
        let file = kernel.create(&path, Create::IfMissing, self.dir.file_mode())?;
        file.truncate(offset)?;
        file.write_at(m.bytes, offset)?;
        if self.sync == SyncMethod::Fsync {
            file.fsync()?;
        }
        self.smgr.directory_changed(directory);
        Ok(())
    }
}
