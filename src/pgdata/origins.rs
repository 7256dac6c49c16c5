//! How far replication origins have progressed: `pg_logical/replorigin_checkpoint`
//! (`src/backend/replication/logical/origin.c`).

use thiserror::Error;

use super::DataDir;
use crate::sys::{SysError, found};
use crate::types::{Cursor, Lsn, RepOriginId, ShortRead};

const FILE: &str = "pg_logical/replorigin_checkpoint";
/// What a server that was killed while it wrote the file leaves; the next write removes it.
const TEMPORARY: &str = "pg_logical/replorigin_checkpoint.tmp";
/// `REPLICATION_STATE_MAGIC`.
const MAGIC: u32 = 0x1257_DADE;
/// `sizeof(ReplicationStateOnDisk)`.
const ENTRY_BYTES: usize = 16;
/// There are no more origins than numbers for them.
const MAX_FILE_BYTES: u64 = 8 + 65_536 * ENTRY_BYTES as u64;
/// `InvalidRepOriginId`.
const NONE: RepOriginId = RepOriginId(0);
/// `DoNotReplicateId`.
const DO_NOT_REPLICATE: RepOriginId = RepOriginId(u16::MAX);

/// An origin file that cannot be right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OriginsError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// It ends before one of its fields.
    #[error(transparent)]
    Short(#[from] ShortRead),
    /// The mark is wrong.
    #[error("replication origin file begins with {0:#010x} instead of 0x1257dade")]
    Magic(u32),
    /// Damaged.
    #[error(
        "replication origin file has checksum {stored:#010x}, its contents give {computed:#010x}"
    )]
    Crc {
        /// In the file.
        stored: u32,
        /// Of the bytes before it.
        computed: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Progress {
    origin: RepOriginId,
    remote_lsn: Lsn,
}

/// The table of origins. Its order is that of the file: a new origin takes the first free place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origins {
    places: Vec<Option<Progress>>,
}

impl Origins {
    /// Reads the file; a missing one is an empty table (`StartupReplicationOrigin`).
    pub fn read(dir: &DataDir) -> Result<Origins, OriginsError> {
        match found(dir.kernel().read_file(&dir.path(FILE), MAX_FILE_BYTES))? {
            Some(bytes) => Origins::parse(&bytes),
            None => Ok(Origins::default()),
        }
    }

    fn parse(bytes: &[u8]) -> Result<Origins, OriginsError> {
        let mut c = Cursor::new("replorigin_checkpoint", bytes);
        let magic = c.u32("magic")?;
        if magic != MAGIC {
            return Err(OriginsError::Magic(magic));
        }
        let mut places = Vec::new();
        while c.remaining() != size_of::<u32>() {
            let origin = RepOriginId(c.u16("roident")?);
            c.skip("padding", 6)?;
            let remote_lsn = Lsn(c.u64("remote_lsn")?);
            places.push(Some(Progress { origin, remote_lsn }));
        }
        let computed = crc32c::crc32c(&bytes[..c.position()]);
        let stored = c.u32("crc")?;
        if stored != computed {
            return Err(OriginsError::Crc { stored, computed });
        }
        Ok(Origins { places })
    }

    /// An origin has progressed (`replorigin_advance`). With `force` its position may also go
    /// back.
    pub fn advance(&mut self, origin: RepOriginId, remote_lsn: Lsn, force: bool) {
        if origin == NONE || origin == DO_NOT_REPLICATE {
            return;
        }
        let known = self.places.iter_mut().flatten();
        if let Some(place) = known.into_iter().find(|p| p.origin == origin) {
            if force || place.remote_lsn < remote_lsn {
                place.remote_lsn = remote_lsn;
            }
            return;
        }
        let new = Some(Progress { origin, remote_lsn });
        match self.places.iter_mut().find(|place| place.is_none()) {
            Some(free) => *free = new,
            None => self.places.push(new),
        }
    }

    /// An origin is dropped.
    pub fn drop_origin(&mut self, origin: RepOriginId) {
        for place in &mut self.places {
            if place.is_some_and(|p| p.origin == origin) {
                *place = None;
            }
        }
    }

    /// Writes the file, as every checkpoint does (`CheckPointReplicationOrigin`).
    pub fn write(&self, dir: &DataDir) -> Result<(), OriginsError> {
        let kernel = dir.kernel();
        kernel.unlink_if_any(&dir.path(TEMPORARY))?;
        kernel.replace_file(&dir.path(FILE), &self.to_bytes(), dir.file_mode())?;
        Ok(())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_le_bytes().to_vec();
        for place in self.places.iter().flatten() {
            bytes.extend(place.origin.0.to_le_bytes());
            bytes.extend([0; 6]);
            bytes.extend(place.remote_lsn.0.to_le_bytes());
        }
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As PostgreSQL 15.19 wrote it.
    const FILE_BYTES: [u8; 40] = [
        0xDE, 0xDA, 0x57, 0x12, 1, 0, 0, 0, 0, 0, 0, 0, 0xBC, 0x4A, 0x23, 0x01, 0, 0, 0, 0, 2, 0,
        0, 0, 0, 0, 0, 0, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0x8D, 0x31, 0x05, 0xDE,
    ];

    #[test]
    fn a_table_becomes_the_file_a_server_wrote() {
        let mut origins = Origins::default();
        origins.advance(RepOriginId(1), Lsn(0x0123_4ABC), false);
        origins.advance(RepOriginId(2), Lsn(0x1_0000_00FF), false);
        origins.advance(RepOriginId(2), Lsn(0x1_0000_00FE), false);
        origins.advance(RepOriginId(0), Lsn(9), true);
        origins.advance(RepOriginId(u16::MAX), Lsn(9), true);
        assert_eq!(origins.to_bytes(), FILE_BYTES);
        assert_eq!(Origins::parse(&FILE_BYTES), Ok(origins));
    }

    #[test]
    fn a_dropped_place_is_taken_again() {
        let mut origins = Origins::parse(&FILE_BYTES).unwrap();
        origins.drop_origin(RepOriginId(1));
        origins.advance(RepOriginId(7), Lsn(5), false);
        origins.advance(RepOriginId(7), Lsn(4), true);
        let bytes = origins.to_bytes();
        assert_eq!((bytes[4], bytes[12], bytes[20]), (7, 4, 2));
        assert_eq!(Origins::default().to_bytes().len(), 8);
    }

    #[test]
    fn damage_and_truncation_are_errors() {
        for at in 0..FILE_BYTES.len() {
            let mut bad = FILE_BYTES;
            bad[at] ^= 1;
            assert!(Origins::parse(&bad).is_err(), "{at}");
            assert!(Origins::parse(&FILE_BYTES[..at]).is_err(), "{at}");
        }
    }
}
