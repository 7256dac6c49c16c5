//! What the commands ask of the file system: whole files, chunks of files, and the tree below a
//! data directory. Everything is read only.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

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
pub(super) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// Reads a file front to back.
#[derive(Debug)]
pub(super) struct Chunks(File);

impl Chunks {
    /// Opens `path`.
    pub(super) fn open(path: &Path) -> io::Result<Chunks> {
        File::open(path).map(Chunks)
    }

    /// Fills `buffer`; only the end of the file makes it less than full. Returns the bytes read.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// Everything below `root`, sorted by name. Links to directories are followed in the two places
/// where PostgreSQL makes them, pg_wal and pg_tblspc, so that no loop can arise. On an error the
/// path at fault comes with it.
pub(super) fn walk(root: &Path) -> Result<Vec<Entry>, (PathBuf, io::Error)> {
    let mut entries = Vec::new();
    let mut pending = vec![(String::new(), root.to_owned())];
    while let Some((prefix, directory)) = pending.pop() {
        let at = |error| (directory.clone(), error);
        for child in fs::read_dir(&directory).map_err(at)? {
            let child = child.map_err(at)?;
            let name = format!("{prefix}{}", child.file_name().to_string_lossy());
            let path = child.path();
            let linked = child.file_type().map_err(at)?.is_symlink();
            let node = node_at(&path).map_err(|error| (path.clone(), error))?;
            if node == Node::Directory && (!linked || may_be_link(&name)) {
                pending.push((format!("{name}/"), path.clone()));
            }
            entries.push(Entry { name, path, node });
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

fn node_at(path: &Path) -> io::Result<Node> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_file() => Ok(Node::File(meta.len())),
        Ok(meta) if meta.is_dir() => Ok(Node::Directory),
        Ok(_) => Ok(Node::Special),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Node::Special),
        Err(error) => Err(error),
    }
}

fn may_be_link(name: &str) -> bool {
    let below_tblspc = |rest: &str| !rest.contains('/');
    name == "pg_wal" || name.strip_prefix("pg_tblspc/").is_some_and(below_tblspc)
}

#[cfg(test)]
mod tests {
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
