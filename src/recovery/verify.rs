//! Redo with the images of wal_consistency_checking as the judge, which changes nothing.

use std::collections::BTreeMap;

use super::prepare::{BATCH_BYTES, BATCH_RECORDS};
use super::run::report;
use super::{Observer, Recovery, RecoveryError};
use crate::decode::{BlockRef, Record};
use crate::redo::{Difference, PageCheck, Redo, Window, record_name};
use crate::sys::interrupted;
use crate::types::{BlockTag, Lsn, RmgrId};
use crate::wal::Batch;

/// What was compared, for one kind of record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Its name, `Heap/INSERT`.
    pub name: String,
    /// Records with images to compare.
    pub records: u64,
    /// Pages that redo made what the image shows.
    pub redone: u64,
    /// Pages that were restored from the image and left so.
    pub restored: u64,
    /// Pages that were on disk as they were after the record.
    pub ahead: u64,
    /// Pages that were not there.
    pub absent: u64,
    /// Pages of which redo made something else.
    pub differing: u64,
}

impl Checked {
    /// Adds another row.
    pub fn add(&mut self, other: &Checked) {
        self.records += other.records;
        self.redone += other.redone;
        self.restored += other.restored;
        self.ahead += other.ahead;
        self.absent += other.absent;
        self.differing += other.differing;
    }

    fn count(&mut self, check: PageCheck) {
        let counter = match check {
            PageCheck::Redone => &mut self.redone,
            PageCheck::Restored => &mut self.restored,
            PageCheck::Ahead => &mut self.ahead,
            PageCheck::Absent => &mut self.absent,
            PageCheck::Differs(_) => &mut self.differing,
        };
        *counter += 1;
    }
}

/// The first page that redo made wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FirstDifference {
    /// Start of the record.
    pub lsn: Lsn,
    /// Its name.
    pub record: String,
    /// Which of its block references.
    pub block: u8,
    /// The page.
    pub tag: BlockTag,
    /// Where in the page.
    pub difference: Difference,
}

/// What a verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verification {
    /// By resource manager and operation code.
    kinds: BTreeMap<(RmgrId, u8), Checked>,
    /// The first difference.
    pub first: Option<FirstDifference>,
    /// Records that were redone.
    pub redone_records: u64,
}

impl Verification {
    /// What was compared, by resource manager and record.
    pub fn rows(&self) -> impl Iterator<Item = &Checked> {
        self.kinds.values()
    }

    /// All of it.
    pub fn total(&self) -> Checked {
        let mut total = Checked {
            name: "Total".to_owned(),
            ..Checked::default()
        };
        self.rows().for_each(|row| total.add(row));
        total
    }

    /// Compares what the record did.
    fn check(&mut self, redo: &mut Redo, record: &Record<'_>) -> Result<(), RecoveryError> {
        let mut row = Checked::default();
        let first = &mut self.first;
        redo.check_consistency(record, &mut |block, check| {
            row.count(check);
            if let PageCheck::Differs(difference) = check
                && first.is_none()
            {
                *first = Some(first_difference(record, block, difference));
            }
        })?;
        if row != Checked::default() {
            row.records = 1;
            let key = (record.rmid, record.rmgr_info());
            let sum = self.kinds.entry(key).or_insert_with(|| Checked {
                name: record_name(record),
                ..Checked::default()
            });
            sum.add(&row);
        }
        Ok(())
    }
}

fn first_difference(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    difference: Difference,
) -> FirstDifference {
    FirstDifference {
        lsn: record.lsn,
        record: record_name(record),
        block: block.id,
        tag: block.tag,
        difference,
    }
}

impl Recovery {
    /// Redoes all records in memory, and compares pages with images wherever a record has them
    /// for that.
    pub fn verify(&self, observer: &mut dyn Observer) -> Result<Verification, RecoveryError> {
        let options = self.redo_options();
        let dir = self.dir.clone();
        let mut redo = Redo::start_overlay(dir, &self.control, &self.checkpoint, options);
        let mut found = Verification::default();
        let mut reader = self.reader();
        let mut batch = Batch::new();
        loop {
            reader.fill(&mut batch, BATCH_RECORDS, BATCH_BYTES)?;
            let mut window = Window::new();
            for raw in batch.records() {
                window.clear();
                window.push(self.decode(raw)?)?;
                redo.apply(&window)?;
                found.check(&mut redo, &window.records()[0])?;
            }
            report(&mut redo, observer);
            observer.progress(reader.position());
            if batch.end().is_some() {
                found.redone_records = redo.stats().records;
                return Ok(found);
            }
            if interrupted() {
                return Err(RecoveryError::Interrupted(reader.position()));
            }
        }
    }
}
