//! VACUUM_LEAF, VACUUM_ROOT and VACUUM_REDIRECT: tuples die, and what stands for moved ones goes.

use std::fmt;

use smallvec::SmallVec;

use super::page::{self, Counter, DeadTuple, Offsets, State};
use super::tuple;
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::{Page, PageError};
use crate::types::{Cursor, OffsetNumber, ShortRead, TransactionId};

/// Main data of VACUUM_LEAF (`spgxlogVacuumLeaf`, 16 bytes). Six lists follow.
#[doc(alias = "spgxlogVacuumLeaf")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VacuumLeaf {
    /// Offset 0: heads of chains that become dead.
    n_dead: u16,
    /// Offset 2: tuples that become placeholders.
    n_placeholder: u16,
    /// Offset 4: tuples that move to the place of a dead head.
    n_move: u16,
    /// Offset 6: tuples whose link to the next changes.
    n_chain: u16,
}

/// Main data of VACUUM_ROOT (`spgxlogVacuumRoot`, 12 bytes); the offsets follow.
#[doc(alias = "spgxlogVacuumRoot")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VacuumRoot {
    /// Offset 0: tuples that go.
    n_delete: u16,
}

/// Main data of VACUUM_REDIRECT (`spgxlogVacuumRedirect`, 8 bytes); the offsets follow.
#[doc(alias = "spgxlogVacuumRedirect")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VacuumRedirect {
    /// Offset 0: redirects that become placeholders.
    n_to_placeholder: u16,
    /// Offset 2: from here on only placeholders follow, which go; 0 if none do.
    first_placeholder: OffsetNumber,
    /// Offset 4: standby queries that may still follow the redirects are in conflict.
    newest_redirect_xid: TransactionId,
}

impl VacuumLeaf {
    /// Reads the main data up to the lists.
    pub(super) fn parse(main: &[u8]) -> Result<VacuumLeaf, ShortRead> {
        VacuumLeaf::read(&mut Cursor::new("spgxlogVacuumLeaf", main))
    }

    fn read(c: &mut Cursor<'_>) -> Result<VacuumLeaf, ShortRead> {
        let xlrec = VacuumLeaf {
            n_dead: c.u16("nDead")?,
            n_placeholder: c.u16("nPlaceholder")?,
            n_move: c.u16("nMove")?,
            n_chain: c.u16("nChain")?,
        };
        // Vacuum makes no redirects, which alone would need it.
        State::read(c)?;
        Ok(xlrec)
    }
}

impl VacuumRoot {
    /// Reads the main data up to the offsets.
    pub(super) fn parse(main: &[u8]) -> Result<VacuumRoot, ShortRead> {
        VacuumRoot::read(&mut Cursor::new("spgxlogVacuumRoot", main))
    }

    fn read(c: &mut Cursor<'_>) -> Result<VacuumRoot, ShortRead> {
        let n_delete = c.u16("nDelete")?;
        c.skip("padding", 2)?;
        State::read(c)?;
        Ok(VacuumRoot { n_delete })
    }
}

impl VacuumRedirect {
    /// Reads the main data up to the offsets.
    pub(super) fn parse(main: &[u8]) -> Result<VacuumRedirect, ShortRead> {
        VacuumRedirect::read(&mut Cursor::new("spgxlogVacuumRedirect", main))
    }

    fn read(c: &mut Cursor<'_>) -> Result<VacuumRedirect, ShortRead> {
        Ok(VacuumRedirect {
            n_to_placeholder: c.u16("nToPlaceholder")?,
            first_placeholder: c.u16("firstPlaceholder")?,
            newest_redirect_xid: TransactionId(c.u32("newestRedirectXid")?),
        })
    }
}

impl fmt::Display for VacuumLeaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ndead: {}, nplaceholder: {}, nmove: {}, nchain: {}",
            self.n_dead, self.n_placeholder, self.n_move, self.n_chain
        )
    }
}

impl fmt::Display for VacuumRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ndelete: {}", self.n_delete)
    }
}

impl fmt::Display for VacuumRedirect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ntoplaceholder: {}, firstplaceholder: {}, newestredirectxid: {}",
            self.n_to_placeholder, self.first_placeholder, self.newest_redirect_xid
        )
    }
}

fn only_block(block: &BlockRef<'_>) -> Result<(), RmgrError> {
    match block.id {
        0 => Ok(()),
        id => Err(unexpected_block(id)),
    }
}

/// `spgRedoVacuumLeaf`.
pub(super) fn redo_leaf(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    only_block(block)?;
    let mut c = Cursor::new("spgxlogVacuumLeaf", record.main_data);
    let xlrec = VacuumLeaf::read(&mut c)?;
    let to_dead = Offsets::read(&mut c, "toDead", xlrec.n_dead)?;
    let to_placeholder = Offsets::read(&mut c, "toPlaceholder", xlrec.n_placeholder)?;
    let move_src = Offsets::read(&mut c, "moveSrc", xlrec.n_move)?;
    let move_dest = Offsets::read(&mut c, "moveDest", xlrec.n_move)?;
    let chain_src = Offsets::read(&mut c, "chainSrc", xlrec.n_chain)?;
    let chain_dest = Offsets::read(&mut c, "chainDest", xlrec.n_chain)?;

    page::multi_delete(page, to_dead, DeadTuple::Dead, DeadTuple::Dead)?;
    page::multi_delete(
        page,
        to_placeholder,
        DeadTuple::Placeholder,
        DeadTuple::Placeholder,
    )?;
    // A survivor takes the offset number of its chain's head, which the parent links to: the two
    // line pointers change places, then what is now at the survivor's old number goes.
    for (src, dest) in move_src.iter().zip(move_dest.iter()) {
        swap_items(page, src, dest)?;
    }
    page::multi_delete(
        page,
        move_src,
        DeadTuple::Placeholder,
        DeadTuple::Placeholder,
    )?;
    for (src, dest) in chain_src.iter().zip(chain_dest.iter()) {
        tuple::set_next_offset(page.item_mut(src)?, dest)?;
    }
    Ok(())
}

fn swap_items(page: &mut Page, a: OffsetNumber, b: OffsetNumber) -> Result<(), PageError> {
    let (id_a, id_b) = (page.item_id(a)?, page.item_id(b)?);
    page.set_item_id(a, id_b)?;
    page.set_item_id(b, id_a)
}

/// `spgRedoVacuumRoot`. Nothing links to the tuples of a root that is a leaf, so they just go.
pub(super) fn redo_root(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    only_block(block)?;
    let mut c = Cursor::new("spgxlogVacuumRoot", record.main_data);
    let xlrec = VacuumRoot::read(&mut c)?;
    let to_delete = Offsets::read(&mut c, "offsets", xlrec.n_delete)?;
    let to_delete: SmallVec<[OffsetNumber; 408]> = to_delete.iter().collect();
    Ok(page.index_multi_delete(&to_delete)?)
}

/// `spgRedoVacuumRedirect`.
pub(super) fn redo_redirect(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    only_block(block)?;
    let mut c = Cursor::new("spgxlogVacuumRedirect", record.main_data);
    let xlrec = VacuumRedirect::read(&mut c)?;
    let to_placeholder = Offsets::read(&mut c, "offsets", xlrec.n_to_placeholder)?;
    for offset in to_placeholder.iter() {
        tuple::redirect_to_placeholder(page.item_mut(offset)?)?;
    }
    Counter::Redirection.subtract(page, xlrec.n_to_placeholder)?;
    Counter::Placeholder.add(page, xlrec.n_to_placeholder)?;
    if xlrec.first_placeholder != 0 {
        remove_from(page, xlrec.first_placeholder)?;
    }
    Ok(())
}

/// Removes the placeholders at the end of the page. Nothing is behind them, so no offset number
/// of another tuple changes.
fn remove_from(page: &mut Page, first: OffsetNumber) -> Result<(), RmgrError> {
    page.item_id(first)?;
    let tail: SmallVec<[OffsetNumber; 408]> = (first..=page.max_offset()).collect();
    page.index_multi_delete(&tail)?;
    Ok(Counter::Placeholder.subtract(page, tail.len() as u16)?)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{
        Counts, DEAD, PLACEHOLDER, block, counts, fails, fails_cut, items, leaf, longs, page_of,
        redirect, redone, state, words,
    };
    use crate::types::OffsetNumber;

    #[test]
    fn survivors_take_the_place_of_their_heads() {
        let before = page_of(&[
            leaf(1, 16, 2),
            leaf(2, 24, 0),
            leaf(3, 16, 4),
            leaf(4, 16, 5),
            leaf(5, 32, 0),
            leaf(6, 16, 0),
            leaf(7, 16, 0),
        ]);
        // 6 dies as a head, 7 as a member; 2 takes the place of 1; 4 goes out of 3, 4, 5.
        let lists = [6, 7, 4, 2, 1, 3, 5];
        let main = [words(&[1, 2, 1, 1]), state(0).to_vec(), words(&lists)].concat();
        let page = redone(0x60, &main, &[block(0, 7, &[])], 0, &before);
        let expected = [
            leaf(2, 24, 0),
            PLACEHOLDER.to_vec(),
            leaf(3, 16, 5),
            PLACEHOLDER.to_vec(),
            leaf(5, 32, 0),
            DEAD.to_vec(),
            PLACEHOLDER.to_vec(),
        ];
        assert_eq!(items(&page), expected);
        let placeholders = Counts {
            redirections: 0,
            placeholders: 3,
        };
        assert_eq!(counts(&page), placeholders);
        fails_cut(0x60, &main, &[block(0, 7, &[])], 0, &before);
        assert!(fails(0x60, &main, &[block(1, 7, &[])], 1, &before));
    }

    #[test]
    fn deletion_of_three_lays_out_the_rest_before_dead_tuples_come() {
        let before = page_of(&[1, 2, 3, 4].map(|key| leaf(key, 16, 0)));
        let places = |page: &crate::page::Page| {
            [1, 2, 3, 4].map(|offset: OffsetNumber| page.item_id(offset).unwrap().offset())
        };
        for (listed, expected) in [
            (vec![3, 1, 2], [8152, 8136, 8120, 8168]),
            (vec![3, 1], [8136, 8168, 8120, 8152]),
        ] {
            let main = [
                words(&[0, listed.len() as u16, 0, 0]),
                state(0).to_vec(),
                words(&listed),
            ];
            let page = redone(0x60, &main.concat(), &[block(0, 7, &[])], 0, &before);
            assert_eq!(places(&page), expected, "{listed:?}");
        }
    }

    #[test]
    fn tuples_of_a_root_just_go() {
        let before = page_of(&[1, 2, 3].map(|key| leaf(key, 16, 0)));
        let main = [words(&[2, 0xEEEE]), state(0).to_vec(), words(&[1, 3])].concat();
        let page = redone(0x70, &main, &[block(0, 1, &[])], 0, &before);
        assert_eq!(items(&page), [leaf(2, 16, 0)]);
        assert_eq!(counts(&page), counts(&before));
        fails_cut(0x70, &main, &[block(0, 1, &[])], 0, &before);
    }

    #[test]
    fn redirects_become_placeholders_and_those_at_the_end_go() {
        let before = page_of(&[
            redirect(8, 1),
            leaf(1, 16, 0),
            redirect(8, 2),
            PLACEHOLDER.to_vec(),
        ]);
        let redirect = |first: u16, listed: &[u16]| {
            let n = listed.len() as u16;
            [words(&[n, first]), longs(&[701]), words(listed)].concat()
        };
        let main = redirect(3, &[1, 3]);
        let page = redone(0x80, &main, &[block(0, 7, &[])], 0, &before);
        let mut stale = PLACEHOLDER.to_vec();
        stale[12..].copy_from_slice(&[0xBC, 2, 0, 0]);
        assert_eq!(items(&page), [stale.clone(), leaf(1, 16, 0)]);
        let left = Counts {
            redirections: 0,
            placeholders: 1,
        };
        assert_eq!(counts(&page), left);
        fails_cut(0x80, &main, &[block(0, 7, &[])], 0, &before);

        let page = redone(0x80, &redirect(0, &[3]), &[block(0, 7, &[])], 0, &before);
        assert_eq!(items(&page)[2..], [stale, PLACEHOLDER.to_vec()]);
        assert!(fails(
            0x80,
            &redirect(5, &[]),
            &[block(0, 7, &[])],
            0,
            &before
        ));
        assert!(fails(
            0x80,
            &redirect(0, &[5]),
            &[block(0, 7, &[])],
            0,
            &before
        ));
    }
}
