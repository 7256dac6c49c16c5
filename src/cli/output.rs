//! Where a replay goes: a copy of the data directory, and the file with its counters.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::args::ReplayArgs;
use super::error::CliError;
use crate::recovery::{Copy, CopyOptions, Observer, Recovery, RecoveryOptions};
use crate::sys::{AsOwner, Kernel, Ownership};

/// Copies the data directory that `options` name to the output directory `to`; `--dry-run` only
/// finds out whether that can be done.
pub(super) fn copy(
    kernel: &Kernel,
    args: &ReplayArgs,
    options: &RecoveryOptions,
    to: &Path,
) -> Result<(), CliError> {
    let source = options.data_directory.as_path();
    // What forbids a recovery of the copy forbids it here, before there is one.
    let prepared = {
        let owner = Ownership::of(kernel, source)?;
        let _as_owner = AsOwner::begin(owner, source)?;
        Recovery::prepare(kernel, options.clone(), &mut Silent)?
    };
    let tablespaces: Vec<(PathBuf, PathBuf)> = args
        .tablespace_mapping
        .iter()
        .map(|mapping| (mapping.old.clone(), mapping.new.clone()))
        .collect();
    let copy = CopyOptions {
        source,
        target: to,
        method: args.copy_method(),
        sync: options.sync,
        tablespaces: &tablespaces,
    };
    let copy = Copy::plan(kernel, &prepared, copy)?;
    if args.dry_run {
        return Ok(());
    }
    Ok(copy.perform()?)
}

/// Hears what the recovery that follows says again.
struct Silent;

impl Observer for Silent {
    fn log(&mut self, _: &str) {}

    fn warning(&mut self, _: &str) {}
}

/// Writes `text` to a file, or to standard output.
pub(super) fn print(file: Option<&Path>, text: &str) -> Result<(), CliError> {
    match file {
        Some(path) => Ok(Kernel::new().write_file(path, text.as_bytes(), 0o644)?),
        None => Ok(std::io::stdout().write_all(text.as_bytes())?),
    }
}
