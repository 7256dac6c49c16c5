//! Touches: which pages a record changes, and what happened to them.

use smallvec::SmallVec;

use super::RmgrError;
use crate::decode::Record;
use crate::types::{BlockNumber, BlockTag};

/// What a touch does to the old bytes of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TouchKind {
    /// The page is rebuilt from nothing; the old bytes and their LSN do not matter.
    Init,
    /// The page is restored from an image in the record, whatever was there.
    Image,
    /// The old bytes are changed.
    Modify,
}

/// How the page is read, which decides what happens when it is not there
/// (`ReadBufferMode`, `src/include/storage/bufmgr.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadMode {
    /// `RBM_NORMAL`: a missing or never initialised page is skipped and remembered as missing.
    Normal,
    /// `RBM_ZERO_ON_ERROR`: the fork is extended with zeros up to the page.
    ZeroOnError,
    /// `visibilitymap_pin`: the fork is created and extended as the major extends maps, and a
    /// page of zeros is initialised.
    VisibilityMap,
}

/// Which part of the record is redone on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The block reference with this id.
    Block(u8),
    /// Visibility-map bits of a heap block, in WAL that does not register the map's page. Done
    /// whatever the LSN of the map's page says, and without stamping one.
    VmClear {
        /// The heap block.
        heap_block: BlockNumber,
        /// The bits to clear.
        bits: u8,
    },
}

/// One page that a record touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// The page.
    pub tag: BlockTag,
    /// What happens to its old bytes.
    pub kind: TouchKind,
    /// How it is read. Only Modify touches depend on it; Init and Image always extend.
    pub read: ReadMode,
    /// What is redone on it.
    pub target: Target,
}

impl Touch {
    /// The block reference that is redone. Clears of map bits belong to no resource manager:
    /// they are done before one is asked.
    pub(super) fn block_id(&self) -> u8 {
        match self.target {
            Target::Block(id) => id,
            Target::VmClear { .. } => unreachable!("{self:?} is redone for all resource managers"),
        }
    }
}

/// The touches of one record.
pub type Touches = SmallVec<[Touch; 4]>;

/// What reading a page for redo found (`XLogRedoAction`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "XLogRedoAction")]
pub enum PageState {
    /// `BLK_NEEDS_REDO`: the change is not in it yet.
    Needs,
    /// `BLK_DONE`: the page's LSN says the change is in it.
    Done,
    /// `BLK_RESTORED`: the page was just restored from the record's image.
    Restored,
}

/// What redo did to the bytes of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageChange {
    /// Nothing; the page is not dirty because of this record.
    None,
    /// Changed, and the page takes the record's LSN.
    Changed,
    /// Changed, but the page keeps its LSN.
    ChangedKeepLsn,
}

/// The outcome of redo on one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    /// What happened to the page.
    pub change: PageChange,
    /// Free space in bytes to record for this heap block in the free space map, where
    /// PostgreSQL's redo does so. It is the free space of the page as it is now.
    pub free_space: Option<usize>,
}

impl Effect {
    /// The page was left alone.
    pub const fn none() -> Effect {
        Effect {
            change: PageChange::None,
            free_space: None,
        }
    }

    /// The page changed and takes the record's LSN.
    pub const fn changed() -> Effect {
        Effect {
            change: PageChange::Changed,
            free_space: None,
        }
    }

    /// The page changed and keeps its LSN.
    pub const fn keep_lsn() -> Effect {
        Effect {
            change: PageChange::ChangedKeepLsn,
            free_space: None,
        }
    }

    /// The same, and `bytes` of free space are recorded in the map.
    pub const fn with_free_space(self, bytes: usize) -> Effect {
        Effect {
            change: self.change,
            free_space: Some(bytes),
        }
    }
}

/// What redo must know of the cluster besides the record and the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedoSettings {
    /// `XLogHintBitIsNeeded`: data checksums or wal_log_hints are on.
    pub hint_bits_are_logged: bool,
}

/// The touches that are simply the block references, in their order.
pub fn explicit_touches(record: &Record<'_>, out: &mut Touches) -> Result<(), RmgrError> {
    for block in &record.blocks {
        let kind = if block.has_image_to_apply() {
            TouchKind::Image
        } else if block.will_init {
            TouchKind::Init
        } else {
            TouchKind::Modify
        };
        out.push(Touch {
            tag: block.tag,
            kind,
            read: ReadMode::Normal,
            target: Target::Block(block.id),
        });
    }
    Ok(())
}
