//! Statistics (`-z`): counts and sizes, by resource manager or by kind of record
//! (`XLogRecStoreStats`, `src/backend/access/transam/xlogstats.c`; `XLogDumpDisplayStats`,
//! `src/bin/pg_waldump/pg_waldump.c`).

use std::io::{self, Write};

use super::filter::FIRST_CUSTOM_RMGR;
use super::text::{image_bytes, rmgr_name};
use crate::decode::Record;
use crate::rmgr::RMGRS;
use crate::types::{Lsn, RmgrId};

/// Values of the four bits of `xl_info` that name a record.
const OPCODES: usize = 16;

/// `RM_XACT_ID`, and the bits of its records that are their opcode; the fourth says that the
/// record has more flags.
const XACT_OPCODE: usize = 7;

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Tally {
    records: u64,
    /// Bytes without images.
    record_bytes: u64,
    image_bytes: u64,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.records += other.records;
        self.record_bytes += other.record_bytes;
        self.image_bytes += other.image_bytes;
    }

    fn bytes(&self) -> u64 {
        self.record_bytes + self.image_bytes
    }
}

/// What was counted.
#[derive(Debug)]
pub(super) struct Stats {
    /// By resource manager and opcode.
    tallies: Vec<[Tally; OPCODES]>,
    start: Lsn,
    /// End of the last record; 0 before the first.
    end: Lsn,
}

impl Stats {
    /// Nothing yet, from the first record on, counted or not.
    pub(super) fn from(start: Lsn) -> Stats {
        Stats {
            tallies: vec![[Tally::default(); OPCODES]; 256],
            start,
            end: Lsn::INVALID,
        }
    }

    /// Counts a record.
    pub(super) fn count(&mut self, record: &Record<'_>) {
        let mut opcode = usize::from(record.info >> 4);
        if record.rmid == RmgrId::TRANSACTION {
            opcode &= XACT_OPCODE;
        }
        let image_bytes = image_bytes(record);
        self.tallies[usize::from(record.rmid.0)][opcode].add(Tally {
            records: 1,
            record_bytes: u64::from(record.total_bytes.saturating_sub(image_bytes)),
            image_bytes: u64::from(image_bytes),
        });
        self.end = record.end_lsn;
    }

    /// One row for each resource manager of PostgreSQL, and for those of extensions that were
    /// seen.
    pub(super) fn print_by_rmgr(&self, out: &mut dyn Write) -> io::Result<()> {
        self.print(out, |rmid, tallies| {
            let mut sum = Tally::default();
            tallies.iter().for_each(|tally| sum.add(*tally));
            let is_known = usize::from(rmid.0) < RMGRS.len();
            match sum.records > 0 || is_known {
                true => vec![(rmgr_name(rmid).into_owned(), sum)],
                false => Vec::new(),
            }
        })
    }

    /// One row for each kind of record that was seen.
    pub(super) fn print_by_record(&self, out: &mut dyn Write) -> io::Result<()> {
        self.print(out, |rmid, tallies| {
            let seen = (0u8..).zip(tallies).filter(|(_, tally)| tally.records > 0);
            seen.map(|(opcode, tally)| (kind_of_record(rmid, opcode << 4), *tally))
                .collect()
        })
    }

    /// Nothing at all if no record was counted.
    fn print(
        &self,
        out: &mut dyn Write,
        rows: impl Fn(RmgrId, &[Tally; OPCODES]) -> Vec<(String, Tally)>,
    ) -> io::Result<()> {
        if !self.end.is_valid() {
            return Ok(());
        }
        let mut total = Tally::default();
        self.tallies
            .iter()
            .flatten()
            .for_each(|tally| total.add(*tally));
        writeln!(
            out,
            "WAL statistics between {} and {}:",
            self.start, self.end
        )?;
        print_head(out)?;
        for (rmid, tallies) in (0u8..=u8::MAX).zip(&self.tallies) {
            let is_gap = usize::from(rmid) >= RMGRS.len() && rmid < FIRST_CUSTOM_RMGR;
            if !is_gap {
                for (name, tally) in rows(RmgrId(rmid), tallies) {
                    print_row(out, &name, &tally, &total)?;
                }
            }
        }
        print_total(out, &total)
    }
}

/// `Heap/INSERT`.
fn kind_of_record(rmid: RmgrId, info: u8) -> String {
    let rmgr = RMGRS.get(usize::from(rmid.0));
    let name = rmgr_name(rmid);
    match rmgr.and_then(|rmgr| (rmgr.identify)(info)) {
        Some(record) => format!("{name}/{record}"),
        None => format!("{name}/UNKNOWN ({info:x})"),
    }
}

fn print_head(out: &mut dyn Write) -> io::Result<()> {
    for [name, count, record, image, both, percent] in [
        [
            "Type",
            "N",
            "Record size",
            "FPI size",
            "Combined size",
            "(%)",
        ],
        [
            "----",
            "-",
            "-----------",
            "--------",
            "-------------",
            "---",
        ],
    ] {
        write!(out, "{name:<27}")?;
        for column in [count, record, image, both] {
            write!(out, " {column:>20} {percent:>8}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn print_row(out: &mut dyn Write, name: &str, row: &Tally, total: &Tally) -> io::Result<()> {
    write!(out, "{name:<27}")?;
    for (part, whole) in [
        (row.records, total.records),
        (row.record_bytes, total.record_bytes),
        (row.image_bytes, total.image_bytes),
        (row.bytes(), total.bytes()),
    ] {
        write!(out, " {part:>20} ({:6.2})", percent(part, whole))?;
    }
    writeln!(out)
}

/// The last lines: percentages here are of all bytes, and in brackets.
fn print_total(out: &mut dyn Write, total: &Tally) -> io::Result<()> {
    let line = "--------";
    writeln!(
        out,
        "{:27} {line:>20} {:8} {line:>20} {:8} {line:>20} {:8} {line:>20}",
        "", "", "", ""
    )?;
    let of_all = |part| format!("[{:.2}%]", percent(part, total.bytes()));
    writeln!(
        out,
        "{:<27} {:>20} {:9}{:>20} {:<9}{:>20} {:<9}{:>20} {:<6}",
        "Total",
        total.records,
        "",
        total.record_bytes,
        of_all(total.record_bytes),
        total.image_bytes,
        of_all(total.image_bytes),
        total.bytes(),
        "[100%]"
    )
}

/// 0 if there is nothing at all. In PostgreSQL's order of operations, which decides about the
/// last digit.
fn percent(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => 100.0 * part as f64 / whole as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::record;
    use super::*;

    fn printed(stats: &Stats, print: fn(&Stats, &mut dyn Write) -> io::Result<()>) -> Vec<String> {
        let mut out = Vec::new();
        print(stats, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn nothing_counted_prints_nothing() {
        let stats = Stats::from(Lsn(8));
        assert!(printed(&stats, Stats::print_by_rmgr).is_empty());
    }

    #[test]
    fn all_known_managers_have_a_row_and_others_if_seen() {
        let mut stats = Stats::from(Lsn(0x1_0000_0028));
        stats.count(&record());
        let lines = printed(&stats, Stats::print_by_rmgr);
        assert_eq!(lines[0], "WAL statistics between 1/28 and 1/6000118:");
        assert_eq!(lines.len(), 3 + RMGRS.len() + 1 + 2);
        let custom = &lines[3 + RMGRS.len()];
        assert_eq!(
            custom,
            "custom128                                      1 (100.00)                  150 (100.\
             00)                    0 (  0.00)                  150 (100.00)"
        );
        assert!(lines.last().unwrap().starts_with("Total  "), "{lines:?}");
        assert!(lines.last().unwrap().ends_with("150 [100%]"), "{lines:?}");
    }

    #[test]
    fn flags_of_transaction_records_are_no_kind() {
        let mut stats = Stats::from(Lsn(8));
        let mut commit = record();
        commit.rmid = RmgrId::TRANSACTION;
        for info in [0x00, 0x80] {
            commit.info = info;
            stats.count(&commit);
        }
        commit.info = 0x70;
        stats.count(&commit);
        let lines = printed(&stats, Stats::print_by_record);
        let names: Vec<&str> = lines[3..5].iter().map(|line| line[..27].trim()).collect();
        assert_eq!(names, ["Transaction/COMMIT", "Transaction/UNKNOWN (70)"]);
    }
}
