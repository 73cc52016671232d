//! Words by which kernels of a device report errors that depend on data: page-locked memory of the
//! host that the device can write. 0 means that all is well; what a kernel puts there is looked at
//! when the op's event is complete.

use super::api::DevicePtr;
use super::op::DeviceCtx;
use super::open::OpenDevice;
use crate::failure::{OpError, panic_error};
use crate::sync::Mutex;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of page-locked memory that are divided into words in one step.
const SLAB: usize = 4096;

/// A word that no thread uses.
struct Word(*mut u64);

// SAFETY: an address of page-locked memory, which stays as long as the process; one word has one
// user at a time.
unsafe impl Send for Word {}

/// The free words of a device.
pub(super) struct StatusPool(Mutex<Vec<Word>>);

/// A part of an op: what its kernels say about their data fails that part alone.
pub trait KernelScope: Send + Sync {
    /// Adds to an error what the part is.
    fn describe(&self, error: OpError) -> OpError;

    /// Whether the op's output of this number depends on the part.
    fn reaches(&self, output: usize) -> bool;
}

/// A part, and the accesses of its op's outputs.
#[derive(Clone)]
pub(super) struct InScope {
    part: Arc<dyn KernelScope>,
    outputs: Range<usize>,
}

/// The meaning of a word.
pub(super) type Explain = Arc<dyn Fn(u64) -> OpError + Send + Sync>;

/// A word of one op, and what it means.
pub(crate) struct StatusWord {
    device: &'static OpenDevice,
    word: *mut u64,
    explain: Explain,
    scope: Option<InScope>,
}

/// An error that kernels reported, and the accesses that it fails; none: the whole op.
pub(crate) struct Complaint {
    pub error: OpError,
    pub writes: Option<Vec<usize>>,
}

// SAFETY: the word is this owner's; see `Word`.
unsafe impl Send for StatusWord {}

impl Default for StatusPool {
    fn default() -> Self {
        StatusPool(Mutex::new(Vec::new()))
    }
}

impl StatusPool {
    fn take(&self, device: &'static OpenDevice) -> Result<Word, OpError> {
        if let Some(word) = self.0.lock().pop() {
            return Ok(word);
        }
        let slab = device.backend.alloc_pinned(SLAB).map_err(|e| device.op_error(&e, "allocating status words"))?;
        let mut words: Vec<Word> = (0..SLAB / 8).map(|i| Word(slab.wrapping_add(8 * i).cast())).collect();
        let word = words.pop().unwrap_or_else(|| unreachable!("a slab has words"));
        self.0.lock().append(&mut words);
        Ok(word)
    }
}

impl StatusWord {
    /// The error that the kernel has reported. The op is complete.
    pub fn complaint(mut self, name: &str) -> Option<Complaint> {
        // SAFETY: aligned page-locked memory that belongs to this word; the device is done with it.
        let value = unsafe { AtomicU64::from_ptr(self.word) }.load(Ordering::Acquire);
        if value == 0 {
            return None;
        }
        let (explain, scope) = (self.explain.clone(), self.scope.take());
        let described = || match &scope {
            Some(scope) => scope.part.describe(explain(value)),
            None => explain(value),
        };
        let error = catch_unwind(AssertUnwindSafe(described)).unwrap_or_else(|payload| panic_error(name, payload));
        Some(Complaint { error, writes: scope.map(|scope| scope.writes()) })
    }
}

impl InScope {
    fn writes(&self) -> Vec<usize> {
        self.outputs.clone().filter(|access| self.part.reaches(access - self.outputs.start)).collect()
    }
}

impl Drop for StatusWord {
    fn drop(&mut self) {
        // Whether a lost device still writes there, no thread knows.
        if !self.device.is_lost() {
            self.device.status.0.lock().push(Word(self.word));
        }
    }
}

impl DeviceCtx<'_> {
    /// Eight bytes that kernels of this op may write until it is complete: the address is the same
    /// for host and device. If they are not 0 then, `explain` turns them into the op's error, as if
    /// a kernel of the host had returned it. A kernel that checks data reports its first complaint
    /// by compare-and-swap from 0; it continues, and its results for such data do not matter.
    pub fn status_word(&self, explain: impl Fn(u64) -> OpError + Send + Sync + 'static) -> Result<DevicePtr, OpError> {
        let explain: Explain = Arc::new(explain);
        match self.recorded_word(&explain)? {
            Some(at) => Ok(at),
            None => {
                let word = self.new_status_word(explain, self.scope.borrow().clone())?;
                Ok(DevicePtr(word.expose_provenance() as u64))
            }
        }
    }

    /// A word of this op, which is 0.
    pub(super) fn new_status_word(&self, explain: Explain, scope: Option<InScope>) -> Result<*mut u64, OpError> {
        let Word(word) = self.device.status.take(self.device)?;
        // SAFETY: aligned page-locked memory; its last user is complete.
        unsafe { AtomicU64::from_ptr(word) }.store(0, Ordering::Release);
        self.op.add_status(StatusWord { device: self.device, word, explain, scope });
        Ok(word)
    }

    /// Submits a part of the op, which says which of the outputs depend on it; these are accesses of
    /// the op, in their order.
    pub fn within<T>(&self, part: Arc<dyn KernelScope>, outputs: Range<usize>, submit: impl FnOnce() -> T) -> T {
        let before = self.scope.replace(Some(InScope { part, outputs }));
        let submitted = submit();
        self.scope.replace(before);
        submitted
    }

    /// Says of an op of kind [`Selective`](crate::OpKind::Selective) which accesses fail where one
    /// that it reads has failed. Without it none do.
    pub fn inherit(&self, heirs: impl Fn(usize) -> Vec<usize> + Send + 'static) {
        self.op.set_heirs(Box::new(heirs));
    }
}
