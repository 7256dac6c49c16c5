//! Reading records one after another (`XLogDecodeNextRecord`, `ReadPageInternal`,
//! `src/backend/access/transam/xlogreader.c`).
//!
//! The reader fills a [`Batch`]: positions of records in mapped segments, and the bytes of those
//! few that pages or segments split. Nothing else is copied, and records of a batch stay
//! where they are until it is filled again.

use std::sync::Arc;

use super::RECORD_HEADER_BYTES;
use super::end::TornRecord;
use super::{
    EndOfWal, EndReason, LaterWal, PageHeader, Segment, SegmentName, SegmentSource, WAL_PAGE_BYTES,
    WalError, WalLayout,
};
use crate::types::{Lsn, RmgrId, TimeLineId};

const TOT_LEN_BYTES: usize = 4;
const XL_PREV: usize = 8;
const XL_INFO: usize = 16;
const XL_RMID: usize = 17;
const XL_CRC: usize = 20;

const XLOG_SWITCH: u8 = 0x40;

/// A record as it stands in the WAL, put together if pages split it. Its header, length and CRC
/// are checked.
#[derive(Debug, Clone, Copy)]
pub struct RawRecord<'w> {
    /// Where it starts.
    pub lsn: Lsn,
    /// Where it ends, rounded up to 8; after a SWITCH the start of the next segment.
    pub end_lsn: Lsn,
    /// The unfinished record that this one follows, if the page says that it replaces its
    /// continuation; 0 otherwise.
    pub overwritten: Lsn,
    /// `xl_tot_len` bytes, header included.
    pub bytes: &'w [u8],
}

/// Where the bytes of a record are. There is one of these for each record of a window, so it is
/// kept small.
#[derive(Debug, Clone, Copy)]
struct Located {
    lsn: Lsn,
    end_lsn: Lsn,
    /// In the segment, or among the assembled bytes.
    offset: u64,
    bytes: u32,
    /// Index of the segment in the batch, or [`ASSEMBLED`].
    segment: u32,
    rmid: RmgrId,
}

/// The record was put together.
const ASSEMBLED: u32 = u32::MAX;
/// The record is split by pages and is put together each time it is asked for.
const SPLIT: u32 = u32::MAX - 1;

/// Consecutive records, and what their bytes lie in.
#[derive(Debug, Default)]
pub struct Batch {
    segments: Vec<Arc<Segment>>,
    assembled: Vec<u8>,
    records: Vec<Located>,
    /// Records that replace an unfinished one, with the start of that one.
    overwritten: Vec<(Lsn, Lsn)>,
    end: Option<EndOfWal>,
    /// Split records are not kept put together.
    lean: bool,
}

impl Batch {
    /// An empty batch, to be filled.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// An empty batch that keeps no copies: records that pages split are put together by
    /// [`Batch::record_in`] when they are needed.
    pub fn lean() -> Batch {
        Batch {
            lean: true,
            ..Batch::default()
        }
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Record `index` of the batch.
    #[inline]
    pub fn record(&self, index: usize) -> RawRecord<'_> {
        let at = &self.records[index];
        let offset = at.offset as usize;
        let source = match at.segment {
            ASSEMBLED => &self.assembled[..],
            segment => self.segments[segment as usize].bytes(),
        };
        RawRecord {
            lsn: at.lsn,
            end_lsn: at.end_lsn,
            overwritten: self.overwritten_by(at.lsn),
            bytes: &source[offset..offset + at.bytes as usize],
        }
    }

    /// Record `index`, put together in `scratch` if pages split it.
    pub fn record_in<'a>(
        &'a self,
        index: usize,
        scratch: &'a mut Vec<u8>,
        layout: &WalLayout,
    ) -> RawRecord<'a> {
        let at = &self.records[index];
        if at.segment != SPLIT {
            return self.record(index);
        }
        scratch.clear();
        let mut page = Lsn(at.lsn.0 - at.lsn.0 % WAL_PAGE_BYTES);
        let mut skip = (at.lsn.0 - page.0) as usize;
        while scratch.len() < at.bytes as usize {
            let segment = self
                .segment_of(page, layout)
                .expect("the record was read from it");
            let bytes = segment.page(page).expect("the record was read from it");
            let take = (at.bytes as usize - scratch.len()).min(bytes.len() - skip);
            scratch.extend_from_slice(&bytes[skip..skip + take]);
            page = page.advance(WAL_PAGE_BYTES);
            skip = PageHeader::header_bytes_at(page, layout) as usize;
        }
        RawRecord {
            lsn: at.lsn,
            end_lsn: at.end_lsn,
            overwritten: self.overwritten_by(at.lsn),
            bytes: scratch,
        }
    }

    /// The unfinished record that the one at `lsn` replaces. Hardly any batch has one.
    fn overwritten_by(&self, lsn: Lsn) -> Lsn {
        let found = self.overwritten.iter().find(|(by, _)| *by == lsn);
        found.map_or(Lsn::INVALID, |(_, aborted)| *aborted)
    }

    /// Where record `index` starts.
    pub fn record_lsn(&self, index: usize) -> Lsn {
        self.records.get(index).map_or(Lsn::INVALID, |at| at.lsn)
    }

    /// Start and resource manager of each record.
    pub fn rmgrs(&self) -> impl Iterator<Item = (Lsn, RmgrId)> {
        self.records.iter().map(|at| (at.lsn, at.rmid))
    }

    /// The records in their order.
    pub fn records(&self) -> impl ExactSizeIterator<Item = RawRecord<'_>> {
        (0..self.len()).map(|i| self.record(i))
    }

    /// The end of WAL, if it comes after the last record of this batch.
    pub fn end(&self) -> Option<&EndOfWal> {
        self.end.as_ref()
    }

    /// The segment that holds the page at `at`, if the batch has it mapped.
    fn segment_of(&self, at: Lsn, layout: &WalLayout) -> Option<&Arc<Segment>> {
        self.segments
            .iter()
            .find(|s| s.name().segno == layout.segno(at))
    }

    /// Bytes of memory that the batch takes, the mapped segments not counted.
    pub fn memory(&self) -> usize {
        self.assembled.len() + self.records.len() * size_of::<Located>()
    }

    /// Forgets the records; memory is kept.
    pub fn clear(&mut self) {
        self.overwritten.clear();
        self.segments.clear();
        self.assembled.clear();
        self.records.clear();
        self.end = None;
    }
}

/// Reads records in order.
#[derive(Debug)]
pub struct WalReader {
    source: SegmentSource,
    /// The segment read last.
    segment: Option<Arc<Segment>>,
    /// Start of the page whose header was validated last, and that header.
    page: Option<(Lsn, PageHeader)>,
    /// Where the next record is looked for.
    next: Lsn,
    /// Start of the last record; 0 before the first one.
    last: Lsn,
    /// Timeline of the newest page seen.
    latest_page: Lsn,
    latest_tli: TimeLineId,
    /// CRCs of records that end here or before were checked by an earlier reader.
    checked_to: Lsn,
}

/// Stops one attempt to read a record.
enum Stop {
    End(EndReason),
    Failed(WalError),
}

impl From<EndReason> for Stop {
    fn from(reason: EndReason) -> Stop {
        Stop::End(reason)
    }
}

impl From<WalError> for Stop {
    fn from(error: WalError) -> Stop {
        Stop::Failed(error)
    }
}

impl WalReader {
    /// Starts at `start`, which must be the start of a record or of a page.
    pub fn new(source: SegmentSource, start: Lsn) -> WalReader {
        WalReader {
            source,
            segment: None,
            page: None,
            next: start,
            last: Lsn::INVALID,
            latest_page: Lsn::INVALID,
            latest_tli: TimeLineId(0),
            checked_to: Lsn::INVALID,
        }
    }

    /// Where segments come from.
    pub fn source(&self) -> &SegmentSource {
        &self.source
    }

    /// Where the next record is looked for.
    pub fn position(&self) -> Lsn {
        self.next
    }

    /// Start of the last record read; 0 before the first.
    pub fn last_record(&self) -> Lsn {
        self.last
    }

    /// Records that end at `end` or before have been read once; their CRCs are not computed
    /// again.
    pub fn checked_to(mut self, end: Lsn) -> WalReader {
        self.checked_to = end;
        self
    }

    /// The first record must link back to the one at `previous`.
    pub fn following(mut self, previous: Lsn) -> WalReader {
        self.last = previous;
        self
    }

    /// Replaces the records of `batch` by the next ones: at least one unless the WAL ends,
    /// and no more than `max_records`, or about `max_bytes` of WAL.
    pub fn fill(
        &mut self,
        batch: &mut Batch,
        max_records: usize,
        max_bytes: usize,
    ) -> Result<(), WalError> {
        batch.clear();
        self.append(batch, max_records, max_bytes)
    }

    /// Adds the next records to those of `batch`, within the same limits.
    pub fn append(
        &mut self,
        batch: &mut Batch,
        max_records: usize,
        max_bytes: usize,
    ) -> Result<(), WalError> {
        let started = self.next;
        let max_records = batch.len().saturating_add(max_records);
        while batch.len() < max_records && self.next.0 - started.0 < max_bytes as u64 {
            match self.read_record(batch) {
                Ok(()) => {}
                Err(ReadStop {
                    stop: Stop::Failed(error),
                    ..
                }) => return Err(error),
                Err(ReadStop {
                    stop: Stop::End(reason),
                    torn,
                }) => {
                    batch.end = Some(EndOfWal {
                        lsn: self.next,
                        reason,
                        torn,
                    });
                    break;
                }
            }
        }
        Ok(())
    }

    /// Makes sure that the page at `at` is readable and valid, in `self.segment`.
    fn enter_page(&mut self, at: Lsn) -> Result<PageHeader, Stop> {
        if let Some((current, header)) = self.page
            && current == at
        {
            return Ok(header);
        }
        self.page = None;
        let layout = *self.source.layout();
        let segno = layout.segno(at);
        let entered = self
            .segment
            .as_ref()
            .is_none_or(|s| s.name().segno != segno);
        if entered {
            let not_before = self
                .segment
                .as_ref()
                .map_or(TimeLineId(0), |s| s.name().tli);
            match self.source.open(segno, not_before)? {
                Some(segment) => self.segment = Some(segment),
                None => {
                    let name = SegmentName {
                        segno,
                        tli: self.source.history().target(),
                    };
                    return Err(EndReason::NoSegment {
                        name,
                        file: name.file_name(&layout),
                    }
                    .into());
                }
            }
            // The first page of a segment tells whether it is the right one at all.
            let start = layout.segment_start(segno);
            if at != start {
                self.validate_page(start)?;
            }
        }
        let header = self.validate_page(at)?;
        self.page = Some((at, header));
        Ok(header)
    }

    fn validate_page(&mut self, at: Lsn) -> Result<PageHeader, Stop> {
        let layout = self.source.layout();
        let segment = self.segment.as_ref().expect("a segment was entered");
        let short = || EndReason::ShortSegment {
            at,
            file: segment.name().file_name(layout),
        };
        let page = segment.page(at).ok_or_else(short)?;
        let header = PageHeader::parse(page).map_err(|_| short())?;
        header.validate(at, layout)?;
        if !self.source.history().contains(header.tli) {
            return Err(EndReason::UnexpectedTimeline {
                at,
                found: header.tli,
            }
            .into());
        }
        if at > self.latest_page {
            if header.tli < self.latest_tli {
                let (found, after) = (header.tli, self.latest_tli);
                return Err(EndReason::TimelineOrder { at, found, after }.into());
            }
            self.latest_page = at;
            self.latest_tli = header.tli;
        }
        Ok(header)
    }

    /// The bytes of the page entered last, from `offset` in it.
    fn page_bytes(&self, at: Lsn) -> &[u8] {
        let segment = self.segment.as_ref().expect("a page was entered");
        segment.page(at).expect("the page was validated")
    }

    /// Reads the next record into the batch.
    fn read_record(&mut self, batch: &mut Batch) -> Result<(), ReadStop> {
        let mut overwritten = Lsn::INVALID;
        let mut from = self.next;
        loop {
            let (start, total, page_addr) = self.find_record(from).map_err(ReadStop::plain)?;
            let in_page = (start.0 - page_addr.0) as usize;
            if in_page + total <= WAL_PAGE_BYTES as usize {
                return self
                    .take_in_page(batch, start, total, overwritten)
                    .map_err(ReadStop::plain);
            }
            match self.assemble(batch, start, total, page_addr)? {
                Assembled::Whole { offset, end_lsn } => {
                    let bytes = &batch.assembled[offset..offset + total];
                    let checked = self.check_crc(bytes, start, end_lsn).map(|()| end_lsn);
                    let end_lsn = match checked {
                        Ok(end_lsn) => self.end_of(bytes, end_lsn),
                        Err(reason) => {
                            batch.assembled.truncate(offset);
                            let missing = self.page.map_or(page_addr, |(at, _)| at);
                            let torn = Some(TornRecord {
                                aborted: start,
                                missing,
                            });
                            return Err(ReadStop {
                                stop: reason.into(),
                                torn,
                            });
                        }
                    };
                    let rmid = RmgrId(batch.assembled[offset + XL_RMID]);
                    let mut place = (ASSEMBLED, offset, total);
                    if batch.lean {
                        batch.assembled.truncate(offset);
                        place = (SPLIT, 0, total);
                    }
                    self.push(batch, (start, end_lsn, rmid), overwritten, place);
                    return Ok(());
                }
                Assembled::Overwritten { page } => {
                    overwritten = start;
                    from = page;
                }
            }
        }
    }

    /// Finds the record at `from`, or after the page header there, and checks as much of its
    /// header as is on the page: its start, its length, the start of its page.
    fn find_record(&mut self, from: Lsn) -> Result<(Lsn, usize, Lsn), Stop> {
        let page_addr = Lsn(from.0 - from.0 % WAL_PAGE_BYTES);
        let header = self.enter_page(page_addr)?;
        let header_bytes = header.header_bytes();
        let mut start = from;
        if from == page_addr {
            start = from.advance(header_bytes);
        } else if from.0 - page_addr.0 < header_bytes || !from.0.is_multiple_of(8) {
            return Err(EndReason::RecordOffset { at: from }.into());
        }
        let in_page = (start.0 - page_addr.0) as usize;
        if header.info.first_is_contrecord() && in_page as u64 == header_bytes {
            return Err(EndReason::ContrecordRequested { at: start }.into());
        }
        let head = &self.page_bytes(page_addr)[in_page..];
        let total = word(head) as usize;
        if total < RECORD_HEADER_BYTES {
            return Err(EndReason::RecordLength {
                at: start,
                found: total as u32,
            }
            .into());
        }
        if head.len() >= RECORD_HEADER_BYTES {
            self.check_header(head, start)?;
        }
        Ok((start, total, page_addr))
    }

    /// `ValidXLogRecordHeader`.
    fn check_header(&self, head: &[u8], at: Lsn) -> Result<(), EndReason> {
        let rmid = head[XL_RMID];
        if !self.source.layout().format.rmgr_id_is_valid(RmgrId(rmid)) {
            return Err(EndReason::RmgrId { at, found: rmid });
        }
        let prev = Lsn(double_word(&head[XL_PREV..]));
        let linked = match self.last {
            Lsn::INVALID => prev < at,
            last => prev == last,
        };
        if linked {
            Ok(())
        } else {
            Err(EndReason::PrevLink { at, found: prev })
        }
    }

    /// The batch needs the segment that was entered last.
    fn keep_segment(&self, batch: &mut Batch) {
        let segment = self.segment.as_ref().expect("a page was entered");
        if batch
            .segments
            .last()
            .is_none_or(|last| !Arc::ptr_eq(last, segment))
        {
            batch.segments.push(segment.clone());
        }
    }

    /// `ValidXLogRecord`.
    fn check_crc(&self, bytes: &[u8], at: Lsn, end: Lsn) -> Result<(), EndReason> {
        if end <= self.checked_to || record_crc(bytes) == word(&bytes[XL_CRC..]) {
            Ok(())
        } else {
            Err(EndReason::Checksum { at })
        }
    }

    /// Takes a record that lies on one page.
    fn take_in_page(
        &mut self,
        batch: &mut Batch,
        start: Lsn,
        total: usize,
        overwritten: Lsn,
    ) -> Result<(), Stop> {
        let segment = self.segment.as_ref().expect("a page was entered");
        let offset = (start.0 - segment.start().0) as usize;
        let bytes = &segment.bytes()[offset..offset + total];
        let end_lsn = start.advance(total as u64).align_up();
        self.check_crc(bytes, start, end_lsn)?;
        let end_lsn = self.end_of(bytes, end_lsn);
        let rmid = RmgrId(bytes[XL_RMID]);
        self.keep_segment(batch);
        let segment = batch.segments.len() as u32 - 1;
        self.push(
            batch,
            (start, end_lsn, rmid),
            overwritten,
            (segment, offset, total),
        );
        Ok(())
    }

    fn push(
        &mut self,
        batch: &mut Batch,
        (lsn, end_lsn, rmid): (Lsn, Lsn, RmgrId),
        overwritten: Lsn,
        (segment, offset, bytes): (u32, usize, usize),
    ) {
        self.last = lsn;
        self.next = end_lsn;
        if overwritten.is_valid() {
            batch.overwritten.push((lsn, overwritten));
        }
        let (offset, bytes) = (offset as u64, bytes as u32);
        batch.records.push(Located {
            lsn,
            end_lsn,
            offset,
            bytes,
            segment,
            rmid,
        });
    }

    /// A SWITCH reaches to the end of its segment.
    fn end_of(&self, bytes: &[u8], end: Lsn) -> Lsn {
        let is_switch =
            RmgrId(bytes[XL_RMID]) == RmgrId::XLOG && bytes[XL_INFO] & 0xF0 == XLOG_SWITCH;
        if is_switch {
            Lsn(end.0.next_multiple_of(self.source.layout().segment_bytes))
        } else {
            end
        }
    }

    /// Collects a record that pages split. Memory is taken page by page, each of which has
    /// confirmed the length.
    fn assemble(
        &mut self,
        batch: &mut Batch,
        start: Lsn,
        total: usize,
        first_page: Lsn,
    ) -> Result<Assembled, ReadStop> {
        let offset = batch.assembled.len();
        let in_page = (start.0 - first_page.0) as usize;
        self.keep_segment(batch);
        batch
            .assembled
            .extend_from_slice(&self.page_bytes(first_page)[in_page..]);
        let mut header_is_checked = batch.assembled.len() - offset >= RECORD_HEADER_BYTES;
        let mut page_addr = first_page;
        loop {
            page_addr = page_addr.advance(WAL_PAGE_BYTES);
            let torn = Some(TornRecord {
                aborted: start,
                missing: page_addr,
            });
            let got = batch.assembled.len() - offset;
            let stop = |batch: &mut Batch, stop: Stop| {
                batch.assembled.truncate(offset);
                ReadStop { stop, torn }
            };
            let header = match self.enter_page(page_addr) {
                Ok(header) => header,
                Err(reason) => return Err(stop(batch, reason)),
            };
            if header.info.first_is_overwrite_contrecord() {
                batch.assembled.truncate(offset);
                return Ok(Assembled::Overwritten { page: page_addr });
            }
            if let Err(reason) = check_continuation(&header, start, total, got) {
                return Err(stop(batch, reason.into()));
            }
            self.keep_segment(batch);
            let header_bytes = header.header_bytes() as usize;
            let rem_len = header.rem_len as usize;
            let take = rem_len.min(WAL_PAGE_BYTES as usize - header_bytes);
            let piece = &self.page_bytes(page_addr)[header_bytes..header_bytes + take];
            batch.assembled.extend_from_slice(piece);
            if !header_is_checked {
                let head = &batch.assembled[offset..];
                if let Err(reason) = self.check_header(head, start) {
                    return Err(stop(batch, reason.into()));
                }
                header_is_checked = true;
            }
            if take == rem_len {
                let end = page_addr
                    .advance((header_bytes + rem_len) as u64)
                    .align_up();
                return Ok(Assembled::Whole {
                    offset,
                    end_lsn: end,
                });
            }
        }
    }

    /// What WAL exists after `end`, and what that proves.
    pub fn later_wal(&mut self, end: &EndOfWal) -> Result<LaterWal, WalError> {
        let layout = *self.source.layout();
        let segno = layout.segno(end.lsn);
        let segments = self.source.valid_segments_after(segno)?;
        let mut last_page = None;
        if let Some(segment) = self.source.open(segno, TimeLineId(0))? {
            let mut at = Lsn(end.lsn.0 - end.lsn.0 % WAL_PAGE_BYTES).advance(WAL_PAGE_BYTES);
            while let Some(page) = segment.page(at) {
                let header = PageHeader::parse(page).ok();
                if header.is_some_and(|h| h.validate(at, &layout).is_ok()) {
                    last_page = Some(at);
                }
                at = at.advance(WAL_PAGE_BYTES);
            }
        }
        Ok(LaterWal {
            segments,
            last_page,
        })
    }
}

struct ReadStop {
    stop: Stop,
    torn: Option<TornRecord>,
}

impl ReadStop {
    fn plain(stop: Stop) -> ReadStop {
        ReadStop { stop, torn: None }
    }
}

enum Assembled {
    Whole { offset: usize, end_lsn: Lsn },
    Overwritten { page: Lsn },
}

fn check_continuation(
    header: &PageHeader,
    start: Lsn,
    total: usize,
    got: usize,
) -> Result<(), EndReason> {
    if !header.info.first_is_contrecord() {
        return Err(EndReason::NoContrecordFlag { at: start });
    }
    let rem_len = header.rem_len;
    if rem_len == 0 || rem_len as usize + got != total {
        let expected = total as i64 - got as i64;
        return Err(EndReason::ContrecordLength {
            at: start,
            found: rem_len,
            expected,
        });
    }
    Ok(())
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..TOT_LEN_BYTES].try_into().expect("four bytes"))
}

fn double_word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"))
}

/// The CRC-32C of a whole record: the bytes after the header, then the header before the CRC.
pub(super) fn record_crc(bytes: &[u8]) -> u32 {
    let crc = crc32c::crc32c(&bytes[RECORD_HEADER_BYTES..]);
    crc32c::crc32c_append(crc, &bytes[..XL_CRC])
}
