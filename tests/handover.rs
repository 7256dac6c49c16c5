//! A recovery that is cut off and handed over to the real server: the server ends where it would
//! have ended alone.

pub mod support;

use pgredo::sys::Kernel;
use support::capture::Capture;
use support::compare::{Difference, compare};
use support::library::recover;
use support::recipe::Recipe;
use support::workloads;

/// Points of interruption, the first and the last changes among them.
const POINTS: u64 = 16;

/// Changes at the end of a run that come after its last record is in the WAL: the sync of that
/// segment, pg_control and its sync. The server then finds that record and adds its own.
const AFTER_LAST_RECORD: u64 = 4;

fn check(recipe: Recipe) {
    let capture = Capture::of(recipe);
    let reference = capture.reference();
    let mut changes = 0;
    let done = capture.handed_over(|data| {
        let kernel = Kernel::new();
        recover(&kernel, data).expect("a crash image is sound");
        changes = kernel.changes();
    });
    assert_eq!(paths(&compare(&reference, &done)), [""; 0], "all done");
    let points =
        (0..POINTS - AFTER_LAST_RECORD).map(|n| n * changes / (POINTS - AFTER_LAST_RECORD));
    let last = (1..=AFTER_LAST_RECORD).map(|back| changes - back);
    for cut in points.chain(last) {
        let ours = capture.handed_over(|data| {
            recover(&Kernel::failing_after(cut), data).expect_err("it is cut off");
        });
        let differences: Vec<Difference> = compare(&reference, &ours)
            .into_iter()
            .filter(|difference| !is_expected(difference, changes - cut))
            .collect();
        assert!(
            differences.is_empty(),
            "cut off after {cut} of {changes} changes: {differences:#?}"
        );
    }
}

/// The server runs, which pg_control tells. Where its last checkpoint is, only a cut off behind
/// pgredo's own may change.
fn is_expected(difference: &Difference, changes_left: u64) -> bool {
    let is_running = difference.what == "state: 6 is not a clean shutdown";
    let is_position = difference.what.starts_with("checkPoint");
    let may_move = is_position && changes_left <= AFTER_LAST_RECORD;
    difference.path == "global/pg_control" && (is_running || may_move)
}

/// What differs besides pg_control.
fn paths(differences: &[Difference]) -> Vec<&str> {
    let paths = differences.iter().map(|difference| &*difference.path);
    paths.filter(|path| *path != "global/pg_control").collect()
}

#[test]
fn mixed() {
    check(workloads::mixed());
}

#[test]
fn torn_record() {
    check(workloads::torn_record());
}
