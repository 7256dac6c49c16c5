//! CREATE and DROP DATABASE (`dbase_redo`, `src/backend/commands/dbcommands.c`).

use std::path::Path;

use super::{Redo, RedoErrorKind};
use crate::smgr::SyncMethod;
use crate::sys::{Create, FileKind};
use crate::types::{DEFAULT_TABLESPACE, Oid};

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

impl Redo {
    /// CREATE DATABASE with the FILE_COPY strategy: what is there of the target goes, then every
    /// file of the template is copied as redo has left it so far.
    pub(super) fn copy_database(
        &mut self,
        (spc, db): (Oid, Oid),
        (src_spc, src_db): (Oid, Oid),
    ) -> Result<(), RedoErrorKind> {
        if self.smgr.is_overlay() {
            return self.copy_database_in_memory((spc, db), (src_spc, src_db));
        }
        let (target, source) = (
            self.dir.database_dir(spc, db),
            self.dir.database_dir(src_spc, src_db),
        );
        for fork in self.smgr.forks_of_database(db, Some(spc)) {
            self.pool.discard(fork, 0);
        }
        self.smgr.forget_database(db, spc);
        let kernel = self.dir.kernel().clone();
        kernel.remove_tree(&target)?;
        self.make_tablespace_dir(spc)?;
        if !kernel.exists(&source)? {
            // The template was dropped later in the WAL; the copy will be as well.
            self.make_tablespace_dir(src_spc)?;
            kernel.mkdir(&source, self.dir.dir_mode())?;
        }
        for fork in self.smgr.forks_of_database(src_db, None) {
            self.pool.flush_fork(&mut self.smgr, fork)?;
            self.smgr.settle(fork)?;
        }
        kernel.mkdir(&target, self.dir.dir_mode())?;
        for entry in kernel.read_dir(&source)? {
            if entry.kind == FileKind::Regular {
                self.copy_file(&source.join(&entry.name), &target.join(&entry.name))?;
            }
        }
        self.smgr.directory_changed(target.clone());
        self.smgr.directory_changed(self.dir.tablespace_dir(spc));
        Ok(())
    }

    fn copy_file(&self, from: &Path, to: &Path) -> Result<(), RedoErrorKind> {
        let kernel = self.dir.kernel();
        let source = kernel.open_read(from)?;
        let target = kernel.create(to, Create::Exclusive, self.dir.file_mode())?;
        source.copy_to(&target, &mut vec![0; COPY_BYTES])?;
        if self.sync == SyncMethod::Fsync {
            target.fsync()?;
        }
        Ok(())
    }

    /// CREATE DATABASE with the WAL_LOG strategy: the directory and its PG_VERSION; the rest
    /// follows in records of its own.
    pub(super) fn create_database(&mut self, spc: Oid, db: Oid) -> Result<(), RedoErrorKind> {
        self.make_tablespace_dir(spc)?;
        let kernel = self.dir.kernel();
        let path = self.dir.database_dir(spc, db);
        kernel.mkdir_if_missing(&path, self.dir.dir_mode())?;
        let version = path.join("PG_VERSION");
        let file = kernel.create(&version, Create::Truncate, self.dir.file_mode())?;
        file.write_at(format!("{}\n", self.dir.format().version.0).as_bytes(), 0)?;
        if self.sync == SyncMethod::Fsync {
            file.fsync()?;
        }
        self.smgr.directory_changed(path);
        self.smgr.directory_changed(self.dir.tablespace_dir(spc));
        Ok(())
    }

    /// `recovery_create_dbdir` for the parent of a database: missing levels become plain
    /// directories, which the drop that explains them removes.
    fn make_tablespace_dir(&self, spc: Oid) -> Result<(), RedoErrorKind> {
        if spc == DEFAULT_TABLESPACE {
            return Ok(());
        }
        let kernel = self.dir.kernel();
        let mode = self.dir.dir_mode();
        let link = self.dir.path(format!("pg_tblspc/{spc}"));
        if !kernel.exists(&link)? {
            kernel.mkdir(&link, mode)?;
        }
        Ok(kernel.mkdir_if_missing(&self.dir.tablespace_dir(spc), mode)?)
    }

    /// DROP DATABASE: pages in memory, references to missing pages, replication slots of the
    /// database, and its directory in each tablespace.
    pub(super) fn drop_database(
        &mut self,
        db: Oid,
        spcs: impl Iterator<Item = Oid>,
    ) -> Result<(), RedoErrorKind> {
        if !self.smgr.is_overlay() {
            crate::pgdata::slots::drop_slots_of_database(&self.dir, db)?;
        }
        for fork in self.smgr.forks_of_database(db, None) {
            self.pool.discard(fork, 0);
        }
        self.missing.forget_database(db);
        for spc in spcs {
            self.smgr.forget_database(db, spc);
            if self.smgr.is_overlay() {
                continue;
            }
            let path = self.dir.database_dir(spc, db);
            if !self.dir.kernel().exists(&path)? {
                self.notices.push(format!(
                    "some useless files may be left behind in old database directory \"{}\"",
                    path.display()
                ));
            }
            self.dir.kernel().remove_tree(&path)?;
            self.smgr.directory_changed(self.dir.tablespace_dir(spc));
        }
        Ok(())
    }
}
