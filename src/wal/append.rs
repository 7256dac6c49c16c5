//! Appending the records that end a recovery.

use std::path::PathBuf;

use thiserror::Error;

use super::RECORD_HEADER_BYTES;
use super::header::{LongHeader, PageHeader, PageInfo};
use super::reader::record_crc;
use super::{SegmentName, WAL_PAGE_BYTES, WalLayout};
use crate::sys::{Create, Kernel, SysError, found};
use crate::types::{Lsn, RmgrId, TimeLineId};

const ID_DATA_SHORT: u8 = 255;

/// WAL that could not be appended.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AppendError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
}

/// A record without block references, to be appended.
#[derive(Debug, Clone, Copy)]
pub struct NewRecord<'a> {
    /// Resource manager.
    pub rmid: RmgrId,
    /// `xl_info`.
    pub info: u8,
    /// Main data, up to 255 bytes.
    pub main_data: &'a [u8],
}

/// Collects records that follow the end of WAL, then writes their pages.
#[derive(Debug)]
pub struct WalAppender {
    layout: WalLayout,
    tli: TimeLineId,
    /// Start of the last record.
    prev: Lsn,
    /// Where the next byte goes.
    at: Lsn,
    /// Start of `bytes`, which is the start of a page.
    first_page: Lsn,
    bytes: Vec<u8>,
    overwrites_contrecord: bool,
}

impl WalAppender {
    /// Continues after `end`; `tail` is what the page that holds `end` has before it, `prev`
    /// the start of the last record.
    pub fn new(
        layout: WalLayout,
        tli: TimeLineId,
        prev: Lsn,
        end: Lsn,
        tail: &[u8],
    ) -> WalAppender {
        let first_page = Lsn(end.0 - end.0 % WAL_PAGE_BYTES);
        let used = (end.0 - first_page.0) as usize;
        assert_eq!(tail.len(), used, "the page before the end of WAL");
        let bytes = tail.to_vec();
        WalAppender {
            layout,
            tli,
            prev,
            at: end,
            first_page,
            bytes,
            overwrites_contrecord: false,
        }
    }

    /// The next page begins with a record that replaces a lost continuation. The end must be
    /// the start of a page.
    pub fn overwriting_contrecord(mut self) -> WalAppender {
        assert_eq!(self.at.0 % WAL_PAGE_BYTES, 0, "{}", self.at);
        self.overwrites_contrecord = true;
        self
    }

    /// Where the next record will start: past the page header if the end is a page boundary.
    pub fn next_record(&self) -> Lsn {
        if self.at.0.is_multiple_of(WAL_PAGE_BYTES) {
            self.at
                .advance(PageHeader::header_bytes_at(self.at, &self.layout))
        } else {
            self.at
        }
    }

    /// Where WAL ends now.
    pub fn end(&self) -> Lsn {
        self.at
    }

    fn begin_page(&mut self, rem_len: u32) {
        let at_segment_start = self.layout.offset(self.at) == 0;
        let overwrites = std::mem::take(&mut self.overwrites_contrecord);
        let info = PageInfo::of_new_page(at_segment_start, overwrites);
        let header = PageHeader {
            magic: self.layout.format.page_magic,
            info: if rem_len > 0 {
                info.with_contrecord()
            } else {
                info
            },
            tli: self.tli,
            page_addr: self.at,
            rem_len,
            long: at_segment_start.then_some(LongHeader {
                system_identifier: self.layout.system_identifier,
                segment_bytes: self.layout.segment_bytes as u32,
                page_bytes: WAL_PAGE_BYTES as u32,
            }),
        };
        let bytes = header.to_bytes();
        self.put(&bytes);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.at = self.at.advance(bytes.len() as u64);
    }

    /// Appends a record and returns where it starts.
    pub fn append(&mut self, record: NewRecord<'_>) -> Lsn {
        let bytes = self.assemble(record);
        if self.at.0.is_multiple_of(WAL_PAGE_BYTES) {
            self.begin_page(0);
        }
        let start = self.at;
        let mut rest = &bytes[..];
        loop {
            let room = (WAL_PAGE_BYTES - self.at.0 % WAL_PAGE_BYTES) as usize;
            let (now, later) = rest.split_at(rest.len().min(room));
            self.put(now);
            rest = later;
            if rest.is_empty() {
                break;
            }
            self.begin_page(rest.len() as u32);
        }
        let padding = self.at.align_up().0 - self.at.0;
        self.put(&[0; 8][..padding as usize]);
        self.prev = start;
        start
    }

    /// The bytes of a record, CRC included.
    fn assemble(&self, record: NewRecord<'_>) -> Vec<u8> {
        let len = u8::try_from(record.main_data.len()).expect("main data of our own records");
        let total = RECORD_HEADER_BYTES + 2 + record.main_data.len();
        let mut bytes = Vec::with_capacity(total);
        bytes.extend((total as u32).to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(self.prev.0.to_le_bytes());
        bytes.extend([record.info, record.rmid.0, 0, 0]);
        bytes.extend([0; 4]);
        bytes.extend([ID_DATA_SHORT, len]);
        bytes.extend_from_slice(record.main_data);
        let crc = record_crc(&bytes);
        bytes[RECORD_HEADER_BYTES - 4..RECORD_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Writes the pages durably into segments of `directory`. A segment that is missing there is
    /// made: full of zeros, or a copy of `source` if its first part lies elsewhere. Pages
    /// are written from the last to the first, so that the record before them is continued
    /// only once everything is there.
    pub fn write(
        mut self,
        kernel: &Kernel,
        directory: PathBuf,
        source: Option<&[u8]>,
        mode: u32,
        sync: bool,
    ) -> Result<(), AppendError> {
        let padded = self.bytes.len().next_multiple_of(WAL_PAGE_BYTES as usize);
        self.bytes.resize(padded, 0);
        let mut pages: Vec<(Lsn, &[u8])> = self
            .bytes
            .chunks_exact(WAL_PAGE_BYTES as usize)
            .enumerate()
            .map(|(i, page)| (self.first_page.advance(i as u64 * WAL_PAGE_BYTES), page))
            .collect();
        pages.reverse();
        for (at, page) in pages {
            let name = SegmentName {
                segno: self.layout.segno(at),
                tli: self.tli,
            };
            let path = directory.join(name.file_name(&self.layout));
            let is_first = self.layout.segno(self.first_page) == name.segno;
            if found(kernel.link_metadata(&path))?.is_none() {
                let start = if is_first {
                    source.unwrap_or_default()
                } else {
                    &[]
                };
                self.make_segment(kernel, &path, start, mode)?;
            }
            let file = kernel.open_write(&path)?;
            file.write_at(page, self.layout.offset(at))?;
            if sync {
                file.fdatasync()?;
            }
        }
        if sync {
            kernel.sync_dir(&directory)?;
        }
        Ok(())
    }

    fn make_segment(
        &self,
        kernel: &Kernel,
        path: &std::path::Path,
        start: &[u8],
        mode: u32,
    ) -> Result<(), AppendError> {
        let temporary = path.with_file_name(format!("xlogtemp.{}", crate::sys::pid()));
        let file = kernel.create(&temporary, Create::Truncate, mode)?;
        if !file.allocate(0, self.layout.segment_bytes)? {
            file.truncate(self.layout.segment_bytes)?;
        }
        file.write_at(start, 0)?;
        file.fsync()?;
        drop(file);
        kernel.rename(&temporary, path)?;
        Ok(())
    }
}
