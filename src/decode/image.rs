//! Page images: with a hole, compressed or not (`RestoreBlockImage`,
//! `src/backend/access/transam/xlogreader.c`).

use thiserror::Error;

use crate::page::Page;
use crate::types::BLOCK_BYTES;

/// How an image is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// PostgreSQL's own LZ method.
    Pglz,
    /// LZ4, raw block.
    Lz4,
    /// Zstandard, one frame.
    Zstd,
}

impl Compression {
    /// As pg_waldump names it.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Pglz => "pglz",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }
}

/// A page image in a record (`XLogRecordBlockImageHeader` and its bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockImage<'w> {
    /// Bytes in the record.
    pub length: u16,
    /// Where zeros were left out, from the start of the page.
    pub hole_offset: u16,
    /// How many were left out.
    pub hole_length: u16,
    /// The flag byte as written.
    pub info: u8,
    /// Redo must restore it; otherwise it is there to be compared.
    pub apply: bool,
    /// How `bytes` are compressed.
    pub compression: Compression,
    /// The image without the hole, as stored.
    pub bytes: &'w [u8],
}

/// An image that does not unpack to a page.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ImageError {
    /// The decompressor refused, or the result has another length.
    #[error("could not decompress page image compressed with {}", .0.name())]
    Decompress(Compression),
    /// Lengths that do not add up to a page.
    #[error("page image of {bytes} bytes with a hole of {hole} bytes is not a page")]
    Length {
        /// Bytes of the image.
        bytes: usize,
        /// Bytes of the hole.
        hole: usize,
    },
}

/// Unpacks images. Holds the decompressor's state, which is costly to make anew.
#[derive(Default)]
pub struct ImageRestorer {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl std::fmt::Debug for ImageRestorer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ImageRestorer")
    }
}

impl ImageRestorer {
    /// Rebuilds the page: the bytes before the hole, zeros, the bytes after it. The page is
    /// unspecified after an error.
    pub fn restore(&mut self, image: &BlockImage<'_>, page: &mut Page) -> Result<(), ImageError> {
        let hole = usize::from(image.hole_length);
        let unpacked_bytes = BLOCK_BYTES - hole;
        let mut unpacked = [0u8; BLOCK_BYTES];
        let packed = match image.compression {
            Compression::None => image.bytes,
            method => {
                let target = &mut unpacked[..unpacked_bytes];
                if !self.decompress(method, image.bytes, target) {
                    return Err(ImageError::Decompress(method));
                }
                &unpacked[..unpacked_bytes]
            }
        };
        if packed.len() != unpacked_bytes {
            return Err(ImageError::Length {
                bytes: packed.len(),
                hole,
            });
        }
        let before = usize::from(image.hole_offset);
        let bytes = page.bytes_mut();
        bytes[..before].copy_from_slice(&packed[..before]);
        bytes[before..before + hole].fill(0);
        bytes[before + hole..].copy_from_slice(&packed[before..]);
        Ok(())
    }

    /// Fills `target` exactly, from all of `source`.
    fn decompress(&mut self, method: Compression, source: &[u8], target: &mut [u8]) -> bool {
        match method {
            Compression::None => unreachable!("only compressed images are decompressed"),
            Compression::Pglz => {
                pglz::decompress_into(source, target, true).is_some_and(|n| n == target.len())
            }
            Compression::Lz4 => {
                lz4_flex::block::decompress_into(source, target).is_ok_and(|n| n == target.len())
            }
            Compression::Zstd => {
                let wanted = target.len();
                if self.zstd.is_none() {
                    self.zstd = zstd::bulk::Decompressor::new().ok();
                }
                self.zstd.as_mut().is_some_and(|z| {
                    z.decompress_to_buffer(source, target)
                        .is_ok_and(|n| n == wanted)
                })
            }
        }
    }
}
