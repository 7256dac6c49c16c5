//! What the commands that only read ask of the file system: whole files, files in chunks, and
//! the tree below a data directory.

use std::path::{Path, PathBuf};

use crate::sys::{File, FileKind, Kernel, SysResult, found};

/// No file that is read whole is longer: control files and tables of counters.
const WHOLE_FILE_BYTES: u64 = 64 << 20;

/// A file or directory below a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// Relative to the data directory, with `/` between the parts.
    pub(super) name: String,
    /// Where to open it.
    pub(super) path: PathBuf,
    /// What it is.
    pub(super) node: Node,
}

/// What stands under a name, symbolic links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    /// A file of this many bytes.
    File(u64),
    /// A directory.
    Directory,
    /// A socket, a device, a link to nowhere: never opened.
    Special,
}

/// The whole file.
pub(super) fn read_file(path: &Path) -> SysResult<Vec<u8>> {
    Kernel::new().read_file(path, WHOLE_FILE_BYTES)
}

/// Reads a file front to back.
#[derive(Debug)]
pub(super) struct Chunks {
    file: File,
    at: u64,
}

impl Chunks {
    /// Opens `path`.
    pub(super) fn open(path: &Path) -> SysResult<Chunks> {
        let file = Kernel::new().open_read(path)?;
        Ok(Chunks { file, at: 0 })
    }

    /// Fills `buffer`; only the end of the file makes it less than full. Returns the bytes read.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> SysResult<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Everything below `root`, sorted by name. Links to directories are followed in the two places
/// where PostgreSQL makes them, pg_wal and pg_tblspc, so that no loop can arise.
pub(super) fn walk(root: &Path) -> SysResult<Vec<Entry>> {
    let kernel = Kernel::new();
    let mut entries = Vec::new();
    let mut pending = vec![(String::new(), root.to_owned())];
    while let Some((prefix, directory)) = pending.pop() {
        for child in kernel.read_dir(&directory)? {
            let name = format!("{prefix}{}", child.name.to_string_lossy());
            let path = directory.join(&child.name);
            let node = node_at(&kernel, &path)?;
            let linked = child.kind == FileKind::Symlink;
            if node == Node::Directory && (!linked || may_be_link(&name)) {
                pending.push((format!("{name}/"), path.clone()));
            }
            entries.push(Entry { name, path, node });
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

fn node_at(kernel: &Kernel, path: &Path) -> SysResult<Node> {
    let meta = found(kernel.metadata(path))?;
    Ok(match meta.map(|meta| (meta.kind, meta.bytes)) {
        Some((FileKind::Regular, bytes)) => Node::File(bytes),
        Some((FileKind::Directory, _)) => Node::Directory,
        _ => Node::Special,
    })
}

fn may_be_link(name: &str) -> bool {
    let below_tblspc = |rest: &str| !rest.contains('/');
    name == "pg_wal" || name.strip_prefix("pg_tblspc/").is_some_and(below_tblspc)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn walk_is_sorted_and_follows_tablespaces_only() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("pg_tblspc")).unwrap();
        fs::create_dir_all(root.join("base")).unwrap();
        fs::write(root.join("base/2"), b"xy").unwrap();
        fs::write(elsewhere.path().join("f"), b"").unwrap();
        symlink(elsewhere.path(), root.join("pg_tblspc/7")).unwrap();
        symlink(root, root.join("base/loop")).unwrap();
        symlink("nowhere", root.join("a")).unwrap();
        let found: Vec<(String, Node)> = walk(root)
            .unwrap()
            .into_iter()
            .map(|entry| (entry.name, entry.node))
            .collect();
        let expected = [
            ("a", Node::Special),
            ("base", Node::Directory),
            ("base/2", Node::File(2)),
            ("base/loop", Node::Directory),
            ("pg_tblspc", Node::Directory),
            ("pg_tblspc/7", Node::Directory),
            ("pg_tblspc/7/f", Node::File(0)),
        ];
        assert_eq!(found, expected.map(|(name, node)| (name.to_owned(), node)));
    }

    #[test]
    fn a_chunk_is_short_at_the_end_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, [7; 10]).unwrap();
        let mut chunks = Chunks::open(&path).unwrap();
        let mut buffer = [0; 6];
        assert_eq!(chunks.fill(&mut buffer).unwrap(), 6);
        assert_eq!(chunks.fill(&mut buffer).unwrap(), 4);
        assert_eq!(chunks.fill(&mut buffer).unwrap(), 0);
    }
}
