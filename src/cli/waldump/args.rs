//! The arguments of `pgredo waldump`, in pg_waldump's letters and with its leniency: numbers are
//! read as its `sscanf` reads them, so what follows the number is not looked at, and of an option
//! that is given twice the last one counts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args, CommandFactory, Parser, ValueEnum};

use super::super::error::CliError;
use super::filter::Filter;
use crate::types::Lsn;

/// Under this name the program is pg_waldump.
const PG_WALDUMP: &str = "pg_waldump";

/// `pgredo waldump`.
#[derive(Debug, Clone, Args)]
#[command(args_override_self = true, infer_long_args = true)]
pub struct WaldumpArgs {
    /// Segment to start with
    #[arg(value_name = "STARTSEG")]
    pub(super) start_segment: Option<PathBuf>,
    /// Segment to end with
    #[arg(value_name = "ENDSEG")]
    pub(super) end_segment: Option<PathBuf>,
    /// Print each block reference on a line of its own, with the details of its image
    #[arg(short, long)]
    pub(super) bkp_details: bool,
    /// With --relation: only records that touch block N
    #[arg(short = 'B', long, value_name = "N", allow_hyphen_values = true)]
    pub(super) block: Option<String>,
    /// Stop reading at LSN
    #[arg(short, long, value_name = "LSN", allow_hyphen_values = true)]
    pub(super) end: Option<String>,
    /// Do not stop at the end of WAL, look for more once a second
    #[arg(short, long)]
    pub(super) follow: bool,
    /// Only records that touch this fork: main, fsm, vm or init
    #[arg(short = 'F', long, value_name = "FORK", allow_hyphen_values = true)]
    pub(super) fork: Option<String>,
    /// Number of records to print
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true)]
    pub(super) limit: Option<String>,
    /// Directory with segments, or with a pg_wal that has them
    /// [default: current directory, ./pg_wal, $PGDATA/pg_wal]
    #[arg(short, long, allow_hyphen_values = true)]
    pub(super) path: Option<PathBuf>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub(super) quiet: bool,
    /// Only records of this resource manager (repeatable); `list` prints the names
    #[arg(short, long, action = ArgAction::Append, allow_hyphen_values = true)]
    pub(super) rmgr: Vec<String>,
    /// Only records that touch relation T/D/R: tablespace, database, file number
    #[arg(short = 'R', long, value_name = "T/D/R", allow_hyphen_values = true)]
    pub(super) relation: Option<String>,
    /// Start reading at LSN
    #[arg(short, long, value_name = "LSN", allow_hyphen_values = true)]
    pub(super) start: Option<String>,
    /// Timeline to read [default: that of STARTSEG, or 1]
    #[arg(short, long, value_name = "TLI", allow_hyphen_values = true)]
    pub(super) timeline: Option<String>,
    /// Only records with a page image
    #[arg(short = 'w', long)]
    pub(super) fullpage: bool,
    /// Only records of transaction XID
    #[arg(short, long, value_name = "XID", allow_hyphen_values = true)]
    pub(super) xid: Option<String>,
    /// Print statistics instead of records: for each resource manager, or for each kind of record
    #[arg(
        short = 'z',
        long,
        value_name = "record",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "rmgr"
    )]
    pub(super) stats: Option<String>,
    /// Write the image of each page into a file of DIR, which must be new or empty
    #[arg(long, value_name = "DIR")]
    pub(super) save_fullpage: Option<PathBuf>,
    /// How records are printed
    #[arg(long, value_enum, default_value_t = RecordFormat::Text)]
    pub(super) format: RecordFormat,
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RecordFormat {
    /// As pg_waldump prints them
    Text,
    /// One JSON object a line: lsn, end_lsn, prev, rmgr, rmid, name, info, xid, total_bytes,
    /// main_data_bytes, fpi_bytes, blocks, desc. Of each block: id, spc, db, rel, fork, blk,
    /// data_bytes, and, if it has an image, fpw: hole_offset, hole_length, compression, apply,
    /// bytes
    Json,
}

/// The same program under pg_waldump's own name.
#[derive(Debug, Parser)]
#[command(
    name = PG_WALDUMP,
    about = "Prints PostgreSQL WAL records",
    disable_help_flag = true,
    disable_version_flag = true
)]
struct PgWaldump {
    /// Show help
    #[arg(short = '?', long, action = ArgAction::Help)]
    help: Option<bool>,
    /// Show the version
    #[arg(short = 'V', long)]
    version: bool,
    #[command(flatten)]
    args: WaldumpArgs,
}

/// What pg_waldump was asked for.
#[derive(Debug)]
pub(in crate::cli) enum PgWaldumpCall {
    /// To print records.
    Dump(Box<WaldumpArgs>),
    /// Its version.
    Version,
    /// Help, in a form to be printed.
    Help(clap::Error),
}

/// True if the program was called by pg_waldump's name.
pub(in crate::cli) fn is_pg_waldump(program: &OsStr) -> bool {
    Path::new(program).file_name() == Some(OsStr::new(PG_WALDUMP))
}

/// Reads a command line as pg_waldump would, complaints in its words.
pub(in crate::cli) fn parse_as_pg_waldump(
    words: &[std::ffi::OsString],
) -> Result<PgWaldumpCall, CliError> {
    if words.len() <= 1 {
        return Err(CliError::bad_argument("no arguments specified"));
    }
    match PgWaldump::try_parse_from(words) {
        Ok(parsed) if parsed.version => Ok(PgWaldumpCall::Version),
        Ok(parsed) => Ok(PgWaldumpCall::Dump(Box::new(parsed.args))),
        Err(error) if !error.use_stderr() => Ok(PgWaldumpCall::Help(error)),
        Err(error) => Err(CliError::bad_argument(complaint(&error))),
    }
}

/// What getopt says, or main() of pg_waldump.
fn complaint(error: &clap::Error) -> String {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.as_str(),
        _ => "",
    };
    let takes_none = || PgWaldump::command().get_positionals().count() > 0;
    match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with("--") => {
            format!("unrecognized option '{argument}'")
        }
        ErrorKind::UnknownArgument if argument.starts_with('-') => {
            let letter = argument.trim_start_matches('-');
            format!("invalid option -- '{letter}'")
        }
        ErrorKind::UnknownArgument if takes_none() => {
            format!("too many command-line arguments (first is \"{argument}\")")
        }
        ErrorKind::InvalidValue => format!("option '{argument}' requires an argument"),
        _ => {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text);
            text.split("\n\n").next().unwrap_or_default().to_owned()
        }
    }
}

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RangeRequest {
    pub(super) start_segment: Option<PathBuf>,
    pub(super) end_segment: Option<PathBuf>,
    pub(super) path: Option<PathBuf>,
    pub(super) start: Option<Lsn>,
    pub(super) end: Option<Lsn>,
    pub(super) timeline: u32,
}

/// What is done with the records that are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// Nothing (`-q`).
    Quiet,
    /// One line each.
    Short,
    /// With lines for their block references (`-b`).
    Details,
    /// One object each.
    Json,
    /// Counted by resource manager.
    StatsByRmgr,
    /// Counted by kind of record.
    StatsByRecord,
}

/// The arguments, read and checked.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) range: RangeRequest,
    pub(super) filter: Filter,
    pub(super) output: Output,
    /// Stop after so many records.
    pub(super) limit: u64,
    /// Wait for more WAL.
    pub(super) follow: bool,
    pub(super) save_fullpage: Option<PathBuf>,
}

impl Request {
    pub(super) fn from_args(args: &WaldumpArgs) -> Result<Request, CliError> {
        let timeline = |text: &str| {
            scan_u32(text).ok_or_else(|| {
                CliError::bad_argument(format!("invalid timeline specification: \"{text}\""))
            })
        };
        let range = RangeRequest {
            start_segment: args.start_segment.clone(),
            end_segment: args.end_segment.clone(),
            path: args.path.clone(),
            start: location(args.start.as_deref())?,
            end: location(args.end.as_deref())?,
            timeline: args.timeline.as_deref().map_or(Ok(1), timeline)?,
        };
        let limit = |text: &str| {
            let text_is_wrong = || {
                let text = format!("invalid value \"{text}\" for option -n/--limit");
                CliError::bad_argument(text)
            };
            scan_i32(text).ok_or_else(text_is_wrong)
        };
        // pg_waldump takes a limit of 0, and one below, for none.
        let limit = match args.limit.as_deref().map_or(Ok(0), limit)? {
            none if none <= 0 => u64::MAX,
            some => u64::from(some.unsigned_abs()),
        };
        Ok(Request {
            range,
            filter: Filter::from_args(args)?,
            output: output(args)?,
            limit,
            follow: args.follow,
            save_fullpage: args.save_fullpage.clone(),
        })
    }
}

fn output(args: &WaldumpArgs) -> Result<Output, CliError> {
    let stats = match args.stats.as_deref() {
        None => None,
        Some("rmgr") => Some(Output::StatsByRmgr),
        Some("record") => Some(Output::StatsByRecord),
        Some(other) => {
            let text = format!("unrecognized value for option --stats: {other}");
            return Err(CliError::bad_argument(text));
        }
    };
    Ok(match (args.quiet, stats, args.format, args.bkp_details) {
        (true, ..) => Output::Quiet,
        (_, Some(stats), ..) => stats,
        (_, _, RecordFormat::Json, _) => Output::Json,
        (_, _, _, true) => Output::Details,
        (_, _, _, false) => Output::Short,
    })
}

/// A position; 0/0 counts as none.
fn location(text: Option<&str>) -> Result<Option<Lsn>, CliError> {
    let Some(text) = text else {
        return Ok(None);
    };
    let lsn = scan_lsn(text)
        .ok_or_else(|| CliError::bad_argument(format!("invalid WAL location: \"{text}\"")))?;
    Ok(lsn.is_valid().then_some(lsn))
}

/// `%X/%X`.
fn scan_lsn(text: &str) -> Option<Lsn> {
    let (high, rest) = scan_number(text, 16)?;
    let (low, _) = scan_number(rest.strip_prefix('/')?, 16)?;
    Some(Lsn(u64::from(high) << 32 | u64::from(low)))
}

/// `%u`.
pub(super) fn scan_u32(text: &str) -> Option<u32> {
    scan_number(text, 10).map(|(number, _)| number)
}

/// `%d`.
fn scan_i32(text: &str) -> Option<i32> {
    scan_u32(text).map(u32::cast_signed)
}

/// `%u/%u/%u`.
pub(super) fn scan_three(text: &str) -> Option<[u32; 3]> {
    let (first, rest) = scan_number(text, 10)?;
    let (second, rest) = scan_number(rest.strip_prefix('/')?, 10)?;
    let (third, _) = scan_number(rest.strip_prefix('/')?, 10)?;
    Some([first, second, third])
}

/// A number as `sscanf` reads it, and what follows: blanks, a sign, digits, and no more than
/// 32 bits of them are kept.
fn scan_number(text: &str, radix: u32) -> Option<(u32, &str)> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let prefixed = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    let digits_follow = |rest: &&str| rest.starts_with(|c: char| c.is_digit(radix));
    let text = match prefixed.filter(|_| radix == 16).filter(digits_follow) {
        Some(rest) => rest,
        None => text,
    };
    let end = text
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(text.len());
    let mut number = 0u64;
    for digit in text[..end].chars().filter_map(|c| c.to_digit(radix)) {
        number = number
            .saturating_mul(u64::from(radix))
            .saturating_add(u64::from(digit));
    }
    let number = number as u32;
    let signed = if negative {
        number.wrapping_neg()
    } else {
        number
    };
    (end > 0).then_some((signed, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<WaldumpArgs, String> {
        let words: Vec<std::ffi::OsString> = line.split(' ').map(Into::into).collect();
        match parse_as_pg_waldump(&words) {
            Ok(PgWaldumpCall::Dump(args)) => Ok(*args),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    fn request(line: &str) -> Result<Request, String> {
        Request::from_args(&parse(line)?).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_are_read_as_sscanf_reads_them() {
        assert_eq!(scan_lsn("1/af"), Some(Lsn(0x1_0000_00AF)));
        assert_eq!(scan_lsn(" 0x1/0XAFz"), Some(Lsn(0x1_0000_00AF)));
        assert_eq!(scan_lsn("1/"), None);
        assert_eq!(scan_lsn("1 /2"), None);
        assert_eq!(scan_u32("12abc"), Some(12));
        assert_eq!(scan_u32("-1"), Some(u32::MAX));
        assert_eq!(scan_u32("x"), None);
        assert_eq!(scan_i32("-5"), Some(-5));
        assert_eq!(scan_three("1663/5/16384"), Some([1663, 5, 16384]));
        assert_eq!(scan_three("1663/5"), None);
        assert_eq!(scan_u32("0x10"), Some(0));
    }

    #[test]
    fn letters_combine_and_the_last_of_an_option_counts() {
        let args = parse("pg_waldump -bqw -s 0/1 -s0/2 --star=0/3 -rHeap -r Btree seg").unwrap();
        assert!(args.bkp_details && args.quiet && args.fullpage);
        assert_eq!(args.start.as_deref(), Some("0/3"));
        assert_eq!(args.rmgr, ["Heap", "Btree"]);
        assert_eq!(args.start_segment, Some("seg".into()));
    }

    #[test]
    fn statistics_take_their_value_after_an_equals_sign_only() {
        let stats = |line| {
            let args = parse(line).unwrap();
            (args.stats, args.start_segment.is_some())
        };
        assert_eq!(stats("pg_waldump -z"), (Some("rmgr".into()), false));
        assert_eq!(stats("pg_waldump -zb seg"), (Some("rmgr".into()), true));
        assert_eq!(stats("pg_waldump -z record"), (Some("rmgr".into()), true));
        assert_eq!(
            stats("pg_waldump --stats=record"),
            (Some("record".into()), false)
        );
        assert!(request("pg_waldump --stats=x").is_err());
    }

    #[test]
    fn output_in_order_of_strength() {
        let output = |line| request(line).unwrap().output;
        assert_eq!(output("pg_waldump -qz"), Output::Quiet);
        assert_eq!(output("pg_waldump -bz"), Output::StatsByRmgr);
        assert_eq!(output("pg_waldump -b --format json"), Output::Json);
        assert_eq!(output("pg_waldump -b"), Output::Details);
    }

    #[test]
    fn a_limit_below_one_is_none() {
        let limit = |line| request(line).unwrap().limit;
        assert_eq!(limit("pg_waldump -n 3"), 3);
        assert_eq!(limit("pg_waldump -n 0"), u64::MAX);
        assert_eq!(limit("pg_waldump -n -7"), u64::MAX);
        assert!(request("pg_waldump -n x").is_err());
    }

    #[test]
    fn complaints_are_those_of_getopt_and_of_pg_waldump() {
        let complaint = |line| request(line).unwrap_err();
        assert_eq!(complaint("pg_waldump"), "no arguments specified");
        assert_eq!(complaint("pg_waldump --foo"), "unrecognized option '--foo'");
        assert_eq!(complaint("pg_waldump -bk"), "invalid option -- 'k'");
        assert_eq!(
            complaint("pg_waldump a b c"),
            "too many command-line arguments (first is \"c\")"
        );
        assert_eq!(complaint("pg_waldump -s 1"), "invalid WAL location: \"1\"");
        assert_eq!(
            complaint("pg_waldump -t x"),
            "invalid timeline specification: \"x\""
        );
    }
}
