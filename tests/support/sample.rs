//! The samples of `wal-samples`: small crash images with the fingerprint of PostgreSQL's own
//! recovery, so that a replay can be checked where there is no server. `wal-samples/README.md`
//! describes what is in them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::capture::Capture;
use super::control::Control;
use super::fingerprint::fingerprint;
use super::recipe::{Recipe, Step};
use super::{copy_directory, entries, remove_directory, repository, run};
use Step::{Scripts, Sql};

const PRUNE: &str = include_str!("../workloads/sample_prune.sql");
const PGBENCH_BEFORE: &str = include_str!("../workloads/sample_pgbench_before.sql");
const PGBENCH: &str = include_str!("../workloads/sample_pgbench.sql");
const DDL: &str = include_str!("../workloads/sample_ddl.sql");
const LOCKS_BEFORE: &str = include_str!("../workloads/sample_locks_before.sql");
const LOCKS: &str = include_str!("../workloads/sample_locks.sql");
const LOCKS_AFTER: &str = include_str!("../workloads/sample_locks_after.sql");

/// Names of the samples.
pub const SAMPLES: &[&str] = &["pgbench", "ddl", "locks"];

/// Names of a sample's archive and of the file with its fingerprint.
const ARCHIVE: &str = "crash.tar.zst";
const FINGERPRINT: &str = "fingerprint.txt";

/// A sample in `wal-samples`.
#[derive(Debug)]
pub struct Sample {
    directory: PathBuf,
}

impl Sample {
    /// The one of this name.
    pub fn named(name: &str) -> Sample {
        Sample {
            directory: repository().join("wal-samples").join(name),
        }
    }

    /// The fingerprint of the directory as PostgreSQL's own recovery left it.
    pub fn fingerprint(&self) -> String {
        let path = self.directory.join(FINGERPRINT);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
    }

    /// Unpacks the crash image and returns the data directory, `into/data`.
    pub fn unpack(&self, into: &Path) -> PathBuf {
        let path = self.directory.join(ARCHIVE);
        let file = File::open(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let plain = zstd::Decoder::new(file).expect("a decoder");
        let mut archive = tar::Archive::new(plain);
        archive
            .unpack(into)
            .unwrap_or_else(|error| panic!("{path:?}: {error}"));
        into.join("data")
    }

    /// Makes the sample from a crash image and PostgreSQL's recovery of it.
    fn make(&self, capture: &Capture) {
        std::fs::create_dir_all(&self.directory).expect("wal-samples");
        let reference = capture.reference();
        let text = fingerprint(&reference.data());
        std::fs::write(self.directory.join(FINGERPRINT), text).expect("wal-samples");

        let work = tempfile::tempdir().expect("a temp dir");
        let data = work.path().join("data");
        copy_directory(&capture.image(), &data);
        prune(&data, &Control::read(&reference.data()));
        // The same image gives the same archive.
        let mut tar = Command::new("tar");
        tar.args([
            "--create",
            "--sort=name",
            "--format=gnu",
            "--owner=0",
            "--group=0",
        ]);
        tar.args([
            "--numeric-owner",
            "--mtime=@0",
            "--use-compress-program=zstd -19 -T1",
            "-C",
        ]);
        run(tar
            .arg(work.path())
            .arg("-f")
            .arg(self.directory.join(ARCHIVE))
            .arg("data"));
    }
}

/// Removes what recovery neither reads nor leaves: WAL from before the redo point, segments kept
/// for the future, caches and marks of the server.
fn prune(data: &Path, recovered: &Control) {
    let crashed = Control::read(data);
    let wal = data.join("pg_wal");
    let needed = crashed.segment_name(crashed.redo())..=recovered.segment_name(recovered.redo());
    for segment in entries(&wal).into_iter().filter(|path| path.is_file()) {
        let name = segment
            .file_name()
            .and_then(|name| name.to_str())
            .expect("ASCII")
            .to_owned();
        if !needed.contains(&name) {
            std::fs::remove_file(&segment).expect("a segment");
        }
    }
    for path in entries(&data.join("base"))
        .into_iter()
        .chain([data.join("global")])
    {
        std::fs::remove_file(path.join("pg_internal.init")).ok();
    }
    for name in ["pg_stat", "pg_stat_tmp"] {
        remove_directory(&data.join(name));
        std::fs::create_dir(data.join(name)).expect("a data directory");
    }
    std::fs::remove_file(data.join("postmaster.opts")).ok();
}

/// Makes every sample anew; needs a server.
pub fn make_all() {
    let options = &["--wal-segsize=1", "-k"];
    for recipe in [pgbench(), ddl(), locks()] {
        let sample = Sample::named(recipe.name.trim_start_matches("sample_"));
        let recipe = recipe.initdb(options);
        sample.make(&Capture::of(recipe));
        println!("made {}", sample.directory.display());
    }
}

fn pgbench() -> Recipe {
    let steps = vec![
        Sql(PRUNE),
        Sql(PGBENCH_BEFORE),
        Scripts(&["-M", "prepared", "-c", "2", "-t", "200"], &[PGBENCH]),
    ];
    Recipe::new("sample_pgbench", steps).variant("sample_pgbench", &["wal_compression = lz4"])
}

fn ddl() -> Recipe {
    let steps = vec![Sql(PRUNE), Sql(DDL)];
    Recipe::new("sample_ddl", steps).variant("sample_ddl", &["wal_compression = pglz"])
}

fn locks() -> Recipe {
    let steps = vec![
        Sql(PRUNE),
        Sql(LOCKS_BEFORE),
        Scripts(&["-c", "4", "-j", "2", "-t", "25"], &[LOCKS]),
        Sql(LOCKS_AFTER),
    ];
    let settings = &["wal_consistency_checking = all", "wal_compression = pglz"];
    Recipe::new("sample_locks", steps).variant("sample_locks", settings)
}
