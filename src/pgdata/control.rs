//! `global/pg_control` (`src/include/catalog/pg_control.h`): its fields, its CRC, and the checks
//! the server makes before it believes one (`ReadControlFile`,
//! `src/backend/access/transam/xlog.c`). Bytes in, bytes out; the caller does the I/O.

use std::fmt;

use thiserror::Error;

use crate::format::WalFormat;
use crate::types::{BLOCK_BYTES, CheckPoint, Cursor, Lsn, RELSEG_BLOCKS, ShortRead, TimeLineId};

/// `PG_CONTROL_FILE_SIZE`: the file is always this long, the rest is zero. It is written with
/// one call, so that a crash leaves the old or the new contents.
pub const CONTROL_FILE_BYTES: usize = 8192;
/// Path below the data directory (`XLOG_CONTROL_FILE`).
pub const CONTROL_FILE_PATH: &str = "global/pg_control";
/// `MOCK_AUTH_NONCE_LEN`.
pub const NONCE_BYTES: usize = 32;

/// Offset of `checkPointCopy`, in bytes.
const CHECK_POINT_COPY: usize = 40;
const CRC_BYTES: usize = 4;
/// `FLOATFORMAT_VALUE`.
const FLOAT_FORMAT: f64 = 1_234_567.0;
/// `MAXIMUM_ALIGNOF` of every platform whose WAL can be replayed.
const MAX_ALIGN: u32 = 8;
/// `WalSegMinSize` and `WalSegMaxSize`, in bytes.
const WAL_SEGMENT_BYTES: std::ops::RangeInclusive<u32> = 1 << 20..=1 << 30;

/// A control file that cannot be used.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ControlError {
    /// The file does not have its one length.
    #[error("pg_control is {0} bytes long, expected {CONTROL_FILE_BYTES}")]
    Length(usize),
    /// A field lies behind the end. [`ControlError::Length`] comes first, so only a wrong
    /// layout could cause it.
    #[error(transparent)]
    Short(#[from] ShortRead),
    /// No major that can be replayed writes these two versions.
    #[error(
        "unsupported pg_control version {control_version}, catalog version {catalog_version}; \
         supported PostgreSQL majors: {supported}"
    )]
    Version {
        /// `pg_control_version`.
        control_version: u32,
        /// `catalog_version_no`.
        catalog_version: u32,
        /// What can be replayed.
        supported: String,
    },
    /// The checksum over the fields is another one than the file says.
    #[error("pg_control has CRC {stored:08X}, its contents have {computed:08X}")]
    Crc {
        /// As stored.
        stored: u32,
        /// Of the bytes before it.
        computed: u32,
    },
    /// A state no server writes.
    #[error("pg_control has unrecognized state {0}")]
    State(u32),
    /// `floatFormat` is not 1234567.0.
    #[error("pg_control has floatFormat {0}, expected {FLOAT_FORMAT}")]
    FloatFormat(f64),
    /// The cluster was built with another constant than the one supported.
    #[error("pg_control has {field} {found}, only {expected} is supported")]
    Constant {
        /// The field.
        field: &'static str,
        /// Its value.
        found: u32,
        /// The one supported.
        expected: u32,
    },
    /// Not a power of two from 1 MiB to 1 GiB.
    #[error("pg_control has xlog_seg_size {0}, expected a power of two from 1 MB to 1 GB")]
    WalSegmentSize(u32),
}

/// What the server was doing when it last wrote the file (`DBState`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "DBState")]
#[repr(u32)]
pub enum DbState {
    /// `DB_STARTUP`: initdb, or a single start that never got on.
    Startup = 0,
    /// `DB_SHUTDOWNED`: nothing to recover.
    Shutdowned = 1,
    /// `DB_SHUTDOWNED_IN_RECOVERY`: a standby that was stopped.
    ShutdownedInRecovery = 2,
    /// `DB_SHUTDOWNING`: the shutdown checkpoint was on its way.
    Shutdowning = 3,
    /// `DB_IN_CRASH_RECOVERY`.
    InCrashRecovery = 4,
    /// `DB_IN_ARCHIVE_RECOVERY`.
    InArchiveRecovery = 5,
    /// `DB_IN_PRODUCTION`.
    InProduction = 6,
}

impl DbState {
    const ALL: [DbState; 7] = [
        DbState::Startup,
        DbState::Shutdowned,
        DbState::ShutdownedInRecovery,
        DbState::Shutdowning,
        DbState::InCrashRecovery,
        DbState::InArchiveRecovery,
        DbState::InProduction,
    ];

    /// From the number in the file.
    pub fn from_number(n: u32) -> Option<DbState> {
        DbState::ALL.get(n as usize).copied()
    }
}

impl fmt::Display for DbState {
    /// As pg_controldata names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DbState::Startup => "starting up",
            DbState::Shutdowned => "shut down",
            DbState::ShutdownedInRecovery => "shut down in recovery",
            DbState::Shutdowning => "shutting down",
            DbState::InCrashRecovery => "in crash recovery",
            DbState::InArchiveRecovery => "in archive recovery",
            DbState::InProduction => "in production",
        })
    }
}

/// The fields of `pg_control` in the order of the file (`ControlFileData`).
#[derive(Debug, Clone)]
#[doc(alias = "ControlFileData")]
pub struct ControlFile {
    /// The major that wrote it. Stands for `pg_control_version` and `catalog_version_no`.
    pub format: &'static WalFormat,
    /// Offset 0: ties WAL segments to the cluster.
    pub system_identifier: u64,
    /// Offset 16.
    pub state: DbState,
    /// Offset 24: when the file was last written, seconds since 1970.
    pub time: i64,
    /// Offset 32: start of the last checkpoint record.
    pub check_point: Lsn,
    /// Offset 40: what that record says.
    pub check_point_copy: CheckPoint,
    /// Offset 128: counter for the fake LSNs of unlogged relations.
    pub unlogged_lsn: Lsn,
    /// Offset 136: archive recovery must come this far before the directory is consistent.
    pub min_recovery_point: Lsn,
    /// Offset 144.
    pub min_recovery_point_tli: TimeLineId,
    /// Offset 152: redo pointer of the backup whose end is still to be reached.
    pub backup_start_point: Lsn,
    /// Offset 160: known in advance only for backups taken from a standby.
    pub backup_end_point: Lsn,
    /// Offset 168: a BACKUP_END record must be seen.
    pub backup_end_required: bool,
    /// Offset 172: 0 minimal, 1 replica, 2 logical.
    pub wal_level: i32,
    /// Offset 176.
    pub wal_log_hints: bool,
    /// Offset 180.
    pub max_connections: i32,
    /// Offset 184.
    pub max_worker_processes: i32,
    /// Offset 188.
    pub max_wal_senders: i32,
    /// Offset 192.
    pub max_prepared_xacts: i32,
    /// Offset 196.
    pub max_locks_per_xact: i32,
    /// Offset 200.
    pub track_commit_timestamp: bool,
    /// Offset 204: always 8 here.
    pub max_align: u32,
    /// Offset 208: always 1234567.0.
    pub float_format: f64,
    /// Offset 216: bytes in a block of a relation.
    pub blcksz: u32,
    /// Offset 220: blocks in a segment of a relation.
    pub relseg_size: u32,
    /// Offset 224: bytes in a WAL page.
    pub xlog_blcksz: u32,
    /// Offset 228: bytes in a WAL segment.
    pub xlog_seg_size: u32,
    /// Offset 232.
    pub name_data_len: u32,
    /// Offset 236.
    pub index_max_keys: u32,
    /// Offset 240.
    pub toast_max_chunk_size: u32,
    /// Offset 244.
    pub loblksize: u32,
    /// Offset 248.
    pub float8_by_val: bool,
    /// Offset 252: 0 means that pages carry no checksums.
    pub data_checksum_version: u32,
    /// Offset 256.
    pub mock_authentication_nonce: [u8; NONCE_BYTES],
}

/// PostgreSQL's name.
pub type ControlFileData = ControlFile;

impl ControlFile {
    /// Reads the file and makes the server's checks, versions first because they fix the layout.
    pub fn parse(bytes: &[u8]) -> Result<ControlFile, ControlError> {
        if bytes.len() != CONTROL_FILE_BYTES {
            return Err(ControlError::Length(bytes.len()));
        }
        let mut c = Cursor::new("ControlFileData", bytes);
        let system_identifier = c.u64("system_identifier")?;
        let control_version = c.u32("pg_control_version")?;
        let catalog_version = c.u32("catalog_version_no")?;
        let format =
            WalFormat::from_control(control_version, catalog_version).ok_or_else(|| {
                ControlError::Version {
                    control_version,
                    catalog_version,
                    supported: WalFormat::supported(),
                }
            })?;
        check_crc(bytes, format)?;
        let file = read_fields(&mut c, system_identifier, format)?;
        file.check()?;
        Ok(file)
    }

    /// The first byte that no field and no checksum covers and that is not zero. Servers write
    /// zeros there and never look: the fields are good, the sector may not be.
    pub fn first_stray_byte(&self, bytes: &[u8]) -> Option<usize> {
        let covered = self.format.control_crc_offset + CRC_BYTES;
        let rest = bytes.iter().skip(covered).position(|&byte| byte != 0);
        rest.map(|at| covered + at)
    }

    /// Compares with what this program is built for.
    fn check(&self) -> Result<(), ControlError> {
        if self.float_format != FLOAT_FORMAT {
            return Err(ControlError::FloatFormat(self.float_format));
        }
        let constants = [
            ("maxAlign", self.max_align, MAX_ALIGN),
            ("blcksz", self.blcksz, BLOCK_BYTES as u32),
            ("relseg_size", self.relseg_size, RELSEG_BLOCKS),
            ("xlog_blcksz", self.xlog_blcksz, BLOCK_BYTES as u32),
        ];
        for (field, found, expected) in constants {
            if found != expected {
                return Err(ControlError::Constant {
                    field,
                    found,
                    expected,
                });
            }
        }
        let size = self.xlog_seg_size;
        if !size.is_power_of_two() || !WAL_SEGMENT_BYTES.contains(&size) {
            return Err(ControlError::WalSegmentSize(size));
        }
        Ok(())
    }

    /// The file as the server writes it (`update_controlfile`,
    /// `src/common/controldata_utils.c`), padding and rest zero. The caller sets `time`.
    pub fn to_bytes(&self) -> [u8; CONTROL_FILE_BYTES] {
        let mut out = [0; CONTROL_FILE_BYTES];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.system_identifier.to_le_bytes());
        put(8, &self.format.control_version.to_le_bytes());
        put(12, &self.format.catalog_version.to_le_bytes());
        put(16, &(self.state as u32).to_le_bytes());
        put(24, &self.time.to_le_bytes());
        put(32, &self.check_point.0.to_le_bytes());
        put(CHECK_POINT_COPY, &self.check_point_copy.to_bytes());
        put(128, &self.unlogged_lsn.0.to_le_bytes());
        put(136, &self.min_recovery_point.0.to_le_bytes());
        put(144, &self.min_recovery_point_tli.0.to_le_bytes());
        put(152, &self.backup_start_point.0.to_le_bytes());
        put(160, &self.backup_end_point.0.to_le_bytes());
        put(168, &[u8::from(self.backup_end_required)]);
        put(172, &self.wal_level.to_le_bytes());
        put(176, &[u8::from(self.wal_log_hints)]);
        put(180, &self.max_connections.to_le_bytes());
        put(184, &self.max_worker_processes.to_le_bytes());
        put(188, &self.max_wal_senders.to_le_bytes());
        put(192, &self.max_prepared_xacts.to_le_bytes());
        put(196, &self.max_locks_per_xact.to_le_bytes());
        put(200, &[u8::from(self.track_commit_timestamp)]);
        put(204, &self.max_align.to_le_bytes());
        put(208, &self.float_format.to_le_bytes());
        put(216, &self.blcksz.to_le_bytes());
        put(220, &self.relseg_size.to_le_bytes());
        put(224, &self.xlog_blcksz.to_le_bytes());
        put(228, &self.xlog_seg_size.to_le_bytes());
        put(232, &self.name_data_len.to_le_bytes());
        put(236, &self.index_max_keys.to_le_bytes());
        put(240, &self.toast_max_chunk_size.to_le_bytes());
        put(244, &self.loblksize.to_le_bytes());
        put(248, &[u8::from(self.float8_by_val)]);
        put(252, &self.data_checksum_version.to_le_bytes());
        put(256, &self.mock_authentication_nonce);
        let crc_at = self.format.control_crc_offset;
        let crc = crc32c::crc32c(&out[..crc_at]);
        out[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Pages carry checksums (`DataChecksumsEnabled`).
    pub fn data_checksums(&self) -> bool {
        self.data_checksum_version != 0
    }
}

/// CRC-32C of everything before the CRC field, padding included.
fn check_crc(bytes: &[u8], format: &WalFormat) -> Result<(), ControlError> {
    let (covered, rest) = bytes.split_at(format.control_crc_offset);
    let stored = Cursor::new("ControlFileData", rest).u32("crc")?;
    let computed = crc32c::crc32c(covered);
    if stored != computed {
        return Err(ControlError::Crc { stored, computed });
    }
    Ok(())
}

/// Reads on after the two versions.
fn read_fields(
    c: &mut Cursor<'_>,
    system_identifier: u64,
    format: &'static WalFormat,
) -> Result<ControlFile, ControlError> {
    let state = c.u32("state")?;
    let state = DbState::from_number(state).ok_or(ControlError::State(state))?;
    c.skip("padding", 4)?;
    // Struct expressions are evaluated in the order they are written: that of the file.
    Ok(ControlFile {
        format,
        system_identifier,
        state,
        time: c.i64("time")?,
        check_point: Lsn(c.u64("checkPoint")?),
        check_point_copy: CheckPoint::parse(c.bytes("checkPointCopy", CheckPoint::BYTES)?)?,
        unlogged_lsn: Lsn(c.u64("unloggedLSN")?),
        min_recovery_point: Lsn(c.u64("minRecoveryPoint")?),
        min_recovery_point_tli: TimeLineId(padded(c, 4, |c| c.u32("minRecoveryPointTLI"))?),
        backup_start_point: Lsn(c.u64("backupStartPoint")?),
        backup_end_point: Lsn(c.u64("backupEndPoint")?),
        backup_end_required: padded(c, 3, |c| c.bool("backupEndRequired"))?,
        wal_level: c.i32("wal_level")?,
        wal_log_hints: padded(c, 3, |c| c.bool("wal_log_hints"))?,
        max_connections: c.i32("MaxConnections")?,
        max_worker_processes: c.i32("max_worker_processes")?,
        max_wal_senders: c.i32("max_wal_senders")?,
        max_prepared_xacts: c.i32("max_prepared_xacts")?,
        max_locks_per_xact: c.i32("max_locks_per_xact")?,
        track_commit_timestamp: padded(c, 3, |c| c.bool("track_commit_timestamp"))?,
        max_align: c.u32("maxAlign")?,
        float_format: c.f64("floatFormat")?,
        blcksz: c.u32("blcksz")?,
        relseg_size: c.u32("relseg_size")?,
        xlog_blcksz: c.u32("xlog_blcksz")?,
        xlog_seg_size: c.u32("xlog_seg_size")?,
        name_data_len: c.u32("nameDataLen")?,
        index_max_keys: c.u32("indexMaxKeys")?,
        toast_max_chunk_size: c.u32("toast_max_chunk_size")?,
        loblksize: c.u32("loblksize")?,
        float8_by_val: padded(c, 3, |c| c.bool("float8ByVal"))?,
        data_checksum_version: c.u32("data_checksum_version")?,
        mock_authentication_nonce: {
            let bytes = c.bytes("mock_authentication_nonce", NONCE_BYTES)?;
            bytes
                .try_into()
                .expect("bytes() returns the length asked for")
        },
    })
}

/// Reads a field and the padding that follows it.
fn padded<'a, T>(
    c: &mut Cursor<'a>,
    padding_bytes: usize,
    read: impl FnOnce(&mut Cursor<'a>) -> Result<T, ShortRead>,
) -> Result<T, ShortRead> {
    let value = read(c)?;
    c.skip("padding", padding_bytes)?;
    Ok(value)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const CRC_AT: usize = 288;

    /// A control file in which every field has bytes of its own, beside those that are checked.
    pub(crate) fn sample() -> [u8; CONTROL_FILE_BYTES] {
        let mut bytes = [0u8; CONTROL_FILE_BYTES];
        for (i, b) in bytes[..CRC_AT].iter_mut().enumerate() {
            *b = match i {
                56 | 168 | 176 | 200 | 248 => 1,
                20..24 | 57..60 | 100..104 | 124..128 | 148..152 | 169..172 => 0,
                177..180 | 201..204 | 249..252 => 0,
                // Times that a calendar can print.
                28..32 | 108..112 => 0,
                _ => i as u8 | 0x40,
            };
        }
        put(&mut bytes, 8, 1300);
        put(&mut bytes, 12, 202_209_061);
        put(&mut bytes, 16, DbState::InProduction as u32);
        put(&mut bytes, 204, 8);
        bytes[208..216].copy_from_slice(&1_234_567.0f64.to_le_bytes());
        put(&mut bytes, 216, 8192);
        put(&mut bytes, 220, 131_072);
        put(&mut bytes, 224, 8192);
        put(&mut bytes, 228, 16 << 20);
        seal(&mut bytes);
        bytes
    }

    fn put(bytes: &mut [u8], at: usize, value: u32) {
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn seal(bytes: &mut [u8]) {
        let crc = crc32c::crc32c(&bytes[..CRC_AT]);
        put(bytes, CRC_AT, crc);
    }

    fn error_with(at: usize, value: u32) -> ControlError {
        let mut bytes = sample();
        put(&mut bytes, at, value);
        seal(&mut bytes);
        ControlFile::parse(&bytes).unwrap_err()
    }

    #[test]
    fn every_field_survives_a_round_trip() {
        let bytes = sample();
        let file = ControlFile::parse(&bytes).unwrap();
        assert_eq!(file.to_bytes(), bytes);
        assert_eq!(file.state, DbState::InProduction);
        assert_eq!(file.mock_authentication_nonce[0], 0x40);
        assert_eq!(file.check_point_copy.to_bytes(), bytes[40..128]);
        assert!(file.data_checksums());
    }

    #[test]
    fn every_other_length_is_refused() {
        let bytes = sample();
        for len in 0..CONTROL_FILE_BYTES {
            let found = ControlFile::parse(&bytes[..len]).unwrap_err();
            assert_eq!(found, ControlError::Length(len));
        }
        let long = [bytes.as_slice(), &[0]].concat();
        assert!(ControlFile::parse(&long).is_err());
    }

    #[test]
    fn every_flipped_byte_before_the_end_of_the_crc_is_noticed() {
        for at in 0..CRC_AT + 4 {
            let mut bytes = sample();
            bytes[at] ^= 0x10;
            match ControlFile::parse(&bytes).unwrap_err() {
                ControlError::Version { .. } => assert!((8..16).contains(&at), "{at}"),
                ControlError::Crc { .. } => {}
                other => panic!("byte {at}: {other}"),
            }
        }
    }

    #[test]
    fn a_right_crc_does_not_excuse_a_wrong_value() {
        let constant = |field, found, expected| ControlError::Constant {
            field,
            found,
            expected,
        };
        assert_eq!(error_with(16, 7), ControlError::State(7));
        assert_eq!(error_with(204, 4), constant("maxAlign", 4, 8));
        assert!(matches!(error_with(208, 1), ControlError::FloatFormat(_)));
        assert_eq!(error_with(216, 4096), constant("blcksz", 4096, 8192));
        assert_eq!(error_with(220, 0), constant("relseg_size", 0, 131_072));
        assert_eq!(error_with(224, 0), constant("xlog_blcksz", 0, 8192));
        for size in [0, 1 << 19, (16 << 20) + 1, 1 << 31] {
            assert_eq!(error_with(228, size), ControlError::WalSegmentSize(size));
        }
    }

    #[test]
    fn an_unknown_version_names_the_supported_ones() {
        let message = error_with(12, 202_107_181).to_string();
        assert!(message.contains("catalog version 202107181"), "{message}");
        assert!(message.ends_with(&WalFormat::supported()), "{message}");
    }
}
