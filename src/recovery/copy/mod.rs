//! A copy of a crashed data directory, to recover there and leave the original alone.
//!
//! The copy is planned first, which finds whatever forbids it, and then made. Its pg_control comes
//! last, when all else is durable: without that file neither a server nor another run takes a
//! half copy for a data directory. What a copy that fails has made is removed again.

mod plan;

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::pgdata::control::{CONTROL_FILE_BYTES, CONTROL_FILE_PATH};
use crate::pgdata::sync::{sync_file_systems, sync_tree};
use crate::smgr::SyncMethod;
use crate::sys::{
    AsOwner, Create, FileKind, Kernel, Ownership, SysError, SysResult, interrupted, is_root,
};

/// Bytes read and written at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// How files are copied, named as pg_combinebackup names the ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyMethod {
    /// read and write.
    Copy,
    /// ioctl FICLONE: the files share their blocks until one side changes.
    Clone,
    /// copy_file_range.
    CopyFileRange,
}

impl fmt::Display for CopyMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CopyMethod::Copy => "--copy",
            CopyMethod::Clone => "--clone",
            CopyMethod::CopyFileRange => "--copy-file-range",
        })
    }
}

/// What to copy, and where to.
#[derive(Debug, Clone, Copy)]
pub struct CopyOptions<'a> {
    /// The crashed data directory.
    pub source: &'a Path,
    /// The copy, which must be new or empty.
    pub target: &'a Path,
    /// How files are copied.
    pub method: CopyMethod,
    /// How the copy is made durable.
    pub sync: SyncMethod,
    /// Old and new locations of tablespaces; the new ones must be new or empty.
    pub tablespaces: &'a [(PathBuf, PathBuf)],
}

/// Why there is no copy.
#[derive(Debug, Error)]
pub enum CopyError {
    /// A place for the copy is taken.
    #[error("\"{}\" is not empty; give a directory that is new or empty", .0.display())]
    NotEmpty(PathBuf),
    /// A place for the copy is something else.
    #[error("\"{}\" is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// A place for the copy has no directory to be in.
    #[error("the directory of \"{}\" does not exist", .0.display())]
    NoParent(PathBuf),
    /// Root gives the copy to the owner of the source, but takes no directory from anybody.
    #[error(
        "\"{}\" does not belong to the owner of \"{}\"",
        path.display(), source_directory.display()
    )]
    Owner {
        /// The place.
        path: PathBuf,
        /// The source.
        source_directory: PathBuf,
    },
    /// A place for the copy is inside what is copied, or inside another place for it.
    #[error("\"{}\" is inside \"{}\"", inner.display(), outer.display())]
    Inside {
        /// The place.
        inner: PathBuf,
        /// What it is in.
        outer: PathBuf,
    },
    /// Tablespaces whose copies have no place.
    #[error("no new location given for tablespaces {}; give -T OLD=NEW for each", quoted(.0))]
    Unmapped(Vec<PathBuf>),
    /// A link where a server makes none: its target is not known to belong to the cluster.
    #[error(
        "\"{}\" is a symbolic link; links are followed at the top of the data directory and in \
         pg_tblspc only",
        .0.display()
    )]
    Link(PathBuf),
    /// The file system cannot.
    #[error("{method} is not possible here, use --copy: {error}")]
    Method {
        /// What was asked for.
        method: CopyMethod,
        /// What the kernel said.
        error: SysError,
    },
    /// A server started meanwhile.
    #[error("\"{}\" was changed while it was copied", .0.display())]
    SourceChanged(PathBuf),
    /// The process was asked to stop.
    #[error("interrupted; the copy was removed")]
    Interrupted,
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
}

fn quoted(paths: &[PathBuf]) -> String {
    let quoted: Vec<String> = paths
        .iter()
        .map(|path| format!("\"{}\"", path.display()))
        .collect();
    quoted.join(", ")
}

impl CopyError {
    /// Nothing was written, or all of it removed, because of what was asked for.
    pub fn is_refusal(&self) -> bool {
        !matches!(
            self,
            CopyError::Sys(_) | CopyError::Interrupted | CopyError::SourceChanged(_)
        )
    }
}

/// A directory that the copy begins with: its root, or the location of a tablespace.
#[derive(Debug)]
struct Root {
    path: PathBuf,
    /// Permission bits of what it is a copy of.
    mode: u32,
    is_new: bool,
}

/// Something to be made below a root.
#[derive(Debug)]
struct Item {
    to: PathBuf,
    what: What,
}

#[derive(Debug)]
enum What {
    /// A directory with these permission bits.
    Directory(u32),
    /// A copy of this file.
    File(PathBuf),
    /// A link to this location.
    Link(PathBuf),
}

/// A copy that was planned.
#[derive(Debug)]
pub struct Copy {
    kernel: Kernel,
    source: PathBuf,
    method: CopyMethod,
    sync: SyncMethod,
    owner: Ownership,
    /// pg_control as it was.
    control: Vec<u8>,
    /// The root of the copy, then the locations of its tablespaces.
    roots: Vec<Root>,
    /// Directories before what is in them.
    items: Vec<Item>,
}

impl Copy {
    /// Makes the copy. If that fails, what was made is removed.
    pub fn perform(&self) -> Result<(), CopyError> {
        let mut begun = Vec::new();
        let result = self.make_all(&mut begun);
        if result.is_err() {
            // The first error is the one to report. What cannot be removed has no pg_control.
            let _ = self.remove(&begun);
        }
        result
    }

    fn make_all<'a>(&'a self, begun: &mut Vec<&'a Root>) -> Result<(), CopyError> {
        for root in &self.roots {
            if root.is_new {
                self.make_root(&root.path)?;
            }
            begun.push(root);
        }
        let _as_owner = AsOwner::begin(self.owner, &self.source)?;
        for root in &self.roots {
            self.kernel.chmod(&root.path, root.mode)?;
        }
        let mut buffer = vec![0; CHUNK_BYTES];
        for item in &self.items {
            if interrupted() {
                return Err(CopyError::Interrupted);
            }
            match &item.what {
                What::Directory(mode) => self.kernel.mkdir(&item.to, *mode)?,
                What::Link(location) => self.kernel.symlink(location, &item.to)?,
                What::File(from) => self.copy_file(from, &item.to, &mut buffer)?,
            }
        }
        self.finish()
    }

    /// Root makes the directories themselves, because only root may be allowed to; all else is
    /// made by the owner.
    fn make_root(&self, path: &Path) -> SysResult<()> {
        self.kernel.mkdir(path, 0o700)?;
        if is_root() {
            self.kernel.chown(path, self.owner.uid, self.owner.gid)?;
        }
        match self.sync {
            SyncMethod::None => Ok(()),
            _ => self.kernel.sync_dir(&plan::parent(path)),
        }
    }

    fn copy_file(&self, from: &Path, to: &Path, buffer: &mut [u8]) -> Result<(), CopyError> {
        let source = self.kernel.open_read(from)?;
        let mode = source.metadata()?.mode & 0o777;
        let target = self.kernel.create(to, Create::Exclusive, mode)?;
        let copied = match self.method {
            CopyMethod::Clone => target.clone_from(&source),
            CopyMethod::CopyFileRange => target.copy_range_from(&source).map(drop),
            // No method can be missing here, so an error is what it is.
            CopyMethod::Copy => return Ok(source.copy_to(&target, buffer)?),
        };
        let method = self.method;
        copied.map_err(|error| match error.is_unsupported() {
            true => CopyError::Method { method, error },
            false => error.into(),
        })
    }

    /// Makes the copy durable and then a data directory.
    fn finish(&self) -> Result<(), CopyError> {
        let root = &self.roots[0].path;
        match self.sync {
            SyncMethod::None => {}
            SyncMethod::Fsync => sync_tree(&self.kernel, root, None)?,
            SyncMethod::Syncfs => sync_file_systems(&self.kernel, root)?,
        }
        // Every server writes pg_control when it starts.
        let control = self.source.join(CONTROL_FILE_PATH);
        let limit = CONTROL_FILE_BYTES as u64;
        if self.kernel.read_file(&control, limit)? != self.control {
            return Err(CopyError::SourceChanged(self.source.clone()));
        }
        let (path, mode) = (root.join(CONTROL_FILE_PATH), self.owner.file_mode());
        Ok(self.kernel.replace_file(&path, &self.control, mode)?)
    }

    fn remove(&self, begun: &[&Root]) -> SysResult<()> {
        let as_owner = AsOwner::begin(self.owner, &self.source)?;
        for root in begun {
            for entry in self.kernel.read_dir(&root.path)? {
                let path = root.path.join(&entry.name);
                match entry.kind {
                    FileKind::Directory => self.kernel.remove_tree(&path)?,
                    _ => self.kernel.unlink(&path)?,
                }
            }
        }
        drop(as_owner);
        for root in begun.iter().filter(|root| root.is_new) {
            self.kernel.rmdir(&root.path)?;
        }
        Ok(())
    }
}
