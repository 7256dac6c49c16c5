//! Two recovered directories, file by file and byte by byte. It shares nothing with pgredo: what
//! it knows of PostgreSQL's files is written here.

use std::collections::BTreeSet;
use std::path::Path;

use super::capture::{Capture, Recovered, waldump_of_block};
use super::control::Control;
use super::free_space;
use super::tree::{Entry, walk};

/// Size of a page of a relation, of an SLRU and of WAL.
const PAGE_BYTES: usize = 8192;

/// How many differing files, and pages of one file, a report spells out.
const SHOWN: usize = 8;

/// How a file is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// It is there in both or in neither, with the same bytes.
    Same,
    /// It is there in both or in neither; its content is a cache.
    SameExistence,
    /// pg_control, by field.
    Control,
    /// A WAL segment, see [`compare_wal`].
    Wal,
    /// Not the business of recovery.
    Ignored,
}

/// The exceptions from "every file has the same bytes". All of them are files that a server makes
/// or empties when it starts, whatever was replayed.
fn rule(path: &str) -> Rule {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["global", "pg_control"] => Rule::Control,
        // Which old segments a server recycles depends on its settings.
        ["pg_wal", name] if name != "archive_status" => Rule::Wal,
        ["pg_wal", "archive_status", _] => Rule::Ignored,
        // The running server's own marks and log.
        ["postmaster.pid" | "postmaster.opts" | "current_logfiles"] | ["log", ..] => Rule::Ignored,
        // Statistics are not recovered; pgredo removes stale ones, a server writes new ones.
        ["pg_stat" | "pg_stat_tmp", _] => Rule::Ignored,
        // Only needed for transactions that run: zero pages after recovery, remade at any start.
        ["pg_subtrans", _] => Rule::Ignored,
        // Emptied or remade when a server starts.
        ["pg_notify" | "pg_serial" | "pg_dynshmem", _] => Rule::Ignored,
        [.., "pg_internal.init"] => Rule::SameExistence,
        _ => Rule::Same,
    }
}

/// Panics with a report when pgredo's result is not what PostgreSQL left.
pub fn assert_same(capture: &Capture, reference: &Recovered, ours: &Recovered) {
    let report = compare(reference, ours);
    assert!(report.is_empty(), "{}", describe(capture, &report));
}

/// The same for a replay in the order of pages, whose free space maps have a rule of their own.
pub fn assert_same_but_for_free_space(capture: &Capture, reference: &Recovered, ours: &Recovered) {
    let mut report = compare(reference, ours);
    report.retain(|found| !free_space::is_allowed(found, &reference.data(), &ours.data()));
    assert!(report.is_empty(), "{}", describe(capture, &report));
}

/// Every difference between what PostgreSQL left and what pgredo left.
pub fn compare(reference: &Recovered, ours: &Recovered) -> Vec<Difference> {
    let mut found = compare_data(&reference.data(), &ours.data());
    found.extend(compare_trees(&reference.locations(), &ours.locations()));
    found
}

/// The same of two data directories without tablespaces elsewhere.
pub fn compare_data(theirs: &Path, ours: &Path) -> Vec<Difference> {
    let mut found = compare_trees(theirs, ours);
    found.extend(compare_wal(theirs, ours));
    let (theirs, ours) = (Control::read(theirs), Control::read(ours));
    found.extend(
        ours.differences(&theirs)
            .into_iter()
            .map(|what| Difference {
                path: "global/pg_control".to_owned(),
                what,
                pages: Vec::new(),
            }),
    );
    found
}

/// One file that is not as PostgreSQL left it.
#[derive(Debug)]
pub struct Difference {
    /// Path below the data directory.
    pub path: String,
    /// What differs, for people.
    pub what: String,
    /// The pages that differ, if the file is there on both sides.
    pub pages: Vec<u32>,
}

impl Difference {
    fn of(path: &str, what: impl Into<String>) -> Difference {
        Difference {
            path: path.to_owned(),
            what: what.into(),
            pages: Vec::new(),
        }
    }
}

fn compare_trees(theirs: &Path, ours: &Path) -> Vec<Difference> {
    let (their_tree, our_tree) = (walk(theirs), walk(ours));
    let paths: BTreeSet<&String> = their_tree.keys().chain(our_tree.keys()).collect();
    let mut found = Vec::new();
    for path in paths {
        let rule = rule(path);
        if !matches!(rule, Rule::Same | Rule::SameExistence) {
            continue;
        }
        match (their_tree.get(path), our_tree.get(path)) {
            (None, _) => found.push(Difference::of(path, "PostgreSQL left no such file")),
            (_, None) => found.push(Difference::of(path, "pgredo left no such file")),
            (Some(Entry::File(_)), Some(Entry::File(_))) => {
                if rule == Rule::Same {
                    found.extend(compare_files(path, &theirs.join(path), &ours.join(path)));
                }
            }
            // Links lead to private copies of the tablespaces: only their last parts compare.
            (Some(Entry::Link(a)), Some(Entry::Link(b))) if a.file_name() == b.file_name() => {}
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => {
                let what = format!("PostgreSQL left {a:?}, pgredo {b:?}");
                found.push(Difference::of(path, what));
            }
        }
    }
    found
}

fn compare_files(path: &str, theirs: &Path, ours: &Path) -> Option<Difference> {
    let read =
        |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let (theirs, ours) = (read(theirs), read(ours));
    if theirs == ours {
        return None;
    }
    let mut difference = Difference::of(path, "");
    if theirs.len() != ours.len() {
        let (theirs, ours) = (theirs.len(), ours.len());
        difference.what = format!("PostgreSQL left {theirs} bytes, pgredo {ours}\n");
    }
    let blocks = theirs.chunks(PAGE_BYTES).zip(ours.chunks(PAGE_BYTES));
    for (block, (their_page, our_page)) in (0_u32..).zip(blocks) {
        if their_page != our_page {
            if difference.pages.len() < SHOWN {
                difference.what += &describe_page(block, their_page, our_page);
            }
            difference.pages.push(block);
        }
    }
    difference.what += &format!("    {} pages differ", difference.pages.len());
    Some(difference)
}

/// The first byte that differs, how many do, and the page LSNs (which are only that in relations).
fn describe_page(block: u32, theirs: &[u8], ours: &[u8]) -> String {
    let length = theirs.len().min(ours.len());
    let differing: Vec<usize> = (0..length).filter(|&at| theirs[at] != ours[at]).collect();
    let Some(&first) = differing.first() else {
        return format!("    block {block}: one is cut short\n");
    };
    format!(
        "    block {block}, byte {first}: PostgreSQL {:#04x}, pgredo {:#04x}; {} bytes to byte {}; \
         page LSN {} and {}\n",
        theirs[first],
        ours[first],
        differing.len(),
        differing[differing.len() - 1],
        page_lsn(theirs),
        page_lsn(ours),
    )
}

/// pd_lsn: two 32-bit halves, the high one first.
fn page_lsn(page: &[u8]) -> String {
    let half = |at: usize| {
        page.get(at..at + 4).map_or(0, |bytes| {
            u32::from_le_bytes(bytes.try_into().expect("four bytes"))
        })
    };
    format!("{:X}/{:X}", half(0), half(4))
}

/// Segments up to the end of WAL have the same bytes as far as both sides still have them. The
/// page in which the final checkpoint record starts, and what follows it, hold clock readings.
fn compare_wal(theirs: &Path, ours: &Path) -> Vec<Difference> {
    let control = Control::read(theirs);
    let (segment_bytes, end) = (control.segment_bytes(), control.checkpoint());
    let segments_per_id = (1_u64 << 32) / segment_bytes;
    let mut found = Vec::new();
    for (path, _) in walk(theirs)
        .iter()
        .filter(|(path, _)| path.starts_with("pg_wal/"))
    {
        let name = &path["pg_wal/".len()..];
        let digits = |range| u64::from_str_radix(name.get(range).unwrap_or(""), 16).ok();
        let (Some(id), Some(segment)) = (digits(8..16), digits(16..24)) else {
            continue;
        };
        let start = (id * segments_per_id + segment) * segment_bytes;
        if start > end {
            continue;
        }
        let is_last = end - start < segment_bytes;
        let compared = usize::try_from((end - start).min(segment_bytes)).expect("a segment");
        let compared = compared - compared % PAGE_BYTES;
        let read = |root: &Path| std::fs::read(root.join(path)).ok();
        match (read(theirs), read(ours)) {
            (Some(theirs), Some(ours))
                if theirs[..compared] != ours[..compared.min(ours.len())] =>
            {
                found.push(Difference::of(path, "WAL before its end was changed"));
            }
            (_, None) if is_last => found.push(Difference::of(path, "the last segment is missing")),
            _ => {}
        }
    }
    found
}

/// The report of a failed comparison, with the records that touched the first pages.
fn describe(capture: &Capture, differences: &[Difference]) -> String {
    let mut text = format!("{}: {} files differ\n", capture.name(), differences.len());
    for difference in differences.iter().take(SHOWN) {
        text += &format!("  {}: {}\n", difference.path, difference.what.trim_start());
        let first = difference.pages.first();
        if let (Some(&block), Some((relation, fork, segment))) = (first, relation(&difference.path))
        {
            // A segment file holds 131,072 blocks.
            let block = segment * 131_072 + block;
            text += &waldump_of_block(capture, &relation, fork, block);
        }
    }
    for difference in differences.iter().skip(SHOWN) {
        text += &format!("  {}\n", difference.path);
    }
    text
}

/// Splits the path of a relation file into tablespace/database/relation, fork and segment.
fn relation(path: &str) -> Option<(String, &'static str, u32)> {
    let parts: Vec<&str> = path.split('/').collect();
    let (directory, name) = match parts[..] {
        ["global", name] => ("1664/0".to_owned(), name),
        ["base", database, name] => (format!("1663/{database}"), name),
        ["pg_tblspc", tablespace, _, database, name] => (format!("{tablespace}/{database}"), name),
        _ => return None,
    };
    let (name, segment) = name.split_once('.').unwrap_or((name, "0"));
    let (number, fork) = name.split_once('_').unwrap_or((name, "main"));
    let fork = ["main", "fsm", "vm", "init"]
        .into_iter()
        .find(|known| *known == fork)?;
    number.parse::<u32>().ok()?;
    Some((format!("{directory}/{number}"), fork, segment.parse().ok()?))
}
