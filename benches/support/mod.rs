//! What the benches share: the crash images of `wal-samples`, unpacked.

use std::fs::File;
use std::path::{Path, PathBuf};

/// Unpacks the crash image of a sample into a directory; the data directory in it.
pub(crate) fn unpack(sample: &str, into: &Path) -> PathBuf {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("wal-samples")
        .join(sample)
        .join("crash.tar.zst");
    let file = File::open(&archive).unwrap_or_else(|error| panic!("{archive:?}: {error}"));
    let plain = zstd::Decoder::new(file).expect("a decoder");
    tar::Archive::new(plain)
        .unpack(into)
        .unwrap_or_else(|error| panic!("{archive:?}: {error}"));
    into.join("data")
}
