//! A device with kernels of its own as a target: kernels of its forms, in an arena and an array of
//! constants there.

use super::layout::Layouts;
use super::step::{DevicePlace, DeviceStep, Reach, StepNode, joined};
use crate::compile::interrupt::Interrupter;
use crate::compile::lower::Target;
use crate::compile::options::BuildOptions;
use crate::compile::values::{GraphValues, Results};
use crate::ir::{GraphNode, Value, ValueMap};
use crate::memory::arena::{Arena, StepUse};
use crate::memory::join::Joined;
use crate::passes::{CHANNELS_LAST, On};
use mxrt_engine::device::KernelScope;
use mxrt_engine::{DeviceId, FailureKind, OpError};
use mxrt_ops::{DeviceKernel, KernelOptions, Signature, bind_device_kernel, bind_form, form_of, no_kernel};
use mxrt_tensor::{TensorType, no_device_kernel};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The lowering for a device.
pub(super) struct DeviceTarget {
    pub options: KernelOptions,
    pub device: DeviceId,
    /// images have their channels last where kernels have forms for that
    pub channels_last: bool,
    pub layouts: Layouts,
    pub steps: Vec<Draft>,
    /// steps that depend on parameters alone
    pub constant_steps: Vec<Draft>,
    /// whether the caller moves operators without a kernel
    fallback: bool,
    draws: usize,
}

/// A step whose operands have no places yet.
pub(super) struct Draft {
    pub step: DeviceStep,
    pub inputs: Vec<Value>,
    pub outputs: Vec<Value>,
}

/// The steps of a graph, and what depends on what.
pub(super) struct LoweredSteps {
    pub steps: Vec<DeviceStep>,
    /// inputs of the graph that the steps read
    pub step_inputs: Vec<usize>,
    pub arena_bytes: usize,
    pub constant_steps: Vec<DeviceStep>,
    pub constant_bytes: usize,
    pub constant_inputs: Vec<usize>,
    pub input_reach: HashMap<usize, Reach>,
    pub constant_reach: Reach,
}

impl Target for DeviceTarget {
    type Lowered = LoweredSteps;
    const ON: On = On::Device;

    fn begin(&mut self, values: &GraphValues<'_>) -> Result<(), OpError> {
        self.layouts = Layouts::after(values.graph);
        Ok(())
    }

    fn node(&mut self, values: &GraphValues<'_>, n: usize, _: &mut Interrupter<'_>) -> Result<(), OpError> {
        let node = &values.graph.nodes[n];
        let mut draft = self.draft(values, n, node)?;
        if node.is_random() {
            draft.step.random = Some(self.draws);
            self.draws += 1;
        }
        self.push(draft, values.constant[n]);
        Ok(())
    }

    fn result(&mut self, values: &GraphValues<'_>, value: Value) -> Result<Value, OpError> {
        self.first(values, value)
    }

    fn is_constant(&self, values: &GraphValues<'_>, value: Value) -> bool {
        self.layouts.is_constant(value).unwrap_or_else(|| values.is_constant(value))
    }

    fn copy(&mut self, values: &GraphValues<'_>, output: usize, value: Value) -> Result<(), OpError> {
        let tensor = values.type_of(values.graph.outputs[output])?.clone();
        let node = GraphNode::new("_copy", format!("output{output}").into(), Vec::new(), vec![value])?;
        let types = [tensor];
        let kernel = bind_device_kernel((self.device, "_copy"), node.op, &node.attrs, &types, &types, self.options)?;
        let mut copy = draft(kernel, about(&node, types.to_vec()), vec![value], Vec::new());
        copy.step.outputs = vec![DevicePlace::Output(output)];
        self.steps.push(copy);
        Ok(())
    }

    fn finish(
        mut self,
        values: &GraphValues<'_>,
        results: &Results,
        _: &mut Interrupter<'_>,
    ) -> Result<LoweredSteps, OpError> {
        let (mut steps, mut constant_steps) =
            (std::mem::take(&mut self.steps), std::mem::take(&mut self.constant_steps));
        let outputs = values.graph.outputs.len();
        let (input_reach, constant_reach) = reaches(outputs, &mut steps, &mut constant_steps, &results.in_place);
        let mut places: HashMap<Value, DevicePlace> =
            results.in_place.iter().map(|(v, j)| (*v, DevicePlace::Output(*j))).collect();
        // What calls read stays; the rest is needed until the last constant is made of it.
        let read: Vec<Value> = steps.iter().flat_map(|draft| draft.inputs.iter().copied()).collect();
        let calls = StepUse { inputs: &read, outputs: Vec::new(), workspace: 0, packing: None, overwrites: &[] };
        let mut uses = self.uses(values, &constant_steps)?;
        uses.push(calls);
        let constants = lay_out(&uses, &ValueMap::default());
        places.extend(constants.offsets().map(|(value, offset)| (value, DevicePlace::Constant(offset))));
        let arena = lay_out(&self.uses(values, &steps)?, &results.in_place);
        places.extend(arena.offsets().map(|(value, offset)| (value, DevicePlace::Arena(offset))));
        drop(uses);
        let (constant_steps, steps) = (placed(constant_steps, &places)?, placed(steps, &places)?);
        let (constant_inputs, step_inputs) = (inputs_of(&constant_steps), inputs_of(&steps));
        let (arena_bytes, constant_bytes) = (arena.bytes, constants.bytes);
        Ok(LoweredSteps {
            steps,
            step_inputs,
            arena_bytes,
            constant_steps,
            constant_bytes,
            constant_inputs,
            input_reach,
            constant_reach,
        })
    }
}

impl DeviceTarget {
    pub fn new(options: &BuildOptions, device: DeviceId) -> DeviceTarget {
        let (steps, constant_steps, layouts) = (Vec::new(), Vec::new(), Layouts::default());
        let (channels_last, fallback) = (options.passes.runs(CHANNELS_LAST), options.fallback);
        let options = options.kernel;
        DeviceTarget { options, device, channels_last, layouts, steps, constant_steps, fallback, draws: 0 }
    }

    /// Adds a step, to those of the constants if it depends on parameters alone.
    pub fn push(&mut self, draft: Draft, constant: bool) {
        if constant { self.constant_steps.push(draft) } else { self.steps.push(draft) }
    }

    /// The value whose bytes this one has.
    pub fn root(&self, values: &GraphValues<'_>, value: Value) -> Value {
        self.layouts.root(values.root(value))
    }

    pub fn type_of(&self, values: &GraphValues<'_>, value: Value) -> Result<TensorType, OpError> {
        match self.layouts.type_of(value) {
            Some(tensor) => Ok(tensor.clone()),
            None => values.type_of(value).cloned(),
        }
    }

    fn draft(&mut self, values: &GraphValues<'_>, n: usize, node: &GraphNode) -> Result<Draft, OpError> {
        let (inputs, outputs) = values.signature_types(n)?;
        let about = about(node, inputs.clone());
        let (device, fallback) = (self.device, self.fallback);
        if node.flow.is_some() {
            return Err(about.describe(no_device_kernel(node.stands_for, device)));
        }
        let signature = Signature { inputs: &inputs, outputs: &outputs, options: self.options };
        let absent = || {
            let error = no_kernel((device, node.stands_for), node.op, &node.attrs, &signature);
            about.describe(if fallback { error } else { with_advice(error) })
        };
        let form = form_of(node.op, &node.attrs, &signature).map_err(|e| about.describe(e))?;
        let form = form.ok_or_else(absent)?;
        if let Some(last) = self.in_last_layout(values, n, &form, &signature)? {
            return Ok(draft(last.kernel, about, last.inputs, vec![last.output]));
        }
        let kernel = bind_form(device, &form, &signature).ok_or_else(absent)?;
        let reads = node.inputs.iter().map(|v| self.first(values, *v)).collect::<Result<Vec<_>, _>>()?;
        Ok(draft(kernel, about, reads, values.made_by(n)))
    }

    /// Needs of steps in an arena.
    fn uses<'d>(&self, values: &GraphValues<'_>, drafts: &'d [Draft]) -> Result<Vec<StepUse<'d>>, OpError> {
        let of = |draft: &'d Draft| {
            let bytes = |value: &Value| Ok((*value, self.type_of(values, *value)?.bytes()));
            let outputs = draft.outputs.iter().map(bytes).collect::<Result<Vec<_>, OpError>>()?;
            Ok(StepUse { inputs: &draft.inputs, outputs, workspace: 0, packing: None, overwrites: &[] })
        };
        drafts.iter().map(of).collect()
    }
}

/// An arena for values that are stored apart from each other.
fn lay_out(uses: &[StepUse<'_>], elsewhere: &ValueMap<usize>) -> Arena {
    Arena::new(uses, &Joined::default(), elsewhere, false, &|_| None)
}

/// Steps with the places of their operands.
fn placed(drafts: Vec<Draft>, places: &HashMap<Value, DevicePlace>) -> Result<Vec<DeviceStep>, OpError> {
    let at = |v: &Value| match (places.get(v), v) {
        (Some(place), _) => Ok(*place),
        (None, Value::Input(i)) => Ok(DevicePlace::Input(*i)),
        (None, _) => Err(OpError::new(FailureKind::Operator, format!("{v} has no place in the plan"))),
    };
    let finished = drafts.into_iter().map(|mut draft| {
        draft.step.inputs = draft.inputs.iter().map(at).collect::<Result<_, _>>()?;
        let outputs: Vec<DevicePlace> = draft.outputs.iter().map(at).collect::<Result<_, _>>()?;
        draft.step.outputs.extend(outputs);
        Ok(draft.step)
    });
    finished.collect()
}

/// The inputs of the graph that steps read, each once.
fn inputs_of(steps: &[DeviceStep]) -> Vec<usize> {
    let mut seen = HashSet::new();
    let read = steps.iter().flat_map(|step| &step.inputs).filter_map(|place| match place {
        DevicePlace::Input(i) => Some(*i),
        _ => None,
    });
    read.filter(|i| seen.insert(*i)).collect()
}

/// Adds to the error of a missing kernel how the graph gets along without it.
fn with_advice(mut error: OpError) -> OpError {
    // Other errors are the host's, which has no kernel either.
    if error.device.is_some() {
        error.message += ", or let the graph do so: hybridize(fallback=True) or MXRT_GPU_FALLBACK=1";
    }
    error
}

/// Subject of errors of a step of a node.
fn about(node: &GraphNode, inputs: Vec<TensorType>) -> StepNode {
    let (name, attrs) = (node.name.clone(), node.attr_text.clone());
    StepNode { op: node.stands_for, name, attrs, inputs, reach: Reach::new() }
}

/// Says of every step which results depend on it; returns the same of the graph's inputs, and of
/// all constants together.
fn reaches(
    outputs: usize,
    steps: &mut [Draft],
    constant_steps: &mut [Draft],
    results: &ValueMap<usize>,
) -> (HashMap<usize, Reach>, Reach) {
    let of = |output: usize| (0..outputs).map(|j| j == output).collect::<Reach>();
    let mut reach: HashMap<Value, Reach> = results.iter().map(|(value, j)| (*value, of(*j))).collect();
    let mut walk = |drafts: &mut [Draft]| {
        for draft in drafts.iter_mut().rev() {
            let made = draft.outputs.iter().filter_map(|value| reach.get(value).cloned());
            let copied = draft.step.outputs.iter().filter_map(|place| match place {
                DevicePlace::Output(j) => Some(of(*j)),
                _ => None,
            });
            let all = made.chain(copied).fold(Reach::new(), |all, one| joined(all, &one));
            for value in &draft.inputs {
                let before = reach.remove(value).unwrap_or_default();
                reach.insert(*value, joined(before, &all));
            }
            Arc::make_mut(&mut draft.step.node).reach = all;
        }
    };
    walk(steps);
    walk(constant_steps);
    let of_constants = constant_steps.iter().map(|draft| &draft.step.node.reach);
    let constant_reach = of_constants.fold(Reach::new(), joined);
    let of_inputs = reach.into_iter().filter_map(|(value, reach)| match value {
        Value::Input(i) => Some((i, reach)),
        Value::Node(..) => None,
    });
    (of_inputs.collect(), constant_reach)
}

pub(super) fn draft(kernel: Box<dyn DeviceKernel>, about: StepNode, inputs: Vec<Value>, outputs: Vec<Value>) -> Draft {
    let (kernel, node) = (kernel.into(), about.into());
    let step = DeviceStep { kernel, inputs: Vec::new(), outputs: Vec::new(), random: None, node };
    Draft { step, inputs, outputs }
}
