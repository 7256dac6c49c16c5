//! A window: consecutive records and all that they do.
//!
//! The loop looks at a window as a whole before it changes anything. With one record in it the
//! loop is PostgreSQL's own; with more, what later records make pointless need not be done.

use crate::decode::Record;
use crate::rmgr::{self, Change, Touch, Touches};

use super::RedoError;

/// A touch and the record it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct WindowTouch {
    /// Index of the record in the window.
    pub record: usize,
    /// The touch.
    pub touch: Touch,
}

/// A change and the record it belongs to.
#[derive(Debug)]
pub struct WindowChange<'w> {
    /// Index of the record in the window.
    pub record: usize,
    /// The change.
    pub change: Change<'w>,
}

/// Consecutive records with their touches and changes, in LSN order.
#[derive(Debug, Default)]
pub struct Window<'w> {
    records: Vec<Record<'w>>,
    touches: Vec<WindowTouch>,
    changes: Vec<WindowChange<'w>>,
    scratch: (Touches, Vec<Change<'w>>),
}

impl<'w> Window<'w> {
    /// A window without records.
    pub fn new() -> Window<'w> {
        Window::default()
    }

    /// Adds the next record.
    pub fn push(&mut self, record: Record<'w>) -> Result<(), Box<RedoError>> {
        let (touches, changes) = &mut self.scratch;
        touches.clear();
        changes.clear();
        if let Err(error) =
            rmgr::touches(&record, touches).and_then(|()| rmgr::changes(&record, changes))
        {
            return Err(RedoError::new(&record, None, error));
        }
        let index = self.records.len();
        self.touches.extend(touches.iter().map(|t| WindowTouch {
            record: index,
            touch: *t,
        }));
        self.changes
            .extend(changes.drain(..).map(|change| WindowChange {
                record: index,
                change,
            }));
        self.records.push(record);
        Ok(())
    }

    /// Takes the records out; memory is kept.
    pub fn clear(&mut self) {
        self.records.clear();
        self.touches.clear();
        self.changes.clear();
    }

    /// The records.
    pub fn records(&self) -> &[Record<'w>] {
        &self.records
    }

    /// Touches in LSN order, and within a record in PostgreSQL's.
    pub fn touches(&self) -> &[WindowTouch] {
        &self.touches
    }

    /// Changes in LSN order, and within a record in PostgreSQL's.
    pub fn changes(&self) -> &[WindowChange<'w>] {
        &self.changes
    }
}
