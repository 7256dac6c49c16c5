//! Which kinds of records the crash images hold that `tests/replay.rs` recovers. Every kind that
//! PostgreSQL 15 can write must be in one of them, and `tests/coverage.md` says in how many
//! records: `make coverage` writes it anew.

pub mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use pgredo::decode::Record;
use pgredo::pgdata::control::ControlFile;
use pgredo::rmgr::{RMGRS, identify};
use pgredo::sys::Kernel;
use pgredo::wal::{Batch, History, SegmentSource, WalLayout, WalReader};
use support::capture::Capture;
use support::recipe::Recipe;
use support::workloads as w;

/// The images, all of which `tests/replay.rs` recovers too.
const WORKLOADS: &[fn() -> Recipe] = &[
    w::pgbench,
    w::ddl_churn,
    w::schemas,
    w::locks,
    w::toast,
    w::vacuum,
    w::gin,
    w::gist_spgist,
    w::createdb,
    w::createdb_move,
    w::lifecycle,
    w::many_transactions,
    w::unlogged,
    w::hash_brin,
    w::hash_brin_no_page_images,
    w::mixed,
    w::torn_record,
    w::checksums,
    w::commit_timestamps,
    w::wal_level_minimal,
    w::wal_level_logical,
    w::hint_bits,
    w::rare_records,
    w::rare_minimal,
    w::rare_logical,
];

/// All kinds of records of PostgreSQL 15 by resource manager, in the order and with the names of
/// `src/backend/access/rmgrdesc`.
#[rustfmt::skip]
const KINDS: &[(&str, &[&str])] = &[
    ("XLOG", &["CHECKPOINT_SHUTDOWN", "CHECKPOINT_ONLINE", "NOOP", "NEXTOID", "SWITCH",
        "BACKUP_END", "PARAMETER_CHANGE", "RESTORE_POINT", "FPW_CHANGE", "END_OF_RECOVERY",
        "OVERWRITE_CONTRECORD", "FPI", "FPI_FOR_HINT"]),
    ("Transaction", &["COMMIT", "PREPARE", "ABORT", "COMMIT_PREPARED", "ABORT_PREPARED",
        "ASSIGNMENT", "INVALIDATION"]),
    ("Storage", &["CREATE", "TRUNCATE"]),
    ("CLOG", &["ZEROPAGE", "TRUNCATE"]),
    ("Database", &["CREATE_FILE_COPY", "CREATE_WAL_LOG", "DROP"]),
    ("Tablespace", &["CREATE", "DROP"]),
    ("MultiXact", &["ZERO_OFF_PAGE", "ZERO_MEM_PAGE", "CREATE_ID", "TRUNCATE_ID"]),
    ("RelMap", &["UPDATE"]),
    ("Standby", &["LOCK", "RUNNING_XACTS", "INVALIDATIONS"]),
    ("Heap2", &["REWRITE", "PRUNE", "VACUUM", "FREEZE_PAGE", "VISIBLE", "MULTI_INSERT",
        "MULTI_INSERT+INIT", "LOCK_UPDATED", "NEW_CID"]),
    ("Heap", &["INSERT", "INSERT+INIT", "DELETE", "UPDATE", "UPDATE+INIT", "HOT_UPDATE",
        "HOT_UPDATE+INIT", "TRUNCATE", "HEAP_CONFIRM", "LOCK", "INPLACE"]),
    ("Btree", &["INSERT_LEAF", "INSERT_UPPER", "INSERT_META", "SPLIT_L", "SPLIT_R", "INSERT_POST",
        "DEDUP", "VACUUM", "DELETE", "MARK_PAGE_HALFDEAD", "UNLINK_PAGE", "UNLINK_PAGE_META",
        "NEWROOT", "REUSE_PAGE", "META_CLEANUP"]),
    ("Hash", &["INIT_META_PAGE", "INIT_BITMAP_PAGE", "INSERT", "ADD_OVFL_PAGE",
        "SPLIT_ALLOCATE_PAGE", "SPLIT_PAGE", "SPLIT_COMPLETE", "MOVE_PAGE_CONTENTS",
        "SQUEEZE_PAGE", "DELETE", "SPLIT_CLEANUP", "UPDATE_META_PAGE", "VACUUM_ONE_PAGE"]),
    ("Gin", &["CREATE_PTREE", "INSERT", "SPLIT", "VACUUM_PAGE", "VACUUM_DATA_LEAF_PAGE",
        "DELETE_PAGE", "UPDATE_META_PAGE", "INSERT_LISTPAGE", "DELETE_LISTPAGE"]),
    ("Gist", &["PAGE_UPDATE", "DELETE", "PAGE_REUSE", "PAGE_SPLIT", "PAGE_DELETE", "ASSIGN_LSN"]),
    ("Sequence", &["LOG"]),
    ("SPGist", &["ADD_LEAF", "MOVE_LEAFS", "ADD_NODE", "SPLIT_TUPLE", "PICKSPLIT", "VACUUM_LEAF",
        "VACUUM_ROOT", "VACUUM_REDIRECT"]),
    ("BRIN", &["CREATE_INDEX", "INSERT", "INSERT+INIT", "UPDATE", "UPDATE+INIT",
        "SAMEPAGE_UPDATE", "REVMAP_EXTEND", "DESUMMARIZE"]),
    ("CommitTs", &["ZEROPAGE", "TRUNCATE"]),
    ("ReplicationOrigin", &["SET", "DROP"]),
    ("Generic", &["Generic"]),
    ("LogicalMessage", &["MESSAGE"]),
];

/// Kinds that no image holds, and why; unit tests redo those that can be written at all. One that
/// does appear must leave this list.
const ABSENT: &[(&str, &str, &str)] = &[
    ("XLOG", "NOOP", "nothing writes it"),
    (
        "Heap",
        "HOT_UPDATE+INIT",
        "the new tuple of a HOT update is on a page that has the old one",
    ),
    (
        "XLOG",
        "END_OF_RECOVERY",
        "written by promotion, which starts another timeline",
    ),
    (
        "CLOG",
        "TRUNCATE",
        "removes segments of a million transactions, all frozen",
    ),
    (
        "CommitTs",
        "TRUNCATE",
        "comes with freezing of tens of thousands of transactions",
    ),
    (
        "MultiXact",
        "TRUNCATE_ID",
        "comes with freezing of tens of thousands of multixacts",
    ),
];

/// Records by resource manager and kind.
type Counts = BTreeMap<(String, String), u64>;

/// Counts the records of an image from its checkpoint on.
fn count(image: &Path, counts: &mut Counts) {
    let bytes = std::fs::read(image.join("global/pg_control")).expect("pg_control");
    let control = ControlFile::parse(&bytes).expect("pg_control");
    let layout = WalLayout {
        segment_bytes: control.xlog_seg_size.into(),
        system_identifier: control.system_identifier,
        format: control.format,
    };
    let history = History::single(control.check_point_copy.this_tli);
    let wal = image.join("pg_wal");
    let source = SegmentSource::new(Kernel::new(), layout, vec![wal], history);
    let mut reader = WalReader::new(source, control.check_point_copy.redo);
    let mut batch = Batch::new();
    loop {
        reader
            .fill(&mut batch, 4096, 1 << 20)
            .expect("readable WAL");
        for raw in batch.records() {
            let record = Record::decode(raw, control.format).expect("a sound record");
            let rmgr = RMGRS[usize::from(record.rmid.0)].name.to_owned();
            *counts
                .entry((rmgr, identify(&record).into_owned()))
                .or_default() += 1;
        }
        if batch.end().is_some() {
            return;
        }
    }
}

fn count_all() -> Counts {
    let mut counts = Counts::new();
    for workload in WORKLOADS {
        count(&Capture::of(workload()).image(), &mut counts);
    }
    counts
}

/// The kinds as a table: counts are rounded down to a power of ten, since no two runs of a server
/// write the same number of records.
fn table(counts: &Counts) -> String {
    let mut text = String::from(
        "# Records in the crash images\n\n\
         Written by `make coverage`: how many records of each kind of PostgreSQL 15 the images of\n\
         `tests/replay.rs` have after their checkpoint.\n\n\
         | Resource manager | Record | At least |\n|---|---|---:|\n",
    );
    for (rmgr, kinds) in KINDS {
        for kind in *kinds {
            let found = counts.get(&(String::from(*rmgr), String::from(*kind)));
            let absent = ABSENT
                .iter()
                .find(|absent| (absent.0, absent.1) == (*rmgr, *kind));
            let amount = match (found, absent) {
                (Some(found), _) => 10_u64.pow(found.ilog10()).to_string(),
                (None, Some((_, _, why))) => format!("none: {why}"),
                (None, None) => "none".to_owned(),
            };
            writeln!(text, "| {rmgr} | {kind} | {amount} |").expect("memory");
        }
    }
    text
}

#[test]
fn every_kind_of_record_is_recovered() {
    let counts = count_all();
    if std::env::var_os("PGREDO_WRITE_COVERAGE").is_some() {
        let path = support::repository().join("tests/coverage.md");
        std::fs::write(path, table(&counts)).expect("the repository can be written");
    }
    let known: BTreeSet<(&str, &str)> = (KINDS.iter())
        .flat_map(|(rmgr, kinds)| kinds.iter().map(move |kind| (*rmgr, *kind)))
        .collect();
    let found: BTreeSet<(&str, &str)> = (counts.keys())
        .map(|(rmgr, kind)| (rmgr.as_str(), kind.as_str()))
        .collect();
    let absent: BTreeSet<(&str, &str)> = ABSENT.iter().map(|absent| (absent.0, absent.1)).collect();
    let unknown: Vec<_> = found.difference(&known).collect();
    assert!(
        unknown.is_empty(),
        "records that are in no table: {unknown:?}"
    );
    let missing: Vec<_> = (&known - &found).difference(&absent).copied().collect();
    assert!(missing.is_empty(), "no image has {missing:?}");
    let there: Vec<_> = absent.intersection(&found).collect();
    assert!(there.is_empty(), "said to be absent, yet there: {there:?}");
}
