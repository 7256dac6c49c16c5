//! References to pages that are not there (`src/backend/access/transam/xlogutils.c`).
//!
//! They are legal if the relation is dropped or truncated, or its database dropped, later in the
//! WAL. What is left at the end is damage that crash recovery forgets silently; here it is
//! reported.

use std::collections::BTreeMap;

use crate::types::{BlockNumber, BlockTag, ForkNumber, Lsn, Oid, RelFileLocator};

/// A reference to a missing page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingPage {
    /// The record that was to change it first.
    pub lsn: Lsn,
    /// The block is there, but was never initialised.
    pub is_zero: bool,
}

/// All references to missing pages that nothing has explained yet.
#[derive(Debug, Clone, Default)]
pub struct MissingPages {
    pages: BTreeMap<BlockTag, MissingPage>,
}

impl MissingPages {
    /// `log_invalid_page`: remembers the first reference to each page.
    pub fn add(&mut self, tag: BlockTag, page: MissingPage) {
        self.pages.entry(tag).or_insert(page);
    }

    /// True if a reference to the page is left.
    pub fn contains(&self, tag: BlockTag) -> bool {
        self.pages.contains_key(&tag)
    }

    /// `XLogTruncateRelation`: blocks from `first` on of one fork are explained.
    pub fn forget_from(&mut self, locator: RelFileLocator, fork: ForkNumber, first: BlockNumber) {
        if self.pages.is_empty() {
            return;
        }
        let explained =
            |tag: &BlockTag| tag.locator == locator && tag.fork == fork && tag.block >= first;
        self.pages.retain(|tag, _| !explained(tag));
    }

    /// `XLogDropRelation`: all forks of a relation are explained.
    pub fn forget_relation(&mut self, locator: RelFileLocator) {
        for fork in ForkNumber::ALL {
            self.forget_from(locator, fork, 0);
        }
    }

    /// `XLogDropDatabase`.
    pub fn forget_database(&mut self, db: Oid) {
        self.pages.retain(|tag, _| tag.locator.db != db);
    }

    /// Number of references left.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The references left, in order of their pages.
    pub fn iter(&self) -> impl Iterator<Item = (&BlockTag, &MissingPage)> {
        self.pages.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_and_truncates_explain() {
        let locator = |rel| RelFileLocator {
            spc: Oid(1663),
            db: Oid(5),
            rel: Oid(rel),
        };
        let tag = |rel, fork, block| BlockTag {
            locator: locator(rel),
            fork,
            block,
        };
        let page = MissingPage {
            lsn: Lsn(8),
            is_zero: false,
        };
        let mut missing = MissingPages::default();
        for block in [1, 5, 9] {
            missing.add(tag(10, ForkNumber::Main, block), page);
        }
        missing.add(tag(10, ForkNumber::Vm, 7), page);
        missing.add(tag(11, ForkNumber::Main, 0), page);
        missing.forget_from(locator(10), ForkNumber::Main, 5);
        assert_eq!(missing.len(), 3);
        let is_left = |block| missing.contains(tag(10, ForkNumber::Main, block));
        assert!(is_left(1) && !is_left(5));
        missing.forget_relation(locator(10));
        assert_eq!(missing.len(), 1);
        missing.forget_database(Oid(6));
        assert_eq!(missing.len(), 1);
        missing.forget_database(Oid(5));
        assert!(missing.is_empty());
    }
}
