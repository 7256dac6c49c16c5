//! pgredo replays PostgreSQL WAL onto a data directory without a server, and leaves what
//! PostgreSQL's own recovery would have left, byte for byte.
//!
//! The modules below are listed from top to bottom. Each may use only those below it;
//! `tests/tidy.rs` reads this list and enforces it. `rmgr` is stricter still: it uses `decode`,
//! `page`, `format` and `types` only, which is what keeps it pure. The code map is
//! `src/README.md`.

pub mod cli;
pub mod recovery;
pub mod redo;
pub mod rmgr;
pub mod slru;
pub mod buffer;
pub mod smgr;
pub mod decode;
pub mod wal;
pub mod pgdata;
pub mod sys;
pub mod page;
pub mod format;
pub mod types;
