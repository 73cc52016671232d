//! Freed blocks that a pool keeps for the next requests.

use super::RawMemory;
use crate::sync::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Freed blocks of a class, the one used longest ago first.
pub(super) struct FreeBlocks {
    list: Mutex<VecDeque<RawMemory>>,
    /// Number of blocks, to be read without the lock; changed under it.
    len: AtomicUsize,
}

impl FreeBlocks {
    pub fn new() -> FreeBlocks {
        FreeBlocks { list: Mutex::new(VecDeque::new()), len: AtomicUsize::new(0) }
    }

    /// How many there are, as far as can be seen without the lock.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Takes the block that was used last, which is the most likely to be in a cache.
    pub fn take_last(&self) -> Option<RawMemory> {
        self.take(VecDeque::pop_back)
    }

    pub fn take_oldest(&self) -> Option<RawMemory> {
        self.take(VecDeque::pop_front)
    }

    fn take(&self, pop: impl FnOnce(&mut VecDeque<RawMemory>) -> Option<RawMemory>) -> Option<RawMemory> {
        let mut list = self.list.lock();
        let taken = pop(&mut list);
        self.len.store(list.len(), Ordering::Relaxed);
        taken
    }

    pub fn take_all(&self) -> VecDeque<RawMemory> {
        let mut list = self.list.lock();
        self.len.store(0, Ordering::Relaxed);
        std::mem::take(&mut *list)
    }

    /// Adds a block, or returns it where the list cannot grow: the system needs the memory more.
    pub fn give(&self, raw: RawMemory) -> Option<RawMemory> {
        let mut list = self.list.lock();
        if list.try_reserve(1).is_err() {
            return Some(raw);
        }
        list.push_back(raw);
        self.len.store(list.len(), Ordering::Relaxed);
        None
    }
}
