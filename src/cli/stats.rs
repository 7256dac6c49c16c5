//! The counters of a replay, for people and for programs.

use std::fmt::Write;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::strace::{Row, strace_table};
use crate::recovery::Outcome;
use crate::sys::CallStats;

/// `--stats json`: one object on one line.
pub(super) fn json(outcome: &Outcome, calls: &[CallStats]) -> String {
    let report = json!({
        "schema": "pgredo/replay/1",
        "redo": {
            "start_lsn": outcome.start.to_string(),
            "end_lsn": outcome.end.to_string(),
            "records": outcome.redo.records,
            "block_refs": outcome.redo.block_refs,
            "images": outcome.redo.images,
            "touches_dead": outcome.redo.touches_dead,
            "pages_read": outcome.pages_read(),
            "pages_written": outcome.pages_written(),
            "missing_pages": outcome.missing_pages,
        },
        "checkpoint_lsn": outcome.checkpoint.to_string(),
        "nblocks_cache": {
            "hits": outcome.nblocks_cache.hits,
            "misses": outcome.nblocks_cache.misses,
        },
        "buffers": {
            "lookups": outcome.pool.lookups,
            "hits": outcome.pool.hits,
            "evicted": outcome.pool.evicted,
            "discard_visits": outcome.pool.discard_visits,
        },
        "seconds": {
            "wal": outcome.seconds.wal,
            "redo": outcome.seconds.redo,
            "flush": outcome.seconds.flush,
            "total": outcome.seconds.total,
        },
        "syscalls": syscalls(calls),
    });
    format!("{report}\n")
}

#[derive(Serialize)]
struct Call {
    calls: u64,
    errors: u64,
    seconds: f64,
}

fn syscalls(calls: &[CallStats]) -> Value {
    let by_name: Map<String, Value> = calls
        .iter()
        .map(|c| {
            let call = Call {
                calls: c.calls,
                errors: c.errors,
                seconds: c.seconds,
            };
            (c.name.to_owned(), json!(call))
        })
        .collect();
    Value::Object(by_name)
}

/// `--stats text`: what was done, and the system calls in the columns of `strace -c`.
pub(super) fn text(outcome: &Outcome, calls: &[CallStats]) -> String {
    let mut out = String::new();
    let mut line = |label: &str, value: String| {
        let label = format!("{label}:");
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{label:<24}{value}");
    };
    line("redo", format!("{} to {}", outcome.start, outcome.end));
    line("records", outcome.redo.records.to_string());
    line("block references", outcome.redo.block_refs.to_string());
    line("page images restored", outcome.redo.images.to_string());
    line("pointless touches", outcome.redo.touches_dead.to_string());
    line("pages read", outcome.pages_read().to_string());
    line("pages written", outcome.pages_written().to_string());
    let cache = outcome.nblocks_cache;
    line(
        "nblocks cache",
        format!("{} hits, {} misses", cache.hits, cache.misses),
    );
    let s = outcome.seconds;
    let times = format!(
        "{:.2} total, {:.2} wal, {:.2} redo, {:.2} flush",
        s.total, s.wal, s.redo, s.flush
    );
    line("seconds", times);
    let rows: Vec<Row> = calls.iter().cloned().map(Row::from).collect();
    out.push('\n');
    out.push_str(&strace_table(&rows));
    out
}
