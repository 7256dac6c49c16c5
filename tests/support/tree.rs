//! What a directory holds, by path relative to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::entries;

/// One entry of a directory tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A directory; its entries follow.
    Directory,
    /// A regular file and its size in bytes.
    File(u64),
    /// A symbolic link, which is not followed.
    Link(PathBuf),
}

impl Entry {
    fn at(path: &Path) -> Entry {
        let metadata = path.symlink_metadata();
        let metadata = metadata.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if metadata.is_dir() {
            Entry::Directory
        } else if metadata.is_symlink() {
            Entry::Link(std::fs::read_link(path).expect("a link"))
        } else {
            assert!(
                metadata.is_file(),
                "{}: neither file nor directory",
                path.display()
            );
            Entry::File(metadata.len())
        }
    }
}

/// Everything below `root`, sorted by path, without `root` itself. Names in a data directory are
/// plain ASCII, so paths are strings.
pub fn walk(root: &Path) -> BTreeMap<String, Entry> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for path in entries(&directory) {
            let entry = Entry::at(&path);
            let relative = path
                .strip_prefix(root)
                .expect("below it")
                .to_str()
                .expect("ASCII");
            found.insert(relative.to_owned(), entry.clone());
            if entry == Entry::Directory {
                directories.push(path);
            }
        }
    }
    found
}
