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
mod wal_range;
mod waldump;

use std::io::{BufWriter, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Cli, Command};
use error::CliError;

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
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match cli.command {
        Command::Replay(args) => replay::run(&args),
        Command::Waldump(args) => with_stdout(|out| waldump::run(&args, out)),
        Command::Compare(args) => with_stdout(|out| compare::run(&args, out)),
        Command::Control(args) => with_stdout(|out| control::run(&args, out)),
        Command::Fingerprint(args) => with_stdout(|out| fingerprint::run(&args, out)),
        Command::StraceCompare(args) => with_stdout(|out| strace::run(&args, out)),
    }
}

/// Runs a command that prints. A reader that has seen enough and closes the pipe, as `head`
/// does, is no error.
fn with_stdout(run: impl FnOnce(&mut dyn Write) -> Result<Exit, CliError>) -> ExitCode {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let result = run(&mut out);
    // Also what was printed before an error must come out.
    let flushed = out.flush().map_err(CliError::from);
    match result.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            Exit::Done.into()
        }
        Err(error) => {
            error.print();
            error.exit().into()
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
