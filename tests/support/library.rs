//! Recoveries through the library, in the process of the test: for damage and interruptions by
//! the thousand, and for kernels that refuse.

use std::path::Path;

use pgredo::recovery::{
    Observer, Outcome, Prepared, Recovery, RecoveryError, RecoveryOptions, RedoOrder,
};
use pgredo::redo::TablespaceMap;
use pgredo::smgr::{NblocksCache, SyncMethod};
use pgredo::sys::Kernel;

/// Counts warnings and says nothing.
#[derive(Debug, Default)]
pub struct Quiet {
    /// Warnings so far.
    pub warnings: usize,
}

impl Observer for Quiet {
    fn log(&mut self, _: &str) {}

    fn warning(&mut self, _: &str) {
        self.warnings += 1;
    }
}

/// Options for a directory; small windows and few buffers, so that pages are written all the
/// time.
pub fn options(data: &Path) -> RecoveryOptions {
    RecoveryOptions {
        data_directory: data.to_owned(),
        wal_directories: Vec::new(),
        order: RedoOrder::Page,
        jobs: 1,
        memory: 200 << 10,
        buffers: 512 << 10,
        nblocks_cache: NblocksCache::On,
        sync: SyncMethod::None,
        strict: false,
        stop_before: None,
        tablespaces: TablespaceMap::default(),
    }
}

/// Looks at the directory and reads its WAL.
pub fn prepare(kernel: &Kernel, data: &Path) -> Result<Prepared, RecoveryError> {
    Recovery::prepare(kernel, options(data), &mut Quiet::default())
}

/// Recovers the directory page by page; `None` if it needs no recovery.
pub fn recover(kernel: &Kernel, data: &Path) -> Result<Option<Outcome>, RecoveryError> {
    recover_in(RedoOrder::Page, kernel, data)
}

/// Recovers the directory in the given order.
pub fn recover_in(
    order: RedoOrder,
    kernel: &Kernel,
    data: &Path,
) -> Result<Option<Outcome>, RecoveryError> {
    let options = RecoveryOptions {
        order,
        ..options(data)
    };
    match Recovery::prepare(kernel, options, &mut Quiet::default())? {
        Prepared::NothingToDo(_) => Ok(None),
        Prepared::Ready(recovery) => Ok(Some(recovery.run(&mut Quiet::default())?)),
    }
}
