//! Replays into a copy (`pgredo replay -o`): the original stays as it was to the last time stamp,
//! and a refusal leaves nothing behind.

pub mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pgredo::recovery::{Copy, CopyError, CopyMethod, CopyOptions};
use pgredo::smgr::SyncMethod;
use pgredo::sys::Kernel;
use support::fingerprint::fingerprint;
use support::library::prepare;
use support::postgres::{give_to_server_user, server_user};
use support::sample::Sample;
use support::tree::{Entry, walk};

/// The directory of PostgreSQL 15 in a tablespace.
const VERSION_DIRECTORY: &str = "PG_15_202209061";

/// A crashed data directory in a directory of its own.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let root = tempfile::tempdir().expect("a temp dir");
        Sample::named("locks").unpack(root.path());
        Place { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn source(&self) -> PathBuf {
        self.path("data")
    }

    /// Runs `pgredo replay -D data -o new` with further arguments.
    fn replay(&self, more: &[&str]) -> Output {
        self.replay_to("new", more)
    }

    fn replay_to(&self, target: &str, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgredo"));
        command.current_dir(self.root.path()).arg("replay");
        command.arg("-D").arg(self.source()).args(["-o", target]);
        command
            .args(["--no-sync"])
            .args(more)
            .output()
            .expect("pgredo runs")
    }

    /// The replay must be refused with `complaint`, and nothing may have changed.
    fn refuses(&self, target: &str, more: &[&str], complaint: &str) {
        let before = state(self.root.path());
        let output = self.replay_to(target, more);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(printed.contains(complaint), "{complaint:?} in {printed}");
        assert_eq!(output.status.code(), Some(4), "{printed}");
        assert!(
            state(self.root.path()) == before,
            "a refusal writes nothing"
        );
    }

    /// Makes a tablespace of the source at `old/<name>`, with one file.
    fn add_tablespace(&self, oid: u32, name: &str) -> PathBuf {
        let location = self.path(name);
        let database = location.join(VERSION_DIRECTORY).join("5");
        std::fs::create_dir_all(&database).expect("a tablespace");
        std::fs::write(database.join("70000"), [7; 8192]).expect("a relation");
        std::fs::create_dir(location.join("PG_14_202107181")).expect("another major's");
        let link = self.source().join(format!("pg_tblspc/{oid}"));
        symlink(&location, link).expect("a link");
        location
    }
}

/// All of a directory: entries with their modes, owners, times of change and contents.
fn state(root: &Path) -> BTreeMap<String, (Entry, [i64; 6], Vec<u8>)> {
    let describe = |(path, entry): (String, Entry)| {
        let full = root.join(&path);
        let meta = full.symlink_metadata().expect("it was listed");
        let facts = [
            i64::from(meta.mode()),
            i64::from(meta.uid()),
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec(),
        ];
        let bytes = match entry {
            Entry::File(_) => std::fs::read(&full).expect("it was listed"),
            _ => Vec::new(),
        };
        (path, (entry, facts, bytes))
    };
    walk(root).into_iter().map(describe).collect()
}

fn assert_done(output: &Output) {
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{printed}", output.status);
}

#[test]
fn every_method_leaves_the_original_alone() {
    let expected = Sample::named("locks").fingerprint();
    for method in ["--copy", "--copy-file-range", "--clone"] {
        let place = Place::new();
        let before = state(&place.source());
        let output = place.replay(&[method]);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(state(&place.source()) == before, "{method}");
        if method == "--clone" && printed.contains("--clone is not possible here") {
            assert_eq!(output.status.code(), Some(4), "{printed}");
            assert!(!place.path("new").exists(), "what was made is removed");
            continue;
        }
        assert_done(&output);
        assert_eq!(fingerprint(&place.path("new")), expected, "{method}");
        // Files that recovery leaves alone keep their modes.
        for name in ["", "PG_VERSION", "postgresql.conf", "base", "pg_stat"] {
            let mode = |root: PathBuf| root.join(name).metadata().expect("it is there").mode();
            assert_eq!(mode(place.path("new")), mode(place.source()), "{name}");
        }
    }
}

#[test]
fn an_empty_directory_is_as_good_as_none() {
    let place = Place::new();
    std::fs::create_dir(place.path("new")).expect("a directory");
    assert_done(&place.replay(&["--sync-method", "syncfs"]));
    let expected = Sample::named("locks").fingerprint();
    assert_eq!(fingerprint(&place.path("new")), expected);
}

#[test]
fn a_dry_run_writes_nothing() {
    let place = Place::new();
    let before = state(place.root.path());
    assert_done(&place.replay(&["--dry-run"]));
    assert!(state(place.root.path()) == before);
}

#[test]
fn refusals() {
    let place = Place::new();
    std::fs::write(place.path("file"), "").expect("a file");
    std::fs::create_dir(place.path("full")).expect("a directory");
    std::fs::write(place.path("full/file"), "").expect("a file");
    symlink(place.source(), place.path("way")).expect("a link");
    place.refuses("file", &[], "is not a directory");
    place.refuses("full", &[], "is not empty");
    place.refuses("none/new", &[], "does not exist");
    place.refuses("data/new", &[], "is inside");
    place.refuses("way/base/../new", &[], "is inside");
    place.refuses("data/pg_notify", &["-n"], "is inside");

    std::fs::write(place.source().join("postmaster.pid"), "1\n").expect("a file");
    place.refuses("new", &[], "process 1, which is alive");
    std::fs::remove_file(place.source().join("postmaster.pid")).expect("it is there");
    symlink("/tmp", place.source().join("global/link")).expect("a link");
    place.refuses("new", &[], "is a symbolic link");
}

#[test]
fn tablespaces_move() {
    let place = Place::new();
    let (a, b) = (
        place.add_tablespace(16500, "a"),
        place.add_tablespace(16501, "b"),
    );
    let in_place = format!("pg_tblspc/16502/{VERSION_DIRECTORY}/5");
    std::fs::create_dir_all(place.source().join(&in_place)).expect("a tablespace");
    let map = |old: &Path, new: &str| format!("-T{}={}", old.display(), place.path(new).display());
    let (new_a, new_b) = (map(&a, "new-a"), map(&b, "new-b"));
    let missing = format!("tablespaces \"{}\", \"{}\"", a.display(), b.display());
    place.refuses("new", &[], &missing);
    place.refuses(
        "new",
        &[&new_a],
        &format!("tablespaces \"{}\"", b.display()),
    );
    place.refuses("new", &[&new_a, &map(&b, "new-a")], "is inside");
    place.refuses("new", &[&new_a, &map(&b, "a/new")], "is inside");
    place.refuses("new", &[&new_a, &map(&b, "data")], "is not empty");

    let before = (state(&place.source()), state(&a), state(&b));
    assert_done(&place.replay(&[&new_a, &new_b]));
    assert!((state(&place.source()), state(&a), state(&b)) == before);
    for (oid, name) in [(16500, "new-a"), (16501, "new-b")] {
        let link = place.path(&format!("new/pg_tblspc/{oid}"));
        assert_eq!(std::fs::read_link(link).expect("a link"), place.path(name));
        let copied: Vec<String> = walk(&place.path(name)).into_keys().collect();
        let database = format!("{VERSION_DIRECTORY}/5");
        let relation = format!("{database}/70000");
        assert_eq!(
            copied,
            [VERSION_DIRECTORY, database.as_str(), relation.as_str()]
        );
    }
    assert!(place.path("new").join(in_place).is_dir());
}

#[test]
fn a_linked_pg_wal_becomes_a_directory() {
    let place = Place::new();
    let (wal, elsewhere) = (place.source().join("pg_wal"), place.path("wal"));
    std::fs::rename(&wal, &elsewhere).expect("one file system");
    symlink(&elsewhere, &wal).expect("a link");
    let before = state(place.root.path());
    assert_done(&place.replay(&[]));
    let copy = place.path("new/pg_wal").symlink_metadata();
    assert!(copy.expect("it is there").is_dir());
    std::fs::remove_dir_all(place.path("new")).expect("it is there");
    let mut after = state(place.root.path());
    assert_eq!(after.len(), before.len());
    after.retain(|path, entry| before.get(path) != Some(entry));
    assert!(after.is_empty(), "{:?}", after.keys());
}

/// Root may put the copy where its owner may not; all of it belongs to that owner.
#[test]
fn root_gives_the_copy_to_the_owner() {
    let Some((uid, gid)) = server_user() else {
        return;
    };
    let place = Place::new();
    give_to_server_user(&place.source());
    let open = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.root.path(), permissions).expect("own directory");
    };
    // The owner may pass, and make nothing.
    open(0o711);
    std::fs::create_dir(place.path("of-root")).expect("a directory");
    place.refuses("of-root", &[], "does not belong to the owner");
    assert_done(&place.replay(&[]));
    let new = place.path("new");
    for path in walk(&new).into_keys().chain([String::new()]) {
        let meta = new.join(&path).symlink_metadata().expect("it is there");
        assert_eq!(
            (meta.uid(), meta.gid()),
            (uid.as_raw(), gid.as_raw()),
            "{path}"
        );
    }
    let expected = Sample::named("locks").fingerprint();
    assert_eq!(fingerprint(&new), expected);
}

fn plan(kernel: &Kernel, place: &Place, sync: SyncMethod) -> Result<Copy, CopyError> {
    let source = place.source();
    let prepared = prepare(&Kernel::new(), &source).expect("a crashed directory");
    let target = place.path("new");
    let options = CopyOptions {
        source: &source,
        target: &target,
        method: CopyMethod::Copy,
        sync,
        tablespaces: &[],
    };
    Copy::plan(kernel, &prepared, options)
}

#[test]
fn what_a_server_makes_anew_is_left_out() {
    let place = Place::new();
    let files = [
        ("postmaster.opts", false),
        ("base/1/pg_internal.init", false),
        ("global/pg_internal.init.77", false),
        ("base/pgsql_tmp/pgsql_tmp1.0", false),
        ("pg_dynshmem/mmap.1", false),
        ("pg_notify/0000", false),
        ("pg_serial/0000", false),
        ("pg_snapshots/00000003-1", false),
        ("pg_stat_tmp/global.stat", false),
        ("pg_subtrans/0000", false),
        ("pg_replslot/s/state", true),
        ("pg_stat/pgstat.stat", true),
        ("pg_wal/archive_status/x.ready", true),
        ("notes", true),
    ];
    for (path, _) in files {
        let path = place.source().join(path);
        std::fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        std::fs::write(path, "x").expect("a file");
    }
    let _socket = std::os::unix::net::UnixListener::bind(place.source().join(".s.PGSQL.5432"));
    let copy = plan(&Kernel::new(), &place, SyncMethod::Fsync).expect("it is possible");
    copy.perform().expect("there is room");
    for (path, is_kept) in files {
        assert_eq!(place.path("new").join(path).exists(), is_kept, "{path}");
    }
    assert!(!place.path("new/.s.PGSQL.5432").exists());
    std::fs::remove_file(place.source().join(".s.PGSQL.5432")).expect("it is there");
    // All else is there, and the same.
    let (source, copy) = (walk(&place.source()), walk(&place.path("new")));
    let missing: Vec<&String> = source.keys().filter(|p| !copy.contains_key(*p)).collect();
    // The files above and the directory of temporary files.
    assert_eq!(missing.len(), 10 + 1, "{missing:?}");
    for (path, entry) in &copy {
        assert_eq!(source.get(path), Some(entry));
        if let Entry::File(_) = entry {
            let read = |root: &str| std::fs::read(place.path(root).join(path)).expect("a file");
            assert!(read("data") == read("new"), "{path}");
        }
    }
}

/// A copy that ends in the middle is no data directory.
#[test]
fn a_half_copy_has_no_control_file() {
    let place = Place::new();
    let kernel = Kernel::new();
    let copy = plan(&kernel, &place, SyncMethod::None).expect("it is possible");
    copy.perform().expect("there is room");
    let changes = kernel.changes();
    let mut cuts: Vec<u64> = (0..changes).step_by(61).collect();
    cuts.extend(changes - 6..changes);
    for cut in cuts {
        std::fs::remove_dir_all(place.path("new")).ok();
        // From the cut on nothing can be changed, so what was made cannot be removed either.
        let kernel = Kernel::failing_after(cut);
        let copy = plan(&kernel, &place, SyncMethod::None).expect("it is possible");
        assert!(matches!(copy.perform(), Err(CopyError::Sys(_))), "{cut}");
        let has_control = place.path("new/global/pg_control").exists();
        // The last change makes the rename of pg_control durable.
        assert_eq!(has_control, cut == changes - 1, "{cut} of {changes}");
    }
}

/// A copy that fails for another reason is removed.
#[test]
fn a_failed_copy_is_removed() {
    let place = Place::new();
    let copy = plan(&Kernel::new(), &place, SyncMethod::None).expect("it is possible");
    std::fs::remove_file(place.source().join("postgresql.conf")).expect("it is there");
    assert!(matches!(copy.perform(), Err(CopyError::Sys(_))));
    assert!(!place.path("new").exists());

    let copy = plan(&Kernel::new(), &place, SyncMethod::None).expect("it is possible");
    let control = place.source().join("global/pg_control");
    let mut bytes = std::fs::read(&control).expect("it is there");
    bytes[16] ^= 1;
    std::fs::write(&control, bytes).expect("it can be written");
    assert!(matches!(copy.perform(), Err(CopyError::SourceChanged(_))));
    assert!(!place.path("new").exists());
}
