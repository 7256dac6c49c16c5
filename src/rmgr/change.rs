//! Changes: everything a record does that is not a change to a page of a relation.

use thiserror::Error;

use crate::types::{
    BlockNumber, CheckPoint, ForkNumber, Lsn, MultiXactId, MultiXactOffset, Oid, RelFileLocator,
    RepOriginId, TimeLineId, TransactionId,
};

/// One change, as the record asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change<'w> {
    /// Storage CREATE: the first segment of a fork, if it is missing.
    CreateFork {
        /// The relation.
        locator: RelFileLocator,
        /// The fork.
        fork: ForkNumber,
    },
    /// Storage TRUNCATE.
    TruncateRelation {
        /// The relation.
        locator: RelFileLocator,
        /// New length of the main fork, in blocks.
        blocks: BlockNumber,
        /// `SMGR_TRUNCATE_HEAP`.
        main: bool,
        /// `SMGR_TRUNCATE_VM`.
        vm: bool,
        /// `SMGR_TRUNCATE_FSM`.
        fsm: bool,
    },
    /// All forks and segments of a relation go (commit or abort).
    DropRelation {
        /// The relation.
        locator: RelFileLocator,
    },
    /// CREATE DATABASE by copying the files of `src`.
    CopyDatabase {
        /// The new database.
        db: Oid,
        /// Its tablespace.
        spc: Oid,
        /// The template.
        src_db: Oid,
        /// The template's tablespace.
        src_spc: Oid,
    },
    /// CREATE DATABASE with the WAL_LOG strategy: the directory and its PG_VERSION.
    CreateDatabase {
        /// The new database.
        db: Oid,
        /// Its tablespace.
        spc: Oid,
    },
    /// DROP DATABASE: its directory in each tablespace.
    DropDatabase {
        /// The database.
        db: Oid,
        /// The tablespaces.
        spcs: OidList<'w>,
    },
    /// CREATE TABLESPACE.
    CreateTablespace {
        /// The tablespace.
        spc: Oid,
        /// Its location, empty for one inside the data directory.
        path: &'w [u8],
    },
    /// DROP TABLESPACE.
    DropTablespace {
        /// The tablespace.
        spc: Oid,
    },
    /// A relation map is replaced.
    RelationMap {
        /// The database, 0 for the shared map.
        db: Oid,
        /// Its tablespace.
        spc: Oid,
        /// The map file's contents; magic and CRC are made anew.
        map: &'w [u8],
    },
    /// pg_xact: a transaction and its subtransactions are finished.
    XidStatus {
        /// The transaction; for COMMIT PREPARED the prepared one.
        xid: TransactionId,
        /// Its committed or aborted subtransactions.
        subxids: XidList<'w>,
        /// How they ended.
        status: XidStatus,
    },
    /// pg_commit_ts, if tracking is on.
    CommitTimestamp(CommitTimestamp<'w>),
    /// An SLRU page is made of zeros.
    SlruZeroPage {
        /// Which SLRU.
        slru: SlruKind,
        /// The page.
        page: u64,
    },
    /// CLOG TRUNCATE: segments before `page` go.
    TruncateClog {
        /// The cutoff page.
        page: u64,
        /// Oldest transaction whose status is kept.
        oldest_xid: TransactionId,
        /// Its database.
        oldest_xid_db: Oid,
    },
    /// COMMIT_TS TRUNCATE: segments before `page` go.
    TruncateCommitTs {
        /// The cutoff page.
        page: u64,
        /// Oldest transaction whose timestamp is kept.
        oldest_xid: TransactionId,
    },
    /// A multixact is created.
    CreateMultiXact(CreateMultiXact<'w>),
    /// MultiXact TRUNCATE_ID.
    TruncateMultiXact(TruncateMultiXact),
    /// PREPARE TRANSACTION: the contents of its state file, without the CRC.
    Prepare {
        /// The transaction.
        xid: TransactionId,
        /// `xl_xact_prepare` and what follows it.
        data: &'w [u8],
    },
    /// COMMIT PREPARED or ROLLBACK PREPARED: the state file goes.
    FinishPrepared {
        /// The transaction.
        xid: TransactionId,
    },
    /// A replication origin has progressed.
    AdvanceOrigin {
        /// The origin.
        origin: RepOriginId,
        /// Position at the remote node.
        remote_lsn: Lsn,
        /// Take the position even if it is not ahead (ReplicationOrigin SET).
        force: bool,
    },
    /// A replication origin is dropped.
    DropOrigin {
        /// The origin.
        origin: RepOriginId,
    },
    /// Heap2 REWRITE: a piece of a logical rewrite mapping file.
    RewriteMapping {
        /// `xl_heap_rewrite_mapping` and the mappings.
        data: &'w [u8],
    },
    /// The relcache init files of a database and the shared one go (a commit that changed a
    /// nailed catalog).
    RelcacheInitFile {
        /// The database.
        db: Oid,
        /// Its tablespace.
        spc: Oid,
    },
    /// NEXTOID.
    NextOid(Oid),
    /// CHECKPOINT_SHUTDOWN.
    ShutdownCheckpoint(CheckPoint),
    /// CHECKPOINT_ONLINE.
    OnlineCheckpoint(CheckPoint),
    /// FPW_CHANGE.
    FullPageWrites(bool),
    /// PARAMETER_CHANGE.
    Parameters(Parameters),
    /// END_OF_RECOVERY.
    EndOfRecovery {
        /// When, in microseconds since 2000-01-01.
        time: i64,
        /// The timeline that begins.
        this_tli: TimeLineId,
        /// The timeline that ends.
        prev_tli: TimeLineId,
    },
    /// BACKUP_END.
    BackupEnd {
        /// Where the backup began.
        start: Lsn,
    },
    /// OVERWRITE_CONTRECORD.
    OverwriteContrecord {
        /// The record that was given up.
        overwritten: Lsn,
    },
}

/// How a transaction ended, as pg_xact stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum XidStatus {
    /// `TRANSACTION_STATUS_COMMITTED`.
    Committed = 1,
    /// `TRANSACTION_STATUS_ABORTED`.
    Aborted = 2,
}

/// The SLRUs that WAL changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SlruKind {
    /// `pg_xact`.
    Clog,
    /// `pg_multixact/offsets`.
    MultiXactOffsets,
    /// `pg_multixact/members`.
    MultiXactMembers,
    /// `pg_commit_ts`.
    CommitTs,
}

/// The commit timestamp of a transaction and its subtransactions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitTimestamp<'w> {
    /// The transaction.
    pub xid: TransactionId,
    /// Its subtransactions.
    pub subxids: XidList<'w>,
    /// Microseconds since 2000-01-01.
    pub time: i64,
    /// Where it came from.
    pub origin: RepOriginId,
}

/// A new multixact (`xl_multixact_create`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(alias = "xl_multixact_create")]
pub struct CreateMultiXact<'w> {
    /// Its id.
    pub id: MultiXactId,
    /// Where its members start.
    pub offset: MultiXactOffset,
    /// Its members.
    pub members: MemberList<'w>,
}

/// `xl_multixact_truncate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "xl_multixact_truncate")]
pub struct TruncateMultiXact {
    /// Database with the oldest multixact.
    pub oldest_multi_db: Oid,
    /// First multixact removed.
    pub start_trunc_off: MultiXactId,
    /// First multixact kept.
    pub end_trunc_off: MultiXactId,
    /// First member removed.
    pub start_trunc_memb: MultiXactOffset,
    /// First member kept.
    pub end_trunc_memb: MultiXactOffset,
}

/// What PARAMETER_CHANGE copies into pg_control (`xl_parameter_change`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[doc(alias = "xl_parameter_change")]
pub struct Parameters {
    /// max_connections.
    pub max_connections: i32,
    /// max_worker_processes.
    pub max_worker_processes: i32,
    /// max_wal_senders.
    pub max_wal_senders: i32,
    /// max_prepared_transactions.
    pub max_prepared_xacts: i32,
    /// max_locks_per_transaction.
    pub max_locks_per_xact: i32,
    /// wal_level as pg_control numbers it: 0 minimal, 1 replica, 2 logical.
    pub wal_level: i32,
    /// wal_log_hints.
    pub wal_log_hints: bool,
    /// track_commit_timestamp.
    pub track_commit_timestamp: bool,
}

/// A list whose bytes are not a whole number of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{bytes} bytes are not a list of elements of {element_bytes} bytes")]
pub struct ListError {
    /// Length of the list.
    pub bytes: usize,
    /// Length of one element.
    pub element_bytes: usize,
}

macro_rules! list {
    ($(#[$doc:meta])* $name:ident, $item:ty, $bytes:literal, $read:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct $name<'w>(&'w [u8]);

        impl<'w> $name<'w> {
            /// Bytes of one element.
            pub const ELEMENT_BYTES: usize = $bytes;

            /// A view of `bytes`, which must be a whole number of elements.
            pub fn new(bytes: &'w [u8]) -> Result<Self, ListError> {
                if bytes.len() % $bytes != 0 {
                    return Err(ListError { bytes: bytes.len(), element_bytes: $bytes });
                }
                Ok($name(bytes))
            }

            /// Number of elements.
            pub fn len(&self) -> usize {
                self.0.len() / $bytes
            }

            /// True for a list without elements.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }

            /// The elements in their order.
            pub fn iter(&self) -> impl DoubleEndedIterator<Item = $item> + ExactSizeIterator + 'w {
                self.0.chunks_exact($bytes).map($read)
            }
        }
    };
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(
        bytes[..4]
            .try_into()
            .expect("elements have at least four bytes"),
    )
}

list! {
    /// Transaction ids, straight from the record.
    XidList, TransactionId, 4, |b: &[u8]| TransactionId(word(b))
}
list! {
    /// Object ids, straight from the record.
    OidList, Oid, 4, |b: &[u8]| Oid(word(b))
}
list! {
    /// Members of a multixact, straight from the record.
    MemberList, MultiXactMember, 8, |b: &[u8]| MultiXactMember {
        xid: TransactionId(word(b)),
        status: word(&b[4..]),
    }
}

/// A member of a multixact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MultiXactMember {
    /// The transaction.
    pub xid: TransactionId,
    /// `MultiXactStatus`, 0 to 5.
    pub status: u32,
}
