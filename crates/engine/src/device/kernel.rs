//! Work of an op on a device, as the backend gets it and as the user wrote it.

use super::api::Tag;
use super::outcome::Enqueued;
use crate::engine::Engine;
use crate::failure::{Failure, OpError, panic_error};
use crate::memory::RawMemory;
use crate::process::denormals::Flushing;
use crate::process::slot;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

type KernelBody = dyn FnOnce(&KernelCtx<'_>) -> Result<(), OpError> + Send;

/// A function of the host that a device runs in its turn on a stream. Dropping it instead is
/// allowed when the device is lost.
pub struct Kernel {
    body: Box<KernelBody>,
    op: Arc<Enqueued>,
    tag: Arc<Tag>,
}

impl Kernel {
    pub(super) fn new(body: Box<KernelBody>, op: Arc<Enqueued>, tag: Arc<Tag>) -> Self {
        Kernel { body, op, tag }
    }

    /// The op it belongs to.
    pub fn tag(&self) -> &Arc<Tag> {
        &self.tag
    }

    /// Runs it. What goes wrong, panics included, is left with its op.
    pub fn run(self) {
        let Kernel { body, op, .. } = self;
        let ctx = KernelCtx { op: &op };
        if let Err(error) = ctx.guarded(body) {
            op.fail(error);
        }
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kernel of {:?}", self.tag)
    }
}

/// Handed to a kernel while it runs. Numbers of accesses are those of
/// [`OpSpec::vars`](crate::OpSpec::vars).
pub struct KernelCtx<'a> {
    op: &'a Arc<Enqueued>,
}

impl KernelCtx<'_> {
    /// Name of the op.
    pub fn name(&self) -> &str {
        self.op.name.as_str()
    }

    /// The engine that enqueued it.
    pub fn engine(&self) -> &'static Engine {
        self.op.engine
    }

    /// The failure of the value that access `i` reads or updates: what came before is complete, so
    /// this is final.
    pub fn failure_of(&self, i: usize) -> Option<Failure> {
        self.op.failure_of_input(i)
    }

    /// Numbers of the accesses whose old value has failed, in declared order.
    pub fn failed_reads(&self) -> impl Iterator<Item = usize> {
        self.op.failed_inputs().into_iter().map(|(i, _)| i)
    }

    /// The failure that this error becomes here: with name, device and origin of this op, where the
    /// error does not say.
    pub fn failure(&self, error: OpError) -> Failure {
        self.op.failure_from(error)
    }

    /// Fails exactly the write with number `i`; the first failure given to an access stays.
    pub fn fail_write(&self, i: usize, failure: Failure) {
        self.op.fail_write(i, failure);
    }

    /// Runs user code: panics become errors, and waiting in there is refused, as inside any op.
    fn guarded(&self, body: Box<KernelBody>) -> Result<(), OpError> {
        let slot = slot::current();
        slot.op_depth.set(slot.op_depth.get() + 1);
        let flushing = Flushing::begin();
        let result = catch_unwind(AssertUnwindSafe(|| body(self)));
        drop(flushing);
        slot.op_depth.set(slot.op_depth.get() - 1);
        result.unwrap_or_else(|payload| Err(panic_error(self.op.name.as_str(), payload)))
    }

    /// Calls `body` for every chunk, one after the other: the chunks are those of
    /// [`RunCtx::split`](crate::RunCtx::split), so the result has the same bits.
    ///
    /// # Panics
    /// If the system has no memory for the scratch, with an [`OpError`] that becomes the op's
    /// failure.
    pub fn split(&self, chunks: usize, scratch_bytes: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        thread_local!(static SCRATCH: Cell<RawMemory> = const { Cell::new(RawMemory::empty()) });
        let _charge = self.op.engine.memory().charge_scratch(scratch_bytes, 1);
        // Taken for the time: a body that splits again gets memory of its own.
        let mut raw = SCRATCH.take();
        let scratch = raw.at_least(scratch_bytes);
        (0..chunks).for_each(|i| body(i, scratch));
        SCRATCH.set(raw);
    }
}
