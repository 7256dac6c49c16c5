//! Paths of relation files below the data directory.

use std::fmt;

use super::WalFormat;
use crate::types::{DEFAULT_TABLESPACE, ForkNumber, GLOBAL_TABLESPACE, RelFileLocator};

/// The first segment of a fork of a permanent relation, relative to the data directory
/// (`relpathperm`, `src/common/relpath.c`): `base/5/16384_fsm`. Further segments append `.1`
/// and so on.
#[derive(Debug, Clone, Copy)]
#[doc(alias = "relpathperm")]
pub struct RelationPath {
    /// Names the directory of this major inside other tablespaces.
    pub format: &'static WalFormat,
    /// The relation.
    pub locator: RelFileLocator,
    /// The fork.
    pub fork: ForkNumber,
}

impl fmt::Display for RelationPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RelFileLocator { spc, db, rel } = self.locator;
        match spc {
            // Shared relations have no directory per database, whatever db says.
            GLOBAL_TABLESPACE => f.write_str("global")?,
            DEFAULT_TABLESPACE => write!(f, "base/{db}")?,
            _ => {
                let version = self.format.tablespace_directory();
                write!(f, "pg_tblspc/{spc}/{version}/{db}")?;
            }
        }
        write!(f, "/{rel}{}", self.fork.file_suffix())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Oid;

    fn path(spc: u32, db: u32, fork: ForkNumber) -> String {
        let locator = RelFileLocator {
            spc: Oid(spc),
            db: Oid(db),
            rel: Oid(16384),
        };
        let format = WalFormat::from_page_magic(0xD110).unwrap();
        RelationPath {
            format,
            locator,
            fork,
        }
        .to_string()
    }

    #[test]
    fn in_each_kind_of_tablespace() {
        assert_eq!(path(1663, 5, ForkNumber::Main), "base/5/16384");
        assert_eq!(path(1664, 0, ForkNumber::Vm), "global/16384_vm");
        assert_eq!(
            path(16398, 5, ForkNumber::Init),
            "pg_tblspc/16398/PG_15_202209061/5/16384_init"
        );
    }
}
