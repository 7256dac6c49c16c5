//! Recipes of crash images. A recipe is plain data, so that its text names what it makes: a
//! changed recipe is another image, an unchanged one is made once.

use std::path::Path;

use super::postgres::{Server, Stop, Tree};
use super::run;

/// The control file, below the data directory.
const CONTROL_FILE: &str = "global/pg_control";

/// Settings of every server that makes a crash image. No checkpoint comes by itself, nothing
/// runs in the background that a recipe did not ask for.
const SETTINGS: &[&str] = &[
    "autovacuum = off",
    "checkpoint_timeout = 1h",
    "max_wal_size = 8GB",
    "fsync = off",
    "max_prepared_transactions = 20",
    "max_logical_replication_workers = 0",
    "shared_buffers = 64MB",
    "bgwriter_delay = 10s",
    "log_checkpoints = on",
    "log_min_messages = warning",
    // Shared memory that a killed server leaves behind stays inside the data directory.
    "dynamic_shared_memory_type = mmap",
];

/// What is done to a cluster before it crashes.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// Names the image in `target/captures` and in failures.
    pub name: &'static str,
    /// The server tree, such as `15`.
    pub tree: &'static str,
    /// Further options of initdb.
    pub initdb: &'static [&'static str],
    /// Further lines of postgresql.conf; the last one of a name counts.
    pub settings: Vec<&'static str>,
    /// Directories for tablespaces. A script finds the path of `a` in the psql variable `a`.
    pub locations: &'static [&'static str],
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// How the server ends.
    pub crash: Stop,
}

/// One thing that happens to a cluster.
#[derive(Debug, Clone)]
pub enum Step {
    /// A psql script, starting in the database `postgres`.
    Sql(&'static str),
    /// pgbench with these arguments, in the database `postgres`.
    Bench(&'static [&'static str]),
    /// pgbench with these arguments and scripts, all with the same weight.
    Scripts(&'static [&'static str], &'static [&'static str]),
    /// Statements in a session that is still open when the server crashes.
    Session(&'static str),
    /// Keeps pg_control as it is now for the image, so that the replay starts at an earlier
    /// checkpoint than the last: in front of records that force a checkpoint when they are made.
    /// The recipe must keep WAL (`wal_keep_size`).
    KeepControl,
    /// Ends the server and starts it again with further settings.
    Restart(Stop, &'static [&'static str]),
}

impl Recipe {
    /// A recipe for PostgreSQL 15 that ends in SIGKILL.
    pub fn new(name: &'static str, steps: Vec<Step>) -> Recipe {
        let (tree, crash) = ("15", Stop::Kill);
        Recipe {
            name,
            tree,
            initdb: &[],
            settings: Vec::new(),
            locations: &[],
            steps,
            crash,
        }
    }

    /// The same with another name and further settings.
    #[must_use]
    pub fn variant(mut self, name: &'static str, settings: &[&'static str]) -> Recipe {
        self.name = name;
        self.settings.extend_from_slice(settings);
        self
    }

    /// The same on other options of initdb.
    #[must_use]
    pub fn initdb(mut self, options: &'static [&'static str]) -> Recipe {
        self.initdb = options;
        self
    }

    /// The lines for the end of postgresql.conf.
    fn settings_in_order(&self) -> impl Iterator<Item = &'static str> {
        SETTINGS.iter().chain(&self.settings).copied()
    }

    /// All that decides what the image will be.
    pub fn text(&self) -> String {
        format!("{self:?} {SETTINGS:?}")
    }

    /// Starts a server on a new cluster, does all the steps and ends it.
    pub fn perform(&self, tree: &Tree, data: &Path, variables: &[(String, String)]) {
        let log = data.with_extension("log");
        append_settings(data, self.settings_in_order());
        let mut server = tree.start(data, &log, &[]);
        let mut kept_control = None;
        for step in &self.steps {
            match step {
                Step::Sql(script) => {
                    server.psql("postgres", script, variables);
                }
                Step::Bench(arguments) => {
                    run(server.client("pgbench").args(*arguments).arg("postgres"));
                }
                Step::Scripts(arguments, scripts) => bench_scripts(&server, arguments, scripts),
                Step::Session(script) => server.session(script),
                Step::KeepControl => {
                    kept_control = Some(std::fs::read(data.join(CONTROL_FILE)).expect("a cluster"));
                }
                Step::Restart(stop, settings) => {
                    server.stop(*stop);
                    append_settings(data, settings.iter().copied());
                    server = tree.start(data, &log, &[]);
                }
            }
        }
        let log = server.stop(self.crash);
        assert!(!log.contains("PANIC"), "{log}");
        if let Some(bytes) = kept_control {
            std::fs::write(data.join(CONTROL_FILE), bytes).expect("a cluster");
        }
    }
}

fn append_settings<'a>(data: &Path, settings: impl Iterator<Item = &'a str>) {
    let path = data.join("postgresql.conf");
    let mut text = std::fs::read_to_string(&path).expect("initdb made it");
    for line in settings {
        text.push_str(line);
        text.push('\n');
    }
    std::fs::write(&path, text).expect("it can be written");
}

fn bench_scripts(server: &Server, arguments: &[&str], scripts: &[&str]) {
    let directory = tempfile::tempdir().expect("a temp dir");
    let mut pgbench = server.client("pgbench");
    pgbench.arg("-n").args(arguments);
    for (index, script) in scripts.iter().enumerate() {
        let path = directory.path().join(format!("{index}.sql"));
        std::fs::write(&path, script).expect("a temp file");
        pgbench.arg("-f").arg(path);
    }
    run(pgbench.arg("postgres"));
}
