//! The command line, as data. What each command does with it stands in the command's file.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgAction, ArgGroup, Args, Parser, Subcommand, ValueEnum};

use super::waldump::args::WaldumpArgs;
use crate::recovery::CopyMethod;
use crate::types::Lsn;

/// Replays PostgreSQL WAL onto a data directory without a server.
#[derive(Debug, Parser)]
#[command(name = "pgredo", version, disable_help_flag = true)]
pub struct Cli {
    /// Show help
    #[arg(short = 'h', short_alias = '?', long, global = true, action = ArgAction::Help)]
    help: Option<bool>,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Replay WAL: leave the directory as PostgreSQL's own recovery would
    Replay(ReplayArgs),
    /// Print WAL records as pg_waldump does (also under that name)
    Waldump(WaldumpArgs),
    /// Compare two data directories, file by file and block by block
    Compare(CompareArgs),
    /// Replay in memory and compare pages with the images of wal_consistency_checking
    Verify(VerifyArgs),
    /// Print what pg_controldata prints
    Control(ControlArgs),
    /// Print the CRC-32 of every file that recovery determines
    Fingerprint(FingerprintArgs),
    /// Put the system calls of several runs side by side
    StraceCompare(StraceCompareArgs),
}

/// The data directory, in the order of strength of PostgreSQL's tools: `-D` or positional, then
/// `PGDATA`.
#[derive(Debug, Clone, Args)]
pub struct DataDirectory {
    /// Data directory [default: $PGDATA]
    #[arg(value_name = "DIR")]
    positional: Option<PathBuf>,
    /// Data directory
    #[arg(short = 'D', long, value_name = "DIR", conflicts_with = "positional")]
    pgdata: Option<PathBuf>,
}

impl DataDirectory {
    /// The directory given, or that of the environment.
    pub fn resolve(&self) -> Option<PathBuf> {
        self.resolve_with(std::env::var_os("PGDATA"))
    }

    fn resolve_with(&self, environment: Option<OsString>) -> Option<PathBuf> {
        let given = self.pgdata.as_ref().or(self.positional.as_ref());
        match given {
            Some(directory) => Some(directory.clone()),
            None => environment.filter(|v| !v.is_empty()).map(PathBuf::from),
        }
    }
}

/// `pgredo replay`.
#[derive(Debug, Clone, Args)]
#[command(group(ArgGroup::new("destination").required(true).args(["in_place", "output"])))]
#[command(group(ArgGroup::new("method").args(["copy", "clone", "copy_file_range"])))]
pub struct ReplayArgs {
    /// Where to replay.
    #[command(flatten)]
    pub data_directory: DataDirectory,
    /// Change the data directory itself
    #[arg(long)]
    pub in_place: bool,
    /// Leave the data directory alone and write to NEWDIR, which must be new or empty
    #[arg(short, long, value_name = "NEWDIR")]
    pub output: Option<PathBuf>,
    /// Copy files by reading and writing (the default)
    #[arg(long, conflicts_with = "in_place")]
    copy: bool,
    /// Clone files: they share blocks until one side changes (needs a file system that can)
    #[arg(long, conflicts_with = "in_place")]
    clone: bool,
    /// Copy files with copy_file_range
    #[arg(long, conflicts_with = "in_place")]
    copy_file_range: bool,
    /// With --output: place the tablespace at OLD at NEW (repeatable)
    #[arg(
        short = 'T',
        long = "tablespace-mapping",
        value_name = "OLD=NEW",
        conflicts_with = "in_place"
    )]
    pub tablespace_mapping: Vec<TablespaceMapping>,
    /// Look for WAL segments in DIR too, before pg_wal (repeatable)
    #[arg(long, value_name = "DIR")]
    pub wal_dir: Vec<PathBuf>,
    /// Stop before the first record that starts at or after LSN
    #[arg(long, value_name = "LSN")]
    pub target_lsn: Option<Lsn>,
    /// Refuse what PostgreSQL would carry on from silently
    #[arg(long)]
    pub strict: bool,
    /// Say what would be done, write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Order of redo
    #[arg(long, value_enum, default_value_t = RedoOrder::Page)]
    pub order: RedoOrder,
    /// Workers, with --order page [default: one for each core]
    #[arg(short, long, value_name = "N")]
    pub jobs: Option<NonZeroUsize>,
    /// Memory for a window of records, with --order page [default: an eighth of the machine's]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<ByteSize>,
    /// Memory for pages, with --order record [default: 512MB, or a quarter of the machine's]
    #[arg(long, value_name = "SIZE")]
    pub buffers: Option<ByteSize>,
    /// Remember relation sizes instead of asking the kernel each time
    #[arg(long, value_enum, value_name = "ON|OFF", default_value_t = OnOff::On)]
    pub nblocks_cache: OnOff,
    /// Do not wait for changes to be safe on disk; a crash of the machine may then lose them
    #[arg(short = 'N', long)]
    pub no_sync: bool,
    /// How to make changes safe on disk
    #[arg(long, value_enum, default_value_t = SyncMethod::Fsync)]
    pub sync_method: SyncMethod,
    /// Show progress
    #[arg(
        short = 'P',
        long,
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_value = "none",
        default_missing_value = "auto"
    )]
    pub progress: ProgressMode,
    /// Print counters when done
    #[arg(long, value_enum, default_value_t = StatsFormat::None)]
    pub stats: StatsFormat,
    /// Write the counters to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    pub stats_file: Option<PathBuf>,
}

impl ReplayArgs {
    /// How files get into the output directory.
    pub fn copy_method(&self) -> CopyMethod {
        match (self.clone, self.copy_file_range) {
            (true, _) => CopyMethod::Clone,
            (_, true) => CopyMethod::CopyFileRange,
            // `--copy` only spells the default out.
            _ => CopyMethod::Copy,
        }
    }
}

/// `--order`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RedoOrder {
    /// One record after another, as PostgreSQL does
    Record,
    /// Page by page over windows of many records, on all cores
    Page,
}

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    /// On
    On,
    /// Off
    Off,
}

/// `--sync-method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SyncMethod {
    /// Each changed file and directory
    Fsync,
    /// Each file system that holds one
    Syncfs,
}

/// `--progress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProgressMode {
    /// A bar on a terminal, lines otherwise
    Auto,
    /// One line, redrawn
    Bar,
    /// A log line every ten seconds
    Lines,
    /// Nothing
    None,
}

/// `--stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StatsFormat {
    /// Nothing
    None,
    /// For people; system calls in the columns of `strace -c`
    Text,
    /// One JSON object
    Json,
}

/// An amount of memory, in bytes, written with one of PostgreSQL's units. There is no plain
/// number: shared_buffers would take one for blocks, other tools for bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteSize(pub u64);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteSize, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let shift = match unit.trim_start() {
            "B" => 0,
            "kB" => 10,
            "MB" => 20,
            "GB" => 30,
            "TB" => 40,
            _ => return Err("expected a number with unit B, kB, MB, GB or TB".to_owned()),
        };
        let number: u64 = number
            .parse()
            .map_err(|_| "expected a number such as 128MB".to_owned())?;
        match number.checked_mul(1 << shift) {
            Some(bytes) => Ok(ByteSize(bytes)),
            None => Err("out of range".to_owned()),
        }
    }
}

/// `-T OLD=NEW`; a `=` inside a path is written `\=`, as pg_basebackup has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablespaceMapping {
    /// Where the tablespace is.
    pub old: PathBuf,
    /// Where its copy shall be.
    pub new: PathBuf,
}

impl FromStr for TablespaceMapping {
    type Err = String;

    fn from_str(text: &str) -> Result<TablespaceMapping, String> {
        let mut sides = vec![String::new()];
        let mut characters = text.chars().peekable();
        while let Some(c) = characters.next() {
            match c {
                '=' => sides.push(String::new()),
                '\\' if characters.peek() == Some(&'=') => {
                    characters.next();
                    sides.last_mut().expect("one side at least").push('=');
                }
                other => sides.last_mut().expect("one side at least").push(other),
            }
        }
        let [old, new] = sides.as_slice() else {
            return Err("expected OLD=NEW, with \\= for a \"=\" in a path".to_owned());
        };
        for path in [old, new] {
            if !path.starts_with('/') {
                return Err(format!("\"{path}\" is not an absolute path"));
            }
        }
        Ok(TablespaceMapping {
            old: old.into(),
            new: new.into(),
        })
    }
}

/// `pgredo compare`. Exit status 0 means equal, 1 that something differs or could not be read.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// One data directory
    pub a: PathBuf,
    /// The other
    pub b: PathBuf,
    /// Compare pg_wal too
    #[arg(long)]
    pub wal: bool,
    /// Leave nothing out: compare files of the running server, statistics and clock readings too
    #[arg(long)]
    pub all: bool,
    /// Name what is left out by rule, and every differing block
    #[arg(short, long)]
    pub verbose: bool,
}

/// `pgredo verify`. Exit status 0 means no difference, 1 that there are some.
#[derive(Debug, Clone, Args)]
pub struct VerifyArgs {
    /// What to replay; nothing in it is changed.
    #[command(flatten)]
    pub data_directory: DataDirectory,
    /// Look for WAL segments in DIR too, before pg_wal (repeatable)
    #[arg(long, value_name = "DIR")]
    pub wal_dir: Vec<PathBuf>,
}

/// `pgredo control`.
#[derive(Debug, Clone, Args)]
pub struct ControlArgs {
    /// Whose control file.
    #[command(flatten)]
    pub data_directory: DataDirectory,
}

/// `pgredo fingerprint`.
#[derive(Debug, Clone, Args)]
pub struct FingerprintArgs {
    /// Whose files.
    #[command(flatten)]
    pub data_directory: DataDirectory,
}

/// `pgredo strace-compare`.
#[derive(Debug, Clone, Args)]
pub struct StraceCompareArgs {
    /// Outputs of `strace -c` or of `pgredo replay --stats json`
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn replay(line: &str) -> Result<ReplayArgs, clap::Error> {
        let words = ["pgredo", "replay"].into_iter().chain(line.split(' '));
        Cli::try_parse_from(words).map(|cli| match cli.command {
            Command::Replay(args) => args,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn replay_needs_exactly_one_destination() {
        assert!(replay("dir").is_err());
        assert!(replay("dir --in-place -o new").is_err());
        assert!(replay("dir --in-place --clone").is_err());
        assert!(replay("dir -o new --clone --copy").is_err());
        let args = replay("dir -o new --clone").unwrap();
        assert_eq!(args.copy_method(), CopyMethod::Clone);
        let args = replay("-D dir --in-place").unwrap();
        assert_eq!(args.copy_method(), CopyMethod::Copy);
        assert_eq!(args.buffers, None);
        assert_eq!(args.progress, ProgressMode::None);
    }

    #[test]
    fn progress_takes_its_value_after_an_equals_sign_only() {
        let progress = |line| replay(line).unwrap().progress;
        assert_eq!(progress("-P --in-place"), ProgressMode::Auto);
        assert_eq!(progress("--in-place --progress dir"), ProgressMode::Auto);
        assert_eq!(progress("--progress=lines --in-place"), ProgressMode::Lines);
    }

    #[test]
    fn data_directory_in_order_of_strength() {
        let directory = |line, environment: Option<&str>| {
            let args = replay(line).unwrap();
            args.data_directory
                .resolve_with(environment.map(OsString::from))
        };
        let env = Some("env");
        assert_eq!(directory("--in-place x", env), Some(PathBuf::from("x")));
        assert_eq!(directory("--in-place -D y", env), Some(PathBuf::from("y")));
        assert_eq!(directory("--in-place", env), Some(PathBuf::from("env")));
        assert_eq!(directory("--in-place", Some("")), None);
        assert!(replay("--in-place -D y x").is_err());
    }

    #[test]
    fn sizes() {
        assert_eq!("128MB".parse(), Ok(ByteSize(128 << 20)));
        assert_eq!("64 kB".parse(), Ok(ByteSize(64 << 10)));
        for bad in ["", "MB", "128", "128mb", "-1MB", "1.5GB", "99999999TB"] {
            assert!(bad.parse::<ByteSize>().is_err(), "{bad}");
        }
    }

    #[test]
    fn tablespace_mappings() {
        let mapping: TablespaceMapping = "/a\\=b=/c".parse().unwrap();
        assert_eq!(mapping.old, PathBuf::from("/a=b"));
        assert_eq!(mapping.new, PathBuf::from("/c"));
        for bad in ["/a", "/a=b", "a=/b", "/a=/b=/c", "="] {
            assert!(bad.parse::<TablespaceMapping>().is_err(), "{bad}");
        }
    }
}
