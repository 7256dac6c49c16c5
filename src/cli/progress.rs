//! How far redo has come: one line redrawn on a terminal, log lines otherwise.

use std::io::Write;
use std::time::Duration;

use super::args::ProgressMode;
use super::log::{Severity, log};
use crate::sys::is_terminal;
use crate::types::Lsn;

/// `log_startup_progress_interval`: a log file gets at most this many lines.
const LINE_INTERVAL: Duration = Duration::from_secs(10);
/// Often enough to look alive.
const BAR_INTERVAL: Duration = Duration::from_millis(200);
/// Characters between the brackets.
const BAR_WIDTH: u64 = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    Silent,
    Bar,
    Lines,
}

/// Decides when something is to be shown, and what.
#[derive(Debug)]
pub struct Progress {
    style: Style,
    start: Lsn,
    end: Option<Lsn>,
    /// When something was shown last, from the start of redo.
    shown: Duration,
    /// Length of the bar line that stands on the terminal, 0 if none does.
    drawn: usize,
}

impl Progress {
    /// Redo runs from `start` to `end`, if the end is known. Without one there is no percentage:
    /// none is invented.
    pub fn new(mode: ProgressMode, start: Lsn, end: Option<Lsn>) -> Progress {
        let style = match mode {
            ProgressMode::None => Style::Silent,
            ProgressMode::Bar => Style::Bar,
            ProgressMode::Lines => Style::Lines,
            ProgressMode::Auto if is_terminal() => Style::Bar,
            ProgressMode::Auto => Style::Lines,
        };
        Progress {
            style,
            start,
            end: end.filter(|end| *end > start),
            shown: Duration::ZERO,
            drawn: 0,
        }
    }

    /// Redo has come to `lsn`, `elapsed` after its start. Cheap unless something is due.
    pub fn update(&mut self, elapsed: Duration, lsn: Lsn) {
        let interval = match self.style {
            Style::Silent => return,
            Style::Bar => BAR_INTERVAL,
            Style::Lines => LINE_INTERVAL,
        };
        if elapsed.saturating_sub(self.shown) < interval {
            return;
        }
        self.shown = elapsed;
        match self.style {
            Style::Bar => {
                let line = self.bar(elapsed, lsn);
                draw(&line, self.drawn);
                self.drawn = line.len();
            }
            _ => log(Severity::Log, &self.line(elapsed, lsn)),
        }
    }

    /// Takes the bar away, so that a log line can follow.
    pub fn clear(&mut self) {
        if self.drawn > 0 {
            draw("", self.drawn);
            draw("", 0);
            self.drawn = 0;
        }
    }

    /// The server's sentence, then what the server does not say.
    fn line(&self, elapsed: Duration, lsn: Lsn) -> String {
        let mut line = format!(
            "redo in progress, elapsed time: {}.{:02} s, current LSN: {lsn}",
            elapsed.as_secs(),
            elapsed.subsec_millis() / 10
        );
        if let Some(percent) = self.percent(lsn) {
            line.push_str(&format!(", {percent}%"));
        }
        if let Some(left) = self.seconds_left(elapsed, lsn) {
            line.push_str(&format!(", ETA {left} s"));
        }
        line
    }

    fn bar(&self, elapsed: Duration, lsn: Lsn) -> String {
        let mut line = String::new();
        if let Some(percent) = self.percent(lsn) {
            let filled = (percent * BAR_WIDTH / 100) as usize;
            let empty = BAR_WIDTH as usize - filled;
            line = format!(
                "{percent:3}% [{}{}] ",
                "=".repeat(filled),
                " ".repeat(empty)
            );
        }
        let megabytes = self.done(lsn) as f64 / f64::from(1 << 20);
        let rate = megabytes / elapsed.as_secs_f64().max(0.001);
        line.push_str(&format!("{lsn}, {rate:.1} MB/s"));
        if let Some(left) = self.seconds_left(elapsed, lsn) {
            line.push_str(&format!(", ETA {left} s"));
        }
        line
    }

    /// Bytes of WAL behind us.
    fn done(&self, lsn: Lsn) -> u64 {
        lsn.0.saturating_sub(self.start.0)
    }

    fn percent(&self, lsn: Lsn) -> Option<u64> {
        let total = u128::from(self.end?.0 - self.start.0);
        let percent = u128::from(self.done(lsn)) * 100 / total;
        // The end is an estimate and may be passed.
        Some(percent.min(100) as u64)
    }

    /// At the rate so far.
    fn seconds_left(&self, elapsed: Duration, lsn: Lsn) -> Option<u64> {
        let left = self.end?.0.saturating_sub(lsn.0);
        let done = self.done(lsn);
        if done == 0 {
            return None;
        }
        let seconds = elapsed.as_secs_f64() * left as f64 / done as f64;
        Some(seconds.ceil() as u64)
    }
}

/// Draws `line` over one of `drawn` characters. If standard error is gone there is nobody to
/// tell.
fn draw(line: &str, drawn: usize) {
    let mut err = std::io::stderr().lock();
    let _ = write!(err, "\r{line:<drawn$}");
    let _ = err.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(end: Option<u64>) -> Progress {
        Progress::new(ProgressMode::Lines, Lsn(0x100_0000), end.map(Lsn))
    }

    #[test]
    fn lines_begin_with_the_servers_sentence() {
        let after = Duration::from_millis(10_005);
        assert_eq!(
            progress(Some(0x500_0000)).line(after, Lsn(0x200_0000)),
            "redo in progress, elapsed time: 10.00 s, current LSN: 0/2000000, 25%, ETA 31 s"
        );
        assert_eq!(
            progress(None).line(after, Lsn(0x200_0000)),
            "redo in progress, elapsed time: 10.00 s, current LSN: 0/2000000"
        );
    }

    #[test]
    fn the_bar_stays_inside_its_brackets() {
        let bar = |lsn| progress(Some(0x500_0000)).bar(Duration::from_secs(2), Lsn(lsn));
        let half = "=".repeat(15) + &" ".repeat(15);
        assert_eq!(
            bar(0x300_0000),
            format!(" 50% [{half}] 0/3000000, 16.0 MB/s, ETA 2 s")
        );
        assert!(bar(0x900_0000).starts_with(&format!("100% [{}] ", "=".repeat(30))));
    }

    #[test]
    fn impossible_ends_give_no_percentage() {
        assert_eq!(progress(Some(0x100_0000)).percent(Lsn(0x200_0000)), None);
        assert_eq!(progress(Some(5)).percent(Lsn(0x200_0000)), None);
        let after = Duration::from_secs(1);
        let progress = progress(Some(0x500_0000));
        assert_eq!(progress.seconds_left(after, Lsn(0x100_0000)), None);
        assert_eq!(progress.percent(Lsn(u64::MAX)), Some(100));
    }

    #[test]
    fn at_most_one_line_in_ten_seconds() {
        let mut progress = progress(None);
        let shown = |progress: &mut Progress, seconds| {
            progress.update(Duration::from_secs(seconds), Lsn(0x200_0000));
            progress.shown.as_secs()
        };
        assert_eq!(shown(&mut progress, 9), 0);
        assert_eq!(shown(&mut progress, 11), 11);
        assert_eq!(shown(&mut progress, 20), 11);
        assert_eq!(shown(&mut progress, 21), 21);
    }
}
