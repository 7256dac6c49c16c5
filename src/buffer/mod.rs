//! Pages in memory: a bounded pool with clock-sweep eviction and grouped write-back.
//!
//! A page is found through its fork's own table, indexed by block: no hashing of page tags, and
//! dropping or truncating a fork visits that fork's pages only, never the pool. The theory is in
//! `README.md` beside this file.

mod pool;
mod resident;

pub use pool::{BufferPool, Frame, PoolStats};
