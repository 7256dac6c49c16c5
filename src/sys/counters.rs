//! Counts, errors and time of every kind of system call.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

macro_rules! syscalls {
    ($($variant:ident = $name:literal, $changes:literal;)*) => {
        /// The system calls that are made, under the names strace prints on x86-64.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Syscall { $($variant,)* }

        impl Syscall {
            /// All of them.
            pub const ALL: &'static [Syscall] = &[$(Syscall::$variant,)*];

            /// The kernel's name.
            pub fn name(self) -> &'static str {
                match self { $(Syscall::$variant => $name,)* }
            }

            /// The call changes the file system.
            fn changes(self) -> bool {
                match self { $(Syscall::$variant => $changes,)* }
            }
        }
    };
}

syscalls! {
    Openat = "openat", false;
    Close = "close", false;
    Lseek = "lseek", false;
    Fstat = "fstat", false;
    Newfstatat = "newfstatat", false;
    Getdents64 = "getdents64", false;
    Readlink = "readlink", false;
    Read = "read", false;
    Pread64 = "pread64", false;
    Preadv = "preadv", false;
    Write = "write", true;
    Pwrite64 = "pwrite64", true;
    Pwritev = "pwritev", true;
    Ftruncate = "ftruncate", true;
    Fallocate = "fallocate", true;
    CopyFileRange = "copy_file_range", true;
    Ioctl = "ioctl", true;
    Fadvise64 = "fadvise64", false;
    SyncFileRange = "sync_file_range", false;
    Fsync = "fsync", true;
    Fdatasync = "fdatasync", true;
    Syncfs = "syncfs", true;
    Mmap = "mmap", false;
    Munmap = "munmap", false;
    Madvise = "madvise", false;
    Mkdir = "mkdir", true;
    Rmdir = "rmdir", true;
    Unlink = "unlink", true;
    Rename = "rename", true;
    Symlinkat = "symlinkat", true;
    Fchmodat = "fchmodat", true;
    Fchownat = "fchownat", true;
    Kill = "kill", false;
}

const KINDS: usize = Syscall::ALL.len();

/// Calls that change files may be limited, for tests of interruption at every call.
const UNLIMITED: u64 = u64::MAX;

#[derive(Debug, Default)]
struct Counter {
    calls: AtomicU64,
    errors: AtomicU64,
    nanos: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Counters {
    kinds: [Counter; KINDS],
    changes: AtomicU64,
    changes_allowed: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            kinds: std::array::from_fn(|_| Counter::default()),
            changes: AtomicU64::new(0),
            changes_allowed: AtomicU64::new(UNLIMITED),
        }
    }
}

/// What was counted for one kind of call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallStats {
    /// The kernel's name.
    pub name: &'static str,
    /// Calls made, failed ones included.
    pub calls: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Time spent, in seconds.
    pub seconds: f64,
}

impl Counters {
    pub(super) fn refuse_changes_after(&self, changes: u64) {
        self.changes_allowed.store(changes, Relaxed);
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Relaxed)
    }

    /// Whether the call may be made at all.
    pub(super) fn admit(&self, which: Syscall) -> bool {
        !which.changes() || self.changes.fetch_add(1, Relaxed) < self.changes_allowed.load(Relaxed)
    }

    pub(super) fn count(&self, which: Syscall, spent: Duration, failed: bool) {
        let counter = &self.kinds[which as usize];
        counter.calls.fetch_add(1, Relaxed);
        counter.errors.fetch_add(u64::from(failed), Relaxed);
        counter.nanos.fetch_add(spent.as_nanos() as u64, Relaxed);
    }

    pub(super) fn calls(&self, which: Syscall) -> u64 {
        self.kinds[which as usize].calls.load(Relaxed)
    }

    pub(super) fn stats(&self) -> Vec<CallStats> {
        let mut stats: Vec<CallStats> = Syscall::ALL
            .iter()
            .map(|which| (which, &self.kinds[*which as usize]))
            .map(|(which, counter)| CallStats {
                name: which.name(),
                calls: counter.calls.load(Relaxed),
                errors: counter.errors.load(Relaxed),
                seconds: counter.nanos.load(Relaxed) as f64 / 1e9,
            })
            .filter(|s| s.calls > 0)
            .collect();
        stats.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        stats
    }
}
