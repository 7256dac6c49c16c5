//! What a block reference pays to learn the size of its fork: with the nblocks cache, and by
//! asking the kernel as PostgreSQL did before 14. Over one relation, and in turn over 10,000, more
//! than the number of files that are kept open.

use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pgredo::format::WalFormat;
use pgredo::pgdata::DataDir;
use pgredo::smgr::{ForkId, NblocksCache, Smgr, SmgrOptions, SyncMethod};
use pgredo::sys::Kernel;
use pgredo::types::{ForkNumber, Oid, RelFileLocator};

/// Relations of three blocks each.
fn relations(root: &Path, count: u32, nblocks_cache: NblocksCache) -> (Smgr, Vec<ForkId>) {
    let format = WalFormat::ALL[0];
    let dir = DataDir::new(Kernel::new(), root, format).expect("a directory");
    let options = SmgrOptions {
        nblocks_cache,
        data_checksums: false,
        sync: SyncMethod::None,
    };
    let mut smgr = Smgr::new(dir, options);
    let forks = (0..count).map(|i| {
        let locator = RelFileLocator {
            spc: Oid(1663),
            db: Oid(5),
            rel: Oid(16384 + i),
        };
        let fork = smgr.fork(locator, ForkNumber::Main);
        smgr.create(fork).expect("a new file");
        smgr.extend(fork, 3).expect("a larger file");
        smgr.settle(fork).expect("a larger file");
        fork
    });
    let forks = forks.collect();
    (smgr, forks)
}

fn nblocks(c: &mut Criterion) {
    for count in [1, 10_000] {
        let mut group = c.benchmark_group(format!("nblocks/{count} relations"));
        group.throughput(Throughput::Elements(count.into()));
        for (name, cache) in [("on", NblocksCache::On), ("off", NblocksCache::Off)] {
            let root = tempfile::tempdir().expect("a temp dir");
            let (mut smgr, forks) = relations(root.path(), count, cache);
            group.bench_function(format!("cache {name}"), |b| {
                b.iter(|| {
                    let sizes = forks.iter().map(|f| smgr.nblocks(*f).expect("a size"));
                    sizes.map(u64::from).sum::<u64>()
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, nblocks);
criterion_main!(benches);
