//! Prepared transactions and their state files (`src/backend/access/transam/twophase.c`).
//!
//! While WAL is replayed they are kept in memory; files are written at the end, as the checkpoint
//! of a server does.

use std::collections::BTreeMap;
use std::path::PathBuf;

use thiserror::Error;

use super::DataDir;
use crate::sys::{Create, SysError, found};
use crate::types::{Cursor, FullTransactionId, ShortRead, TransactionId};

const DIRECTORY: &str = "pg_twophase";
/// `TWOPHASE_MAGIC`.
const MAGIC: u32 = 0x57F9_4534;
/// `sizeof(TwoPhaseFileHeader)`.
const HEADER_BYTES: usize = 72;
/// `sizeof(TwoPhaseRecordOnDisk)`: the end mark is one of them.
const END_BYTES: usize = 8;
const CRC_BYTES: usize = 4;
/// `MaxAllocSize`: the server refuses larger files.
const MAX_FILE_BYTES: u64 = 0x3FFF_FFFF;

/// State of a prepared transaction that cannot be right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TwoPhaseError {
    /// A system call failed.
    #[error(transparent)]
    Sys(#[from] SysError),
    /// It ends before one of its fields.
    #[error("two-phase state of transaction {xid}: {source}")]
    Short {
        /// The transaction.
        xid: TransactionId,
        /// Which field.
        source: ShortRead,
    },
    /// The mark is wrong.
    #[error("two-phase state of transaction {xid} begins with {magic:#010x}")]
    Magic {
        /// The transaction.
        xid: TransactionId,
        /// What was found.
        magic: u32,
    },
    /// Its length is not what it says, or cannot be.
    #[error("two-phase state of transaction {xid} has {bytes} bytes, its header says {stored}")]
    Length {
        /// The transaction.
        xid: TransactionId,
        /// What it has, the checksum included.
        bytes: usize,
        /// What it says.
        stored: u32,
    },
    /// It belongs to another transaction.
    #[error("two-phase state of transaction {xid} names transaction {stored}")]
    WrongTransaction {
        /// The transaction looked for.
        xid: TransactionId,
        /// The one named.
        stored: TransactionId,
    },
    /// Damaged.
    #[error(
        "two-phase state file of transaction {xid} has checksum {stored:#010x}, \
         its contents give {computed:#010x}"
    )]
    Crc {
        /// The transaction.
        xid: TransactionId,
        /// In the file.
        stored: u32,
        /// Of the bytes before it.
        computed: u32,
    },
}

/// Why a prepared transaction was dropped. A server warns of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// pg_xact says it is finished: `removing stale two-phase state file`.
    Stale(TransactionId),
    /// It is not behind the next transaction id; its PREPARE is still to be replayed:
    /// `removing future two-phase state file`.
    Future(TransactionId),
}

/// What became of a PREPARE record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a server warns when the transaction is known already"]
pub enum Prepared {
    /// It is remembered.
    Added,
    /// Its state file was there at the start and stays in force.
    RestoredFromDisk,
}

#[derive(Debug)]
struct Entry {
    /// The file's contents without the checksum.
    data: Vec<u8>,
    on_disk: bool,
    subxids: Vec<TransactionId>,
}

/// The prepared transactions of a data directory.
#[derive(Debug)]
pub struct TwoPhase {
    dir: DataDir,
    entries: BTreeMap<u32, Entry>,
}

impl TwoPhase {
    /// No prepared transactions, whatever files there are.
    pub fn none(dir: &DataDir) -> TwoPhase {
        TwoPhase {
            dir: dir.clone(),
            entries: BTreeMap::new(),
        }
    }

    /// Reads the state files (`restoreTwoPhaseData`). Files of transactions that are finished, or
    /// not behind `next_xid`, are removed and reported; names of another width are not looked at.
    pub fn restore<E: From<TwoPhaseError>>(
        dir: &DataDir,
        next_xid: TransactionId,
        mut is_finished: impl FnMut(TransactionId) -> Result<bool, E>,
    ) -> Result<(TwoPhase, Vec<Dropped>), E> {
        let mut two_phase = TwoPhase::none(dir);
        let mut dropped = Vec::new();
        let directory = dir.path(DIRECTORY);
        let listed = found(dir.kernel().read_dir(&directory)).map_err(TwoPhaseError::from)?;
        for entry in listed.unwrap_or_default() {
            let Some(xid) = entry.name.to_str().and_then(parse_name) else {
                continue;
            };
            match reason_to_drop(xid, next_xid, &mut is_finished)? {
                Some(reason) => {
                    two_phase.unlink(xid)?;
                    dropped.push(reason);
                }
                None => two_phase.load(xid)?,
            }
        }
        Ok((two_phase, dropped))
    }

    /// PREPARE TRANSACTION (`PrepareRedoAdd`). `data` is the main data of the record.
    pub fn prepare(&mut self, xid: TransactionId, data: &[u8]) -> Result<Prepared, TwoPhaseError> {
        if self.entries.get(&xid.0).is_some_and(|e| e.on_disk) {
            return Ok(Prepared::RestoredFromDisk);
        }
        let entry = Entry {
            subxids: parse_subxids(xid, data)?,
            data: data.to_vec(),
            on_disk: false,
        };
        self.entries.insert(xid.0, entry);
        Ok(Prepared::Added)
    }

    /// COMMIT PREPARED and ROLLBACK PREPARED (`PrepareRedoRemove`).
    pub fn finish(&mut self, xid: TransactionId) -> Result<(), TwoPhaseError> {
        match self.entries.remove(&xid.0) {
            Some(entry) if entry.on_disk => self.unlink(xid),
            _ => Ok(()),
        }
    }

    /// The transactions that are prepared now, in order of their numbers.
    pub fn xids(&self) -> impl Iterator<Item = TransactionId> + '_ {
        self.entries.keys().map(|xid| TransactionId(*xid))
    }

    /// After the last record: drops what is finished or in the future, and moves `next_xid` past
    /// the subtransactions of the others (`PrescanPreparedTransactions`).
    pub fn prescan<E: From<TwoPhaseError>>(
        &mut self,
        next_xid: &mut FullTransactionId,
        mut is_finished: impl FnMut(TransactionId) -> Result<bool, E>,
    ) -> Result<Vec<Dropped>, E> {
        let mut dropped = Vec::new();
        let xids: Vec<TransactionId> = self.xids().collect();
        for xid in xids {
            if let Some(reason) = reason_to_drop(xid, next_xid.xid(), &mut is_finished)? {
                self.finish(xid)?;
                dropped.push(reason);
            } else if let Some(entry) = self.entries.get(&xid.0) {
                *next_xid = entry.subxids.iter().fold(*next_xid, |n, s| n.past(*s));
            }
        }
        Ok(dropped)
    }

    /// Writes the state file of every prepared transaction that has none
    /// (`CheckPointTwoPhase`); the number of files written.
    pub fn write_files(&mut self, sync: bool) -> Result<usize, TwoPhaseError> {
        let mut written = 0;
        for (xid, entry) in self.entries.iter_mut().filter(|(_, e)| !e.on_disk) {
            let path = state_path(&self.dir, TransactionId(*xid));
            let kernel = self.dir.kernel();
            let file = kernel.create(&path, Create::Truncate, self.dir.file_mode())?;
            let crc = crc32c::crc32c(&entry.data).to_le_bytes();
            file.write_vectored_at(&[&entry.data, &crc], 0)?;
            if sync {
                file.fsync()?;
            }
            entry.on_disk = true;
            written += 1;
        }
        if sync {
            self.dir.kernel().sync_dir(&self.dir.path(DIRECTORY))?;
        }
        Ok(written)
    }

    /// `ReadTwoPhaseFile`.
    fn load(&mut self, xid: TransactionId) -> Result<(), TwoPhaseError> {
        let path = state_path(&self.dir, xid);
        let mut data = self.dir.kernel().read_file(&path, MAX_FILE_BYTES)?;
        let mut c = Cursor::new("two-phase state file", &data);
        let short = |source| TwoPhaseError::Short { xid, source };
        let contents = c.remaining().saturating_sub(CRC_BYTES);
        c.skip("contents", contents).map_err(short)?;
        let stored = c.u32("crc").map_err(short)?;
        data.truncate(contents);
        let subxids = parse_subxids(xid, &data)?;
        let computed = crc32c::crc32c(&data);
        if stored != computed {
            return Err(TwoPhaseError::Crc {
                xid,
                stored,
                computed,
            });
        }
        let entry = Entry {
            data,
            on_disk: true,
            subxids,
        };
        self.entries.insert(xid.0, entry);
        Ok(())
    }

    fn unlink(&self, xid: TransactionId) -> Result<(), TwoPhaseError> {
        self.dir
            .kernel()
            .unlink_if_any(&state_path(&self.dir, xid))?;
        Ok(())
    }
}

/// The checks of `ProcessTwoPhaseBuffer` that come before the file is read.
fn reason_to_drop<E>(
    xid: TransactionId,
    next_xid: TransactionId,
    is_finished: &mut impl FnMut(TransactionId) -> Result<bool, E>,
) -> Result<Option<Dropped>, E> {
    if is_finished(xid)? {
        Ok(Some(Dropped::Stale(xid)))
    } else if !xid.precedes(next_xid) {
        Ok(Some(Dropped::Future(xid)))
    } else {
        Ok(None)
    }
}

/// `TwoPhaseFilePath`.
fn state_path(dir: &DataDir, xid: TransactionId) -> PathBuf {
    dir.path(format!("{DIRECTORY}/{:08X}", xid.0))
}

fn parse_name(name: &str) -> Option<TransactionId> {
    let digit = |b: u8| b.is_ascii_digit() || (b'A'..=b'F').contains(&b);
    if name.len() != 8 || !name.bytes().all(digit) {
        return None;
    }
    u32::from_str_radix(name, 16).ok().map(TransactionId)
}

/// Checks the header of a state without its checksum, and reads the subtransactions behind it.
fn parse_subxids(xid: TransactionId, data: &[u8]) -> Result<Vec<TransactionId>, TwoPhaseError> {
    let short = |source| TwoPhaseError::Short { xid, source };
    let mut c = Cursor::new("xl_xact_prepare", data);
    let magic = c.u32("magic").map_err(short)?;
    if magic != MAGIC {
        return Err(TwoPhaseError::Magic { xid, magic });
    }
    let total_len = c.u32("total_len").map_err(short)?;
    let bytes = data.len() + CRC_BYTES;
    if total_len as usize != bytes
        || data.len() < HEADER_BYTES + END_BYTES
        || !data.len().is_multiple_of(8)
    {
        let stored = total_len;
        return Err(TwoPhaseError::Length { xid, bytes, stored });
    }
    let stored = TransactionId(c.u32("xid").map_err(short)?);
    if stored != xid {
        return Err(TwoPhaseError::WrongTransaction { xid, stored });
    }
    c.skip("database, prepared_at, owner", 16).map_err(short)?;
    let subxacts = c.u32("nsubxacts").map_err(short)?;
    c.skip("other counts", 22).map_err(short)?;
    let gid_bytes = usize::from(c.u16("gidlen").map_err(short)?);
    c.skip("origin", HEADER_BYTES - c.position())
        .map_err(short)?;
    c.skip("gid", gid_bytes.next_multiple_of(8))
        .map_err(short)?;
    // The product fits: a usize has 64 bits wherever this runs.
    let list = c
        .bytes("subxids", subxacts as usize * size_of::<u32>())
        .map_err(short)?;
    let mut subxids = Cursor::new("subxids", list);
    (0..subxacts)
        .map(|_| subxids.u32("subxid").map(TransactionId).map_err(short))
        .collect()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::format::WalFormat;
    use crate::sys::Kernel;

    /// `pg_twophase/000002D6` as PostgreSQL 15.19 wrote it, in 8-byte rows; rows of zeros are
    /// left out and given by their offset.
    fn server_file() -> Vec<u8> {
        let mut bytes = vec![0; 308];
        let rows: [(usize, &[u8]); 14] = [
            (0x00, &[0x34, 0x45, 0xF9, 0x57, 0x34, 1, 0, 0]),
            (0x08, &[0xD6, 2, 0, 0, 5, 0, 0, 0]),
            (0x10, &[0x73, 0xF6, 0x7B, 0x79, 0x85, 4, 3, 0]),
            (0x18, &[0x0A, 0, 0, 0, 1, 0, 0, 0]),
            (0x30, &[0, 0, 0, 0, 0, 2, 8, 0]),
            (0x48, b"gid one\0"),
            (0x50, &[0xD7, 2, 0, 0, 0xFB, 0x55, 0, 0]),
            (0x58, &[0x14, 0, 0, 0, 1, 0x7F, 0, 0]),
            (0x60, &[5, 0, 0, 0, 0, 0x40, 0, 0]),
            (0x68, &[0, 0, 0, 0, 0, 0, 0, 1]),
            (0x70, &[2, 0, 0, 0, 0, 0, 0, 0]),
            (0x78, &[0x14, 0, 0, 0, 1, 0x7F, 0, 0]),
            (0x80, &[5, 0, 0, 0, 3, 0x40, 0, 0]),
            (0x88, &[0, 0, 0, 0, 0, 0, 0, 1]),
        ];
        let rest: [(usize, &[u8]); 15] = [
            (0x90, &[2, 0, 0, 0, 0xFB, 0x55, 0, 0]),
            (0x98, &[0x14, 0, 0, 0, 1, 0x7F, 0, 0]),
            (0xA0, &[0xD6, 2, 0, 0, 0, 0, 0, 0]),
            (0xA8, &[0, 0, 0, 0, 0, 0, 5, 1]),
            (0xB0, &[7, 0, 0, 0, 0xFB, 0x55, 0, 0]),
            (0xB8, &[0x14, 0, 0, 0, 1, 0x7F, 0, 0]),
            (0xC0, &[5, 0, 0, 0, 0, 0x40, 0, 0]),
            (0xC8, &[0, 0, 0, 0, 0, 0, 0, 1]),
            (0xD0, &[3, 0, 0, 0, 0, 0, 0, 0]),
            (0xD8, &[0x38, 0, 0, 0, 2, 0, 0, 0]),
            (0xE0, &[1, 0, 0, 0, 0, 0, 0, 0]),
            (0x110, &[0, 0x40, 0, 0, 0, 0, 0, 0]),
            (0x118, &[4, 0, 0, 0, 3, 0, 0, 0]),
            (0x120, &[1, 0, 0, 0, 0, 0, 0, 0]),
            (0x128, &[0, 0, 0, 0, 0, 0x55, 0, 0]),
        ];
        for (at, row) in rows.iter().chain(&rest) {
            bytes[*at..*at + 8].copy_from_slice(row);
        }
        bytes[0x130..].copy_from_slice(&[0x84, 0x16, 0x67, 0x8B]);
        bytes
    }

    const XID: TransactionId = TransactionId(0x2D6);

    fn data_dir() -> (TempDir, DataDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join(DIRECTORY)).unwrap();
        let dir = DataDir::new(Kernel::new(), root.path(), WalFormat::ALL[0]).unwrap();
        let file = state_path(&dir, XID);
        (root, dir, file)
    }

    fn restore(
        dir: &DataDir,
        next: u32,
        finished: bool,
    ) -> Result<(TwoPhase, Vec<Dropped>), TwoPhaseError> {
        TwoPhase::restore(dir, TransactionId(next), |_| Ok(finished))
    }

    #[test]
    fn a_prepared_transaction_becomes_the_file_a_server_wrote() {
        let (_root, dir, file) = data_dir();
        let (mut two_phase, _) = restore(&dir, 100, false).unwrap();
        let expected = server_file();
        let data = &expected[..expected.len() - 4];
        assert_eq!(two_phase.prepare(XID, data), Ok(Prepared::Added));
        assert!(!file.exists());
        assert_eq!(two_phase.write_files(true), Ok(1));
        assert_eq!(std::fs::read(&file).unwrap(), expected);
        assert_eq!(two_phase.write_files(true), Ok(0));
        // The subtransaction 0x2D7 is the highest number in use.
        let mut next = FullTransactionId(0x2D7);
        let dropped = two_phase.prescan(&mut next, |_| Ok::<_, TwoPhaseError>(false));
        assert_eq!((dropped, next.0), (Ok(vec![]), 0x2D8));
        two_phase.finish(XID).unwrap();
        assert!(!file.exists());
        // A file it does not know of is not its own to remove.
        std::fs::write(&file, "x").unwrap();
        two_phase.finish(XID).unwrap();
        assert!(file.exists());
    }

    #[test]
    fn files_at_the_start_are_loaded_or_dropped() {
        let (root, dir, file) = data_dir();
        std::fs::write(&file, server_file()).unwrap();
        for other in ["000002d6", "2D6", "00000000000002D6", "000002D6.tmp"] {
            std::fs::write(root.path().join(DIRECTORY).join(other), "x").unwrap();
        }
        let (mut two_phase, dropped) = restore(&dir, 0x2D8, false).unwrap();
        assert_eq!(two_phase.xids().collect::<Vec<_>>(), [XID]);
        assert!(dropped.is_empty());
        let again = two_phase.prepare(XID, &[]);
        assert_eq!(again, Ok(Prepared::RestoredFromDisk));

        let (two_phase, dropped) = restore(&dir, 0x2D6, false).unwrap();
        assert_eq!(dropped, [Dropped::Future(XID)]);
        assert_eq!(two_phase.xids().count(), 0);
        assert!(!file.exists());
        std::fs::write(&file, "not even read").unwrap();
        let (_, dropped) = restore(&dir, 0x2D8, true).unwrap();
        assert_eq!(dropped, [Dropped::Stale(XID)]);
        assert!(!file.exists());
        assert_eq!(
            std::fs::read_dir(file.parent().unwrap()).unwrap().count(),
            4
        );
    }

    #[test]
    fn damage_and_truncation_are_errors() {
        let (_root, dir, file) = data_dir();
        let good = server_file();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x81;
            std::fs::write(&file, bad).unwrap();
            assert!(restore(&dir, 0x2D8, false).is_err(), "{at}");
            std::fs::write(&file, &good[..at]).unwrap();
            assert!(restore(&dir, 0x2D8, false).is_err(), "{at}");
            let (mut two_phase, _) = restore(&dir, 3, true).unwrap();
            assert!(two_phase.prepare(XID, &good[..at.min(303)]).is_err());
        }
    }
}
