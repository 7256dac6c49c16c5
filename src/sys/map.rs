//! Files mapped for reading: WAL segments.

#![allow(unsafe_code)]

use std::path::Path;

use memmap2::{Mmap, MmapOptions};
use nix::errno::Errno;

use super::{Kernel, SysResult, Syscall};

/// A file mapped read-only.
#[derive(Debug)]
pub struct Map {
    map: Mmap,
    kernel: Kernel,
    path: Box<Path>,
}

impl Kernel {
    /// Maps the first `bytes` of a file, which must be that long.
    pub fn map(&self, path: &Path, bytes: usize) -> SysResult<Map> {
        let file = self.open_read(path)?;
        let map = self.call(Syscall::Mmap, "map file", path, || {
            // SAFETY: the mapping is private to this process, read-only and no longer than the
            // file was when it was measured by the caller. Nobody may change the file meanwhile:
            // that no server runs on the directory is checked before the first map, and WAL
            // files are never written through another handle while they are mapped.
            let map = unsafe {
                MmapOptions::new()
                    .len(bytes)
                    .map_copy_read_only(file.as_owned_fd())
            };
            map.map_err(|e| e.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
        })?;
        Ok(Map {
            map,
            kernel: self.clone(),
            path: path.into(),
        })
    }
}

impl Map {
    /// The bytes of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// Asks for read-ahead of the whole file.
    pub fn will_need(&self) {
        let _ = self
            .kernel
            .call(Syscall::Madvise, "advise", &self.path, || {
                self.map
                    .advise(memmap2::Advice::WillNeed)
                    .map_err(|_| Errno::EIO)
            });
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let _ = self
            .kernel
            .call(Syscall::Munmap, "unmap", &self.path, || Ok(()));
    }
}
