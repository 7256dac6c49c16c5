//! The judge is judged: PostgreSQL's recovery of one crash image twice gives the same bytes, and
//! the comparison sees whatever differs.

pub mod support;

use std::path::Path;

use support::capture::Capture;
use support::compare::{Difference, compare};
use support::fingerprint::fingerprint;
use support::postgres::Stop;
use support::postgres::{Tree, give_to_server_user};
use support::sample::{SAMPLES, Sample};
use support::workloads;

fn paths(differences: &[Difference]) -> Vec<&str> {
    differences
        .iter()
        .map(|difference| difference.path.as_str())
        .collect()
}

#[test]
fn two_recoveries_by_postgres_differ_in_the_final_checkpoint_only() {
    let capture = Capture::of(workloads::ddl_churn());
    let again = capture.recovered_again(Stop::Fast);
    let differences = compare(&capture.reference(), &again);
    // The fast stop writes one checkpoint more: its position, and its redo pointer.
    assert_eq!(
        paths(&differences),
        ["global/pg_control"; 2],
        "{differences:#?}"
    );
    again.starts_clean(capture.tree());
}

#[test]
fn every_kind_of_difference_is_seen() {
    let capture = Capture::of(workloads::ddl_churn());
    let again = capture.recovered_again(Stop::Immediate);
    let data = again.data();
    let write_at = |path: &str, offset: u64, byte: u8| {
        use std::os::unix::fs::FileExt;
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(data.join(path));
        file.expect("it is there")
            .write_all_at(&[byte], offset)
            .expect("it can be written");
    };
    write_at("base/1/1259", 8192 + 4000, 0xA5);
    write_at("pg_xact/0000", 8000, 0xA5);
    write_at("global/pg_control", 64, 0xA5);
    write_at("pg_multixact/offsets/0000", 20, 0xA5);
    std::fs::remove_file(data.join("base/1/1247")).expect("it is there");
    std::fs::write(data.join("base/1/99999"), "").expect("a new file");
    std::fs::create_dir(data.join("base/99999")).expect("a new directory");
    let truncated = std::fs::OpenOptions::new()
        .write(true)
        .open(data.join("base/1/1255_fsm"));
    truncated
        .and_then(|file| file.set_len(8192))
        .expect("it is there");
    std::fs::write(data.join("base/1/pg_internal.init"), "").expect("a new file");
    std::fs::write(data.join("pg_stat/free.stat"), "").expect("a new file");

    let mut found = compare(&capture.reference(), &again);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    let expected = [
        "base/1/1247",
        "base/1/1255_fsm",
        "base/1/1259",
        "base/1/99999",
        "base/1/pg_internal.init",
        "base/99999",
        // The next transaction id, the check sum, and that it is still in production.
        "global/pg_control",
        "global/pg_control",
        "global/pg_control",
        "pg_multixact/offsets/0000",
        "pg_xact/0000",
    ];
    assert_eq!(paths(&found), expected, "{found:#?}");
    let page = found
        .iter()
        .find(|difference| difference.path == "base/1/1259");
    assert_eq!(page.map(|page| page.pages.clone()), Some(vec![1]));
}

#[test]
fn a_crash_image_needs_recovery_and_stays_as_it_is() {
    let capture = Capture::of(workloads::ddl_churn());
    capture.reference();
    assert!(!Path::new(&capture.image()).join("postmaster.pid").exists());
    let again = capture.recovered_again(Stop::Immediate);
    let differences = compare(&capture.reference(), &again);
    assert_eq!(
        paths(&differences),
        ["global/pg_control"],
        "{differences:#?}"
    );
    assert!(differences[0].what.contains("state"), "{differences:#?}");
}

/// The samples were pruned by hand, so to speak: a server must still make of them what their
/// fingerprints say.
#[test]
fn samples_recover_to_their_fingerprints() {
    for name in SAMPLES {
        let sample = Sample::named(name);
        let root = tempfile::tempdir().expect("a temp dir");
        let data = sample.unpack(root.path());
        give_to_server_user(root.path());
        let log = root.path().join("log");
        let server = Tree::find("15").start(&data, &log, &["autovacuum=off"]);
        let log = server.stop(Stop::Immediate);
        assert!(log.contains("redo done at"), "{log}");
        assert_eq!(fingerprint(&data), sample.fingerprint(), "{name}");
    }
}
