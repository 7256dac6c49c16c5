//! Replication slots as a start finds them (`src/backend/replication/slot.c`).

use std::path::Path;

use thiserror::Error;

use super::DataDir;
use super::cleanup::remove_entries;
use crate::sys::{FileKind, SysError};
use crate::types::{Cursor, Lsn, Oid, ShortRead};

const DIRECTORY: &str = "pg_replslot";
/// `SLOT_MAGIC`.
const MAGIC: u32 = 0x0105_1CA1;
/// Magic and checksum: the checksum covers everything after them.
const NOT_CHECKSUMMED_BYTES: usize = 8;
/// `sizeof(ReplicationSlotPersistentData)`.
const BODY_BYTES: u32 = 184;
const FILE_BYTES: usize = 200;
const NAME_BYTES: usize = 64;
/// `RS_PERSISTENT`.
const PERSISTENT: u32 = 0;

/// A slot's state file that cannot be right. A server does not start with one.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SlotError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// It ends before one of its fields.
    #[error("state of replication slot \"{slot}\": {source}")]
    Short {
        /// Directory of the slot.
        slot: String,
        /// Which field.
        source: ShortRead,
    },
    /// The mark is wrong.
    #[error("state of replication slot \"{slot}\" begins with {magic:#010x}")]
    Magic {
        /// Directory of the slot.
        slot: String,
        /// What was found.
        magic: u32,
    },
    /// The length it gives is wrong.
    #[error("state of replication slot \"{slot}\" gives length {length} instead of 184")]
    Length {
        /// Directory of the slot.
        slot: String,
        /// What it gives.
        length: u32,
    },
    /// Damaged.
    #[error(
        "state of replication slot \"{slot}\" has checksum {stored:#010x}, \
         its contents give {computed:#010x}"
    )]
    Crc {
        /// Directory of the slot.
        slot: String,
        /// In the file.
        stored: u32,
        /// Of the bytes after it.
        computed: u32,
    },
}

/// A slot that outlives a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// Its name, which is that of its directory.
    pub name: String,
    /// Its database; 0 for a physical slot.
    pub database: Oid,
    /// The oldest WAL it needs; 0 for none.
    pub restart_lsn: Lsn,
}

impl Slot {
    /// The oldest WAL a logical slot needs.
    pub fn logical_restart_lsn(&self) -> Option<Lsn> {
        (self.database != Oid(0) && self.restart_lsn.is_valid()).then_some(self.restart_lsn)
    }
}

/// Cleans `pg_replslot` as `StartupReplicationSlots` and `StartupReorderBuffer` do, and reads the
/// slots that stay: half-made and half-dropped slots go, so do those that were not persistent,
/// half-written states, and transactions that decoding spilled to disk.
pub fn restore_slots(dir: &DataDir) -> Result<Vec<Slot>, SlotError> {
    let kernel = dir.kernel();
    let directory = dir.path(DIRECTORY);
    let (mut slots, mut removed) = (Vec::new(), false);
    for entry in dir.entries(&directory)? {
        if entry.kind != FileKind::Directory {
            continue;
        }
        let path = directory.join(&entry.name);
        let slot = entry.name.to_string_lossy().into_owned();
        if slot.ends_with(".tmp") {
            kernel.remove_tree(&path)?;
            removed = true;
            continue;
        }
        kernel.unlink_if_any(&path.join("state.tmp"))?;
        match read_slot(dir, &path, slot)? {
            Some(slot) => {
                remove_entries(dir, &path, |n| n.as_encoded_bytes().starts_with(b"xid"))?;
                slots.push(slot);
            }
            None => {
                kernel.remove_tree(&path)?;
                removed = true;
            }
        }
    }
    if removed {
        kernel.sync_dir(&directory)?;
    }
    Ok(slots)
}

/// `ReplicationSlotsDropDBSlots`: the slots of a database that is dropped go with it.
pub fn drop_slots_of_database(dir: &DataDir, db: Oid) -> Result<(), SlotError> {
    let directory = dir.path(DIRECTORY);
    for slot in restore_slots(dir)? {
        if slot.database == db {
            dir.kernel().remove_tree(&directory.join(&slot.name))?;
            dir.kernel().sync_dir(&directory)?;
        }
    }
    Ok(())
}

/// `None` for a slot that does not outlive a restart.
fn read_slot(dir: &DataDir, path: &Path, slot: String) -> Result<Option<Slot>, SlotError> {
    // Longer files are fine with the server, which reads as much as it knows.
    let file = dir.kernel().open_read(&path.join("state"))?;
    let mut bytes = [0; FILE_BYTES];
    let read = file.read_at(&mut bytes, 0)?;
    parse_state(&bytes[..read], slot)
}

fn parse_state(bytes: &[u8], slot: String) -> Result<Option<Slot>, SlotError> {
    let mut c = Cursor::new("ReplicationSlotOnDisk", bytes);
    let short = |source| SlotError::Short {
        slot: slot.clone(),
        source,
    };
    let magic = c.u32("magic").map_err(short)?;
    if magic != MAGIC {
        return Err(SlotError::Magic { slot, magic });
    }
    let stored = c.u32("checksum").map_err(short)?;
    // Versions differ in fields that are not read here; the length never changed.
    c.skip("version", 4).map_err(short)?;
    let length = c.u32("length").map_err(short)?;
    if length != BODY_BYTES {
        return Err(SlotError::Length { slot, length });
    }
    let body = c.bytes("slotdata", BODY_BYTES as usize).map_err(short)?;
    let computed = crc32c::crc32c(&bytes[NOT_CHECKSUMMED_BYTES..c.position()]);
    if stored != computed {
        return Err(SlotError::Crc {
            slot,
            stored,
            computed,
        });
    }
    let mut c = Cursor::new("ReplicationSlotPersistentData", body);
    c.skip("name", NAME_BYTES).map_err(short)?;
    let database = Oid(c.u32("database").map_err(short)?);
    let persistency = c.u32("persistency").map_err(short)?;
    c.skip("xmin, catalog_xmin", 8).map_err(short)?;
    let restart_lsn = Lsn(c.u64("restart_lsn").map_err(short)?);
    Ok((persistency == PERSISTENT).then_some(Slot {
        name: slot,
        database,
        restart_lsn,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::WalFormat;
    use crate::sys::Kernel;

    fn state(database: u32, persistency: u32, restart_lsn: u64) -> Vec<u8> {
        let mut bytes = vec![0; FILE_BYTES];
        bytes[..4].copy_from_slice(&[0xA1, 0x1C, 0x05, 0x01]);
        bytes[8] = 2;
        bytes[12] = 184;
        bytes[16..20].copy_from_slice(b"slot");
        bytes[80..84].copy_from_slice(&database.to_le_bytes());
        bytes[84..88].copy_from_slice(&persistency.to_le_bytes());
        bytes[96..104].copy_from_slice(&restart_lsn.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    #[test]
    fn what_a_start_removes_and_reads() {
        let root = tempfile::tempdir().unwrap();
        let slots = root.path().join(DIRECTORY);
        let dir = DataDir::new(Kernel::new(), root.path(), WalFormat::ALL[0]).unwrap();
        let put = |slot: &str, file: &str, bytes: &[u8]| {
            std::fs::create_dir_all(slots.join(slot)).unwrap();
            std::fs::write(slots.join(slot).join(file), bytes).unwrap();
        };
        assert_eq!(restore_slots(&dir), Ok(vec![]));
        put("logical", "state", &state(5, 0, 0x500));
        put("logical", "state.tmp", b"x");
        put("logical", "xid-7-lsn-0-1.spill", b"x");
        put("physical", "state", &state(0, 0, 0x300));
        put("temporary", "state", &state(5, 2, 0x100));
        put("dropped.tmp", "state", b"x");
        std::fs::write(slots.join("a_file.tmp"), "x").unwrap();
        let found = restore_slots(&dir).unwrap();
        let names: Vec<&str> = found.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["logical", "physical"]);
        assert_eq!(found[0].logical_restart_lsn(), Some(Lsn(0x500)));
        assert_eq!(found[1].logical_restart_lsn(), None);
        let left = |path: &str| slots.join(path).exists();
        assert!(left("logical/state") && left("a_file.tmp"));
        for gone in [
            "logical/state.tmp",
            "logical/xid-7-lsn-0-1.spill",
            "temporary",
            "dropped.tmp",
        ] {
            assert!(!left(gone), "{gone}");
        }
    }

    #[test]
    fn the_state_a_server_wrote() {
        // PostgreSQL 15.19, a physical slot; all other bytes are zero.
        let mut bytes = [0; FILE_BYTES];
        bytes[..9].copy_from_slice(&[0xA1, 0x1C, 0x05, 0x01, 0x78, 0x84, 0xB2, 0x13, 2]);
        bytes[12] = 0xB8;
        bytes[16..20].copy_from_slice(b"phys");
        bytes[96..100].copy_from_slice(&[0x70, 0xB1, 0x4B, 0x01]);
        let slot = parse_state(&bytes, "phys".to_owned()).unwrap().unwrap();
        assert_eq!(slot.restart_lsn, Lsn(0x14B_B170));
        assert_eq!(slot.logical_restart_lsn(), None);
    }

    #[test]
    fn damage_and_truncation_are_errors() {
        let good = state(5, 0, 0x500);
        for at in 0..FILE_BYTES {
            let mut bad = good.clone();
            bad[at] ^= 4;
            assert!(parse_state(&bad, "s".to_owned()).is_err(), "{at}");
            assert!(parse_state(&good[..at], "s".to_owned()).is_err(), "{at}");
        }
    }
}
