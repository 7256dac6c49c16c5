//! PostgreSQL 15.

use super::{ImageBits, PgVersion, VmExtension, WalFormat};

/// The facts of PostgreSQL 15 (`src/include/access/xlog_internal.h`,
/// `src/include/catalog/pg_control.h`, `src/include/catalog/catversion.h`).
pub(super) static FORMAT: WalFormat = WalFormat {
    version: PgVersion(15),
    page_magic: 0xD110,
    control_version: 1300,
    catalog_version: 202_209_061,
    control_crc_offset: 288,
    image_bits: ImageBits::ByMethod,
    custom_rmgrs: true,
    relmap_bytes: 512,
    relmap_crc_offset: 504,
    prune_truncates_line_pointers: true,
    vm_extension: VmExtension::InitialisedPages,
};
