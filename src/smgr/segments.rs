//! The open segment files of all forks, no more of them at once than the process may have.

use std::collections::VecDeque;

use super::ForkId;
use crate::pgdata::DataDir;
use crate::sys::{Create, File, SysResult, found};
use crate::types::{ForkNumber, RelFileLocator};

/// Files kept open. The usual limit of a process is 1024; the rest is for WAL, SLRUs and maps.
const MAX_OPEN_FILES: usize = 900;

/// A segment of a fork.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentKey {
    pub(super) fork: ForkId,
    pub(super) locator: RelFileLocator,
    pub(super) number: ForkNumber,
    pub(super) segment: u32,
}

/// Open files, in the order they were opened.
#[derive(Debug)]
pub(super) struct OpenFiles {
    /// By fork, then by segment.
    files: Vec<Vec<Option<File>>>,
    order: VecDeque<(ForkId, u32)>,
    open: usize,
    access: FileAccess,
}

/// How files are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileAccess {
    ReadWrite,
    ReadOnly,
}

impl OpenFiles {
    pub(super) fn new(access: FileAccess) -> OpenFiles {
        OpenFiles {
            files: Vec::new(),
            order: VecDeque::new(),
            open: 0,
            access,
        }
    }

    fn slot(&mut self, fork: ForkId, segment: u32) -> &mut Option<File> {
        let fork = fork.index();
        if self.files.len() <= fork {
            self.files.resize_with(fork + 1, Vec::new);
        }
        let segments = &mut self.files[fork];
        let segment = segment as usize;
        if segments.len() <= segment {
            segments.resize_with(segment + 1, || None);
        }
        &mut segments[segment]
    }

    /// True if a file is open for the segment.
    pub(super) fn is_open(&self, fork: ForkId, segment: u32) -> bool {
        self.peek(fork, segment).is_some()
    }

    fn peek(&self, fork: ForkId, segment: u32) -> Option<&File> {
        self.files
            .get(fork.index())?
            .get(segment as usize)?
            .as_ref()
    }

    fn keep(&mut self, key: SegmentKey, file: File) {
        while self.open >= MAX_OPEN_FILES {
            let Some((fork, segment)) = self.order.pop_front() else {
                break;
            };
            if self.slot(fork, segment).take().is_some() {
                self.open -= 1;
            }
        }
        *self.slot(key.fork, key.segment) = Some(file);
        self.order.push_back((key.fork, key.segment));
        self.open += 1;
    }

    /// The file of a segment, opened if it is there.
    pub(super) fn get(&mut self, dir: &DataDir, key: SegmentKey) -> SysResult<Option<&File>> {
        if !self.is_open(key.fork, key.segment) {
            let path = dir.relation_path(key.locator, key.number, key.segment);
            let opened = match self.access {
                FileAccess::ReadWrite => dir.kernel().open_write(&path),
                FileAccess::ReadOnly => dir.kernel().open_read(&path),
            };
            match found(opened)? {
                Some(file) => self.keep(key, file),
                None => return Ok(None),
            }
        }
        Ok(self.peek(key.fork, key.segment))
    }

    /// The file of a segment, made if it is missing. The second value says whether it was made.
    pub(super) fn get_or_create(
        &mut self,
        dir: &DataDir,
        key: SegmentKey,
    ) -> SysResult<(&File, bool)> {
        let mut created = false;
        if !self.is_open(key.fork, key.segment) {
            let path = dir.relation_path(key.locator, key.number, key.segment);
            let file = match found(dir.kernel().open_write(&path))? {
                Some(file) => file,
                None => {
                    created = true;
                    dir.kernel()
                        .create(&path, Create::IfMissing, dir.file_mode())?
                }
            };
            self.keep(key, file);
        }
        let file = self
            .peek(key.fork, key.segment)
            .expect("the file was just opened");
        Ok((file, created))
    }

    /// Closes all segments of a fork.
    pub(super) fn close(&mut self, fork: ForkId) {
        if let Some(segments) = self.files.get_mut(fork.index()) {
            let open = segments.iter().filter(|file| file.is_some()).count();
            segments.clear();
            self.open -= open;
            // Entries of closed files in `order` are skipped when their turn comes.
        }
        if self.order.len() > 4 * MAX_OPEN_FILES {
            let files = &self.files;
            self.order.retain(|(fork, segment)| {
                files
                    .get(fork.index())
                    .and_then(|f| f.get(*segment as usize))
                    .is_some_and(Option::is_some)
            });
        }
    }
}
