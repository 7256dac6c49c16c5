//! Open files.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{self, FallocateFlags, OFlag, PosixFadviseAdvice};
use nix::sys::stat::{self, Mode};
use nix::sys::uio;
use nix::unistd::{self, Whence};

use super::{Kernel, Metadata, SysError, SysResult, Syscall};

/// The kernel takes at most this many buffers in one vectored call (`IOV_MAX`).
const MAX_VECTORS: usize = 1024;

/// Bytes asked of one copy_file_range; a signal is seen between two of them.
const COPY_RANGE_BYTES: usize = 64 << 20;

#[allow(unsafe_code)]
mod ficlone {
    // `FICLONE` of linux/fs.h: `_IOW(0x94, 9, int)`, whose argument is a descriptor.
    nix::ioctl_write_int!(ficlone, 0x94, 9);
}

/// What to do about a file that is, or is not, there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Create {
    /// Make it if it is missing, open it if it is there.
    IfMissing,
    /// Make it; fail with EEXIST if it is there.
    Exclusive,
    /// Make it or empty it.
    Truncate,
}

/// An open file. Positions are always given, so a shared offset is never used.
#[derive(Debug)]
pub struct File {
    fd: Option<OwnedFd>,
    path: PathBuf,
    kernel: Kernel,
}

impl Kernel {
    fn open_with(&self, path: &Path, flags: OFlag, mode: u32) -> SysResult<File> {
        let flags = flags | OFlag::O_CLOEXEC;
        let verb = if flags.contains(OFlag::O_CREAT) {
            "create file"
        } else {
            "open file"
        };
        let fd = self.call(Syscall::Openat, verb, path, || {
            fcntl::open(path, flags, Mode::from_bits_truncate(mode))
        })?;
        Ok(File {
            fd: Some(fd),
            path: path.to_owned(),
            kernel: self.clone(),
        })
    }

    /// Opens for reading.
    pub fn open_read(&self, path: &Path) -> SysResult<File> {
        self.open_with(path, OFlag::O_RDONLY, 0)
    }

    /// Opens for reading and writing. A symbolic link in place of the file is refused.
    pub fn open_write(&self, path: &Path) -> SysResult<File> {
        self.open_with(path, OFlag::O_RDWR | OFlag::O_NOFOLLOW, 0)
    }

    /// Makes or opens for reading and writing, with permission bits `mode` for a new file. A
    /// symbolic link in place of the file is refused.
    pub fn create(&self, path: &Path, create: Create, mode: u32) -> SysResult<File> {
        let how = match create {
            Create::IfMissing => OFlag::O_CREAT,
            Create::Exclusive => OFlag::O_CREAT | OFlag::O_EXCL,
            Create::Truncate => OFlag::O_CREAT | OFlag::O_TRUNC,
        };
        self.open_with(path, OFlag::O_RDWR | OFlag::O_NOFOLLOW | how, mode)
    }

    /// Opens a directory, to sync it.
    pub(super) fn open_dir(&self, path: &Path) -> SysResult<File> {
        self.open_with(path, OFlag::O_RDONLY | OFlag::O_DIRECTORY, 0)
    }

    /// The whole of a file that must not be longer than `limit` bytes.
    pub fn read_file(&self, path: &Path, limit: u64) -> SysResult<Vec<u8>> {
        let file = self.open_read(path)?;
        let bytes = file.metadata()?.bytes;
        if bytes > limit {
            let (verb, path) = ("read", path.to_owned());
            return Err(SysError {
                verb,
                path,
                errno: Errno::EFBIG,
            });
        }
        let mut out = vec![0; bytes as usize];
        let read = file.read_at(&mut out, 0)?;
        out.truncate(read);
        Ok(out)
    }

    /// Makes or empties a file and writes `bytes` to it, without syncing: for results, not for
    /// data.
    pub fn write_file(&self, path: &Path, bytes: &[u8], mode: u32) -> SysResult<()> {
        let file = self.create(path, Create::Truncate, mode)?;
        let mut rest = bytes;
        while !rest.is_empty() {
            let n = self.call(Syscall::Write, "write", path, || {
                unistd::write(file.fd(), rest)
            })?;
            rest = &rest[file.progress(n)?..];
        }
        Ok(())
    }

    /// Replaces a file durably: temporary file beside it, fsync, rename, fsync of the directory.
    /// The temporary file has the name that PostgreSQL gives its own, so that a server cleans up
    /// after a run that was cut off.
    pub fn replace_file(&self, path: &Path, bytes: &[u8], mode: u32) -> SysResult<()> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".tmp");
        let temporary = path.with_file_name(name);
        let file = self.create(&temporary, Create::Truncate, mode)?;
        file.write_at(bytes, 0)?;
        file.fsync()?;
        drop(file);
        self.rename(&temporary, path)?;
        self.sync_dir(path.parent().unwrap_or(Path::new(".")))
    }
}

impl File {
    /// Its path, as it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn fd(&self) -> &OwnedFd {
        self.fd
            .as_ref()
            .expect("the descriptor is taken only when the file is dropped")
    }

    /// Reads until `buffer` is full or the file ends; the number of bytes read.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> SysResult<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let rest = &mut buffer[done..];
            let at = (offset + done as u64) as i64;
            let n = self.kernel.call(Syscall::Pread64, "read", &self.path, || {
                uio::pread(self.fd(), rest, at)
            })?;
            if n == 0 {
                break;
            }
            done += n;
        }
        Ok(done)
    }

    /// Reads into one buffer after another until all are full or the file ends; the number of
    /// bytes read.
    pub fn read_vectored_at(&self, buffers: &mut [&mut [u8]], offset: u64) -> SysResult<usize> {
        if let [single] = buffers {
            return self.read_at(single, offset);
        }
        let total: usize = buffers.iter().map(|b| b.len()).sum();
        let mut slices: Vec<IoSliceMut<'_>> =
            buffers.iter_mut().map(|b| IoSliceMut::new(b)).collect();
        let read = self.kernel.call(Syscall::Preadv, "read", &self.path, || {
            uio::preadv(self.fd(), &mut slices, offset as i64)
        })?;
        drop(slices);
        if read == total {
            return Ok(read);
        }
        // Cut short, by a signal or by the end of the file: go on buffer by buffer.
        let mut done = 0;
        for buffer in buffers {
            let have = read.saturating_sub(done).min(buffer.len());
            let more = self.read_at(&mut buffer[have..], offset + (done + have) as u64)?;
            done += have + more;
            if have + more < buffer.len() {
                break;
            }
        }
        Ok(done)
    }

    /// Writes all of `bytes`.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> SysResult<()> {
        let mut done = 0;
        while done < bytes.len() {
            let at = (offset + done as u64) as i64;
            let n = self
                .kernel
                .call(Syscall::Pwrite64, "write", &self.path, || {
                    uio::pwrite(self.fd(), &bytes[done..], at)
                })?;
            done += self.progress(n)?;
        }
        Ok(())
    }

    /// Writes all of `buffers`, one after another.
    pub fn write_vectored_at(&self, buffers: &[&[u8]], offset: u64) -> SysResult<()> {
        let mut at = offset;
        for group in buffers.chunks(MAX_VECTORS) {
            if let [single] = group {
                self.write_at(single, at)?;
                at += single.len() as u64;
                continue;
            }
            let slices: Vec<IoSlice<'_>> = group.iter().map(|b| IoSlice::new(b)).collect();
            let total: usize = group.iter().map(|b| b.len()).sum();
            let n = self
                .kernel
                .call(Syscall::Pwritev, "write", &self.path, || {
                    uio::pwritev(self.fd(), &slices, at as i64)
                })?;
            self.progress(n)?;
            if n < total {
                self.write_rest(group, at, n)?;
            }
            at += total as u64;
        }
        Ok(())
    }

    /// Goes on after a vectored write that was cut short.
    fn write_rest(&self, buffers: &[&[u8]], offset: u64, mut skip: usize) -> SysResult<()> {
        let mut at = offset;
        for buffer in buffers {
            let skipped = skip.min(buffer.len());
            skip -= skipped;
            if skipped < buffer.len() {
                self.write_at(&buffer[skipped..], at + skipped as u64)?;
            }
            at += buffer.len() as u64;
        }
        Ok(())
    }

    /// A write that takes no byte would be tried for ever: it means that the disk is full.
    fn progress(&self, n: usize) -> SysResult<usize> {
        match n {
            0 => Err(SysError {
                verb: "write",
                path: self.path.clone(),
                errno: Errno::ENOSPC,
            }),
            n => Ok(n),
        }
    }

    /// Copies the whole of this file to the start of another, a buffer at a time.
    pub fn copy_to(&self, target: &File, buffer: &mut [u8]) -> SysResult<()> {
        let mut at = 0;
        loop {
            let read = self.read_at(buffer, at)?;
            target.write_at(&buffer[..read], at)?;
            at += read as u64;
            if read < buffer.len() {
                return Ok(());
            }
        }
    }

    /// Length by seeking to the end, as PostgreSQL asks for it.
    pub fn seek_end(&self) -> SysResult<u64> {
        let end = self
            .kernel
            .call(Syscall::Lseek, "seek to end of file", &self.path, || {
                unistd::lseek(self.fd(), 0, Whence::SeekEnd)
            })?;
        Ok(end as u64)
    }

    /// Size, kind and owner.
    pub fn metadata(&self) -> SysResult<Metadata> {
        let stat = self
            .kernel
            .call(Syscall::Fstat, "stat file", &self.path, || {
                stat::fstat(self.fd())
            })?;
        Ok(Metadata::from(stat))
    }

    /// Cuts or extends the file.
    pub fn truncate(&self, bytes: u64) -> SysResult<()> {
        self.kernel
            .call(Syscall::Ftruncate, "truncate file", &self.path, || {
                unistd::ftruncate(self.fd().as_fd(), bytes as i64)
            })
    }

    /// Reserves space and extends the file with zeros. `false` where the file system cannot.
    pub fn allocate(&self, offset: u64, bytes: u64) -> SysResult<bool> {
        let result = self
            .kernel
            .call(Syscall::Fallocate, "extend file", &self.path, || {
                fcntl::fallocate(
                    self.fd().as_fd(),
                    FallocateFlags::empty(),
                    offset as i64,
                    bytes as i64,
                )
            });
        match result {
            Ok(()) => Ok(true),
            Err(e) if matches!(e.errno, Errno::EOPNOTSUPP | Errno::ENOSYS) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Tells the kernel what will be read soon. Failure does not matter.
    pub fn will_need(&self, offset: u64, bytes: u64) {
        let advice = PosixFadviseAdvice::POSIX_FADV_WILLNEED;
        let _ = self
            .kernel
            .call(Syscall::Fadvise64, "advise", &self.path, || {
                fcntl::posix_fadvise(self.fd().as_fd(), offset as i64, bytes as i64, advice)
            });
    }

    /// Makes the file, which must be empty, share all blocks of `source` until one of the two
    /// changes. Not every file system can, and none across its border.
    #[allow(unsafe_code)]
    pub fn clone_from(&self, source: &File) -> SysResult<()> {
        self.kernel
            .call(Syscall::Ioctl, "clone to file", &self.path, || {
                let argument = source.fd().as_raw_fd() as nix::libc::c_ulong;
                // SAFETY: FICLONE takes its argument as a number, a descriptor that `source` keeps
                // open; no memory of this process is read or written.
                unsafe { ficlone::ficlone(self.fd().as_raw_fd(), argument) }
            })
            .map(drop)
    }

    /// Copies all of `source` to the beginning of the file without its bytes passing through this
    /// process; the number of bytes.
    pub fn copy_range_from(&self, source: &File) -> SysResult<u64> {
        let (mut from, mut to) = (0, 0);
        loop {
            let n = self
                .kernel
                .call(Syscall::CopyFileRange, "copy to file", &self.path, || {
                    let (input, output) = (source.fd(), self.fd());
                    let (from, to) = (Some(&mut from), Some(&mut to));
                    fcntl::copy_file_range(input, from, output, to, COPY_RANGE_BYTES)
                })?;
            if n == 0 {
                return Ok(to as u64);
            }
        }
    }

    /// Makes contents and length durable.
    pub fn fsync(&self) -> SysResult<()> {
        self.kernel
            .call(Syscall::Fsync, "fsync file", &self.path, || {
                unistd::fsync(self.fd())
            })
    }

    /// Makes contents durable.
    pub fn fdatasync(&self) -> SysResult<()> {
        self.kernel
            .call(Syscall::Fdatasync, "fdatasync file", &self.path, || {
                unistd::fdatasync(self.fd())
            })
    }

    /// Makes the whole file system durable that the file is on.
    pub fn syncfs(&self) -> SysResult<()> {
        self.kernel
            .call(Syscall::Syncfs, "sync file system of", &self.path, || {
                unistd::syncfs(self.fd())
            })
    }

    pub(super) fn as_owned_fd(&self) -> &OwnedFd {
        self.fd()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            let mut fd = Some(fd);
            // Nothing is written through a close: all that must be durable was synced before.
            let _ = self
                .kernel
                .call(Syscall::Close, "close", &self.path, || match fd.take() {
                    Some(fd) => unistd::close(fd),
                    None => Ok(()),
                });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_counted_under_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = Kernel::new();
        let file = kernel
            .create(&dir.path().join("f"), Create::Exclusive, 0o600)
            .unwrap();
        file.write_at(&[1; 100], 0).unwrap();
        file.write_vectored_at(&[&[2; 10], &[3; 10]], 100).unwrap();
        assert_eq!(file.seek_end().unwrap(), 120);
        let mut buffer = [0; 30];
        assert_eq!(file.read_at(&mut buffer, 95).unwrap(), 25);
        assert_eq!((buffer[4], buffer[5], buffer[15]), (1, 2, 3));
        file.fsync().unwrap();
        drop(file);
        let calls: Vec<(Syscall, u64)> = [
            (Syscall::Openat, 1),
            (Syscall::Pwrite64, 1),
            (Syscall::Pwritev, 1),
            (Syscall::Lseek, 1),
            // The second read finds the end of the file.
            (Syscall::Pread64, 2),
            (Syscall::Fsync, 1),
            (Syscall::Close, 1),
        ]
        .to_vec();
        for (which, expected) in calls {
            assert_eq!(kernel.calls(which), expected, "{}", which.name());
        }
    }

    #[test]
    fn refused_changes_leave_the_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = Kernel::failing_after(1);
        let file = kernel
            .create(&dir.path().join("f"), Create::Exclusive, 0o600)
            .unwrap();
        file.write_at(&[1; 10], 0).unwrap();
        let err = file.write_at(&[2; 10], 0).unwrap_err();
        assert_eq!(err.errno, Errno::EIO);
        let mut buffer = [0; 10];
        file.read_at(&mut buffer, 0).unwrap();
        assert_eq!(buffer, [1; 10]);
    }

    #[test]
    fn copies_inside_the_kernel() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = Kernel::new();
        let make = |name| {
            let path = dir.path().join(name);
            kernel.create(&path, Create::Exclusive, 0o600).unwrap()
        };
        let (source, ranged, cloned) = (make("source"), make("ranged"), make("cloned"));
        source.write_at(&[7; 100_000], 0).unwrap();
        assert_eq!(ranged.copy_range_from(&source).unwrap(), 100_000);
        let read = |name| std::fs::read(dir.path().join(name)).unwrap();
        assert_eq!(read("ranged"), [7; 100_000]);
        // The second call finds the end of the file.
        assert_eq!(kernel.calls(Syscall::CopyFileRange), 2);
        match cloned.clone_from(&source) {
            Ok(()) => assert_eq!(read("cloned"), [7; 100_000]),
            Err(error) => assert_eq!(error.errno, Errno::EOPNOTSUPP),
        }
        assert_eq!(kernel.calls(Syscall::Ioctl), 1);
    }

    #[test]
    fn a_link_in_place_of_a_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("target"), dir.path().join("link"));
        let kernel = Kernel::new();
        drop(kernel.create(&target, Create::Exclusive, 0o600).unwrap());
        kernel.symlink(&target, &link).unwrap();
        assert!(kernel.open_write(&link).is_err());
        assert!(kernel.create(&link, Create::Truncate, 0o600).is_err());
    }
}
