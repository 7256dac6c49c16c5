//! Data checksums (`src/include/storage/checksum_impl.h`).

use super::{PD_CHECKSUM, Page};
use crate::types::BlockNumber;

/// Independent running values, one for each column of 32-bit words.
const LANES: usize = 32;
const PRIME: u32 = 16_777_619;

/// Start value of each lane.
const START: [u32; LANES] = [
    0x5B1F36E9, 0xB8525960, 0x02AB50AA, 0x1DE66D2A, 0x79FF467A, 0x9BB9F8A3, 0x217E7CD2, 0x83E13D2C,
    0xF8D4474F, 0xE39EB970, 0x42C6AE16, 0x993216FA, 0x7B093B5D, 0x98DAFF3C, 0xF718902A, 0x0B1C9CDB,
    0xE58F764B, 0x187636BC, 0x5D7B3BB1, 0xE73DE7DE, 0x92BEC979, 0xCCA6C0B2, 0x304A0979, 0x85AA43D4,
    0x783125BB, 0x6CA8EAA2, 0xE407EAC6, 0x4B5CFC3E, 0x9FBF8C76, 0x15CA20BE, 0xF2CA9FD3, 0x959BD756,
];

/// The checksum of `page` as block `block` of its fork, 1 to 65535. The checksum field counts as
/// zero; `block` is the number within the fork, not within the segment file.
pub fn checksum(page: &Page, block: BlockNumber) -> u16 {
    let mut lanes = START;
    for (i, row) in page.bytes().chunks_exact(4 * LANES).enumerate() {
        let mut words = [0u32; LANES];
        for (word, bytes) in words.iter_mut().zip(row.chunks_exact(4)) {
            *word = u32::from_le_bytes(bytes.try_into().expect("chunks of four"));
        }
        if i == 0 {
            // The field is the low half of the word that starts at it.
            words[PD_CHECKSUM / 4] &= 0xFFFF_0000;
        }
        mix(&mut lanes, &words);
    }
    mix(&mut lanes, &[0; LANES]);
    mix(&mut lanes, &[0; LANES]);
    let folded = lanes.iter().fold(0, |acc, lane| acc ^ lane) ^ block;
    (folded % 65535) as u16 + 1
}

/// Stores the checksum of a page that is about to be written. Pages that were never initialised
/// carry none.
pub fn stamp_checksum(page: &mut Page, block: BlockNumber) {
    if !page.is_new() {
        page.set_checksum_field(checksum(page, block));
    }
}

fn mix(lanes: &mut [u32; LANES], words: &[u32; LANES]) {
    for (lane, word) in lanes.iter_mut().zip(words) {
        let t = *lane ^ word;
        *lane = t.wrapping_mul(PRIME) ^ (t >> 17);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::BLOCK_BYTES;

    /// Values of PostgreSQL's own implementation.
    #[test]
    fn known_answers() {
        let mut counting = Page::zeroed();
        for (i, byte) in counting.bytes_mut().iter_mut().enumerate() {
            *byte = (i % 251) as u8;
        }
        assert_eq!(checksum(&Page::zeroed(), 0), 50858);
        // The field itself does not count, so the pattern there makes no difference.
        let mut blanked = counting.clone();
        blanked.set_checksum_field(0);
        assert_eq!(checksum(&counting, 0), checksum(&blanked, 0));
        assert_eq!(checksum(&counting, 0), 7648);
        assert_eq!(checksum(&counting, 7), 7649);
        assert_eq!(
            checksum(&Page::from_bytes([0xFF; BLOCK_BYTES]), 131_073),
            3611
        );
        let mut empty = Page::zeroed();
        empty.init(0);
        assert_eq!((checksum(&empty, 0), checksum(&empty, 1)), (0x6560, 0x655F));
    }
}
