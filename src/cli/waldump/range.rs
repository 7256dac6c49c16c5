//! Which WAL the arguments of `pgredo waldump` ask for, by pg_waldump's rules
//! (`identify_target_directory` and `main`, `src/bin/pg_waldump/pg_waldump.c`;
//! `XLogFindNextRecord`, `src/backend/access/transam/xlogreader.c`).

use std::path::{Path, PathBuf};

use super::super::error::CliError;
use super::args::RangeRequest;
use crate::format::WalFormat;
use crate::sys::Kernel;
use crate::types::{Lsn, TimeLineId};
use crate::wal::{
    History, PageHeader, SegmentName, SegmentSource, WAL_PAGE_BYTES, WalError, WalLayout,
};

/// Where to read, from where to where.
#[derive(Debug)]
pub(super) struct WalRange {
    /// The segments.
    pub(super) source: SegmentSource,
    /// Records before this one are not wanted.
    pub(super) start: Lsn,
    /// Nothing behind this one is wanted.
    pub(super) end: Option<Lsn>,
    /// The timeline that is read.
    pub(super) tli: TimeLineId,
}

impl From<WalError> for CliError {
    fn from(error: WalError) -> CliError {
        CliError::new(error.to_string())
    }
}

impl WalRange {
    /// Finds the directory and takes the size of segments and the major from a segment there.
    pub(super) fn find(request: &RangeRequest) -> Result<WalRange, CliError> {
        let kernel = Kernel::new();
        if let Some(path) = &request.path
            && let Err(error) = kernel.read_dir(path)
        {
            let text = format!(
                "could not open directory \"{}\": {}",
                path.display(),
                error.errno.desc()
            );
            return Err(CliError::bad_argument(text));
        }
        let first = request.start_segment.as_deref();
        let directory = find_directory(&kernel, request.path.as_deref(), first)?;
        let layout = read_layout(&kernel, &directory, first.map(file_name).transpose()?)?;
        let named = |path: &PathBuf| {
            let name = file_name(path)?;
            match SegmentName::parse(name, &layout) {
                Some(segment) if is_file(&kernel, &directory.join(name)) => Ok(segment),
                _ => Err(CliError::new(format!("could not open file \"{name}\""))),
            }
        };
        let first = request.start_segment.as_ref().map(named).transpose()?;
        let last = request
            .end_segment
            .as_ref()
            .map(named)
            .transpose()?
            .or(first);
        let tli = last.map_or(TimeLineId(request.timeline), |segment| segment.tli);
        let (start, end) = bounds(request, first, last, &layout)?;
        let directories = vec![directory];
        let history = History::load(&kernel, &directories, tli)?;
        Ok(WalRange {
            source: SegmentSource::new(kernel, layout, directories, history),
            start,
            end,
            tli,
        })
    }

    /// There is nothing to print.
    pub(super) fn no_record(&self) -> CliError {
        let start = self.start;
        CliError::new(format!("could not find a valid record after {start}"))
    }

    /// A place at or before the first record wanted from which records can be read one after
    /// another: behind what the page of `start` still holds of an earlier record.
    pub(super) fn entry_point(&self) -> Result<Lsn, CliError> {
        let not_found = || self.no_record();
        let layout = self.source.layout();
        let mut page_at = Lsn(self.start.0 - self.start.0 % WAL_PAGE_BYTES);
        loop {
            let segment = self
                .source
                .open(layout.segno(page_at), TimeLineId(0))?
                .ok_or_else(not_found)?;
            let page = segment.page(page_at).ok_or_else(not_found)?;
            let header = PageHeader::parse(page).map_err(|_| not_found())?;
            if header.magic != layout.format.page_magic || header.page_addr != page_at {
                return Err(not_found());
            }
            let rest = match header.info.first_is_contrecord() {
                true => u64::from(header.rem_len).next_multiple_of(8),
                false => 0,
            };
            if header.header_bytes() + rest < WAL_PAGE_BYTES {
                return Ok(page_at.advance(header.header_bytes() + rest));
            }
            page_at = page_at.advance(WAL_PAGE_BYTES);
        }
    }
}

/// What is given counts, else the segments do; positions must lie in them.
fn bounds(
    request: &RangeRequest,
    first: Option<SegmentName>,
    last: Option<SegmentName>,
    layout: &WalLayout,
) -> Result<(Lsn, Option<Lsn>), CliError> {
    let begin_of = |segment: SegmentName| layout.segment_start(segment.segno);
    let end_of = |segment: SegmentName| begin_of(segment).advance(layout.segment_bytes);
    let start = request
        .start
        .or(first.map(begin_of))
        .ok_or_else(|| CliError::bad_argument("no start WAL location given"))?;
    let end = request.end.or(last.map(end_of));
    if let (Some(first), Some(last)) = (first, last) {
        if last.segno < first.segno {
            let (first, last) = (first.file_name(layout), last.file_name(layout));
            return Err(CliError::new(format!(
                "ENDSEG {last} is before STARTSEG {first}"
            )));
        }
        let outside = |which, at: Lsn, segment: SegmentName| {
            let name = segment.file_name(layout);
            let text = format!("{which} WAL location {at} is not inside file \"{name}\"");
            Err(CliError::bad_argument(text))
        };
        if layout.segno(start) != first.segno {
            return outside("start", start, first);
        }
        if let Some(end) = end.filter(|end| *end < begin_of(last) || *end > end_of(last)) {
            return outside("end", end, last);
        }
    }
    Ok((start, end))
}

/// `-p`, or where STARTSEG is, or the first of the usual places; each with `pg_wal` below it.
fn find_directory(
    kernel: &Kernel,
    given: Option<&Path>,
    start_segment: Option<&Path>,
) -> Result<PathBuf, CliError> {
    let of_segment = start_segment
        .and_then(Path::parent)
        .filter(|parent| !parent.as_os_str().is_empty());
    let wanted = start_segment.map(file_name).transpose()?;
    let mut tried = Vec::new();
    if let Some(given) = given.or(of_segment) {
        tried.push(given.to_owned());
        tried.push(given.join("pg_wal"));
    } else {
        tried.push(PathBuf::from("."));
        tried.push(PathBuf::from("pg_wal"));
        if let Some(pgdata) = std::env::var_os("PGDATA").filter(|v| !v.is_empty()) {
            tried.push(PathBuf::from(pgdata).join("pg_wal"));
        }
    }
    for directory in &tried {
        if any_segment(kernel, directory, wanted).is_some() {
            return Ok(directory.clone());
        }
    }
    Err(match wanted {
        Some(name) => CliError::new(format!("could not locate WAL file \"{name}\"")),
        None => CliError::new("could not find any WAL file"),
    })
}

/// The segment named, or the first there is.
fn any_segment(kernel: &Kernel, directory: &Path, wanted: Option<&str>) -> Option<PathBuf> {
    if let Some(name) = wanted {
        let path = directory.join(name);
        return is_file(kernel, &path).then_some(path);
    }
    let hex = |name: &str| name.len() == 24 && name.bytes().all(|b| b.is_ascii_hexdigit());
    let entries = kernel.read_dir(directory).ok()?;
    let found = entries.iter().find(|e| e.name.to_str().is_some_and(hex))?;
    Some(directory.join(&found.name))
}

/// The first page of a segment says what all have in common. The cluster is taken from it too,
/// as there may be no control file.
fn read_layout(
    kernel: &Kernel,
    directory: &Path,
    wanted: Option<&str>,
) -> Result<WalLayout, CliError> {
    let path = any_segment(kernel, directory, wanted)
        .ok_or_else(|| CliError::new("could not find any WAL file"))?;
    let mut page = vec![0; WAL_PAGE_BYTES as usize];
    let read = kernel.open_read(&path)?.read_at(&mut page, 0)?;
    let header = PageHeader::parse(&page[..read]).map_err(|e| CliError::contents(&path, e))?;
    let format = WalFormat::from_page_magic(header.magic).ok_or_else(|| {
        let (magic, supported) = (header.magic, WalFormat::supported());
        let text = format!("unknown WAL page magic {magic:04X}; supported majors: {supported}");
        CliError::contents(&path, text)
    })?;
    let long = header
        .long
        .ok_or_else(|| CliError::contents(&path, "the first page has no long header"))?;
    let size = long.segment_bytes;
    if !size.is_power_of_two() || !(1 << 20..=1 << 30).contains(&size) {
        let text = format!("WAL segment size {size} is not a power of two from 1 MB to 1 GB");
        return Err(CliError::contents(&path, text));
    }
    Ok(WalLayout {
        segment_bytes: size.into(),
        system_identifier: long.system_identifier,
        format,
    })
}

fn is_file(kernel: &Kernel, path: &Path) -> bool {
    kernel.metadata(path).is_ok()
}

fn file_name(path: &Path) -> Result<&str, CliError> {
    path.file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| CliError::new(format!("could not open file \"{}\"", path.display())))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::super::args::{Cli, Command};
    use super::super::args::Request;
    use super::*;

    const FIRST: &str = "000000010000000000000001";
    const SECOND: &str = "000000010000000000000002";
    const SEGMENT_BYTES: u64 = 1 << 20;

    /// A directory with two segments of two pages each. The second page of the first begins with
    /// 5 bytes of a record.
    fn directory() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, start) in [(FIRST, SEGMENT_BYTES), (SECOND, 2 * SEGMENT_BYTES)] {
            let mut bytes = page(0x0002, start, 0);
            bytes.extend(page(0x0001, start + WAL_PAGE_BYTES, 5));
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        dir
    }

    fn page(info: u16, at: u64, rem_len: u32) -> Vec<u8> {
        let mut page = Vec::new();
        page.extend(WalFormat::ALL[0].page_magic.to_le_bytes());
        page.extend(info.to_le_bytes());
        page.extend(1u32.to_le_bytes());
        page.extend(at.to_le_bytes());
        page.extend(rem_len.to_le_bytes());
        page.extend([0; 4]);
        page.extend(77u64.to_le_bytes());
        page.extend((SEGMENT_BYTES as u32).to_le_bytes());
        page.extend((WAL_PAGE_BYTES as u32).to_le_bytes());
        page.resize(WAL_PAGE_BYTES as usize, 0);
        page
    }

    fn range(dir: &tempfile::TempDir, line: &str) -> Result<WalRange, CliError> {
        let path = dir.path().to_str().unwrap();
        let words = ["pgredo", "waldump", "-p", path];
        let words = words.into_iter().chain(line.split_whitespace());
        match Cli::parse_from(words).command {
            Command::Waldump(args) => WalRange::find(&Request::from_args(&args)?.range),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn segments_give_the_bounds_that_are_not_given() {
        let dir = directory();
        let bounds = |line: &str| {
            let range = range(&dir, line).unwrap();
            (range.start.0, range.end.map(|end| end.0))
        };
        let mb = |n: u64| n * SEGMENT_BYTES;
        assert_eq!(bounds(FIRST), (mb(1), Some(mb(2))));
        assert_eq!(bounds(&format!("{FIRST} {SECOND}")), (mb(1), Some(mb(3))));
        assert_eq!(bounds("-s 0/100028"), (0x100028, None));
        let both = format!("-s 0/100028 -e 0/200000 {FIRST}");
        assert_eq!(bounds(&both), (0x100028, Some(mb(2))));
    }

    #[test]
    fn bounds_outside_their_segments_are_refused() {
        let dir = directory();
        for line in [
            String::new(),
            format!("{SECOND} {FIRST}"),
            format!("-s 0/200000 {FIRST}"),
            format!("-e 0/200001 {FIRST}"),
            format!("-e 0/0FFFFF {FIRST}"),
            "000000010000000000000003".to_owned(),
        ] {
            assert!(range(&dir, &line).is_err(), "{line}");
        }
    }

    #[test]
    fn reading_starts_behind_the_rest_of_an_earlier_record() {
        let dir = directory();
        let entry = |line| range(&dir, line).unwrap().entry_point();
        assert_eq!(entry("-s 0/100100").unwrap(), Lsn(0x100028));
        // 24 bytes of header, 5 of the record, rounded up to 8.
        assert_eq!(entry("-s 0/102000").unwrap(), Lsn(0x102020));
        assert!(entry("-s 0/104000").is_err());
        assert!(entry("-s 0/500000").is_err());
    }

    #[test]
    fn broken_first_pages_are_errors() {
        for (at, value) in [(0, 0xFF), (2, 0), (34, 0x18)] {
            let dir = directory();
            let path = dir.path().join(FIRST);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[at] = value;
            std::fs::write(&path, &bytes).unwrap();
            assert!(range(&dir, FIRST).is_err(), "{at}");
            std::fs::write(&path, &bytes[..10]).unwrap();
            assert!(range(&dir, FIRST).is_err());
        }
    }
}
