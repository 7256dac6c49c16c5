//! What a replay asks of the kernel and of its own tables, as exact counts. They depend on the
//! sample and on nothing else, so a number that changes is a change of behaviour. `tests/strace.rs`
//! holds the counters themselves against the kernel's own witness.

pub mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use pgredo::buffer::PoolStats;
use pgredo::decode::{BlockRef, Record};
use pgredo::pgdata::DataDir;
use pgredo::pgdata::control::ControlFile;
use pgredo::redo::{Redo, RedoOptions, TablespaceMap, Window};
use pgredo::rmgr::{self, Touches};
use pgredo::smgr::{NblocksCache, SmgrOptions, SyncMethod};
use pgredo::sys::Kernel;
use pgredo::types::{
    BLOCK_BYTES, BlockNumber, BlockTag, ForkNumber, Lsn, Oid, RelFileLocator, RepOriginId, RmgrId,
};
use pgredo::wal::{Batch, History, SegmentSource, WalLayout, WalReader};
use serde_json::Value;
use support::fingerprint::fingerprint;
use support::run;
use support::sample::Sample;

/// Replays a sample, syncing as it does by default; its counters.
fn replay(sample: &Sample, nblocks_cache: &str) -> Value {
    let root = tempfile::tempdir().expect("a temp dir");
    let data = sample.unpack(root.path());
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgredo"));
    command.args(["replay", "--in-place", "--order", "record"]);
    command.args(["--nblocks-cache", nblocks_cache, "--stats", "json", "-D"]);
    let stats = run(command.arg(&data));
    let same = fingerprint(&data) == sample.fingerprint();
    assert!(same, "nblocks cache {nblocks_cache}: other bytes");
    serde_json::from_str(&stats).expect("JSON")
}

fn calls(stats: &Value, name: &str) -> u64 {
    stats["syscalls"][name]["calls"].as_u64().unwrap_or(0)
}

fn control(data: &Path) -> ControlFile {
    let bytes = std::fs::read(data.join("global/pg_control")).expect("pg_control");
    ControlFile::parse(&bytes).expect("pg_control")
}

/// What the WAL of a sample touches, by its records alone: the number of touches, and the forks.
fn touches_of(sample: &Sample) -> (u64, BTreeSet<(RelFileLocator, ForkNumber)>) {
    let root = tempfile::tempdir().expect("a temp dir");
    let data = sample.unpack(root.path());
    let control = control(&data);
    let layout = WalLayout {
        segment_bytes: control.xlog_seg_size.into(),
        system_identifier: control.system_identifier,
        format: control.format,
    };
    let history = History::single(control.check_point_copy.this_tli);
    let source = SegmentSource::new(Kernel::new(), layout, vec![data.join("pg_wal")], history);
    let mut batch = Batch::new();
    WalReader::new(source, control.check_point_copy.redo)
        .fill(&mut batch, usize::MAX, usize::MAX)
        .expect("readable WAL");
    let (mut count, mut forks) = (0, BTreeSet::new());
    for raw in batch.records() {
        let record = Record::decode(raw, control.format).expect("a sound record");
        let mut touches = Touches::new();
        rmgr::touches(&record, &mut touches).expect("a sound record");
        count += touches.len() as u64;
        forks.extend(touches.iter().map(|t| (t.tag.locator, t.tag.fork)));
    }
    (count, forks)
}

/// Calls of lseek with the nblocks cache and without, exactly. With it there is one for each fork
/// that was there, whatever happens to it afterwards; without it one for each look at a size.
#[test]
fn lseek_is_asked_once_for_a_fork() {
    for (name, with, without) in [
        ("pgbench", 13, 2548),
        ("ddl", 189, 10_296),
        ("locks", 12, 436),
    ] {
        let sample = Sample::named(name);
        let (on, off) = (replay(&sample, "on"), replay(&sample, "off"));
        assert_eq!(calls(&on, "lseek"), with, "{name}, cache on");
        assert_eq!(calls(&off, "lseek"), without, "{name}, cache off");

        let cache = &on["nblocks_cache"];
        let (hits, misses) = (cache["hits"].as_u64(), cache["misses"].as_u64());
        assert_eq!(misses, Some(with), "{name}: one call for each miss");
        assert_eq!(
            hits,
            Some(without - with),
            "{name}: each hit is a call saved"
        );

        // Free space maps are not in the records: each heap may have one.
        let (touches, forks) = touches_of(&sample);
        let heaps = forks.iter().filter(|(_, fork)| *fork == ForkNumber::Main);
        let most = (forks.len() + heaps.count()) as u64;
        assert!(with <= most, "{name}: {with} calls, {most} forks at most");
        assert!(
            without >= touches,
            "{name}: {without} for {touches} touches"
        );
    }
}

/// All that a replay of the samples asks of the kernel for pages, files and safety. One fsync for
/// each file and directory outside pg_wal makes up most of the last column but one: a crash may
/// have left any of them unsynced.
#[test]
fn system_calls_of_the_samples() {
    const NAMES: [&str; 8] = [
        "lseek",
        "pread64",
        "pwrite64",
        "pwritev",
        "ftruncate",
        "rename",
        "fsync",
        "fdatasync",
    ];
    let budgets = [
        ("pgbench", [13, 14, 16, 4, 0, 1, 403, 1]),
        ("ddl", [189, 18, 69, 44, 0, 1, 562, 1]),
        ("locks", [12, 8, 19, 2, 0, 1, 389, 1]),
    ];
    for (name, budget) in budgets {
        let stats = replay(&Sample::named(name), "on");
        let counted = NAMES.map(|call| (call, calls(&stats, call)));
        let expected: Vec<(&str, u64)> = NAMES.into_iter().zip(budget).collect();
        assert_eq!(counted.to_vec(), expected, "{name}");
    }
}

const RELATIONS: u32 = 10_000;
/// A chunk of a fork's table, the unit in which pages to discard are looked for.
const CHUNK_BLOCKS: u32 = 64;
const BYSTANDER: RelFileLocator = RelFileLocator {
    spc: Oid(1663),
    db: Oid(5),
    rel: Oid(1),
};

/// Redo with hand-made records, each in a window of its own.
struct Loop {
    redo: Redo,
    lsn: u64,
    control: ControlFile,
}

impl Loop {
    fn start(data: &Path, buffers: u32) -> Loop {
        let control = control(data);
        let dir = DataDir::new(Kernel::new(), data, control.format).expect("a data directory");
        let options = RedoOptions {
            jobs: 1,
            buffers: u64::from(buffers) * BLOCK_BYTES as u64,
            smgr: SmgrOptions {
                nblocks_cache: NblocksCache::On,
                data_checksums: control.data_checksums(),
                sync: SyncMethod::None,
            },
            tablespaces: TablespaceMap::default(),
        };
        let checkpoint = control.check_point_copy;
        Loop {
            redo: Redo::start(dir, &control, &checkpoint, options).expect("a sound directory"),
            lsn: 0x1000_0000,
            control,
        }
    }

    fn apply(&mut self, rmid: u8, info: u8, main_data: &[u8], block: Option<BlockRef<'_>>) {
        let start = self.lsn;
        self.lsn += 0x100;
        let mut window = Window::new();
        let record = Record {
            lsn: Lsn(start),
            end_lsn: Lsn(self.lsn),
            overwritten: Lsn::INVALID,
            prev: Lsn(start - 0x100),
            total_bytes: 0x100,
            xid: self.control.check_point_copy.next_xid.xid(),
            info,
            rmid: RmgrId(rmid),
            origin: RepOriginId(0),
            toplevel_xid: None,
            blocks: block.into_iter().collect(),
            main_data,
            format: self.control.format,
        };
        window.push(record).expect("a whole record");
        self.redo.apply(&window).expect("a replay");
    }

    /// Heap INSERT+INIT: one small tuple on a new page.
    fn insert(&mut self, locator: RelFileLocator, block: BlockNumber) {
        // xl_heap_insert: offset number 1, no flags. Block: xl_heap_header, four bytes of data.
        let main_data = [1, 0, 0];
        let tuple = [1, 0, 0, 8, 24, 0xA0, 0xA1, 0xA2, 0xA3];
        let reference = BlockRef {
            id: 0,
            tag: BlockTag {
                locator,
                fork: ForkNumber::Main,
                block,
            },
            will_init: true,
            same_rel: false,
            has_data: true,
            image: None,
            data: &tuple,
        };
        self.apply(10, 0x80, &main_data, Some(reference));
    }

    /// Storage TRUNCATE of all forks.
    fn truncate(&mut self, locator: RelFileLocator, blocks: BlockNumber) {
        let words = [blocks, locator.spc.0, locator.db.0, locator.rel.0, 7];
        self.apply(2, 0x20, &bytes(&words), None);
    }

    /// Transaction COMMIT that drops a relation. It is always the same transaction, which ends
    /// again and again; its bits in pg_xact do not change any more.
    fn drop_relation(&mut self, locator: RelFileLocator) {
        // xact_time, xinfo with the bit for relations, one relation.
        let words = [0, 0, 4, 1, locator.spc.0, locator.db.0, locator.rel.0];
        self.apply(1, 0x80, &bytes(&words), None);
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Fills a pool of `buffers` pages but for 128 with a relation that stays, then makes, truncates
/// to one block and drops relations of `blocks` blocks. Returns what the pool did.
fn make_truncate_drop(buffers: u32, blocks: u32) -> PoolStats {
    let root = tempfile::tempdir().expect("a temp dir");
    let data = Sample::named("pgbench").unpack(root.path());
    let mut cluster = Loop::start(&data, buffers);
    (0..buffers - 128).for_each(|block| cluster.insert(BYSTANDER, block));
    for i in 0..RELATIONS {
        let locator = RelFileLocator {
            rel: Oid(100_000 + i),
            ..BYSTANDER
        };
        (0..blocks).for_each(|block| cluster.insert(locator, block));
        cluster.truncate(locator, 1);
        cluster.drop_relation(locator);
    }
    assert!(cluster.redo.missing().is_empty());
    cluster.redo.pool_stats()
}

/// PostgreSQL looks through all of shared_buffers for pages to discard when it does not know the
/// size of what is dropped. Here the fork's own table is looked at: the cost follows the blocks
/// that are dropped, whatever else is in memory.
#[test]
fn dropping_relations_never_scans_the_pool() {
    let visits_of = |blocks: u32| {
        // The truncation looks at all chunks but for the block that stays, the drop at the
        // chunk that has it.
        let entries = blocks.div_ceil(CHUNK_BLOCKS) * CHUNK_BLOCKS;
        u64::from(RELATIONS) * u64::from(entries - 1 + CHUNK_BLOCKS)
    };
    for blocks in [3, 100] {
        for buffers in [256, 8192] {
            let stats = make_truncate_drop(buffers, blocks);
            assert_eq!(stats.evicted, 0, "{buffers} buffers hold all there is");
            assert_eq!(
                stats.discard_visits,
                visits_of(blocks),
                "{blocks} blocks each, {buffers} buffers"
            );
        }
    }
}
