//! The site of an op of the host.

use super::inputs::{CallInputs, InputSource};
use crate::memory::constants::allocate;
use crate::memory::release;
use crate::plan::{PackedParam, RunSite};
use mxrt_engine::memory::MemoryPool;
use mxrt_engine::profile::ProfiledOp;
use mxrt_engine::{Failure, OpError};
use mxrt_ops::{EnginePar, Par};
use mxrt_tensor::Interest;

/// The site of an op of the host.
pub(super) struct HostSite<'a, 'o> {
    par: EnginePar<'a, 'o>,
    inputs: &'a CallInputs<'a>,
    /// interests in the results, if the call may be cancelled by dropping them
    wanted: &'a [Interest],
}

impl<'a, 'o> HostSite<'a, 'o> {
    pub(super) fn new(par: EnginePar<'a, 'o>, inputs: &'a CallInputs<'a>, wanted: &'a [Interest]) -> Self {
        HostSite { par, inputs, wanted }
    }
}

impl RunSite for HostSite<'_, '_> {
    fn par(&self) -> &dyn Par {
        &self.par
    }

    fn memory(&self) -> &'static MemoryPool {
        self.par.0.engine().memory()
    }

    fn with_arena(&self, bytes: usize, run: &mut dyn FnMut(&mut [u8])) -> Result<(), OpError> {
        run(allocate(self.memory(), bytes)?.as_mut_slice());
        Ok(())
    }

    fn failure(&self, error: OpError) -> Failure {
        self.par.0.failure(error)
    }

    fn is_cancelled(&self) -> bool {
        !self.wanted.is_empty() && self.wanted.iter().all(Interest::is_lost)
    }

    fn profiled(&self) -> Option<ProfiledOp> {
        self.par.0.profiled()
    }

    fn packed(&self, params: Vec<PackedParam>) {
        let array_of = |input: usize| match self.inputs.sources.get(input) {
            Some(InputSource::Param(at)) => self.inputs.arrays.params().get(*at),
            _ => None,
        };
        release::push_release(self.par.0.engine(), &array_of, params);
    }
}
