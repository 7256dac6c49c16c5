//! Blocks to relation files: forks, 1 GiB segments, and the one authority on their sizes.
//!
//! The theory is in `README.md` beside this file.

mod cache;
mod fork;
mod overlay;
mod segments;

use std::path::PathBuf;

use thiserror::Error;

use crate::sys::SysError;
use crate::types::{BlockNumber, BlockTag};

pub use cache::{CacheStats, NblocksCache};
pub use fork::{ForkId, Smgr, SmgrOptions, SyncMethod, verify_page};
pub use overlay::CopiedFork;

/// A relation file that could not be read or changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SmgrError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// A block that must be there is not.
    #[error("could not read block {block} of \"{}\": the file ends before it", path.display())]
    ShortRead {
        /// The file.
        path: PathBuf,
        /// The block, within the fork.
        block: BlockNumber,
    },
    /// A page that is not what was written (`PageIsVerified`).
    #[error("invalid page in block {} of \"{}\": {what}", tag.block, path.display())]
    InvalidPage {
        /// The page.
        tag: BlockTag,
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}
