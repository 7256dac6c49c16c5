//! Redo of common records as what it is: a function of one record and one page. The records come
//! from the samples, each with its page as it was right before.

mod support;
#[path = "support/wal.rs"]
mod wal;

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use pgredo::decode::{ImageRestorer, Record};
use pgredo::format::RelationPath;
use pgredo::page::Page;
use pgredo::redo::record_name;
use pgredo::rmgr::{self, PageChange, PageState, RedoSettings, Target, Touch, TouchKind, Touches};
use pgredo::types::{BLOCK_BYTES, BlockTag};
use pgredo::wal::Batch;

/// The records measured, by the names that `pgredo waldump` prints.
const RECORDS: &[&str] = &[
    "Heap/INSERT",
    "Heap/HOT_UPDATE",
    "Heap/DELETE",
    "Heap/LOCK",
    "Heap2/MULTI_INSERT",
    "Heap2/PRUNE",
    "Btree/INSERT_LEAF",
    "Btree/DEDUP",
    "Btree/SPLIT_R",
    "Btree/VACUUM",
];

/// Cases kept of each.
const CASES: usize = 64;

const SETTINGS: RedoSettings = RedoSettings {
    hint_bits_are_logged: true,
};

/// A record that changes a page, and the page before it.
#[derive(Debug)]
struct Case<'w> {
    record: Record<'w>,
    touch: Touch,
    page: Page,
}

/// The pages of a sample, as redo has left them so far.
struct Pages<'d> {
    data: &'d Path,
    pages: HashMap<BlockTag, Page>,
    restorer: ImageRestorer,
}

impl Pages<'_> {
    /// The page of a touch as redo finds it; `None` if there is none.
    fn before(&mut self, record: &Record<'_>, touch: &Touch) -> Option<(Page, PageState)> {
        match (touch.kind, touch.target) {
            (TouchKind::Image, Target::Block(id)) => {
                let image = record.block(id)?.image?;
                let mut page = Page::zeroed();
                self.restorer
                    .restore(&image, &mut page)
                    .expect("a sound image");
                Some((page, PageState::Restored))
            }
            (TouchKind::Init, _) => Some((Page::zeroed(), PageState::Needs)),
            _ => {
                let page = match self.pages.get(&touch.tag) {
                    Some(page) => page.clone(),
                    None => self.read(record, touch.tag)?,
                };
                let done = record.end_lsn <= page.lsn();
                Some((
                    page,
                    if done {
                        PageState::Done
                    } else {
                        PageState::Needs
                    },
                ))
            }
        }
    }

    fn read(&self, record: &Record<'_>, tag: BlockTag) -> Option<Page> {
        let path = RelationPath {
            format: record.format,
            locator: tag.locator,
            fork: tag.fork,
        };
        let file = File::open(self.data.join(path.to_string())).ok()?;
        let mut page = Page::zeroed();
        let at = u64::from(tag.block) * BLOCK_BYTES as u64;
        file.read_exact_at(page.bytes_mut(), at).ok()?;
        Some(page)
    }
}

/// Redoes a sample in memory and keeps what the wanted records found.
fn collect<'w>(data: &Path, batch: &'w Batch, cases: &mut HashMap<String, Vec<Case<'w>>>) {
    let format = wal::reader(data).source().layout().format;
    let mut pages = Pages {
        data,
        pages: HashMap::new(),
        restorer: ImageRestorer::default(),
    };
    for raw in batch.records() {
        let record = Record::decode(raw, format).expect("a sound record");
        let name = record_name(&record);
        let mut touches = Touches::new();
        rmgr::touches(&record, &mut touches).expect("a sound record");
        for touch in touches {
            let Some((mut page, state)) = pages.before(&record, &touch) else {
                continue;
            };
            let kept = cases.entry(name.clone()).or_default();
            let wanted = RECORDS.contains(&name.as_str()) && kept.len() < CASES;
            if wanted && state == PageState::Needs && matches!(touch.target, Target::Block(_)) {
                kept.push(Case {
                    record: record.clone(),
                    touch,
                    page: page.clone(),
                });
            }
            let effect = rmgr::redo(&record, &touch, state, &mut page, &SETTINGS);
            let stamped = effect.expect("redo").change == PageChange::Changed
                || state == PageState::Restored && !page.is_new();
            if stamped {
                page.set_lsn(record.end_lsn);
            }
            pages.pages.insert(touch.tag, page);
        }
    }
}

fn redo(c: &mut Criterion) {
    let root = tempfile::tempdir().expect("a temp dir");
    let samples = ["pgbench", "ddl"].map(|sample| {
        let into = root.path().join(sample);
        std::fs::create_dir(&into).expect("a temp dir");
        let data = support::unpack(sample, &into);
        let mut batch = Batch::new();
        wal::reader(&data)
            .fill(&mut batch, usize::MAX, usize::MAX)
            .expect("readable WAL");
        (data, batch)
    });
    let mut cases = HashMap::new();
    for (data, batch) in &samples {
        collect(data, batch, &mut cases);
    }
    let mut group = c.benchmark_group("redo");
    for name in RECORDS {
        let cases = cases.get(*name).filter(|cases| !cases.is_empty());
        let cases = cases.unwrap_or_else(|| panic!("no {name} in the samples"));
        group.throughput(Throughput::Elements(cases.len() as u64));
        group.bench_function(*name, |b| {
            b.iter_batched_ref(
                || cases.iter().map(|case| case.page.clone()).collect(),
                |pages: &mut Vec<Page>| {
                    for (case, page) in cases.iter().zip(pages) {
                        let (record, touch) = (&case.record, &case.touch);
                        let needs = PageState::Needs;
                        rmgr::redo(record, touch, needs, page, &SETTINGS).expect("redo");
                    }
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, redo);
criterion_main!(benches);
