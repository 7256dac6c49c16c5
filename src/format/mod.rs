//! What each PostgreSQL major writes differently, as named facts.
//!
//! There is one static [`WalFormat`] per major, chosen by the magic of a WAL page and
//! cross-checked with the control file. Code elsewhere asks for a fact, never for a number:
//! outside this folder [`PgVersion`] appears in messages and tests only.

mod relpath;
mod v15;

use std::fmt;

use crate::types::RmgrId;

pub use relpath::RelationPath;

/// A PostgreSQL major version, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PgVersion(pub u32);

impl fmt::Display for PgVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {}", self.0)
    }
}

/// How the bits of `bimg_info` in a block image header are assigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageBits {
    /// 15 and later: hole, apply, then one bit for each compression method.
    ByMethod,
}

/// What pages a visibility map is extended with while redo clears a bit it did not register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmExtension {
    /// Every page added is written as an initialised page (14, 15).
    InitialisedPages,
}

/// The facts of one major.
#[derive(Debug)]
pub struct WalFormat {
    /// For messages.
    pub version: PgVersion,
    /// `XLOG_PAGE_MAGIC`.
    pub page_magic: u16,
    /// `PG_CONTROL_VERSION`.
    pub control_version: u32,
    /// `CATALOG_VERSION_NO`.
    pub catalog_version: u32,
    /// Offset of the CRC in `pg_control`, in bytes; everything before it is covered.
    pub control_crc_offset: usize,
    /// Meaning of the image flag byte.
    pub image_bits: ImageBits,
    /// Extensions may have resource managers, 128 to 255.
    pub custom_rmgrs: bool,
    /// Bytes of `pg_filenode.map`.
    pub relmap_bytes: usize,
    /// Offset of the CRC in `pg_filenode.map`.
    pub relmap_crc_offset: usize,
    /// Pruning cuts trailing unused line pointers off (`PageRepairFragmentation`).
    pub prune_truncates_line_pointers: bool,
    /// What an unregistered visibility-map clear extends the map with.
    pub vm_extension: VmExtension,
}

impl WalFormat {
    /// All majors that can be replayed, oldest first.
    pub const ALL: [&'static WalFormat; 1] = [&v15::FORMAT];

    /// The major whose WAL pages carry `magic`.
    pub fn from_page_magic(magic: u16) -> Option<&'static WalFormat> {
        WalFormat::ALL.into_iter().find(|f| f.page_magic == magic)
    }

    /// The major whose control file carries these two versions.
    pub fn from_control(control_version: u32, catalog_version: u32) -> Option<&'static WalFormat> {
        WalFormat::ALL
            .into_iter()
            .find(|f| f.control_version == control_version && f.catalog_version == catalog_version)
    }

    /// `RmgrIdIsValid`: may a record carry this resource manager id at all.
    pub fn rmgr_id_is_valid(&self, id: RmgrId) -> bool {
        id.0 <= 21 || (self.custom_rmgrs && id.0 >= 128)
    }

    /// The directory below a tablespace that belongs to this major
    /// (`TABLESPACE_VERSION_DIRECTORY`), `PG_15_202209061` for instance.
    pub fn tablespace_directory(&self) -> String {
        format!("PG_{}_{}", self.version.0, self.catalog_version)
    }

    /// The majors that can be replayed, for messages: `15`.
    pub fn supported() -> String {
        let majors: Vec<String> = WalFormat::ALL
            .iter()
            .map(|f| f.version.0.to_string())
            .collect();
        majors.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_every_major_are_distinct() {
        for (i, a) in WalFormat::ALL.iter().enumerate() {
            for b in &WalFormat::ALL[i + 1..] {
                assert_ne!(a.page_magic, b.page_magic);
                assert_ne!(a.catalog_version, b.catalog_version);
            }
        }
    }

    #[test]
    fn unknown_magic_is_nobodys() {
        assert!(WalFormat::from_page_magic(0).is_none());
        assert_eq!(
            WalFormat::from_page_magic(0xD110).unwrap().version,
            PgVersion(15)
        );
    }

    #[test]
    fn rmgr_ids() {
        let f = WalFormat::from_page_magic(0xD110).unwrap();
        assert!(f.rmgr_id_is_valid(RmgrId(21)));
        assert!(!f.rmgr_id_is_valid(RmgrId(22)));
        assert!(f.rmgr_id_is_valid(RmgrId(128)));
    }
}
