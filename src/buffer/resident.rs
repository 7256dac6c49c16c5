//! Which blocks of a fork are in the pool.

use rustc_hash::FxHashMap;

use super::Frame;
use crate::types::BlockNumber;

const CHUNK_BLOCKS: u32 = 64;
/// Chunks that are reached by index: the first 32 GiB of a fork. A single block number far out
/// must not cost memory for everything before it.
const DENSE_CHUNKS: u32 = 1 << 16;

#[derive(Debug)]
struct Chunk {
    frames: [Frame; CHUNK_BLOCKS as usize],
    resident: u32,
}

impl Chunk {
    fn empty() -> Box<Chunk> {
        Box::new(Chunk {
            frames: [Frame::NONE; CHUNK_BLOCKS as usize],
            resident: 0,
        })
    }
}

/// The frames of one fork's blocks.
#[derive(Debug, Default)]
pub(super) struct Resident {
    dense: Vec<Option<Box<Chunk>>>,
    sparse: FxHashMap<u32, Box<Chunk>>,
    resident: usize,
}

impl Resident {
    /// Blocks in the pool.
    pub(super) fn len(&self) -> usize {
        self.resident
    }

    fn chunk(&self, chunk: u32) -> Option<&Chunk> {
        if chunk < DENSE_CHUNKS {
            self.dense.get(chunk as usize)?.as_deref()
        } else {
            self.sparse.get(&chunk).map(|c| &**c)
        }
    }

    fn chunk_mut(&mut self, chunk: u32) -> &mut Chunk {
        if chunk >= DENSE_CHUNKS {
            return self.sparse.entry(chunk).or_insert_with(Chunk::empty);
        }
        let index = chunk as usize;
        if self.dense.len() <= index {
            self.dense.resize_with(index + 1, || None);
        }
        self.dense[index].get_or_insert_with(Chunk::empty)
    }

    pub(super) fn get(&self, block: BlockNumber) -> Option<Frame> {
        let frame = self.chunk(block / CHUNK_BLOCKS)?.frames[(block % CHUNK_BLOCKS) as usize];
        frame.is_some().then_some(frame)
    }

    pub(super) fn insert(&mut self, block: BlockNumber, frame: Frame) {
        let chunk = self.chunk_mut(block / CHUNK_BLOCKS);
        let slot = &mut chunk.frames[(block % CHUNK_BLOCKS) as usize];
        assert!(!slot.is_some(), "block {block} is in the pool twice");
        *slot = frame;
        chunk.resident += 1;
        self.resident += 1;
    }

    pub(super) fn remove(&mut self, block: BlockNumber) {
        let number = block / CHUNK_BLOCKS;
        let chunk = self.chunk_mut(number);
        let slot = &mut chunk.frames[(block % CHUNK_BLOCKS) as usize];
        assert!(slot.is_some(), "block {block} is not in the pool");
        *slot = Frame::NONE;
        chunk.resident -= 1;
        let empty = chunk.resident == 0;
        self.resident -= 1;
        if empty && number >= DENSE_CHUNKS {
            self.sparse.remove(&number);
        } else if empty {
            self.dense[number as usize] = None;
        }
    }

    /// Blocks from `first` on that are in the pool, in order, and the number of table entries
    /// looked at to find them.
    pub(super) fn blocks_from(&self, first: BlockNumber) -> (Vec<(BlockNumber, Frame)>, u64) {
        let mut found = Vec::new();
        let mut visits = 0;
        if self.resident == 0 {
            return (found, visits);
        }
        let mut visit = |number: u32, chunk: &Chunk| {
            for (i, frame) in chunk.frames.iter().enumerate() {
                let block = number * CHUNK_BLOCKS + i as u32;
                if block >= first {
                    visits += 1;
                    if frame.is_some() {
                        found.push((block, *frame));
                    }
                }
            }
        };
        let first_chunk = first / CHUNK_BLOCKS;
        for (number, chunk) in (0..).zip(&self.dense).skip(first_chunk as usize) {
            if let Some(chunk) = chunk {
                visit(number, chunk);
            }
        }
        for (number, chunk) in &self.sparse {
            if *number >= first_chunk {
                visit(*number, chunk);
            }
        }
        found.sort_unstable_by_key(|(block, _)| *block);
        (found, visits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_map_and_gives_memory_back() {
        let mut resident = Resident::default();
        let mut naive = std::collections::BTreeMap::new();
        let mut seed = 12345u64;
        for step in 0..20_000u32 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let block = match seed >> 60 {
                0 => u32::MAX - (seed >> 40) as u32 % 100,
                _ => (seed >> 40) as u32 % 3000,
            };
            assert_eq!(resident.get(block), naive.get(&block).copied());
            if naive.remove(&block).is_some() {
                resident.remove(block);
            } else {
                let frame = Frame::new(step as usize);
                naive.insert(block, frame);
                resident.insert(block, frame);
            }
        }
        for first in [0, 63, 64, 1500, u32::MAX - 50] {
            let expected: Vec<_> = naive.range(first..).map(|(b, f)| (*b, *f)).collect();
            assert_eq!(resident.blocks_from(first).0, expected);
        }
        for block in naive.into_keys() {
            resident.remove(block);
        }
        assert_eq!(resident.len(), 0);
        assert!(resident.sparse.is_empty() && resident.dense.iter().all(Option::is_none));
    }

    #[test]
    fn a_far_block_costs_little() {
        let mut resident = Resident::default();
        resident.insert(u32::MAX - 1, Frame::new(1));
        assert!(resident.dense.is_empty());
    }
}
