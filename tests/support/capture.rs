//! Crash images on disk, and the two recoveries of them.
//!
//! `target/captures/<name>-<hash>` holds one image: `image` (the crashed data directory),
//! `image.locations` (what its tablespaces held), `reference` (the same after PostgreSQL's own
//! recovery, with `reference/{data,locations,log}`) and `locations`, the paths that the
//! tablespaces' WAL records name. Those are fixed, so a recovery is given them with the image's
//! content, alone, and what it leaves there is moved next to its data directory.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::postgres::{Stop, Tree, as_server_user, create_server_directory, give_to_server_user};
use super::recipe::Recipe;
use super::{copy_directory, entries, remove_directory, repository, run};

/// Settings of PostgreSQL's own recovery that differ from those of the crashed server. Whatever
/// WAL depends on stays as it was, or recovery would log a parameter change.
const RECOVERY_SETTINGS: &[&str] = &[
    "autovacuum=off",
    "max_logical_replication_workers=0",
    "archive_mode=off",
    "checkpoint_timeout=1h",
    "fsync=off",
    // Changes of free space maps that only mark a page as dirty for a hint are lost in recovery
    // when the page was written meanwhile (`MarkBufferDirtyHint`), which depends on what has to
    // leave the buffers. With room for everything there is one result.
    "shared_buffers=256MB",
    "log_checkpoints=on",
    "log_min_messages=log",
];

/// A crash image.
#[derive(Debug)]
pub struct Capture {
    root: PathBuf,
    recipe: Recipe,
    tree: Tree,
}

impl Capture {
    /// Finds the image of a recipe, or makes it.
    pub fn of(recipe: Recipe) -> Capture {
        let tree = Tree::find(recipe.tree);
        let mut hasher = DefaultHasher::new();
        (recipe.text(), tree.version()).hash(&mut hasher);
        let root = captures().join(format!("{}-{:016x}", recipe.name, hasher.finish()));
        let capture = Capture { root, recipe, tree };
        let _lock = capture.lock();
        if !capture.root.join("image.locations").exists() {
            capture.make();
        }
        capture
    }

    /// Name of the recipe.
    pub fn name(&self) -> &'static str {
        self.recipe.name
    }

    /// The server tree that made it.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The crashed data directory. It is never written to.
    pub fn image(&self) -> PathBuf {
        self.root.join("image")
    }

    /// Held while the image is made and while a recovery uses the tablespaces' fixed paths; tests
    /// may run in several processes.
    fn lock(&self) -> File {
        let path = self.root.with_extension("lock");
        let file =
            File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.lock()
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file
    }

    /// Images of what this recipe was before it was changed.
    fn remove_older(&self) {
        let start = format!("{}-", self.recipe.name);
        for path in entries(captures()) {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            if name.starts_with(&start) && path.is_dir() {
                remove_directory(&path);
            }
        }
    }

    /// The image is complete once `image.locations` is there, which is made last.
    fn make(&self) {
        self.remove_older();
        remove_directory(&self.root);
        create_server_directory(&self.root);
        let data = self.image();
        self.tree.initdb(&data, self.recipe.initdb);
        let locations = self.root.join("locations");
        create_server_directory(&locations);
        let mut variables = Vec::new();
        for name in self.recipe.locations {
            create_server_directory(&locations.join(name));
            variables.push((
                (*name).to_owned(),
                locations.join(name).display().to_string(),
            ));
        }
        self.recipe.perform(&self.tree, &data, &variables);
        std::fs::remove_file(data.join("postmaster.pid")).ok();
        for path in entries(&data.join("pg_dynshmem")) {
            std::fs::remove_file(&path).expect("left by the killed server");
        }
        let finished = self.root.join("image.locations");
        let unfinished = self.root.join("image.locations.new");
        copy_directory(&locations, &unfinished);
        std::fs::rename(&unfinished, &finished).expect("in one directory");
    }

    /// The image as PostgreSQL's own recovery leaves it. Made once.
    pub fn reference(&self) -> Recovered {
        let _lock = self.lock();
        let root = self.root.join("reference");
        if !root.exists() {
            let unfinished = self.root.join("reference.new");
            remove_directory(&unfinished);
            // Not a fast stop: the end-of-recovery checkpoint shall be the last record.
            self.recover_with_server(&unfinished, Stop::Immediate);
            // The links still name the directory as it was called before.
            std::fs::rename(&unfinished, &root).expect("in one directory");
            adopt_locations(&root, &unfinished.join("locations"));
        }
        Recovered {
            root,
            remove: false,
        }
    }

    /// Another recovery by PostgreSQL, to judge the judge with.
    pub fn recovered_again(&self, stop: Stop) -> Recovered {
        let _lock = self.lock();
        let root = self.scratch("again-");
        self.recover_with_server(&root, stop);
        Recovered { root, remove: true }
    }

    fn recover_with_server(&self, root: &Path, stop: Stop) {
        self.recover(root, |data| {
            let server = self.tree.start(data, &root.join("log"), RECOVERY_SETTINGS);
            let log = server.stop(stop);
            assert!(
                log.contains("redo done at"),
                "PostgreSQL had nothing to redo\n{log}"
            );
        });
    }

    fn scratch(&self, prefix: &str) -> PathBuf {
        let directory = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir_in(&self.root);
        directory.expect("next to the image").keep()
    }

    /// The image as pgredo leaves it.
    pub fn replay(&self, options: &ReplayOptions) -> Recovered {
        let _lock = self.lock();
        // Always the same name, so that results kept for inspection do not pile up.
        let root = self.root.join(format!(
            "replay-{}-{}",
            options.order, options.nblocks_cache
        ));
        remove_directory(&root);
        self.recover(&root, |data| replay(data, &root, options));
        Recovered { root, remove: true }
    }

    /// The image as PostgreSQL leaves it after `interrupted`, which works on the data directory as
    /// whoever runs the tests, has changed it.
    pub fn handed_over(&self, interrupted: impl FnOnce(&Path)) -> Recovered {
        let _lock = self.lock();
        let root = self.scratch("handover-");
        self.recover(&root, |data| {
            interrupted(data);
            give_to_server_user(data);
            let server = self.tree.start(data, &root.join("log"), RECOVERY_SETTINGS);
            server.stop(Stop::Immediate);
        });
        Recovered { root, remove: true }
    }

    /// Copies the image to `root/data`, puts the tablespaces' content in its place, lets
    /// `recovery` work, and moves that content to `root/locations`.
    fn recover(&self, root: &Path, recovery: impl FnOnce(&Path)) {
        create_server_directory(root);
        let data = root.join("data");
        copy_directory(&self.image(), &data);
        let locations = self.root.join("locations");
        remove_directory(&locations);
        copy_directory(&self.root.join("image.locations"), &locations);
        recovery(&data);
        copy_directory(&locations, &root.join("locations"));
        adopt_locations(root, &locations);
    }
}

/// Points the tablespace links of `root/data` that lead below `old` to `root/locations`.
fn adopt_locations(root: &Path, old: &Path) {
    for link in entries(&root.join("data/pg_tblspc")) {
        let Ok(target) = std::fs::read_link(&link) else {
            continue;
        };
        let Ok(below) = target.strip_prefix(old) else {
            continue;
        };
        std::fs::remove_file(&link).expect("a link");
        std::os::unix::fs::symlink(root.join("locations").join(below), &link).expect("a link");
    }
}

/// Where the images are: `target/captures`, or, if the servers' user cannot get there (a checkout
/// below a closed home directory), in the system's folder for temporary files.
fn captures() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let target = std::env::var_os("CARGO_TARGET_DIR");
        let target = target.map_or_else(|| repository().join("target"), PathBuf::from);
        for parent in [target, std::env::temp_dir().join("pgredo")] {
            let directory = parent.join("captures");
            std::fs::create_dir_all(&directory).expect("a directory for crash images");
            if is_reachable(&directory) {
                return directory;
            }
        }
        panic!("the servers' user can reach no directory for crash images");
    })
}

fn is_reachable(path: &Path) -> bool {
    as_server_user("test")
        .arg("-x")
        .arg(path)
        .status()
        .is_ok_and(|status| status.success())
}

/// How pgredo is asked to replay.
#[derive(Debug, Clone, Copy)]
pub struct ReplayOptions {
    /// `--order`
    pub order: &'static str,
    /// `--nblocks-cache`
    pub nblocks_cache: &'static str,
    /// Anything else.
    pub more: &'static [&'static str],
}

impl ReplayOptions {
    /// One record at a time, as PostgreSQL does it.
    pub const RECORD: ReplayOptions = ReplayOptions {
        order: "record",
        nblocks_cache: "on",
        more: &[],
    };
    /// Page by page, as it is done by default.
    pub const PAGE: ReplayOptions = ReplayOptions {
        order: "page",
        nblocks_cache: "on",
        more: &[],
    };
    /// The same with windows of a few thousand records, and more workers than cores.
    pub const SMALL_WINDOWS: ReplayOptions = ReplayOptions {
        more: &["--memory", "300kB", "--jobs", "5"],
        ..ReplayOptions::PAGE
    };
    /// One record at a time, with the kernel asked for sizes every time.
    pub const RECORD_WITHOUT_CACHE: ReplayOptions = ReplayOptions {
        nblocks_cache: "off",
        ..ReplayOptions::RECORD
    };
}

/// Runs `pgredo replay` on a directory of the servers' user.
fn replay(data: &Path, root: &Path, options: &ReplayOptions) {
    replay_with(as_server_user(pgredo()), data, root, options);
}

/// Runs `pgredo replay` on a directory of the user who runs the tests.
pub fn replay_as_self(data: &Path, root: &Path, options: &ReplayOptions) {
    replay_with(
        Command::new(env!("CARGO_BIN_EXE_pgredo")),
        data,
        root,
        options,
    );
}

/// A replay must succeed without a warning.
fn replay_with(mut command: Command, data: &Path, root: &Path, options: &ReplayOptions) {
    command
        .arg("replay")
        .arg("-D")
        .arg(data)
        .args(["--in-place", "--no-sync"]);
    command.args([
        "--order",
        options.order,
        "--nblocks-cache",
        options.nblocks_cache,
    ]);
    command
        .args(["--stats", "json", "--stats-file"])
        .arg(root.join("stats.json"));
    run(command.args(options.more));
}

/// The program under test, at a place from which the servers' user can run it.
fn pgredo() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| {
        let built = PathBuf::from(env!("CARGO_BIN_EXE_pgredo"));
        if is_reachable(&built) {
            return built;
        }
        let copy = captures().join(format!("pgredo-{}", std::process::id()));
        std::fs::copy(&built, &copy).expect("next to the crash images");
        copy
    })
}

/// A recovered copy of an image, removed when it goes out of scope unless the test is failing.
#[derive(Debug)]
pub struct Recovered {
    root: PathBuf,
    remove: bool,
}

impl Recovered {
    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// What its tablespaces hold, one directory for each location of the recipe.
    pub fn locations(&self) -> PathBuf {
        self.root.join("locations")
    }

    /// The counters of the replay as pgredo wrote them.
    pub fn stats(&self) -> serde_json::Value {
        let path = self.root.join("stats.json");
        let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"))
    }

    /// Starts the real server on the directory. It must find nothing to recover, and amcheck
    /// nothing to complain about; prepared transactions must be there to be committed.
    pub fn starts_clean(&self, tree: &Tree) {
        let log = self.root.join("start.log");
        let server = tree.start(&self.data(), &log, RECOVERY_SETTINGS);
        let text = server.log();
        for sign in [
            "redo starts at",
            "not properly shut down",
            "was interrupted",
            "recovery",
        ] {
            assert!(
                !text.contains(sign),
                "the server recovered again: {sign:?}\n{text}"
            );
        }
        let prepared = "SELECT format(E'\\\\c %I\\nCOMMIT PREPARED %L;', database, gid)
                        FROM pg_prepared_xacts ORDER BY database, transaction::text::bigint;";
        let commits = server.psql("postgres", prepared, &[]);
        server.psql("postgres", &commits, &[]);
        let mut amcheck = server.client("pg_amcheck");
        run(amcheck.args(["--all", "--install-missing", "--heapallindexed", "--jobs=2"]));
        server.stop(Stop::Fast);
    }
}

impl Drop for Recovered {
    fn drop(&mut self) {
        if !self.remove {
            return;
        }
        if std::thread::panicking() {
            eprintln!("pgredo's result is kept in {}", self.root.display());
        } else {
            remove_directory(&self.root);
        }
    }
}

/// What pg_waldump says of the last records that touched a block, for the message of a failed
/// comparison.
pub fn waldump_of_block(capture: &Capture, relation: &str, fork: &str, block: u32) -> String {
    let mut command = Command::new(capture.tree.program("pg_waldump"));
    let wal = capture.image().join("pg_wal");
    let first = entries(&wal).into_iter().find(|path| path.is_file());
    command
        .arg("-p")
        .arg(&wal)
        .args(["-R", relation, "-F", fork, "-B"])
        .arg(block.to_string());
    command.args(first.as_ref().and_then(|path| path.file_name()));
    let Ok(output) = command.output() else {
        return String::new();
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(8)..]
        .iter()
        .map(|line| format!("      {line}\n"))
        .collect()
}
