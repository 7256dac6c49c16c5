//! A whole replay through the library: from looking at the directory to writing pg_control. Nothing
//! is synced, so that the disk is left out of it; the files are in the kernel's cache.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use pgredo::recovery::{Observer, Outcome, Prepared, Recovery, RecoveryOptions, RedoOrder};
use pgredo::redo::TablespaceMap;
use pgredo::smgr::{NblocksCache, SyncMethod};
use pgredo::sys::Kernel;
use tempfile::TempDir;

/// Nobody listens.
struct Silent;

impl Observer for Silent {
    fn log(&mut self, _: &str) {}
    fn warning(&mut self, message: &str) {
        panic!("a sample replays without warnings: {message}");
    }
}

fn replay(data: PathBuf, order: RedoOrder, nblocks_cache: NblocksCache) -> Outcome {
    let options = RecoveryOptions {
        data_directory: data,
        wal_directories: Vec::new(),
        order,
        jobs: 2,
        memory: 256 << 20,
        buffers: 128 << 20,
        nblocks_cache,
        sync: SyncMethod::None,
        strict: true,
        stop_before: None,
        tablespaces: TablespaceMap::default(),
    };
    match Recovery::prepare(&Kernel::new(), options, &mut Silent).expect("a sound directory") {
        Prepared::Ready(recovery) => recovery.run(&mut Silent).expect("a replay"),
        Prepared::NothingToDo(_) => panic!("the sample needs a replay"),
    }
}

/// A fresh copy of a crash image.
fn copy(image: &Path) -> (TempDir, PathBuf) {
    let root = tempfile::tempdir().expect("a temp dir");
    let data = root.path().join("data");
    let mut cp = Command::new("cp");
    let copied = cp.args(["-a", "--reflink=auto"]).arg(image).arg(&data);
    assert!(copied.status().expect("cp").success());
    (root, data)
}

fn replay_samples(c: &mut Criterion) {
    for sample in ["pgbench", "ddl", "locks"] {
        let root = tempfile::tempdir().expect("a temp dir");
        let image = support::unpack(sample, root.path());
        let mut group = c.benchmark_group(format!("replay/{sample}"));
        group.sample_size(10);
        for (name, order, cache) in [
            ("page order", RedoOrder::Page, NblocksCache::On),
            ("record order", RedoOrder::Record, NblocksCache::On),
            (
                "record order, nblocks cache off",
                RedoOrder::Record,
                NblocksCache::Off,
            ),
        ] {
            let (_root, data) = copy(&image);
            group.throughput(Throughput::Elements(
                replay(data, order, cache).redo.records,
            ));
            group.bench_function(name, |b| {
                b.iter_batched(
                    || copy(&image),
                    // The directory goes with its guard, which is returned, so that its removal
                    // is not measured.
                    |(root, data)| (root, replay(data, order, cache)),
                    BatchSize::PerIteration,
                );
            });
        }
        group.finish();
    }
}

criterion_group!(benches, replay_samples);
criterion_main!(benches);
