//! Arrays whose content is elsewhere for the time being.
//!
//! A model reads most of its parameters once, to fold and pack them; then it reads the packings. What was packed without loss can
//! be made again from there, so the memory of such a parameter goes back to the system while nobody looks at it: the array is
//! stowed. Its address stays. Whoever needs the bytes next makes them again, under the grant that he holds anyway.

use crate::array::Chunk;
use crate::memory::Memory;
use crate::params::push_writing;
use crate::place::readable;
use crate::{NDArray, TensorRef};
use mxrt_engine::{Access, Cost, Engine, EngineKind, OpError, OpKind, OpSpec};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is read or written again and again stays: an array is stowed so many times at most.
const MOST_TIMES: u32 = 2;

/// What the content of an array can be made of.
pub trait Origin: Send + Sync {
    /// Writes all bytes of the array.
    fn restore(&self, bytes: &mut [u8]) -> Result<(), OpError>;
}

/// [`NDArray::value_key`] of a content.
type ValueKey = (u64, u64, usize);

/// Arrays that are looked at, each by an op of its own; when the last of these has ended, what can be stowed is.
pub struct Stowing {
    engine: &'static Engine,
    found: Mutex<Vec<Found>>,
}

/// An array that can be stowed while it holds the content of this key.
struct Found {
    array: NDArray,
    key: ValueKey,
    origin: Box<dyn Origin>,
}

impl Stowing {
    /// Nothing yet.
    pub fn new(engine: &'static Engine) -> Arc<Stowing> {
        Arc::new(Stowing { engine, found: Mutex::default() })
    }

    /// Pushes an op that asks `find` how the content can be made again, if the array still holds the one of this key.
    /// Whatever it holds, the op leaves no failure.
    pub fn look_at<F>(self: &Arc<Stowing>, array: &NDArray, key: ValueKey, find: F)
    where
        F: FnOnce(TensorRef<'_>) -> Option<Box<dyn Origin>> + Send + 'static,
    {
        // A naive engine would wait for the request that it was called from.
        if self.engine.kind() == EngineKind::Naive || !array.can_be_stowed() {
            return;
        }
        let (stowing, array) = (self.clone(), array.clone());
        let var = array.var().clone();
        let accesses = [(&var, Access::Read)];
        let spec = OpSpec::new("look at packing", &accesses).kind(OpKind::NoSkip).cost(Cost::Large);
        self.engine.push(spec, move |_| {
            if array.can_be_stowed()
                && array.value_key() == key
                && let Ok(content) = readable(&array)
                && let Some(origin) = find(content)
            {
                stowing.found.lock().push(Found { array, key, origin });
            }
            Ok(())
        });
    }
}

impl Drop for Stowing {
    fn drop(&mut self) {
        let mut found = std::mem::take(self.found.get_mut());
        found.sort_by_key(|f| f.array.var().id());
        found.dedup_by(|a, b| a.array.same_storage(&b.array));
        if !found.is_empty() {
            stow(self.engine, found);
        }
    }
}

/// What a storage knows of this.
#[derive(Default)]
pub(crate) struct Stow {
    /// Set under a grant to write, cleared under any grant and the lock.
    away: AtomicBool,
    state: Mutex<State>,
    /// How often it was tried: so many writes of the variable changed nothing.
    count: AtomicU64,
}

#[derive(Default)]
struct State {
    origin: Option<Box<dyn Origin>>,
    times: u32,
    never: bool,
}

impl State {
    fn allows(&self) -> bool {
        !self.never && self.times < MOST_TIMES
    }
}

impl Stow {
    /// Writes of the variable that changed nothing.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

impl Chunk {
    /// Puts the content back. Called under any grant.
    #[inline]
    pub(crate) fn restore(&self, memory: &Memory) -> Result<(), OpError> {
        if self.stow.away.load(Ordering::Acquire) { self.bring_back(memory, true) } else { Ok(()) }
    }

    /// Takes the memory back for content that is about to be written. Called under a grant to write.
    #[inline]
    pub(crate) fn forget(&self, memory: &Memory) -> Result<(), OpError> {
        if self.stow.away.load(Ordering::Acquire) { self.bring_back(memory, false) } else { Ok(()) }
    }

    #[cold]
    fn bring_back(&self, memory: &Memory, with_content: bool) -> Result<(), OpError> {
        self.with_state(|state| {
            if !self.stow.away.load(Ordering::Acquire) {
                return Ok(());
            }
            memory.block().map_or(Ok(()), |block| block.take_back())?;
            if let Some(origin) = state.origin.as_ref().filter(|_| with_content) {
                // SAFETY: whoever else has a grant waits for the lock until the content is there; the memory has as many bytes
                // as the array.
                origin.restore(unsafe { std::slice::from_raw_parts_mut(memory.as_ptr(), self.bytes) })?;
            }
            state.origin = None;
            self.stow.away.store(false, Ordering::Release);
            Ok(())
        })
    }

    /// Keeps the content in its place from now on, or from the next time on that somebody needs it there.
    pub(crate) fn never_stow(&self) {
        self.with_state(|state| state.never = true);
    }

    /// Gives the memory away. Called under a grant to write.
    fn put_away(&self, memory: &Memory, origin: Box<dyn Origin>) {
        self.with_state(|state| {
            let Some(block) = memory.block().filter(|_| state.allows()) else { return };
            // SAFETY: nobody else holds a grant, nobody has taken the address out of the engine's order (`never_stow`), and who
            // gets a grant later passes `restore` or `forget`.
            if unsafe { block.lend() } {
                state.times += 1;
                state.origin = Some(origin);
                self.stow.away.store(true, Ordering::Release);
            }
        });
    }

    /// No child process may find the lock held.
    fn with_state<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        self.engine.without_fork(|| change(&mut self.stow.state.lock()))
    }
}

impl NDArray {
    /// Whether it is the whole of a storage of the host that is not stowed yet, holds no failure, and may be stowed.
    fn can_be_stowed(&self) -> bool {
        let stow = &self.chunk.stow;
        let in_pool = self.chunk.present().is_some_and(|memory| memory.block().is_some());
        let whole = self.covers_storage() && in_pool && self.var().failure().is_none();
        whole && !stow.away.load(Ordering::Acquire) && self.chunk.with_state(|state| state.allows())
    }
}

/// Pushes an op that stows those of the arrays which still hold what they held. It passes gates, so requests that read these
/// parameters run before or after it.
fn stow(engine: &'static Engine, found: Vec<Found>) {
    let arrays: Vec<NDArray> = found.iter().map(|f| f.array.clone()).collect();
    let written: Vec<&NDArray> = arrays.iter().collect();
    let vars: Vec<_> = arrays.iter().map(|a| (a.var(), Access::Update)).collect();
    // Neither a failure of one of the arrays nor somebody who cancels its writes concerns the others.
    let spec = OpSpec::new("stow", &vars).kind(OpKind::NoSkip).cost(Cost::Large);
    push_writing(engine, &written, spec, move |_| {
        for Found { array, key, origin } in found {
            let chunk = &array.chunk;
            if array.can_be_stowed()
                && array.value_key() == key
                && let Some(memory) = chunk.present()
            {
                chunk.put_away(memory, origin);
            }
            // This op counts as a write.
            chunk.stow.count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
}
