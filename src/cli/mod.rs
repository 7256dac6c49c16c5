//! The `pgredo` command: arguments in, results on standard output, log lines, progress and
//! errors on standard error.

pub mod args;
pub mod log;
pub mod progress;
pub mod strace;

mod compare;
mod control;
mod error;
mod fingerprint;
mod io;
mod output;
mod replay;
mod stats;
mod verify;
pub mod waldump;

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use error::{Caller, CliError};
use waldump::args::{PgWaldumpCall, is_pg_waldump, parse_as_pg_waldump};

/// How a run ended, as the shell sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All done.
    Done = 0,
    /// An error, or a difference found.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// Finished, but there were warnings.
    Warnings = 3,
    /// Nothing was written, and on purpose.
    Refused = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Runs the command that the process was started with.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if words.first().is_some_and(|name| is_pg_waldump(name)) {
        return main_as_pg_waldump(&words);
    }
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.command {
        Command::Replay(args) => replay::run(&args),
        Command::Waldump(args) => with_stdout_as(WALDUMP, |out| waldump::run(&args, out)),
        Command::Compare(args) => with_stdout(|out| compare::run(&args, out)),
        Command::Verify(args) => with_stdout(|out| verify::run(&args, out)),
        Command::Control(args) => with_stdout(|out| control::run(&args, out)),
        Command::Fingerprint(args) => with_stdout(|out| fingerprint::run(&args, out)),
        Command::StraceCompare(args) => with_stdout(|out| strace::run(&args, out)),
    }
}

/// `pgredo waldump` and pg_waldump differ in how they are called only.
const WALDUMP: Caller<'_> = Caller {
    program: "pgredo",
    command: "pgredo waldump",
};
const PG_WALDUMP: Caller<'_> = Caller {
    program: "pg_waldump",
    command: "pg_waldump",
};

/// pg_waldump knows two exit statuses: a command line that makes no sense has failed.
fn main_as_pg_waldump(words: &[OsString]) -> ExitCode {
    let exit = match parse_as_pg_waldump(words) {
        Ok(PgWaldumpCall::Dump(args)) => {
            run_with_stdout(PG_WALDUMP, |out| waldump::run(&args, out))
        }
        Ok(PgWaldumpCall::Version) => {
            println!("pg_waldump (pgredo) {}", env!("CARGO_PKG_VERSION"));
            Exit::Done
        }
        Ok(PgWaldumpCall::Help(help)) => match help.print() {
            Ok(()) => Exit::Done,
            Err(_) => Exit::Failed,
        },
        Err(error) => {
            error.print_as(PG_WALDUMP);
            error.exit()
        }
    };
    match exit {
        Exit::Usage => Exit::Failed.into(),
        other => other.into(),
    }
}

/// Runs a command that prints. A reader that has seen enough and closes the pipe, as `head`
/// does, is no error.
fn with_stdout(run: impl FnOnce(&mut dyn Write) -> Result<Exit, CliError>) -> ExitCode {
    with_stdout_as(Caller::PGREDO, run)
}

fn with_stdout_as(
    caller: Caller<'_>,
    run: impl FnOnce(&mut dyn Write) -> Result<Exit, CliError>,
) -> ExitCode {
    run_with_stdout(caller, run).into()
}

fn run_with_stdout(
    caller: Caller<'_>,
    run: impl FnOnce(&mut dyn Write) -> Result<Exit, CliError>,
) -> Exit {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let result = run(&mut out);
    // Also what was printed before an error must come out.
    let flushed = out.flush().map_err(CliError::from);
    match result.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => exit,
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Exit::Done
        }
        Err(error) => {
            error.print_as(caller);
            error.exit()
        }
    }
}

/// Prints help where it was asked for, and complaints in PostgreSQL's form.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return match error.print() {
            Ok(()) => Exit::Done.into(),
            Err(_) => Exit::Failed.into(),
        };
    }
    // The word after the program's name leads to the help that fits, if it is a command.
    let cli = Cli::command();
    let name = std::env::args().nth(1).unwrap_or_default();
    let command = match cli.find_subcommand(&name) {
        Some(command) => format!("pgredo {}", command.get_name()),
        None => "pgredo".to_owned(),
    };
    let rendered = match error.kind() {
        // Clap's text for this is the help, which belongs to those who ask for it.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => "no command specified".to_owned(),
        _ => error.render().to_string(),
    };
    error::print_usage(&rendered, &command);
    Exit::Usage.into()
}
