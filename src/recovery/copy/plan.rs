//! What goes into a copy, and whether it may be made.

use std::path::{Path, PathBuf};

use super::{Copy, CopyError, CopyOptions, Item, Root, What};
use crate::pgdata::control::{CONTROL_FILE_BYTES, CONTROL_FILE_PATH};
use crate::recovery::Prepared;
use crate::sys::{DirEntry, FileKind, Kernel, Ownership, SysResult, found, is_root};

/// Directories that every server start empties; pg_basebackup leaves their contents out too.
/// pg_replslot is not among them, because a crashed server's slots survive and decide what
/// recovery keeps of pg_logical.
const EMPTIED: &[&str] = &[
    "pg_dynshmem",
    "pg_notify",
    "pg_serial",
    "pg_snapshots",
    "pg_stat_tmp",
    "pg_subtrans",
];

/// Files of the server that crashed.
const LEFT_OUT: &[&str] = &["postmaster.pid", "postmaster.opts"];

/// Beginnings of names that are left out in every directory: temporary files and caches.
const LEFT_OUT_PREFIXES: &[&str] = &["pgsql_tmp", "pg_internal.init"];

/// The directory that a path is in.
pub(super) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => path.to_owned(),
    }
}

/// Names a directory whatever the path to it: device and inode.
type Identity = (u64, u64);

impl Copy {
    /// Looks at the source and at the places for the copy; nothing is written. That the source
    /// was prepared proves that no server runs on it.
    pub fn plan(
        kernel: &Kernel,
        prepared: &Prepared,
        options: CopyOptions<'_>,
    ) -> Result<Copy, CopyError> {
        let (control, created) = match prepared {
            Prepared::NothingToDo(control) => (control.as_ref(), &[][..]),
            Prepared::Ready(recovery) => {
                let survey = recovery.survey();
                (recovery.control(), survey.tablespaces.as_slice())
            }
        };
        let owner = Ownership::of(kernel, options.source)?;
        let mut planner = Planner {
            kernel,
            options,
            owner,
            version_directory: control.format.tablespace_directory(),
            items: Vec::new(),
            roots: Vec::new(),
            origins: vec![options.source.to_owned()],
            unmapped: Vec::new(),
        };
        planner.plan(created)?;
        let control = options.source.join(CONTROL_FILE_PATH);
        Ok(Copy {
            kernel: kernel.clone(),
            source: options.source.to_owned(),
            method: options.method,
            sync: options.sync,
            owner,
            control: kernel.read_file(&control, CONTROL_FILE_BYTES as u64)?,
            roots: planner.roots,
            items: planner.items,
        })
    }
}

struct Planner<'a> {
    kernel: &'a Kernel,
    options: CopyOptions<'a>,
    owner: Ownership,
    version_directory: String,
    items: Vec<Item>,
    roots: Vec<Root>,
    /// All that is copied from: the data directory and the locations of its tablespaces.
    origins: Vec<PathBuf>,
    /// Locations with no new one.
    unmapped: Vec<PathBuf>,
}

impl Planner<'_> {
    fn plan(&mut self, created: &[PathBuf]) -> Result<(), CopyError> {
        let (source, target) = (self.options.source, self.options.target);
        self.add_root(target, self.mode(source)?)?;
        for entry in self.kernel.read_dir(source)? {
            self.add_top(&entry)?;
        }
        for location in created {
            self.add_location(location, None)?;
        }
        if !self.unmapped.is_empty() {
            return Err(CopyError::Unmapped(std::mem::take(&mut self.unmapped)));
        }
        self.check_places()
    }

    fn mode(&self, path: &Path) -> SysResult<u32> {
        Ok(self.kernel.metadata(path)?.mode & 0o777)
    }

    /// A place to begin at. It must be new, or empty and of the right owner.
    fn add_root(&mut self, path: &Path, mode: u32) -> Result<(), CopyError> {
        let is_new = self.kernel.link_metadata_if_any(path)?.is_none();
        if is_new {
            let parent = found(self.kernel.metadata(&parent(path)))?;
            if parent.is_none_or(|meta| meta.kind != FileKind::Directory) {
                return Err(CopyError::NoParent(path.to_owned()));
            }
        } else {
            let meta = found(self.kernel.metadata(path))?;
            let Some(meta) = meta.filter(|meta| meta.kind == FileKind::Directory) else {
                return Err(CopyError::NotADirectory(path.to_owned()));
            };
            if !self.kernel.read_dir(path)?.is_empty() {
                return Err(CopyError::NotEmpty(path.to_owned()));
            }
            if is_root() && meta.uid != self.owner.uid {
                return Err(CopyError::Owner {
                    path: path.to_owned(),
                    source_directory: self.options.source.to_owned(),
                });
            }
        }
        let path = path.to_owned();
        self.roots.push(Root { path, mode, is_new });
        Ok(())
    }

    /// An entry of the data directory itself. Here links are followed: pg_wal may be one, and so
    /// may be what an administrator keeps elsewhere.
    fn add_top(&mut self, entry: &DirEntry) -> Result<(), CopyError> {
        let name = entry.name.to_str().unwrap_or_default();
        if LEFT_OUT.contains(&name) {
            return Ok(());
        }
        let from = self.options.source.join(&entry.name);
        let to = self.options.target.join(&entry.name);
        let kind = match entry.kind {
            FileKind::Symlink => found(self.kernel.metadata(&from))?.map(|meta| meta.kind),
            kind => Some(kind),
        };
        match kind.ok_or_else(|| CopyError::Link(from.clone()))? {
            FileKind::Directory if EMPTIED.contains(&name) => self.add_directory(&from, &to),
            FileKind::Directory if name == "pg_tblspc" => self.add_tablespaces(&from, &to),
            FileKind::Directory => self.add_tree(&from, &to),
            FileKind::Regular => self.add_file(&from, to),
            _ => Ok(()),
        }
    }

    fn add_directory(&mut self, from: &Path, to: &Path) -> Result<(), CopyError> {
        let what = What::Directory(self.mode(from)?);
        let to = to.to_owned();
        self.items.push(Item { to, what });
        Ok(())
    }

    fn add_file(&mut self, from: &Path, to: PathBuf) -> Result<(), CopyError> {
        let what = What::File(from.to_owned());
        self.items.push(Item { to, what });
        Ok(())
    }

    /// A directory and what is in it. Sockets and pipes are left out: a server makes its own.
    fn add_tree(&mut self, from: &Path, to: &Path) -> Result<(), CopyError> {
        self.add_directory(from, to)?;
        for entry in self.kernel.read_dir(from)? {
            let name = entry.name.as_encoded_bytes();
            if LEFT_OUT_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix.as_bytes()))
            {
                continue;
            }
            let (from, to) = (from.join(&entry.name), to.join(&entry.name));
            match entry.kind {
                FileKind::Directory => self.add_tree(&from, &to)?,
                FileKind::Symlink => return Err(CopyError::Link(from)),
                // This one comes when all the rest is there.
                FileKind::Regular if to == self.options.target.join(CONTROL_FILE_PATH) => {}
                FileKind::Regular => self.add_file(&from, to)?,
                FileKind::Other => {}
            }
        }
        Ok(())
    }

    fn add_tablespaces(&mut self, from: &Path, to: &Path) -> Result<(), CopyError> {
        self.add_directory(from, to)?;
        for entry in self.kernel.read_dir(from)? {
            let (from, to) = (from.join(&entry.name), to.join(&entry.name));
            match entry.kind {
                FileKind::Symlink => {
                    let location = self.kernel.read_link(&from)?;
                    self.add_location(&location, Some((&from, to)))?;
                }
                FileKind::Directory => self.add_tree(&from, &to)?,
                FileKind::Regular => self.add_file(&from, to)?,
                FileKind::Other => {}
            }
        }
        Ok(())
    }

    /// The location of a tablespace, with its link and the link's copy if it has one. Like
    /// pg_basebackup this takes the directory of this major only; another one there is of the
    /// cluster from before an upgrade.
    fn add_location(
        &mut self,
        location: &Path,
        link: Option<(&Path, PathBuf)>,
    ) -> Result<(), CopyError> {
        let mapped = self.options.tablespaces.iter();
        let Some((_, new)) = mapped.clone().find(|(old, _)| old == location) else {
            if !self.unmapped.iter().any(|known| known == location) {
                self.unmapped.push(location.to_owned());
            }
            return Ok(());
        };
        let is_known = self.origins[1..].iter().any(|known| known == location);
        if !is_known {
            let mode = found(self.kernel.metadata(location))?.map(|meta| meta.mode & 0o777);
            self.add_root(new, mode.unwrap_or(self.owner.dir_mode()))?;
            self.origins.push(location.to_owned());
        }
        let Some((from, to)) = link else {
            return Ok(());
        };
        let what = What::Link(new.clone());
        self.items.push(Item { to, what });
        let contents = from.join(&self.version_directory);
        if found(self.kernel.metadata(&contents))?.is_some() {
            self.add_tree(&contents, &new.join(&self.version_directory))?;
        }
        Ok(())
    }

    /// No place may be inside what is copied, or inside another place.
    fn check_places(&self) -> Result<(), CopyError> {
        let inside = |inner: &Path, outer: &Path| CopyError::Inside {
            inner: inner.to_owned(),
            outer: outer.to_owned(),
        };
        for (index, root) in self.roots.iter().enumerate() {
            let start = if root.is_new {
                parent(&root.path)
            } else {
                root.path.clone()
            };
            let lineage = self.lineage(&start)?;
            for origin in &self.origins {
                let identity = found(self.identity(origin))?;
                if identity.is_some_and(|identity| lineage.contains(&identity)) {
                    return Err(inside(&root.path, origin));
                }
            }
            for (other_index, other) in self.roots.iter().enumerate() {
                let is_inside = match other.is_new {
                    // Nothing is in it yet; two new places may still be one.
                    true => {
                        root.is_new
                            && root.path.file_name() == other.path.file_name()
                            && self.identity(&parent(&other.path))? == lineage[0]
                    }
                    false => lineage.contains(&self.identity(&other.path)?),
                };
                if index != other_index && is_inside {
                    return Err(inside(&root.path, &other.path));
                }
            }
        }
        Ok(())
    }

    fn identity(&self, path: &Path) -> SysResult<Identity> {
        let meta = self.kernel.metadata(path)?;
        Ok((meta.device, meta.inode))
    }

    /// A directory and all those it is in, up to the root of the file system.
    fn lineage(&self, path: &Path) -> SysResult<Vec<Identity>> {
        let mut at = path.to_owned();
        let mut lineage = vec![self.identity(&at)?];
        loop {
            at.push("..");
            let next = self.identity(&at)?;
            if lineage.last() == Some(&next) {
                return Ok(lineage);
            }
            lineage.push(next);
        }
    }
}
