//! pgredo against PostgreSQL: a real server crashes, PostgreSQL recovers one copy of its
//! directory and pgredo another, and the two must be the same. Then the real server starts on
//! pgredo's.

pub mod support;

use support::capture::{Capture, ReplayOptions};
use support::compare::{assert_same, assert_same_but_for_free_space};
use support::recipe::Recipe;
use support::workloads;

/// Both orders, and page order cut into many small windows.
fn check(recipe: Recipe) {
    check_with(recipe.clone(), &ReplayOptions::RECORD);
    check_with(recipe.clone(), &ReplayOptions::PAGE);
    check_with(recipe, &ReplayOptions::SMALL_WINDOWS);
}

fn check_with(recipe: Recipe, options: &ReplayOptions) {
    let capture = Capture::of(recipe);
    let reference = capture.reference();
    let ours = capture.replay(options);
    match options.order {
        "page" => assert_same_but_for_free_space(&capture, &reference, &ours),
        _ => assert_same(&capture, &reference, &ours),
    }
    ours.starts_clean(capture.tree());
}

#[test]
fn pgbench() {
    check(workloads::pgbench());
}

#[test]
fn ddl_churn() {
    check(workloads::ddl_churn());
}

#[test]
fn schemas() {
    check(workloads::schemas());
}

#[test]
fn locks() {
    check(workloads::locks());
}

#[test]
fn toast() {
    check(workloads::toast());
}

#[test]
fn vacuum() {
    check(workloads::vacuum());
}

#[test]
fn gin() {
    check(workloads::gin());
}

#[test]
fn gin_consistency_checked() {
    check(workloads::gin_consistency_checked());
}

#[test]
fn gist_spgist() {
    check(workloads::gist_spgist());
}

#[test]
fn rare_records() {
    check(workloads::rare_records());
}

#[test]
fn rare_minimal() {
    check(workloads::rare_minimal());
}

#[test]
fn rare_logical() {
    check(workloads::rare_logical());
}

#[test]
fn createdb() {
    check(workloads::createdb());
}

#[test]
fn createdb_move() {
    check(workloads::createdb_move());
}

#[test]
fn lifecycle() {
    check(workloads::lifecycle());
}

#[test]
fn many_transactions() {
    check(workloads::many_transactions());
}

#[test]
fn unlogged() {
    check(workloads::unlogged());
}

#[test]
fn hash_brin() {
    check(workloads::hash_brin());
}

#[test]
fn hash_brin_consistency_checked() {
    check(workloads::hash_brin_consistency_checked());
}

#[test]
fn hash_brin_no_page_images() {
    check(workloads::hash_brin_no_page_images());
}

#[test]
fn mixed() {
    check(workloads::mixed());
}

#[test]
fn torn_record() {
    check(workloads::torn_record());
}

#[test]
fn checksums() {
    check(workloads::checksums());
}

#[test]
fn no_page_images() {
    check(workloads::no_page_images());
}

#[test]
fn pglz() {
    check(workloads::pglz());
}

#[test]
fn lz4() {
    check(workloads::lz4());
}

#[test]
fn zstd() {
    check(workloads::zstd());
}

#[test]
fn commit_timestamps() {
    check(workloads::commit_timestamps());
}

#[test]
fn small_buffers() {
    check(workloads::small_buffers());
}

#[test]
fn wal_level_minimal() {
    check(workloads::wal_level_minimal());
}

#[test]
fn wal_level_logical() {
    check(workloads::wal_level_logical());
}

#[test]
fn small_segments() {
    check(workloads::small_segments());
}

#[test]
fn consistency_checked() {
    check(workloads::consistency_checked());
}

#[test]
fn hint_bits() {
    check(workloads::hint_bits());
}

/// Sizes asked from the kernel each time, as PostgreSQL 13 did, lead to the same bytes.
#[test]
fn without_nblocks_cache() {
    check_with(workloads::ddl_churn(), &ReplayOptions::RECORD_WITHOUT_CACHE);
    check_with(workloads::createdb(), &ReplayOptions::RECORD_WITHOUT_CACHE);
}
