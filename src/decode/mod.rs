//! Raw record bytes to a [`Record`]: header, block references, images, main data
//! (`DecodeXLogRecord`, `src/backend/access/transam/xlogreader.c`). Nothing is copied.

mod image;

use smallvec::SmallVec;
use thiserror::Error;

use crate::format::{ImageBits, WalFormat};
use crate::types::{
    BLOCK_BYTES, BlockTag, Cursor, ForkNumber, Lsn, Oid, RelFileLocator, RepOriginId, RmgrId,
    ShortRead, TransactionId,
};
use crate::wal::RawRecord;

pub use image::{BlockImage, Compression, ImageError, ImageRestorer};

/// `XLR_MAX_BLOCK_ID`.
pub const MAX_BLOCK_ID: u8 = 32;

const ID_TOPLEVEL_XID: u8 = 252;
const ID_ORIGIN: u8 = 253;
const ID_DATA_LONG: u8 = 254;
const ID_DATA_SHORT: u8 = 255;

const FORK_MASK: u8 = 0x0F;
const HAS_IMAGE: u8 = 0x10;
const HAS_DATA: u8 = 0x20;
const WILL_INIT: u8 = 0x40;
const SAME_REL: u8 = 0x80;

/// `XLR_SPECIAL_REL_UPDATE` in `xl_info`: files other than the block references change.
pub const INFO_SPECIAL_REL_UPDATE: u8 = 0x01;
/// `XLR_CHECK_CONSISTENCY` in `xl_info`: images are there to be compared.
pub const INFO_CHECK_CONSISTENCY: u8 = 0x02;
/// The bits of `xl_info` that belong to the resource manager.
pub const INFO_RMGR_MASK: u8 = 0xF0;

/// A record whose CRC is right and whose contents are not. PostgreSQL takes it for the end of
/// WAL.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// A fragment header is cut short.
    #[error(transparent)]
    Short(#[from] ShortRead),
    /// A fragment id that means nothing.
    #[error("invalid block_id {0}")]
    FragmentId(u8),
    /// Ids of block references must ascend.
    #[error("out-of-order block_id {0}")]
    BlockOrder(u8),
    /// A fork number above 3.
    #[error("invalid fork number {fork} in block {block}")]
    Fork {
        /// The block reference.
        block: u8,
        /// The number found.
        fork: u8,
    },
    /// HAS_DATA and the data length contradict each other.
    #[error("BKPBLOCK_HAS_DATA and data length {len} contradict each other in block {block}")]
    DataLength {
        /// The block reference.
        block: u8,
        /// The length found.
        len: u16,
    },
    /// The flags of an image contradict its lengths.
    #[error(
        "image flags 0x{info:02X} contradict hole offset {hole_offset}, hole length \
         {hole_length}, length {length} in block {block}"
    )]
    Image {
        /// The block reference.
        block: u8,
        /// `bimg_info`.
        info: u8,
        /// `hole_offset`.
        hole_offset: u16,
        /// `hole_length`.
        hole_length: u16,
        /// `bimg_len`.
        length: u16,
    },
    /// SAME_REL without an earlier relation.
    #[error("BKPBLOCK_SAME_REL set but no previous rel in block {0}")]
    SameRel(u8),
    /// The announced payload is not what is there.
    #[error("payload of {announced} bytes announced, {found} found")]
    Payload {
        /// Sum of the lengths in the headers.
        announced: usize,
        /// Bytes after the headers.
        found: usize,
    },
}

/// A block reference (`DecodedBkpBlock`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "DecodedBkpBlock")]
pub struct BlockRef<'w> {
    /// Its id, 0 to 32.
    pub id: u8,
    /// The page it names.
    pub tag: BlockTag,
    /// `BKPBLOCK_WILL_INIT`: redo rebuilds the page from nothing.
    pub will_init: bool,
    /// `BKPBLOCK_SAME_REL` was used; for exact printing and re-encoding only.
    pub same_rel: bool,
    /// `BKPBLOCK_HAS_DATA`.
    pub has_data: bool,
    /// A page image, if there is one.
    pub image: Option<BlockImage<'w>>,
    /// The block's own data.
    pub data: &'w [u8],
}

impl BlockRef<'_> {
    /// There is an image and redo must restore it. Images that are there for
    /// wal_consistency_checking do not count.
    pub fn has_image_to_apply(&self) -> bool {
        self.image.is_some_and(|image| image.apply)
    }
}

/// Block references of a record: one to four is usual, 33 are possible.
pub type BlockRefs<'w> = SmallVec<[BlockRef<'w>; 4]>;

/// A decoded record (`DecodedXLogRecord`).
#[derive(Debug, Clone)]
#[doc(alias = "DecodedXLogRecord")]
pub struct Record<'w> {
    /// Where it starts (`ReadRecPtr`).
    pub lsn: Lsn,
    /// Where the next one may start (`EndRecPtr`): what redo stores as the LSN of pages.
    pub end_lsn: Lsn,
    /// The unfinished record that this one follows; 0 usually.
    pub overwritten: Lsn,
    /// `xl_prev`.
    pub prev: Lsn,
    /// `xl_tot_len`, in bytes.
    pub total_bytes: u32,
    /// `xl_xid`.
    pub xid: TransactionId,
    /// `xl_info`, all eight bits.
    pub info: u8,
    /// `xl_rmid`.
    pub rmid: RmgrId,
    /// Replication origin, 0 if none.
    pub origin: RepOriginId,
    /// Top-level transaction, logged with wal_level=logical.
    pub toplevel_xid: Option<TransactionId>,
    /// Block references in ascending order of their ids.
    pub blocks: BlockRefs<'w>,
    /// Main data.
    pub main_data: &'w [u8],
    /// The facts of the major that wrote it.
    pub format: &'static WalFormat,
}

impl<'w> Record<'w> {
    /// Decodes a record whose header and CRC the reader has checked.
    pub fn decode(
        raw: RawRecord<'w>,
        format: &'static WalFormat,
    ) -> Result<Record<'w>, DecodeError> {
        let mut record = Record::empty(format);
        record.decode_next(raw)?;
        Ok(record)
    }

    /// A record without contents, to be filled again and again. It is large enough for moving it
    /// to cost as much as decoding.
    pub fn empty(format: &'static WalFormat) -> Record<'w> {
        Record {
            lsn: Lsn::INVALID,
            end_lsn: Lsn::INVALID,
            overwritten: Lsn::INVALID,
            prev: Lsn::INVALID,
            total_bytes: 0,
            xid: TransactionId::INVALID,
            info: 0,
            rmid: RmgrId(0),
            origin: RepOriginId(0),
            toplevel_xid: None,
            blocks: BlockRefs::new(),
            main_data: &[],
            format,
        }
    }

    /// Replaces the contents by those of another record of the same major. They are unspecified
    /// after an error.
    pub fn decode_next(&mut self, raw: RawRecord<'w>) -> Result<(), DecodeError> {
        let mut c = Cursor::new("XLogRecord", raw.bytes);
        self.total_bytes = c.u32("xl_tot_len")?;
        self.xid = TransactionId(c.u32("xl_xid")?);
        self.prev = Lsn(c.u64("xl_prev")?);
        self.info = c.u8("xl_info")?;
        self.rmid = RmgrId(c.u8("xl_rmid")?);
        c.skip("xl_crc", 6)?;
        self.lsn = raw.lsn;
        self.end_lsn = raw.end_lsn;
        self.overwritten = raw.overwritten;
        self.origin = RepOriginId(0);
        self.toplevel_xid = None;
        self.blocks.clear();
        self.main_data = &[];
        self.read_fragments(&mut c)
    }

    fn read_fragments(&mut self, c: &mut Cursor<'w>) -> Result<(), DecodeError> {
        let mut payload = 0usize;
        let mut main_len = 0usize;
        // Lengths of the data of each block, until the headers are over. Block ids ascend, so
        // there are no more blocks than ids.
        let mut data_lengths = [0u16; MAX_BLOCK_ID as usize + 1];
        while c.remaining() > payload {
            match c.u8("block_id")? {
                ID_DATA_SHORT => {
                    main_len = c.u8("main data length")?.into();
                    payload += main_len;
                    break;
                }
                ID_DATA_LONG => {
                    main_len = c.u32("main data length")? as usize;
                    payload += main_len;
                    break;
                }
                ID_ORIGIN => self.origin = RepOriginId(c.u16("origin")?),
                ID_TOPLEVEL_XID => {
                    self.toplevel_xid = Some(TransactionId(c.u32("toplevel xid")?));
                }
                id if id <= MAX_BLOCK_ID => {
                    let (block, data_len) = self.read_block_header(id, c)?;
                    let image_len = block.image.map_or(0, |image| image.length);
                    payload += usize::from(data_len) + usize::from(image_len);
                    data_lengths[self.blocks.len()] = data_len;
                    self.blocks.push(block);
                }
                other => return Err(DecodeError::FragmentId(other)),
            }
        }
        if c.remaining() != payload {
            return Err(DecodeError::Payload {
                announced: payload,
                found: c.remaining(),
            });
        }
        for (block, data_len) in self.blocks.iter_mut().zip(data_lengths) {
            if let Some(image) = &mut block.image {
                image.bytes = c.bytes("block image", image.length.into())?;
            }
            block.data = c.bytes("block data", data_len.into())?;
        }
        self.main_data = c.bytes("main data", main_len)?;
        Ok(())
    }

    /// Reads `XLogRecordBlockHeader` and what follows it; the second value is the length of the
    /// block's data.
    #[inline]
    fn read_block_header(
        &self,
        id: u8,
        c: &mut Cursor<'w>,
    ) -> Result<(BlockRef<'w>, u16), DecodeError> {
        if self.blocks.last().is_some_and(|last| last.id >= id) {
            return Err(DecodeError::BlockOrder(id));
        }
        let flags = c.u8("fork_flags")?;
        let data_length = c.u16("data_length")?;
        let fork =
            ForkNumber::from_number(u32::from(flags & FORK_MASK)).ok_or(DecodeError::Fork {
                block: id,
                fork: flags & FORK_MASK,
            })?;
        let has_data = flags & HAS_DATA != 0;
        if has_data != (data_length > 0) {
            return Err(DecodeError::DataLength {
                block: id,
                len: data_length,
            });
        }
        let image = match flags & HAS_IMAGE {
            0 => None,
            _ => Some(read_image_header(id, self.format.image_bits, c)?),
        };
        let same_rel = flags & SAME_REL != 0;
        let locator = if same_rel {
            // References that repeat a relation do not change it, so the last one knows it.
            self.blocks
                .last()
                .map(|b| b.tag.locator)
                .ok_or(DecodeError::SameRel(id))?
        } else {
            RelFileLocator {
                spc: Oid(c.u32("spcOid")?),
                db: Oid(c.u32("dbOid")?),
                rel: Oid(c.u32("relNumber")?),
            }
        };
        let block = BlockRef {
            id,
            tag: BlockTag {
                locator,
                fork,
                block: c.u32("block number")?,
            },
            will_init: flags & WILL_INIT != 0,
            same_rel,
            has_data,
            image,
            data: &[],
        };
        Ok((block, data_length))
    }

    /// Block reference `id`, if the record has it.
    pub fn block(&self, id: u8) -> Option<&BlockRef<'w>> {
        self.blocks.iter().find(|b| b.id == id)
    }

    /// The bits of `xl_info` that belong to the resource manager.
    pub fn rmgr_info(&self) -> u8 {
        self.info & INFO_RMGR_MASK
    }
}

/// Reads `XLogRecordBlockImageHeader`; the bytes follow later.
fn read_image_header<'w>(
    block: u8,
    bits: ImageBits,
    c: &mut Cursor<'w>,
) -> Result<BlockImage<'w>, DecodeError> {
    let length = c.u16("bimg_len")?;
    let hole_offset = c.u16("hole_offset")?;
    let info = c.u8("bimg_info")?;
    let has_hole = info & 0x01 != 0;
    let (apply, compression) = match bits {
        ImageBits::ByMethod => {
            let method = if info & 0x04 != 0 {
                Compression::Pglz
            } else if info & 0x08 != 0 {
                Compression::Lz4
            } else if info & 0x10 != 0 {
                Compression::Zstd
            } else {
                Compression::None
            };
            (info & 0x02 != 0, method)
        }
    };
    let compressed = compression != Compression::None;
    let hole_length = match (compressed, has_hole) {
        (true, true) => c.u16("hole_length")?,
        (true, false) => 0,
        (false, _) => (BLOCK_BYTES as u16).wrapping_sub(length),
    };
    let full = usize::from(length) == BLOCK_BYTES;
    let contradiction = if has_hole {
        hole_offset == 0 || hole_length == 0 || full
    } else {
        hole_offset != 0 || hole_length != 0
    } || (compressed && full)
        || (!compressed && !has_hole && !full)
        || usize::from(length) > BLOCK_BYTES
        || usize::from(hole_offset) + usize::from(hole_length) > BLOCK_BYTES;
    if contradiction {
        return Err(DecodeError::Image {
            block,
            info,
            hole_offset,
            hole_length,
            length,
        });
    }
    Ok(BlockImage {
        length,
        hole_offset,
        hole_length,
        info,
        apply,
        compression,
        bytes: &[],
    })
}
