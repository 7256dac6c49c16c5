//! `pgredo replay`.

use std::process::ExitCode;

use super::args::ReplayArgs;
use super::error::CliError;

/// Replays.
pub(super) fn run(args: &ReplayArgs) -> ExitCode {
    let error = match args.data_directory.resolve() {
        Some(_) => CliError::new("replay is not available yet"),
        None => CliError::no_data_directory(),
    };
    error.print();
    error.exit().into()
}
