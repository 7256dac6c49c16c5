//! `pgredo waldump` against pg_waldump: the same bytes and the same exit status, for WAL of real
//! servers and many combinations of options.

pub mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use support::capture::Capture;
use support::postgres::Tree;
use support::recipe::Recipe;
use support::{entries, workloads};

/// Options that any WAL can be read with.
const COMBINATIONS: &[&str] = &[
    "",
    "-b",
    "-q",
    "-z",
    "-zb",
    "-qz",
    "--stats=record",
    "--stats=rmgr -n 50",
    "-n 7",
    "-n 0 -b",
    "-n -3 -z",
    "-r heap",
    "-rBtree -r Heap2 -b",
    "-r custom130 -z",
    "-w",
    "-wb --stats=record",
    "-x 740",
    "-F main -n 200",
    "-F vm",
    "--fork=fsm -b",
    "-R 1663/5/1259 -b",
    "-R 1663/5/1259 -B 0",
    "--relation=1664/0/1262",
    "-R 1663/5/1259 -F vm",
    "--rel=1663/5/1249 --blo=3 --full",
];

/// WAL and who reads it.
struct Wal {
    tree: Tree,
    directory: PathBuf,
    segments: Vec<String>,
}

impl Wal {
    fn of(recipe: Recipe) -> Wal {
        let capture = Capture::of(recipe);
        let directory = capture.image().join("pg_wal");
        let names = entries(&directory)
            .into_iter()
            .filter(|path| path.is_file());
        let names = names.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
        Wal {
            tree: capture.tree().clone(),
            directory,
            segments: names.filter(|name| name.len() == 24).collect(),
        }
    }

    fn pg_waldump(&self, arguments: &[&str]) -> Output {
        run(Command::new(self.tree.program("pg_waldump")), arguments)
    }

    /// Both get the same arguments. A command line that makes no sense has an exit status of its
    /// own here.
    fn check(&self, arguments: &[&str]) {
        let theirs = self.pg_waldump(arguments);
        let mut command = Command::new(env!("CARGO_BIN_EXE_pgredo"));
        command.arg("waldump");
        let ours = run(command, arguments);
        assert_same(arguments, &ours, &theirs);
        let status = match ours.status.code() {
            Some(2) => Some(1),
            other => other,
        };
        assert_eq!(status, theirs.status.code(), "{arguments:?}");
    }

    fn check_line(&self, line: &str, more: &[&str]) {
        let directory = self.directory.to_str().expect("a path");
        let mut arguments: Vec<&str> = line.split_whitespace().collect();
        arguments.extend(["-p", directory]);
        arguments.extend(more);
        self.check(&arguments);
    }

    /// Positions of all records.
    fn positions(&self) -> Vec<String> {
        let first = self.segments[0].as_str();
        let last = self.segments[self.segments.len() - 1].as_str();
        let directory = self.directory.to_str().expect("a path");
        let output = self.pg_waldump(&["-p", directory, first, last]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let position =
            |line: &str| Some(line.split_once(", lsn: ")?.1.split_once(',')?.0.to_owned());
        text.lines().filter_map(position).collect()
    }
}

fn run(mut command: Command, arguments: &[&str]) -> Output {
    command.args(arguments).output().expect("it runs")
}

/// Names the first line that differs; the whole would bury it.
fn assert_same(arguments: &[&str], ours: &Output, theirs: &Output) {
    if ours.stdout == theirs.stdout {
        return;
    }
    let lines = |output: &Output| -> Vec<String> {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split('\n').map(str::to_owned).collect()
    };
    let (our_lines, their_lines) = (lines(ours), lines(theirs));
    let at = our_lines.iter().zip(&their_lines).position(|(a, b)| a != b);
    let at = at.unwrap_or(our_lines.len().min(their_lines.len()));
    panic!(
        "{arguments:?}: line {at} of {} and {}\npgredo     {:?}\npg_waldump {:?}\n{}{}",
        our_lines.len(),
        their_lines.len(),
        our_lines.get(at),
        their_lines.get(at),
        String::from_utf8_lossy(&ours.stderr),
        String::from_utf8_lossy(&theirs.stderr),
    );
}

fn check(recipe: Recipe) {
    let wal = Wal::of(recipe);
    let first = wal.segments[0].as_str();
    for line in COMBINATIONS {
        wal.check_line(line, &[first]);
    }
    // Up to the crash, where the WAL ends.
    let positions = wal.positions();
    let middle = positions[positions.len() / 2].as_str();
    for line in ["", "-b", "-z"] {
        wal.check_line(line, &["-s", middle]);
    }
}

#[test]
fn pgbench() {
    check(workloads::pgbench());
}

#[test]
fn consistency_checked() {
    check(workloads::consistency_checked());
}

#[test]
fn pglz() {
    check(workloads::pglz());
}

#[test]
fn zstd() {
    check(workloads::zstd());
}

#[test]
fn small_segments() {
    check(workloads::small_segments());
}

#[test]
fn many_transactions() {
    check(workloads::many_transactions());
}

#[test]
fn lifecycle() {
    check(workloads::lifecycle());
}

#[test]
fn torn_record() {
    check(workloads::torn_record());
}

/// Every way to say where to start and to end.
#[test]
fn ranges() {
    let wal = Wal::of(workloads::small_segments());
    let positions = wal.positions();
    let (from, upto) = (&positions[100], &positions[400]);
    let first = wal.segments[0].as_str();
    wal.check_line("", &["-s", from, "-e", upto]);
    wal.check_line("-z", &["-s", from, "-e", upto, first, &wal.segments[1]]);
    wal.check_line("", &[first, &wal.segments[1]]);
    wal.check_line("", &["-s", from, first]);
    wal.check_line("-t 1", &["-s", "0/0", "-e", "0/0", first]);
    wal.check_line("", &[&wal.segments[1], first]);
    wal.check_line("", &["-s", upto, "-e", from]);
    wal.check_line("", &["-s", upto, "-e", upto]);
    wal.check(&[
        "-n",
        "3",
        wal.directory.join(first).to_str().expect("a path"),
    ]);
    let parent = wal.directory.parent().expect("a data directory");
    wal.check(&["-n", "3", "-p", parent.to_str().expect("a path"), first]);
}

/// A range that ends, or begins, at any byte of a record.
#[test]
fn bounds_inside_records() {
    let wal = Wal::of(workloads::small_segments());
    let positions = wal.positions();
    let parse = |position: &str| {
        let low = position.split_once('/').expect("an LSN").1;
        u64::from_str_radix(low, 16).expect("hexadecimal")
    };
    let is_inside = |at: &u64| (1000..7000).contains(&(at % 8192));
    let start = positions[300..].iter().map(|p| parse(p)).find(is_inside);
    let start = start.expect("a record in the middle of a page");
    let from = format!("0/{:X}", start - 200);
    for end in (start - 100..start + 100).step_by(3) {
        wal.check_line("", &["-s", &from, "-e", &format!("0/{end:X}")]);
        wal.check_line("", &["-n", "2", "-s", &format!("0/{end:X}")]);
    }
    // Around the end of a page. Of a header at the start of a page that is only partly in the
    // range, pg_waldump takes the rest from the page before.
    let page = start - start % 8192 + 8192;
    let from = format!("0/{:X}", page - 1000);
    for end in (page - 40..page + 24).chain(page + 48..page + 90) {
        wal.check_line("", &["-s", &from, "-e", &format!("0/{end:X}")]);
    }
}

/// Under pg_waldump's name, which has one exit status for all that is wrong.
#[test]
fn complaints_under_the_name_pg_waldump() {
    let wal = Wal::of(workloads::small_segments());
    let root = tempfile::tempdir().expect("a temp dir");
    let link = root.path().join("pg_waldump");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pgredo"), &link).expect("a link");
    let directory = wal.directory.to_str().expect("a path");
    let first = wal.segments[0].as_str();
    let both = |arguments: &[&str]| {
        let ours = run(Command::new(&link), arguments);
        let theirs = wal.pg_waldump(arguments);
        assert_same(arguments, &ours, &theirs);
        let status = |output: &Output| output.status.code();
        assert_eq!(status(&ours), status(&theirs), "{arguments:?}");
        // getopt puts the path before its complaint and quotes as the locale has it.
        let error = |output: &Output| {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            text.lines().next().unwrap_or_default().to_owned()
        };
        assert_eq!(error(&ours), error(&theirs), "{arguments:?}");
    };
    both(&[]);
    both(&["-r", "list"]);
    both(&["-r", "LIST", "--foo=1"].map(|a| if a == "--foo=1" { "-q" } else { a }));
    both(&["-r", "nothing"]);
    both(&["-r", "custom12"]);
    both(&["-B", "1", "-p", directory, first]);
    both(&["-B", "x"]);
    both(&["-F", "nothing"]);
    both(&["-R", "1/2"]);
    both(&["-s", "nowhere"]);
    both(&["-e", "1"]);
    both(&["-n", "many"]);
    both(&["-t", "old"]);
    both(&["-x", "me"]);
    both(&["--stats=none"]);
    both(&["-p", "/nonexistent"]);
    both(&["-p", directory]);
    both(&["-p", directory, first, first, first]);
    both(&["-p", directory, "-s", "7/0", first]);
    both(&["-p", directory, "-e", "7/0", first]);
    both(&["-p", directory, "-n2", first]);
    let help = run(Command::new(&link), &["--help"]);
    assert!(help.status.success() && !help.stdout.is_empty());
}

/// A reader that follows prints records as they are written, and ends at the last one wanted.
#[test]
fn follow() {
    let wal = Wal::of(workloads::small_segments());
    let root = tempfile::tempdir().expect("a temp dir");
    let first = wal.segments[0].as_str();
    let whole = std::fs::read(wal.directory.join(first)).expect("a segment");
    let growing = root.path().join(first);
    let mut part = whole.clone();
    part[whole.len() / 2..].fill(0);
    std::fs::write(&growing, &part).expect("a temp file");

    // The segments have 1 MB.
    let start = |name: &str| {
        let number = u32::from_str_radix(&name[16..], 16).expect("hexadecimal");
        format!("0/{:X}", number << 20)
    };
    let end = start(&wal.segments[2]);
    let child = Command::new(env!("CARGO_BIN_EXE_pgredo"))
        .args(["waldump", "-f", "-s", &start(first), "-e", &end, "-p"])
        .arg(root.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    std::thread::sleep(Duration::from_millis(400));
    std::fs::write(&growing, &whole).expect("a temp file");
    std::thread::sleep(Duration::from_millis(1400));
    let second = Path::new(&wal.segments[1]);
    std::fs::copy(wal.directory.join(second), root.path().join(second)).expect("a copy");
    let ours = child.wait_with_output().expect("it ends");
    let directory = wal.directory.to_str().expect("a path");
    let theirs = wal.pg_waldump(&["-p", directory, first, &wal.segments[1]]);
    assert_same(&["-f"], &ours, &theirs);
    assert!(ours.status.success());
}

/// One file for each image that is printed, and every line of JSON is an object.
#[test]
fn page_images_and_json() {
    let wal = Wal::of(workloads::pglz());
    let root = tempfile::tempdir().expect("a temp dir");
    let pages = root.path().join("new/pages");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pgredo"));
    command
        .args(["waldump", "--format", "json", "--save-fullpage"])
        .arg(&pages);
    let directory = wal.directory.to_str().expect("a path");
    let output = run(command, &["-p", directory, &wal.segments[0]]);
    let text = String::from_utf8(output.stdout).expect("JSON");
    let mut images = 0;
    for line in text.lines() {
        let record: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let blocks = record["blocks"].as_array().expect("an array");
        images += blocks
            .iter()
            .filter(|block| block.get("fpw").is_some())
            .count();
    }
    let files = entries(&pages);
    assert!(images > 10, "{images}");
    assert_eq!(files.len(), images);
    for file in files {
        let page = std::fs::read(&file).expect("a page");
        assert_eq!(page.len(), 8192);
        // Its upper bound and its layout version.
        let special = u16::from_le_bytes([page[16], page[17]]);
        assert!(special <= 8192 && page[18] == 4, "{}", file.display());
    }
}
