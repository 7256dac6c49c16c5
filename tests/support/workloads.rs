//! The workloads whose crashes are recovered.

use super::postgres::Stop;
use super::recipe::{Recipe, Step};
use Step::{Bench, KeepControl, Restart, Scripts, Session, Sql};

const DDL_CHURN: &str = include_str!("../workloads/ddl_churn.sql");
const SCHEMAS: &str = include_str!("../workloads/schemas.sql");
const LOCKS_SETUP: &str = include_str!("../workloads/locks_setup.sql");
const LOCKS_SHARE: &str = include_str!("../workloads/locks_share.sql");
const LOCKS_UPDATE: &str = include_str!("../workloads/locks_update.sql");
const LOCKS_ABORT: &str = include_str!("../workloads/locks_abort.sql");
const LOCKS_PREPARED: &str = include_str!("../workloads/locks_prepared.sql");
const TOAST: &str = include_str!("../workloads/toast.sql");
const VACUUM: &str = include_str!("../workloads/vacuum.sql");
const GIN: &str = include_str!("../workloads/gin.sql");
const GIST_SPGIST: &str = include_str!("../workloads/gist_spgist.sql");
const CREATEDB: &str = include_str!("../workloads/createdb.sql");
const CREATEDB_MOVE: &str = include_str!("../workloads/createdb_move.sql");
const LIFECYCLE_BEFORE: &str = include_str!("../workloads/lifecycle_before.sql");
const LIFECYCLE: &str = include_str!("../workloads/lifecycle.sql");
const MANY_TRANSACTIONS: &str = include_str!("../workloads/many_transactions.sql");
const CHAIN_UPDATE: &str = include_str!("../workloads/chain_update.sql");
const CHAIN_LOCK: &str = include_str!("../workloads/chain_lock.sql");
const HASH_BRIN: &str = include_str!("../workloads/hash_brin.sql");
const RARE_RECORDS: &str = include_str!("../workloads/rare_records.sql");
const RARE_MINIMAL: &str = include_str!("../workloads/rare_minimal.sql");
const RARE_LOGICAL: &str = include_str!("../workloads/rare_logical.sql");
const UNLOGGED: &str = include_str!("../workloads/unlogged.sql");
const MIXED: &str = include_str!("../workloads/mixed.sql");
const OPEN: &str = include_str!("../workloads/open.sql");

/// The standard benchmark, from its initial load on.
pub fn pgbench() -> Recipe {
    Recipe::new(
        "pgbench",
        vec![
            Sql("CHECKPOINT"),
            Bench(&["-i", "-q", "-s", "10"]),
            Bench(&["-n", "-M", "prepared", "-c", "4", "-j", "2", "-t", "1500"]),
        ],
    )
}

/// Tables made, altered, truncated and dropped; rollbacks; materialized views; sequences.
pub fn ddl_churn() -> Recipe {
    Recipe::new("ddl_churn", vec![Sql(DDL_CHURN)])
}

/// A thousand schemas in one transaction.
pub fn schemas() -> Recipe {
    let settings = &["max_locks_per_transaction = 400"];
    Recipe::new("schemas", vec![Sql("CHECKPOINT"), Sql(SCHEMAS)]).variant("schemas", settings)
}

/// Row locks by many sessions at once, multixacts, savepoints, prepared transactions.
pub fn locks() -> Recipe {
    let storm = &["-c", "8", "-j", "2", "-t", "150"];
    Recipe::new(
        "locks",
        vec![
            Sql(LOCKS_SETUP),
            Scripts(
                storm,
                &[LOCKS_SHARE, LOCKS_SHARE, LOCKS_UPDATE, LOCKS_ABORT],
            ),
            Sql("VACUUM FREEZE parent"),
            Sql(LOCKS_PREPARED),
            // Meets the locks of the prepared transaction, which share locks tolerate.
            Scripts(storm, &[LOCKS_SHARE]),
        ],
    )
}

/// Rows too wide for a page.
pub fn toast() -> Recipe {
    Recipe::new("toast", vec![Sql(TOAST)])
}

/// VACUUM in its forms, CLUSTER, index builds.
pub fn vacuum() -> Recipe {
    Recipe::new("vacuum", vec![Sql(VACUUM)])
}

/// GIN indexes: pending lists, posting trees, entry trees of several levels, and VACUUM of them.
pub fn gin() -> Recipe {
    Recipe::new("gin", vec![Sql(GIN)])
}

/// The same with images that the redo of each record must lead to, beside its data.
pub fn gin_consistency_checked() -> Recipe {
    let settings = &["wal_consistency_checking = gin", "wal_compression = lz4"];
    gin().variant("gin_consistency_checked", settings)
}

/// Databases by both strategies, tablespaces in and outside the data directory.
pub fn createdb() -> Recipe {
    let mut recipe = Recipe::new("createdb", vec![Sql(CREATEDB)]);
    recipe.locations = &["outside", "moved"];
    recipe
}

/// Databases moved between tablespaces and dropped with them.
pub fn createdb_move() -> Recipe {
    let mut recipe = Recipe::new("createdb_move", vec![Sql(CREATEDB_MOVE)]);
    recipe.locations = &["outside"];
    recipe
}

/// A server's life from a checkpoint far back: restarts, a crash, a change of parameters,
/// backups, databases by file copy, tablespaces and databases dropped.
pub fn lifecycle() -> Recipe {
    let steps = vec![
        Sql(LIFECYCLE_BEFORE),
        KeepControl,
        Sql(LIFECYCLE),
        Restart(Stop::Fast, &["max_connections = 90"]),
        Sql("BEGIN; UPDATE item SET body = 'prepared' WHERE id < 100; PREPARE TRANSACTION 'p'"),
        // Long enough for the WAL writer to flush whole pages, which tears the last record.
        Session(
            "BEGIN; UPDATE item SET body = repeat('torn', 50) WHERE id > 100; SELECT pg_sleep(1);",
        ),
        Restart(
            Stop::Kill,
            &["max_connections = 95", "track_commit_timestamp = on"],
        ),
        Sql("INSERT INTO item (body) SELECT 'after the crash' FROM generate_series(1, 500)"),
        Sql("COMMIT PREPARED 'p'; VACUUM item;"),
    ];
    let mut recipe = Recipe::new("lifecycle", steps).variant("lifecycle", &["wal_keep_size = 4GB"]);
    recipe.locations = &["outside", "moved"];
    recipe
}

/// New pages of pg_xact, pg_commit_ts and both multixact SLRUs; speculative insertions; locks
/// that follow a row's updates; truncation as logical decoding wants it.
pub fn many_transactions() -> Recipe {
    let storm = &["-c", "6", "-j", "2", "-t", "150"];
    let steps = vec![
        Sql(MANY_TRANSACTIONS),
        Scripts(storm, &[CHAIN_UPDATE, CHAIN_LOCK]),
    ];
    let settings = &["track_commit_timestamp = on", "wal_level = logical"];
    Recipe::new("many_transactions", steps).variant("many_transactions", settings)
}

/// Unlogged tables, indexes and sequences.
pub fn unlogged() -> Recipe {
    Recipe::new("unlogged", vec![Sql(UNLOGGED)])
}

/// Hash, BRIN and bloom indexes, all from one checkpoint on.
pub fn hash_brin() -> Recipe {
    Recipe::new("hash_brin", vec![Sql("CHECKPOINT"), Sql(HASH_BRIN)])
}

/// The same with the images that each of their records must lead to.
pub fn hash_brin_consistency_checked() -> Recipe {
    let settings = &[
        "wal_consistency_checking = 'hash,brin,generic'",
        "wal_compression = lz4",
    ];
    hash_brin().variant("hash_brin_consistency_checked", settings)
}

/// The same without images and with so few buffers that pages of all ages are on disk.
pub fn hash_brin_no_page_images() -> Recipe {
    let settings = &["full_page_writes = off", "shared_buffers = 1MB"];
    hash_brin().variant("hash_brin_no_page_images", settings)
}

/// A bit of everything, with a transaction still open at the crash whose records were flushed by
/// the commit of another. The other variants are made from it.
pub fn mixed() -> Recipe {
    Recipe::new(
        "mixed",
        vec![
            Sql(MIXED),
            Session(OPEN),
            Sql("INSERT INTO late VALUES (-1)"),
        ],
    )
}

/// The same without that commit: WAL ends in the middle of a record of the open transaction, and
/// recovery writes an overwrite-contrecord after it.
pub fn torn_record() -> Recipe {
    Recipe::new("torn_record", vec![Sql(MIXED), Session(OPEN)])
}

/// [`mixed`] with check sums in every page, which also makes hint bits write page images.
pub fn checksums() -> Recipe {
    mixed().variant("checksums", &[]).initdb(&["-k"])
}

/// No page images: redo rests on the pages as the crash left them.
pub fn no_page_images() -> Recipe {
    mixed().variant("no_page_images", &["full_page_writes = off"])
}

/// Page images compressed by PostgreSQL's own method.
pub fn pglz() -> Recipe {
    mixed().variant("pglz", &["wal_compression = pglz"])
}

/// Page images compressed with LZ4.
pub fn lz4() -> Recipe {
    mixed().variant("lz4", &["wal_compression = lz4"])
}

/// Page images compressed with Zstandard, which only Debian's build of 15 can write.
pub fn zstd() -> Recipe {
    let mut recipe = mixed().variant("zstd", &["wal_compression = zstd"]);
    recipe.tree = "15-debian";
    recipe
}

/// Commit timestamps, an SLRU that is usually empty.
pub fn commit_timestamps() -> Recipe {
    mixed().variant("commit_timestamps", &["track_commit_timestamp = on"])
}

/// So few buffers that pages go to disk all the time, in the middle of everything.
pub fn small_buffers() -> Recipe {
    mixed()
        .variant("small_buffers", &["shared_buffers = 1MB"])
        .initdb(&["-k"])
}

/// WAL that leaves out what a new file's own fsync makes safe.
pub fn wal_level_minimal() -> Recipe {
    mixed().variant(
        "wal_level_minimal",
        &["wal_level = minimal", "max_wal_senders = 0"],
    )
}

/// WAL with what logical decoding needs.
pub fn wal_level_logical() -> Recipe {
    mixed().variant("wal_level_logical", &["wal_level = logical"])
}

/// Many small segments: records and images that cross their ends.
pub fn small_segments() -> Recipe {
    mixed()
        .variant("small_segments", &[])
        .initdb(&["--wal-segsize=1"])
}

/// Every record carries the images that its redo must lead to, compressed for their size.
pub fn consistency_checked() -> Recipe {
    let settings = &["wal_consistency_checking = all", "wal_compression = lz4"];
    mixed().variant("consistency_checked", settings)
}

/// Hint bits logged without check sums, and the postmaster stopped with SIGQUIT.
pub fn hint_bits() -> Recipe {
    let mut recipe = mixed().variant("hint_bits", &["wal_log_hints = on"]);
    recipe.crash = Stop::Immediate;
    recipe
}

/// GiST and SP-GiST indexes: grown, split, vacuumed, pages deleted and used again.
pub fn gist_spgist() -> Recipe {
    Recipe::new("gist_spgist", vec![Sql(GIST_SPGIST)])
}

/// Kinds of records that the others do not reach.
pub fn rare_records() -> Recipe {
    Recipe::new("rare_records", vec![Sql("CHECKPOINT"), Sql(RARE_RECORDS)])
}

/// The same, of wal_level minimal.
pub fn rare_minimal() -> Recipe {
    let settings = &["wal_level = minimal", "max_wal_senders = 0"];
    Recipe::new("rare_minimal", vec![Sql("CHECKPOINT"), Sql(RARE_MINIMAL)])
        .variant("rare_minimal", settings)
}

/// The same, of wal_level logical.
pub fn rare_logical() -> Recipe {
    Recipe::new("rare_logical", vec![Sql("CHECKPOINT"), Sql(RARE_LOGICAL)])
        .variant("rare_logical", &["wal_level = logical"])
}
