//! `pg_filenode.map`: which file a mapped catalog is in (`src/backend/utils/cache/relmapper.c`).

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::DataDir;
use crate::format::WalFormat;
use crate::sys::{Create, SysError, SysResult, found};
use crate::types::{Cursor, Oid, ShortRead};

/// `RELMAPPER_FILENAME`.
const FILE_NAME: &str = "pg_filenode.map";
/// `RELMAPPER_FILEMAGIC`.
const MAGIC: u32 = 0x0059_2717;
/// Magic and number of mappings.
const HEADER_BYTES: usize = 8;
const MAPPING_BYTES: usize = 8;

/// A map that cannot be right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RelationMapError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// It ends before one of its fields.
    #[error(transparent)]
    Short(#[from] ShortRead),
    /// Not as long as maps of this major are.
    #[error("relation map of {bytes} bytes, {expected} are expected")]
    Length {
        /// What was found.
        bytes: usize,
        /// What this major writes.
        expected: usize,
    },
    /// The first four bytes are not its mark.
    #[error("relation map begins with {0:#010x} instead of 0x00592717")]
    Magic(u32),
    /// More mappings than there is room for, or less than none.
    #[error("relation map says it has {count} mappings, there is room for {room}")]
    Count {
        /// What the map says.
        count: i32,
        /// What can be.
        room: usize,
    },
    /// Damaged.
    #[error("relation map has checksum {stored:#010x}, its contents give {computed:#010x}")]
    Crc {
        /// In the map.
        stored: u32,
        /// Of the bytes before it.
        computed: u32,
    },
}

/// One relation map, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(alias = "RelMapFile")]
pub struct RelationMap {
    /// Catalog and the number of its file.
    pub mappings: Vec<(Oid, Oid)>,
}

impl RelationMap {
    /// Reads the bytes of a map file (`read_relmap_file`).
    pub fn parse(bytes: &[u8], format: &WalFormat) -> Result<RelationMap, RelationMapError> {
        check_length(bytes, format)?;
        let mut c = Cursor::new("RelMapFile", bytes);
        let magic = c.u32("magic")?;
        if magic != MAGIC {
            return Err(RelationMapError::Magic(magic));
        }
        let count = checked_count(c.i32("num_mappings")?, format)?;
        let mappings = (0..count)
            .map(|_| Ok((Oid(c.u32("mapoid")?), Oid(c.u32("mapfilenode")?))))
            .collect::<Result<_, ShortRead>>()?;
        let mut tail = Cursor::new("RelMapFile", &bytes[format.relmap_crc_offset..]);
        let stored = tail.u32("crc")?;
        let computed = crc32c::crc32c(&bytes[..format.relmap_crc_offset]);
        if stored != computed {
            return Err(RelationMapError::Crc { stored, computed });
        }
        Ok(RelationMap { mappings })
    }

    /// Reads the map of a database, or the shared one.
    pub fn read(dir: &DataDir, spc: Oid, db: Oid) -> Result<RelationMap, RelationMapError> {
        RelationMap::read_file(dir, &map_path(dir, spc, db))
    }

    fn read_file(dir: &DataDir, path: &Path) -> Result<RelationMap, RelationMapError> {
        let limit = dir.format().relmap_bytes as u64;
        let bytes = dir.kernel().read_file(path, limit)?;
        RelationMap::parse(&bytes, dir.format())
    }
}

/// Reads every map there is; the path and the fault of each bad one. Only a server's own sessions
/// read them otherwise, when recovery is long over. The shared map must be there. A database has
/// its map in one tablespace only, and none yet if WAL ends in the middle of its creation.
pub fn check_relation_maps(dir: &DataDir) -> SysResult<Vec<(PathBuf, RelationMapError)>> {
    let shared = dir.path("global").join(FILE_NAME);
    let mut bad = Vec::new();
    for database in dir.database_dirs()? {
        let path = database.join(FILE_NAME);
        match RelationMap::read_file(dir, &path) {
            Err(RelationMapError::Sys(error)) if error.is_not_found() => {}
            Err(error) => bad.push((path, error)),
            Ok(_) => {}
        }
    }
    if let Err(error) = RelationMap::read_file(dir, &shared) {
        bad.push((shared, error));
    }
    Ok(bad)
}

/// Writes the map a record carries (`relmap_redo`). Magic and checksum are made anew, all other
/// bytes are taken as they are. The file is overwritten in place and is never longer than a
/// sector, which is what makes that safe.
pub fn write_relation_map(
    dir: &DataDir,
    spc: Oid,
    db: Oid,
    map: &[u8],
) -> Result<(), RelationMapError> {
    let format = dir.format();
    check_length(map, format)?;
    let mut c = Cursor::new("RelMapFile", map);
    c.skip("magic", 4)?;
    checked_count(c.i32("num_mappings")?, format)?;
    let mut bytes = map.to_vec();
    bytes[..4].copy_from_slice(&MAGIC.to_le_bytes());
    let at = format.relmap_crc_offset;
    let crc = crc32c::crc32c(&bytes[..at]);
    bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());

    let path = map_path(dir, spc, db);
    let kernel = dir.kernel();
    let (file, made) = match found(kernel.open_write(&path))? {
        Some(file) => (file, false),
        None => (
            kernel.create(&path, Create::IfMissing, dir.file_mode())?,
            true,
        ),
    };
    file.write_at(&bytes, 0)?;
    file.fsync()?;
    if made {
        kernel.sync_dir(path.parent().unwrap_or(Path::new(".")))?;
    }
    Ok(())
}

fn map_path(dir: &DataDir, spc: Oid, db: Oid) -> PathBuf {
    dir.database_dir(spc, db).join(FILE_NAME)
}

fn check_length(bytes: &[u8], format: &WalFormat) -> Result<(), RelationMapError> {
    let expected = format.relmap_bytes;
    match bytes.len() {
        n if n == expected => Ok(()),
        bytes => Err(RelationMapError::Length { bytes, expected }),
    }
}

fn checked_count(count: i32, format: &WalFormat) -> Result<usize, RelationMapError> {
    let room = (format.relmap_crc_offset - HEADER_BYTES) / MAPPING_BYTES;
    match usize::try_from(count) {
        Ok(n) if n <= room => Ok(n),
        _ => Err(RelationMapError::Count { count, room }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::Kernel;
    use crate::types::GLOBAL_TABLESPACE;

    /// What initdb of 15 wrote to `base/5`, without the mappings after the first three.
    fn map() -> Vec<u8> {
        let mut bytes = vec![0; 512];
        bytes[..8].copy_from_slice(&[0x17, 0x27, 0x59, 0, 3, 0, 0, 0]);
        for (i, oid) in [0x4EE_u32, 0xB94, 0x4BD].into_iter().enumerate() {
            bytes[8 + 8 * i..][..4].copy_from_slice(&oid.to_le_bytes());
            bytes[12 + 8 * i..][..4].copy_from_slice(&oid.to_le_bytes());
        }
        bytes
    }

    #[test]
    fn written_maps_read_back_and_damage_is_found() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("global")).unwrap();
        let format = WalFormat::ALL[0];
        let dir = DataDir::new(Kernel::new(), root.path(), format).unwrap();
        let mut bytes = map();
        bytes[0] = 0xAA;
        write_relation_map(&dir, GLOBAL_TABLESPACE, Oid(0), &bytes).unwrap();
        let written = std::fs::read(root.path().join("global/pg_filenode.map")).unwrap();
        assert_eq!(written[..504], map()[..504]);
        let read = RelationMap::read(&dir, GLOBAL_TABLESPACE, Oid(0)).unwrap();
        assert_eq!(read.mappings.len(), 3);
        assert_eq!(read.mappings[1], (Oid(0xB94), Oid(0xB94)));
        for at in 0..508 {
            let mut bad = written.clone();
            bad[at] ^= 0x10;
            assert!(RelationMap::parse(&bad, format).is_err(), "{at}");
        }
        for len in 0..512 {
            assert!(RelationMap::parse(&written[..len], format).is_err());
            assert!(write_relation_map(&dir, GLOBAL_TABLESPACE, Oid(0), &bytes[..len]).is_err());
        }
    }

    #[test]
    fn a_count_without_room_is_not_written() {
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::new(Kernel::new(), root.path(), WalFormat::ALL[0]).unwrap();
        for count in [63, -1, i32::MAX] {
            let mut bytes = map();
            bytes[4..8].copy_from_slice(&i32::to_le_bytes(count));
            assert_eq!(
                write_relation_map(&dir, GLOBAL_TABLESPACE, Oid(0), &bytes),
                Err(RelationMapError::Count { count, room: 62 })
            );
        }
    }
}
