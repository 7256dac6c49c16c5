//! WAL page headers (`src/include/access/xlog_internal.h`).

use super::{EndReason, WalLayout};
use crate::types::{Cursor, Lsn, ShortRead, TimeLineId};

/// `XLOG_BLCKSZ`.
pub const WAL_PAGE_BYTES: u64 = 8192;

const SHORT_HEADER_BYTES: u64 = 24;
const LONG_HEADER_BYTES: u64 = 40;

const FIRST_IS_CONTRECORD: u16 = 0x0001;
const LONG_HEADER: u16 = 0x0002;
const BKP_REMOVABLE: u16 = 0x0004;
const FIRST_IS_OVERWRITE_CONTRECORD: u16 = 0x0008;
const ALL_FLAGS: u16 =
    FIRST_IS_CONTRECORD | LONG_HEADER | BKP_REMOVABLE | FIRST_IS_OVERWRITE_CONTRECORD;

/// `xlp_info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageInfo(pub u16);

impl PageInfo {
    /// The flags of a new page: removable, long at the start of a segment, and the mark that
    /// its first record replaces a lost continuation.
    pub(super) fn of_new_page(at_segment_start: bool, overwrites_contrecord: bool) -> PageInfo {
        let long = if at_segment_start { LONG_HEADER } else { 0 };
        let overwrite = if overwrites_contrecord {
            FIRST_IS_OVERWRITE_CONTRECORD
        } else {
            0
        };
        PageInfo(BKP_REMOVABLE | long | overwrite)
    }

    /// The same page with a continued record at its start.
    pub(super) fn with_contrecord(self) -> PageInfo {
        PageInfo(self.0 | FIRST_IS_CONTRECORD)
    }

    /// The page begins with the rest of a record.
    pub fn first_is_contrecord(self) -> bool {
        self.0 & FIRST_IS_CONTRECORD != 0
    }

    /// The page replaces a continuation that was lost.
    pub fn first_is_overwrite_contrecord(self) -> bool {
        self.0 & FIRST_IS_OVERWRITE_CONTRECORD != 0
    }

    fn is_long(self) -> bool {
        self.0 & LONG_HEADER != 0
    }
}

/// The header of a WAL page (`XLogPageHeaderData`, `XLogLongPageHeaderData`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "XLogPageHeaderData")]
pub struct PageHeader {
    /// Offset 0: the major's magic.
    pub magic: u16,
    /// Offset 2.
    pub info: PageInfo,
    /// Offset 4: timeline of the first record on the page.
    pub tli: TimeLineId,
    /// Offset 8: LSN of the page.
    pub page_addr: Lsn,
    /// Offset 16: bytes of the continued record that are still to come.
    pub rem_len: u32,
    /// What follows in the long form.
    pub long: Option<LongHeader>,
}

/// The rest of the long form, at the start of each segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LongHeader {
    /// Offset 24.
    pub system_identifier: u64,
    /// Offset 32.
    pub segment_bytes: u32,
    /// Offset 36.
    pub page_bytes: u32,
}

impl PageHeader {
    /// Reads the header of a page.
    pub fn parse(page: &[u8]) -> Result<PageHeader, ShortRead> {
        let mut c = Cursor::new("XLogPageHeaderData", page);
        let magic = c.u16("xlp_magic")?;
        let info = PageInfo(c.u16("xlp_info")?);
        let tli = TimeLineId(c.u32("xlp_tli")?);
        let page_addr = Lsn(c.u64("xlp_pageaddr")?);
        let rem_len = c.u32("xlp_rem_len")?;
        c.skip("padding", 4)?;
        let long = if info.is_long() {
            Some(LongHeader {
                system_identifier: c.u64("xlp_sysid")?,
                segment_bytes: c.u32("xlp_seg_size")?,
                page_bytes: c.u32("xlp_xlog_blcksz")?,
            })
        } else {
            None
        };
        Ok(PageHeader {
            magic,
            info,
            tli,
            page_addr,
            rem_len,
            long,
        })
    }

    /// Bytes of this header.
    pub fn header_bytes(&self) -> u64 {
        if self.long.is_some() {
            LONG_HEADER_BYTES
        } else {
            SHORT_HEADER_BYTES
        }
    }

    /// Bytes of the header of the page at `page_addr`.
    pub fn header_bytes_at(page_addr: Lsn, layout: &WalLayout) -> u64 {
        if layout.offset(page_addr) == 0 {
            LONG_HEADER_BYTES
        } else {
            SHORT_HEADER_BYTES
        }
    }

    /// `XLogReaderValidatePageHeader`, all but the order of timelines, which depends on the
    /// pages read before.
    pub(super) fn validate(&self, at: Lsn, layout: &WalLayout) -> Result<(), EndReason> {
        if self.magic != layout.format.page_magic {
            return Err(EndReason::Magic {
                at,
                found: self.magic,
            });
        }
        let misplaced = layout.offset(at) == 0 && self.long.is_none();
        if self.info.0 & !ALL_FLAGS != 0 || misplaced {
            return Err(EndReason::InfoBits {
                at,
                found: self.info.0,
            });
        }
        if let Some(long) = self.long {
            if long.system_identifier != layout.system_identifier {
                return Err(EndReason::OtherSystem {
                    found: long.system_identifier,
                    expected: layout.system_identifier,
                });
            }
            if u64::from(long.segment_bytes) != layout.segment_bytes {
                return Err(EndReason::SegmentSize {
                    found: long.segment_bytes,
                });
            }
            if u64::from(long.page_bytes) != WAL_PAGE_BYTES {
                return Err(EndReason::PageSize {
                    found: long.page_bytes,
                });
            }
        }
        if self.page_addr != at {
            return Err(EndReason::PageAddress {
                at,
                found: self.page_addr,
            });
        }
        Ok(())
    }

    /// The bytes of the header.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(LONG_HEADER_BYTES as usize);
        out.extend(self.magic.to_le_bytes());
        out.extend(self.info.0.to_le_bytes());
        out.extend(self.tli.0.to_le_bytes());
        out.extend(self.page_addr.0.to_le_bytes());
        out.extend(self.rem_len.to_le_bytes());
        out.extend([0; 4]);
        if let Some(long) = self.long {
            out.extend(long.system_identifier.to_le_bytes());
            out.extend(long.segment_bytes.to_le_bytes());
            out.extend(long.page_bytes.to_le_bytes());
        }
        out
    }
}
