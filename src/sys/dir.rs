//! Names in the file system: directories, links, metadata.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{self, OFlag};
use nix::sys::stat::{self, FileStat, Mode, SFlag};
use nix::unistd;

use super::{Kernel, SysResult, Syscall};

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A socket, a pipe, a device.
    Other,
}

/// What `stat` says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: FileKind,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its permission bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// The device it is on, to tell file systems apart.
    pub device: u64,
    /// Its number there; both together name a file.
    pub inode: u64,
}

impl From<FileStat> for Metadata {
    fn from(stat: FileStat) -> Metadata {
        let kind = match SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT {
            SFlag::S_IFREG => FileKind::Regular,
            SFlag::S_IFDIR => FileKind::Directory,
            SFlag::S_IFLNK => FileKind::Symlink,
            _ => FileKind::Other,
        };
        Metadata {
            kind,
            bytes: stat.st_size as u64,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name, without the directory.
    pub name: OsString,
    /// What it stands for; links are not followed.
    pub kind: FileKind,
}

impl Kernel {
    /// The entries of a directory, `.` and `..` left out, sorted by name.
    pub fn read_dir(&self, path: &Path) -> SysResult<Vec<DirEntry>> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let dir = self.call(Syscall::Openat, "open directory", path, || {
            Dir::open(path, flags, Mode::empty())
        })?;
        let mut entries = Vec::new();
        // Owned by the iterator: a borrowed one would rewind the directory, which is an lseek.
        let mut dir = Some(dir);
        let listed = self.call(Syscall::Getdents64, "read directory", path, || {
            for entry in dir.take().into_iter().flatten() {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name != "." && name != ".." {
                    entries.push((name.to_owned(), entry.file_type()));
                }
            }
            Ok(())
        });
        self.call(Syscall::Close, "close", path, || Ok(()))?;
        listed?;
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        entries
            .into_iter()
            .map(|(name, kind)| self.dir_entry(path, name, kind))
            .collect()
    }

    fn dir_entry(
        &self,
        directory: &Path,
        name: OsString,
        kind: Option<nix::dir::Type>,
    ) -> SysResult<DirEntry> {
        let kind = match kind {
            Some(nix::dir::Type::File) => FileKind::Regular,
            Some(nix::dir::Type::Directory) => FileKind::Directory,
            Some(nix::dir::Type::Symlink) => FileKind::Symlink,
            Some(_) => FileKind::Other,
            // Some file systems do not keep the kind in the directory.
            None => self.link_metadata(&directory.join(&name))?.kind,
        };
        Ok(DirEntry { name, kind })
    }

    /// Metadata of what a name leads to, through links.
    pub fn metadata(&self, path: &Path) -> SysResult<Metadata> {
        self.call(Syscall::Newfstatat, "stat file", path, || stat::stat(path))
            .map(Metadata::from)
    }

    /// Metadata of the name itself.
    pub fn link_metadata(&self, path: &Path) -> SysResult<Metadata> {
        self.call(Syscall::Newfstatat, "stat file", path, || stat::lstat(path))
            .map(Metadata::from)
    }

    /// `None` where there is nothing of that name.
    pub fn link_metadata_if_any(&self, path: &Path) -> SysResult<Option<Metadata>> {
        found(self.link_metadata(path))
    }

    /// True if there is something of that name, be it a dangling link.
    pub fn exists(&self, path: &Path) -> SysResult<bool> {
        Ok(self.link_metadata_if_any(path)?.is_some())
    }

    /// Makes a directory; its parent must be there.
    pub fn mkdir(&self, path: &Path, mode: u32) -> SysResult<()> {
        self.call(Syscall::Mkdir, "create directory", path, || {
            unistd::mkdir(path, Mode::from_bits_truncate(mode))
        })
    }

    /// Makes a directory unless it is there.
    pub fn mkdir_if_missing(&self, path: &Path, mode: u32) -> SysResult<()> {
        match self.mkdir(path, mode) {
            Err(e) if e.errno == Errno::EEXIST => Ok(()),
            result => result,
        }
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, path: &Path) -> SysResult<()> {
        self.call(
            Syscall::Rmdir,
            "remove directory",
            path,
            || match std::fs::remove_dir(path) {
                Ok(()) => Ok(()),
                Err(e) => Err(Errno::from_raw(e.raw_os_error().unwrap_or(0))),
            },
        )
    }

    /// Removes a file or a link.
    pub fn unlink(&self, path: &Path) -> SysResult<()> {
        self.call(Syscall::Unlink, "remove file", path, || {
            unistd::unlink(path)
        })
    }

    /// Removes a file or a link; says whether it was there.
    pub fn unlink_if_any(&self, path: &Path) -> SysResult<bool> {
        Ok(found(self.unlink(path))?.is_some())
    }

    /// Removes a directory and all that is in it (`rmtree`). Links are removed, not followed.
    /// Nothing happens if it is not there.
    pub fn remove_tree(&self, path: &Path) -> SysResult<()> {
        let Some(entries) = found(self.read_dir(path))? else {
            return Ok(());
        };
        for entry in entries {
            let inner = path.join(&entry.name);
            match entry.kind {
                FileKind::Directory => self.remove_tree(&inner)?,
                _ => {
                    self.unlink_if_any(&inner)?;
                }
            }
        }
        self.rmdir(path)
    }

    /// Renames, replacing what has the new name.
    pub fn rename(&self, from: &Path, to: &Path) -> SysResult<()> {
        self.call(
            Syscall::Rename,
            "rename file",
            from,
            || match std::fs::rename(from, to) {
                Ok(()) => Ok(()),
                Err(e) => Err(Errno::from_raw(e.raw_os_error().unwrap_or(0))),
            },
        )
    }

    /// Makes a symbolic link.
    pub fn symlink(&self, target: &Path, link: &Path) -> SysResult<()> {
        self.call(Syscall::Symlinkat, "create symbolic link", link, || {
            unistd::symlinkat(target, fcntl::AT_FDCWD, link)
        })
    }

    /// Where a symbolic link leads.
    pub fn read_link(&self, path: &Path) -> SysResult<PathBuf> {
        self.call(Syscall::Readlink, "read symbolic link", path, || {
            fcntl::readlink(path)
        })
        .map(PathBuf::from)
    }

    /// Sets permission bits.
    pub fn chmod(&self, path: &Path, mode: u32) -> SysResult<()> {
        self.call(Syscall::Fchmodat, "set permissions of", path, || {
            stat::fchmodat(
                fcntl::AT_FDCWD,
                path,
                Mode::from_bits_truncate(mode),
                stat::FchmodatFlags::FollowSymlink,
            )
        })
    }

    /// Gives a file to another owner. A link is given away itself, not what it leads to.
    pub fn chown(&self, path: &Path, uid: u32, gid: u32) -> SysResult<()> {
        self.call(Syscall::Fchownat, "set owner of", path, || {
            let (uid, gid) = (Some(uid.into()), Some(gid.into()));
            let flags = fcntl::AtFlags::AT_SYMLINK_NOFOLLOW;
            unistd::fchownat(fcntl::AT_FDCWD, path, uid, gid, flags)
        })
    }

    /// Makes the names in a directory durable.
    pub fn sync_dir(&self, path: &Path) -> SysResult<()> {
        self.open_dir(path)?.fsync()
    }

    /// Makes the whole file system durable that a directory is on.
    pub fn sync_file_system(&self, path: &Path) -> SysResult<()> {
        self.open_dir(path)?.syncfs()
    }
}

/// Turns "not there" into `None`.
pub fn found<T>(result: SysResult<T>) -> SysResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.is_not_found() => Ok(None),
        Err(e) => Err(e),
    }
}
