//! Where a page lives: tablespace, database, relation, fork, block.

use std::fmt;

use super::Oid;

/// A block within a fork (`BlockNumber`).
pub type BlockNumber = u32;
/// A line pointer on a page, from 1 (`OffsetNumber`).
pub type OffsetNumber = u16;

/// `InvalidBlockNumber`.
pub const INVALID_BLOCK: BlockNumber = u32::MAX;
/// `DEFAULTTABLESPACE_OID`: `base/`.
pub const DEFAULT_TABLESPACE: Oid = Oid(1663);
/// `GLOBALTABLESPACE_OID`: `global/`.
pub const GLOBAL_TABLESPACE: Oid = Oid(1664);

/// The physical name of a relation (`RelFileLocator`, `RelFileNode` before 16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[doc(alias = "RelFileNode")]
pub struct RelFileLocator {
    /// Tablespace.
    pub spc: Oid,
    /// Database; 0 for shared relations.
    pub db: Oid,
    /// Relation file number.
    pub rel: Oid,
}

impl fmt::Display for RelFileLocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.spc, self.db, self.rel)
    }
}

/// One of the four file families of a relation (`ForkNumber`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum ForkNumber {
    /// The data.
    #[default]
    Main = 0,
    /// The free space map.
    Fsm = 1,
    /// The visibility map.
    Vm = 2,
    /// What an unlogged relation is reset to.
    Init = 3,
}

impl ForkNumber {
    /// All forks in PostgreSQL's order.
    pub const ALL: [ForkNumber; 4] = [
        ForkNumber::Main,
        ForkNumber::Fsm,
        ForkNumber::Vm,
        ForkNumber::Init,
    ];

    /// From the number WAL carries.
    pub fn from_number(n: u32) -> Option<ForkNumber> {
        ForkNumber::ALL.get(n as usize).copied()
    }

    /// The name pg_waldump prints (`forkNames`, `src/common/relpath.c`).
    pub fn name(self) -> &'static str {
        match self {
            ForkNumber::Main => "main",
            ForkNumber::Fsm => "fsm",
            ForkNumber::Vm => "vm",
            ForkNumber::Init => "init",
        }
    }

    /// What follows the relation number in a file name.
    pub fn file_suffix(self) -> &'static str {
        match self {
            ForkNumber::Main => "",
            ForkNumber::Fsm => "_fsm",
            ForkNumber::Vm => "_vm",
            ForkNumber::Init => "_init",
        }
    }
}

/// One page of one fork (`BufferTag`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "BufferTag")]
pub struct BlockTag {
    /// The relation.
    pub locator: RelFileLocator,
    /// The fork.
    pub fork: ForkNumber,
    /// The block within the fork.
    pub block: BlockNumber,
}

impl fmt::Display for BlockTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rel {} fork {} blk {}",
            self.locator,
            self.fork.name(),
            self.block
        )
    }
}
