//! Makes the samples of `wal-samples` anew: `make samples`.

pub mod support;

fn main() {
    support::sample::make_all();
}
