//! Steps of a plan on a device.

use crate::ir::describe;
use mxrt_engine::OpError;
use mxrt_engine::device::KernelScope;
use mxrt_ops::DeviceKernel;
use mxrt_tensor::TensorType;
use std::sync::Arc;

/// Place of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum DevicePlace {
    /// input of the graph
    Input(usize),
    /// result of the call
    Output(usize),
    /// byte of the arena
    Arena(usize),
    /// byte of the array of constants
    Constant(usize),
}

pub(super) struct DeviceStep {
    pub kernel: Arc<dyn DeviceKernel>,
    pub inputs: Vec<DevicePlace>,
    pub outputs: Vec<DevicePlace>,
    /// number of the step's piece of the random stream
    pub random: Option<usize>,
    pub node: Arc<StepNode>,
}

/// Subject of the errors of a step: operator, node, and types.
#[derive(Clone)]
pub(super) struct StepNode {
    pub op: &'static str,
    pub name: Arc<str>,
    pub attrs: Arc<Vec<(String, String)>>,
    pub inputs: Vec<TensorType>,
    pub reach: Reach,
}

/// Dependence of each result of the graph on some value: true if the value reaches the result.
pub(super) type Reach = Vec<bool>;

impl KernelScope for StepNode {
    fn describe(&self, error: OpError) -> OpError {
        describe(error, (self.op, &self.name, &self.attrs), self.inputs.iter())
    }

    fn reaches(&self, output: usize) -> bool {
        self.reach.get(output) == Some(&true)
    }
}

/// The results that either value reaches.
pub(super) fn joined(mut all: Reach, reach: &Reach) -> Reach {
    all.resize(all.len().max(reach.len()), false);
    all.iter_mut().zip(reach).for_each(|(all, one)| *all |= one);
    all
}
