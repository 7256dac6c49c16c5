//! The bytes expected here were written by a PostgreSQL 15.19 server.

use std::path::Path;

use tempfile::TempDir;

use super::*;
use crate::format::WalFormat;
use crate::sys::Kernel;
use crate::types::BLOCK_BYTES;

const PAGE: usize = BLOCK_BYTES;

/// The first eight bytes of an entry of pg_commit_ts.
const COMMIT_TIME: [u8; 8] = [0x2E, 0x57, 0x8B, 0x79, 0x85, 0x04, 0x03, 0x00];

fn data_dir() -> (TempDir, DataDir) {
    let root = tempfile::tempdir().unwrap();
    for directory in [
        "pg_xact",
        "pg_multixact/offsets",
        "pg_multixact/members",
        "pg_commit_ts",
    ] {
        std::fs::create_dir_all(root.path().join(directory)).unwrap();
    }
    let dir = DataDir::new(Kernel::new(), root.path(), WalFormat::ALL[0]).unwrap();
    (root, dir)
}

fn ends(xid: u32, multi: u32, offset: u32) -> SlruEnds {
    SlruEnds {
        next_xid: TransactionId(xid),
        next_multi: MultiXactId(multi),
        next_multi_offset: MultiXactOffset(offset),
    }
}

fn slrus(dir: &DataDir) -> Slrus {
    Slrus::open(dir, ends(1000, 2, 3), CommitTsRange::default())
}

fn read(root: &TempDir, file: &str) -> Vec<u8> {
    std::fs::read(root.path().join(file)).unwrap()
}

fn u32s(root: &TempDir, file: &str, at: usize, count: usize) -> Vec<u32> {
    let bytes = read(root, file);
    let words = bytes[at..at + 4 * count].chunks_exact(4);
    words
        .map(|w| u32::from_le_bytes(w.try_into().unwrap()))
        .collect()
}

fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn set(s: &mut Slrus, xid: u32, subxids: &[u32], state: XidState) -> Result<(), SlruError> {
    let subxids = subxids.iter().map(|x| TransactionId(*x));
    s.set_xid_status(TransactionId(xid), subxids, state)
}

fn create(s: &mut Slrus, id: u32, offset: u32, members: &[(u32, u8)]) {
    let members = members
        .iter()
        .map(|(x, status)| (TransactionId(*x), *status));
    s.create_multixact(MultiXactId(id), MultiXactOffset(offset), members)
        .unwrap();
}

#[test]
fn last_pages_of_the_32_bit_space() {
    let last = |slru: Slru| (slru.max_page(), slru.max_page() / PAGES_PER_SEGMENT);
    assert_eq!(last(Slru::Clog), (131_071, 0xFFF));
    assert_eq!(last(Slru::MultiXactOffsets), (2_097_151, 0xFFFF));
    assert_eq!(last(Slru::MultiXactMembers), (2_625_285, 0x14078));
    assert_eq!(last(Slru::CommitTs), (5_244_160, 0x28028));
}

#[test]
fn page_order_wraps() {
    for slru in [Slru::Clog, Slru::CommitTs, Slru::MultiXactOffsets] {
        let max = slru.max_page();
        assert!(slru.page_precedes(0, 1), "{slru:?}");
        assert!(!slru.page_precedes(1, 1), "{slru:?}");
        assert!(!slru.page_precedes(1, 0), "{slru:?}");
        assert!(slru.page_precedes(max - 1, 1), "{slru:?}");
        // Half the space away, both ends of a page must agree.
        let half = max / 2 + 1;
        let both = slru.page_precedes(0, half) && slru.page_precedes(half, 0);
        assert!(!both, "{slru:?}");
    }
}

#[test]
fn pg_xact_is_what_a_server_wrote() {
    let (root, dir) = data_dir();
    let mut s = slrus(&dir);
    s.zero_page(Slru::Clog, 0).unwrap();
    for xid in 720..726 {
        set(&mut s, xid, &[], XidState::Committed).unwrap();
    }
    set(&mut s, 728, &[], XidState::Committed).unwrap();
    set(&mut s, 730, &[], XidState::Aborted).unwrap();
    set(&mut s, 729, &[], XidState::Committed).unwrap();
    s.flush(true).unwrap();
    let bytes = read(&root, "pg_xact/0000");
    assert_eq!(bytes.len(), PAGE);
    assert_eq!(bytes[180..184], [0x55, 0x05, 0x25, 0]);
    assert_eq!(s.xid_state(TransactionId(730)), Ok(XidState::Aborted));
    assert_eq!(s.xid_state(TransactionId(726)), Ok(XidState::InProgress));
}

#[test]
fn a_tree_spans_pages_and_an_old_state_is_replaced() {
    let (root, dir) = data_dir();
    let mut s = slrus(&dir);
    set(&mut s, 32767, &[32768, 65536], XidState::SubCommitted).unwrap();
    set(&mut s, 32767, &[32768, 65536], XidState::Committed).unwrap();
    s.flush(false).unwrap();
    let bytes = read(&root, "pg_xact/0000");
    assert_eq!(bytes.len(), 3 * PAGE);
    assert_eq!(
        (bytes[PAGE - 1], bytes[PAGE], bytes[2 * PAGE]),
        (0x40, 1, 1)
    );
    assert_eq!(bytes.iter().filter(|b| **b != 0).count(), 3);
}

#[test]
fn a_missing_file_is_zeros_and_reported_a_short_one_is_an_error() {
    let (root, dir) = data_dir();
    let mut s = slrus(&dir);
    set(&mut s, 5, &[], XidState::Committed).unwrap();
    let path = root.path().join("pg_xact/0000");
    assert_eq!(s.files_read_as_zeros(), std::slice::from_ref(&path));
    s.flush(true).unwrap();
    // The file was missing when the run began: what follows the page written is still zeros.
    set(&mut s, 32768, &[], XidState::Committed).unwrap();

    for bytes in [0, 1, PAGE - 1] {
        std::fs::write(&path, vec![0x55; bytes]).unwrap();
        let mut s = slrus(&dir);
        let err = set(&mut s, 5, &[], XidState::Committed).unwrap_err();
        let path = path.clone();
        assert_eq!(
            err,
            SlruError::ShortFile {
                path,
                page: 0,
                read: bytes
            }
        );
    }
}

#[test]
fn a_page_in_the_middle_makes_a_file_that_ends_with_it() {
    let (root, dir) = data_dir();
    let mut s = slrus(&dir);
    s.zero_page(Slru::Clog, 32 + 7).unwrap();
    assert_eq!(read(&root, "pg_xact/0001"), vec![0; 8 * PAGE]);
    s.zero_page(Slru::CommitTs, 0x10000 * 2 + 31).unwrap();
    assert_eq!(names(&root.path().join("pg_commit_ts")), ["1000"]);
    s.zero_page(Slru::MultiXactMembers, 2_625_285).unwrap();
    assert_eq!(names(&root.path().join("pg_multixact/members")), ["14078"]);
}

#[test]
fn pages_beyond_the_last_id_are_refused() {
    let (_root, dir) = data_dir();
    let mut s = slrus(&dir);
    for slru in [
        Slru::Clog,
        Slru::MultiXactOffsets,
        Slru::MultiXactMembers,
        Slru::CommitTs,
    ] {
        let max = slru.max_page();
        for page in [u64::from(max) + 1, u64::from(u32::MAX) + 1, u64::MAX] {
            let err = SlruError::PageOutOfRange { slru, page, max };
            assert_eq!(s.zero_page(slru, page), Err(err));
        }
        s.zero_page(slru, u64::from(max)).unwrap();
    }
    assert!(s.truncate_clog(u64::MAX).is_err());
    assert!(s.truncate_commit_ts(u64::MAX, TransactionId(3)).is_err());
}

#[test]
fn more_pages_than_slots_all_reach_the_files() {
    let (root, dir) = data_dir();
    let mut s = slrus(&dir);
    for page in 0..300 {
        set(&mut s, page * 32768 + 4, &[], XidState::Aborted).unwrap();
    }
    for page in (0..300).rev() {
        set(&mut s, page * 32768 + 8, &[], XidState::Committed).unwrap();
    }
    s.flush(true).unwrap();
    for page in 0..300usize {
        let bytes = read(&root, &format!("pg_xact/{:04X}", page / 32));
        assert_eq!(bytes[page % 32 * PAGE..][..4], [0, 2, 1, 0], "{page}");
    }
}

#[test]
fn flushing_writes_neighbours_together_and_only_what_changed() {
    use crate::sys::Syscall;
    let (_root, dir) = data_dir();
    let mut s = slrus(&dir);
    for page in [3, 1, 2] {
        set(&mut s, page * 32768, &[], XidState::Committed).unwrap();
    }
    let calls = |which| dir.kernel().calls(which);
    s.flush(true).unwrap();
    assert_eq!(calls(Syscall::Pwritev), 1);
    assert_eq!(calls(Syscall::Pwrite64), 0);
    assert_eq!(calls(Syscall::Fsync), 2);
    s.flush(true).unwrap();
    assert_eq!(calls(Syscall::Pwritev), 1);
    assert_eq!(calls(Syscall::Fsync), 2);
    let opened = calls(Syscall::Openat);
    for xid in 32768..33000 {
        set(&mut s, xid, &[], XidState::Committed).unwrap();
    }
    assert_eq!(calls(Syscall::Openat), opened);
}

#[test]
fn truncation_removes_whole_segments_and_spares_strange_names() {
    let (root, dir) = data_dir();
    let mut s = Slrus::open(&dir, ends(100 * 32768, 2, 3), CommitTsRange::default());
    for page in [0, 31, 32, 63, 64, 100] {
        s.zero_page(Slru::Clog, page).unwrap();
    }
    let directory = root.path().join("pg_xact");
    for name in ["00", "000a", "0000.tmp", "0000000"] {
        std::fs::write(directory.join(name), "x").unwrap();
    }
    assert_eq!(s.truncate_clog(63), Ok(Truncation::Done));
    assert_eq!(
        names(&directory),
        ["00", "0000.tmp", "0000000", "0001", "0002", "0003", "000a"]
    );
    assert_eq!(s.truncate_clog(64), Ok(Truncation::Done));
    assert!(!directory.join("0001").exists());
    assert_eq!(s.truncate_clog(101), Ok(Truncation::ApparentWraparound));
    assert!(directory.join("0002").exists());
    // What is written later to a segment that went starts from zeros.
    set(&mut s, 7, &[], XidState::Committed).unwrap();
    s.flush(true).unwrap();
    assert_eq!(read(&root, "pg_xact/0000").len(), PAGE);
}

#[test]
fn truncation_across_the_wraparound_of_ids() {
    let (root, dir) = data_dir();
    let mut s = Slrus::open(&dir, ends(40 * 32768, 2, 3), CommitTsRange::default());
    for page in [131_071, 131_040 - 32, 0, 40] {
        s.zero_page(Slru::Clog, page).unwrap();
    }
    assert_eq!(s.truncate_clog(131_071), Ok(Truncation::Done));
    let directory = root.path().join("pg_xact");
    assert_eq!(names(&directory), ["0000", "0001", "0FFF"]);
    assert_eq!(s.truncate_clog(33), Ok(Truncation::Done));
    assert_eq!(names(&directory), ["0001"]);
}

#[test]
fn trim_clears_unassigned_transactions_only() {
    let (root, dir) = data_dir();
    let mut s = slrus(&dir);
    std::fs::write(root.path().join("pg_xact/0000"), vec![0xFF; 2 * PAGE]).unwrap();
    s.zero_page(Slru::MultiXactOffsets, 0).unwrap();
    s.trim(ends(32768 + 6, 1, 1)).unwrap();
    s.flush(true).unwrap();
    let bytes = read(&root, "pg_xact/0000");
    assert_eq!(bytes[PAGE..PAGE + 4], [0xFF, 0x0F, 0, 0]);
    assert!(bytes[PAGE + 4..].iter().all(|b| *b == 0));
    assert!(bytes[..PAGE].iter().all(|b| *b == 0xFF));
}

#[test]
fn trim_needs_its_pages_unless_they_begin_with_the_next_id() {
    let (root, dir) = data_dir();
    let mut s = slrus(&dir);
    let path = root.path().join("pg_xact/0000");
    let err = s.trim(ends(32768 + 1, 1, 1)).unwrap_err();
    assert_eq!(err, SlruError::MissingFile { path, page: 1 });
    s.trim(ends(32768, 2048, 1)).unwrap();
    s.flush(true).unwrap();
    assert!(names(&root.path().join("pg_xact")).is_empty());
    assert_eq!(u32s(&root, "pg_multixact/offsets/0000", PAGE, 2), [1, 0]);
}

#[test]
fn multixact_is_what_a_server_wrote() {
    let (root, dir) = data_dir();
    let mut s = Slrus::open(&dir, ends(1000, 1, 1), CommitTsRange::default());
    s.zero_page(Slru::MultiXactOffsets, 0).unwrap();
    s.zero_page(Slru::MultiXactMembers, 0).unwrap();
    create(&mut s, 1, 1, &[(0x2D6, 1), (0x2D8, 1)]);
    s.flush(true).unwrap();
    assert_eq!(u32s(&root, "pg_multixact/offsets/0000", 0, 4), [0, 1, 3, 0]);
    let members = read(&root, "pg_multixact/members/0000");
    assert_eq!(
        members[..20],
        [
            0, 1, 1, 0, 0, 0, 0, 0, 0xD6, 2, 0, 0, 0xD8, 2, 0, 0, 0, 0, 0, 0
        ]
    );
}

#[test]
fn members_cross_groups_and_pages() {
    let (root, dir) = data_dir();
    let mut s = slrus(&dir);
    create(&mut s, 5, 1634, &[(10, 0), (11, 1), (12, 2), (13, 5)]);
    s.flush(false).unwrap();
    let members = read(&root, "pg_multixact/members/0000");
    // Group 408 is the last of the page; 12 bytes after it are unused.
    assert_eq!(members[8160..8164], [0, 0, 0, 1]);
    assert_eq!(members[8172..8180], [10, 0, 0, 0, 11, 0, 0, 0]);
    assert!(members[8180..8192].iter().all(|b| *b == 0));
    assert_eq!(members[PAGE..PAGE + 4], [2, 5, 0, 0]);
    assert_eq!(members[PAGE + 4..PAGE + 12], [12, 0, 0, 0, 13, 0, 0, 0]);
}

#[test]
fn the_page_of_the_next_multixact_is_made_early_and_not_wiped() {
    let (root, dir) = data_dir();
    let mut s = slrus(&dir);
    s.zero_page(Slru::MultiXactOffsets, 0).unwrap();
    create(&mut s, 2047, 10, &[(100, 0), (101, 0)]);
    let file = "pg_multixact/offsets/0000";
    s.flush(false).unwrap();
    assert_eq!(u32s(&root, file, 2047 * 4, 2), [10, 12]);
    s.zero_page(Slru::MultiXactOffsets, 1).unwrap();
    s.flush(false).unwrap();
    assert_eq!(u32s(&root, file, 2047 * 4, 2), [10, 12]);
    // It is skipped once only.
    s.zero_page(Slru::MultiXactOffsets, 1).unwrap();
    assert_eq!(u32s(&root, file, 2047 * 4, 2), [10, 0]);
}

#[test]
fn without_a_zeroed_page_the_file_tells_whether_the_next_one_exists() {
    let (root, dir) = data_dir();
    let file = root.path().join("pg_multixact/offsets/0000");
    std::fs::write(&file, vec![7; 2 * PAGE]).unwrap();
    let mut s = slrus(&dir);
    create(&mut s, 2047, 10, &[(100, 0)]);
    s.flush(false).unwrap();
    let words = u32s(&root, "pg_multixact/offsets/0000", 2046 * 4, 4);
    assert_eq!(words, [0x0707_0707, 10, 11, 0x0707_0707]);
    create(&mut s, 4095, 30, &[(100, 0)]);
    s.flush(false).unwrap();
    let words = u32s(&root, "pg_multixact/offsets/0000", 2 * PAGE, 2);
    assert_eq!(words, [31, 0]);
}

#[test]
fn ids_and_offsets_wrap_past_zero() {
    let (root, dir) = data_dir();
    let mut s = Slrus::open(
        &dir,
        ends(1000, u32::MAX, u32::MAX),
        CommitTsRange::default(),
    );
    create(&mut s, u32::MAX, u32::MAX, &[(100, 4)]);
    s.flush(false).unwrap();
    // The next id is 1 and the next offset 1: both zeros are skipped.
    assert_eq!(u32s(&root, "pg_multixact/offsets/0000", 0, 3), [0, 1, 0]);
    let last = read(&root, "pg_multixact/offsets/FFFF");
    assert_eq!(last[last.len() - 4..], [0xFF; 4]);
    assert_eq!(names(&root.path().join("pg_multixact/members")), ["14078"]);
}

#[test]
fn multixact_trim_stores_the_next_offset_and_clears_the_rest() {
    let (root, dir) = data_dir();
    for file in ["pg_multixact/offsets/0000", "pg_multixact/members/0000"] {
        std::fs::write(root.path().join(file), vec![0xFF; PAGE]).unwrap();
    }
    let mut s = slrus(&dir);
    s.trim(ends(3 * 32768, 2, 6)).unwrap();
    s.flush(true).unwrap();
    let offsets = u32s(&root, "pg_multixact/offsets/0000", 0, 2048);
    assert_eq!(offsets[..4], [u32::MAX, u32::MAX, 6, 0]);
    assert!(offsets[2..].iter().skip(1).all(|o| *o == 0));
    // Offset 6 is the third of group 1: flags at 20..24 stay, so do two transaction ids.
    let members = read(&root, "pg_multixact/members/0000");
    assert!(members[..32].iter().all(|b| *b == 0xFF));
    assert!(members[32..].iter().all(|b| *b == 0));
}

#[test]
fn members_of_the_first_group_are_not_trimmed() {
    let (root, dir) = data_dir();
    std::fs::write(root.path().join("pg_multixact/offsets/0000"), [0; PAGE]).unwrap();
    std::fs::write(root.path().join("pg_multixact/members/0000"), [9; PAGE]).unwrap();
    let mut s = slrus(&dir);
    s.trim(ends(3 * 32768, 2, 3)).unwrap();
    s.flush(true).unwrap();
    assert_eq!(read(&root, "pg_multixact/members/0000"), [9; PAGE]);
}

#[test]
fn multixact_truncation_takes_a_range_of_segments_even_across_the_end() {
    let (root, dir) = data_dir();
    let mut s = Slrus::open(&dir, ends(1000, 70_000, 60_000), CommitTsRange::default());
    let segment = |n: u64| n * u64::from(PAGES_PER_SEGMENT);
    for n in [0, 1, 2, 0x14077, 0x14078] {
        s.zero_page(Slru::MultiXactMembers, segment(n)).unwrap();
    }
    for n in [0, 1] {
        s.zero_page(Slru::MultiXactOffsets, segment(n)).unwrap();
    }
    let per_segment = PAGES_PER_SEGMENT * Slru::MultiXactMembers.entries_per_page();
    let cutoff = |start: u32, end: u32| MembersCutoff {
        start: MultiXactOffset(start),
        end: MultiXactOffset(end),
    };
    let done = s.truncate_multixact(
        MultiXactId(65_536),
        cutoff(0x14078 * per_segment, per_segment + 5),
    );
    assert_eq!(done, Ok(Truncation::Done));
    let members = root.path().join("pg_multixact/members");
    let offsets = root.path().join("pg_multixact/offsets");
    assert_eq!(names(&members), ["0001", "0002", "14077"]);
    // 65535 is kept by the step back, and is the last one of segment 0.
    assert_eq!(names(&offsets), ["0000", "0001"]);
    let done = s.truncate_multixact(MultiXactId(65_537), cutoff(0, 0));
    assert_eq!(done, Ok(Truncation::Done));
    assert_eq!(names(&offsets), ["0001"]);
    assert_eq!(names(&members), ["0001", "0002", "14077"]);
}

#[test]
fn commit_timestamps_are_what_a_server_wrote() {
    let (root, dir) = data_dir();
    let mut s = slrus(&dir);
    let set = |s: &mut Slrus, xid, subxids: &[u32], time, origin| {
        let subxids = subxids.iter().map(|x| TransactionId(*x));
        s.set_commit_timestamp(TransactionId(xid), subxids, time, RepOriginId(origin))
            .unwrap();
    };
    set(&mut s, 5, &[], 1, 0);
    assert!(names(&root.path().join("pg_commit_ts")).is_empty());
    s.activate_commit_ts(TransactionId(700)).unwrap();
    assert_eq!(read(&root, "pg_commit_ts/0000"), vec![0; PAGE]);
    s.zero_page(Slru::CommitTs, 1).unwrap();
    set(
        &mut s,
        728,
        &[818, 819],
        i64::from_le_bytes(COMMIT_TIME),
        0x1234,
    );
    s.flush(true).unwrap();
    let bytes = read(&root, "pg_commit_ts/0000");
    let entry = [COMMIT_TIME.as_slice(), &[0x34, 0x12]].concat();
    assert_eq!(bytes[7280..7290], entry);
    assert_eq!(bytes[8180..8190], entry);
    assert_eq!(bytes[PAGE..PAGE + 10], entry);
    assert_eq!(
        s.commit_ts_range(),
        CommitTsRange {
            oldest: TransactionId(700),
            newest: TransactionId(819)
        }
    );
}

#[test]
fn commit_timestamps_go_when_they_are_turned_off() {
    let (root, dir) = data_dir();
    let range = CommitTsRange {
        oldest: TransactionId(50),
        newest: TransactionId(60),
    };
    let mut s = Slrus::open(&dir, ends(819, 1, 1), range);
    s.activate_commit_ts(TransactionId(819)).unwrap();
    assert_eq!(s.commit_ts_range(), range);
    s.zero_page(Slru::CommitTs, 40).unwrap();
    let cut = s.truncate_commit_ts(40, TransactionId(55));
    assert_eq!(cut, Ok(Truncation::Done));
    assert_eq!(s.commit_ts_range().oldest, TransactionId(55));
    let directory = root.path().join("pg_commit_ts");
    assert_eq!(names(&directory), ["0001"]);
    // A cutoff ahead of the newest page known is no wraparound here.
    let cut = s.truncate_commit_ts(41, TransactionId(54));
    assert_eq!(cut, Ok(Truncation::Done));
    assert_eq!(s.commit_ts_range().oldest, TransactionId(55));
    s.deactivate_commit_ts().unwrap();
    assert!(!s.commit_ts_is_active());
    assert_eq!(s.commit_ts_range(), CommitTsRange::default());
    assert!(names(&directory).is_empty());
    // Leftovers of an earlier life go at the end of recovery.
    std::fs::write(directory.join("0000"), "x").unwrap();
    s.zero_page(Slru::MultiXactOffsets, 0).unwrap();
    s.trim(ends(32768, 1, 1)).unwrap();
    assert!(names(&directory).is_empty());
}
