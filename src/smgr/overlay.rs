//! Relation files that are only read, under changes that live in memory.
//!
//! Pages are the buffer pool's; what is kept here is which forks there are and how long they are.
//! A fork that was dropped, or whose database was, is *hidden*: files of its name no longer
//! count. A database that was copied reads the files of its template, which cannot change either.

use rustc_hash::FxHashSet;

use super::fork::{ForkId, Smgr, SmgrOptions};
use super::segments::FileAccess;
use super::{NblocksCache, SmgrError};
use crate::pgdata::DataDir;
use crate::pgdata::filename::parse_relation_file;
use crate::sys::found;
use crate::types::{ForkNumber, Oid, RelFileLocator};

/// What was dropped as a whole.
#[derive(Debug, Default)]
pub(super) struct Overlay {
    /// Databases, by their tablespace, whose directory no longer counts.
    databases: FxHashSet<(Oid, Oid)>,
}

impl Overlay {
    /// Whether files of a relation that was not looked at yet do not count.
    pub(super) fn hides(&self, locator: RelFileLocator) -> bool {
        self.databases.contains(&(locator.spc, locator.db))
    }

    pub(super) fn hide_database(&mut self, db: Oid, spc: Oid) {
        self.databases.insert((spc, db));
    }
}

/// A fork and the one that was made from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedFork {
    /// The template's.
    pub from: ForkId,
    /// The new one.
    pub to: ForkId,
}

impl Smgr {
    /// Relation files of `dir` that are only read. All sizes are remembered, as the files do not
    /// show them.
    pub fn overlay(dir: DataDir, options: SmgrOptions) -> Smgr {
        let options = SmgrOptions {
            nblocks_cache: NblocksCache::On,
            ..options
        };
        Smgr::with(dir, options, FileAccess::ReadOnly, Some(Overlay::default()))
    }

    /// True if files are only read.
    pub fn is_overlay(&self) -> bool {
        self.overlay.is_some()
    }

    pub(super) fn create_in_memory(&mut self, id: ForkId) -> Result<(), SmgrError> {
        if !self.exists(id)? {
            let fork = &mut self.forks[id.index()];
            fork.hidden = false;
            fork.exists = true;
            fork.size.created();
        }
        Ok(())
    }

    /// All forks of a relation go.
    pub(super) fn hide(&mut self, locator: RelFileLocator) {
        for number in ForkNumber::ALL {
            let id = self.fork(locator, number);
            self.forget(id);
        }
    }

    /// Makes every fork of a database in one tablespace also one of another, whose own are gone.
    /// Pages of the template that are in memory are the caller's to copy.
    pub fn copy_database(
        &mut self,
        (spc, db): (Oid, Oid),
        (src_spc, src_db): (Oid, Oid),
    ) -> Result<Vec<CopiedFork>, SmgrError> {
        assert!(self.is_overlay(), "only an overlay copies without files");
        self.forget_database(db, spc);
        self.find_forks(src_spc, src_db)?;
        let mut copied = Vec::new();
        for from in self.forks_of_database(src_db, Some(src_spc)) {
            if !self.exists(from)? {
                continue;
            }
            self.nblocks(from)?;
            let source = &self.forks[from.index()];
            let (files, size, number) = (source.files, source.size, source.number);
            let locator = RelFileLocator {
                spc,
                db,
                rel: source.locator.rel,
            };
            let to = self.fork(locator, number);
            let target = &mut self.forks[to.index()];
            target.files = files;
            target.size = size;
            target.exists = true;
            target.hidden = false;
            copied.push(CopiedFork { from, to });
        }
        Ok(copied)
    }

    /// Makes the forks of a database known that have files.
    fn find_forks(&mut self, spc: Oid, db: Oid) -> Result<(), SmgrError> {
        let directory = self.dir.database_dir(spc, db);
        let listing = found(self.dir.kernel().read_dir(&directory))?;
        for entry in listing.unwrap_or_default() {
            let file = entry.name.to_str().and_then(parse_relation_file);
            if let Some((rel, number, 0)) = file {
                self.fork(RelFileLocator { spc, db, rel }, number);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::WalFormat;
    use crate::page::Page;
    use crate::smgr::SyncMethod;
    use crate::sys::Kernel;
    use crate::types::BLOCK_BYTES;

    const RELATION: RelFileLocator = RelFileLocator {
        spc: Oid(1663),
        db: Oid(5),
        rel: Oid(16384),
    };

    /// A database 5 with a relation of two blocks, read through a kernel that changes nothing.
    fn overlay(root: &std::path::Path) -> Smgr {
        let database = root.join("base/5");
        std::fs::create_dir_all(&database).unwrap();
        let blocks = [[1; BLOCK_BYTES], [2; BLOCK_BYTES]].concat();
        std::fs::write(database.join("16384"), blocks).unwrap();
        let dir = DataDir::new(Kernel::read_only(), root, WalFormat::ALL[0]).unwrap();
        let options = SmgrOptions {
            nblocks_cache: NblocksCache::Off,
            data_checksums: false,
            sync: SyncMethod::None,
        };
        Smgr::overlay(dir, options)
    }

    fn first_byte(smgr: &mut Smgr, id: ForkId, block: u32) -> u8 {
        let mut page = Page::zeroed();
        smgr.read(id, block, &mut page).unwrap();
        page.bytes()[0]
    }

    #[test]
    fn a_cut_and_regrown_fork_has_zeros_over_its_file() {
        let root = tempfile::tempdir().unwrap();
        let mut smgr = overlay(root.path());
        let id = smgr.fork(RELATION, ForkNumber::Main);
        smgr.create(id).unwrap();
        assert_eq!(smgr.nblocks(id).unwrap(), 2);
        smgr.truncate(id, 1).unwrap();
        smgr.extend(id, 2).unwrap();
        assert_eq!(first_byte(&mut smgr, id, 0), 1);
        assert_eq!(first_byte(&mut smgr, id, 1), 0);
    }

    #[test]
    fn a_dropped_relation_is_gone_and_comes_back_empty() {
        let root = tempfile::tempdir().unwrap();
        let mut smgr = overlay(root.path());
        smgr.unlink(RELATION).unwrap();
        let id = smgr.fork(RELATION, ForkNumber::Main);
        assert!(!smgr.exists(id).unwrap());
        smgr.create(id).unwrap();
        assert!(smgr.exists(id).unwrap());
        assert_eq!(smgr.nblocks(id).unwrap(), 0);
        assert!(root.path().join("base/5/16384").exists());
    }

    #[test]
    fn a_copied_database_reads_its_template_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        let mut smgr = overlay(root.path());
        let source = (Oid(1663), Oid(5));
        let copied = smgr.copy_database((Oid(1663), Oid(6)), source).unwrap();
        assert_eq!(copied.len(), 1);
        smgr.forget_database(Oid(5), Oid(1663));
        let copy = RelFileLocator {
            db: Oid(6),
            ..RELATION
        };
        let id = smgr.fork(copy, ForkNumber::Main);
        assert_eq!(smgr.nblocks(id).unwrap(), 2);
        assert_eq!(first_byte(&mut smgr, id, 1), 2);
        let original = smgr.fork(RELATION, ForkNumber::Main);
        assert!(!smgr.exists(original).unwrap());
        let other = RelFileLocator {
            rel: Oid(16385),
            ..RELATION
        };
        let other = smgr.fork(other, ForkNumber::Main);
        assert!(!smgr.exists(other).unwrap());
    }
}
