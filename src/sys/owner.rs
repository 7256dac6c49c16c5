//! Who files belong to. A server refuses to run as root and reads only its own files, so a run
//! by root works as the owner of the data directory.

use std::path::Path;

use nix::errno::Errno;
use nix::unistd::{self, Gid, Uid};

use super::{Kernel, SysError, SysResult};

/// Owner and permissions of a data directory, which everything in it shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The group may read (`initdb --allow-group-access`).
    pub group_access: bool,
}

impl Ownership {
    /// Of an existing data directory.
    pub fn of(kernel: &Kernel, directory: &Path) -> SysResult<Ownership> {
        let found = kernel.metadata(directory)?;
        let group_access = found.mode & 0o050 == 0o050;
        Ok(Ownership {
            uid: found.uid,
            gid: found.gid,
            group_access,
        })
    }

    /// Permission bits of new files.
    pub fn file_mode(self) -> u32 {
        if self.group_access { 0o640 } else { 0o600 }
    }

    /// Permission bits of new directories.
    pub fn dir_mode(self) -> u32 {
        if self.group_access { 0o750 } else { 0o700 }
    }
}

/// True if the process may give files away and act as their owner.
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// While it lives, a process started by root acts as another user.
#[derive(Debug)]
pub struct AsOwner {
    switched: bool,
}

impl AsOwner {
    /// Acts as the owner of the directory from here on, if the process runs as root. Any other
    /// user stays who it is.
    pub fn begin(owner: Ownership, directory: &Path) -> SysResult<AsOwner> {
        // New files must have exactly the permissions asked for.
        nix::sys::stat::umask(nix::sys::stat::Mode::empty());
        if !is_root() || owner.uid == 0 {
            return Ok(AsOwner { switched: false });
        }
        let switch = || -> nix::Result<()> {
            unistd::setegid(Gid::from_raw(owner.gid))?;
            unistd::seteuid(Uid::from_raw(owner.uid))
        };
        switch().map_err(|errno| SysError {
            verb: "act as the owner of",
            path: directory.to_owned(),
            errno,
        })?;
        Ok(AsOwner { switched: true })
    }
}

impl Drop for AsOwner {
    fn drop(&mut self) {
        if self.switched {
            let back = || -> Result<(), Errno> {
                unistd::seteuid(Uid::from_raw(0))?;
                unistd::setegid(Gid::from_raw(0))
            };
            // A process that was root a moment ago may be root again.
            back().expect("going back to root");
        }
    }
}
