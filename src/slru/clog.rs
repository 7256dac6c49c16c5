//! `pg_xact`: two bits for each transaction (`src/backend/access/transam/clog.c`).

use std::path::PathBuf;

use super::pages::Pages;
use super::{Slru, SlruError, Truncation};
use crate::pgdata::DataDir;
use crate::types::{BLOCK_BYTES, TransactionId};

/// `CLOG_XACTS_PER_BYTE`.
const XIDS_PER_BYTE: u32 = 4;
/// `CLOG_XACTS_PER_PAGE`.
pub(super) const XIDS_PER_PAGE: u32 = BLOCK_BYTES as u32 * XIDS_PER_BYTE;

/// The two bits of a transaction (`XidStatus`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum XidState {
    /// `TRANSACTION_STATUS_IN_PROGRESS`, or never seen.
    InProgress = 0,
    /// `TRANSACTION_STATUS_COMMITTED`.
    Committed = 1,
    /// `TRANSACTION_STATUS_ABORTED`.
    Aborted = 2,
    /// `TRANSACTION_STATUS_SUB_COMMITTED`: its parent decides.
    SubCommitted = 3,
}

impl XidState {
    fn from_bits(bits: u8) -> XidState {
        match bits & 3 {
            0 => XidState::InProgress,
            1 => XidState::Committed,
            2 => XidState::Aborted,
            _ => XidState::SubCommitted,
        }
    }

    /// The transaction has ended.
    pub fn is_finished(self) -> bool {
        matches!(self, XidState::Committed | XidState::Aborted)
    }
}

#[derive(Debug)]
pub(super) struct Clog {
    pages: Pages,
}

impl Clog {
    pub(super) fn open(dir: &DataDir, next_xid: TransactionId) -> Clog {
        Clog {
            pages: Pages::open(dir, Slru::Clog, page_of(next_xid)),
        }
    }

    /// The server first marks subtransactions on other pages as sub-committed, so that readers
    /// never see half a commit. Nobody reads here: only the final state is stored.
    pub(super) fn set_tree_state(
        &mut self,
        xid: TransactionId,
        subxids: impl Iterator<Item = TransactionId>,
        state: XidState,
    ) -> Result<(), SlruError> {
        for xid in std::iter::once(xid).chain(subxids) {
            let (byte, shift) = place_of(xid);
            let byte = &mut self.pages.page_mut(page_of(xid))?[byte];
            *byte = *byte & !(3 << shift) | (state as u8) << shift;
        }
        Ok(())
    }

    pub(super) fn state(&mut self, xid: TransactionId) -> Result<XidState, SlruError> {
        let (byte, shift) = place_of(xid);
        Ok(XidState::from_bits(
            self.pages.page(page_of(xid))?[byte] >> shift,
        ))
    }

    pub(super) fn zero_page(&mut self, page: u64) -> Result<(), SlruError> {
        let page = self.pages.check(page)?;
        self.pages.zero_and_write(page)
    }

    pub(super) fn truncate(&mut self, page: u64) -> Result<Truncation, SlruError> {
        let cutoff = self.pages.check(page)?;
        self.pages.truncate(cutoff)
    }

    /// `TrimCLOG`: ids not assigned yet are in progress. If `next_xid` is the first of its page,
    /// that page is likely not there yet, and will be zeroed when it is made.
    pub(super) fn trim(&mut self, next_xid: TransactionId) -> Result<(), SlruError> {
        self.pages.end_replay();
        if next_xid.0.is_multiple_of(XIDS_PER_PAGE) {
            return Ok(());
        }
        let (byte, shift) = place_of(next_xid);
        let page = self.pages.page_mut(page_of(next_xid))?;
        page[byte] &= (1 << shift) - 1;
        page[byte + 1..].fill(0);
        Ok(())
    }

    pub(super) fn flush(&mut self, sync: bool) -> Result<(), SlruError> {
        self.pages.flush(sync)
    }

    pub(super) fn files_read_as_zeros(&self) -> Vec<PathBuf> {
        self.pages.files_read_as_zeros()
    }
}

fn page_of(xid: TransactionId) -> u32 {
    xid.0 / XIDS_PER_PAGE
}

/// Byte on the page, and the shift of the two bits in it.
fn place_of(xid: TransactionId) -> (usize, u32) {
    let index = xid.0 % XIDS_PER_PAGE;
    (
        (index / XIDS_PER_BYTE) as usize,
        2 * (index % XIDS_PER_BYTE),
    )
}
