//! Page images into files (`--save-fullpage`), as pg_waldump does since PostgreSQL 16
//! (`XLogRecordSaveFPWs`).

use std::path::PathBuf;

use super::super::error::CliError;
use crate::decode::{BlockRef, ImageRestorer, Record};
use crate::page::Page;
use crate::sys::{Create, Kernel};
use crate::types::TimeLineId;

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o644;

/// Saves images.
#[derive(Debug)]
pub(super) struct Saver {
    kernel: Kernel,
    directory: PathBuf,
    tli: TimeLineId,
    restorer: ImageRestorer,
}

impl Saver {
    /// Makes the directory, unless it is there and empty.
    pub(super) fn new(directory: PathBuf, tli: TimeLineId) -> Result<Saver, CliError> {
        let kernel = Kernel::new();
        let missing: Vec<PathBuf> = {
            let is_missing = |path: &&std::path::Path| {
                !path.as_os_str().is_empty() && !kernel.exists(path).unwrap_or(true)
            };
            let ancestors = directory.ancestors().take_while(is_missing);
            ancestors.map(PathBuf::from).collect()
        };
        for path in missing.iter().rev() {
            kernel.mkdir(path, DIRECTORY_MODE)?;
        }
        if !kernel.read_dir(&directory)?.is_empty() {
            let text = format!(
                "directory \"{}\" exists but is not empty",
                directory.display()
            );
            return Err(CliError::new(text));
        }
        Ok(Saver {
            kernel,
            directory,
            tli,
            restorer: ImageRestorer::default(),
        })
    }

    /// One file for each image of the record, whether redo would restore it or not.
    pub(super) fn save(&mut self, record: &Record<'_>) -> Result<(), CliError> {
        for block in &record.blocks {
            let Some(image) = &block.image else {
                continue;
            };
            let mut page = Page::zeroed();
            self.restorer.restore(image, &mut page).map_err(|error| {
                CliError::new(format!(
                    "could not restore image at {}, block {}: {error}",
                    record.lsn, block.id
                ))
            })?;
            let path = self.directory.join(self.file_name(record, block));
            let file = self.kernel.create(&path, Create::Truncate, FILE_MODE)?;
            file.write_at(page.bytes(), 0)?;
        }
        Ok(())
    }

    fn file_name(&self, record: &Record<'_>, block: &BlockRef<'_>) -> String {
        let (lsn, tag, locator) = (record.lsn, block.tag, block.tag.locator);
        format!(
            "{:08X}-{:08X}-{:08X}.{}.{}.{}.{}_{}",
            self.tli.0,
            lsn.high(),
            lsn.low(),
            locator.spc,
            locator.db,
            locator.rel,
            tag.block,
            tag.fork.name()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{image, record};
    use super::*;
    use crate::decode::Compression;

    #[test]
    fn a_file_has_the_page_with_its_hole() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("a/b");
        let mut saver = Saver::new(directory.clone(), TimeLineId(3)).unwrap();
        let mut record = record();
        let mut stored = image(Compression::None, true);
        stored.length = 192;
        stored.bytes = &[7; 192];
        record.blocks[1].image = Some(stored);
        saver.save(&record).unwrap();

        let name = "00000003-00000001-06000080.1663.5.2606.4_vm";
        let page = std::fs::read(directory.join(name)).unwrap();
        let mut expected = vec![7; 8192];
        expected[60..8060].fill(0);
        assert_eq!(page, expected);
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
        assert!(Saver::new(directory, TimeLineId(3)).is_err());
    }
}
