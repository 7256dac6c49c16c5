//! What a file of the data directory is, told by its path alone (`src/common/relpath.c`,
//! `parse_filename_for_nontemp_relation` in `src/backend/storage/file/reinit.c`).

use crate::format::WalFormat;
use crate::types::{DEFAULT_TABLESPACE, ForkNumber, GLOBAL_TABLESPACE, Oid, RelFileLocator};

/// One segment file of one fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelationFile {
    /// The relation.
    pub locator: RelFileLocator,
    /// The fork.
    pub fork: ForkNumber,
    /// Which gigabyte of it.
    pub segment: u32,
}

/// The kinds of file that tools treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A segment of a relation fork.
    Relation(RelationFile),
    /// A segment of pg_xact, pg_multixact or pg_commit_ts.
    Slru,
    /// A `pg_filenode.map`.
    RelationMap,
    /// `PG_VERSION` of a database.
    DatabaseVersion,
    /// A prepared transaction.
    TwoPhase,
    /// `global/pg_control`.
    Control,
    /// Anything below pg_wal.
    Wal,
    /// Of the running server and its logs: postmaster.pid, postmaster.opts, current_logfiles,
    /// log files.
    Server,
    /// Rebuilt or thrown away at every start: statistics, caches, subtransactions, temporary
    /// files.
    Volatile,
    /// Configuration and everything unknown.
    Other,
}

/// Tells what `path` is, relative to the data directory and with `/` between its parts.
/// `format` names the version directory of tablespaces; another major's files are `Other`.
pub fn classify(path: &str, format: &WalFormat) -> FileKind {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["postmaster.pid" | "postmaster.opts" | "current_logfiles"] => FileKind::Server,
        ["log" | "pg_log", ..] => FileKind::Server,
        ["pg_wal", ..] => FileKind::Wal,
        [.., "pgsql_tmp" | "pg_internal.init"] | [.., "pgsql_tmp", _] => FileKind::Volatile,
        [
            "pg_stat" | "pg_stat_tmp" | "pg_subtrans" | "pg_notify" | "pg_serial" | "pg_snapshots"
            | "pg_dynshmem",
            ..,
        ] => FileKind::Volatile,
        ["pg_xact" | "pg_commit_ts", name] | ["pg_multixact", "offsets" | "members", name] => {
            slru_segment(name)
        }
        ["pg_twophase", name] if is_hex(name) => FileKind::TwoPhase,
        ["global", "pg_control"] => FileKind::Control,
        ["global", name] => in_database(GLOBAL_TABLESPACE, Oid(0), name),
        ["base", db, name] => match oid(db) {
            Some(db) => in_database(DEFAULT_TABLESPACE, db, name),
            None => FileKind::Other,
        },
        ["pg_tblspc", spc, version, db, name] if *version == format.tablespace_directory() => {
            match (oid(spc), oid(db)) {
                (Some(spc), Some(db)) => in_database(spc, db, name),
                _ => FileKind::Other,
            }
        }
        _ => FileKind::Other,
    }
}

/// A file in the directory of a database, or in `global`.
fn in_database(spc: Oid, db: Oid, name: &str) -> FileKind {
    match name {
        "pg_filenode.map" => FileKind::RelationMap,
        "PG_VERSION" => FileKind::DatabaseVersion,
        _ => match parse_relation_file(name) {
            Some((rel, fork, segment)) => FileKind::Relation(RelationFile {
                locator: RelFileLocator { spc, db, rel },
                fork,
                segment,
            }),
            None => FileKind::Other,
        },
    }
}

/// Splits a file name of the form `N[_fsm|_vm|_init][.S]`. Temporary relations (`tB_N`) are not
/// of this form.
pub fn parse_relation_file(name: &str) -> Option<(Oid, ForkNumber, u32)> {
    let (stem, segment) = match name.split_once('.') {
        Some((stem, segment)) => (stem, decimal(segment)?),
        None => (name, 0),
    };
    let (number, fork) = match stem.find('_') {
        Some(at) => {
            let suffix = &stem[at..];
            let fork = ForkNumber::ALL
                .into_iter()
                .find(|fork| fork.file_suffix() == suffix)?;
            (&stem[..at], fork)
        }
        None => (stem, ForkNumber::Main),
    };
    Some((oid(number)?, fork, segment))
}

fn oid(text: &str) -> Option<Oid> {
    decimal(text).map(Oid)
}

/// A positive decimal number with no leading zero, so that every number has one spelling.
fn decimal(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let canonical = digits && !text.starts_with('0');
    if canonical { text.parse().ok() } else { None }
}

/// Segment names have four to six hexadecimal digits (`SlruScanDirectory`), 15 in newer majors.
fn slru_segment(name: &str) -> FileKind {
    if (4..=15).contains(&name.len()) && is_hex(name) {
        FileKind::Slru
    } else {
        FileKind::Other
    }
}

/// Upper-case hexadecimal digits, at least one.
fn is_hex(name: &str) -> bool {
    let digit = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
    !name.is_empty() && name.bytes().all(digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(path: &str) -> FileKind {
        classify(path, WalFormat::ALL[0])
    }

    fn relation(spc: u32, db: u32, rel: u32, fork: ForkNumber, segment: u32) -> FileKind {
        FileKind::Relation(RelationFile {
            locator: RelFileLocator {
                spc: Oid(spc),
                db: Oid(db),
                rel: Oid(rel),
            },
            fork,
            segment,
        })
    }

    #[test]
    fn relation_files_of_every_fork_and_place() {
        use ForkNumber::{Fsm, Init, Main, Vm};
        assert_eq!(kind("base/5/16384"), relation(1663, 5, 16384, Main, 0));
        assert_eq!(kind("base/5/16384.12"), relation(1663, 5, 16384, Main, 12));
        assert_eq!(kind("base/5/2_fsm"), relation(1663, 5, 2, Fsm, 0));
        assert_eq!(kind("global/1262_vm.1"), relation(1664, 0, 1262, Vm, 1));
        let spc = WalFormat::ALL[0].tablespace_directory();
        assert_eq!(
            kind(&format!("pg_tblspc/99/{spc}/5/4294967295_init")),
            relation(99, 5, u32::MAX, Init, 0)
        );
    }

    #[test]
    fn what_only_resembles_a_relation_file() {
        for name in [
            "",
            "0",
            "016384",
            "16384.",
            "16384.0",
            "16384.01",
            "16384_",
            "16384_main",
            "16384_vm_fsm",
            "16384.1_vm",
            "_vm",
            "+5",
            "4294967296",
            "16384.4294967296",
            "t3_16384",
            "16384.1.1",
        ] {
            assert_eq!(parse_relation_file(name), None, "{name}");
        }
        assert_eq!(kind("base/x/16384"), FileKind::Other);
        assert_eq!(kind("pg_tblspc/99/PG_9_1/5/16384"), FileKind::Other);
    }

    #[test]
    fn other_kinds() {
        for (path, expected) in [
            ("pg_xact/0000", FileKind::Slru),
            ("pg_multixact/members/14078", FileKind::Slru),
            ("pg_commit_ts/000g", FileKind::Other),
            ("pg_multixact/0000", FileKind::Other),
            ("pg_subtrans/0000", FileKind::Volatile),
            ("base/5/pg_internal.init", FileKind::Volatile),
            ("base/pgsql_tmp/x", FileKind::Volatile),
            ("pg_twophase/000002E1", FileKind::TwoPhase),
            ("global/pg_filenode.map", FileKind::RelationMap),
            ("base/5/PG_VERSION", FileKind::DatabaseVersion),
            ("PG_VERSION", FileKind::Other),
            ("global/pg_control", FileKind::Control),
            ("pg_wal/archive_status/x.done", FileKind::Wal),
            ("log/a.log", FileKind::Server),
            ("postmaster.pid", FileKind::Server),
            ("postgresql.conf", FileKind::Other),
        ] {
            assert_eq!(kind(path), expected, "{path}");
        }
    }
}
