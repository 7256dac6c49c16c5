//! `postmaster.pid`: whether a server runs on the data directory (`CreateLockFile`,
//! `src/backend/utils/init/miscinit.c`).

use std::path::Path;

use thiserror::Error;

use super::DataDir;
use crate::sys::{self, Kernel, SysError, SysResult, found};

const FILE: &str = "postmaster.pid";
const MAX_FILE_BYTES: u64 = 65_536;
/// `LOCK_FILE_LINE_SHMEM_KEY`, from 0.
const SHARED_MEMORY_LINE: usize = 6;
/// The kernel's list of System V shared memory: key, id, ..., number of attached processes.
const SHARED_MEMORY_LIST: &str = "/proc/sysvipc/shm";
const ATTACHED_FIELD: usize = 6;

/// Why the directory may not be touched.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LockFileError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// The process that wrote it is alive.
    #[error(
        "lock file \"postmaster.pid\" names process {0}, which is alive: \
         stop the server first, or remove the file if that process is no server"
    )]
    Alive(i32),
    /// The server is gone, processes of it are not.
    #[error(
        "shared memory (key {key}, ID {id}) of the server that wrote \"postmaster.pid\" is \
         still in use: end the server processes that are left over"
    )]
    SharedMemory {
        /// Its key.
        key: u32,
        /// Its id.
        id: u32,
    },
    /// No process number in it. A server that is just starting has written none yet.
    #[error("lock file \"postmaster.pid\" does not begin with a process number: \"{0}\"")]
    Bogus(String),
}

/// What the lock file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockFile {
    /// There is none: the server was shut down, or this is a backup.
    Absent,
    /// Its server is gone.
    Stale {
        /// The process that was the server.
        pid: i32,
    },
}

/// Looks at the lock file; an error if a server may be running.
pub fn check_lock_file(dir: &DataDir) -> Result<LockFile, LockFileError> {
    let kernel = dir.kernel();
    let Some(bytes) = found(kernel.read_file(&dir.path(FILE), MAX_FILE_BYTES))? else {
        return Ok(LockFile::Absent);
    };
    let contents = Contents::parse(&bytes)?;
    let pid = contents.pid;
    // Numbers are used again after a reboot: ours, or our parent's, is no server's.
    let own = [sys::pid(), sys::parent_pid()];
    if !own.contains(&pid.unsigned_abs()) && sys::pid_is_alive(pid) {
        return Err(LockFileError::Alive(pid));
    }
    if let Some((key, id)) = contents.shared_memory
        && shared_memory_is_in_use(kernel, key, id)?
    {
        return Err(LockFileError::SharedMemory { key, id });
    }
    Ok(LockFile::Stale { pid })
}

/// Removes the lock file; says whether there was one.
pub fn remove_lock_file(dir: &DataDir) -> SysResult<bool> {
    dir.kernel().unlink_if_any(&dir.path(FILE))
}

#[derive(Debug, PartialEq, Eq)]
struct Contents {
    pid: i32,
    /// Key and id, if the server got so far as to write them.
    shared_memory: Option<(u32, u32)>,
}

impl Contents {
    fn parse(bytes: &[u8]) -> Result<Contents, LockFileError> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        // A standalone backend writes its number negated.
        let pid = match first.trim().parse::<i32>().map(i32::checked_abs) {
            Ok(Some(pid)) if pid > 0 => pid,
            _ => return Err(LockFileError::Bogus(first.chars().take(40).collect())),
        };
        let shared_memory = lines.nth(SHARED_MEMORY_LINE - 1).and_then(|line| {
            let mut numbers = line.split_ascii_whitespace().map(str::parse);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        });
        Ok(Contents { pid, shared_memory })
    }
}

/// `PGSharedMemoryIsInUse`, asked of the kernel's list. Where there is no list nothing is known,
/// and the process number has to do.
fn shared_memory_is_in_use(kernel: &Kernel, key: u32, id: u32) -> SysResult<bool> {
    let Some(file) = found(kernel.open_read(Path::new(SHARED_MEMORY_LIST)))? else {
        return Ok(false);
    };
    let mut list = vec![0; 1 << 20];
    let read = file.read_at(&mut list, 0)?;
    Ok(is_attached(
        &String::from_utf8_lossy(&list[..read]),
        key,
        id,
    ))
}

fn is_attached(list: &str, key: u32, id: u32) -> bool {
    list.lines().skip(1).any(|line| {
        let fields: Vec<i64> = line
            .split_ascii_whitespace()
            .map_while(|f| f.parse().ok())
            .collect();
        // The key is printed signed.
        let same = |at: usize, value: u32| fields.get(at).is_some_and(|f| *f as u32 == value);
        same(0, key) && same(1, id) && fields.get(ATTACHED_FIELD).is_some_and(|n| *n > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::WalFormat;

    /// As PostgreSQL 15.19 wrote it.
    const CONTENTS: &str =
        "10985\n/srv/data\n1796081045\n5432\n/srv/data\n\n 10051697        18\nready   \n";

    fn check(text: &str) -> Result<LockFile, LockFileError> {
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::new(Kernel::new(), root.path(), WalFormat::ALL[0]).unwrap();
        std::fs::write(root.path().join(FILE), text).unwrap();
        let result = check_lock_file(&dir);
        assert!(remove_lock_file(&dir).unwrap());
        assert!(!remove_lock_file(&dir).unwrap());
        assert_eq!(check_lock_file(&dir), Ok(LockFile::Absent));
        result
    }

    #[test]
    fn a_live_process_refuses_and_a_dead_one_is_stale() {
        assert_eq!(check("1\n"), Err(LockFileError::Alive(1)));
        assert_eq!(check("-1\n"), Err(LockFileError::Alive(1)));
        for own in [sys::pid(), sys::parent_pid()] {
            let pid = own as i32;
            assert_eq!(check(&format!("{own}\n")), Ok(LockFile::Stale { pid }));
        }
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let pid = child.id() as i32;
        assert_eq!(check(&format!("{pid}\n")), Ok(LockFile::Stale { pid }));
        let negated = check(&format!("-{pid}\n/srv\n"));
        assert_eq!(negated, Ok(LockFile::Stale { pid }));
    }

    #[test]
    fn contents_of_a_server() {
        let contents = Contents {
            pid: 10985,
            shared_memory: Some((10_051_697, 18)),
        };
        assert_eq!(Contents::parse(CONTENTS.as_bytes()), Ok(contents));
        for len in 6..CONTENTS.len() {
            assert_eq!(
                Contents::parse(&CONTENTS.as_bytes()[..len]).unwrap().pid,
                10985
            );
        }
    }

    #[test]
    fn what_names_no_process_is_refused() {
        for bogus in ["", "\n", "x\n", "0\n", "99999999999\n", "-2147483648\n"] {
            let result = check(bogus);
            assert!(matches!(result, Err(LockFileError::Bogus(_))), "{bogus:?}");
        }
        assert!(Contents::parse(&[0xFF; 1000]).is_err());
    }

    #[test]
    fn attached_shared_memory() {
        let list = "  key shmid perms size cpid lpid nattch uid\n\
                    10051697 18 600 56 1 2 5 106\n-7 19 600 56 1 2 1 106\n8 20 600 56 1 2 0 1\n";
        assert!(is_attached(list, 10_051_697, 18));
        assert!(!is_attached(list, 10_051_697, 19));
        assert!(is_attached(list, 7_u32.wrapping_neg(), 19));
        assert!(!is_attached(list, 8, 20));
        assert!(!is_attached("", 8, 20));
    }
}
