//! `pgredo compare`: two data directories, file by file, block by block. The exit status is 0 if
//! they are equal and 1 if not; what is left out by rule is counted, and named with `-v`.

use std::cmp::Ordering;
use std::io::Write;

use jiff::tz::TimeZone;

use super::args::CompareArgs;
use super::error::CliError;
use super::io::{Chunks, Entry, Node};
use super::{Exit, control, io};
use crate::format::WalFormat;
use crate::page::Page;
use crate::pgdata::control::ControlFile;
use crate::pgdata::filename::{FileKind, RelationFile, classify};
use crate::types::{BLOCK_BYTES, RELSEG_BLOCKS};

/// Read at once, from each side.
const CHUNK_BYTES: usize = 128 * BLOCK_BYTES;
/// Blocks of one file that are named unless `-v` asks for all.
const BLOCKS_NAMED: u64 = 10;
/// The clock readings in pg_control; no two runs have the same.
const CLOCK_LINES: [&str; 2] = ["pg_control last modified", "Time of latest checkpoint"];

/// Compares.
pub(super) fn run(args: &CompareArgs, out: &mut dyn Write) -> Result<Exit, CliError> {
    let (a, b) = (io::walk(&args.a)?, io::walk(&args.b)?);
    // The format only names the version directory of tablespaces; one good side is enough.
    let format = control::read(&args.a)
        .or_else(|_| control::read(&args.b))?
        .format;
    let mut comparison = Comparison {
        args,
        format,
        out,
        totals: Totals::default(),
    };
    comparison.merge(&a, &b)?;
    comparison.summary()
}

#[derive(Debug, Default)]
struct Totals {
    files: u64,
    only_in_a: u64,
    only_in_b: u64,
    differ: u64,
    blocks: u64,
    ignored: u64,
}

struct Comparison<'a> {
    args: &'a CompareArgs,
    format: &'static WalFormat,
    out: &'a mut dyn Write,
    totals: Totals,
}

impl Comparison<'_> {
    /// Walks both sorted lists at once.
    fn merge(&mut self, a: &[Entry], b: &[Entry]) -> Result<(), CliError> {
        let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
        loop {
            let order = match (a.peek(), b.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(x), Some(y)) => x.name.cmp(&y.name),
            };
            let left = if order.is_le() { a.next() } else { None };
            let right = if order.is_ge() { b.next() } else { None };
            self.entry(left, right)?;
        }
    }

    /// One name, found on one side or on both.
    fn entry(&mut self, a: Option<&Entry>, b: Option<&Entry>) -> Result<(), CliError> {
        let Some(any) = a.or(b) else { return Ok(()) };
        let kind = classify(&any.name, self.format);
        if let Some(reason) = self.ignored(kind) {
            return self.note(&any.name, reason);
        }
        match (a, b) {
            (Some(a), Some(b)) => self.pair(kind, a, b),
            (Some(a), None) => {
                self.totals.only_in_a += 1;
                self.only("A", a)
            }
            (None, Some(b)) => {
                self.totals.only_in_b += 1;
                self.only("B", b)
            }
            (None, None) => Ok(()),
        }
    }

    fn ignored(&self, kind: FileKind) -> Option<&'static str> {
        match kind {
            _ if self.args.all => None,
            FileKind::Server => Some("of the running server"),
            FileKind::Volatile => Some("rebuilt or thrown away at every start"),
            FileKind::Wal if !self.args.wal => Some("WAL, compared with --wal"),
            _ => None,
        }
    }

    fn note(&mut self, name: &str, reason: &str) -> Result<(), CliError> {
        self.totals.ignored += 1;
        if self.args.verbose {
            writeln!(self.out, "note: {name}: ignored: {reason}")?;
        }
        Ok(())
    }

    fn only(&mut self, side: &str, entry: &Entry) -> Result<(), CliError> {
        let name = &entry.name;
        match entry.node {
            Node::File(bytes) => writeln!(self.out, "only in {side}: {name} ({bytes} bytes)")?,
            Node::Directory => writeln!(self.out, "only in {side}: {name}/")?,
            Node::Special => writeln!(self.out, "only in {side}: {name} (not a file)")?,
        }
        Ok(())
    }

    fn pair(&mut self, kind: FileKind, a: &Entry, b: &Entry) -> Result<(), CliError> {
        let name = &a.name;
        let differ = match (a.node, b.node) {
            (Node::File(a_bytes), Node::File(b_bytes)) => {
                self.totals.files += 1;
                if a_bytes != b_bytes {
                    writeln!(
                        self.out,
                        "{name}: size: {a_bytes} bytes in A, {b_bytes} in B"
                    )?;
                }
                let contents = match kind {
                    FileKind::Relation(file) => self.blocks(file, a, b)?,
                    FileKind::Control => self.control(a, b)?,
                    _ => self.bytes(a, b)?,
                };
                contents || a_bytes != b_bytes
            }
            (Node::Directory, Node::Directory) => false,
            (Node::Special, Node::Special) => return self.note(name, "not a file"),
            _ => {
                writeln!(
                    self.out,
                    "{name}: a file in one, something else in the other"
                )?;
                true
            }
        };
        self.totals.differ += u64::from(differ);
        Ok(())
    }

    /// Blocks that both sides have. True if any differs.
    fn blocks(&mut self, file: RelationFile, a: &Entry, b: &Entry) -> Result<bool, CliError> {
        let first = u64::from(file.segment) * u64::from(RELSEG_BLOCKS);
        let mut named = 0;
        let mut found = 0;
        for_each_chunk(a, b, |at, a_chunk, b_chunk| {
            if a_chunk == b_chunk {
                return Ok(());
            }
            let pairs = a_chunk.chunks(BLOCK_BYTES).zip(b_chunk.chunks(BLOCK_BYTES));
            for (i, (x, y)) in pairs.enumerate().filter(|(_, (x, y))| x != y) {
                found += 1;
                if named == BLOCKS_NAMED && !self.args.verbose {
                    continue;
                }
                named += 1;
                let block = first + at / BLOCK_BYTES as u64 + i as u64;
                let (offset, count) = differing(x, y);
                writeln!(
                    self.out,
                    "{}: blk {block}: LSN {} in A, {} in B; first differing byte {offset}, \
                     {count} differ",
                    a.name,
                    page_lsn(x),
                    page_lsn(y),
                )?;
            }
            Ok(())
        })?;
        if found > named {
            let more = found - named;
            writeln!(
                self.out,
                "{}: {more} more blocks differ (-v names them)",
                a.name
            )?;
        }
        self.totals.blocks += found;
        Ok(found > 0)
    }

    /// Bytes that both sides have. True if any differs.
    fn bytes(&mut self, a: &Entry, b: &Entry) -> Result<bool, CliError> {
        let mut first = None;
        let mut total = 0;
        for_each_chunk(a, b, |at, a_chunk, b_chunk| {
            if a_chunk != b_chunk {
                let (offset, count) = differing(a_chunk, b_chunk);
                first.get_or_insert(at + offset as u64);
                total += count as u64;
            }
            Ok(())
        })?;
        if let Some(first) = first {
            writeln!(
                self.out,
                "{}: first differing byte {first}, {total} differ",
                a.name
            )?;
        }
        Ok(first.is_some())
    }

    /// Field by field, under pg_controldata's labels. A side that does not parse is compared by
    /// its bytes.
    fn control(&mut self, a: &Entry, b: &Entry) -> Result<bool, CliError> {
        let read = |entry: &Entry| io::read_file(&entry.path).map(|b| ControlFile::parse(&b));
        let (x, y) = match (read(a)?, read(b)?) {
            (Ok(x), Ok(y)) => (x, y),
            (x, y) => {
                for (side, result) in [("A", x), ("B", y)] {
                    if let Err(error) = result {
                        writeln!(self.out, "{}: in {side}: {error}", a.name)?;
                    }
                }
                return self.bytes(a, b);
            }
        };
        let mut differ = false;
        let mut clocks = false;
        let (x, y) = (
            control::lines(&x, &TimeZone::UTC),
            control::lines(&y, &TimeZone::UTC),
        );
        for ((label, x), (_, y)) in x.iter().zip(&y).filter(|((_, x), (_, y))| x != y) {
            if CLOCK_LINES.contains(label) && !self.args.all {
                clocks = true;
                self.note(&format!("{}: {label}", a.name), "a clock reading")?;
            } else {
                differ = true;
                writeln!(self.out, "{}: {label}: {x} in A, {y} in B", a.name)?;
            }
        }
        if differ || clocks {
            return Ok(differ);
        }
        // What no line shows: bytes behind the fields, values printed as unknown.
        self.bytes(a, b)
    }

    fn summary(self) -> Result<Exit, CliError> {
        let t = &self.totals;
        let equal = t.differ + t.only_in_a + t.only_in_b == 0;
        writeln!(
            self.out,
            "{}: {} files compared, {} differ ({} blocks of relations), {} only in A, {} only in \
             B, {} ignored by rule",
            if equal { "equal" } else { "different" },
            t.files,
            t.differ,
            t.blocks,
            t.only_in_a,
            t.only_in_b,
            t.ignored,
        )?;
        Ok(if equal { Exit::Done } else { Exit::Failed })
    }
}

/// Calls `visit` with the offset and as much of both files as both have.
fn for_each_chunk(
    a: &Entry,
    b: &Entry,
    mut visit: impl FnMut(u64, &[u8], &[u8]) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let (mut a_chunks, mut b_chunks) = (Chunks::open(&a.path)?, Chunks::open(&b.path)?);
    let (mut x, mut y) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    let mut at = 0;
    loop {
        let n = a_chunks.fill(&mut x)?;
        let m = b_chunks.fill(&mut y)?;
        let both = n.min(m);
        visit(at, &x[..both], &y[..both])?;
        if both < CHUNK_BYTES {
            return Ok(());
        }
        at += both as u64;
    }
}

/// Offset of the first differing byte and how many differ; the slices do differ.
fn differing(a: &[u8], b: &[u8]) -> (usize, usize) {
    let mut differing = a.iter().zip(b).enumerate().filter(|(_, (x, y))| x != y);
    let first = differing.next().map_or(a.len(), |(at, _)| at);
    (first, 1 + differing.count())
}

/// The page's LSN, or a dash where a torn file leaves no whole page.
fn page_lsn(block: &[u8]) -> String {
    match <[u8; BLOCK_BYTES]>::try_from(block) {
        Ok(bytes) => Page::from_bytes(bytes).lsn().to_string(),
        Err(_) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::pgdata::control::tests::sample;

    struct Pair(tempfile::TempDir);

    impl Pair {
        /// Two directories that only have equal control files.
        fn new() -> Pair {
            let pair = Pair(tempfile::tempdir().unwrap());
            for side in ["a", "b"] {
                pair.write(side, "global/pg_control", &sample());
            }
            pair
        }

        fn write(&self, side: &str, name: &str, contents: &[u8]) {
            let path = self.0.path().join(side).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, contents).unwrap();
        }

        fn compare(&self, flags: &str) -> (Exit, String) {
            let args = CompareArgs {
                a: self.0.path().join("a"),
                b: self.0.path().join("b"),
                wal: flags.contains('w'),
                all: flags.contains('a'),
                verbose: flags.contains('v'),
            };
            let mut out = Vec::new();
            let exit = run(&args, &mut out).unwrap();
            (exit, String::from_utf8(out).unwrap())
        }
    }

    #[test]
    fn names_blocks_lsns_and_bytes() {
        let pair = Pair::new();
        let mut pages = vec![0; 2 * BLOCK_BYTES];
        pair.write("a", "base/5/16384.1", &pages);
        pages[BLOCK_BYTES + 4] = 0x28;
        pages[BLOCK_BYTES + 100] = 1;
        pages.extend([0; BLOCK_BYTES]);
        pair.write("b", "base/5/16384.1", &pages);
        let (exit, text) = pair.compare("");
        assert_eq!(exit, Exit::Failed);
        assert_eq!(
            text,
            "base/5/16384.1: size: 16384 bytes in A, 24576 in B\n\
             base/5/16384.1: blk 131073: LSN 0/0 in A, 0/28 in B; first differing byte 4, \
             2 differ\n\
             different: 2 files compared, 1 differ (1 blocks of relations), 0 only in A, \
             0 only in B, 0 ignored by rule\n"
        );
    }

    #[test]
    fn counts_the_blocks_it_does_not_name() {
        let pair = Pair::new();
        pair.write("a", "base/5/1", &vec![0; 300 * BLOCK_BYTES]);
        pair.write("b", "base/5/1", &vec![1; 300 * BLOCK_BYTES]);
        let (_, text) = pair.compare("");
        assert_eq!(text.lines().count(), 12);
        assert!(text.contains("base/5/1: 290 more blocks differ"), "{text}");
        assert!(text.contains("(300 blocks of relations)"), "{text}");
        let (_, text) = pair.compare("v");
        assert_eq!(text.lines().count(), 301);
    }

    #[test]
    fn files_and_directories_of_one_side() {
        let pair = Pair::new();
        pair.write("a", "base/5/1", b"x");
        pair.write("b", "pg_xact/0000", b"y");
        let (exit, text) = pair.compare("");
        assert_eq!(exit, Exit::Failed);
        assert!(text.contains("only in A: base/5/1 (1 bytes)\n"), "{text}");
        assert!(text.contains("only in A: base/5/\n"), "{text}");
        assert!(
            text.contains("only in B: pg_xact/0000 (1 bytes)\n"),
            "{text}"
        );
        assert!(text.contains("3 only in A, 2 only in B"), "{text}");
    }

    #[test]
    fn control_files_by_field_and_clocks_by_rule() {
        let pair = Pair::new();
        let mut file = ControlFile::parse(&sample()).unwrap();
        file.time += 1;
        pair.write("b", "global/pg_control", &file.to_bytes());
        let (exit, text) = pair.compare("v");
        assert_eq!(exit, Exit::Done);
        assert!(
            text.contains("pg_control last modified: ignored: a clock"),
            "{text}"
        );
        file.check_point.0 = 0x28;
        pair.write("b", "global/pg_control", &file.to_bytes());
        let (exit, text) = pair.compare("");
        assert_eq!(exit, Exit::Failed);
        assert!(text.contains("Latest checkpoint location: "), "{text}");
        assert!(text.contains(" in A, 0/28 in B\n"), "{text}");
    }

    #[test]
    fn a_broken_control_file_is_compared_by_its_bytes() {
        let pair = Pair::new();
        pair.write("a", "global/pg_control", b"short");
        let (exit, text) = pair.compare("");
        assert_eq!(exit, Exit::Failed);
        assert!(text.contains("in A: pg_control is 5 bytes long"), "{text}");
    }

    #[test]
    fn rules_are_counted_named_and_lifted() {
        let pair = Pair::new();
        for (side, contents) in [("a", b"x"), ("b", b"y")] {
            pair.write(side, "pg_wal/000000010000000000000001", contents);
            pair.write(side, "postmaster.opts", contents);
            pair.write(side, "pg_stat/pgstat.stat", contents);
        }
        let (exit, text) = pair.compare("");
        assert_eq!(exit, Exit::Done);
        assert!(text.ends_with(" ignored by rule\n"), "{text}");
        let (_, text) = pair.compare("v");
        assert!(
            text.contains("note: postmaster.opts: ignored: of the"),
            "{text}"
        );
        let (exit, text) = pair.compare("w");
        assert_eq!(exit, Exit::Failed);
        assert!(
            text.contains("0001: first differing byte 0, 1 differ\n"),
            "{text}"
        );
        let (_, text) = pair.compare("a");
        assert!(text.contains(" 3 differ (0 blocks"), "{text}");
    }
}
