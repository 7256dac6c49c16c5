//! WAL to decoded records: segments are mapped, pages checked, records put together, their CRC
//! calculated, and their headers and block references read. What redo does not pay twice.

mod support;
#[path = "support/wal.rs"]
mod wal;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pgredo::decode::Record;
use pgredo::wal::{Batch, WalReader};

/// Reads all WAL and returns how many records and how many bytes there were.
fn read(mut reader: WalReader, decode: bool) -> (u64, u64) {
    let format = reader.source().layout().format;
    let start = reader.position();
    let mut batch = Batch::new();
    let mut records = 0;
    loop {
        reader
            .fill(&mut batch, 1 << 16, 16 << 20)
            .expect("readable WAL");
        if decode {
            for raw in batch.records() {
                black_box(Record::decode(raw, format).expect("a sound record"));
            }
        }
        records += batch.len() as u64;
        if let Some(end) = batch.end() {
            return (records, end.lsn.0 - start.0);
        }
    }
}

fn decode(c: &mut Criterion) {
    for sample in ["pgbench", "ddl", "locks"] {
        let root = tempfile::tempdir().expect("a temp dir");
        let data = support::unpack(sample, root.path());
        let (records, bytes) = read(wal::reader(&data), true);
        let mut group = c.benchmark_group(format!("decode/{sample}"));
        group.throughput(Throughput::ElementsAndBytes {
            elements: records,
            bytes,
        });
        group.bench_function("read and check", |b| {
            b.iter(|| read(wal::reader(&data), false));
        });
        group.bench_function("read, check and decode", |b| {
            b.iter(|| read(wal::reader(&data), true));
        });
        group.finish();
    }
}

criterion_group!(benches, decode);
criterion_main!(benches);
