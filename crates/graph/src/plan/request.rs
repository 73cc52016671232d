//! Arguments of a request to a plan: where it runs; contents, versions and failures of the inputs.

use super::{PackedParam, ValueKey};
use mxrt_engine::memory::MemoryPool;
use mxrt_engine::profile::ProfiledOp;
use mxrt_engine::{Failure, OpError};
use mxrt_ops::{Par, RandomKey};
use mxrt_tensor::TensorRef;

/// Arguments of one request.
#[derive(Clone, Copy)]
pub struct PlanRequest<'a> {
    /// where it runs
    pub site: &'a dyn RunSite,
    /// arguments, in the order of the graph's inputs
    pub inputs: &'a dyn GraphInputs,
    /// pieces of the random stream, one for each random step
    pub random: &'a [RandomKey],
}

/// Where plans run: in an op of the host, or in a kernel of a device.
pub trait RunSite: Sync {
    /// Splits loops over idle cores.
    fn par(&self) -> &dyn Par;
    /// Where constants live.
    fn memory(&self) -> &'static MemoryPool;
    /// Calls `run` with so many bytes, of any content, aligned as blocks of memory are.
    fn with_arena(&self, bytes: usize, run: &mut dyn FnMut(&mut [u8])) -> Result<(), OpError>;
    /// Makes the failure of an error of a step.
    fn failure(&self, error: OpError) -> Failure;
    /// Whether all results were dropped by a caller that wants the request cancelled then. Loops
    /// look between iterations.
    fn is_cancelled(&self) -> bool {
        false
    }
    /// Some if the profiler records the request.
    fn profiled(&self) -> Option<ProfiledOp> {
        None
    }
    /// Called when these parameters have just been packed: their raw weights may be released.
    fn packed(&self, params: Vec<PackedParam>);
}

/// Where plans within a request run: the graphs of a loop, the segments of a graph in stages.
pub(crate) struct NestedSite<'a> {
    pub outer: &'a dyn RunSite,
    /// by input of the plan within: the input of the outer graph whose raw weights may go with it
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
    /// The content. Not asked for where there is a failure.
    fn tensor(&self, input: usize) -> Result<TensorRef<'_>, OpError>;
    /// Variable, version and offset: equal keys, equal content.
    fn key(&self, input: usize) -> ValueKey;
    /// The failure in the place of the content.
    fn failure(&self, input: usize) -> Option<&Failure>;
    /// Whether any input has failed.
    fn any_failed(&self) -> bool;
    /// Key of the content of all parameters together, where it is known.
    fn params_key(&self) -> Option<(u64, u64)>;
    /// Weights that were packed before the first iteration of a loop, by number.
    fn packed_once(&self, _: usize) -> Option<&[u8]> {
        None
    }
}
