//! CREATE and DROP TABLESPACE (`tblspc_redo`, `src/backend/commands/tablespace.c`).
//!
//! The location of a tablespace is the one path that WAL carries. It is followed only to an
//! existing directory of the data directory's own owner, outside the data directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::{Redo, RedoErrorKind};
use crate::sys::{FileKind, found};
use crate::types::Oid;

/// Locations that were moved: `-T OLD=NEW`.
#[derive(Debug, Clone, Default)]
pub struct TablespaceMap {
    moved: Vec<(PathBuf, PathBuf)>,
}

impl TablespaceMap {
    /// From pairs of old and new location.
    pub fn new(moved: Vec<(PathBuf, PathBuf)>) -> TablespaceMap {
        TablespaceMap { moved }
    }

    /// Where a tablespace at `location` is now.
    pub fn resolve<'a>(&'a self, location: &'a Path) -> &'a Path {
        let moved = self.moved.iter().find(|(old, _)| old == location);
        moved.map_or(location, |(_, new)| new)
    }

    /// True if nothing was moved.
    pub fn is_empty(&self) -> bool {
        self.moved.is_empty()
    }
}

fn refuse(location: &Path, why: &str) -> RedoErrorKind {
    RedoErrorKind::Inconsistent(format!(
        "tablespace location \"{}\" {why}",
        location.display()
    ))
}

impl Redo {
    /// `create_tablespace_directories`.
    pub(super) fn create_tablespace(&mut self, spc: Oid, path: &[u8]) -> Result<(), RedoErrorKind> {
        let kernel = self.dir.kernel().clone();
        let mode = self.dir.dir_mode();
        let link = self.dir.path(format!("pg_tblspc/{spc}"));
        let version_dir = self.dir.format().tablespace_directory();
        if path.is_empty() {
            kernel.mkdir_if_missing(&link, mode)?;
            kernel.mkdir_if_missing(&link.join(version_dir), mode)?;
            self.smgr.directory_changed(self.dir.path("pg_tblspc"));
            return Ok(());
        }
        let location = self
            .tablespaces
            .resolve(Path::new(OsStr::from_bytes(path)))
            .to_owned();
        self.check_location(&location)?;
        kernel.chmod(&location, mode)?;
        kernel.mkdir_if_missing(&location.join(version_dir), mode)?;
        self.remove_tablespace_link(&link)?;
        kernel.symlink(&location, &link)?;
        self.smgr.directory_changed(self.dir.path("pg_tblspc"));
        Ok(())
    }

    /// A record must not lead anywhere a server run by the owner would not go.
    fn check_location(&self, location: &Path) -> Result<(), RedoErrorKind> {
        let plain = location
            .components()
            .all(|c| matches!(c, Component::RootDir | Component::Normal(_)));
        if !location.is_absolute() || !plain {
            return Err(refuse(location, "is not an absolute path"));
        }
        if location.starts_with(self.dir.root()) {
            return Err(refuse(location, "is inside the data directory"));
        }
        let kernel = self.dir.kernel();
        let Some(meta) = found(kernel.metadata(location))? else {
            return Err(refuse(
                location,
                "does not exist; create this directory, then run again",
            ));
        };
        if meta.kind != FileKind::Directory {
            return Err(refuse(location, "is not a directory"));
        }
        if meta.uid != kernel.metadata(self.dir.root())?.uid {
            return Err(refuse(
                location,
                "does not belong to the owner of the data directory",
            ));
        }
        Ok(())
    }

    /// `remove_tablespace_symlink`: an old link, or the directory that redo made in its place.
    fn remove_tablespace_link(&self, link: &Path) -> Result<(), RedoErrorKind> {
        let kernel = self.dir.kernel();
        match kernel.link_metadata_if_any(link)?.map(|meta| meta.kind) {
            None => Ok(()),
            Some(FileKind::Directory) => Ok(kernel.rmdir(link)?),
            Some(FileKind::Symlink) => Ok(kernel.unlink(link)?),
            Some(_) => Err(refuse(link, "is neither a directory nor a symbolic link")),
        }
    }

    /// `destroy_tablespace_directories` in redo: what is empty goes, what is not stays and is
    /// logged. The tablespace was empty when it was dropped, orphaned files apart.
    pub(super) fn drop_tablespace(&mut self, spc: Oid) -> Result<(), RedoErrorKind> {
        let kernel = self.dir.kernel().clone();
        let link = self.dir.path(format!("pg_tblspc/{spc}"));
        let version_dir = self.dir.tablespace_dir(spc);
        if let Some(entries) = found(kernel.read_dir(&version_dir))? {
            for entry in entries {
                let path = version_dir.join(&entry.name);
                if let Err(error) = kernel.rmdir(&path) {
                    self.notices.push(error.to_string());
                }
            }
            if let Err(error) = kernel.rmdir(&version_dir) {
                self.notices.push(error.to_string());
                self.notices.push(format!(
                    "directories for tablespace {spc} could not be removed"
                ));
                return Ok(());
            }
        }
        if let Err(error) = self.remove_tablespace_link(&link) {
            self.notices.push(error.to_string());
        }
        self.smgr.directory_changed(self.dir.path("pg_tblspc"));
        Ok(())
    }
}
