//! Real PostgreSQL servers: where their trees are, and clusters that are started, used, stopped
//! and crashed. Only processes started here are ever ended, by their id.

use std::cell::RefCell;
use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, User};

use super::run;

/// How long a server may take to start (which includes its recovery) or to stop.
const SERVER_TIMEOUT: Duration = Duration::from_secs(180);

/// The user the servers run as when the tests run as root, whom PostgreSQL refuses.
const SERVER_USER: &str = "postgres";

/// What the server logs once recovery is over and sessions may come.
pub const READY: &str = "database system is ready to accept connections";

/// User and group of the servers and of everything they own; `None` unless the tests run as root.
pub fn server_user() -> Option<(Uid, Gid)> {
    static FOUND: OnceLock<Option<(Uid, Gid)>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        if !Uid::effective().is_root() {
            return None;
        }
        let look_up = || User::from_name(SERVER_USER).expect("the user database can be read");
        let user = look_up().or_else(|| {
            let mut useradd = Command::new("useradd");
            run(useradd.args(["--system", "--no-create-home", "--user-group", SERVER_USER]));
            look_up()
        });
        let user = user.expect("useradd made the user");
        Some((user.uid, user.gid))
    })
}

/// A command that runs as the owner of the clusters.
pub fn as_server_user(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    if let Some((uid, gid)) = server_user() {
        command.uid(uid.as_raw()).gid(gid.as_raw());
    }
    // A folder the user can enter: PostgreSQL's tools warn when they cannot read where they are.
    command.current_dir("/");
    command
}

/// Makes a directory that only the servers' user can enter, as PostgreSQL wants its own.
pub fn create_server_directory(path: &Path) {
    std::fs::create_dir_all(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    std::fs::set_permissions(path, Permissions::from_mode(0o700)).expect("own directory");
    if let Some((uid, gid)) = server_user() {
        std::os::unix::fs::chown(path, Some(uid.as_raw()), Some(gid.as_raw())).expect("as root");
    }
}

/// Makes the servers' user the owner of a directory and all below it.
pub fn give_to_server_user(path: &Path) {
    if let Some((uid, gid)) = server_user() {
        run(Command::new("chown")
            .arg("-R")
            .arg(format!("{uid}:{gid}"))
            .arg(path));
    }
}

/// An installation of PostgreSQL.
#[derive(Debug, Clone)]
pub struct Tree {
    bin: PathBuf,
}

impl Tree {
    /// Finds the tree `name` (a major such as `15`, or `15-debian`) in `PGREDO_PG_DIR`, else in
    /// `.pg` of the repository. A test that needs a server fails without one: a skipped test
    /// would look like a passed one.
    pub fn find(name: &str) -> Tree {
        let root = std::env::var_os("PGREDO_PG_DIR")
            .map_or_else(|| super::repository().join(".pg"), PathBuf::from);
        // The link is resolved so that nothing depends on being able to read the repository.
        let bin = root.join(name).join("bin");
        let bin = bin.canonicalize().unwrap_or(bin);
        assert!(
            bin.join("postgres").exists(),
            "no PostgreSQL in {}: run `make postgres` first, or set PGREDO_PG_DIR",
            bin.display()
        );
        Tree { bin }
    }

    /// Path of one of its programs.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// `postgres (PostgreSQL) 15.x`.
    pub fn version(&self) -> String {
        run(Command::new(self.program("postgres")).arg("--version"))
            .trim()
            .to_owned()
    }

    /// Makes a cluster in `data`.
    pub fn initdb(&self, data: &Path, options: &[&str]) {
        create_server_directory(data);
        let mut initdb = as_server_user(self.program("initdb"));
        initdb
            .arg("-D")
            .arg(data)
            .args(["-A", "trust", "-U", "postgres", "-N"]);
        run(initdb
            .args(["-E", "UTF8", "--locale=C", "--no-instructions"])
            .args(options));
    }

    /// Starts a server on `data` and returns once it says that it is ready, which is after any
    /// recovery. No client is used to find out: a session would set hint bits.
    pub fn start(&self, data: &Path, log: &Path, options: &[&str]) -> Server {
        let sockets = tempfile::Builder::new()
            .prefix("pgredo-")
            .tempdir()
            .expect("a temp dir");
        create_server_directory(sockets.path());
        let output = File::create(log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let mut command = as_server_user(self.program("postgres"));
        command.arg("-D").arg(data).arg("-k").arg(sockets.path());
        command.args(["-c", "listen_addresses=", "-c", "port=5432"]);
        for option in options {
            command.args(["-c", option]);
        }
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a log file"))
            .stderr(output);
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut server = Server {
            tree: self.clone(),
            data: data.to_owned(),
            log: log.to_owned(),
            sockets,
            child: Some(child),
            sessions: RefCell::default(),
        };
        server.wait_until_ready();
        server
    }
}

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// SIGINT: a clean shutdown with a checkpoint.
    Fast,
    /// SIGQUIT: no checkpoint, the next start recovers.
    Immediate,
    /// SIGKILL to every process of the server, at one instant.
    Kill,
}

/// A running server.
#[derive(Debug)]
pub struct Server {
    tree: Tree,
    data: PathBuf,
    log: PathBuf,
    sockets: tempfile::TempDir,
    child: Option<Child>,
    /// Sessions that stay open until the server ends.
    sessions: RefCell<Vec<Child>>,
}

impl Server {
    fn wait_until_ready(&mut self) {
        let deadline = Instant::now() + SERVER_TIMEOUT;
        loop {
            let log = self.log();
            if log.contains(READY) {
                return;
            }
            let exited = self
                .child
                .as_mut()
                .and_then(|child| child.try_wait().expect("own child"));
            if let Some(status) = exited {
                self.child = None;
                panic!(
                    "the server on {} ended: {status}\n{log}",
                    self.data.display()
                );
            }
            assert!(
                Instant::now() < deadline,
                "the server is not ready in time\n{log}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the server has logged so far.
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).expect("the log file was made at the start");
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// A client program with the connection settings of this server.
    pub fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.tree.program(program));
        command
            .args(["-h"])
            .arg(self.sockets.path())
            .args(["-p", "5432", "-U", "postgres"]);
        command
    }

    fn psql_command(&self, database: &str, variables: &[(String, String)]) -> Command {
        let mut command = self.client("psql");
        command.args([
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            database,
        ]);
        for (name, value) in variables {
            command.arg("-v").arg(format!("{name}={value}"));
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a psql script, which must succeed, and returns what it printed.
    pub fn psql(&self, database: &str, script: &str, variables: &[(String, String)]) -> String {
        let mut command = self.psql_command(database, variables);
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut stdin = child.stdin.take().expect("piped");
        // In a thread of its own: psql may fill its output pipe before it has read the script.
        let script = script.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(script.as_bytes()));
        let output = child.wait_with_output().expect("own child");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "psql: {}\n{stderr}\n{}",
            output.status,
            self.log()
        );
        writer
            .join()
            .expect("no panic")
            .expect("psql read its script to the end");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs statements in a session that stays open, in whatever transaction it is in, until the
    /// server ends. Returns once they are done.
    pub fn session(&self, script: &str) {
        let mut command = self.psql_command("postgres", &[]);
        let mut child = command
            .stderr(Stdio::inherit())
            .spawn()
            .expect("psql starts");
        let stdin = child.stdin.as_mut().expect("piped");
        writeln!(stdin, "{script}\n\\echo session is ready").expect("psql reads");
        let stdout = child.stdout.take().expect("piped");
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        assert!(
            lines.any(|line| line == "session is ready"),
            "the session failed"
        );
        self.sessions.borrow_mut().push(child);
    }

    /// Stops the server and returns what it logged.
    pub fn stop(mut self, how: Stop) -> String {
        self.end(how);
        self.log()
    }

    fn end(&mut self, how: Stop) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        let postmaster = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
        match how {
            Stop::Fast => kill(postmaster, Signal::SIGINT).expect("own child"),
            Stop::Immediate => kill(postmaster, Signal::SIGQUIT).expect("own child"),
            Stop::Kill => self.kill_all(postmaster),
        }
        let deadline = Instant::now() + SERVER_TIMEOUT;
        while child.try_wait().expect("own child").is_none() {
            assert!(
                Instant::now() < deadline,
                "the server does not stop\n{}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        for mut session in self.sessions.take() {
            session.kill().expect("own child");
            session.wait().expect("own child");
        }
    }

    /// SIGKILL to the postmaster and its children. The postmaster is stopped first so that it
    /// neither starts another process nor tells the others to shut down.
    fn kill_all(&self, postmaster: Pid) {
        let segment = self.shared_memory_id();
        kill(postmaster, Signal::SIGSTOP).expect("own child");
        let children = children_of(postmaster);
        for pid in children.iter().copied().chain([postmaster]) {
            // A backend may have ended by itself meanwhile.
            let _ = kill(pid, Signal::SIGKILL);
        }
        let deadline = Instant::now() + SERVER_TIMEOUT;
        while children.iter().any(|&pid| is_running(pid)) {
            assert!(
                Instant::now() < deadline,
                "a killed server process does not go"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        // The one thing a killed server leaves outside its directory.
        if let Some(id) = segment {
            let _ = Command::new("ipcrm")
                .args(["-m", &id])
                .stderr(Stdio::null())
                .status();
        }
    }

    /// Id of the System V segment by which servers keep each other out of a data directory: the
    /// second number on the seventh line of postmaster.pid.
    fn shared_memory_id(&self) -> Option<String> {
        let text = std::fs::read_to_string(self.data.join("postmaster.pid")).ok()?;
        text.lines()
            .nth(6)?
            .split_whitespace()
            .nth(1)
            .map(str::to_owned)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end(Stop::Immediate);
    }
}

fn children_of(parent: Pid) -> Vec<Pid> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let list = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    list.split_whitespace()
        .map(|pid| Pid::from_raw(pid.parse().expect("a process id")))
        .collect()
}

/// Whether a process still runs; one that only waits to be reaped does not.
fn is_running(pid: Pid) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}
