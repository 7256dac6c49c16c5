//! `pgredo verify`: replays in memory and lets the images of wal_consistency_checking judge.

use std::io::{self, Write};

use super::Exit;
use super::args::VerifyArgs;
use super::error::CliError;
use super::log::{Severity, log};
use crate::recovery::{
    Checked, FirstDifference, Observer, Prepared, Recovery, RecoveryOptions, RedoOrder,
    Verification,
};
use crate::redo::TablespaceMap;
use crate::smgr::{NblocksCache, SyncMethod};
use crate::sys::{Kernel, install_interrupt_handler};

/// Verifies.
pub(super) fn run(args: &VerifyArgs, out: &mut dyn Write) -> Result<Exit, CliError> {
    let Some(data_directory) = args.data_directory.resolve() else {
        return Err(CliError::no_data_directory());
    };
    install_interrupt_handler();
    let options = RecoveryOptions {
        order: RedoOrder::Record,
        jobs: 1,
        memory: 0,
        data_directory,
        wal_directories: args.wal_dir.clone(),
        buffers: 0,
        nblocks_cache: NblocksCache::On,
        sync: SyncMethod::None,
        strict: false,
        stop_before: None,
        tablespaces: TablespaceMap::default(),
    };
    let failed = |error: &dyn std::fmt::Display| CliError::new(error.to_string());
    let prepared = Recovery::prepare(&Kernel::read_only(), options, &mut Log);
    let recovery = match prepared.map_err(|error| failed(&error))? {
        Prepared::Ready(recovery) => recovery,
        Prepared::NothingToDo(_) => {
            Log.log("redo is not required");
            return Ok(Exit::Done);
        }
    };
    let found = recovery.verify(&mut Log).map_err(|error| failed(&error))?;
    print(&found, out)?;
    Ok(match found.first {
        None => Exit::Done,
        Some(_) => Exit::Failed,
    })
}

/// The table, then the verdict.
fn print(found: &Verification, out: &mut dyn Write) -> io::Result<()> {
    let total = found.total();
    if total.records == 0 {
        return writeln!(
            out,
            "none of {} records has images to compare with; they are written with \
             wal_consistency_checking on",
            found.redone_records
        );
    }
    writeln!(
        out,
        "{:<27} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "Record", "records", "redone", "restored", "ahead", "absent", "differing"
    )?;
    for row in found.rows().chain([&total]) {
        print_row(row, out)?;
    }
    match &found.first {
        None => writeln!(out, "no differences"),
        Some(first) => print_difference(first, out),
    }
}

fn print_row(row: &Checked, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{:<27}", row.name)?;
    for count in [
        row.records,
        row.redone,
        row.restored,
        row.ahead,
        row.absent,
        row.differing,
    ] {
        write!(out, " {count:>10}")?;
    }
    writeln!(out)
}

fn print_difference(first: &FirstDifference, out: &mut dyn Write) -> io::Result<()> {
    let FirstDifference {
        lsn,
        record,
        block,
        tag,
        difference,
    } = first;
    writeln!(
        out,
        "first difference: {record} at {lsn}, block reference {block}, {tag}, byte {}: 0x{:02X} \
         after redo, 0x{:02X} in the image",
        difference.byte, difference.found, difference.expected
    )
}

/// Log lines on standard error.
struct Log;

impl Observer for Log {
    fn log(&mut self, message: &str) {
        log(Severity::Log, message);
    }

    fn warning(&mut self, message: &str) {
        log(Severity::Warning, message);
    }
}
