//! Making a whole data directory durable (`SyncDataDirectory`, `src/backend/storage/file/fd.c`).

use std::path::Path;

use crate::sys::{FileKind, Kernel, SysResult, found};

/// Syncs a data directory, all in it, and what tablespace links lead to; nothing in `skip`.
pub fn sync_tree(kernel: &Kernel, root: &Path, skip: Option<&Path>) -> SysResult<()> {
    sync_directory(kernel, root, &root.join("pg_tblspc"), skip)
}

/// `do_syncfs` for each place that may be a file system of its own.
pub fn sync_file_systems(kernel: &Kernel, root: &Path) -> SysResult<()> {
    kernel.sync_file_system(root)?;
    kernel.sync_file_system(&root.join("pg_wal"))?;
    let tablespaces = root.join("pg_tblspc");
    for entry in found(kernel.read_dir(&tablespaces))?.unwrap_or_default() {
        found(kernel.sync_file_system(&tablespaces.join(&entry.name)))?;
    }
    Ok(())
}

fn sync_directory(
    kernel: &Kernel,
    path: &Path,
    tablespaces: &Path,
    skip: Option<&Path>,
) -> SysResult<()> {
    for entry in found(kernel.read_dir(path))?.unwrap_or_default() {
        let inner = path.join(&entry.name);
        match entry.kind {
            FileKind::Directory if Some(inner.as_path()) != skip => {
                sync_directory(kernel, &inner, tablespaces, skip)?;
            }
            FileKind::Symlink if path == tablespaces => {
                sync_directory(kernel, &inner, tablespaces, skip)?;
            }
            FileKind::Regular => {
                // Something unreadable that is not ours is left to its owner.
                if let Ok(file) = kernel.open_read(&inner) {
                    file.fsync()?;
                }
            }
            _ => {}
        }
    }
    kernel.sync_dir(path)
}
