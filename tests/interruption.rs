//! Recoveries that are cut off after any number of changes to files, and done again: the result
//! is that of one that was never cut off.

pub mod support;

use pgredo::recovery::{RecoveryError, RedoOrder};
use pgredo::sys::Kernel;
use support::fingerprint::fingerprint;
use support::library::recover_in;
use support::sample::Sample;
use support::{copy_directory, memory_directory};

/// Points of interruption tried for a sample, besides all of the last ones.
const POINTS: u64 = 200;
/// The end is where the order of writes matters most.
const LAST: u64 = 25;

fn check(name: &str) {
    check_in(RedoOrder::Page, name);
    check_in(RedoOrder::Record, name);
}

fn check_in(order: RedoOrder, name: &str) {
    let sample = Sample::named(name);
    let root = memory_directory();
    let pristine = sample.unpack(root.path());
    let expected = sample.fingerprint();
    let whole = root.path().join("whole");
    copy_directory(&pristine, &whole);
    let kernel = Kernel::new();
    recover_in(order, &kernel, &whole).expect("a sample is sound");
    let changes = kernel.changes();
    let mut cuts: Vec<u64> = (0..changes)
        .step_by(changes.div_ceil(POINTS) as usize)
        .collect();
    cuts.extend(changes.saturating_sub(LAST)..changes);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for share in cuts.chunks(cuts.len().div_ceil(threads)) {
            let (pristine, expected) = (&pristine, &expected);
            scope.spawn(move || {
                let work = memory_directory();
                let data = work.path().join("data");
                for &cut in share {
                    support::remove_directory(&data);
                    copy_directory(pristine, &data);
                    let place = format!(
                        "{name}, {order:?} order: cut off after {cut} of {changes} changes"
                    );
                    match recover_in(order, &Kernel::failing_after(cut), &data) {
                        Ok(_) => panic!("{place}: it does not notice"),
                        Err(RecoveryError::Refused(refusal)) => panic!("{place}: {refusal}"),
                        Err(_) => {}
                    }
                    recover_in(order, &Kernel::new(), &data)
                        .unwrap_or_else(|error| panic!("{place}: {error}"));
                    assert!(fingerprint(&data) == *expected, "{place}: another result");
                    let again = recover_in(order, &Kernel::new(), &data).expect("it was recovered");
                    assert!(again.is_none(), "{place}: it needs recovery");
                }
            });
        }
    });
}

#[test]
fn locks() {
    check("locks");
}

#[test]
fn ddl() {
    check("ddl");
}

#[test]
fn pgbench() {
    check("pgbench");
}
