//! Rounds of random workloads over every index access method: a crash at the end of each,
//! recovered by PostgreSQL and by pgredo.
//!
//! A few rounds with a fixed seed run with the tests. Many more:
//!
//!   PGREDO_SEED=1000 PGREDO_ROUNDS=200 cargo test --release --test rounds

pub mod support;

use support::capture::{Capture, ReplayOptions};
use support::compare::assert_same;
use support::random_workload::round;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}"))
    })
}

#[test]
fn random_rounds() {
    let (seed, rounds) = (number("PGREDO_SEED", 15), number("PGREDO_ROUNDS", 3));
    for seed in seed..seed + rounds {
        println!("this round again: PGREDO_SEED={seed} PGREDO_ROUNDS=1");
        let capture = Capture::of(round(seed));
        let reference = capture.reference();
        let ours = capture.replay(&ReplayOptions::RECORD);
        assert_same(&capture, &reference, &ours);
        ours.starts_clean(capture.tree());
    }
}
