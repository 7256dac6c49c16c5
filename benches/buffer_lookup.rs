//! Finding a page that is in memory: in the pool's tables by fork and block, and in a hash map of
//! page tags, as PostgreSQL's buffer table is. The pool also counts the use of the page, and "tag"
//! finds the fork first, as redo does once for each touch; the maps only find a number.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::path::Path;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use pgredo::buffer::BufferPool;
use pgredo::format::WalFormat;
use pgredo::pgdata::DataDir;
use pgredo::smgr::{NblocksCache, Smgr, SmgrOptions, SyncMethod};
use pgredo::sys::Kernel;
use pgredo::types::{BlockTag, ForkNumber, Oid, RelFileLocator};

const RELATIONS: u32 = 64;
const BLOCKS: u32 = 256;

/// All pages in the order of their blocks, relation by relation.
fn sequential() -> Vec<BlockTag> {
    let tag = |i: u32| BlockTag {
        locator: RelFileLocator {
            spc: Oid(1663),
            db: Oid(5),
            rel: Oid(16384 + i / BLOCKS),
        },
        fork: ForkNumber::Main,
        block: i % BLOCKS,
    };
    (0..RELATIONS * BLOCKS).map(tag).collect()
}

/// The same in an order without pattern, the same in every run.
fn random() -> Vec<BlockTag> {
    let mut tags = sequential();
    let mut seed = 0x9E37_79B9_7F4A_7C15_u64;
    for i in (1..tags.len()).rev() {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        tags.swap(i, (seed % (i as u64 + 1)) as usize);
    }
    tags
}

/// A pool that holds all pages.
fn pool(root: &Path) -> (Smgr, BufferPool) {
    let dir = DataDir::new(Kernel::new(), root, WalFormat::ALL[0]).expect("a directory");
    let options = SmgrOptions {
        nblocks_cache: NblocksCache::On,
        data_checksums: false,
        sync: SyncMethod::None,
    };
    let mut smgr = Smgr::new(dir, options);
    let mut pool = BufferPool::new((RELATIONS * BLOCKS) as usize);
    for tag in sequential() {
        let fork = smgr.fork(tag.locator, tag.fork);
        pool.zeroed(&mut smgr, fork, tag.block)
            .expect("a free frame");
    }
    (smgr, pool)
}

fn bench_map<S: BuildHasher + Default>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    tags: &[BlockTag],
) {
    let map: HashMap<BlockTag, u32, S> = sequential().into_iter().zip(0..).collect();
    group.bench_function(name, |b| {
        b.iter(|| tags.iter().map(|tag| u64::from(map[tag])).sum::<u64>());
    });
}

fn buffer_lookup(c: &mut Criterion) {
    let root = tempfile::tempdir().expect("a temp dir");
    let (mut smgr, mut pool) = pool(root.path());
    for (order, tags) in [("sequential", sequential()), ("random", random())] {
        let mut group = c.benchmark_group(format!("buffer_lookup/{order}"));
        group.throughput(Throughput::Elements(tags.len() as u64));
        let forks: Vec<_> = tags
            .iter()
            .map(|tag| (smgr.fork(tag.locator, tag.fork), tag.block))
            .collect();
        group.bench_function("pool, fork known", |b| {
            b.iter(|| {
                for (fork, block) in &forks {
                    let _ = black_box(pool.read(&mut smgr, *fork, *block));
                }
            });
        });
        group.bench_function("pool, tag", |b| {
            b.iter(|| {
                for tag in &tags {
                    let fork = smgr.fork(tag.locator, tag.fork);
                    let _ = black_box(pool.read(&mut smgr, fork, tag.block));
                }
            });
        });
        bench_map::<std::hash::RandomState>(&mut group, "HashMap, default hasher", &tags);
        bench_map::<rustc_hash::FxBuildHasher>(&mut group, "HashMap, rustc-hash", &tags);
        group.finish();
    }
    let stats = pool.stats();
    assert_eq!(stats.read, 0, "every page was in the pool");
}

criterion_group!(benches, buffer_lookup);
criterion_main!(benches);
