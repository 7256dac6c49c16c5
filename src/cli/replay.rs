//! `pgredo replay`.

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::args::{OnOff, RedoOrder as OrderArg, ReplayArgs, StatsFormat, SyncMethod as SyncArg};
use super::error::CliError;
use super::log::{Severity, log};
use super::progress::Progress;
use super::stats;
use super::{Exit, output};
use crate::pgdata::control::ControlFile;
use crate::recovery::{
    Observer, Outcome, Prepared, Recovery, RecoveryError, RecoveryOptions, RedoOrder,
};
use crate::redo::TablespaceMap;
use crate::smgr::{NblocksCache, SyncMethod};
use crate::sys::{AsOwner, Kernel, Ownership, cores, install_interrupt_handler, memory_bytes};
use crate::types::Lsn;

/// Replays.
pub(super) fn run(args: &ReplayArgs) -> ExitCode {
    let Some(directory) = args.data_directory.resolve() else {
        let error = CliError::no_data_directory();
        error.print();
        return error.exit().into();
    };
    install_interrupt_handler();
    let kernel = Kernel::new();
    let mut console = Console::default();
    let mut options = RecoveryOptions {
        data_directory: directory,
        wal_directories: args.wal_dir.clone(),
        order: match args.order {
            OrderArg::Record => RedoOrder::Record,
            OrderArg::Page => RedoOrder::Page,
        },
        jobs: args.jobs.map_or_else(cores, NonZeroUsize::get),
        memory: args
            .memory
            .map_or_else(|| memory_bytes(&kernel) / 8, |size| size.0),
        buffers: args
            .buffers
            .map_or_else(|| default_buffers(&kernel), |size| size.0),
        nblocks_cache: match args.nblocks_cache {
            OnOff::On => NblocksCache::On,
            OnOff::Off => NblocksCache::Off,
        },
        sync: match (args.no_sync, args.sync_method) {
            (true, _) => SyncMethod::None,
            (_, SyncArg::Fsync) => SyncMethod::Fsync,
            (_, SyncArg::Syncfs) => SyncMethod::Syncfs,
        },
        strict: args.strict,
        stop_before: args.target_lsn,
        tablespaces: TablespaceMap::new(
            args.tablespace_mapping
                .iter()
                .map(|m| (m.old.clone(), m.new.clone()))
                .collect(),
        ),
    };
    if let Some(output) = &args.output {
        if let Err(error) = output::copy(&kernel, args, &options, output) {
            error.print();
            return error.exit().into();
        }
        if !args.dry_run {
            options.data_directory.clone_from(output);
        }
    }
    let result = replay(&kernel, options, args, &mut console);
    console.clear_progress();
    let exit = match result {
        Ok(Some(outcome)) => finish(&kernel, args, &outcome, &console),
        Ok(None) => console.exit(),
        Err(RecoveryError::Refused(refusal)) => {
            eprintln!("pgredo: error: {refusal}");
            Exit::Refused
        }
        Err(error) => {
            log(Severity::Fatal, &error.to_string());
            Exit::Failed
        }
    };
    exit.into()
}

/// More memory than this costs the kernel more to hand out than it saves in reads and writes
/// (measured with pgbench at scale 100).
fn default_buffers(kernel: &Kernel) -> u64 {
    (memory_bytes(kernel) / 4).min(512 << 20)
}

/// `None` if there was nothing to do, or nothing was to be done.
fn replay(
    kernel: &Kernel,
    options: RecoveryOptions,
    args: &ReplayArgs,
    console: &mut Console,
) -> Result<Option<Outcome>, RecoveryError> {
    let owner = Ownership::of(kernel, &options.data_directory)?;
    let _as_owner = AsOwner::begin(owner, &options.data_directory)?;
    let recovery = match Recovery::prepare(kernel, options, console)? {
        Prepared::NothingToDo(control) => {
            console.log(&format!(
                "database system was shut down at {}",
                time_of(&control)
            ));
            console.log("redo is not required");
            return Ok(None);
        }
        Prepared::Ready(recovery) => recovery,
    };
    console.log(&format!(
        "database system was interrupted; last known up at {}",
        time_of(recovery.control())
    ));
    if args.dry_run {
        let survey = recovery.survey().clone();
        recovery.rehearse()?;
        console.log(&format!(
            "would redo {} records from {} to {} ({}); nothing was written",
            survey.records,
            recovery.redo_start(),
            survey.end.lsn,
            survey.end.reason
        ));
        return Ok(None);
    }
    console.log("database system was not properly shut down; automatic recovery in progress");
    let (start, end) = (recovery.redo_start(), recovery.survey().end.lsn);
    console.progress = Some((
        Progress::new(args.progress, start, Some(end)),
        Instant::now(),
    ));
    let reason = recovery.survey().end.reason.clone();
    let outcome = recovery.run(console)?;
    console.clear_progress();
    if outcome.checkpoint.is_valid() {
        console.log(&format!("WAL ended at {}: {reason}", outcome.end));
        console.log(&format!(
            "shutdown checkpoint written at {}",
            outcome.checkpoint
        ));
        console.log("database system is ready to be started");
    } else {
        console.log(&format!(
            "recovery stopping before WAL location (LSN) \"{}\"",
            outcome.end
        ));
    }
    Ok(Some(outcome))
}

/// Prints the counters and says how it went.
fn finish(kernel: &Kernel, args: &ReplayArgs, outcome: &Outcome, console: &Console) -> Exit {
    let text = match args.stats {
        StatsFormat::None => return console.exit(),
        StatsFormat::Text => stats::text(outcome, &kernel.stats()),
        StatsFormat::Json => stats::json(outcome, &kernel.stats()),
    };
    match output::print(args.stats_file.as_deref(), &text) {
        Ok(()) => console.exit(),
        Err(error) => {
            error.print();
            error.exit()
        }
    }
}

/// When pg_control was last written, as the server's log says it.
fn time_of(control: &ControlFile) -> String {
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    match Timestamp::from_second(control.time) {
        Ok(time) => time
            .to_zoned_datetime(zone)
            .strftime("%Y-%m-%d %H:%M:%S %Z")
            .to_string(),
        Err(_) => format!("{} seconds since 1970", control.time),
    }
}

/// Log lines and progress on standard error.
#[derive(Debug, Default)]
struct Console {
    progress: Option<(Progress, Instant)>,
    warnings: usize,
}

impl Console {
    fn clear_progress(&mut self) {
        if let Some((progress, _)) = &mut self.progress {
            progress.clear();
        }
    }

    fn exit(&self) -> Exit {
        if self.warnings > 0 {
            Exit::Warnings
        } else {
            Exit::Done
        }
    }
}

impl Observer for Console {
    fn log(&mut self, message: &str) {
        self.clear_progress();
        log(Severity::Log, message);
    }

    fn warning(&mut self, message: &str) {
        self.clear_progress();
        self.warnings += 1;
        log(Severity::Warning, message);
    }

    fn progress(&mut self, lsn: Lsn) {
        if let Some((progress, started)) = &mut self.progress {
            let elapsed: Duration = started.elapsed();
            progress.update(elapsed, lsn);
        }
    }
}
