//! Release and restore of raw weights.
//!
//! A model reads most of its parameters once, to fold and pack them; then it reads the packings. A
//! parameter that was packed without loss can be restored from there. Its memory goes back to the
//! system until it is read again: the array is released. Its address stays. The next reader or
//! writer restores the bytes under the grant that it holds anyway.

use crate::array::Chunk;
use crate::memory::Memory;
use crate::params::push_writing;
use crate::place::readable;
use crate::{NDArray, TensorRef};
use mxrt_engine::{Access, Cost, Engine, EngineKind, OpError, OpKind, OpSpec};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Largest number of releases of an array: one that is read or written repeatedly stays.
const MAX_RELEASES: u32 = 2;

/// A source from which the content of an array can be restored.
pub trait RestoreSource: Send + Sync {
    /// Writes all bytes of the array.
    fn restore(&self, bytes: &mut [u8]) -> Result<(), OpError>;
}

/// [`NDArray::value_key`] of a content.
type ValueKey = (u64, u64, usize);

/// Arrays that are examined, each by an op of its own. When the last of these ops has ended, the
/// arrays that can be restored are released.
pub struct ReleaseBatch {
    engine: &'static Engine,
    releasable: Mutex<Vec<Releasable>>,
}

/// An array that can be released while it holds the content of this key.
struct Releasable {
    array: NDArray,
    key: ValueKey,
    source: Box<dyn RestoreSource>,
}

impl ReleaseBatch {
    /// A batch without arrays.
    pub fn new(engine: &'static Engine) -> Arc<ReleaseBatch> {
        Arc::new(ReleaseBatch { engine, releasable: Mutex::default() })
    }

    /// Pushes an op that asks `find` where the content can be restored from, if the array still
    /// holds the content of this key. The op leaves no failure.
    pub fn examine<F>(self: &Arc<ReleaseBatch>, array: &NDArray, key: ValueKey, find: F)
    where
        F: FnOnce(TensorRef<'_>) -> Option<Box<dyn RestoreSource>> + Send + 'static,
    {
        // A naive engine would wait for the request that it was called from.
        if self.engine.kind() == EngineKind::Naive || !array.is_releasable() {
            return;
        }
        let (batch, array) = (self.clone(), array.clone());
        let var = array.var().clone();
        let accesses = [(&var, Access::Read)];
        let spec = OpSpec::new("examine packing", &accesses).kind(OpKind::NoSkip).cost(Cost::Large).follow_up();
        self.engine.push(spec, move |_| {
            if array.is_releasable()
                && array.value_key() == key
                && let Ok(content) = readable(&array)
                && let Some(source) = find(content)
            {
                batch.releasable.lock().push(Releasable { array, key, source });
            }
            Ok(())
        });
    }
}

impl Drop for ReleaseBatch {
    fn drop(&mut self) {
        let mut releasable = std::mem::take(self.releasable.get_mut());
        releasable.sort_by_key(|f| f.array.var().id());
        releasable.dedup_by(|a, b| a.array.same_storage(&b.array));
        if !releasable.is_empty() {
            push_release(self.engine, releasable);
        }
    }
}

/// Whether the pages of a storage are released, and how often they were.
#[derive(Default)]
pub(crate) struct ReleaseState {
    /// Set under a grant to write, cleared under any grant and the lock.
    released: AtomicBool,
    record: Mutex<ReleaseRecord>,
    /// Number of releases that were tried: as many writes of the variable changed nothing.
    unchanged_writes: AtomicU64,
}

#[derive(Default)]
struct ReleaseRecord {
    source: Option<Box<dyn RestoreSource>>,
    times: u32,
    never: bool,
}

impl ReleaseRecord {
    fn allows(&self) -> bool {
        !self.never && self.times < MAX_RELEASES
    }
}

impl ReleaseState {
    /// Writes of the variable that changed nothing.
    pub fn unchanged_writes(&self) -> u64 {
        self.unchanged_writes.load(Ordering::Relaxed)
    }
}

impl Chunk {
    /// Puts the content back. Called under any grant.
    #[inline]
    pub(crate) fn restore(&self, memory: &Memory) -> Result<(), OpError> {
        if self.release.released.load(Ordering::Acquire) { self.restore_released(memory, true) } else { Ok(()) }
    }

    /// Takes the memory back for content that is about to be written. Called under a grant to
    /// write.
    #[inline]
    pub(crate) fn forget(&self, memory: &Memory) -> Result<(), OpError> {
        if self.release.released.load(Ordering::Acquire) { self.restore_released(memory, false) } else { Ok(()) }
    }

    #[cold]
    fn restore_released(&self, memory: &Memory, with_content: bool) -> Result<(), OpError> {
        self.with_record(|record| {
            if !self.release.released.load(Ordering::Acquire) {
                return Ok(());
            }
            memory.block().map_or(Ok(()), |block| block.restore_pages())?;
            if let Some(source) = record.source.as_ref().filter(|_| with_content) {
                // SAFETY: other threads with a grant wait for the lock until the content is there;
                // the memory has as many bytes as the array.
                source.restore(unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), self.bytes) })?;
            }
            record.source = None;
            self.release.released.store(false, Ordering::Release);
            Ok(())
        })
    }

    /// Keeps the content in its place from now on, or from its next restore on.
    pub(crate) fn never_release(&self) {
        self.with_record(|record| record.never = true);
    }

    /// Whether its address has left the engine's order.
    pub(crate) fn address_is_known(&self) -> bool {
        self.with_record(|record| record.never)
    }

    /// Releases the memory. Called under a grant to write.
    fn release_memory(&self, memory: &Memory, source: Box<dyn RestoreSource>) {
        self.with_record(|record| {
            let Some(block) = memory.block().filter(|_| record.allows()) else { return };
            // SAFETY: no other thread holds a grant or has taken the address out of the engine's
            // order (`never_release`), and later grants pass `restore` or `forget`.
            if unsafe { block.release_pages() } {
                record.times += 1;
                record.source = Some(source);
                self.release.released.store(true, Ordering::Release);
            }
        });
    }

    /// No child process may find the lock held.
    fn with_record<R>(&self, change: impl FnOnce(&mut ReleaseRecord) -> R) -> R {
        self.engine.without_fork(|| change(&mut self.release.record.lock()))
    }
}

impl NDArray {
    /// Whether it is the whole of a storage of the host that is not released yet, holds no failure,
    /// and may be released.
    fn is_releasable(&self) -> bool {
        let release = &self.chunk.release;
        let in_pool = self.chunk.present().is_some_and(|memory| memory.block().is_some());
        let whole = self.covers_storage() && in_pool && self.var().failure().is_none();
        whole && !release.released.load(Ordering::Acquire) && self.chunk.with_record(|record| record.allows())
    }
}

/// Pushes an op that releases those of the arrays which still hold what they held. It passes gates,
/// so requests that read these parameters run before or after it.
fn push_release(engine: &'static Engine, releasable: Vec<Releasable>) {
    let arrays: Vec<NDArray> = releasable.iter().map(|f| f.array.clone()).collect();
    let written: Vec<&NDArray> = arrays.iter().collect();
    let vars: Vec<_> = arrays.iter().map(|a| (a.var(), Access::Update)).collect();
    // Neither a failure nor a cancelled write of one of the arrays concerns the others.
    let spec = OpSpec::new("release raw weights", &vars).kind(OpKind::NoSkip).cost(Cost::Large).follow_up();
    push_writing(engine, &written, spec, move |_| {
        for Releasable { array, key, source } in releasable {
            let chunk = &array.chunk;
            if array.is_releasable()
                && array.value_key() == key
                && let Some(memory) = chunk.present()
            {
                chunk.release_memory(memory, source);
            }
            // This op counts as a write.
            chunk.release.unchanged_writes.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
}
