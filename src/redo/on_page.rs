//! One touch on one page: what both orders of redo share.

use super::RedoErrorKind;
use crate::decode::{ImageRestorer, Record};
use crate::page::Page;
use crate::rmgr::{self, PageChange, PageState, ReadMode, RedoSettings, Target, Touch, TouchKind};

/// What became of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Touched {
    /// It must be written.
    pub(super) is_dirty: bool,
    /// It was never initialised, so the touch was skipped.
    pub(super) is_missing: bool,
    /// It was restored from an image.
    pub(super) is_restored: bool,
    /// Free space to record for it.
    pub(super) free_space: Option<usize>,
}

/// Redoes one touch on its page, which is there (`XLogReadBufferForRedoExtended`,
/// `src/backend/access/transam/xlogutils.c`). Images and inits replace whatever `page` holds.
pub(super) fn redo(
    record: &Record<'_>,
    touch: &Touch,
    page: &mut Page,
    restorer: &mut ImageRestorer,
    settings: &RedoSettings,
) -> Result<Touched, RedoErrorKind> {
    let mut touched = Touched::default();
    let state = match touch.kind {
        TouchKind::Image => {
            restore_image(record, touch, page, restorer)?;
            touched.is_restored = true;
            touched.is_dirty = true;
            PageState::Restored
        }
        TouchKind::Init => {
            page.bytes_mut().fill(0);
            PageState::Needs
        }
        TouchKind::Modify => {
            if page.is_new() {
                match touch.read {
                    ReadMode::Normal => {
                        return Ok(Touched {
                            is_missing: true,
                            ..touched
                        });
                    }
                    ReadMode::ZeroOnError => {}
                    // In memory only: it reaches the disk if a bit changes.
                    ReadMode::VisibilityMap => page.init(0),
                }
            }
            // A clear of map bits that the record did not register has no LSN to go by.
            let has_lsn = matches!(touch.target, Target::Block(_));
            let is_done = has_lsn && record.end_lsn <= page.lsn();
            if is_done {
                PageState::Done
            } else {
                PageState::Needs
            }
        }
    };
    let effect = rmgr::redo(record, touch, state, page, settings)?;
    match effect.change {
        PageChange::None => {}
        PageChange::Changed => {
            page.set_lsn(record.end_lsn);
            touched.is_dirty = true;
        }
        PageChange::ChangedKeepLsn => touched.is_dirty = true,
    }
    touched.free_space = effect.free_space;
    Ok(touched)
}

fn restore_image(
    record: &Record<'_>,
    touch: &Touch,
    page: &mut Page,
    restorer: &mut ImageRestorer,
) -> Result<(), RedoErrorKind> {
    let Target::Block(id) = touch.target else {
        unreachable!("only block references have images");
    };
    let image = record
        .block(id)
        .and_then(|block| block.image)
        .expect("the touch says so");
    restorer.restore(&image, page)?;
    // A page that was never initialised keeps its LSN of zero.
    if !page.is_new() {
        page.set_lsn(record.end_lsn);
    }
    Ok(())
}
