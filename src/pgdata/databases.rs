//! The directories of databases, found by their names.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::DataDir;
use crate::sys::{DirEntry, FileKind, SysResult, found};

impl DataDir {
    /// The directories that hold databases: `base` and the one of this major in each tablespace.
    pub fn tablespace_dirs(&self) -> SysResult<Vec<PathBuf>> {
        let version_directory = self.format().tablespace_directory();
        let mut dirs = vec![self.path("base")];
        let tablespaces = self.path("pg_tblspc");
        for entry in self.entries(&tablespaces)? {
            if is_number(&entry.name) {
                dirs.push(tablespaces.join(&entry.name).join(&version_directory));
            }
        }
        Ok(dirs)
    }

    /// The directory of every database in every tablespace; `global` is none of them.
    pub fn database_dirs(&self) -> SysResult<Vec<PathBuf>> {
        let mut dirs = Vec::new();
        for tablespace in self.tablespace_dirs()? {
            let databases = self.entries(&tablespace)?.into_iter();
            let databases = databases.filter(|e| e.kind != FileKind::Regular && is_number(&e.name));
            dirs.extend(databases.map(|e| tablespace.join(&e.name)));
        }
        Ok(dirs)
    }

    /// What is in a directory; nothing if it is missing, as in a base backup, or behind a link
    /// that leads nowhere.
    pub(super) fn entries(&self, path: &Path) -> SysResult<Vec<DirEntry>> {
        Ok(found(self.kernel().read_dir(path))?.unwrap_or_default())
    }
}

fn is_number(name: &OsStr) -> bool {
    !name.is_empty() && name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
}
