//! `pgredo control`: what pg_controldata prints (`src/bin/pg_controldata/pg_controldata.c`).

use std::io::Write;
use std::path::Path;

use jiff::{Timestamp, tz::TimeZone};

use super::args::ControlArgs;
use super::error::CliError;
use super::{Exit, io};
use crate::pgdata::control::{CONTROL_FILE_PATH, ControlFile};
use crate::wal::{SegmentName, WalLayout};

/// Prints the control file. One that fails its checks is an error; pg_controldata would print it
/// with a warning.
pub(super) fn run(args: &ControlArgs, out: &mut dyn Write) -> Result<Exit, CliError> {
    let directory = args
        .data_directory
        .resolve()
        .ok_or_else(CliError::no_data_directory)?;
    let file = read(&directory)?;
    for (label, value) in lines(&file, &TimeZone::system()) {
        // A few labels fill the column, and then nothing parts them from the value.
        let label = format!("{label}:");
        writeln!(out, "{label:<38}{value}")?;
    }
    Ok(Exit::Done)
}

/// Reads and checks the control file of a data directory.
pub(super) fn read(directory: &Path) -> Result<ControlFile, CliError> {
    let path = directory.join(CONTROL_FILE_PATH);
    let bytes = io::read_file(&path)?;
    ControlFile::parse(&bytes).map_err(|error| CliError::contents(&path, error))
}

/// Label and value of every line, in pg_controldata's order.
pub(super) fn lines(file: &ControlFile, zone: &TimeZone) -> Vec<(&'static str, String)> {
    let mut lines = Vec::with_capacity(52);
    identity_lines(file, zone, &mut lines);
    checkpoint_lines(file, zone, &mut lines);
    recovery_lines(file, &mut lines);
    setting_lines(file, &mut lines);
    build_lines(file, &mut lines);
    lines
}

type Lines = Vec<(&'static str, String)>;

fn identity_lines(file: &ControlFile, zone: &TimeZone, out: &mut Lines) {
    out.extend([
        (
            "pg_control version number",
            file.format.control_version.to_string(),
        ),
        (
            "Catalog version number",
            file.format.catalog_version.to_string(),
        ),
        (
            "Database system identifier",
            file.system_identifier.to_string(),
        ),
        ("Database cluster state", file.state.to_string()),
        ("pg_control last modified", time(file.time, zone)),
        ("Latest checkpoint location", file.check_point.to_string()),
    ]);
}

fn checkpoint_lines(file: &ControlFile, zone: &TimeZone, out: &mut Lines) {
    let copy = &file.check_point_copy;
    let layout = WalLayout {
        segment_bytes: file.xlog_seg_size.into(),
        system_identifier: file.system_identifier,
        format: file.format,
    };
    let redo_segment = SegmentName {
        segno: layout.segno(copy.redo),
        tli: copy.this_tli,
    };
    let next_xid = format!("{}:{}", copy.next_xid.epoch(), copy.next_xid.xid());
    out.extend([
        ("Latest checkpoint's REDO location", copy.redo.to_string()),
        (
            "Latest checkpoint's REDO WAL file",
            redo_segment.file_name(&layout),
        ),
        ("Latest checkpoint's TimeLineID", copy.this_tli.to_string()),
        (
            "Latest checkpoint's PrevTimeLineID",
            copy.prev_tli.to_string(),
        ),
        (
            "Latest checkpoint's full_page_writes",
            on_off(copy.full_page_writes),
        ),
        ("Latest checkpoint's NextXID", next_xid),
        ("Latest checkpoint's NextOID", copy.next_oid.to_string()),
        (
            "Latest checkpoint's NextMultiXactId",
            copy.next_multi.to_string(),
        ),
        (
            "Latest checkpoint's NextMultiOffset",
            copy.next_multi_offset.to_string(),
        ),
        ("Latest checkpoint's oldestXID", copy.oldest_xid.to_string()),
        (
            "Latest checkpoint's oldestXID's DB",
            copy.oldest_xid_db.to_string(),
        ),
        (
            "Latest checkpoint's oldestActiveXID",
            copy.oldest_active_xid.to_string(),
        ),
        (
            "Latest checkpoint's oldestMultiXid",
            copy.oldest_multi.to_string(),
        ),
        (
            "Latest checkpoint's oldestMulti's DB",
            copy.oldest_multi_db.to_string(),
        ),
        (
            "Latest checkpoint's oldestCommitTsXid",
            copy.oldest_commit_ts_xid.to_string(),
        ),
        (
            "Latest checkpoint's newestCommitTsXid",
            copy.newest_commit_ts_xid.to_string(),
        ),
        ("Time of latest checkpoint", time(copy.time, zone)),
    ]);
}

fn recovery_lines(file: &ControlFile, out: &mut Lines) {
    let backup_end_required = if file.backup_end_required {
        "yes"
    } else {
        "no"
    };
    out.extend([
        (
            "Fake LSN counter for unlogged rels",
            file.unlogged_lsn.to_string(),
        ),
        (
            "Minimum recovery ending location",
            file.min_recovery_point.to_string(),
        ),
        (
            "Min recovery ending loc's timeline",
            file.min_recovery_point_tli.to_string(),
        ),
        ("Backup start location", file.backup_start_point.to_string()),
        ("Backup end location", file.backup_end_point.to_string()),
        (
            "End-of-backup record required",
            backup_end_required.to_owned(),
        ),
    ]);
}

fn setting_lines(file: &ControlFile, out: &mut Lines) {
    let wal_level = match file.wal_level {
        0 => "minimal",
        1 => "replica",
        2 => "logical",
        _ => "unrecognized wal_level",
    };
    out.extend([
        ("wal_level setting", wal_level.to_owned()),
        ("wal_log_hints setting", on_off(file.wal_log_hints)),
        ("max_connections setting", file.max_connections.to_string()),
        (
            "max_worker_processes setting",
            file.max_worker_processes.to_string(),
        ),
        ("max_wal_senders setting", file.max_wal_senders.to_string()),
        (
            "max_prepared_xacts setting",
            file.max_prepared_xacts.to_string(),
        ),
        (
            "max_locks_per_xact setting",
            file.max_locks_per_xact.to_string(),
        ),
        (
            "track_commit_timestamp setting",
            on_off(file.track_commit_timestamp),
        ),
    ]);
}

fn build_lines(file: &ControlFile, out: &mut Lines) {
    let float8 = if file.float8_by_val {
        "by value"
    } else {
        "by reference"
    };
    let nonce = file.mock_authentication_nonce.iter();
    out.extend([
        ("Maximum data alignment", file.max_align.to_string()),
        ("Database block size", file.blcksz.to_string()),
        (
            "Blocks per segment of large relation",
            file.relseg_size.to_string(),
        ),
        ("WAL block size", file.xlog_blcksz.to_string()),
        ("Bytes per WAL segment", file.xlog_seg_size.to_string()),
        (
            "Maximum length of identifiers",
            file.name_data_len.to_string(),
        ),
        (
            "Maximum columns in an index",
            file.index_max_keys.to_string(),
        ),
        (
            "Maximum size of a TOAST chunk",
            file.toast_max_chunk_size.to_string(),
        ),
        ("Size of a large-object chunk", file.loblksize.to_string()),
        // Once a choice, now a constant that scripts still look for.
        ("Date/time type storage", "64-bit integers".to_owned()),
        ("Float8 argument passing", float8.to_owned()),
        (
            "Data page checksum version",
            file.data_checksum_version.to_string(),
        ),
        (
            "Mock authentication nonce",
            nonce.map(|byte| format!("{byte:02x}")).collect(),
        ),
    ]);
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

/// `%c` of the C locale; other locales are not followed.
fn time(seconds: i64, zone: &TimeZone) -> String {
    match Timestamp::from_second(seconds) {
        Ok(time) => {
            let local = time.to_zoned_datetime(zone.clone());
            local.strftime("%a %b %e %H:%M:%S %Y").to_string()
        }
        Err(_) => "???".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgdata::control::tests::sample;

    #[test]
    fn times_are_local_and_in_the_c_locale() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(time(1_751_400_000, &zone), "Tue Jul  1 22:00:00 2025");
        assert_eq!(time(i64::MAX, &zone), "???");
    }

    #[test]
    fn no_label_is_wider_than_its_column() {
        let file = ControlFile::parse(&sample()).unwrap();
        let lines = lines(&file, &TimeZone::UTC);
        assert_eq!(lines.len(), 50);
        for (label, _) in lines {
            assert!(label.len() < 38, "{label}");
        }
    }
}
