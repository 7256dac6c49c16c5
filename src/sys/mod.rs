//! The only door to the kernel. Every system call is made here and counted under the name strace
//! prints, so that a run can be compared with `strace -c`.
//!
//! A [`Kernel`] is a handle to one set of counters; everything that does I/O holds a clone of it.
//! Two kinds of calls are not counted: those the Rust runtime and the loader make by themselves
//! (memory, threads, signals), and the reads inside a directory listing beyond its first.

mod counters;
mod dir;
mod file;
mod map;
mod owner;
mod process;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use nix::errno::Errno;
use thiserror::Error;

pub use counters::{CallStats, Syscall};
pub use dir::{DirEntry, FileKind, Metadata, found};
pub use file::{Create, File};
pub use map::Map;
pub use owner::{AsOwner, Ownership, is_root};
pub use process::{
    cores, install_interrupt_handler, interrupted, is_terminal, memory_bytes, parent_pid, pid,
    pid_is_alive,
};

use counters::Counters;

/// A system call that failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("could not {verb} \"{}\": {}", path.display(), errno.desc())]
pub struct SysError {
    /// What was tried: `open file`, `read`, ...
    pub verb: &'static str,
    /// On which file.
    pub path: PathBuf,
    /// Why it failed.
    pub errno: Errno,
}

impl SysError {
    /// True if the file is not there.
    pub fn is_not_found(&self) -> bool {
        self.errno == Errno::ENOENT
    }

    /// True if the file system cannot do that, or not with these two files.
    pub fn is_unsupported(&self) -> bool {
        matches!(
            self.errno,
            Errno::EOPNOTSUPP | Errno::EXDEV | Errno::EINVAL | Errno::ENOSYS | Errno::ENOTTY
        )
    }
}

/// The result of a system call.
pub type SysResult<T> = Result<T, SysError>;

/// A handle to the kernel and to the counters of the calls made through it.
#[derive(Debug, Clone, Default)]
pub struct Kernel {
    counters: Arc<Counters>,
}

impl Kernel {
    /// A handle whose counters start at zero.
    pub fn new() -> Kernel {
        Kernel::default()
    }

    /// A handle that lets `changes` calls that change files pass and refuses every later one with
    /// EIO. To the file system that is what a process killed between two calls looks like.
    pub fn failing_after(changes: u64) -> Kernel {
        let kernel = Kernel::new();
        kernel.counters.refuse_changes_after(changes);
        kernel
    }

    /// A handle that refuses every call that changes files: who only reads cannot break that
    /// promise by mistake.
    pub fn read_only() -> Kernel {
        Kernel::failing_after(0)
    }

    /// Calls that changed files so far.
    pub fn changes(&self) -> u64 {
        self.counters.changes()
    }

    /// What was counted so far, calls that were never made left out, in order of time spent.
    pub fn stats(&self) -> Vec<CallStats> {
        self.counters.stats()
    }

    /// Calls of one kind so far.
    pub fn calls(&self, which: Syscall) -> u64 {
        self.counters.calls(which)
    }

    /// Makes one call and counts it. EINTR is tried again, as a new call.
    fn call<T>(
        &self,
        which: Syscall,
        verb: &'static str,
        path: &Path,
        mut make: impl FnMut() -> nix::Result<T>,
    ) -> SysResult<T> {
        loop {
            let started = Instant::now();
            let result = match self.counters.admit(which) {
                true => make(),
                false => Err(Errno::EIO),
            };
            self.counters
                .count(which, started.elapsed(), result.is_err());
            match result {
                Ok(value) => return Ok(value),
                Err(Errno::EINTR) => {}
                Err(errno) => {
                    return Err(SysError {
                        verb,
                        path: path.to_owned(),
                        errno,
                    });
                }
            }
        }
    }
}
