//! Several small pieces of work as one op: one start, one event, and failures that stay apart.

use super::kernel::KernelCtx;
use crate::engine::Engine;
use crate::failure::OpError;
use crate::op::spec::{OpKind, OpSpec};

type Kernel = dyn FnOnce(&KernelCtx<'_>) -> Result<(), OpError> + Send;

/// One kernel of a bulk, and what it uses of what the bulk declares.
pub struct DevicePart {
    reads: Vec<usize>,
    writes: Vec<usize>,
    kernel: Box<Kernel>,
}

impl DevicePart {
    /// A kernel that reads and writes these accesses of the op.
    pub fn new(
        reads: Vec<usize>,
        writes: Vec<usize>,
        kernel: impl FnOnce(&KernelCtx<'_>) -> Result<(), OpError> + Send + 'static,
    ) -> Self {
        DevicePart { reads, writes, kernel: Box::new(kernel) }
    }

    /// A part whose input has failed, in an earlier part or before, does not run and passes the
    /// failure on.
    fn run(self, ctx: &KernelCtx<'_>) {
        let DevicePart { reads, writes, kernel } = self;
        let failure = match reads.iter().find_map(|i| ctx.failure_so_far(*i)) {
            Some(failure) => Some(failure),
            None => ctx.call(kernel).err(),
        };
        if let Some(failure) = failure {
            writes.iter().for_each(|i| ctx.fail_write(*i, failure.clone()));
        }
    }
}

impl std::fmt::Debug for DevicePart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DevicePart {{ reads: {:?}, writes: {:?} }}", self.reads, self.writes)
    }
}

impl Engine {
    /// Pushes kernels as one op on a device: they are submitted in order to one stream, with one
    /// event after the last. The op names all their variables. A part that fails, or reads a failed
    /// variable, fails its own writes; other variables are not affected.
    pub fn push_device_parts(&'static self, spec: OpSpec<'_>, parts: Vec<DevicePart>) -> Result<(), OpError> {
        self.push_device(spec.kind(OpKind::Selective), move |ctx| {
            parts.into_iter().try_for_each(|part| {
                ctx.launch(move |kernel| {
                    part.run(kernel);
                    Ok(())
                })
            })
        })
    }
}
