//! `pgredo strace-compare`: what several runs asked of the kernel, side by side; and our own
//! counters in the form of `strace -c`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use serde_json::Value;
use thiserror::Error;

use super::args::StraceCompareArgs;
use super::error::CliError;
use super::{Exit, io};
use crate::sys::CallStats;

/// One system call of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The kernel's name, as strace prints it.
    pub name: String,
    /// How often it was called.
    pub calls: u64,
    /// How many of these failed.
    pub errors: u64,
    /// Time spent in it, in seconds.
    pub seconds: f64,
}

impl From<CallStats> for Row {
    fn from(stats: CallStats) -> Row {
        Row {
            name: stats.name.to_owned(),
            calls: stats.calls,
            errors: stats.errors,
            seconds: stats.seconds,
        }
    }
}

/// A file that is neither an output of `strace -c` nor our counters.
#[derive(Debug, Error)]
enum ParseError {
    /// JSON that does not parse.
    #[error("invalid JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// JSON without counters.
    #[error("there is no \"syscalls\" object; expected the output of pgredo replay --stats json")]
    NoSyscalls,
    /// A counter that is missing or no number.
    #[error("system call \"{name}\" has no number \"{field}\"")]
    Counter { name: String, field: &'static str },
    /// No header line.
    #[error("there is no line beginning with \"% time\"; expected an output of strace -c")]
    NoHeader,
    /// A line of the table that does not read as one.
    #[error("line {line} is not a row of strace -c: \"{text}\"")]
    Row { line: usize, text: String },
    /// A table that is cut off.
    #[error("the table of strace -c has no total line; is the file complete?")]
    NoTotal,
}

/// Prints the comparison.
pub(super) fn run(args: &StraceCompareArgs, out: &mut dyn Write) -> Result<Exit, CliError> {
    let mut runs = Vec::new();
    for path in &args.files {
        let bytes = io::read_file(path)?;
        let text = String::from_utf8_lossy(&bytes);
        let rows = parse(&text).map_err(|error| CliError::contents(path, error))?;
        runs.push((short_name(path), rows));
    }
    out.write_all(comparison(&runs).as_bytes())?;
    Ok(Exit::Done)
}

/// The file name, which is enough to tell columns apart.
fn short_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

fn parse(text: &str) -> Result<Vec<Row>, ParseError> {
    if text.trim_start().starts_with('{') {
        parse_counters(text)
    } else {
        parse_strace(text)
    }
}

fn parse_counters(text: &str) -> Result<Vec<Row>, ParseError> {
    let value: Value = serde_json::from_str(text)?;
    let calls = value.get("syscalls").and_then(Value::as_object);
    let row = |(name, counters): (&String, &Value)| {
        let missing = |field| ParseError::Counter {
            name: name.clone(),
            field,
        };
        let count = |field| counters.get(field).and_then(Value::as_u64);
        Ok(Row {
            name: name.clone(),
            calls: count("calls").ok_or_else(|| missing("calls"))?,
            errors: count("errors").ok_or_else(|| missing("errors"))?,
            seconds: counters
                .get("seconds")
                .and_then(Value::as_f64)
                .ok_or_else(|| missing("seconds"))?,
        })
    };
    let calls = calls.ok_or(ParseError::NoSyscalls)?;
    calls.iter().map(row).collect()
}

/// The program's own output may stand before the table and after it, because strace shares
/// standard error with the program unless `-o` is given.
fn parse_strace(text: &str) -> Result<Vec<Row>, ParseError> {
    let mut lines = text.lines().enumerate();
    lines
        .find(|(_, line)| line.starts_with("% time"))
        .ok_or(ParseError::NoHeader)?;
    let mut rows = Vec::new();
    for (at, line) in lines {
        if line.starts_with("----") {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.last() == Some(&"total") {
            return Ok(rows);
        }
        rows.push(parse_row(&words).ok_or_else(|| ParseError::Row {
            line: at + 1,
            text: line.to_owned(),
        })?);
    }
    Err(ParseError::NoTotal)
}

/// The errors column is empty where there are none.
fn parse_row(words: &[&str]) -> Option<Row> {
    let (seconds, calls, errors, name) = match words {
        [_, seconds, _, calls, errors, name] => (seconds, calls, errors.parse().ok()?, name),
        [_, seconds, _, calls, name] => (seconds, calls, 0, name),
        _ => return None,
    };
    Some(Row {
        name: (*name).to_owned(),
        calls: calls.parse().ok()?,
        errors,
        seconds: seconds.parse().ok()?,
    })
}

/// Prints counters in the columns of `strace -c`: by time, most costly first.
pub fn strace_table(rows: &[Row]) -> String {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by(|a, b| {
        let by_time = b.seconds.total_cmp(&a.seconds);
        by_time
            .then(b.calls.cmp(&a.calls))
            .then(a.name.cmp(&b.name))
    });
    let total = Row {
        name: "total".to_owned(),
        calls: rows.iter().map(|row| row.calls).sum(),
        errors: rows.iter().map(|row| row.errors).sum(),
        // An empty sum of floats is -0.0, which would print its sign.
        seconds: rows.iter().fold(0.0, |sum, row| sum + row.seconds),
    };
    const RULE: &str = "------ ----------- ----------- --------- --------- ----------------\n";
    let mut out = format!(
        "{:>6} {:>11} {:>11} {:>9} {:>9} {}\n{RULE}",
        "% time", "seconds", "usecs/call", "calls", "errors", "syscall"
    );
    for row in rows {
        let share = match total.seconds {
            0.0 => 0.0,
            all => row.seconds / all * 100.0,
        };
        push_row(&mut out, share, row);
    }
    out.push_str(RULE);
    push_row(&mut out, 100.0, &total);
    out
}

fn push_row(out: &mut String, share: f64, row: &Row) {
    let micros_per_call = match row.calls {
        0 => 0,
        calls => (row.seconds * 1e6 / calls as f64) as u64,
    };
    let errors = match row.errors {
        0 => String::new(),
        n => n.to_string(),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{share:6.2} {:11.6} {micros_per_call:11} {:9} {errors:>9} {}",
        row.seconds, row.calls, row.name
    );
}

/// A column of calls for each run and, for all but the first, the difference to the first. The
/// call that is most frequent in any run comes first.
fn comparison(runs: &[(String, Vec<Row>)]) -> String {
    let mut counts: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (run, (_, rows)) in runs.iter().enumerate() {
        for row in rows {
            let counts = counts.entry(&row.name).or_default();
            counts.resize(runs.len(), 0);
            // A name comes twice where strace counts personalities apart.
            counts[run] += row.calls;
        }
    }
    let mut totals = vec![0; runs.len()];
    for row in counts.values() {
        for (total, count) in totals.iter_mut().zip(row) {
            *total += count;
        }
    }
    let mut rows: Vec<(&str, Vec<u64>)> = counts.into_iter().collect();
    // Stable, so that equals stay in the order of their names.
    rows.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.iter().max().copied()));
    rows.push(("total", totals));
    table(runs, &rows)
}

fn table(runs: &[(String, Vec<Row>)], rows: &[(&str, Vec<u64>)]) -> String {
    let mut header = vec!["syscall".to_owned()];
    for (run, (name, _)) in runs.iter().enumerate() {
        header.push(name.clone());
        if run > 0 {
            header.push("difference".to_owned());
        }
    }
    let mut lines = vec![header];
    for (name, counts) in rows {
        let first = counts[0];
        let mut line = vec![(*name).to_owned(), first.to_string()];
        for &count in &counts[1..] {
            line.push(count.to_string());
            line.push(signed_difference(first, count));
        }
        lines.push(line);
    }
    render(&lines)
}

fn signed_difference(first: u64, count: u64) -> String {
    match i128::from(count) - i128::from(first) {
        0 => "0".to_owned(),
        n => format!("{n:+}"),
    }
}

/// Names to the left, numbers to the right, every column as wide as it must be.
fn render(lines: &[Vec<String>]) -> String {
    let columns = lines[0].len();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|c| width(c).unwrap_or(0)).collect();
    let mut out = String::new();
    for line in lines {
        let _ = write!(out, "{:<1$}", line[0], widths[0]);
        for (word, width) in line.iter().zip(&widths).skip(1) {
            let _ = write!(out, "  {word:>width$}");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// strace 6.1, `-c -f`, with a line of the program before it.
    const STRACE_6: &str = "\
some output of the program
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 40.00    0.000102          51         2           getdents64
 20.78    0.000053           1        34        13 openat
 39.22    0.000100           1       100           lseek
------ ----------- ----------- --------- --------- ----------------
100.00    0.000255           1       136        13 total
";

    /// Before 5.4 the total had no time for each call.
    const STRACE_4: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
100.00    0.000010           5         2         1 pread64
------ ----------- ----------- --------- --------- ----------------
100.00    0.000010                     2         1 total
";

    fn row(name: &str, calls: u64, errors: u64, seconds: f64) -> Row {
        Row {
            name: name.to_owned(),
            calls,
            errors,
            seconds,
        }
    }

    #[test]
    fn reads_strace_of_several_ages() {
        let rows = parse(STRACE_6).unwrap();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0], row("getdents64", 2, 0, 0.000102));
        assert_eq!(rows[1], row("openat", 34, 13, 0.000053));
        assert_eq!(parse(STRACE_4).unwrap(), [row("pread64", 2, 1, 0.00001)]);
    }

    #[test]
    fn reads_our_counters() {
        let text = r#"{"redo": {}, "syscalls":
            {"lseek": {"calls": 7, "errors": 1, "seconds": 0.5}}}"#;
        assert_eq!(parse(text).unwrap(), [row("lseek", 7, 1, 0.5)]);
        assert!(matches!(parse("{}"), Err(ParseError::NoSyscalls)));
        assert!(matches!(parse("{"), Err(ParseError::Json(_))));
        let text = r#"{"syscalls": {"lseek": {"calls": -7, "errors": 1, "seconds": 0.5}}}"#;
        let error = parse(text).unwrap_err().to_string();
        assert_eq!(error, "system call \"lseek\" has no number \"calls\"");
    }

    #[test]
    fn a_table_that_is_cut_is_an_error() {
        let cut = STRACE_6.rsplit_once("100.00").unwrap().0;
        assert!(matches!(parse(cut), Err(ParseError::NoTotal)));
        assert!(matches!(parse("nothing"), Err(ParseError::NoHeader)));
        let odd = STRACE_6.replace("  13 openat", "  x openat");
        let Err(ParseError::Row { line, .. }) = parse(&odd) else {
            panic!("accepted");
        };
        assert_eq!(line, 5);
    }

    #[test]
    fn prints_what_strace_prints() {
        let table = STRACE_6.split_once('\n').unwrap().1;
        // strace sorts by time, the sample above is not sorted.
        let rows = parse(table).unwrap();
        let expected = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 40.00    0.000102          51         2           getdents64
 39.22    0.000100           1       100           lseek
 20.78    0.000053           1        34        13 openat
------ ----------- ----------- --------- --------- ----------------
100.00    0.000255           1       136        13 total
";
        assert_eq!(strace_table(&rows), expected);
        assert!(strace_table(&[]).contains("100.00    0.000000           0         0"));
    }

    #[test]
    fn compares_with_the_first() {
        let runs = [
            ("postgres".to_owned(), parse(STRACE_6).unwrap()),
            (
                "b".to_owned(),
                vec![row("lseek", 1, 0, 0.0), row("pwritev", 34, 0, 0.0)],
            ),
            ("c".to_owned(), vec![row("lseek", 100, 0, 0.0)]),
        ];
        let expected = "\
syscall     postgres   b  difference    c  difference
lseek            100   1         -99  100           0
openat            34   0         -34    0         -34
pwritev            0  34         +34    0           0
getdents64         2   0          -2    0          -2
total            136  35        -101  100         -36
";
        assert_eq!(comparison(&runs), expected);
    }
}
