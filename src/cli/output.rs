//! Where a replay goes: a copy of the data directory, and the file with its counters.

use std::io::Write;
use std::path::Path;

use super::args::ReplayArgs;
use super::error::CliError;
use crate::sys::Kernel;

/// Copies the data directory to the output directory.
pub(super) fn copy(
    _kernel: &Kernel,
    _args: &ReplayArgs,
    _from: &Path,
    _to: &Path,
) -> Result<(), CliError> {
    Err(CliError::new("--output is not available yet"))
}

/// Writes `text` to a file, or to standard output.
pub(super) fn print(file: Option<&Path>, text: &str) -> Result<(), CliError> {
    match file {
        Some(path) => Ok(Kernel::new().write_file(path, text.as_bytes(), 0o644)?),
        None => Ok(std::io::stdout().write_all(text.as_bytes())?),
    }
}
