//! The WAL of an unpacked sample, from where its redo starts.

use std::path::Path;

use pgredo::pgdata::control::ControlFile;
use pgredo::sys::Kernel;
use pgredo::wal::{History, SegmentSource, WalLayout, WalReader};

/// A reader at the redo location that pg_control names.
pub(crate) fn reader(data: &Path) -> WalReader {
    let control = std::fs::read(data.join("global/pg_control")).expect("pg_control");
    let control = ControlFile::parse(&control).expect("pg_control");
    let layout = WalLayout {
        segment_bytes: control.xlog_seg_size.into(),
        system_identifier: control.system_identifier,
        format: control.format,
    };
    let history = History::single(control.check_point_copy.this_tli);
    let directories = vec![data.join("pg_wal")];
    let source = SegmentSource::new(Kernel::new(), layout, directories, history);
    WalReader::new(source, control.check_point_copy.redo)
}
