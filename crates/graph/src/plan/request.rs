//! Arguments of a request to a plan: its site, and the contents, versions and failures of the
//! inputs.

use super::{PackedParam, ValueKey};
use mxrt_engine::memory::MemoryPool;
use mxrt_engine::profile::ProfiledOp;
use mxrt_engine::{Failure, OpError};
use mxrt_ops::{Par, RandomKey};
use mxrt_tensor::TensorRef;

/// Arguments of one request.
#[derive(Clone, Copy)]
pub struct PlanRequest<'a> {
    /// the op that runs the plan
    pub site: &'a dyn RunSite,
    /// arguments, in the order of the graph's inputs
    pub inputs: &'a dyn GraphInputs,
    /// pieces of the random stream, one for each random step
    pub random: &'a [RandomKey],
}

/// A site at which plans run: an op of the host, or a kernel of a device.
pub trait RunSite: Sync {
    /// Splits loops over idle cores.
    fn par(&self) -> &dyn Par;
    /// The pool that holds constants.
    fn memory(&self) -> &'static MemoryPool;
    /// Calls `run` with `bytes` bytes of any content, aligned like blocks of memory.
    fn with_arena(&self, bytes: usize, run: &mut dyn FnMut(&mut [u8])) -> Result<(), OpError>;
    /// Makes the failure of an error of a step.
    fn failure(&self, error: OpError) -> Failure;
    /// Whether all results were dropped by a caller that wants the request cancelled in this case.
    /// Loops check this between iterations.
    fn is_cancelled(&self) -> bool {
        false
    }
    /// The op in the profile, if the profiler records the request.
    fn profiled(&self) -> Option<ProfiledOp> {
        None
    }
    /// Reports that these parameters have just been packed, so that their raw weights may be
    /// released.
    fn packed(&self, params: Vec<PackedParam>);
}

/// A site within a request: that of the graphs of a loop, or of the segments of a graph in stages.
pub(crate) struct NestedSite<'a> {
    pub outer: &'a dyn RunSite,
    /// gives, for an input of the inner plan, the input of the outer graph whose raw weights it may
    /// release
    pub released: &'a (dyn Fn(usize) -> Option<usize> + Sync),
}

impl RunSite for NestedSite<'_> {
    fn par(&self) -> &dyn Par {
        self.outer.par()
    }

    fn memory(&self) -> &'static MemoryPool {
        self.outer.memory()
    }

    fn with_arena(&self, bytes: usize, run: &mut dyn FnMut(&mut [u8])) -> Result<(), OpError> {
        self.outer.with_arena(bytes, run)
    }

    fn failure(&self, error: OpError) -> Failure {
        self.outer.failure(error)
    }

    fn is_cancelled(&self) -> bool {
        self.outer.is_cancelled()
    }

    fn profiled(&self) -> Option<ProfiledOp> {
        self.outer.profiled()
    }

    fn packed(&self, params: Vec<PackedParam>) {
        self.outer.packed(params.into_iter().filter_map(|param| param.of_outer(self.released)).collect());
    }
}

/// The inputs of a graph, by number.
pub trait GraphInputs: Sync {
    /// The content. Callers ask for it only if the input has not failed.
    fn tensor(&self, input: usize) -> Result<TensorRef<'_>, OpError>;
    /// Variable, version and offset. Equal keys mean equal contents.
    fn key(&self, input: usize) -> ValueKey;
    /// The failure that the input holds instead of a content.
    fn failure(&self, input: usize) -> Option<&Failure>;
    /// Whether any input has failed.
    fn any_failed(&self) -> bool;
    /// Key of the contents of all parameters together, if it is known.
    fn params_key(&self) -> Option<(u64, u64)>;
    /// Weights that were packed before the first iteration of a loop, by number.
    fn packed_once(&self, _: usize) -> Option<&[u8]> {
        None
    }
}
