//! Records as pg_waldump prints them (`XLogDumpDisplayRecord`,
//! `src/bin/pg_waldump/pg_waldump.c`; `XLogRecGetBlockRefInfo`,
//! `src/backend/access/rmgrdesc/xlogdesc.c`).

use std::borrow::Cow;

use super::filter::FIRST_CUSTOM_RMGR;
use crate::decode::{BlockImage, BlockRef, Compression, Record};
use crate::rmgr::{RMGRS, desc, identify};
use crate::types::digits::{extend_decimal, extend_hex, fill_decimal, push_decimal};
use crate::types::{BLOCK_BYTES, ForkNumber, Lsn, Oid, RelFileLocator, RmgrId, TransactionId};

/// How block references are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockStyle {
    /// On the line of the record.
    Short,
    /// On lines of their own, with the details of images (`-b`).
    Details,
}

/// Name of a resource manager, known or an extension's.
pub(super) fn rmgr_name(rmid: RmgrId) -> Cow<'static, str> {
    match RMGRS.get(usize::from(rmid.0)) {
        Some(rmgr) => Cow::Borrowed(rmgr.name),
        None => Cow::Owned(format!("custom{:03}", rmid.0)),
    }
}

/// Bytes of all images of a record.
pub(super) fn image_bytes(record: &Record<'_>) -> u32 {
    let images = record.blocks.iter().filter_map(|block| block.image);
    images.map(|image| u32::from(image.length)).sum()
}

/// Appends what pg_waldump prints behind the name of the record.
pub(super) fn push_desc(record: &Record<'_>, out: &mut String) {
    let before = out.len();
    if record.rmid.0 >= FIRST_CUSTOM_RMGR {
        out.push_str("rmid: ");
        push_decimal(out, record.rmid.0.into());
    } else if let Err(error) = desc(record, out) {
        // pg_waldump would print whatever lies behind the end of the record.
        out.truncate(before);
        out.push_str(&format!("({error})"));
    }
}

/// Columns of the name of a resource manager; longer ones move the rest to the right.
const NAME_COLUMNS: usize = 11;

/// What follows the name, with room for the numbers.
const LENGTHS: [u8; 52] = *b" len (rec/tot):       /      , tx:           , lsn: ";

/// Prints records; keeps its memory.
#[derive(Debug)]
pub(super) struct TextPrinter {
    style: BlockStyle,
    desc: String,
    relations: RelationNames,
    /// A record's own position, as the next record will name it.
    last: (Lsn, Vec<u8>),
    /// What follows the name, filled in for this transaction: its records often come together.
    lengths: (TransactionId, [u8; 52]),
}

impl TextPrinter {
    pub(super) fn new(style: BlockStyle) -> TextPrinter {
        TextPrinter {
            style,
            desc: String::new(),
            relations: RelationNames::default(),
            last: (Lsn::INVALID, b"0/00000000".to_vec()),
            lengths: (TransactionId::INVALID, with_xid(TransactionId::INVALID)),
        }
    }

    /// Appends the record, line end included.
    pub(super) fn push_record(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        self.push_header(record, out);
        self.desc.clear();
        push_desc(record, &mut self.desc);
        out.extend_from_slice(self.desc.as_bytes());
        match self.style {
            BlockStyle::Short => {
                for block in &record.blocks {
                    push_short(block, &mut self.relations, out);
                }
                out.push(b'\n');
            }
            BlockStyle::Details => {
                out.push(b'\n');
                for block in &record.blocks {
                    push_details(block, &mut self.relations, out);
                }
            }
        }
    }

    fn push_header(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"rmgr: ");
        let name = rmgr_name(record.rmid);
        let mut column = [b' '; NAME_COLUMNS];
        match column.get_mut(..name.len()) {
            Some(column_start) => {
                column_start.copy_from_slice(name.as_bytes());
                out.extend_from_slice(&column);
            }
            None => out.extend_from_slice(name.as_bytes()),
        }
        // XLogRecGetLen: the length without images.
        let bare_bytes = record.total_bytes.saturating_sub(image_bytes(record));
        if self.lengths.0 != record.xid {
            self.lengths = (record.xid, with_xid(record.xid));
        }
        let mut lengths = self.lengths.1;
        fill_decimal(&mut lengths[16..22], bare_bytes);
        fill_decimal(&mut lengths[23..29], record.total_bytes);
        out.extend_from_slice(&lengths);
        let (last, text) = &mut self.last;
        if *last != record.prev {
            text.clear();
            push_wide(text, record.prev);
        }
        let own = out.len();
        push_wide(out, record.lsn);
        let own = own..out.len();
        out.extend_from_slice(b", prev ");
        out.extend_from_slice(text);
        *last = record.lsn;
        text.clear();
        text.extend_from_slice(&out[own]);
        out.extend_from_slice(b", desc: ");
        out.extend_from_slice(identify(record).as_bytes());
        out.push(b' ');
    }
}

fn with_xid(xid: TransactionId) -> [u8; 52] {
    let mut lengths = LENGTHS;
    fill_decimal(&mut lengths[35..45], xid.0);
    lengths
}

/// An LSN as the header has it, `%X/%08X`; elsewhere the low half is not padded.
fn push_wide(out: &mut Vec<u8>, lsn: Lsn) {
    extend_hex(out, lsn.high(), 1);
    out.push(b'/');
    extend_hex(out, lsn.low(), 8);
}

/// Relations as they are printed, `: rel 1663/5/16384`. Most records are about few of them, and
/// three numbers cost more than a copy.
#[derive(Debug)]
struct RelationNames {
    slots: Vec<RelationName>,
}

#[derive(Debug, Clone, Copy)]
struct RelationName {
    locator: RelFileLocator,
    text: [u8; RelationNames::BYTES],
    length: usize,
}

impl RelationNames {
    const SLOTS: usize = 64;
    /// The longest: seven characters, three numbers of ten digits, two slashes.
    const BYTES: usize = 40;

    fn push(&mut self, locator: RelFileLocator, out: &mut Vec<u8>) {
        let slot = &mut self.slots[locator.rel.0 as usize % RelationNames::SLOTS];
        if slot.locator != locator {
            *slot = RelationName::new(locator);
        }
        let end = out.len() + slot.length;
        out.extend_from_slice(&slot.text);
        out.truncate(end);
    }
}

impl Default for RelationNames {
    fn default() -> RelationNames {
        let none = RelFileLocator {
            spc: Oid(0),
            db: Oid(0),
            rel: Oid(0),
        };
        RelationNames {
            slots: vec![RelationName::new(none); RelationNames::SLOTS],
        }
    }
}

impl RelationName {
    fn new(locator: RelFileLocator) -> RelationName {
        let mut name = b": rel ".to_vec();
        extend_decimal(&mut name, locator.spc.0);
        name.push(b'/');
        extend_decimal(&mut name, locator.db.0);
        name.push(b'/');
        extend_decimal(&mut name, locator.rel.0);
        let mut text = [0; RelationNames::BYTES];
        text[..name.len()].copy_from_slice(&name);
        RelationName {
            locator,
            text,
            length: name.len(),
        }
    }
}

fn push_fork(fork: ForkNumber, out: &mut Vec<u8>) {
    out.extend_from_slice(b" fork ");
    out.extend_from_slice(fork.name().as_bytes());
}

fn push_short(block: &BlockRef<'_>, relations: &mut RelationNames, out: &mut Vec<u8>) {
    out.extend_from_slice(b", blkref #");
    extend_decimal(out, block.id.into());
    relations.push(block.tag.locator, out);
    if block.tag.fork != ForkNumber::Main {
        push_fork(block.tag.fork, out);
    }
    out.extend_from_slice(b" blk ");
    extend_decimal(out, block.tag.block);
    if let Some(image) = block.image {
        out.extend_from_slice(b" FPW");
        out.extend_from_slice(purpose(&image).as_bytes());
    }
}

fn push_details(block: &BlockRef<'_>, relations: &mut RelationNames, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\tblkref #");
    extend_decimal(out, block.id.into());
    relations.push(block.tag.locator, out);
    push_fork(block.tag.fork, out);
    out.extend_from_slice(b" blk ");
    extend_decimal(out, block.tag.block);
    if let Some(image) = block.image {
        push_image(&image, out);
    }
    out.push(b'\n');
}

fn push_image(image: &BlockImage<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b" (FPW");
    out.extend_from_slice(purpose(image).as_bytes());
    out.extend_from_slice(b"); hole: offset: ");
    extend_decimal(out, image.hole_offset.into());
    out.extend_from_slice(b", length: ");
    extend_decimal(out, image.hole_length.into());
    if image.compression != Compression::None {
        // Unsigned in pg_waldump too: an image that grew wraps around.
        let saved = (BLOCK_BYTES as u32)
            .wrapping_sub(image.hole_length.into())
            .wrapping_sub(image.length.into());
        out.extend_from_slice(b", compression saved: ");
        extend_decimal(out, saved);
        out.extend_from_slice(b", method: ");
        out.extend_from_slice(image.compression.name().as_bytes());
    }
}

/// An image that redo restores needs no further word.
fn purpose(image: &BlockImage<'_>) -> &'static str {
    if image.apply {
        ""
    } else {
        " for WAL verification"
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{image, record};
    use super::*;

    const HEADER: &str = "rmgr: custom128   len (rec/tot):    150/   150, tx:        764, lsn: \
                          1/06000080, prev 1/06000048, desc: UNKNOWN (10) rmid: 128";

    fn printed(record: &Record<'_>, style: BlockStyle) -> String {
        let mut out = Vec::new();
        TextPrinter::new(style).push_record(record, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn short_form() {
        let out = printed(&record(), BlockStyle::Short);
        let blocks = ", blkref #0: rel 1663/5/2606 blk 4, blkref #2: rel 1663/5/2606 fork vm blk 4";
        assert_eq!(out, format!("{HEADER}{blocks}\n"));
    }

    #[test]
    fn images_in_short_form_and_in_the_length() {
        let mut record = record();
        record.blocks[0].image = Some(image(Compression::None, true));
        record.blocks[1].image = Some(image(Compression::None, false));
        record.total_bytes = 300;
        let out = printed(&record, BlockStyle::Short);
        assert!(out.contains("len (rec/tot):    108/   300,"), "{out}");
        assert!(out.contains(" blk 4 FPW, blkref #2"), "{out}");
        assert!(out.ends_with(" blk 4 FPW for WAL verification\n"), "{out}");
    }

    #[test]
    fn details_form() {
        let mut record = record();
        record.total_bytes = 150 + 96 + 96;
        record.blocks[0].image = Some(image(Compression::Lz4, true));
        record.blocks[1].image = Some(image(Compression::None, false));
        let out = printed(&record, BlockStyle::Details);
        let lines: Vec<&str> = out.split('\n').collect();
        assert_eq!(lines[0], HEADER.replace("/   150", "/   342"));
        assert_eq!(
            lines[1],
            "\tblkref #0: rel 1663/5/2606 fork main blk 4 (FPW); hole: offset: 60, length: 8000, \
             compression saved: 96, method: lz4"
        );
        assert_eq!(
            lines[2],
            "\tblkref #2: rel 1663/5/2606 fork vm blk 4 (FPW for WAL verification); hole: \
             offset: 60, length: 8000"
        );
        assert_eq!(lines[3], "");
    }
}
