//! Files a server removes when it starts, or at the checkpoint that ends a recovery.
//!
//! Each function names the one it mirrors. A directory that is missing counts as empty: base
//! backups leave some out.

use std::ffi::OsStr;
use std::path::Path;

use super::DataDir;
use super::reinit::{leading_digits, parse_fork_and_segment};
use super::slots::Slot;
use crate::sys::{FileKind, SysResult};
use crate::types::Lsn;

/// `PG_TEMP_FILES_DIR` and `PG_TEMP_FILE_PREFIX`.
const TEMPORARY: &str = "pgsql_tmp";

/// `RelationCacheInitFileRemove`: every start does this, before anything is replayed.
pub fn remove_relcache_init_files(dir: &DataDir) -> SysResult<()> {
    let mut databases = dir.database_dirs()?;
    databases.push(dir.path("global"));
    for database in databases {
        dir.kernel()
            .unlink_if_any(&database.join("pg_internal.init"))?;
    }
    Ok(())
}

/// `RemovePgTempFiles`: sort and hash files of backends that are gone, and temporary relations.
pub fn remove_temporary_files(dir: &DataDir) -> SysResult<()> {
    for tablespace in dir.tablespace_dirs()? {
        let directory = tablespace.join(TEMPORARY);
        remove_entries(dir, &directory, |name| starts_with(name, TEMPORARY))?;
    }
    for database in dir.database_dirs()? {
        remove_entries(dir, &database, is_temporary_relation)?;
    }
    Ok(())
}

/// `pgstat_discard_stats`: after a crash statistics start anew. A file left here would be loaded
/// by the next clean start.
pub fn remove_statistics(dir: &DataDir) -> SysResult<()> {
    dir.kernel()
        .unlink_if_any(&dir.path("pg_stat/pgstat.stat"))?;
    Ok(())
}

/// `DeleteAllExportedSnapshotFiles`: their exporters are gone.
pub fn remove_exported_snapshots(dir: &DataDir) -> SysResult<()> {
    remove_entries(dir, &dir.path("pg_snapshots"), |_| true)
}

/// `AsyncShmemInit`: notifications do not outlive the server.
pub fn empty_notify(dir: &DataDir) -> SysResult<()> {
    remove_entries(dir, &dir.path("pg_notify"), is_segment)
}

/// `RemoveTempXlogFiles`: WAL segments that were being made when the server crashed.
pub fn remove_temporary_wal(dir: &DataDir) -> SysResult<()> {
    remove_entries(dir, &dir.path("pg_wal"), |name| {
        starts_with(name, "xlogtemp.")
    })
}

/// `CheckPointSnapBuild` and `CheckPointLogicalRewriteHeap`: what no logical slot needs any more.
/// `redo` is where the checkpoint's redo starts.
pub fn remove_logical_leftovers(dir: &DataDir, redo: Lsn, slots: &[Slot]) -> SysResult<()> {
    let oldest = slots.iter().filter_map(Slot::logical_restart_lsn).min();
    // Without a logical slot everything goes.
    let goes = |lsn: Lsn| oldest.is_none_or(|oldest| lsn < oldest.min(redo));
    remove_entries(dir, &dir.path("pg_logical/snapshots"), |name| {
        snapshot_lsn(name).is_some_and(goes)
    })?;
    remove_entries(dir, &dir.path("pg_logical/mappings"), |name| {
        mapping_lsn(name).is_some_and(goes)
    })
}

/// Removes the entries of a directory whose name `goes`; directories with all that is in them.
pub(super) fn remove_entries(
    dir: &DataDir,
    directory: &Path,
    goes: impl Fn(&OsStr) -> bool,
) -> SysResult<()> {
    for entry in dir.entries(directory)? {
        if !goes(&entry.name) {
            continue;
        }
        let path = directory.join(&entry.name);
        match entry.kind {
            FileKind::Directory => dir.kernel().remove_tree(&path)?,
            _ => {
                dir.kernel().unlink_if_any(&path)?;
            }
        }
    }
    Ok(())
}

fn starts_with(name: &OsStr, prefix: &str) -> bool {
    name.as_encoded_bytes().starts_with(prefix.as_bytes())
}

/// `looks_like_temp_rel_name`: `t3_16384`, with a fork and a segment.
fn is_temporary_relation(name: &OsStr) -> bool {
    let parse = || {
        let rest = name.to_str()?.strip_prefix('t')?;
        let backend = leading_digits(rest);
        let relation = rest[backend..].strip_prefix('_')?;
        let number = leading_digits(relation);
        parse_fork_and_segment(&relation[number..])?;
        Some(backend > 0 && number > 0)
    };
    parse().unwrap_or(false)
}

/// A segment of an SLRU: four to six upper-case hexadecimal digits.
fn is_segment(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    let digit = |b: &u8| b.is_ascii_digit() || (b'A'..=b'F').contains(b);
    (4..=6).contains(&name.len()) && name.iter().all(digit)
}

/// `0-16B3740.snap`; what follows the position is not looked at, as in the server.
fn snapshot_lsn(name: &OsStr) -> Option<Lsn> {
    let (high, low) = name.to_str()?.split_once('-')?;
    let digits = low.bytes().take_while(u8::is_ascii_hexdigit).count();
    Some(Lsn::from_halves(hex(high)?, hex(&low[..digits])?))
}

/// `map-<db>-<rel>-<high>_<low>-<xid>-<xid>`.
fn mapping_lsn(name: &OsStr) -> Option<Lsn> {
    let mut parts = name.to_str()?.strip_prefix("map-")?.split('-');
    hex(parts.next()?)?;
    hex(parts.next()?)?;
    let (high, low) = parts.next()?.split_once('_')?;
    hex(parts.next()?)?;
    hex(parts.next()?)?;
    Some(Lsn::from_halves(hex(high)?, hex(low)?))
}

fn hex(text: &str) -> Option<u32> {
    match text.bytes().all(|b| b.is_ascii_hexdigit()) {
        true => u32::from_str_radix(text, 16).ok(),
        false => None,
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::format::WalFormat;
    use crate::sys::Kernel;

    fn data_dir(files: &[&str]) -> (TempDir, DataDir) {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let dir = DataDir::new(Kernel::new(), root.path(), WalFormat::ALL[0]).unwrap();
        (root, dir)
    }

    /// Which of `files` are left after `clean`.
    fn left<'a>(files: &[&'a str], clean: impl Fn(&DataDir) -> SysResult<()>) -> Vec<&'a str> {
        let (root, dir) = data_dir(files);
        clean(&dir).unwrap();
        let left = files.iter().filter(|f| root.path().join(f).exists());
        left.copied().collect()
    }

    #[test]
    fn init_files_of_the_relation_cache() {
        let files = [
            "global/pg_internal.init",
            "base/5/pg_internal.init",
            "base/x5/pg_internal.init",
            "base/5/pg_internal.init.7",
            "pg_tblspc/16390/PG_15_202209061/5/pg_internal.init",
            "pg_tblspc/16390/PG_14_202107181/5/pg_internal.init",
        ];
        assert_eq!(
            left(&files, remove_relcache_init_files),
            [files[2], files[3], files[5]]
        );
    }

    #[test]
    fn temporary_files_and_relations() {
        let files = [
            "base/pgsql_tmp/pgsql_tmp123.0",
            "base/pgsql_tmp/pgsql_tmp123.1.fileset/i1of2",
            "base/pgsql_tmp/other",
            "base/5/t3_16384",
            "base/5/t3_16384_fsm.1",
            "base/5/t_16384",
            "base/5/t3_",
            "base/5/t3_7_bad",
            "base/5/16384",
        ];
        let expected = [files[2], files[5], files[6], files[7], files[8]];
        assert_eq!(left(&files, remove_temporary_files), expected);
    }

    #[test]
    fn single_directories() {
        let stat = ["pg_stat/pgstat.stat", "pg_stat/pg_stat_statements.stat"];
        assert_eq!(left(&stat, remove_statistics), [stat[1]]);
        let snapshots = ["pg_snapshots/00000003-00000002-1"];
        assert!(left(&snapshots, remove_exported_snapshots).is_empty());
        let notify = ["pg_notify/0000", "pg_notify/ABCDEF", "pg_notify/abcd"];
        assert_eq!(left(&notify, empty_notify), [notify[2]]);
        let wal = ["pg_wal/xlogtemp.77", "pg_wal/000000010000000000000001"];
        assert_eq!(left(&wal, remove_temporary_wal), [wal[1]]);
    }

    #[test]
    fn leftovers_of_logical_decoding() {
        let files = [
            "pg_logical/snapshots/0-100.snap",
            "pg_logical/snapshots/0-200.snap",
            "pg_logical/snapshots/0-100.snap.99.tmp",
            "pg_logical/snapshots/other",
            "pg_logical/mappings/map-5-4eb-0_100-2ff-300",
            "pg_logical/mappings/map-5-4eb-0_200-2ff-300",
            "pg_logical/mappings/map-bad",
        ];
        let none = left(&files, |d| remove_logical_leftovers(d, Lsn(0x150), &[]));
        assert_eq!(none, [files[3], files[6]]);
        let slot = Slot {
            name: "s".to_owned(),
            database: crate::types::Oid(5),
            restart_lsn: Lsn(0x180),
        };
        let slots = [slot];
        let kept = left(&files, |d| remove_logical_leftovers(d, Lsn(0x300), &slots));
        assert_eq!(kept, [files[1], files[3], files[5], files[6]]);
        let kept = left(&files, |d| remove_logical_leftovers(d, Lsn(0x100), &slots));
        assert_eq!(kept, files);
    }

    #[test]
    fn missing_directories_are_empty() {
        let clean: [fn(&DataDir) -> SysResult<()>; 6] = [
            remove_relcache_init_files,
            remove_temporary_files,
            remove_statistics,
            remove_exported_snapshots,
            empty_notify,
            remove_temporary_wal,
        ];
        for clean in clean {
            assert!(left(&[], clean).is_empty());
        }
    }
}
