//! Records for the tests of this folder.

use smallvec::smallvec;

use crate::decode::{BlockImage, BlockRef, Compression, Record};
use crate::format::WalFormat;
use crate::types::{
    BlockTag, ForkNumber, Lsn, Oid, RelFileLocator, RepOriginId, RmgrId, TransactionId,
};

/// A record of an extension, so that no description but our own is tested.
pub(super) fn record() -> Record<'static> {
    Record {
        lsn: Lsn(0x1_0600_0080),
        end_lsn: Lsn(0x1_0600_0118),
        overwritten: Lsn(0),
        prev: Lsn(0x1_0600_0048),
        total_bytes: 150,
        xid: TransactionId(764),
        info: 0x10,
        rmid: RmgrId(128),
        origin: RepOriginId(0),
        toplevel_xid: None,
        blocks: smallvec![block(0, ForkNumber::Main), block(2, ForkNumber::Vm)],
        main_data: &[],
        format: WalFormat::ALL[0],
    }
}

fn block(id: u8, fork: ForkNumber) -> BlockRef<'static> {
    BlockRef {
        id,
        tag: BlockTag {
            locator: RelFileLocator {
                spc: Oid(1663),
                db: Oid(5),
                rel: Oid(2606),
            },
            fork,
            block: 4,
        },
        will_init: false,
        same_rel: false,
        has_data: false,
        image: None,
        data: &[],
    }
}

pub(super) fn image(compression: Compression, apply: bool) -> BlockImage<'static> {
    BlockImage {
        length: 96,
        hole_offset: 60,
        hole_length: 8000,
        info: 0,
        apply,
        compression,
        bytes: &[],
    }
}
