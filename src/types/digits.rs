//! Numbers as text, for output by the hundred million: `format!` costs more than all the rest of
//! printing a record.

use super::Lsn;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Enough for the longest `u32` in either base.
const MOST_DIGITS: usize = 10;

/// The digits of a number, right-aligned in a buffer of blanks.
struct Digits {
    buffer: [u8; MOST_DIGITS],
    start: usize,
}

impl Digits {
    fn decimal(mut number: u32) -> Digits {
        let mut digits = Digits {
            buffer: [b' '; MOST_DIGITS],
            start: MOST_DIGITS,
        };
        loop {
            digits.put(b'0' + (number % 10) as u8);
            number /= 10;
            if number == 0 {
                return digits;
            }
        }
    }

    fn hex(mut number: u32, at_least: usize) -> Digits {
        let mut digits = Digits {
            buffer: [b' '; MOST_DIGITS],
            start: MOST_DIGITS,
        };
        while number != 0 || MOST_DIGITS - digits.start < at_least {
            digits.put(HEX[(number & 0xF) as usize]);
            number >>= 4;
        }
        digits
    }

    fn put(&mut self, digit: u8) {
        self.start -= 1;
        self.buffer[self.start] = digit;
    }

    /// The digits, and blanks before them up to `width`.
    fn text(&self, width: usize) -> &str {
        let start = self.start.min(MOST_DIGITS - width.min(MOST_DIGITS));
        std::str::from_utf8(&self.buffer[start..]).expect("digits and blanks")
    }
}

/// Appends a number.
pub fn push_decimal(out: &mut String, number: u32) {
    out.push_str(Digits::decimal(number).text(0));
}

/// Appends a number with blanks before it, up to `width` columns of at most 10.
pub fn push_padded(out: &mut String, number: u32, width: usize) {
    out.push_str(Digits::decimal(number).text(width));
}

/// Appends a number in upper-case hexadecimal with zeros before it, up to `width` digits of at
/// most 8.
pub fn push_hex(out: &mut String, number: u32, width: usize) {
    out.push_str(Digits::hex(number, width).text(0));
}

/// Appends an LSN, `%X/%X`.
pub fn push_lsn(out: &mut String, lsn: Lsn) {
    push_hex(out, lsn.high(), 1);
    out.push('/');
    push_hex(out, lsn.low(), 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agree_with_format() {
        let mut seed = 1u32;
        for shift in 0..32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            for number in [seed >> shift, u32::MAX >> shift, 1 << shift, 0] {
                let mut out = String::new();
                push_decimal(&mut out, number);
                out.push('|');
                push_padded(&mut out, number, 6);
                out.push('|');
                push_padded(&mut out, number, 10);
                out.push('|');
                push_hex(&mut out, number, 1);
                out.push('|');
                push_hex(&mut out, number, 8);
                let expected = format!("{number}|{number:6}|{number:10}|{number:X}|{number:08X}");
                assert_eq!(out, expected);
            }
        }
        let mut out = String::new();
        push_lsn(&mut out, Lsn(0x1_0000_00AF));
        assert_eq!(out, "1/AF");
    }
}
