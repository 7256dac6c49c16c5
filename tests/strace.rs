//! The counters that pgredo prints are those of the kernel's own witness: `strace -c` of the same
//! run. Counts are exact, so this is a test and not a benchmark.

pub mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use support::run;
use support::sample::Sample;

/// Calls that pgredo counts and that the program loader and the allocator make none of, or as
/// many in every run: what `pgredo --version` makes is taken off.
const COUNTED: &[&str] = &[
    "copy_file_range",
    "fallocate",
    "fdatasync",
    "fsync",
    "ftruncate",
    "lseek",
    "pread64",
    "preadv",
    "pwrite64",
    "pwritev",
    "rename",
    "renameat",
    "renameat2",
    "syncfs",
    "unlink",
    "unlinkat",
];

type Calls = BTreeMap<String, u64>;

/// Runs pgredo under strace and returns how often each call was made.
fn strace(arguments: &[&str], directory: &Path) -> Calls {
    let table = directory.join("strace.txt");
    let mut command = Command::new("strace");
    // A zone that needs no file: reading one is the time library's own affair.
    command.env("TZ", "UTC0");
    command
        .args(["-f", "-c", "-o"])
        .arg(&table)
        .arg(env!("CARGO_BIN_EXE_pgredo"));
    run(command.args(arguments));
    let text = std::fs::read_to_string(&table).expect("strace wrote its table");
    // % time, seconds, usecs/call, calls, errors if any, name
    let rows = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = *words.last()?;
        Some((name.to_owned(), words.get(3)?.parse().ok()?))
    });
    rows.filter(|(name, _)| name != "total").collect()
}

/// Replays a sample and returns what strace and what pgredo counted.
fn replay(name: &str, nblocks_cache: &str) -> (Calls, Calls) {
    let root = tempfile::tempdir().expect("a temp dir");
    let data = Sample::named(name).unpack(root.path());
    let stats = root.path().join("stats.json");
    let (data, stats) = (
        data.to_str().expect("ASCII"),
        stats.to_str().expect("ASCII"),
    );
    let mut arguments = vec!["replay", "-D", data, "--in-place", "--order", "record"];
    arguments.extend([
        "--nblocks-cache",
        nblocks_cache,
        "--stats",
        "json",
        "--stats-file",
        stats,
    ]);
    let mut seen = strace(&arguments, root.path());
    for (name, calls) in strace(&["--version"], root.path()) {
        let rest = seen.entry(name).or_default();
        *rest = rest.saturating_sub(calls);
    }
    let text = std::fs::read(stats).expect("pgredo wrote its counters");
    let stats: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let counted = stats["syscalls"].as_object().expect("an object").iter();
    let counted = counted.map(|(name, call)| (name.clone(), call["calls"].as_u64().unwrap_or(0)));
    (seen, counted.collect())
}

fn calls(table: &Calls, name: &str) -> u64 {
    table.get(name).copied().unwrap_or(0)
}

#[test]
fn counters_agree_with_strace() {
    for nblocks_cache in ["on", "off"] {
        let (seen, counted) = replay("ddl", nblocks_cache);
        for name in COUNTED {
            let (seen, counted) = (calls(&seen, name), calls(&counted, name));
            assert_eq!(counted, seen, "{name}, nblocks cache {nblocks_cache}");
        }
    }
}

/// The founding observation: the cache takes the question for a size from every block reference
/// to once for each fork.
#[test]
fn nblocks_cache_saves_lseek() {
    let (with, _) = replay("pgbench", "on");
    let (without, _) = replay("pgbench", "off");
    let (with, without) = (calls(&with, "lseek"), calls(&without, "lseek"));
    assert!(without > 1000, "{without} calls of lseek for 2,500 records");
    assert!(
        with < without / 10,
        "lseek: {with} calls with the cache, {without} without"
    );
}
