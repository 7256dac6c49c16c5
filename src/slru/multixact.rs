//! `pg_multixact`: for each multixact where its members start, and the members
//! (`src/backend/access/transam/multixact.c`).
//!
//! The minors of February 2026 and later store the start of the next multixact together with
//! each multixact, because readers need it. That form is kept for WAL of older minors too.

use std::path::PathBuf;

use super::pages::Pages;
use super::{PAGES_PER_SEGMENT, Slru, SlruError, Truncation};
use crate::pgdata::DataDir;
use crate::types::{BLOCK_BYTES, MultiXactId, MultiXactOffset, TransactionId};

/// `MULTIXACT_OFFSETS_PER_PAGE`.
pub(super) const OFFSETS_PER_PAGE: u32 = BLOCK_BYTES as u32 / 4;

/// Members come in groups: one byte of flags for each, then their transaction ids.
const MEMBERS_PER_GROUP: u32 = 4;
const GROUP_BYTES: u32 = MEMBERS_PER_GROUP * 5;
const GROUPS_PER_PAGE: u32 = BLOCK_BYTES as u32 / GROUP_BYTES;
/// `MULTIXACT_MEMBERS_PER_PAGE`.
pub(super) const MEMBERS_PER_PAGE: u32 = GROUPS_PER_PAGE * MEMBERS_PER_GROUP;

/// The members a TRUNCATE_ID record gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MembersCutoff {
    /// First member removed.
    pub start: MultiXactOffset,
    /// First member kept.
    pub end: MultiXactOffset,
}

#[derive(Debug)]
pub(super) struct MultiXact {
    offsets: Pages,
    members: Pages,
    /// `last_initialized_offsets_page`: the last offsets page zeroed in this run. Such records
    /// come in order, so it is the last page that exists.
    last_initialized: Option<u32>,
    /// `pre_initialized_offsets_page`: made by CREATE_ID before its own ZERO_OFF_PAGE, which must
    /// then not wipe the entry that is already there.
    pre_initialized: Option<u32>,
}

impl MultiXact {
    pub(super) fn open(
        dir: &DataDir,
        next_multi: MultiXactId,
        next_offset: MultiXactOffset,
    ) -> MultiXact {
        MultiXact {
            offsets: Pages::open(dir, Slru::MultiXactOffsets, offsets_page(next_multi)),
            members: Pages::open(dir, Slru::MultiXactMembers, members_page(next_offset)),
            last_initialized: None,
            pre_initialized: None,
        }
    }

    pub(super) fn zero_offsets_page(&mut self, page: u64) -> Result<(), SlruError> {
        let page = self.offsets.check(page)?;
        if self.pre_initialized.take() != Some(page) {
            self.offsets.zero_and_write(page)?;
            self.last_initialized = Some(page);
        }
        Ok(())
    }

    pub(super) fn zero_members_page(&mut self, page: u64) -> Result<(), SlruError> {
        let page = self.members.check(page)?;
        self.members.zero_and_write(page)
    }

    /// `RecordNewMultiXact`.
    pub(super) fn create(
        &mut self,
        id: MultiXactId,
        offset: MultiXactOffset,
        members: impl ExactSizeIterator<Item = (TransactionId, u8)>,
    ) -> Result<(), SlruError> {
        self.pre_initialized = None;
        let next = id.next();
        if offsets_page(next) != offsets_page(id) {
            self.ensure_next_page(offsets_page(id), offsets_page(next))?;
        }
        // Offset 0 means "not stored yet" and is never used.
        let end = offset.0.wrapping_add(members.len() as u32).max(1);
        self.put_offset(id, offset)?;
        self.put_offset(next, MultiXactOffset(end))?;
        for (i, (xid, status)) in members.enumerate() {
            self.put_member(offset.0.wrapping_add(i as u32), xid, status)?;
        }
        Ok(())
    }

    /// WAL of older minors makes the page of the next multixact only when that one is assigned.
    fn ensure_next_page(&mut self, page: u32, next_page: u32) -> Result<(), SlruError> {
        let missing = match self.last_initialized {
            Some(last) => last == page,
            None => !self.offsets.exists(next_page)?,
        };
        if missing {
            self.offsets.zero_and_write(next_page)?;
            self.pre_initialized = Some(next_page);
            self.last_initialized = Some(next_page);
        }
        Ok(())
    }

    /// Stores where the members of a multixact start. The usual case is that the multixact
    /// before it did so already; then the page stays clean.
    fn put_offset(&mut self, id: MultiXactId, offset: MultiXactOffset) -> Result<(), SlruError> {
        let (page, at) = (offsets_page(id), (id.0 % OFFSETS_PER_PAGE * 4) as usize);
        let value = offset.0.to_le_bytes();
        if self.offsets.page(page)?[at..at + 4] != value {
            self.offsets.page_mut(page)?[at..at + 4].copy_from_slice(&value);
        }
        Ok(())
    }

    fn put_member(&mut self, offset: u32, xid: TransactionId, status: u8) -> Result<(), SlruError> {
        let place = MemberPlace::of(MultiXactOffset(offset));
        let page = self.members.page_mut(place.page)?;
        page[place.xid..place.xid + 4].copy_from_slice(&xid.0.to_le_bytes());
        page[place.flags] = status;
        Ok(())
    }

    /// `PerformMembersTruncation` and `PerformOffsetsTruncation`.
    pub(super) fn truncate(
        &mut self,
        end_multi: MultiXactId,
        cutoff: MembersCutoff,
    ) -> Result<Truncation, SlruError> {
        let segment = |offset| members_page(offset) / PAGES_PER_SEGMENT;
        let (start, end) = (segment(cutoff.start), segment(cutoff.end));
        // From the first segment up to the last, which stays; the highest one is followed by 0.
        let goes = |segment: u32| match start <= end {
            true => (start..end).contains(&segment),
            false => segment >= start || segment < end,
        };
        let highest = Slru::MultiXactMembers.max_page() / PAGES_PER_SEGMENT;
        self.members.delete_segments(|s| s <= highest && goes(s))?;
        // One back, because the page of the first multixact kept may not be there yet.
        let kept = match end_multi {
            MultiXactId::FIRST => MultiXactId(u32::MAX),
            MultiXactId(id) => MultiXactId(id.wrapping_sub(1)),
        };
        self.offsets.truncate(offsets_page(kept))
    }

    /// `TrimMultiXact`.
    pub(super) fn trim(
        &mut self,
        next_multi: MultiXactId,
        next_offset: MultiXactOffset,
    ) -> Result<(), SlruError> {
        self.offsets.end_replay();
        self.members.end_replay();
        let (page, at) = (
            offsets_page(next_multi),
            (next_multi.0 % OFFSETS_PER_PAGE * 4) as usize,
        );
        self.offsets.set_latest(page);
        let offsets = match at {
            0 => self.offsets.zero(page)?,
            _ => self.offsets.page_mut(page)?,
        };
        offsets[at..at + 4].copy_from_slice(&next_offset.0.to_le_bytes());
        offsets[at + 4..].fill(0);

        // Flag bytes are reset whenever they are stored, so those of the current group may stay.
        // In the first group of a page nothing is trimmed, as the server does it.
        let place = MemberPlace::of(next_offset);
        self.members.set_latest(place.page);
        if place.group > 0 {
            self.members.page_mut(place.page)?[place.xid..].fill(0);
        }
        Ok(())
    }

    pub(super) fn flush(&mut self, sync: bool) -> Result<(), SlruError> {
        self.offsets.flush(sync)?;
        self.members.flush(sync)
    }

    pub(super) fn files_read_as_zeros(&self) -> Vec<PathBuf> {
        let mut paths = self.offsets.files_read_as_zeros();
        paths.extend(self.members.files_read_as_zeros());
        paths
    }
}

/// Where a member is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MemberPlace {
    page: u32,
    /// Group on the page.
    group: u32,
    /// Byte of its flags on the page.
    flags: usize,
    /// First byte of its transaction id on the page.
    xid: usize,
}

impl MemberPlace {
    fn of(offset: MultiXactOffset) -> MemberPlace {
        let group = offset.0 / MEMBERS_PER_GROUP % GROUPS_PER_PAGE;
        let (start, member) = (group * GROUP_BYTES, offset.0 % MEMBERS_PER_GROUP);
        MemberPlace {
            page: members_page(offset),
            group,
            flags: (start + member) as usize,
            xid: (start + MEMBERS_PER_GROUP + 4 * member) as usize,
        }
    }
}

fn offsets_page(id: MultiXactId) -> u32 {
    id.0 / OFFSETS_PER_PAGE
}

fn members_page(offset: MultiXactOffset) -> u32 {
    offset.0 / MEMBERS_PER_PAGE
}
