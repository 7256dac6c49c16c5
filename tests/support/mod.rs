//! What the tests with real servers share: server trees, crash images, PostgreSQL's own recovery
//! of them, pgredo's, and a comparison that uses nothing of pgredo.
//!
//! A test reads: take a [`recipe::Recipe`], make (or find) its [`capture::Capture`], let
//! PostgreSQL recover one copy and pgredo another, [`compare`](compare::compare) the two
//! directories, start the real server on pgredo's.

pub mod capture;
pub mod compare;
pub mod control;
pub mod fingerprint;
pub mod free_space;
pub mod library;
pub mod postgres;
pub mod random;
pub mod random_workload;
pub mod recipe;
pub mod sample;
pub mod tree;
pub mod workloads;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository, which is where Cargo runs the tests from.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command to its end and returns what it printed to stdout; panics with both outputs
/// when it fails, because every command here is part of the test's own set-up.
pub fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}: {}\n{stdout}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    stdout
}

/// A directory in memory, where there is one: for what is written by the thousand.
pub fn memory_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a temp dir")
}

/// Copies a directory with owners, modes and links as they are; shares blocks where the file
/// system can.
pub fn copy_directory(from: &Path, to: &Path) {
    run(Command::new("cp")
        .args(["-a", "--reflink=auto"])
        .arg(from)
        .arg(to));
}

/// Removes a directory if it is there.
pub fn remove_directory(path: &Path) {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            panic!("remove {}: {error}", path.display())
        }
        _ => {}
    }
}

/// Names of the entries of a directory, sorted; empty when it does not exist.
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(listing) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = listing
        .map(|entry| {
            entry
                .unwrap_or_else(|error| panic!("{}: {error}", directory.display()))
                .path()
        })
        .collect();
    paths.sort();
    paths
}
