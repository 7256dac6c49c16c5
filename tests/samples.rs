//! The bundled samples: crash images that are replayed with no server, and must become what
//! PostgreSQL's own recovery of them was.

pub mod support;

use std::process::Command;

use support::capture::{ReplayOptions, replay_as_self};
use support::fingerprint::fingerprint;
use support::run;
use support::sample::Sample;

fn check(name: &str) {
    let sample = Sample::named(name);
    let root = tempfile::tempdir().expect("a temp dir");
    let data = sample.unpack(root.path());
    assert_ne!(
        fingerprint(&data),
        sample.fingerprint(),
        "{name} needs no replay"
    );
    replay_as_self(&data, root.path(), &ReplayOptions::RECORD);
    assert_lines(&fingerprint(&data), &sample.fingerprint());
    let printed = run(Command::new(env!("CARGO_BIN_EXE_pgredo"))
        .arg("fingerprint")
        .arg(&data));
    assert_lines(&printed, &sample.fingerprint());
}

/// The lines of one and the other that differ; the whole would bury them.
fn assert_lines(ours: &str, expected: &str) {
    let only = |lines: &str, other: &str| -> Vec<String> {
        let known: std::collections::HashSet<&str> = other.lines().collect();
        lines
            .lines()
            .filter(|line| !known.contains(line))
            .map(str::to_owned)
            .collect()
    };
    let (extra, missing) = (only(ours, expected), only(expected, ours));
    assert!(
        extra.is_empty() && missing.is_empty(),
        "pgredo left\n{}\nPostgreSQL left\n{}",
        extra.join("\n"),
        missing.join("\n")
    );
    assert_eq!(ours, expected, "the same lines in the same order");
}

#[test]
fn pgbench() {
    check("pgbench");
}

#[test]
fn ddl() {
    check("ddl");
}

#[test]
fn locks() {
    check("locks");
}
