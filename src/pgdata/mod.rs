//! The data directory: where things are, and the files in it that are neither pages of relations
//! nor WAL.

pub mod cleanup;
pub mod control;
mod databases;
pub mod filename;
pub mod lockfile;
pub mod origins;
pub mod reinit;
pub mod relmap;
pub mod slots;
pub mod sync;
pub mod twophase;

use std::path::{Path, PathBuf};

use crate::format::WalFormat;
use crate::sys::{Kernel, Ownership, SysResult};
use crate::types::{DEFAULT_TABLESPACE, ForkNumber, GLOBAL_TABLESPACE, Oid, RelFileLocator};

/// A data directory that is being worked on.
#[derive(Debug, Clone)]
pub struct DataDir {
    kernel: Kernel,
    root: PathBuf,
    owner: Ownership,
    format: &'static WalFormat,
}

impl DataDir {
    /// A data directory of a known major.
    pub fn new(kernel: Kernel, root: &Path, format: &'static WalFormat) -> SysResult<DataDir> {
        let owner = Ownership::of(&kernel, root)?;
        Ok(DataDir {
            kernel,
            root: root.to_owned(),
            owner,
            format,
        })
    }

    /// The door to the kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The facts of its major.
    pub fn format(&self) -> &'static WalFormat {
        self.format
    }

    /// Permission bits of new files.
    pub fn file_mode(&self) -> u32 {
        self.owner.file_mode()
    }

    /// Permission bits of new directories.
    pub fn dir_mode(&self) -> u32 {
        self.owner.dir_mode()
    }

    /// A path in the directory. `relative` is built from constants and numbers only.
    pub fn path(&self, relative: impl AsRef<Path>) -> PathBuf {
        self.root.join(relative)
    }

    /// The directory with the databases of a tablespace.
    pub fn tablespace_dir(&self, spc: Oid) -> PathBuf {
        if spc == DEFAULT_TABLESPACE {
            return self.path("base");
        }
        self.path(format!(
            "pg_tblspc/{spc}/{}",
            self.format.tablespace_directory()
        ))
    }

    /// The directory of a database in a tablespace (`GetDatabasePath`,
    /// `src/common/relpath.c`); `global` for the shared relations.
    pub fn database_dir(&self, spc: Oid, db: Oid) -> PathBuf {
        if spc == GLOBAL_TABLESPACE {
            return self.path("global");
        }
        self.tablespace_dir(spc).join(db.to_string())
    }

    /// The file of one segment of a fork (`GetRelationPath`).
    pub fn relation_path(
        &self,
        locator: RelFileLocator,
        fork: ForkNumber,
        segment: u32,
    ) -> PathBuf {
        let suffix = fork.file_suffix();
        let name = match segment {
            0 => format!("{}{suffix}", locator.rel),
            n => format!("{}{suffix}.{n}", locator.rel),
        };
        self.database_dir(locator.spc, locator.db).join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_postgres_own() {
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::new(Kernel::new(), root.path(), WalFormat::ALL[0]).unwrap();
        let path = |spc, db, rel, fork, segment| {
            let locator = RelFileLocator {
                spc: Oid(spc),
                db: Oid(db),
                rel: Oid(rel),
            };
            let full = dir.relation_path(locator, fork, segment);
            full.strip_prefix(root.path())
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(path(1664, 0, 1262, ForkNumber::Main, 0), "global/1262");
        assert_eq!(path(1663, 5, 2619, ForkNumber::Vm, 0), "base/5/2619_vm");
        assert_eq!(path(1663, 5, 2619, ForkNumber::Fsm, 3), "base/5/2619_fsm.3");
        assert!(path(16384, 5, 7, ForkNumber::Init, 0).ends_with("/5/7_init"));
        assert!(path(16384, 5, 7, ForkNumber::Init, 0).starts_with("pg_tblspc/16384/PG_"));
    }
}
