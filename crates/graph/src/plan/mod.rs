//! Types of a compiled graph: steps, operands, constants, and the arguments of a request.
//!
//! `compile` makes plans, `memory` assigns places and computes constants, and `execute` runs them.

mod constants;
mod fingerprint;
mod request;
mod step;

pub(crate) use constants::{
    ConstBlock, ConstNode, ConstPack, ConstPlan, ConstSet, ConstSlot, ConstSource, PackedParam, REMEMBERED,
    RememberedSets, ValueKey,
};
pub(crate) use fingerprint::Fingerprint;
pub(crate) use request::{GraphInputs, NestedSite, PlanRequest, RunSite};
pub(crate) use step::{ArenaPiece, BodyCall, CopyKernel, Operand, OperandPlace, PackedPlace, Step, StepBody, StepNeed};

use mxrt_ops::ConvSignature;
use mxrt_tensor::TensorType;
use std::collections::HashSet;

/// An immutable list of steps for one signature. A run writes only to memory of its request.
pub struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) consts: ConstPlan,
    pub(crate) arena_bytes: usize,
    /// the step that makes each result
    pub(crate) made_by: Vec<usize>,
    pub(crate) inputs: Vec<TensorType>,
    /// positions of the inputs that are not parameters
    pub(crate) data: Vec<usize>,
    pub(crate) outputs: Vec<TensorType>,
    pub(crate) cost_ns: u64,
    /// the steps whose weights are packed before the first iteration of a loop
    pub(crate) packed_once: Vec<usize>,
    /// remarks for readers of the plan's text
    pub(crate) notes: Vec<&'static str>,
}

impl Plan {
    /// Types of the results.
    pub fn outputs(&self) -> &[TensorType] {
        &self.outputs
    }

    /// Estimated time on one core, in nanoseconds.
    pub fn cost_ns(&self) -> u64 {
        self.cost_ns
    }

    /// The convolutions that tables of measured choices know, step by step.
    pub(crate) fn convolutions(&self) -> Vec<ConvSignature> {
        let steps = self.with_inner().into_iter().flat_map(|plan| &plan.steps);
        steps.filter_map(|step| step.kernel.convolution()).collect()
    }

    /// Number of pieces of the random stream that one request draws.
    pub fn random_draws(&self) -> usize {
        self.steps.iter().filter(|s| s.random).count()
    }

    /// The plan, and the plans of the graphs inside its nodes.
    pub(crate) fn with_inner(&self) -> Vec<&Plan> {
        let inner = self.steps.iter().filter_map(|step| step.body.as_ref()).flat_map(|body| body.plans());
        [self].into_iter().chain(inner).collect()
    }

    /// Approximate size of the plan itself, without its constants.
    pub(crate) fn own_bytes(&self) -> usize {
        let text = |step: &Step| -> usize { step.attrs.iter().map(|(k, v)| k.len() + v.len() + 48).sum() };
        let one = |step: &Step| {
            let operands = (step.inputs.len() + step.outputs.len()) * size_of::<Operand>();
            // Kernels are small; what they point to has no common measure.
            size_of::<Step>() + 512 + operands + step.pieces.len() * size_of::<ArenaPiece>() + text(step)
        };
        size_of::<Plan>() + self.steps.iter().map(one).sum::<usize>() + self.consts.own_bytes()
    }

    /// The first line of the plan's text.
    pub(crate) fn title(&self) -> String {
        let data = self.data.iter().map(|i| self.inputs[*i].to_string()).collect::<Vec<_>>().join(", ");
        format!("plan for {data} and {} parameters", self.inputs.len() - self.data.len())
    }

    /// Bytes of scratch memory that a running request needs.
    pub fn arena_bytes(&self) -> usize {
        self.arena_bytes
    }

    /// The inputs of the graph that steps, or the graphs inside them, read unpacked.
    pub fn inputs_read(&self) -> HashSet<usize> {
        let operands = self.steps.iter().flat_map(|step| &step.inputs);
        let input = |place| if let OperandPlace::Input(input) = place { Some(input) } else { None };
        let inside = self.steps.iter().filter_map(|step| step.body.as_ref()).flat_map(|body| body.inputs_read());
        operands.filter_map(|operand| input(operand.place)).chain(inside).collect()
    }

    /// Bytes of each packing that is made before the first iteration.
    pub fn packed_once_bytes(&self) -> impl Iterator<Item = usize> {
        self.packed_once.iter().map(|s| self.steps[*s].kernel.packing().map_or(0, |packing| packing.bytes()))
    }
}
