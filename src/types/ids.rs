//! Small identifiers.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($repr:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $repr);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// An object identifier.
    Oid(u32)
}
id! {
    /// A timeline.
    TimeLineId(u32)
}
id! {
    /// A resource manager: 0 to 21 are PostgreSQL's own, 128 to 255 belong to extensions (15+).
    RmgrId(u8)
}
id! {
    /// A multixact. Compared modulo 2^32, see [`MultiXactId::precedes`].
    MultiXactId(u32)
}
id! {
    /// A position in the multixact members, compared modulo 2^32.
    MultiXactOffset(u32)
}
id! {
    /// A replication origin (`RepOriginId`); 0 is none.
    RepOriginId(u16)
}

impl RmgrId {
    /// `RM_XLOG_ID`.
    pub const XLOG: RmgrId = RmgrId(0);
    /// `RM_XACT_ID`.
    pub const TRANSACTION: RmgrId = RmgrId(1);
    /// `RM_TBLSPC_ID`.
    pub const TABLESPACE: RmgrId = RmgrId(5);
    /// `RM_HEAP2_ID`.
    pub const HEAP2: RmgrId = RmgrId(9);
    /// `RM_HEAP_ID`.
    pub const HEAP: RmgrId = RmgrId(10);
}

impl MultiXactId {
    /// `FirstMultiXactId`; 0 is never a multixact.
    pub const FIRST: MultiXactId = MultiXactId(1);

    /// `MultiXactIdPrecedes`: plain order modulo 2^32.
    pub fn precedes(self, other: MultiXactId) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// The multixact after this one; 0 is skipped.
    pub fn next(self) -> MultiXactId {
        MultiXactId(self.0.wrapping_add(1).max(1))
    }
}

impl MultiXactOffset {
    /// `MultiXactOffsetPrecedes`.
    pub fn precedes(self, other: MultiXactOffset) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }
}
