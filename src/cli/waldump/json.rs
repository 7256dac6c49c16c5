//! Records as JSON, one object a line. `--help` names the fields. Put together by hand: a
//! serializer would cost more than all the rest.

use super::text::{image_bytes, push_desc, rmgr_name};
use crate::decode::{BlockImage, BlockRef, Record};
use crate::rmgr::identify;
use crate::types::Lsn;
use crate::types::digits::{push_decimal, push_lsn};

/// Prints objects; keeps its memory.
#[derive(Debug, Default)]
pub(super) struct JsonPrinter {
    line: String,
    desc: String,
}

impl JsonPrinter {
    /// Appends the record, line end included.
    pub(super) fn push_record(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        self.line.clear();
        push_object(record, &mut self.line);
        self.desc.clear();
        push_desc(record, &mut self.desc);
        self.line.push_str(",\"desc\":\"");
        push_escaped(&self.desc, &mut self.line);
        self.line.push_str("\"}\n");
        out.extend_from_slice(self.line.as_bytes());
    }
}

/// All but the description, which comes last, and the end.
fn push_object(record: &Record<'_>, out: &mut String) {
    push_lsn_field("{\"lsn\":\"", record.lsn, out);
    push_lsn_field(",\"end_lsn\":\"", record.end_lsn, out);
    push_lsn_field(",\"prev\":\"", record.prev, out);
    out.push_str(",\"rmgr\":\"");
    out.push_str(&rmgr_name(record.rmid));
    push_field("\",\"rmid\":", record.rmid.0.into(), out);
    out.push_str(",\"name\":\"");
    out.push_str(&identify(record));
    push_field("\",\"info\":", record.info.into(), out);
    push_field(",\"xid\":", record.xid.0, out);
    push_field(",\"total_bytes\":", record.total_bytes, out);
    let main_data_bytes = record.main_data.len() as u32;
    push_field(",\"main_data_bytes\":", main_data_bytes, out);
    push_field(",\"fpi_bytes\":", image_bytes(record), out);
    out.push_str(",\"blocks\":[");
    for (index, block) in record.blocks.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        push_block(block, out);
    }
    out.push(']');
}

fn push_field(name: &str, number: u32, out: &mut String) {
    out.push_str(name);
    push_decimal(out, number);
}

fn push_lsn_field(name: &str, lsn: Lsn, out: &mut String) {
    out.push_str(name);
    push_lsn(out, lsn);
    out.push('"');
}

fn push_block(block: &BlockRef<'_>, out: &mut String) {
    let locator = block.tag.locator;
    push_field("{\"id\":", block.id.into(), out);
    push_field(",\"spc\":", locator.spc.0, out);
    push_field(",\"db\":", locator.db.0, out);
    push_field(",\"rel\":", locator.rel.0, out);
    out.push_str(",\"fork\":\"");
    out.push_str(block.tag.fork.name());
    push_field("\",\"blk\":", block.tag.block, out);
    if let Some(image) = &block.image {
        push_image(image, out);
    }
    push_field(",\"data_bytes\":", block.data.len() as u32, out);
    out.push('}');
}

fn push_image(image: &BlockImage<'_>, out: &mut String) {
    push_field(",\"fpw\":{\"hole_offset\":", image.hole_offset.into(), out);
    push_field(",\"hole_length\":", image.hole_length.into(), out);
    out.push_str(",\"compression\":\"");
    out.push_str(image.compression.name());
    out.push_str(match image.apply {
        true => "\",\"apply\":true",
        false => "\",\"apply\":false",
    });
    push_field(",\"bytes\":", image.length.into(), out);
    out.push('}');
}

/// Names in WAL may hold anything.
fn push_escaped(text: &str, out: &mut String) {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        out.push_str(text);
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{image, record};
    use super::*;
    use crate::decode::Compression;

    #[test]
    fn every_field_is_there_and_it_is_json() {
        let mut record = record();
        record.total_bytes += 96;
        record.blocks[1].image = Some(image(Compression::Pglz, false));
        let mut out = Vec::new();
        JsonPrinter::default().push_record(&record, &mut out);
        let out = String::from_utf8(out).unwrap();
        assert!(out.ends_with("}\n"));
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        let block = |id, fork: &str| {
            serde_json::json!({
                "id": id, "spc": 1663, "db": 5, "rel": 2606, "fork": fork, "blk": 4,
                "data_bytes": 0,
            })
        };
        let mut with_image = block(2, "vm");
        with_image["fpw"] = serde_json::json!({
            "hole_offset": 60, "hole_length": 8000, "compression": "pglz", "apply": false,
            "bytes": 96,
        });
        let expected = serde_json::json!({
            "lsn": "1/6000080", "end_lsn": "1/6000118", "prev": "1/6000048",
            "rmgr": "custom128", "rmid": 128, "name": "UNKNOWN (10)", "info": 16, "xid": 764,
            "total_bytes": 246, "main_data_bytes": 0, "fpi_bytes": 96,
            "blocks": [block(0, "main"), with_image],
            "desc": "rmid: 128",
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn text_is_escaped() {
        let text = "a\"b\\c\nd\u{1}e\u{e4}";
        let mut out = String::from("\"");
        push_escaped(text, &mut out);
        out.push('"');
        assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
    }
}
