//! `pgredo verify`: finds nothing in WAL of real servers, finds what was damaged, changes nothing.

pub mod support;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::capture::Capture;
use support::control::Control;
use support::fingerprint::fingerprint;
use support::recipe::Recipe;
use support::run;
use support::sample::Sample;
use support::workloads;

const WAL_PAGE_BYTES: u64 = 8192;
/// Of the samples.
const SEGMENT_BYTES: u64 = 1 << 20;
const RECORD_HEADER_BYTES: usize = 24;
const CRC_OFFSET: usize = 20;

fn pgredo(arguments: &[&str], data: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pgredo"))
        .args(arguments)
        .arg(data)
        .output()
        .expect("it runs")
}

/// The numbers of the line that begins with `name`: records, redone, restored, ahead, absent,
/// differing.
fn row(output: &Output, name: &str) -> Vec<u64> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no line {name}: {text}\n{output:?}"));
    let numbers = line.split_whitespace().rev().take(6);
    let mut numbers: Vec<u64> = numbers.map(|n| n.parse().expect("a number")).collect();
    numbers.reverse();
    numbers
}

/// Verifies a directory that must be good, and at least `pages` of it.
fn check_good(data: &Path, pages: u64) {
    let before = (fingerprint(data), control(data));
    let output = pgredo(&["verify"], data);
    assert!(output.status.success(), "{output:?}");
    assert_eq!((fingerprint(data), control(data)), before, "it was changed");
    let total = row(&output, "Total");
    // Few are absent: those of relations that were truncated before the crash.
    assert!(total[1] >= pages && total[4] < total[1] / 100, "{total:?}");
    assert_eq!(total[5], 0, "{total:?}");
}

fn control(data: &Path) -> Vec<u8> {
    std::fs::read(data.join("global/pg_control")).expect("a data directory")
}

fn check_capture(recipe: Recipe, name: &'static str, pages: u64) {
    let settings = &["wal_consistency_checking = all", "wal_compression = lz4"];
    let capture = Capture::of(recipe.variant(name, settings));
    check_good(&capture.image(), pages);
}

#[test]
fn sample() {
    let root = tempfile::tempdir().expect("a temp dir");
    check_good(&Sample::named("locks").unpack(root.path()), 400);
}

#[test]
fn mixed() {
    let capture = Capture::of(workloads::consistency_checked());
    check_good(&capture.image(), 1000);
}

#[test]
fn vacuum() {
    check_capture(workloads::vacuum(), "vacuum_checked", 1000);
}

/// Relations made, truncated and dropped in memory only.
#[test]
fn ddl_churn() {
    check_capture(workloads::ddl_churn(), "ddl_churn_checked", 1000);
}

/// Databases made by both strategies and dropped, in memory only.
#[test]
fn createdb() {
    check_capture(workloads::createdb(), "createdb_checked", 1000);
}

#[test]
fn wal_without_images_is_no_proof() {
    let root = tempfile::tempdir().expect("a temp dir");
    let output = pgredo(&["verify"], &Sample::named("pgbench").unpack(root.path()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success());
    assert!(text.starts_with("none of "), "{text}");
}

/// One byte of a new row is changed in the WAL, and the CRC with it: redo then makes another page
/// than the one in the image. Later records of that page find nothing more.
#[test]
fn a_damaged_record_is_named() {
    let root = tempfile::tempdir().expect("a temp dir");
    let data = Sample::named("locks").unpack(root.path());
    let lsn = damage_an_insert(&data);
    let output = pgredo(&["verify"], &data);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(row(&output, "Heap/INSERT")[5], 1);
    assert_eq!(row(&output, "Total")[5], 1);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let verdict = format!("first difference: Heap/INSERT at {lsn}, block reference 0, rel ");
    assert!(text.contains(&verdict), "{text}");
}

/// Flips the last byte of the data of the first suitable record; returns its LSN.
fn damage_an_insert(data: &Path) -> String {
    let wal = data.join("pg_wal");
    let redo = Control::read(data).redo();
    let redo = format!("{:X}/{:X}", redo >> 32, redo as u32);
    let printed = Command::new(env!("CARGO_BIN_EXE_pgredo"))
        .args(["waldump", "--format=json", "-rHeap", "-s", &redo, "-p"])
        .arg(&wal)
        .output()
        .expect("it runs");
    let text = String::from_utf8(printed.stdout).expect("JSON");
    let records = text.lines().map(|line| {
        let record: Value = serde_json::from_str(line).expect("JSON");
        record
    });
    let is_suitable = |record: &Value| {
        record["name"] == "INSERT"
            && record["blocks"][0]["fpw"]["apply"] == Value::Bool(false)
            && lsn(record) % WAL_PAGE_BYTES + number(record, "total_bytes") <= WAL_PAGE_BYTES
    };
    let record = records
        .into_iter()
        .find(is_suitable)
        .expect("an INSERT with an image");
    let start = lsn(&record);
    let name = format!("0000000100000000{:08X}", start / SEGMENT_BYTES);
    let path = wal.join(name);
    let mut segment = std::fs::read(&path).expect("a segment");
    let offset = (start % SEGMENT_BYTES) as usize;
    let total = number(&record, "total_bytes") as usize;
    let bytes = &mut segment[offset..offset + total];
    let last = total - 1 - number(&record, "main_data_bytes") as usize;
    bytes[last] ^= 1;
    let crc = crc32c::crc32c(&bytes[RECORD_HEADER_BYTES..]);
    let crc = crc32c::crc32c_append(crc, &bytes[..CRC_OFFSET]);
    bytes[CRC_OFFSET..RECORD_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(&path, &segment).expect("a segment");
    record["lsn"].as_str().expect("text").to_owned()
}

fn number(record: &Value, field: &str) -> u64 {
    record[field].as_u64().expect("a number")
}

fn lsn(record: &Value) -> u64 {
    let text = record["lsn"].as_str().expect("text");
    let (high, low) = text.split_once('/').expect("an LSN");
    let half = |digits| u64::from_str_radix(digits, 16).expect("hexadecimal");
    half(high) << 32 | half(low)
}

#[test]
fn a_clean_directory_needs_no_verification() {
    let root = tempfile::tempdir().expect("a temp dir");
    let data = Sample::named("locks").unpack(root.path());
    run(Command::new(env!("CARGO_BIN_EXE_pgredo"))
        .arg("replay")
        .arg(&data)
        .args(["--in-place", "--no-sync"]));
    let output = pgredo(&["verify"], &data);
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
}
