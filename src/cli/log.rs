//! Log lines as the server writes them with its default `log_line_prefix`, so that what people
//! search their logs for finds these too.

use std::fmt::Write;

use jiff::ZonedDateTime;

use crate::sys::pid;

/// What stands before the message (`error_severity`, `src/backend/utils/error/elog.c`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// For the administrator.
    Log,
    /// Something is not as it should be; the run goes on.
    Warning,
    /// The run ends.
    Fatal,
    /// More about the line before.
    Detail,
    /// What to do about the line before.
    Hint,
}

impl Severity {
    fn name(self) -> &'static str {
        match self {
            Severity::Log => "LOG",
            Severity::Warning => "WARNING",
            Severity::Fatal => "FATAL",
            Severity::Detail => "DETAIL",
            Severity::Hint => "HINT",
        }
    }
}

/// Writes a line to standard error. If that fails there is nobody to tell.
pub fn log(severity: Severity, message: &str) {
    eprint!(
        "{}",
        format_line(&ZonedDateTime::now(), pid(), severity, message)
    );
}

/// The line with its line end, `2026-11-30 21:40:50.433 UTC [18306] LOG:  message`. Further lines
/// of the message are indented by a tab, as the server does it.
pub fn format_line(now: &ZonedDateTime, pid: u32, severity: Severity, message: &str) -> String {
    let mut line = String::new();
    let time = now.strftime("%Y-%m-%d %H:%M:%S.%3f %Z");
    // Writing to a String cannot fail.
    let _ = write!(line, "{time} [{pid}] {}:  ", severity.name());
    line.push_str(&message.replace('\n', "\n\t"));
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use jiff::{Timestamp, tz::TimeZone};

    use super::*;

    #[test]
    fn lines_have_the_servers_form() {
        let now = Timestamp::from_millisecond(1_796_074_850_033)
            .unwrap()
            .to_zoned_datetime(TimeZone::UTC);
        assert_eq!(
            format_line(&now, 18306, Severity::Log, "redo starts at 0/6000028"),
            "2026-11-30 21:40:50.033 UTC [18306] LOG:  redo starts at 0/6000028\n"
        );
        assert_eq!(
            format_line(&now, 1, Severity::Warning, "a\nb"),
            "2026-11-30 21:40:50.033 UTC [1] WARNING:  a\n\tb\n"
        );
    }
}
