//! Segment files: names, and where they are looked for.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{History, PageHeader, WAL_PAGE_BYTES, WalError};
use crate::format::WalFormat;
use crate::sys::{Kernel, Map, found};
use crate::types::{Lsn, TimeLineId};

/// What all WAL of one cluster has in common.
#[derive(Debug, Clone, Copy)]
pub struct WalLayout {
    /// Bytes of a segment: a power of two from 1 MiB to 1 GiB.
    pub segment_bytes: u64,
    /// Names the cluster.
    pub system_identifier: u64,
    /// Facts of the major.
    pub format: &'static WalFormat,
}

impl WalLayout {
    /// The segment that holds `lsn`.
    pub fn segno(&self, lsn: Lsn) -> u64 {
        lsn.0 / self.segment_bytes
    }

    /// Bytes from the start of the segment to `lsn`.
    pub fn offset(&self, lsn: Lsn) -> u64 {
        lsn.0 % self.segment_bytes
    }

    /// Where a segment starts.
    pub fn segment_start(&self, segno: u64) -> Lsn {
        Lsn(segno.saturating_mul(self.segment_bytes))
    }

    /// Segments that share the middle part of their names.
    fn segments_per_id(&self) -> u64 {
        0x1_0000_0000 / self.segment_bytes
    }
}

/// The name of a segment: 24 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentName {
    /// Segment number: LSN divided by the size of a segment.
    pub segno: u64,
    /// Timeline.
    pub tli: TimeLineId,
}

impl SegmentName {
    /// Reads a name; `None` if it is not the name of a segment.
    pub fn parse(name: &str, layout: &WalLayout) -> Option<SegmentName> {
        if name.len() != 24 || !name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'A'..=b'F')) {
            return None;
        }
        let part = |range: std::ops::Range<usize>| u64::from_str_radix(&name[range], 16).ok();
        let (tli, high, low) = (part(0..8)?, part(8..16)?, part(16..24)?);
        if low >= layout.segments_per_id() {
            return None;
        }
        let segno = high * layout.segments_per_id() + low;
        Some(SegmentName {
            segno,
            tli: TimeLineId(tli as u32),
        })
    }

    /// The file name (`XLogFileName`).
    pub fn file_name(&self, layout: &WalLayout) -> String {
        let per_id = layout.segments_per_id();
        format!(
            "{:08X}{:08X}{:08X}",
            self.tli.0,
            self.segno / per_id,
            self.segno % per_id
        )
    }
}

/// A mapped segment.
pub struct Segment {
    name: SegmentName,
    path: PathBuf,
    start: Lsn,
    map: Map,
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Segment {
    /// Its name.
    pub fn name(&self) -> SegmentName {
        self.name
    }

    /// Where it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// LSN of its first byte.
    pub fn start(&self) -> Lsn {
        self.start
    }

    /// Its bytes: whole pages, possibly fewer than a segment has.
    pub fn bytes(&self) -> &[u8] {
        self.map.bytes()
    }

    /// The page at `at`, if the file is long enough.
    pub fn page(&self, at: Lsn) -> Option<&[u8]> {
        let offset = at.0.checked_sub(self.start.0)? as usize;
        self.bytes().get(offset..offset + WAL_PAGE_BYTES as usize)
    }
}

/// Finds segments in one or more directories.
#[derive(Debug, Clone)]
pub struct SegmentSource {
    kernel: Kernel,
    layout: WalLayout,
    directories: Vec<PathBuf>,
    history: History,
}

impl SegmentSource {
    /// Looks in `directories`, the first that has a segment wins; timelines as `history` has
    /// them.
    pub fn new(
        kernel: Kernel,
        layout: WalLayout,
        directories: Vec<PathBuf>,
        history: History,
    ) -> SegmentSource {
        SegmentSource {
            kernel,
            layout,
            directories,
            history,
        }
    }

    /// What all WAL here has in common.
    pub fn layout(&self) -> &WalLayout {
        &self.layout
    }

    /// The timelines that are followed.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// `XLogFileReadAnyTLI`: the segment of the newest timeline that has it. Timelines older than
    /// `not_before`, that of the segment read last, and timelines that begin later are skipped.
    /// `None` if there is no such file.
    pub fn open(
        &self,
        segno: u64,
        not_before: TimeLineId,
    ) -> Result<Option<Arc<Segment>>, WalError> {
        for entry in self.history.newest_first() {
            if entry.tli < not_before {
                break;
            }
            if entry.begin.is_valid() && segno < self.layout.segno(entry.begin) {
                continue;
            }
            let name = SegmentName {
                segno,
                tli: entry.tli,
            };
            if let Some(segment) = self.open_named(name)? {
                return Ok(Some(segment));
            }
        }
        Ok(None)
    }

    fn open_named(&self, name: SegmentName) -> Result<Option<Arc<Segment>>, WalError> {
        for directory in &self.directories {
            let path = directory.join(name.file_name(&self.layout));
            let Some(meta) = found(self.kernel.metadata(&path))? else {
                continue;
            };
            let pages = meta.bytes.min(self.layout.segment_bytes) / WAL_PAGE_BYTES;
            if pages == 0 {
                continue;
            }
            let map = self.kernel.map(&path, (pages * WAL_PAGE_BYTES) as usize)?;
            map.will_need();
            let start = self.layout.segment_start(name.segno);
            return Ok(Some(Arc::new(Segment {
                name,
                path,
                start,
                map,
            })));
        }
        Ok(None)
    }

    /// Segments after `segno` whose first page is what it should be at that place, which
    /// proves that the WAL went on. Recycled segments do not count.
    pub fn valid_segments_after(&self, segno: u64) -> Result<Vec<SegmentName>, WalError> {
        let mut later = Vec::new();
        for directory in &self.directories {
            for entry in found(self.kernel.read_dir(directory))?.unwrap_or_default() {
                let name = entry
                    .name
                    .to_str()
                    .and_then(|n| SegmentName::parse(n, &self.layout));
                let Some(name) = name.filter(|n| n.segno > segno) else {
                    continue;
                };
                if !self.history.contains(name.tli) {
                    continue;
                }
                let Some(segment) = self.open_named(name)? else {
                    continue;
                };
                let at = segment.start();
                let header = segment
                    .page(at)
                    .and_then(|page| PageHeader::parse(page).ok());
                if header.is_some_and(|h| h.validate(at, &self.layout).is_ok()) {
                    later.push(name);
                }
            }
        }
        later.sort();
        later.dedup();
        Ok(later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(segment_bytes: u64) -> WalLayout {
        WalLayout {
            segment_bytes,
            system_identifier: 1,
            format: WalFormat::ALL[0],
        }
    }

    #[test]
    fn names_round_trip_and_roll_over() {
        for size in [1u64 << 20, 16 << 20, 64 << 20, 1 << 30] {
            let layout = layout(size);
            for lsn in [0u64, 1, size, 0xFFFF_FFFF, 0x1_0000_0000, 0x5_1234_5678] {
                let name = SegmentName {
                    segno: layout.segno(Lsn(lsn)),
                    tli: TimeLineId(3),
                };
                let text = name.file_name(&layout);
                assert_eq!(
                    SegmentName::parse(&text, &layout),
                    Some(name),
                    "{size} {lsn:X}"
                );
                assert_eq!(&text[8..16], format!("{:08X}", lsn >> 32));
            }
        }
    }

    #[test]
    fn other_names_are_not_segments() {
        let layout = layout(16 << 20);
        for name in [
            "000000010000000000000001.partial",
            "00000001000000000000000g",
            "00000001.history",
            "000000010000000000000100",
            "00000001000000000000000a",
        ] {
            assert_eq!(SegmentName::parse(name, &layout), None, "{name}");
        }
    }
}
