//! Fingerprints of a recovered directory: one line `crc size path` for every file whose content
//! recovery determines, sorted by path. `pgredo fingerprint` prints the same; this is written
//! apart from it so that each checks the other.

use std::path::Path;

use super::tree::{Entry, walk};

/// The directories whose files recovery determines. Everything else is configuration, WAL, or
/// made anew by a server that starts.
const DETERMINED: &[&str] = &[
    "base",
    "global",
    "pg_commit_ts",
    "pg_multixact",
    "pg_tblspc",
    "pg_twophase",
    "pg_xact",
];

/// The fingerprint of a data directory.
pub fn fingerprint(data: &Path) -> String {
    let mut lines = String::new();
    for (path, entry) in walk(data) {
        let top = path
            .split('/')
            .next()
            .expect("split gives one part at least");
        // pg_control holds clock readings; relation caches are not recovered.
        let free = path == "global/pg_control" || path.ends_with("/pg_internal.init");
        if let (Entry::File(size), true, false) = (entry, DETERMINED.contains(&top), free) {
            let file = data.join(&path);
            let bytes = std::fs::read(&file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
            lines += &format!("{:08x} {size:12} {path}\n", crc32fast::hash(&bytes));
        }
    }
    lines
}
