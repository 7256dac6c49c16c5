//! The `pgredo` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    pgredo::cli::main()
}
