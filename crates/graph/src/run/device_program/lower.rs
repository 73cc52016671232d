//! From a graph to a list of kernels of a device.

use super::layout::Layouts;
use super::replay::Recordings;
use super::{DeviceProgram, DeviceStep, Place, Reach, StepNode, joined};
use crate::ir::{Graph, GraphNode, Types, Value, ValueMap};
use crate::memory::offsets::{Lifetime, assign};
use mxrt_engine::device::KernelScope;
use mxrt_engine::{DeviceId, FailureKind, OpError};
use mxrt_ops::{DeviceKernel, KernelOptions, Signature, bind_device_kernel, bind_form, form_of, no_kernel};
use mxrt_tensor::{TensorType, no_device_kernel};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// From a graph to steps.
pub(super) struct Lowering<'a> {
    pub graph: &'a Graph,
    pub types: &'a Types,
    pub options: KernelOptions,
    pub device: DeviceId,
    /// images have their channels last where kernels have forms for that
    pub channels_last: bool,
    pub constant: Vec<bool>,
    /// values that are other values under another shape
    pub alias: ValueMap<Value>,
    pub layouts: Layouts,
    pub steps: Vec<Draft>,
    /// those that depend on parameters alone
    pub constant_steps: Vec<Draft>,
}

/// A step whose operands have no places yet.
pub(super) struct Draft {
    pub step: DeviceStep,
    pub inputs: Vec<Value>,
    pub outputs: Vec<Value>,
}

impl<'a> Lowering<'a> {
    pub fn new(
        graph: &'a Graph,
        types: &'a Types,
        options: KernelOptions,
        device: DeviceId,
        channels_last: bool,
    ) -> Lowering<'a> {
        let (alias, layouts) = (ValueMap::default(), Layouts::behind(graph));
        let (steps, constant_steps, constant) = (Vec::new(), Vec::new(), graph.constant_nodes());
        Lowering { graph, types, options, device, channels_last, constant, alias, layouts, steps, constant_steps }
    }

    pub fn lower(mut self) -> Result<DeviceProgram, OpError> {
        let mut draws = 0;
        for (n, node) in self.graph.nodes.iter().enumerate() {
            if (node.op.rewrites.is_identity)(&node.attrs) && !node.inputs.is_empty() {
                self.alias.insert(Value::Node(n, 0), node.inputs[0]);
                continue;
            }
            let mut draft = self.draft(n, node)?;
            if node.is_random() {
                draft.step.random = Some(draws);
                draws += 1;
            }
            if self.constant[n] { self.constant_steps.push(draft) } else { self.steps.push(draft) }
        }
        let mut results: HashMap<Value, usize> = HashMap::new();
        for (j, value) in self.graph.outputs.iter().enumerate() {
            let root = self.first(*value)?;
            let made_by_step = matches!(root, Value::Node(..)) && !self.is_constant(root);
            if !made_by_step || results.contains_key(&root) {
                let copy = self.copy(root, j)?;
                self.steps.push(copy);
            } else {
                results.insert(root, j);
            }
        }
        let (mut steps, mut constant_steps) =
            (std::mem::take(&mut self.steps), std::mem::take(&mut self.constant_steps));
        let reaches = self.reaches(&mut steps, &mut constant_steps, &results);
        self.place(steps, constant_steps, &results, reaches)
    }

    /// Says of every step which results depend on it; returns the same of the graph's inputs, and of
    /// all constants together.
    fn reaches(
        &self,
        steps: &mut [Draft],
        constant_steps: &mut [Draft],
        results: &HashMap<Value, usize>,
    ) -> (HashMap<usize, Reach>, Reach) {
        let of = |output: usize| (0..self.graph.outputs.len()).map(|j| j == output).collect::<Reach>();
        let mut reach: HashMap<Value, Reach> = results.iter().map(|(value, j)| (*value, of(*j))).collect();
        let mut walk = |drafts: &mut [Draft]| {
            for draft in drafts.iter_mut().rev() {
                let made = draft.outputs.iter().filter_map(|value| reach.get(value).cloned());
                let copied = draft.step.outputs.iter().filter_map(|place| match place {
                    Place::Output(j) => Some(of(*j)),
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

    /// The value whose bytes this one has.
    pub fn root(&self, value: Value) -> Value {
        let mut root = value;
        while let Some(other) = self.alias.get(&root) {
            root = *other;
        }
        root
    }

    /// Whether a value depends on parameters alone.
    pub fn is_constant(&self, value: Value) -> bool {
        match value {
            Value::Input(i) => self.graph.inputs.get(i).is_some_and(|input| input.constant),
            Value::Node(n, _) => match self.constant.get(n) {
                Some(constant) => *constant,
                None => self.layouts.is_constant(value),
            },
        }
    }

    pub fn type_of(&self, value: Value) -> Result<TensorType, OpError> {
        let unknown = || OpError::new(FailureKind::Shape, format!("the type of {value} is unknown"));
        self.types.get(&value).or_else(|| self.layouts.type_of(value)).cloned().ok_or_else(unknown)
    }

    fn draft(&mut self, n: usize, node: &GraphNode) -> Result<Draft, OpError> {
        let inputs = node.inputs.iter().map(|v| self.type_of(*v)).collect::<Result<Vec<_>, _>>()?;
        let count = node.op.num_outputs(&node.attrs);
        let outputs = (0..count).map(|o| self.type_of(Value::Node(n, o))).collect::<Result<Vec<_>, _>>()?;
        let (name, attrs) = (node.name.clone(), node.attr_text.clone());
        let about = StepNode { op: node.stands_for, name, attrs, inputs: inputs.clone(), reach: Reach::new() };
        let device = self.device;
        if node.flow.is_some() {
            return Err(about.describe(no_device_kernel(node.stands_for, device)));
        }
        let signature = Signature { inputs: &inputs, outputs: &outputs, options: self.options };
        let absent = || about.describe(no_kernel((device, node.stands_for), node.op, &node.attrs, &signature));
        let form = form_of(node.op, &node.attrs, &signature).map_err(|e| about.describe(e))?;
        let form = form.ok_or_else(absent)?;
        if let Some(last) = self.in_last_layout(n, node, &form, &signature)? {
            return Ok(draft(last.kernel, about, last.inputs, vec![last.output]));
        }
        let kernel = bind_form(device, &form, &signature).ok_or_else(absent)?;
        let values = node.inputs.iter().map(|v| self.first(*v)).collect::<Result<Vec<_>, _>>()?;
        Ok(draft(kernel, about, values, (0..count).map(|o| Value::Node(n, o)).collect()))
    }

    /// A step that copies a value to a result that is made elsewhere.
    fn copy(&self, value: Value, output: usize) -> Result<Draft, OpError> {
        let tensor = self.type_of(self.graph.outputs[output])?;
        let name = format!("output{output}");
        let node = GraphNode::new("_copy", name.into(), Vec::new(), vec![value])?;
        let (types, about) = ([tensor.clone()], [tensor]);
        let kernel = bind_device_kernel((self.device, "_copy"), node.op, &node.attrs, &types, &about, self.options)?;
        let (name, attrs, reach) = (node.name, node.attr_text, Reach::new());
        let about = StepNode { op: "_copy", name, attrs, inputs: types.to_vec(), reach }.into();
        let (inputs, outputs) = (Vec::new(), vec![Place::Output(output)]);
        let step = DeviceStep { kernel: kernel.into(), inputs, outputs, random: None, node: about };
        Ok(Draft { step, inputs: vec![value], outputs: Vec::new() })
    }

    /// Gives every value its place.
    fn place(
        &self,
        mut steps: Vec<Draft>,
        mut constant_steps: Vec<Draft>,
        results: &HashMap<Value, usize>,
        (input_reach, constant_reach): (HashMap<usize, Reach>, Reach),
    ) -> Result<DeviceProgram, OpError> {
        let mut places: HashMap<Value, Place> = results.iter().map(|(v, j)| (*v, Place::Output(*j))).collect();
        let values: Vec<Value> = constant_steps.iter().flat_map(|draft| draft.outputs.clone()).collect();
        let constant_bytes =
            self.assign(&values, &life_of_constants(&constant_steps, &steps), &mut places, Place::Constant)?;
        let (mut made, mut read): (HashMap<Value, usize>, HashMap<Value, usize>) = (HashMap::new(), HashMap::new());
        for (s, draft) in steps.iter().enumerate() {
            made.extend(draft.outputs.iter().map(|v| (*v, s)));
            read.extend(draft.inputs.iter().map(|v| (*v, s)));
        }
        let values: Vec<Value> =
            steps.iter().flat_map(|d| d.outputs.clone()).filter(|v| !results.contains_key(v)).collect();
        let lifetime = |v: Value| (made[&v], read.get(&v).copied().unwrap_or(made[&v]));
        let arena_bytes = self.assign(&values, &lifetime, &mut places, Place::Arena)?;
        let finish = |drafts: &mut Vec<Draft>| {
            let at = |v: &Value| match (places.get(v), v) {
                (Some(place), _) => Ok(*place),
                (None, Value::Input(i)) => Ok(Place::Input(*i)),
                (None, _) => Err(OpError::new(FailureKind::Operator, format!("{v} has no place in the plan"))),
            };
            let finished = drafts.drain(..).map(|mut draft| {
                draft.step.inputs = draft.inputs.iter().map(at).collect::<Result<_, _>>()?;
                let outputs: Vec<Place> = draft.outputs.iter().map(at).collect::<Result<_, _>>()?;
                draft.step.outputs.extend(outputs);
                Ok(draft.step)
            });
            finished.collect::<Result<Vec<DeviceStep>, OpError>>()
        };
        let (constant_steps, steps) = (finish(&mut constant_steps)?, finish(&mut steps)?);
        let mut seen = HashSet::new();
        let of_constants = constant_steps.iter().flat_map(|step| &step.inputs).filter_map(|place| match place {
            Place::Input(i) => Some(*i),
            _ => None,
        });
        let constant_inputs = of_constants.filter(|i| seen.insert(*i)).collect();
        Ok(DeviceProgram {
            steps,
            arena_bytes,
            constant_steps,
            constant_bytes,
            constant_inputs,
            input_reach,
            constant_reach,
            constants: Arc::default(),
            recordings: Recordings::default(),
            prepared: None,
        })
    }

    /// Offsets of values that live from one step to another; returns the bytes that they take.
    fn assign(
        &self,
        values: &[Value],
        lifetime: &dyn Fn(Value) -> (usize, usize),
        places: &mut HashMap<Value, Place>,
        place: fn(usize) -> Place,
    ) -> Result<usize, OpError> {
        let one = |v: &Value| {
            let (first, last) = lifetime(*v);
            Ok(Lifetime { bytes: self.type_of(*v)?.bytes(), first, last })
        };
        let lifetimes = values.iter().map(one).collect::<Result<Vec<_>, OpError>>()?;
        let (offsets, bytes) = assign(&lifetimes);
        places.extend(values.iter().zip(offsets).map(|(v, offset)| (*v, place(offset))));
        Ok(bytes)
    }
}

pub(super) fn draft(kernel: Box<dyn DeviceKernel>, about: StepNode, inputs: Vec<Value>, outputs: Vec<Value>) -> Draft {
    let (kernel, node) = (kernel.into(), about.into());
    let step = DeviceStep { kernel, inputs: Vec::new(), outputs: Vec::new(), random: None, node };
    Draft { step, inputs, outputs }
}

/// What calls read stays; the rest is needed until the last constant is made of it.
fn life_of_constants(constant_steps: &[Draft], steps: &[Draft]) -> impl Fn(Value) -> (usize, usize) {
    let mut life: HashMap<Value, (usize, usize)> = HashMap::new();
    for (s, draft) in constant_steps.iter().enumerate() {
        life.extend(draft.outputs.iter().map(|value| (*value, (s, s))));
        for value in &draft.inputs {
            life.entry(*value).and_modify(|life| life.1 = s);
        }
    }
    for value in steps.iter().flat_map(|draft| &draft.inputs) {
        life.entry(*value).and_modify(|life| life.1 = constant_steps.len());
    }
    move |value| life.get(&value).copied().unwrap_or((0, usize::MAX))
}
