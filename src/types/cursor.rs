//! A forward-only little-endian reader for records and control files.

use thiserror::Error;

/// A structure ended before one of its fields.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{structure} is cut short: {field} needs {wanted} bytes at offset {at}, {left} are left")]
pub struct ShortRead {
    /// The structure being read, under PostgreSQL's name.
    pub structure: &'static str,
    /// The field that was short.
    pub field: &'static str,
    /// Offset of the field from the start of the structure, in bytes.
    pub at: usize,
    /// Bytes the field needs.
    pub wanted: usize,
    /// Bytes that were left.
    pub left: usize,
}

/// Reads fields one after another; every read names its field, so that an error does too.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    structure: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte of `bytes`, which holds a `structure`.
    pub fn new(structure: &'static str, bytes: &'a [u8]) -> Self {
        Cursor {
            structure,
            bytes,
            at: 0,
        }
    }

    /// Offset of the next byte from the start, in bytes.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Bytes not read yet.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// True when every byte was read.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The next `len` bytes.
    #[inline]
    pub fn bytes(&mut self, field: &'static str, len: usize) -> Result<&'a [u8], ShortRead> {
        if len > self.remaining() {
            return Err(ShortRead {
                structure: self.structure,
                field,
                at: self.at,
                wanted: len,
                left: self.remaining(),
            });
        }
        let taken = &self.bytes[self.at..self.at + len];
        self.at += len;
        Ok(taken)
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        let taken = &self.bytes[self.at..];
        self.at = self.bytes.len();
        taken
    }

    /// Skips `len` bytes, padding for instance.
    #[inline]
    pub fn skip(&mut self, field: &'static str, len: usize) -> Result<(), ShortRead> {
        self.bytes(field, len).map(|_| ())
    }

    #[inline]
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], ShortRead> {
        let taken = self.bytes(field, N)?;
        Ok(taken
            .try_into()
            .expect("bytes() returns exactly the length asked for"))
    }

    /// The next byte.
    #[inline]
    pub fn u8(&mut self, field: &'static str) -> Result<u8, ShortRead> {
        Ok(self.array::<1>(field)?[0])
    }

    /// The next two bytes.
    #[inline]
    pub fn u16(&mut self, field: &'static str) -> Result<u16, ShortRead> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// The next four bytes.
    #[inline]
    pub fn u32(&mut self, field: &'static str) -> Result<u32, ShortRead> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// The next four bytes, signed.
    pub fn i32(&mut self, field: &'static str) -> Result<i32, ShortRead> {
        Ok(i32::from_le_bytes(self.array(field)?))
    }

    /// The next eight bytes.
    #[inline]
    pub fn u64(&mut self, field: &'static str) -> Result<u64, ShortRead> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// The next eight bytes, signed.
    pub fn i64(&mut self, field: &'static str) -> Result<i64, ShortRead> {
        Ok(i64::from_le_bytes(self.array(field)?))
    }

    /// The next eight bytes as a double.
    pub fn f64(&mut self, field: &'static str) -> Result<f64, ShortRead> {
        Ok(f64::from_le_bytes(self.array(field)?))
    }

    /// A C `bool`: any non-zero byte is true, as it is to the server.
    pub fn bool(&mut self, field: &'static str) -> Result<bool, ShortRead> {
        Ok(self.u8(field)? != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_in_order_and_names_the_short_field() {
        let bytes = [1, 2, 0, 3, 0, 0, 0, 9];
        let mut c = Cursor::new("xl_test", &bytes);
        assert_eq!(c.u8("a").unwrap(), 1);
        assert_eq!(c.u16("b").unwrap(), 2);
        assert_eq!(c.u32("c").unwrap(), 3);
        let err = c.u64("d").unwrap_err();
        assert_eq!((err.field, err.at, err.wanted, err.left), ("d", 7, 8, 1));
        assert_eq!(c.rest(), &[9]);
        assert!(c.is_empty());
    }

    #[test]
    fn a_failed_read_consumes_nothing() {
        let mut c = Cursor::new("xl_test", &[7]);
        assert!(c.u32("x").is_err());
        assert_eq!(c.u8("y").unwrap(), 7);
    }
}
