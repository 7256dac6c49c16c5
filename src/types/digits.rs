//! Numbers as text, for output by the hundred million: `format!` costs more than all the rest of
//! printing a record.

use super::Lsn;

/// Eight bytes of `'0'`, and of the distance from `'9'` to `'A'` less one.
const ZEROS: u64 = 0x3030_3030_3030_3030;
const TO_LETTER: u64 = 7;

/// From here on a number has more than eight decimal digits.
const NINE_DIGITS: u32 = 100_000_000;

/// Up to ten characters, from the left of the buffer.
struct Digits {
    buffer: [u8; 10],
    count: usize,
}

/// The eight decimal digits of a number below [`NINE_DIGITS`], the first one in the lowest byte.
/// Halves, quarters and eighths of the number are divided side by side in one register; the
/// factors are reciprocals that are exact for so few digits.
fn eight_digits(number: u32) -> u64 {
    let halves = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((halves * 10_486) >> 20) & 0x0000_007F_0000_007F;
    let quarters = hundreds | (halves - 100 * hundreds) << 16;
    let tens = ((quarters * 103) >> 10) & 0x000F_000F_000F_000F;
    tens | (quarters - 10 * tens) << 8
}

/// Bytes of zeros that a number begins with; the last digit is never one of them.
fn leading(digits: u64) -> u32 {
    (digits.trailing_zeros() / 8).min(7)
}

#[inline]
fn decimal(number: u32) -> Digits {
    let mut buffer = [0; 10];
    if number < NINE_DIGITS {
        let digits = eight_digits(number);
        let leading = leading(digits);
        let text = (digits + ZEROS) >> (8 * leading);
        buffer[..8].copy_from_slice(&text.to_le_bytes());
        let count = 8 - leading as usize;
        return Digits { buffer, count };
    }
    // One digit or two come first.
    let (high, low) = (number / NINE_DIGITS, number % NINE_DIGITS);
    let count = if high < 10 { 1 } else { 2 };
    buffer[0] = b'0' + (high / 10) as u8;
    buffer[count - 1] = b'0' + (high % 10) as u8;
    let low = eight_digits(low) + ZEROS;
    buffer[count..count + 8].copy_from_slice(&low.to_le_bytes());
    let count = count + 8;
    Digits { buffer, count }
}

/// Upper-case hexadecimal, with zeros before it up to `at_least` digits.
fn hex(number: u32, at_least: usize) -> Digits {
    let wide = u64::from(number);
    let halves = (wide | wide << 16) & 0x0000_FFFF_0000_FFFF;
    let bytes = (halves | halves << 8) & 0x00FF_00FF_00FF_00FF;
    let nibbles = (bytes | bytes << 4) & 0x0F0F_0F0F_0F0F_0F0F;
    let letters = ((nibbles + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
    let text = nibbles + ZEROS + letters * TO_LETTER;
    let count = (32 - number.leading_zeros()).div_ceil(4) as usize;
    let count = count.clamp(at_least.max(1), 8);
    let mut buffer = [0; 10];
    let left = text << (8 * (8 - count));
    buffer[..8].copy_from_slice(&left.to_be_bytes());
    Digits { buffer, count }
}

/// Appends a number.
pub fn push_decimal(out: &mut String, number: u32) {
    let digits = decimal(number);
    out.extend(
        digits.buffer[..digits.count]
            .iter()
            .map(|digit| char::from(*digit)),
    );
}

/// Appends a number in upper-case hexadecimal with zeros before it, up to `width` digits of at
/// most 8.
pub fn push_hex(out: &mut String, number: u32, width: usize) {
    let digits = hex(number, width);
    out.extend(
        digits.buffer[..digits.count]
            .iter()
            .map(|digit| char::from(*digit)),
    );
}

/// Appends an LSN, `%X/%X`.
pub fn push_lsn(out: &mut String, lsn: Lsn) {
    push_hex(out, lsn.high(), 1);
    out.push('/');
    push_hex(out, lsn.low(), 1);
}

/// Appends a number to bytes. The whole buffer is copied and cut: a copy of a known length is
/// a few instructions, one of another length a call.
#[inline]
pub fn extend_decimal(out: &mut Vec<u8>, number: u32) {
    if number < 10 {
        out.push(b'0' + number as u8);
        return;
    }
    let digits = decimal(number);
    let end = out.len() + digits.count;
    out.extend_from_slice(&digits.buffer);
    out.truncate(end);
}

/// Appends a hexadecimal number to bytes.
#[inline]
pub fn extend_hex(out: &mut Vec<u8>, number: u32, width: usize) {
    let digits = hex(number, width);
    let end = out.len() + digits.count;
    out.extend_from_slice(&digits.buffer);
    out.truncate(end);
}

/// Writes a number to the right end of a field of blanks that is wide enough for it.
pub fn fill_decimal(field: &mut [u8], mut number: u32) {
    for digit in field.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return;
        }
    }
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
                push_hex(&mut out, number, 1);
                out.push('|');
                push_hex(&mut out, number, 8);
                assert_eq!(out, format!("{number}|{number:X}|{number:08X}"));
                let mut out = b"x".to_vec();
                extend_decimal(&mut out, number);
                extend_hex(&mut out, number, 2);
                let mut field = [b' '; 10];
                fill_decimal(&mut field, number);
                out.extend(field);
                let expected = format!("x{number}{number:02X}{number:10}");
                assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        }
        let mut out = String::new();
        push_lsn(&mut out, Lsn(0x1_0000_00AF));
        assert_eq!(out, "1/AF");
    }
}
