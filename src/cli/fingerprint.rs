//! `pgredo fingerprint`: the CRC-32 of every file that recovery determines. Two directories
//! recovered from one have the same lines.
//!
//! Left out is what a run stamps with the time or rebuilds for itself: pg_control, WAL,
//! statistics, pg_subtrans, and what recovery never writes, such as configuration.

use std::io::Write;

use super::args::FingerprintArgs;
use super::error::CliError;
use super::io::{Chunks, Entry, Node};
use super::{Exit, control, io};
use crate::pgdata::filename::{FileKind, classify};

/// Read at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Prints `CRC size path` for each file, sorted by path.
pub(super) fn run(args: &FingerprintArgs, out: &mut dyn Write) -> Result<Exit, CliError> {
    let directory = args
        .data_directory
        .resolve()
        .ok_or_else(CliError::no_data_directory)?;
    let format = control::read(&directory)?.format;
    let entries = io::walk(&directory)?;
    let mut buffer = vec![0; CHUNK_BYTES];
    for entry in &entries {
        let determined = is_determined(classify(&entry.name, format));
        if !determined || !matches!(entry.node, Node::File(_)) {
            continue;
        }
        let (crc, bytes) = checksum(entry, &mut buffer)?;
        writeln!(out, "{crc:08x} {bytes:12} {}", entry.name)?;
    }
    Ok(Exit::Done)
}

fn is_determined(kind: FileKind) -> bool {
    match kind {
        FileKind::Relation(_)
        | FileKind::Slru
        | FileKind::RelationMap
        | FileKind::DatabaseVersion
        | FileKind::TwoPhase => true,
        FileKind::Control
        | FileKind::Wal
        | FileKind::Server
        | FileKind::Volatile
        | FileKind::Other => false,
    }
}

/// CRC-32 and length in bytes.
fn checksum(entry: &Entry, buffer: &mut [u8]) -> Result<(u32, u64), CliError> {
    let mut chunks = Chunks::open(&entry.path)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut total = 0;
    loop {
        let n = chunks.fill(buffer)?;
        hasher.update(&buffer[..n]);
        total += n as u64;
        if n < buffer.len() {
            return Ok((hasher.finalize(), total));
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::args::{Cli, Command};
    use super::*;
    use crate::pgdata::control::tests::sample;

    #[test]
    fn lists_what_recovery_determines() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, contents: &[u8]| {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, contents).unwrap();
        };
        write("global/pg_control", &sample());
        write("base/5/16384_vm", b"123456789");
        write("base/5/16384", b"");
        write("base/5/pg_internal.init", b"x");
        write("pg_xact/0000", &vec![0; CHUNK_BYTES + 1]);
        write("pg_subtrans/0000", b"x");
        write("pg_wal/000000010000000000000001", b"x");
        write("postgresql.conf", b"x");
        let path = dir.path().to_str().unwrap();
        let cli = Cli::parse_from(["pgredo", "fingerprint", path]);
        let Command::Fingerprint(args) = cli.command else {
            panic!("another command");
        };
        let mut out = Vec::new();
        assert_eq!(run(&args, &mut out).unwrap(), Exit::Done);
        let zeros = crc32fast::hash(&vec![0; CHUNK_BYTES + 1]);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!(
                "00000000            0 base/5/16384\n\
                 cbf43926            9 base/5/16384_vm\n\
                 {zeros:08x}      1048577 pg_xact/0000\n"
            )
        );
    }
}
