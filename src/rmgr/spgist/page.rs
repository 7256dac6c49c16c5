//! The SP-GiST page: special area, and the changes that several records make
//! (`src/include/access/spgist_private.h`, `src/backend/access/spgist/spgdoinsert.c`).

use smallvec::SmallVec;

use super::RmgrError;
use super::tuple::{self, Link, TupleState};
use crate::decode::BlockRef;
use crate::page::{Page, PageError};
use crate::types::{BLOCK_BYTES, Cursor, OffsetNumber, ShortRead, TransactionId};

const FLAGS: usize = BLOCK_BYTES - OPAQUE_BYTES;
const N_REDIRECTION: usize = FLAGS + 2;
const N_PLACEHOLDER: usize = N_REDIRECTION + 2;
const PAGE_ID: usize = N_PLACEHOLDER + 2;

/// `sizeof(SpGistPageOpaqueData)`.
const OPAQUE_BYTES: usize = 8;
const _: () = assert!(PAGE_ID + 2 == BLOCK_BYTES);

/// `SPGIST_PAGE_ID`: tells pages of SP-GiST indexes from others.
const SPGIST_PAGE_ID: u16 = 0xFF82;

/// `SPGIST_LEAF`.
pub(super) const SPGIST_LEAF: u16 = 0x0004;
/// `SPGIST_NULLS`: of the tree that holds the nulls.
pub(super) const SPGIST_NULLS: u16 = 0x0008;

/// Which of the two trees of an index a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tree {
    /// Ordinary values.
    Values,
    /// Nulls.
    Nulls,
}

impl Tree {
    /// From a field `storesNulls`.
    pub(super) fn of(stores_nulls: bool) -> Tree {
        if stores_nulls {
            Tree::Nulls
        } else {
            Tree::Values
        }
    }

    /// Flags of an inner page.
    pub(super) fn inner_flags(self) -> u16 {
        match self {
            Tree::Values => 0,
            Tree::Nulls => SPGIST_NULLS,
        }
    }

    /// Flags of a leaf page.
    pub(super) fn leaf_flags(self) -> u16 {
        SPGIST_LEAF | self.inner_flags()
    }
}

/// What redirects need to know of the primary (`spgxlogState`, 8 bytes).
#[doc(alias = "spgxlogState")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    /// Offset 0: the inserting transaction, which redirects keep.
    pub(super) my_xid: TransactionId,
    /// Offset 4: an index build, which nobody scans, so that no redirects are needed.
    pub(super) is_build: bool,
}

impl State {
    /// Reads it with its padding.
    pub(super) fn read(c: &mut Cursor<'_>) -> Result<State, ShortRead> {
        let my_xid = TransactionId(c.u32("stateSrc.myXid")?);
        let is_build = c.bool("stateSrc.isBuild")?;
        c.skip("padding", 3)?;
        Ok(State { my_xid, is_build })
    }

    /// What is left where tuples were that are now at `to`.
    pub(super) fn moved_to(self, to: Link) -> DeadTuple {
        if self.is_build {
            DeadTuple::Placeholder
        } else {
            DeadTuple::Redirect {
                to,
                xid: self.my_xid,
            }
        }
    }
}

/// A tuple without contents that keeps an offset number in use (`SpGistDeadTupleData`).
#[doc(alias = "SpGistDeadTupleData")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeadTuple {
    /// `SPGIST_REDIRECT`: for scans that are on their way here.
    Redirect {
        /// Where the tuple went.
        to: Link,
        /// Who moved it.
        xid: TransactionId,
    },
    /// `SPGIST_DEAD`: the empty head of a chain, which a parent still links to.
    Dead,
    /// `SPGIST_PLACEHOLDER`.
    Placeholder,
}

impl DeadTuple {
    /// `spgFormDeadTuple`.
    fn form(self) -> [u8; tuple::DEAD_TUPLE_BYTES] {
        match self {
            DeadTuple::Redirect { to, xid } => tuple::dead(TupleState::Redirect, to, xid),
            DeadTuple::Dead => tuple::dead(TupleState::Dead, Link::INVALID, TransactionId::INVALID),
            DeadTuple::Placeholder => tuple::dead(
                TupleState::Placeholder,
                Link::INVALID,
                TransactionId::INVALID,
            ),
        }
    }

    /// The count on the page that it goes into, if any.
    fn counter(self) -> Option<Counter> {
        match self {
            DeadTuple::Redirect { .. } => Some(Counter::Redirection),
            DeadTuple::Dead => None,
            DeadTuple::Placeholder => Some(Counter::Placeholder),
        }
    }
}

/// A count in the special area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    /// `nRedirection`: tuples that are redirects.
    Redirection,
    /// `nPlaceholder`: tuples that are placeholders.
    Placeholder,
}

impl Counter {
    fn at(self) -> usize {
        match self {
            Counter::Redirection => N_REDIRECTION,
            Counter::Placeholder => N_PLACEHOLDER,
        }
    }

    /// Counts `n` more. Like the server's own, counts that were wrong before wrap.
    pub(super) fn add(self, page: &mut Page, n: u16) -> Result<(), PageError> {
        check(page)?;
        let count = page.u16_at(self.at()).wrapping_add(n);
        page.put_u16(self.at(), count);
        Ok(())
    }

    /// Counts `n` less.
    pub(super) fn subtract(self, page: &mut Page, n: u16) -> Result<(), PageError> {
        self.add(page, n.wrapping_neg())
    }
}

/// Every SP-GiST page has a special area of exactly this size.
fn check(page: &Page) -> Result<(), PageError> {
    let (lower, upper, special) = page.checked_bounds()?;
    if special != FLAGS {
        return Err(PageError::Header {
            lower: lower as u16,
            upper: upper as u16,
            special: special as u16,
        });
    }
    Ok(())
}

/// `XLogInitBufferForRedo` and `SpGistInitBuffer`, if the record says that the page is new. The
/// block reference must say the same.
pub(super) fn init_if(
    is_new: bool,
    block: &BlockRef<'_>,
    page: &mut Page,
    flags: u16,
) -> Result<(), RmgrError> {
    if block.will_init != is_new {
        return Err(RmgrError::corrupt(format!(
            "record and block reference {} contradict each other on a new page",
            block.id
        )));
    }
    if is_new {
        page.init(OPAQUE_BYTES);
        page.put_u16(FLAGS, flags);
        page.put_u16(PAGE_ID, SPGIST_PAGE_ID);
    }
    Ok(())
}

/// `addOrReplaceTuple`: adds a tuple after the last one or in place of a placeholder.
pub(super) fn add_or_replace(
    page: &mut Page,
    tuple: &[u8],
    offset: OffsetNumber,
) -> Result<(), RmgrError> {
    if offset <= page.max_offset() {
        let state = tuple::state(page.item(offset)?)?;
        if state != TupleState::Placeholder {
            return Err(RmgrError::corrupt(format!(
                "tuple {offset} is to be replaced and is no placeholder but {state:?}"
            )));
        }
        Counter::Placeholder.subtract(page, 1)?;
        page.index_tuple_delete(offset)?;
    }
    Ok(page.add_item(tuple, offset)?)
}

/// Puts a tuple in place of another.
pub(super) fn replace(
    page: &mut Page,
    tuple: &[u8],
    offset: OffsetNumber,
) -> Result<(), RmgrError> {
    page.index_tuple_delete(offset)?;
    Ok(page.add_item(tuple, offset)?)
}

/// Puts a dead tuple in place of a live one.
pub(super) fn bury(
    page: &mut Page,
    offset: OffsetNumber,
    dead: DeadTuple,
) -> Result<(), RmgrError> {
    replace(page, &dead.form(), offset)?;
    count(page, dead)
}

/// `spgPageIndexMultiDelete`: dead tuples take the place of live ones, `first` that of the tuple
/// listed first and `rest` those of the others. All go before the first dead one comes, which
/// decides what the page looks like.
pub(super) fn multi_delete(
    page: &mut Page,
    offsets: Offsets<'_>,
    first: DeadTuple,
    rest: DeadTuple,
) -> Result<(), RmgrError> {
    let Some(head) = offsets.iter().next() else {
        return Ok(());
    };
    let mut sorted: SmallVec<[OffsetNumber; 408]> = offsets.iter().collect();
    sorted.sort_unstable();
    page.index_multi_delete(&sorted)?;
    for offset in sorted {
        let dead = if offset == head { first } else { rest };
        page.add_item(&dead.form(), offset)?;
        count(page, dead)?;
    }
    Ok(())
}

fn count(page: &mut Page, dead: DeadTuple) -> Result<(), RmgrError> {
    match dead.counter() {
        Some(counter) => Ok(counter.add(page, 1)?),
        None => Ok(()),
    }
}

/// A node of an inner tuple: the downlink to what a record moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    /// The inner tuple on the parent page (`offnumParent`).
    pub(super) parent: OffsetNumber,
    /// The node, from 0 (`nodeI`).
    pub(super) index: u16,
}

impl Node {
    /// `spgUpdateNodeLink`.
    pub(super) fn set_link(self, page: &mut Page, to: Link) -> Result<(), RmgrError> {
        tuple::set_node_link(page.item_mut(self.parent)?, self.index, to)
    }
}

/// Offset numbers in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Offsets<'w>(&'w [u8]);

impl<'w> Offsets<'w> {
    /// Reads `count` of them.
    pub(super) fn read(
        c: &mut Cursor<'w>,
        field: &'static str,
        count: u16,
    ) -> Result<Offsets<'w>, ShortRead> {
        Ok(Offsets(c.bytes(field, 2 * usize::from(count))?))
    }

    /// The numbers in their order.
    pub(super) fn iter(
        self,
    ) -> impl DoubleEndedIterator<Item = OffsetNumber> + ExactSizeIterator + use<'w> {
        self.0
            .chunks_exact(2)
            .map(|b| u16::from_le_bytes([b[0], b[1]]))
    }
}
