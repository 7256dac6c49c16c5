//! Kinds of fields that several resource managers share.

use std::fmt::{self, Write};
use std::marker::PhantomData;

use super::RmgrError;
use crate::types::{Cursor, Oid, RelFileLocator};

/// A C `int` that counts; a negative one is a contradiction that PostgreSQL never writes.
pub(super) fn count(c: &mut Cursor<'_>, field: &'static str) -> Result<usize, RmgrError> {
    let n = c.i32(field)?;
    usize::try_from(n).map_err(|_| RmgrError::corrupt(format!("{field} is negative: {n}")))
}

/// `count` elements of `element_bytes` each, as bytes for one of the list views.
pub(super) fn elements<'w>(
    c: &mut Cursor<'w>,
    field: &'static str,
    count: usize,
    element_bytes: usize,
) -> Result<&'w [u8], RmgrError> {
    Ok(c.bytes(field, count.saturating_mul(element_bytes))?)
}

/// A count and, directly behind it, that many elements.
pub(super) fn counted<'w>(
    c: &mut Cursor<'w>,
    count_field: &'static str,
    field: &'static str,
    element_bytes: usize,
) -> Result<&'w [u8], RmgrError> {
    let count = count(c, count_field)?;
    elements(c, field, count, element_bytes)
}

/// What an [`Array`] is made of.
pub(super) trait Element: Sized {
    /// Bytes of one element.
    const BYTES: usize;

    /// One element from exactly [`Element::BYTES`] bytes.
    fn from_bytes(bytes: &[u8]) -> Self;
}

/// A view of elements inside a record, read one by one when asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Array<'w, T> {
    bytes: &'w [u8],
    element: PhantomData<T>,
}

impl<T> Default for Array<'_, T> {
    fn default() -> Self {
        Array {
            bytes: &[],
            element: PhantomData,
        }
    }
}

impl<'w, T: Element> Array<'w, T> {
    /// A view of whole elements; a rest that is shorter than one is never looked at.
    pub(super) fn new(bytes: &'w [u8]) -> Self {
        Array {
            bytes,
            element: PhantomData,
        }
    }

    /// Reads a count and, directly behind it, that many elements.
    pub(super) fn read(
        c: &mut Cursor<'w>,
        count_field: &'static str,
        field: &'static str,
    ) -> Result<Self, RmgrError> {
        Ok(Array::new(counted(c, count_field, field, T::BYTES)?))
    }

    /// True for an array without elements.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The elements in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = T> + use<'w, T> {
        self.bytes.chunks_exact(T::BYTES).map(T::from_bytes)
    }
}

impl Element for RelFileLocator {
    const BYTES: usize = 12;

    fn from_bytes(bytes: &[u8]) -> RelFileLocator {
        RelFileLocator {
            spc: Oid(word(bytes, 0)),
            db: Oid(word(bytes, 4)),
            rel: Oid(word(bytes, 8)),
        }
    }
}

/// The 32-bit number at offset `at` of an element.
pub(super) fn word(element: &[u8], at: usize) -> u32 {
    let bytes = element[at..at + 4].try_into();
    u32::from_le_bytes(bytes.expect("four bytes are four bytes"))
}

/// The number of an SLRU page, a C `int`.
pub(super) fn slru_page(c: &mut Cursor<'_>) -> Result<u64, RmgrError> {
    let page = c.i32("pageno")?;
    u64::try_from(page).map_err(|_| RmgrError::corrupt(format!("SLRU page {page} is negative")))
}

/// A string up to its NUL, which is consumed and not returned.
pub(super) fn c_string<'w>(c: &mut Cursor<'w>, field: &'static str) -> Result<&'w [u8], RmgrError> {
    let rest = c.clone().rest();
    match rest.iter().position(|&b| b == 0) {
        Some(len) => {
            c.skip(field, len + 1)?;
            Ok(&rest[..len])
        }
        None => Err(RmgrError::corrupt(format!("{field} does not end"))),
    }
}

/// A `RelFileNode` as it is stored: tablespace, database, relation.
pub(super) fn locator(c: &mut Cursor<'_>) -> Result<RelFileLocator, RmgrError> {
    let bytes = c.bytes("rnode", RelFileLocator::BYTES)?;
    Ok(RelFileLocator::from_bytes(bytes))
}

/// Appends to a description.
pub(super) fn append(out: &mut String, text: fmt::Arguments<'_>) {
    out.write_fmt(text)
        .expect("writing to a String does not fail");
}
