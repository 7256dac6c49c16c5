//! Compares two recovered data directories as the tests with real servers do, for
//! `tests/regress.sh`: what PostgreSQL left, then what pgredo left.

pub mod support;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Cargo passes its own options to a test program, too.
    let directories: Vec<PathBuf> = std::env::args_os()
        .skip(1)
        .filter(|argument| !argument.as_encoded_bytes().starts_with(b"-"))
        .map(PathBuf::from)
        .collect();
    let [theirs, ours] = &directories[..] else {
        eprintln!("two directories are needed: PostgreSQL's and pgredo's");
        return ExitCode::from(2);
    };
    let differences = support::compare::compare_data(theirs, ours);
    for difference in &differences {
        println!("{}: {}", difference.path, difference.what.trim_start());
    }
    ExitCode::from(u8::from(!differences.is_empty()))
}
