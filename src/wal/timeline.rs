//! Timelines: history files and which timeline an LSN belongs to
//! (`src/backend/access/transam/timeline.c`).

use std::path::PathBuf;

use thiserror::Error;

use super::WalError;
use crate::sys::{Kernel, found};
use crate::types::{Lsn, TimeLineId};

/// Longest history file that is read, in bytes.
const MAX_HISTORY_BYTES: u64 = 16 << 20;

/// A history file that is not well-formed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid line {line} in history file of timeline {tli}: {what}")]
pub struct HistoryError {
    /// The timeline.
    pub tli: TimeLineId,
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

/// A timeline and the LSNs that belong to it: `begin <= lsn < end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "TimeLineHistoryEntry")]
pub struct HistoryEntry {
    /// The timeline.
    pub tli: TimeLineId,
    /// Its first LSN; 0 for the first timeline.
    pub begin: Lsn,
    /// Where the next timeline begins; 0 if it is the last.
    pub end: Lsn,
}

/// The timelines that lead to one timeline, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    entries: Vec<HistoryEntry>,
}

impl History {
    /// A timeline without ancestors.
    pub fn single(tli: TimeLineId) -> History {
        History {
            entries: vec![HistoryEntry {
                tli,
                begin: Lsn::INVALID,
                end: Lsn::INVALID,
            }],
        }
    }

    /// `readTimeLineHistory`: the history of `tli` from the first directory that has its
    /// file. Without a file it has no ancestors.
    pub fn load(
        kernel: &Kernel,
        directories: &[PathBuf],
        tli: TimeLineId,
    ) -> Result<History, WalError> {
        if tli.0 > 1 {
            for directory in directories {
                let path = directory.join(format!("{:08X}.history", tli.0));
                if let Some(text) = found(kernel.read_file(&path, MAX_HISTORY_BYTES))? {
                    return Ok(History::parse(&String::from_utf8_lossy(&text), tli)?);
                }
            }
        }
        Ok(History::single(tli))
    }

    /// Reads the text of the history file of `tli`.
    pub fn parse(text: &str, tli: TimeLineId) -> Result<History, HistoryError> {
        let mut entries: Vec<HistoryEntry> = Vec::new();
        let mut begin = Lsn::INVALID;
        for (i, line) in text.lines().enumerate() {
            let bad = |what| HistoryError {
                tli,
                line: i + 1,
                what,
            };
            let line = line.trim_start();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split_whitespace();
            let parent = words.next().and_then(|w| w.parse().ok()).map(TimeLineId);
            let parent = parent.ok_or_else(|| bad("expected a numeric timeline ID"))?;
            let end = words.next().and_then(|w| w.parse::<Lsn>().ok());
            let end = end.ok_or_else(|| bad("expected a write-ahead log switchpoint location"))?;
            if entries.last().is_some_and(|last| last.tli >= parent) {
                return Err(bad("timeline IDs must be in increasing sequence"));
            }
            entries.push(HistoryEntry {
                tli: parent,
                begin,
                end,
            });
            begin = end;
        }
        if entries.last().is_some_and(|last| last.tli >= tli) {
            let line = text.lines().count();
            return Err(HistoryError {
                tli,
                line,
                what: "timeline IDs must be less than its own",
            });
        }
        entries.push(HistoryEntry {
            tli,
            begin,
            end: Lsn::INVALID,
        });
        Ok(History { entries })
    }

    /// The timelines, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = &HistoryEntry> {
        self.entries.iter().rev()
    }

    /// The timeline this is the history of.
    pub fn target(&self) -> TimeLineId {
        self.entries
            .last()
            .expect("a history has its own timeline")
            .tli
    }

    /// `tliInHistory`.
    pub fn contains(&self, tli: TimeLineId) -> bool {
        self.entries.iter().any(|e| e.tli == tli)
    }

    /// `tliOfPointInHistory`: the timeline that `lsn` belongs to.
    pub fn timeline_of(&self, lsn: Lsn) -> Option<TimeLineId> {
        let holds = |e: &&HistoryEntry| lsn >= e.begin && (!e.end.is_valid() || lsn < e.end);
        self.entries.iter().find(holds).map(|e| e.tli)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_a_chain() {
        let text = "# comment\n1\t0/65AA3C8\tat restore point \"rp2\"\n\n2\t0/7000000\tno reason\n";
        let history = History::parse(text, TimeLineId(3)).unwrap();
        let at = |lsn: &str| history.timeline_of(lsn.parse().unwrap()).unwrap().0;
        assert_eq!(
            (at("0/1"), at("0/65AA3C8"), at("0/7000000"), at("9/0")),
            (1, 2, 3, 3)
        );
        assert_eq!(history.target(), TimeLineId(3));
        assert!(history.contains(TimeLineId(2)) && !history.contains(TimeLineId(4)));
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, line) in [("x\n", 1), ("1\n", 1), ("2\t0/1\ta\n1\t0/2\tb\n", 2)] {
            assert_eq!(
                History::parse(text, TimeLineId(9)).unwrap_err().line,
                line,
                "{text}"
            );
        }
        assert!(History::parse("5\t0/1\tx\n", TimeLineId(5)).is_err());
    }
}
