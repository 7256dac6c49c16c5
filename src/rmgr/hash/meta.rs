//! INIT_META_PAGE and UPDATE_META_PAGE, and the metapage that most records change.

use std::fmt;

use super::page::{self, LH_META_PAGE, Opaque};
use super::{RmgrError, unexpected_block};
use crate::decode::{BlockRef, Record};
use crate::page::{PAGE_HEADER_BYTES, Page};
use crate::types::{BLOCK_BYTES, BlockNumber, Cursor, Oid, ShortRead};

const HASHM_MAGIC: usize = PAGE_HEADER_BYTES;
const HASHM_VERSION: usize = HASHM_MAGIC + 4;
const HASHM_NTUPLES: usize = HASHM_VERSION + 4;
const HASHM_FFACTOR: usize = HASHM_NTUPLES + 8;
const HASHM_BSIZE: usize = HASHM_FFACTOR + 2;
const HASHM_BMSIZE: usize = HASHM_BSIZE + 2;
const HASHM_BMSHIFT: usize = HASHM_BMSIZE + 2;
const HASHM_MAXBUCKET: usize = HASHM_BMSHIFT + 2;
const HASHM_HIGHMASK: usize = HASHM_MAXBUCKET + 4;
const HASHM_LOWMASK: usize = HASHM_HIGHMASK + 4;
const HASHM_OVFLPOINT: usize = HASHM_LOWMASK + 4;
const HASHM_FIRSTFREE: usize = HASHM_OVFLPOINT + 4;
const HASHM_NMAPS: usize = HASHM_FIRSTFREE + 4;
const HASHM_PROCID: usize = HASHM_NMAPS + 4;
const HASHM_SPARES: usize = HASHM_PROCID + 4;
const HASHM_MAPP: usize = HASHM_SPARES + 4 * MAX_SPLITPOINTS as usize;
/// End of `HashMetaPageData`, tail padding included.
const HASHM_END: usize = (HASHM_MAPP + 4 * MAX_BITMAPS as usize).next_multiple_of(8);
const _: () = assert!(HASHM_END - HASHM_MAGIC == 4544);

/// `HASH_MAGIC`.
const MAGIC: u32 = 0x0644_0640;
/// `HASH_VERSION`.
const VERSION: u32 = 4;
/// `HASH_MAX_SPLITPOINTS`.
const MAX_SPLITPOINTS: u32 = 98;
/// `HASH_MAX_BITMAPS`.
const MAX_BITMAPS: u32 = 1024;
/// `HashGetMaxBitmapSize`: what header and special area leave, in bytes.
const BSIZE: u16 = (BLOCK_BYTES - PAGE_HEADER_BYTES - 16) as u16;
/// The largest power of two that fits, in bytes, and the logarithm of the same in bits.
const BMSIZE: u16 = 1 << BSIZE.ilog2();
const BMSHIFT: u16 = BSIZE.ilog2() as u16 + 3;

/// Groups of splitpoints that are allocated at once
/// (`HASH_SPLITPOINT_GROUPS_WITH_ONE_PHASE`); later ones come in four phases.
const GROUPS_WITH_ONE_PHASE: u32 = 10;
const PHASE_BITS: u32 = 2;
const PHASE_MASK: u32 = (1 << PHASE_BITS) - 1;

/// Main data of INIT_META_PAGE (`xl_hash_init_meta_page`, 14 bytes).
#[doc(alias = "xl_hash_init_meta_page")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct InitMetaPage {
    /// Offset 0: tuples to expect.
    num_tuples: f64,
    /// Offset 8: the hash function.
    procid: Oid,
    /// Offset 12: tuples per bucket to aim at.
    ffactor: u16,
}

/// Main data of UPDATE_META_PAGE (`xl_hash_update_meta_page`, 8 bytes).
#[doc(alias = "xl_hash_update_meta_page")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct UpdateMetaPage {
    /// Offset 0: tuples that VACUUM has left.
    ntuples: f64,
}

impl InitMetaPage {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<InitMetaPage, ShortRead> {
        let mut c = Cursor::new("xl_hash_init_meta_page", main);
        Ok(InitMetaPage {
            num_tuples: c.f64("num_tuples")?,
            procid: Oid(c.u32("procid")?),
            ffactor: c.u16("ffactor")?,
        })
    }

    /// Buckets to start with: at least two, and always all of a phase.
    fn buckets(&self) -> u32 {
        const MOST: u32 = 0x4000_0000;
        let wanted = self.num_tuples / f64::from(self.ffactor);
        if wanted <= 2.0 {
            2
        } else if wanted >= f64::from(MOST) {
            MOST
        } else {
            total_buckets(spare_index(wanted as u32))
        }
    }
}

impl UpdateMetaPage {
    /// Reads the main data.
    pub(super) fn parse(main: &[u8]) -> Result<UpdateMetaPage, ShortRead> {
        let mut c = Cursor::new("xl_hash_update_meta_page", main);
        Ok(UpdateMetaPage {
            ntuples: c.f64("ntuples")?,
        })
    }
}

impl fmt::Display for InitMetaPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "num_tuples {}, fillfactor {}",
            General(self.num_tuples),
            self.ffactor
        )
    }
}

impl fmt::Display for UpdateMetaPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ntuples {}", General(self.ntuples))
    }
}

/// A number as `%g` prints it (`src/port/snprintf.c`): six digits, no zeros behind them.
struct General(f64);

impl fmt::Display for General {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        if value.is_nan() {
            return f.write_str("NaN");
        }
        if value.is_infinite() {
            return f.write_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
        }
        let scientific = format!("{value:.5e}");
        let (digits, exponent) = scientific.split_once('e').expect("that is how it prints");
        let exponent: i32 = exponent.parse().expect("that is how it prints");
        if (-4..6).contains(&exponent) {
            let decimals = (5 - exponent) as usize;
            f.write_str(trimmed(&format!("{value:.decimals$}")))
        } else {
            let sign = if exponent < 0 { '-' } else { '+' };
            let digits = trimmed(digits);
            write!(f, "{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
    }
}

/// Without zeros at the end of the fraction.
fn trimmed(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

/// `_hash_spareindex`: the splitpoint phase that a number of buckets ends in.
fn spare_index(buckets: u32) -> u32 {
    let group = buckets.next_power_of_two().trailing_zeros();
    if group < GROUPS_WITH_ONE_PHASE {
        return group;
    }
    let earlier = GROUPS_WITH_ONE_PHASE + ((group - GROUPS_WITH_ONE_PHASE) << PHASE_BITS);
    earlier + ((buckets - 1) >> (group - (PHASE_BITS + 1)) & PHASE_MASK)
}

/// `_hash_get_totalbuckets`: buckets up to the end of a splitpoint phase.
fn total_buckets(phase: u32) -> u32 {
    if phase < GROUPS_WITH_ONE_PHASE {
        return 1 << phase;
    }
    let later = phase - GROUPS_WITH_ONE_PHASE;
    let earlier_groups = 1 << (GROUPS_WITH_ONE_PHASE + (later >> PHASE_BITS) - 1);
    earlier_groups + (earlier_groups >> PHASE_BITS) * ((later & PHASE_MASK) + 1)
}

/// `XLOG_HASH_INIT_META_PAGE` (`_hash_init_metabuffer`).
pub(super) fn redo_init_meta_page(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let xlrec = InitMetaPage::parse(record.main_data)?;
    if block.id != 0 {
        return Err(unexpected_block(block.id));
    }
    page::init(block, page, Opaque::without_bucket(LH_META_PAGE))?;
    let buckets = xlrec.buckets();
    let phase = spare_index(buckets);
    let highmask = (buckets + 1).next_power_of_two() - 1;
    page.put_u32(HASHM_MAGIC, MAGIC);
    page.put_u32(HASHM_VERSION, VERSION);
    page.put_u16(HASHM_FFACTOR, xlrec.ffactor);
    page.put_u16(HASHM_BSIZE, BSIZE);
    page.put_u16(HASHM_BMSIZE, BMSIZE);
    page.put_u16(HASHM_BMSHIFT, BMSHIFT);
    page.put_u32(HASHM_MAXBUCKET, buckets - 1);
    set_masks(page, highmask >> 1, highmask);
    page.put_u32(HASHM_PROCID, xlrec.procid.0);
    // The bitmap page that follows the buckets.
    set_splitpoint(page, phase, 1)?;
    // Without this an image of the page would leave the contents out as hole.
    page.set_lower(HASHM_END as u16);
    Ok(())
}

/// `XLOG_HASH_UPDATE_META_PAGE`.
pub(super) fn redo_update_meta_page(
    record: &Record<'_>,
    block: &BlockRef<'_>,
    page: &mut Page,
) -> Result<(), RmgrError> {
    let UpdateMetaPage { ntuples } = UpdateMetaPage::parse(record.main_data)?;
    match block.id {
        0 => {
            page.put_u64(HASHM_NTUPLES, ntuples.to_bits());
            Ok(())
        }
        id => Err(unexpected_block(id)),
    }
}

/// Adds to the number of tuples, or takes off it.
pub(super) fn add_to_ntuples(page: &mut Page, tuples: f64) {
    let (low, high) = (page.u32_at(HASHM_NTUPLES), page.u32_at(HASHM_NTUPLES + 4));
    let ntuples = f64::from_bits(u64::from(high) << 32 | u64::from(low)) + tuples;
    page.put_u64(HASHM_NTUPLES, ntuples.to_bits());
}

/// The highest bucket.
pub(super) fn maxbucket(page: &Page) -> u32 {
    page.u32_at(HASHM_MAXBUCKET)
}

/// Stores the highest bucket.
pub(super) fn set_maxbucket(page: &mut Page, bucket: u32) {
    page.put_u32(HASHM_MAXBUCKET, bucket);
}

/// Stores the masks that lead from a hash value to its bucket.
pub(super) fn set_masks(page: &mut Page, lowmask: u32, highmask: u32) {
    page.put_u32(HASHM_LOWMASK, lowmask);
    page.put_u32(HASHM_HIGHMASK, highmask);
}

/// Stores the bit of the first overflow page that may be free.
pub(super) fn set_firstfree(page: &mut Page, bit: u32) {
    page.put_u32(HASHM_FIRSTFREE, bit);
}

fn spares_at(ovflpoint: u32) -> Result<usize, RmgrError> {
    if ovflpoint >= MAX_SPLITPOINTS {
        return Err(RmgrError::corrupt(format!(
            "splitpoint {ovflpoint} is out of range, there are {MAX_SPLITPOINTS}"
        )));
    }
    Ok(HASHM_SPARES + 4 * ovflpoint as usize)
}

/// Begins splitpoint phase `ovflpoint`, before which there are `ovflpages` overflow pages.
pub(super) fn set_splitpoint(
    page: &mut Page,
    ovflpoint: u32,
    ovflpages: u32,
) -> Result<(), RmgrError> {
    page.put_u32(spares_at(ovflpoint)?, ovflpages);
    page.put_u32(HASHM_OVFLPOINT, ovflpoint);
    Ok(())
}

/// Counts one more overflow or bitmap page in the current splitpoint phase.
pub(super) fn add_spare(page: &mut Page) -> Result<(), RmgrError> {
    let at = spares_at(page.u32_at(HASHM_OVFLPOINT))?;
    page.put_u32(at, page.u32_at(at).wrapping_add(1));
    Ok(())
}

/// Adds a bitmap page to the list.
pub(super) fn add_bitmap(page: &mut Page, bitmap: BlockNumber) -> Result<(), RmgrError> {
    let nmaps = page.u32_at(HASHM_NMAPS);
    if nmaps >= MAX_BITMAPS {
        return Err(RmgrError::corrupt(format!(
            "no room for another bitmap page after {nmaps}"
        )));
    }
    page.put_u32(HASHM_MAPP + 4 * nmaps as usize, bitmap);
    page.put_u32(HASHM_NMAPS, nmaps + 1);
    Ok(())
}
