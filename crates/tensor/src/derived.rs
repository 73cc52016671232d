//! Values computed from the content of one array alone, which are kept with the array.
//!
//! An operator that is called again and again with the same weights wants them packed once. The
//! packing belongs to a version of the array: it goes when the array is written, and with its last
//! handle. What is asked for once is computed and forgotten.

use crate::NDArray;
use crate::array::{Chunk, allocate};
use mxrt_engine::memory::Block;
use mxrt_engine::{ForkSafeMutex as Mutex, OpError};
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// Smaller values are recomputed, because this is as fast as finding them.
const LEAST_BYTES: usize = 4 << 10;
/// Values of one array that are remembered, with those that were asked for once.
const REMEMBERED: usize = 4;

/// The values that stay with a storage; made when the first one is asked for.
#[derive(Default)]
pub(crate) struct DerivedValues(OnceLock<Box<Mutex<Values>>>);

/// Values of one version of the storage, the newest first.
#[derive(Default)]
struct Values {
    version: u64,
    entries: SmallVec<[DerivedEntry; 1]>,
}

struct DerivedEntry {
    /// first byte of the view, and what the value is
    offset: usize,
    what: Arc<str>,
    /// there from the second time on that it is asked for
    block: Option<Arc<Block>>,
}

impl DerivedValues {
    /// Drops what belongs to the content that is about to be written.
    pub fn clear(&self) {
        if let Some(values) = self.0.get() {
            let gone = std::mem::take(&mut values.lock().entries);
            // Memory goes back to the pool when no lock is held.
            drop(gone);
        }
    }
}

/// A view whose values can be asked for by operators that read it.
pub struct DerivedFrom {
    chunk: Arc<Chunk>,
    offset: usize,
}

impl NDArray {
    /// Access to what is computed from the content of this view.
    pub fn derived(&self) -> DerivedFrom {
        DerivedFrom { chunk: self.chunk.clone(), offset: self.offset }
    }
}

impl DerivedFrom {
    /// The value `what` of `bytes` bytes, from `compute` if it is not there. Equal names mean equal
    /// functions of type and content. Only called inside an operator that was pushed to read the
    /// array.
    pub fn get_or_compute(
        &self,
        what: &Arc<str>,
        bytes: usize,
        compute: impl FnOnce(&mut [u8]) -> Result<(), OpError>,
    ) -> Result<Arc<Block>, OpError> {
        let keep = bytes >= LEAST_BYTES && self.may_stay(bytes);
        let asked_before = match keep.then(|| self.look_up(what)) {
            Some(Some(Some(block))) => return Ok(block),
            Some(Some(None)) => true,
            Some(None) | None => false,
        };
        let mut block = allocate(self.chunk.engine, bytes)?;
        compute(block.as_mut_slice())?;
        let block = Arc::new(block);
        if asked_before {
            self.remember(what, &block);
        }
        Ok(block)
    }

    /// Whether writes of the array are known to the engine, and a limit of memory leaves room for
    /// the value and as much again.
    fn may_stay(&self, bytes: usize) -> bool {
        let stats = self.chunk.engine.memory().stats();
        let room = stats.limit.is_none_or(|limit| limit.saturating_sub(stats.in_use) / 2 >= bytes);
        room && self.chunk.is_written_by_the_engine_alone()
    }

    fn values(&self) -> &Mutex<Values> {
        self.chunk.derived.0.get_or_init(Box::default)
    }

    /// The value; `Some(None)` if it has been asked for, and noted now if not.
    fn look_up(&self, what: &Arc<str>) -> Option<Option<Arc<Block>>> {
        let version = self.chunk.content_version();
        let mut values = self.values().lock();
        let mut gone = SmallVec::new();
        if values.version != version {
            gone = std::mem::take(&mut values.entries);
            values.version = version;
        }
        let at = values.entries.iter().position(|e| e.offset == self.offset && *e.what == **what);
        let found = at.map(|at| {
            values.entries[..=at].rotate_right(1);
            values.entries[0].block.clone()
        });
        if at.is_none() {
            values.entries.insert(0, DerivedEntry { offset: self.offset, what: what.clone(), block: None });
            let bound = REMEMBERED.min(values.entries.len());
            gone.extend(values.entries.drain(bound..));
        }
        drop(values);
        drop(gone);
        found
    }

    /// Lets the value stay. Others go, the oldest first, until they take no more than the array and
    /// half as much again.
    fn remember(&self, what: &Arc<str>, block: &Arc<Block>) {
        let mut values = self.values().lock();
        if let Some(entry) = values.entries.iter_mut().find(|e| e.offset == self.offset && *e.what == **what) {
            entry.block = Some(block.clone());
        }
        let (mut held, bound) = (0, self.chunk.bytes + self.chunk.bytes / 2);
        let mut gone = SmallVec::<[Arc<Block>; REMEMBERED]>::new();
        for (i, entry) in values.entries.iter_mut().enumerate() {
            held += entry.block.as_ref().map_or(0, |block| block.len());
            if i > 0 && held > bound {
                gone.extend(entry.block.take());
            }
        }
        drop(values);
    }
}
