//! Records as pg_waldump prints them (`XLogDumpDisplayRecord`,
//! `src/bin/pg_waldump/pg_waldump.c`; `XLogRecGetBlockRefInfo`,
//! `src/backend/access/rmgrdesc/xlogdesc.c`).

use std::borrow::Cow;

use super::filter::FIRST_CUSTOM_RMGR;
use crate::decode::{BlockImage, BlockRef, Compression, Record};
use crate::rmgr::{RMGRS, desc, identify};
use crate::types::digits::{push_decimal, push_hex, push_padded};
use crate::types::{BLOCK_BYTES, ForkNumber, Lsn, RelFileLocator, RmgrId};

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

/// Appends the record, line end included.
pub(super) fn push_record(record: &Record<'_>, style: BlockStyle, out: &mut String) {
    push_header(record, out);
    push_desc(record, out);
    match style {
        BlockStyle::Short => {
            for block in &record.blocks {
                push_short(block, out);
            }
            out.push('\n');
        }
        BlockStyle::Details => {
            out.push('\n');
            for block in &record.blocks {
                push_details(block, out);
            }
        }
    }
}

fn push_header(record: &Record<'_>, out: &mut String) {
    // XLogRecGetLen: the length without images.
    let bare_bytes = record.total_bytes.saturating_sub(image_bytes(record));
    out.push_str("rmgr: ");
    let before = out.len();
    out.push_str(&rmgr_name(record.rmid));
    pad_right(out, before + 11);
    out.push_str(" len (rec/tot): ");
    push_padded(out, bare_bytes, 6);
    out.push('/');
    push_padded(out, record.total_bytes, 6);
    out.push_str(", tx: ");
    push_padded(out, record.xid.0, 10);
    out.push_str(", lsn: ");
    push_wide(out, record.lsn);
    out.push_str(", prev ");
    push_wide(out, record.prev);
    out.push_str(", desc: ");
    out.push_str(&identify(record));
    out.push(' ');
}

fn pad_right(out: &mut String, upto: usize) {
    while out.len() < upto {
        out.push(' ');
    }
}

/// An LSN as the header has it, `%X/%08X`; elsewhere the low half is not padded.
fn push_wide(out: &mut String, lsn: Lsn) {
    push_hex(out, lsn.high(), 1);
    out.push('/');
    push_hex(out, lsn.low(), 8);
}

fn push_locator(out: &mut String, locator: RelFileLocator) {
    push_decimal(out, locator.spc.0);
    out.push('/');
    push_decimal(out, locator.db.0);
    out.push('/');
    push_decimal(out, locator.rel.0);
}

fn push_short(block: &BlockRef<'_>, out: &mut String) {
    let tag = block.tag;
    out.push_str(", blkref #");
    push_decimal(out, block.id.into());
    out.push_str(": rel ");
    push_locator(out, tag.locator);
    if tag.fork != ForkNumber::Main {
        out.push_str(" fork ");
        out.push_str(tag.fork.name());
    }
    out.push_str(" blk ");
    push_decimal(out, tag.block);
    if let Some(image) = block.image {
        out.push_str(" FPW");
        out.push_str(purpose(&image));
    }
}

fn push_details(block: &BlockRef<'_>, out: &mut String) {
    out.push_str("\tblkref #");
    push_decimal(out, block.id.into());
    out.push_str(": rel ");
    push_locator(out, block.tag.locator);
    out.push_str(" fork ");
    out.push_str(block.tag.fork.name());
    out.push_str(" blk ");
    push_decimal(out, block.tag.block);
    if let Some(image) = block.image {
        out.push_str(" (FPW");
        out.push_str(purpose(&image));
        out.push_str("); hole: offset: ");
        push_decimal(out, image.hole_offset.into());
        out.push_str(", length: ");
        push_decimal(out, image.hole_length.into());
        if image.compression != Compression::None {
            // Unsigned in pg_waldump too: an image that grew wraps around.
            let saved = (BLOCK_BYTES as u32)
                .wrapping_sub(image.hole_length.into())
                .wrapping_sub(image.length.into());
            out.push_str(", compression saved: ");
            push_decimal(out, saved);
            out.push_str(", method: ");
            out.push_str(image.compression.name());
        }
    }
    out.push('\n');
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

    #[test]
    fn short_form() {
        let mut out = String::new();
        push_record(&record(), BlockStyle::Short, &mut out);
        let blocks = ", blkref #0: rel 1663/5/2606 blk 4, blkref #2: rel 1663/5/2606 fork vm blk 4";
        assert_eq!(out, format!("{HEADER}{blocks}\n"));
    }

    #[test]
    fn images_in_short_form_and_in_the_length() {
        let mut record = record();
        record.blocks[0].image = Some(image(Compression::None, true));
        record.blocks[1].image = Some(image(Compression::None, false));
        record.total_bytes = 300;
        let mut out = String::new();
        push_record(&record, BlockStyle::Short, &mut out);
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
        let mut out = String::new();
        push_record(&record, BlockStyle::Details, &mut out);
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
