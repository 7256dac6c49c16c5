//! Damaged and hostile input: any bit of the WAL, of pg_control and of the relation maps, and
//! random bytes of everything else. What comes out is a typed error or a reported end of WAL;
//! never a panic, never another record, never a write outside the directory.

pub mod support;

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use pgredo::pgdata::control::{ControlError, ControlFile};
use pgredo::recovery::{Prepared, RecoveryError, RedoOrder, Refusal, Survey};
use pgredo::sys::Kernel;
use pgredo::types::Lsn;
use pgredo::wal::{Batch, History, SegmentSource, WAL_PAGE_BYTES, WalLayout, WalReader};
use support::library::{Quiet, options, prepare, recover, recover_in};
use support::random::Random;
use support::sample::Sample;
use support::tree::{Entry, walk};
use support::{copy_directory, memory_directory};

const SEGMENT_BYTES: usize = 1 << 20;
const PAGE_BYTES: usize = WAL_PAGE_BYTES as usize;

/// Of every page but the first of a segment.
const PAGE_HEADER_BYTES: usize = 24;

/// One seed more for the random tests, to search further than every run does.
const SEED: &str = "PGREDO_DAMAGE_SEED";

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Hands out shares of a range to threads; each has an unpacked sample of its own.
fn in_parallel(name: &str, range: Range<usize>, work: impl Fn(&Wal, Range<usize>) + Sync) {
    let share = range.len().div_ceil(threads());
    std::thread::scope(|scope| {
        for start in range.clone().step_by(share) {
            let (end, work) = (range.end.min(start + share), &work);
            scope.spawn(move || work(&Wal::of(name), start..end));
        }
    });
}

/// A record as it is read from undamaged WAL.
struct Expected {
    lsn: Lsn,
    end: Lsn,
    bytes: Vec<u8>,
}

/// The WAL of a sample whose records are all in one segment.
struct Wal {
    root: tempfile::TempDir,
    control: ControlFile,
    source: SegmentSource,
    segment: PathBuf,
    file: File,
    pristine: Vec<u8>,
    start: Lsn,
    records: Vec<Expected>,
}

impl Wal {
    fn of(name: &str) -> Wal {
        let root = memory_directory();
        let data = Sample::named(name).unpack(root.path());
        let bytes = std::fs::read(data.join("global/pg_control")).expect("it is there");
        let control = ControlFile::parse(&bytes).expect("a sample is sound");
        let layout = WalLayout {
            segment_bytes: control.xlog_seg_size.into(),
            system_identifier: control.system_identifier,
            format: control.format,
        };
        assert_eq!(layout.segment_bytes, SEGMENT_BYTES as u64);
        let history = History::single(control.check_point_copy.this_tli);
        let directories = vec![data.join("pg_wal")];
        let source = SegmentSource::new(Kernel::new(), layout, directories, history);
        let start = control.check_point_copy.redo;
        let found = source.open(layout.segno(start), control.check_point_copy.this_tli);
        let segment = found
            .expect("readable")
            .expect("it is there")
            .path()
            .to_owned();
        let file = File::options()
            .write(true)
            .open(&segment)
            .expect("own file");
        let mut wal = Wal {
            pristine: std::fs::read(&segment).expect("own file"),
            root,
            control,
            source,
            segment,
            file,
            start,
            records: Vec::new(),
        };
        wal.records = wal.read(start, usize::MAX);
        assert!(wal.records.len() > 500, "{} records", wal.records.len());
        wal
    }

    fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    /// Up to `limit` records from `start` on.
    fn read(&self, start: Lsn, limit: usize) -> Vec<Expected> {
        let mut reader = WalReader::new(self.source.clone(), start);
        let mut batch = Batch::new();
        reader
            .fill(&mut batch, limit, SEGMENT_BYTES)
            .expect("damage is an end, not an error");
        let records = batch.records().map(|record| Expected {
            lsn: record.lsn,
            end: record.end_lsn,
            bytes: record.bytes.to_vec(),
        });
        records.collect()
    }

    fn offset(&self, lsn: Lsn) -> usize {
        (lsn.0 % SEGMENT_BYTES as u64) as usize
    }

    /// Offset behind the last record.
    fn end(&self) -> usize {
        self.offset(self.records[self.records.len() - 1].end)
    }

    /// The first record that does not end before `offset`.
    fn record_at(&self, offset: usize) -> usize {
        self.records
            .partition_point(|record| self.offset(record.end) <= offset)
    }

    fn put(&self, offset: usize, byte: u8) {
        self.file
            .write_all_at(&[byte], offset as u64)
            .expect("own file");
    }

    /// Flips a bit, differently at each byte, for as long as `look` looks.
    fn flipped<T>(&self, offset: usize, look: impl FnOnce() -> T) -> T {
        let byte = self.pristine[offset];
        self.put(offset, byte ^ (1 << (offset % 8)));
        let result = look();
        self.put(offset, byte);
        result
    }

    /// What is read from `from` on must be the records that are there, up to an end that is not
    /// before the damage at `damage`.
    fn check(&self, from: usize, found: &[Expected], limit: usize, damage: usize) {
        for (found, expected) in found.iter().zip(&self.records[from..]) {
            let is_same = (found.lsn, found.end) == (expected.lsn, expected.end)
                && found.bytes == expected.bytes;
            assert!(
                is_same,
                "damage at {damage} makes another record at {}",
                found.lsn
            );
        }
        let intact = self.record_at(damage).saturating_sub(from).min(limit);
        let known = self.records.len() - from;
        assert!(
            found.len() >= intact.min(known),
            "damage at {damage} hides earlier records"
        );
        assert!(found.len() <= known, "damage at {damage} adds a record");
    }

    /// Whether the byte belongs to the header of a page.
    fn is_in_header(&self, offset: usize) -> bool {
        let header = match offset < PAGE_BYTES {
            true => 40,
            false => PAGE_HEADER_BYTES,
        };
        offset % PAGE_BYTES < header
    }

    /// Whether the byte is one of a record's own.
    fn is_in_record(&self, offset: usize) -> bool {
        let Some(record) = self.records.get(self.record_at(offset)) else {
            return false;
        };
        let start = self.offset(record.lsn);
        if self.is_in_header(offset) || offset < start {
            return false;
        }
        // Page headers in between do not count towards its length.
        let headers = (offset / PAGE_BYTES - start / PAGE_BYTES) * PAGE_HEADER_BYTES;
        offset - start - headers < record.bytes.len()
    }
}

/// Every byte of the segment that is read, by the reader of the records around it; and one in
/// seventeen of those that are not, which are many.
#[test]
fn every_byte_of_wal() {
    in_parallel("locks", 0..SEGMENT_BYTES, |wal, share| {
        let first = wal.offset(wal.start);
        let read = first - first % PAGE_BYTES..wal.end() + PAGE_BYTES;
        for offset in share {
            let is_read = offset < PAGE_BYTES || read.contains(&offset);
            if !is_read && !offset.is_multiple_of(17) {
                continue;
            }
            let damaged = wal.record_at(offset);
            let from = damaged.saturating_sub(1).min(wal.records.len() - 1);
            let start = match from {
                0 => wal.start,
                _ => wal.records[from].lsn,
            };
            let found = wal.flipped(offset, || wal.read(start, 3));
            // A page with a bad header is lost whole.
            let lost = match wal.is_in_header(offset) {
                true => offset - offset % PAGE_BYTES,
                false => offset,
            };
            wal.check(from, &found, 3, lost);
            if wal.is_in_record(offset) {
                assert_eq!(
                    from + found.len(),
                    damaged,
                    "{offset}: a damaged record is read"
                );
            }
        }
    });
}

fn survey(prepared: Result<Prepared, RecoveryError>, place: usize) -> Option<Survey> {
    match prepared {
        Ok(Prepared::Ready(recovery)) => {
            recovery
                .rehearse()
                .unwrap_or_else(|error| panic!("{place}: {error}"));
            Some(recovery.survey().clone())
        }
        Ok(Prepared::NothingToDo(_)) => panic!("{place}: nothing to do"),
        Err(RecoveryError::Refused(_)) => None,
        Err(other) => panic!("{place}: {other}"),
    }
}

/// One byte of every record, and all of some page headers, by a whole preparation.
#[test]
fn damaged_wal_is_refused_or_ends_there() {
    let records = Wal::of("locks").records.len();
    in_parallel("locks", 0..records, |wal, share| {
        let mut random = Random::new(share.start as u64);
        for index in share {
            let record = &wal.records[index];
            let within = random.below(record.bytes.len());
            let offset = wal.offset(record.lsn) + within;
            if !wal.is_in_record(offset) || wal.record_at(offset) != index {
                continue;
            }
            let found = wal.flipped(offset, || prepare(&Kernel::new(), &wal.data()));
            match survey(found, offset) {
                Some(survey) => assert_eq!(survey.records, index as u64, "{offset}"),
                // The checkpoint itself, or what comes before it.
                None => assert!(record.lsn <= wal.control.check_point, "{offset}"),
            }
        }
    });
    let wal = Wal::of("locks");
    for page in 0..wal.end() / PAGE_BYTES {
        for offset in page * PAGE_BYTES..page * PAGE_BYTES + 24 {
            let found = wal.flipped(offset, || prepare(&Kernel::new(), &wal.data()));
            if let Some(survey) = survey(found, offset) {
                assert!(survey.records <= wal.records.len() as u64);
            }
        }
    }
}

/// A segment that is cut short, at every page and in between.
#[test]
fn truncated_wal() {
    let wal = Wal::of("locks");
    let mut random = Random::new(1);
    let mut cuts: Vec<usize> = (0..SEGMENT_BYTES).step_by(PAGE_BYTES).collect();
    cuts.extend((0..200).map(|_| random.below(wal.end())));
    for cut in cuts {
        std::fs::write(&wal.segment, &wal.pristine[..cut]).expect("own file");
        // Only whole pages can be read.
        let whole = cut - cut % PAGE_BYTES;
        let found = wal.read(wal.start, usize::MAX);
        wal.check(0, &found, usize::MAX, whole);
        assert!(
            found.iter().all(|record| wal.offset(record.end) <= whole),
            "{cut}"
        );
        if let Some(survey) = survey(prepare(&Kernel::new(), &wal.data()), cut) {
            assert_eq!(survey.records, found.len() as u64, "{cut}");
        }
    }
}

/// Every byte of pg_control that a field or the checksum has; the rest is told, and refused when
/// asked to be strict.
#[test]
fn every_byte_of_pg_control() {
    let root = memory_directory();
    let data = Sample::named("locks").unpack(root.path());
    let path = data.join("global/pg_control");
    let pristine = std::fs::read(&path).expect("it is there");
    let format = ControlFile::parse(&pristine).expect("sound").format;
    let covered = format.control_crc_offset + 4;
    for at in 0..pristine.len() {
        for bit in 0..8 {
            let mut bytes = pristine.clone();
            bytes[at] ^= 1 << bit;
            let parsed = ControlFile::parse(&bytes);
            match parsed {
                Ok(control) => assert_eq!(control.first_stray_byte(&bytes), Some(at)),
                Err(error) => {
                    assert!(at < covered, "{at}: {error}");
                    let is_version = matches!(error, ControlError::Version { .. });
                    assert_eq!(is_version, (8..16).contains(&at), "{at}: {error}");
                }
            }
        }
        assert!(ControlFile::parse(&pristine[..at]).is_err());
    }
    let mut bytes = pristine.clone();
    bytes[covered + 1000] = 1;
    std::fs::write(&path, bytes).expect("own file");
    for strict in [false, true] {
        let mut quiet = Quiet::default();
        let options = pgredo::recovery::RecoveryOptions {
            strict,
            ..options(&data)
        };
        let result = pgredo::recovery::Recovery::prepare(&Kernel::new(), options, &mut quiet);
        match result {
            Ok(_) => assert!(!strict && quiet.warnings == 1),
            Err(RecoveryError::Refused(refusal)) => {
                assert!(strict && matches!(*refusal, Refusal::Strict(_)));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// A bad map that no record replaces keeps the recovery from ending; the directory can be
/// recovered once the map is good.
#[test]
fn relation_maps() {
    let root = memory_directory();
    let sample = Sample::named("locks");
    let pristine = sample.unpack(root.path());
    let data = root.path().join("damaged");
    for map in ["global/pg_filenode.map", "base/5/pg_filenode.map"] {
        let good = std::fs::read(pristine.join(map)).expect("it is there");
        copy_directory(&pristine, &data);
        for at in (0..508).step_by(31).chain([508, 509, 510, 511, 512]) {
            let mut bytes = good.clone();
            match bytes.get_mut(at) {
                // No checksum covers the padding after it; servers do not look there either.
                Some(_) if at >= 508 => continue,
                Some(byte) => *byte ^= 0x40,
                None => bytes.push(0),
            }
            std::fs::write(data.join(map), bytes).expect("own file");
            match recover(&Kernel::new(), &data) {
                Err(RecoveryError::RelationMap { path, .. }) => assert_eq!(path, data.join(map)),
                other => panic!("{map}, byte {at}: {other:?}"),
            }
        }
        std::fs::write(data.join(map), &good).expect("own file");
        recover(&Kernel::new(), &data).expect("all is good again");
        assert_eq!(
            support::fingerprint::fingerprint(&data),
            sample.fingerprint()
        );
        std::fs::remove_dir_all(&data).expect("own directory");
    }
}

/// Damages a file: some bytes, a stretch of them, or its end.
fn damage(path: &Path, random: &mut Random) -> String {
    let mut bytes = std::fs::read(path).expect("own file");
    if bytes.is_empty() {
        bytes = vec![0; 1 + random.below(100)];
    }
    let at = random.below(bytes.len());
    let what = match random.below(4) {
        0 => {
            bytes.truncate(at);
            format!("cut to {at}")
        }
        1 => {
            let end = bytes.len().min(at + 1 + random.below(600));
            bytes[at..end].fill_with(|| random.number() as u8);
            format!("random bytes {at}..{end}")
        }
        2 => {
            let end = bytes.len().min(at + 1 + random.below(9000));
            let fill = [0x00, 0xFF][random.below(2)];
            bytes[at..end].fill(fill);
            format!("{fill:#04x} in {at}..{end}")
        }
        _ => {
            let count = 1 + random.below(20);
            for _ in 0..count {
                let at = random.below(bytes.len());
                bytes[at] = random.number() as u8;
            }
            format!("{count} random bytes")
        }
    };
    std::fs::write(path, bytes).expect("own file");
    format!("{} ({what})", path.display())
}

/// Damages up to eight files of a copy of the sample and recovers it.
fn abuse(pristine: &Path, work: &Path, files: &[String], seed: u64) {
    let mut random = Random::new(seed);
    let data = work.join("data");
    support::remove_directory(&data);
    copy_directory(pristine, &data);
    let chosen: Vec<String> = (0..1 + random.below(8))
        .map(|_| damage(&data.join(&files[random.below(files.len())]), &mut random))
        .collect();
    let order = [RedoOrder::Record, RedoOrder::Page][(seed % 2) as usize];
    let result = catch_unwind(AssertUnwindSafe(|| {
        recover_in(order, &Kernel::new(), &data)
    }));
    assert!(result.is_ok(), "seed {seed} makes it panic: {chosen:#?}");
    let names: Vec<PathBuf> = support::entries(work);
    assert_eq!(
        names,
        [data.clone(), work.join("neighbour")],
        "seed {seed}: {chosen:#?}"
    );
    let neighbour = std::fs::read(work.join("neighbour")).expect("own file");
    assert!(neighbour.is_empty(), "seed {seed}: {chosen:#?}");
}

/// Random damage to a sample, `seeds` times, in the files that `is_chosen` chooses.
fn abuse_sample(name: &str, seeds: Range<u64>, is_chosen: impl Fn(&str) -> bool) {
    let extra = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok());
    let seeds: Vec<u64> = match extra {
        Some(first) => (first..first + 1000).collect(),
        None => seeds.collect(),
    };
    println!("{name}: seeds {} to {}", seeds[0], seeds[seeds.len() - 1]);
    let root = memory_directory();
    let pristine = Sample::named(name).unpack(root.path());
    let files: Vec<String> = walk(&pristine)
        .into_iter()
        .filter(|(path, entry)| matches!(entry, Entry::File(_)) && is_chosen(path))
        .map(|(path, _)| path)
        .collect();
    std::thread::scope(|scope| {
        for share in seeds.chunks(seeds.len().div_ceil(threads())) {
            let (pristine, files) = (&pristine, &files);
            scope.spawn(move || {
                let work = memory_directory();
                std::fs::write(work.path().join("neighbour"), "").expect("own directory");
                for &seed in share {
                    abuse(pristine, work.path(), files, seed);
                }
            });
        }
    });
}

#[test]
fn random_damage_to_all_files() {
    for (name, first) in [("ddl", 1000), ("locks", 2000), ("pgbench", 3000)] {
        abuse_sample(name, first..first + 40, |_| true);
    }
}

/// Most files are relations, and most damage to those stays unread; here it hits what is read.
#[test]
fn random_damage_to_state() {
    for (name, first) in [("ddl", 4000), ("locks", 5000), ("pgbench", 6000)] {
        abuse_sample(name, first..first + 40, |path| {
            let is_page = path.starts_with("base/") || path.starts_with("global/1");
            !is_page && path.contains('/')
        });
    }
}
