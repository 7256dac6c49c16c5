//! `pgredo waldump`: prints records exactly as pg_waldump does
//! (`src/bin/pg_waldump/pg_waldump.c`). Called by the name `pg_waldump`, the program is that.

pub mod args;

mod filter;
mod fullpage;
mod json;
mod range;
mod stats;
#[cfg(test)]
mod testing;
mod text;

use std::io::Write;
use std::time::Duration;

use super::Exit;
use super::error::CliError;
use crate::decode::Record;
use crate::rmgr::RMGRS;
use crate::sys::{install_interrupt_handler, interrupted};
use crate::types::Lsn;
use crate::wal::{
    Batch, EndOfWal, EndReason, RECORD_HEADER_BYTES, RawRecord, WAL_PAGE_BYTES, WalReader,
};
use args::{Output, Request, WaldumpArgs};
use fullpage::Saver;
use json::JsonPrinter;
use range::WalRange;
use stats::Stats;
use text::{BlockStyle, TextPrinter};

/// Read at once.
const BATCH_RECORDS: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;

/// Text is written in pieces of about this size.
const OUTPUT_BYTES: usize = 256 << 10;

/// With `--follow`: how long to wait for more, and how long and how often for a segment that the
/// server is about to make.
const WAIT_FOR_WAL: Duration = Duration::from_secs(1);
const WAIT_FOR_SEGMENT: Duration = Duration::from_millis(500);
const WAITS_FOR_SEGMENT: u32 = 10;

/// Prints records.
pub(super) fn run(args: &WaldumpArgs, out: &mut dyn Write) -> Result<Exit, CliError> {
    let asks_for_list = |name: &String| name.eq_ignore_ascii_case("list");
    if args.rmgr.iter().any(asks_for_list) {
        for rmgr in &RMGRS {
            writeln!(out, "{}", rmgr.name)?;
        }
        return Ok(Exit::Done);
    }
    let request = Request::from_args(args)?;
    let range = WalRange::find(&request.range)?;
    let saver = match &request.save_fullpage {
        Some(directory) => Some(Saver::new(directory.clone(), range.tli)?),
        None => None,
    };
    let mut reader = WalReader::new(range.source.clone(), range.entry_point()?);
    let first = find_first(&range, &mut reader)?;
    say_skipped(&range, first, out)?;
    install_interrupt_handler();
    let mut dump = Dump {
        printer: Printer::new(request.output, first),
        request,
        range,
        saver,
        found: 0,
        last: Lsn::INVALID,
        text: Vec::with_capacity(OUTPUT_BYTES + OUTPUT_BYTES / 4),
        out,
    };
    let result = dump.read(first);
    dump.flush()?;
    let ending = result?;
    dump.printer.print_summary(dump.out)?;
    match ending {
        Ending::Reached => Ok(Exit::Done),
        Ending::Broken(error) => Err(error),
    }
}

/// How reading came to its end.
enum Ending {
    /// As asked for: end of the range, number of records, interrupt.
    Reached,
    /// WAL ended before the range did. That is an error, even though all that was printed is
    /// good.
    Broken(CliError),
}

/// What is made of the records.
enum Printer {
    Quiet,
    Text(TextPrinter),
    Json(JsonPrinter),
    ByRmgr(Stats),
    ByRecord(Stats),
}

impl Printer {
    fn new(output: Output, first: Lsn) -> Printer {
        match output {
            Output::Quiet => Printer::Quiet,
            Output::Short => Printer::Text(TextPrinter::new(BlockStyle::Short)),
            Output::Details => Printer::Text(TextPrinter::new(BlockStyle::Details)),
            Output::Json => Printer::Json(JsonPrinter::default()),
            Output::StatsByRmgr => Printer::ByRmgr(Stats::from(first)),
            Output::StatsByRecord => Printer::ByRecord(Stats::from(first)),
        }
    }

    fn add(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        match self {
            Printer::Quiet => {}
            Printer::Text(text) => text.push_record(record, out),
            Printer::Json(json) => json.push_record(record, out),
            Printer::ByRmgr(stats) | Printer::ByRecord(stats) => stats.count(record),
        }
    }

    fn print_summary(&self, out: &mut dyn Write) -> Result<(), CliError> {
        match self {
            Printer::ByRmgr(stats) => stats.print_by_rmgr(out)?,
            Printer::ByRecord(stats) => stats.print_by_record(out)?,
            _ => {}
        }
        Ok(())
    }
}

/// Reading and printing.
struct Dump<'o> {
    request: Request,
    range: WalRange,
    printer: Printer,
    saver: Option<Saver>,
    /// Records that were wanted.
    found: u64,
    /// Start of the last record read.
    last: Lsn,
    text: Vec<u8>,
    out: &'o mut dyn Write,
}

impl Dump<'_> {
    /// Reads from the record at `first` on.
    fn read(&mut self, first: Lsn) -> Result<Ending, CliError> {
        let mut reader = WalReader::new(self.range.source.clone(), first);
        let mut batch = Batch::new();
        let mut waits = 0;
        loop {
            reader.fill(&mut batch, BATCH_RECORDS, BATCH_BYTES)?;
            if let Some(ending) = self.take(&batch)? {
                return Ok(ending);
            }
            if interrupted() {
                return Ok(Ending::Reached);
            }
            if !batch.is_empty() {
                waits = 0;
            }
            let Some(end) = batch.end() else {
                continue;
            };
            if ends_behind(end, self.range.end) {
                return Ok(Ending::Reached);
            }
            let at = self.last;
            if !is_readable(&end.reason) {
                waits += 1;
                if !self.request.follow || waits > WAITS_FOR_SEGMENT {
                    return Err(failed_at(at, &end.reason));
                }
                self.wait(WAIT_FOR_SEGMENT)?;
            } else if self.request.follow {
                self.wait(WAIT_FOR_WAL)?;
            } else {
                return Ok(Ending::Broken(failed_at(at, &end.reason)));
            }
            // Another reader, as this one would go on with what it has mapped.
            reader = WalReader::new(self.range.source.clone(), end.lsn);
            if at.is_valid() {
                reader = reader.following(at);
            }
        }
    }

    /// Prints the records of a batch.
    fn take(&mut self, batch: &Batch) -> Result<Option<Ending>, CliError> {
        let format = self.range.source.layout().format;
        let end = self.range.end.unwrap_or(Lsn(u64::MAX));
        let mut record = Record::empty(format);
        for raw in batch.records() {
            if raw.end_lsn > end && end_of_bytes(&raw) > end {
                return Ok(Some(Ending::Reached));
            }
            self.last = raw.lsn;
            if let Err(error) = record.decode_next(raw) {
                return Ok(Some(Ending::Broken(failed_at(raw.lsn, &error))));
            }
            if !self.request.filter.accepts(&record) {
                continue;
            }
            self.printer.add(&record, &mut self.text);
            if let Some(saver) = &mut self.saver {
                saver.save(&record)?;
            }
            if self.text.len() >= OUTPUT_BYTES {
                self.flush()?;
            }
            self.found += 1;
            if self.found >= self.request.limit {
                return Ok(Some(Ending::Reached));
            }
        }
        Ok(None)
    }

    fn flush(&mut self) -> Result<(), CliError> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }

    /// Who follows wants to see what there is.
    fn wait(&mut self, time: Duration) -> Result<(), CliError> {
        self.flush()?;
        self.out.flush()?;
        std::thread::sleep(time);
        Ok(())
    }
}

/// `XLogFindNextRecord`: the first record at or after the start of the range.
fn find_first(range: &WalRange, reader: &mut WalReader) -> Result<Lsn, CliError> {
    let mut batch = Batch::new();
    loop {
        reader.fill(&mut batch, BATCH_RECORDS, BATCH_BYTES)?;
        let end = range.end.unwrap_or(Lsn(u64::MAX));
        let mut readable = batch.records().take_while(|raw| end_of_bytes(raw) <= end);
        if let Some(raw) = readable.find(|raw| raw.lsn >= range.start) {
            return Ok(raw.lsn);
        }
        let is_past = batch.records().any(|raw| end_of_bytes(&raw) > end);
        if is_past || batch.end().is_some() {
            return Err(range.no_record());
        }
    }
}

/// pg_waldump says so when it was not told the start of a record or of a segment.
fn say_skipped(range: &WalRange, first: Lsn, out: &mut dyn Write) -> Result<(), CliError> {
    let start = range.start;
    if first != start && range.source.layout().offset(start) != 0 {
        let skipped = first.0 - start.0;
        let plural = if skipped == 1 { "" } else { "s" };
        writeln!(
            out,
            "first record is after {start}, at {first}, skipping over {skipped} byte{plural}"
        )?;
    }
    Ok(())
}

/// Where the bytes of a record end, before they are rounded up to 8. Page headers are multiples
/// of 8, so they do not matter. A SWITCH reaches far beyond its bytes.
fn end_of_bytes(raw: &RawRecord<'_>) -> Lsn {
    let total = raw.bytes.len() as u64;
    let in_page = raw.lsn.0 % WAL_PAGE_BYTES + total <= WAL_PAGE_BYTES;
    if in_page {
        raw.lsn.advance(total)
    } else {
        Lsn(raw.end_lsn.0 - (total.next_multiple_of(8) - total))
    }
}

/// Whether the record that could not be read lies, as far as it was looked for, behind the end of
/// the range. pg_waldump does not look there at all.
fn ends_behind(end: &EndOfWal, limit: Option<Lsn>) -> bool {
    let header_end = |at: Lsn| at.advance(RECORD_HEADER_BYTES as u64);
    limit.is_some_and(|limit| {
        let is_torn_behind = end
            .torn
            .is_some_and(|torn| header_end(torn.missing) > limit);
        header_end(end.lsn) > limit || is_torn_behind
    })
}

/// pg_waldump gives up at once, without statistics, when it cannot read a page.
fn is_readable(reason: &EndReason) -> bool {
    !matches!(
        reason,
        EndReason::NoSegment { .. } | EndReason::ShortSegment { .. }
    )
}

fn failed_at(at: Lsn, reason: &dyn std::fmt::Display) -> CliError {
    CliError::new(format!("error in WAL record at {at}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_record_end_before_its_padding() {
        let end = |lsn, end_lsn, bytes: &[u8]| {
            end_of_bytes(&RawRecord {
                lsn: Lsn(lsn),
                end_lsn: Lsn(end_lsn),
                overwritten: Lsn(0),
                bytes,
            })
        };
        assert_eq!(end(0x2028, 0x2048, &[0; 30]), Lsn(0x2046));
        // A SWITCH: the end of the record is that of the segment.
        assert_eq!(end(0x2028, 0x100_0000, &[0; 24]), Lsn(0x2040));
        // 16 bytes on one page, a header of 24, 14 on the next.
        assert_eq!(end(0x3FF0, 0x4028, &[0; 30]), Lsn(0x4026));
    }
}
