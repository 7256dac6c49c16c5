//! Positions in the WAL.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// A byte address in the WAL (`XLogRecPtr`), printed as PostgreSQL prints it: `0/16B3740`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[doc(alias = "XLogRecPtr")]
pub struct Lsn(pub u64);

impl Lsn {
    /// `InvalidXLogRecPtr`.
    pub const INVALID: Lsn = Lsn(0);

    /// True for every value but 0.
    pub fn is_valid(self) -> bool {
        self.0 != 0
    }

    /// The high half, as a page header stores it first.
    pub fn high(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The low half.
    pub fn low(self) -> u32 {
        self.0 as u32
    }

    /// From the two halves of a page header.
    pub fn from_halves(high: u32, low: u32) -> Lsn {
        Lsn(u64::from(high) << 32 | u64::from(low))
    }

    /// `bytes` further on; stops at the last address instead of wrapping.
    pub fn advance(self, bytes: u64) -> Lsn {
        Lsn(self.0.saturating_add(bytes))
    }

    /// Rounded up to the next multiple of 8, where records start (`MAXALIGN64`).
    pub fn align_up(self) -> Lsn {
        Lsn(self.0.saturating_add(7) & !7)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.high(), self.low())
    }
}

/// Not of the form `X/X` with two hexadecimal numbers of up to eight digits.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid LSN \"{0}\": expected two hexadecimal numbers such as 0/16B3740")]
pub struct ParseLsnError(String);

impl FromStr for Lsn {
    type Err = ParseLsnError;

    fn from_str(text: &str) -> Result<Lsn, ParseLsnError> {
        let half = |s: &str| match s.len() {
            1..=8 if s.bytes().all(|b| b.is_ascii_hexdigit()) => u32::from_str_radix(s, 16).ok(),
            _ => None,
        };
        text.split_once('/')
            .and_then(|(high, low)| Some(Lsn::from_halves(half(high)?, half(low)?)))
            .ok_or_else(|| ParseLsnError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_parses_as_postgres_does() {
        let lsn = Lsn(0x1_0000_00AF);
        assert_eq!(lsn.to_string(), "1/AF");
        assert_eq!("1/af".parse::<Lsn>().unwrap(), lsn);
        for bad in [
            "",
            "/",
            "1",
            "1/",
            "/1",
            "1/123456789",
            "+1/2",
            "1/2/3",
            "g/1",
        ] {
            assert!(bad.parse::<Lsn>().is_err(), "{bad}");
        }
    }

    #[test]
    fn aligns_up_to_eight() {
        assert_eq!(Lsn(17).align_up(), Lsn(24));
        assert_eq!(Lsn(24).align_up(), Lsn(24));
    }
}
