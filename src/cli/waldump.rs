//! `pgredo waldump`: records as pg_waldump prints them (`XLogDumpDisplayRecord`,
//! `src/bin/pg_waldump/pg_waldump.c`; `XLogRecGetBlockRefInfo`,
//! `src/backend/access/rmgrdesc/xlogdesc.c`).

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io::Write;
use std::ops::ControlFlow;

use super::Exit;
use super::args::WaldumpArgs;
use super::error::CliError;
use super::wal_range::WalRange;
use crate::decode::{BlockImage, BlockRef, Compression, Record};
use crate::rmgr::{RMGRS, desc, identify};
use crate::types::{BLOCK_BYTES, ForkNumber, Lsn, RmgrId};
use crate::wal::{Batch, RECORD_HEADER_BYTES, RawRecord, WAL_PAGE_BYTES, WalReader};

/// Read at once.
const BATCH_RECORDS: usize = 4096;
const BATCH_BYTES: usize = 1 << 20;

/// How block references are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockStyle {
    /// On the line of the record.
    Short,
    /// On lines of their own, with the details of images (`-b`).
    Details,
}

/// What is done with each record.
type Visit<'v> = &'v mut dyn FnMut(&Record<'_>) -> Result<ControlFlow<()>, CliError>;

/// Prints records.
pub(super) fn run(args: &WaldumpArgs, out: &mut dyn Write) -> Result<Exit, CliError> {
    if args
        .rmgr
        .iter()
        .any(|name| name.eq_ignore_ascii_case("list"))
    {
        for rmgr in &RMGRS {
            writeln!(out, "{}", rmgr.name)?;
        }
        return Ok(Exit::Done);
    }
    let wanted = wanted_rmgrs(&args.rmgr)?;
    let style = if args.bkp_details {
        BlockStyle::Details
    } else {
        BlockStyle::Short
    };
    // pg_waldump takes a limit of 0 for none.
    let limit = args.limit.filter(|n| *n > 0).unwrap_or(u64::MAX);
    let mut found = 0;
    let mut text = String::new();
    // Two closures print, never at once.
    let out = RefCell::new(out);
    records(args, &out, &mut |record| {
        if !wanted.is_empty() && !wanted.contains(&record.rmid) {
            return Ok(ControlFlow::Continue(()));
        }
        if !args.quiet {
            text.clear();
            format_record(record, style, &mut text);
            out.borrow_mut().write_all(text.as_bytes())?;
        }
        found += 1;
        Ok(if found < limit {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
    Ok(Exit::Done)
}

/// Reads the records the arguments ask for, in order, and shows each to `visit` until it breaks.
/// As in pg_waldump, WAL that ends before the range does is an error, even though all that was
/// printed is good.
fn records(
    args: &WaldumpArgs,
    out: &RefCell<&mut dyn Write>,
    visit: Visit<'_>,
) -> Result<(), CliError> {
    let range = WalRange::from_args(args)?;
    let mut reader = WalReader::new(range.source.clone(), range.entry_point()?);
    let format = range.source.layout().format;
    let mut batch = Batch::new();
    let mut last = Lsn::INVALID;
    let mut started = false;
    loop {
        reader.fill(&mut batch, BATCH_RECORDS, BATCH_BYTES)?;
        for raw in batch.records() {
            if range.end.is_some_and(|end| end_of_bytes(&raw) > end) {
                return Ok(());
            }
            if raw.lsn < range.start {
                continue;
            }
            if !started {
                started = true;
                say_skipped(&range, raw.lsn, *out.borrow_mut())?;
            }
            last = raw.lsn;
            let record = Record::decode(raw, format).map_err(|e| failed_at(last, &e))?;
            if visit(&record)?.is_break() {
                return Ok(());
            }
        }
        match batch.end() {
            // A header that does not fit before the end of the range is not looked at.
            Some(end) if range.end.is_some_and(|limit| header_end(end.lsn) > limit) => {
                return Ok(());
            }
            Some(_) if !started => {
                let start = range.start;
                let text = format!("could not find a valid record after {start}");
                return Err(CliError::new(text));
            }
            Some(end) => return Err(failed_at(last, &end.reason)),
            None => {}
        }
    }
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

/// Where the header of a record at `at` would end.
fn header_end(at: Lsn) -> Lsn {
    at.advance(RECORD_HEADER_BYTES as u64)
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

fn failed_at(at: Lsn, reason: &dyn std::fmt::Display) -> CliError {
    CliError::new(format!("error in WAL record at {at}: {reason}"))
}

/// The resource managers named by `-r`; none means all.
fn wanted_rmgrs(names: &[String]) -> Result<Vec<RmgrId>, CliError> {
    names.iter().map(|name| rmgr_named(name)).collect()
}

/// Case does not matter; an extension's resource manager is called `custom128` to `custom255`.
fn rmgr_named(name: &str) -> Result<RmgrId, CliError> {
    let known = RMGRS.iter().position(|r| r.name.eq_ignore_ascii_case(name));
    let custom = || {
        let id: u8 = name.strip_prefix("custom")?.parse().ok()?;
        (id >= 128).then_some(RmgrId(id))
    };
    match known {
        Some(at) => Ok(RmgrId(at as u8)),
        None => custom().ok_or_else(|| {
            CliError::usage(
                format!("resource manager \"{name}\" does not exist"),
                "--rmgr=list lists the names.",
            )
        }),
    }
}

/// Appends the record as pg_waldump prints it, line end included.
fn format_record(record: &Record<'_>, style: BlockStyle, out: &mut String) {
    push_header(record, out);
    let before = out.len();
    if record.rmid.0 >= 128 {
        push(out, format_args!("rmid: {}", record.rmid));
    } else if let Err(error) = desc(record, out) {
        // pg_waldump would print whatever lies behind the end of the record.
        out.truncate(before);
        push(out, format_args!("({error})"));
    }
    match style {
        BlockStyle::Short => {
            for block in &record.blocks {
                push_short(block, out);
            }
            out.push('\n');
        }
        BlockStyle::Details => {
            out.push('\n');
            for block in &record.blocks {
                push_details(block, out);
            }
        }
    }
}

fn push_header(record: &Record<'_>, out: &mut String) {
    // XLogRecGetLen: the length without images.
    let images = record.blocks.iter().filter_map(|block| block.image);
    let image_bytes: u32 = images.map(|image| u32::from(image.length)).sum();
    let name = match RMGRS.get(usize::from(record.rmid.0)) {
        Some(rmgr) => Cow::Borrowed(rmgr.name),
        None => Cow::Owned(format!("custom{:03}", record.rmid.0)),
    };
    push(
        out,
        format_args!(
            "rmgr: {name:<11} len (rec/tot): {:6}/{:6}, tx: {:10}, lsn: {}, prev {}, desc: {} ",
            record.total_bytes.saturating_sub(image_bytes),
            record.total_bytes,
            record.xid,
            Wide(record.lsn),
            Wide(record.prev),
            identify(record),
        ),
    );
}

/// An LSN as the header has it, `%X/%08X`; elsewhere the low half is not padded.
struct Wide(Lsn);

impl std::fmt::Display for Wide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:X}/{:08X}", self.0.high(), self.0.low())
    }
}

fn push_short(block: &BlockRef<'_>, out: &mut String) {
    let tag = block.tag;
    push(
        out,
        format_args!(", blkref #{}: rel {}", block.id, tag.locator),
    );
    if tag.fork != ForkNumber::Main {
        push(out, format_args!(" fork {}", tag.fork.name()));
    }
    push(out, format_args!(" blk {}", tag.block));
    if let Some(image) = block.image {
        out.push_str(" FPW");
        out.push_str(purpose(&image));
    }
}

fn push_details(block: &BlockRef<'_>, out: &mut String) {
    push(out, format_args!("\tblkref #{}: {}", block.id, block.tag));
    if let Some(image) = block.image {
        let (offset, length) = (image.hole_offset, image.hole_length);
        push(
            out,
            format_args!(
                " (FPW{}); hole: offset: {offset}, length: {length}",
                purpose(&image)
            ),
        );
        if image.compression != Compression::None {
            // Unsigned in pg_waldump too: an image that grew wraps around.
            let saved = (BLOCK_BYTES as u32)
                .wrapping_sub(length.into())
                .wrapping_sub(image.length.into());
            let method = image.compression.name();
            push(
                out,
                format_args!(", compression saved: {saved}, method: {method}"),
            );
        }
    }
    out.push('\n');
}

/// An image that redo restores needs no further word.
fn purpose(image: &BlockImage<'_>) -> &'static str {
    if image.apply {
        ""
    } else {
        " for WAL verification"
    }
}

/// Appends; writing to a String cannot fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::format::WalFormat;
    use crate::types::{BlockTag, Oid, RelFileLocator, RepOriginId, TransactionId};

    /// A record of an extension, so that no description but our own is tested.
    fn record() -> Record<'static> {
        Record {
            lsn: Lsn(0x1_0600_0080),
            end_lsn: Lsn(0x1_0600_0118),
            overwritten: Lsn(0),
            prev: Lsn(0x1_0600_0048),
            total_bytes: 150,
            xid: TransactionId(764),
            info: 0x10,
            rmid: RmgrId(128),
            origin: RepOriginId(0),
            toplevel_xid: None,
            blocks: smallvec![block(0, ForkNumber::Main), block(2, ForkNumber::Vm)],
            main_data: &[],
            format: WalFormat::ALL[0],
        }
    }

    fn block(id: u8, fork: ForkNumber) -> BlockRef<'static> {
        BlockRef {
            id,
            tag: BlockTag {
                locator: RelFileLocator {
                    spc: Oid(1663),
                    db: Oid(5),
                    rel: Oid(2606),
                },
                fork,
                block: 4,
            },
            will_init: false,
            same_rel: false,
            has_data: false,
            image: None,
            data: &[],
        }
    }

    fn image(compression: Compression, apply: bool) -> BlockImage<'static> {
        BlockImage {
            length: 96,
            hole_offset: 60,
            hole_length: 8000,
            info: 0,
            apply,
            compression,
            bytes: &[],
        }
    }

    const HEADER: &str = "rmgr: custom128   len (rec/tot):    150/   150, tx:        764, lsn: \
                          1/06000080, prev 1/06000048, desc: UNKNOWN (10) rmid: 128";

    #[test]
    fn short_form() {
        let mut out = String::new();
        format_record(&record(), BlockStyle::Short, &mut out);
        let blocks = ", blkref #0: rel 1663/5/2606 blk 4, blkref #2: rel 1663/5/2606 fork vm blk 4";
        assert_eq!(out, format!("{HEADER}{blocks}\n"));
    }

    #[test]
    fn images_in_short_form_and_in_the_length() {
        let mut record = record();
        record.blocks[0].image = Some(image(Compression::None, true));
        record.blocks[1].image = Some(image(Compression::None, false));
        record.total_bytes = 300;
        let mut out = String::new();
        format_record(&record, BlockStyle::Short, &mut out);
        assert!(out.contains("len (rec/tot):    108/   300,"), "{out}");
        assert!(out.contains(" blk 4 FPW, blkref #2"), "{out}");
        assert!(out.ends_with(" blk 4 FPW for WAL verification\n"), "{out}");
    }

    #[test]
    fn details_form() {
        let mut record = record();
        record.total_bytes = 150 + 96 + 96;
        record.blocks[0].image = Some(image(Compression::Lz4, true));
        record.blocks[1].image = Some(image(Compression::None, false));
        let mut out = String::new();
        format_record(&record, BlockStyle::Details, &mut out);
        let lines: Vec<&str> = out.split('\n').collect();
        assert_eq!(lines[0], HEADER.replace("/   150", "/   342"));
        assert_eq!(
            lines[1],
            "\tblkref #0: rel 1663/5/2606 fork main blk 4 (FPW); hole: offset: 60, length: 8000, \
             compression saved: 96, method: lz4"
        );
        assert_eq!(
            lines[2],
            "\tblkref #2: rel 1663/5/2606 fork vm blk 4 (FPW for WAL verification); hole: \
             offset: 60, length: 8000"
        );
        assert_eq!(lines[3], "");
    }

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

    #[test]
    fn names_of_resource_managers() {
        assert_eq!(rmgr_named("heap2").unwrap(), RmgrId(9));
        assert_eq!(rmgr_named("custom200").unwrap(), RmgrId(200));
        for bad in ["", "custom1", "custom256", "nothing"] {
            assert!(rmgr_named(bad).is_err(), "{bad}");
        }
    }
}
