//! pg_control, field by field, as PostgreSQL 14 to 17 lay it out.

use std::path::Path;

/// Name, offset and size of every field. Padding is left out: it is compared with the rest.
const FIELDS: &[(&str, usize, usize)] = &[
    ("system_identifier", 0, 8),
    ("pg_control_version", 8, 4),
    ("catalog_version_no", 12, 4),
    ("state", 16, 4),
    ("time", 24, 8),
    ("checkPoint", 32, 8),
    ("checkPointCopy.redo", 40, 8),
    ("checkPointCopy.ThisTimeLineID", 48, 4),
    ("checkPointCopy.PrevTimeLineID", 52, 4),
    ("checkPointCopy.fullPageWrites", 56, 1),
    ("checkPointCopy.nextXid", 64, 8),
    ("checkPointCopy.nextOid", 72, 4),
    ("checkPointCopy.nextMulti", 76, 4),
    ("checkPointCopy.nextMultiOffset", 80, 4),
    ("checkPointCopy.oldestXid", 84, 4),
    ("checkPointCopy.oldestXidDB", 88, 4),
    ("checkPointCopy.oldestMulti", 92, 4),
    ("checkPointCopy.oldestMultiDB", 96, 4),
    ("checkPointCopy.time", 104, 8),
    ("checkPointCopy.oldestCommitTsXid", 112, 4),
    ("checkPointCopy.newestCommitTsXid", 116, 4),
    ("checkPointCopy.oldestActiveXid", 120, 4),
    ("unloggedLSN", 128, 8),
    ("minRecoveryPoint", 136, 8),
    ("minRecoveryPointTLI", 144, 4),
    ("backupStartPoint", 152, 8),
    ("backupEndPoint", 160, 8),
    ("backupEndRequired", 168, 1),
    ("wal_level", 172, 4),
    ("wal_log_hints", 176, 1),
    ("MaxConnections", 180, 4),
    ("max_worker_processes", 184, 4),
    ("max_wal_senders", 188, 4),
    ("max_prepared_xacts", 192, 4),
    ("max_locks_per_xact", 196, 4),
    ("track_commit_timestamp", 200, 1),
    ("data_checksum_version", 252, 4),
    ("mock_authentication_nonce", 256, 32),
    ("crc", 288, 4),
];

/// Fields that may differ: the reference still runs when its directory is taken while pgredo
/// leaves a clean shutdown, and three are readings of a clock or made from them.
const FREE: &[&str] = &["state", "time", "checkPointCopy.time", "crc"];

/// `state` of a cluster that was shut down.
const SHUT_DOWN: u32 = 1;

/// Size of the file.
const CONTROL_FILE_BYTES: usize = 8192;

/// A control file.
#[derive(Debug)]
pub struct Control {
    bytes: Vec<u8>,
}

impl Control {
    /// Reads the one of a data directory.
    pub fn read(data: &Path) -> Control {
        let path = data.join("global/pg_control");
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert_eq!(
            bytes.len(),
            CONTROL_FILE_BYTES,
            "size of {}",
            path.display()
        );
        Control { bytes }
    }

    fn field(&self, name: &str) -> &[u8] {
        let found = FIELDS.iter().find(|field| field.0 == name);
        let (_, offset, size) = found.unwrap_or_else(|| panic!("no field {name}"));
        &self.bytes[*offset..offset + size]
    }

    /// LSN of the last checkpoint record.
    pub fn checkpoint(&self) -> u64 {
        u64::from_le_bytes(self.field("checkPoint").try_into().expect("eight bytes"))
    }

    /// LSN from which the last checkpoint wants WAL to be replayed.
    pub fn redo(&self) -> u64 {
        u64::from_le_bytes(
            self.field("checkPointCopy.redo")
                .try_into()
                .expect("eight bytes"),
        )
    }

    /// Name of the WAL segment that holds an LSN, on the timeline of the last checkpoint.
    pub fn segment_name(&self, lsn: u64) -> String {
        let timeline = self.field("checkPointCopy.ThisTimeLineID");
        let timeline = u32::from_le_bytes(timeline.try_into().expect("four bytes"));
        let segments_per_id = (1 << 32) / self.segment_bytes();
        let segment = lsn / self.segment_bytes();
        format!(
            "{timeline:08X}{:08X}{:08X}",
            segment / segments_per_id,
            segment % segments_per_id
        )
    }

    /// Size of a WAL segment in bytes.
    pub fn segment_bytes(&self) -> u64 {
        u64::from(u32::from_le_bytes(
            self.bytes[228..232].try_into().expect("four bytes"),
        ))
    }

    /// What is wrong with `self`, which pgredo left, given what PostgreSQL left.
    pub fn differences(&self, reference: &Control) -> Vec<String> {
        let mut found = Vec::new();
        for (name, ..) in FIELDS.iter().filter(|field| !FREE.contains(&field.0)) {
            let (theirs, ours) = (reference.field(name), self.field(name));
            if theirs != ours {
                found.push(format!(
                    "{name}: PostgreSQL {}, pgredo {}",
                    hex(theirs),
                    hex(ours)
                ));
            }
        }
        for (offset, (theirs, ours)) in reference.bytes.iter().zip(&self.bytes).enumerate() {
            let is_named =
                |field: &&(_, usize, usize)| (field.1..field.1 + field.2).contains(&offset);
            if theirs != ours && !FIELDS.iter().any(|field| is_named(&field)) {
                found.push(format!(
                    "byte {offset}: PostgreSQL {theirs:#04x}, pgredo {ours:#04x}"
                ));
            }
        }
        let state = u32::from_le_bytes(self.field("state").try_into().expect("four bytes"));
        if state != SHUT_DOWN {
            found.push(format!("state: {state} is not a clean shutdown"));
        }
        if crc32c::crc32c(&self.bytes[..288]).to_le_bytes() != *self.field("crc") {
            found.push("crc: does not match".to_owned());
        }
        found
    }
}

/// A little-endian field as one number.
fn hex(field: &[u8]) -> String {
    field
        .iter()
        .rev()
        .fold("0x".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}
