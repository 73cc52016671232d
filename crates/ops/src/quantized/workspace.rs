//! A kernel that is a function with scratch memory.

use crate::prelude::*;

/// A function that takes [`KernelCall::workspace`] of this size.
pub(crate) struct WithWorkspace<F> {
    pub name: &'static str,
    /// bytes
    pub workspace: usize,
    pub cost_ns: u64,
    pub run: F,
}

impl<F> Kernel for WithWorkspace<F>
where
    F: Fn(&mut KernelCall<'_, '_>) -> Result<(), OpError> + Send + Sync,
{
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        (self.run)(call)
    }

    fn workspace(&self) -> usize {
        self.workspace
    }

    fn describe(&self) -> String {
        self.name.to_owned()
    }

    fn cost_ns(&self) -> u64 {
        self.cost_ns
    }
}
