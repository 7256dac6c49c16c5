//! What a record says about the new xmax of a tuple (`XLHL_*`).

use crate::page::heap_tuple::{
    HEAP_KEYS_UPDATED, HEAP_MOVED, HEAP_XMAX_BITS, HEAP_XMAX_EXCL_LOCK, HEAP_XMAX_IS_MULTI,
    HEAP_XMAX_KEYSHR_LOCK, HEAP_XMAX_LOCK_ONLY, HeapTuple,
};

const XLHL_XMAX_IS_MULTI: u8 = 0x01;
const XLHL_XMAX_LOCK_ONLY: u8 = 0x02;
const XLHL_XMAX_EXCL_LOCK: u8 = 0x04;
const XLHL_XMAX_KEYSHR_LOCK: u8 = 0x08;
const XLHL_KEYS_UPDATED: u8 = 0x10;

/// Each bit of t_infomask with the bit that stands for it in a record. A shared lock has both
/// lock bits and needs none of its own.
const INFOMASK_BITS: [(u8, u16); 4] = [
    (XLHL_XMAX_IS_MULTI, HEAP_XMAX_IS_MULTI),
    (XLHL_XMAX_LOCK_ONLY, HEAP_XMAX_LOCK_ONLY),
    (XLHL_XMAX_EXCL_LOCK, HEAP_XMAX_EXCL_LOCK),
    (XLHL_XMAX_KEYSHR_LOCK, HEAP_XMAX_KEYSHR_LOCK),
];

/// `infobits_set` of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rmgr) struct Infobits(pub(in crate::rmgr) u8);

impl Infobits {
    /// Replaces what the tuple says about its xmax. `fix_infomask_from_infobits`, together with
    /// the clearing of bits that each of its callers does first.
    pub(in crate::rmgr) fn apply(self, tuple: &mut HeapTuple<&mut [u8]>) {
        let mut infomask = tuple.infomask() & !(HEAP_XMAX_BITS | HEAP_MOVED);
        let mut infomask2 = tuple.infomask2() & !HEAP_KEYS_UPDATED;
        for (in_record, in_tuple) in INFOMASK_BITS {
            if self.0 & in_record != 0 {
                infomask |= in_tuple;
            }
        }
        if self.0 & XLHL_KEYS_UPDATED != 0 {
            infomask2 |= HEAP_KEYS_UPDATED;
        }
        tuple.set_infomask(infomask);
        tuple.set_infomask2(infomask2);
    }

    /// `out_infobits`: each name is followed by a space, the last one too.
    pub(in crate::rmgr) fn desc(self, out: &mut String) {
        let names = [
            (XLHL_XMAX_IS_MULTI, "IS_MULTI "),
            (XLHL_XMAX_LOCK_ONLY, "LOCK_ONLY "),
            (XLHL_XMAX_EXCL_LOCK, "EXCL_LOCK "),
            (XLHL_XMAX_KEYSHR_LOCK, "KEYSHR_LOCK "),
            (XLHL_KEYS_UPDATED, "KEYS_UPDATED "),
        ];
        for (bit, name) in names {
            if self.0 & bit != 0 {
                out.push_str(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// t_infomask and t_infomask2 after `infobits` are applied to these two.
    fn applied(infobits: u8, infomask: u16, infomask2: u16) -> (u16, u16) {
        let mut bytes = [0; 23];
        let mut tuple = HeapTuple::new(&mut bytes[..]).unwrap();
        tuple.set_infomask(infomask);
        tuple.set_infomask2(infomask2);
        Infobits(infobits).apply(&mut tuple);
        (tuple.infomask(), tuple.infomask2())
    }

    #[test]
    fn only_what_concerns_xmax_is_replaced() {
        assert_eq!(applied(0, 0xFFFF, 0xFFFF), (0x232F, 0xDFFF));
    }

    #[test]
    fn each_bit_has_its_place() {
        let bits = [0x01, 0x02, 0x04, 0x08, 0x10].map(|bit| applied(bit, 0, 0));
        let expected = [(0x1000, 0), (0x80, 0), (0x40, 0), (0x10, 0), (0, 0x2000)];
        assert_eq!(bits, expected);
    }

    #[test]
    fn names_end_in_a_space() {
        let mut text = String::new();
        Infobits(0x1F).desc(&mut text);
        assert_eq!(
            text,
            "IS_MULTI LOCK_ONLY EXCL_LOCK KEYSHR_LOCK KEYS_UPDATED "
        );
    }
}
