//! Calls on a device with kernels of its own: a graph lowered to a list of its kernels, run as one
//! op in an arena of the device.
//!
//! What depends on parameters alone (folded weights) is computed by an op of its own into an array
//! that calls read. It is computed again when a parameter was written since.

use super::inputs::InputSource;
use crate::ir::{Graph, GraphNode, Types, Value, ValueMap, describe, infer};
use crate::memory::offsets::{Lifetime, assign};
use crate::passes::{PassChoice, TYPED_PASSES};
use mxrt_engine::device::{KernelScope, SpareMemory};
use mxrt_engine::{DeviceCtx, DeviceId, DevicePtr, Engine, FailureKind, ForkSafeMutex, OpError, OpKind};
use mxrt_ops::{DeviceKernel, DeviceOperands, KernelOptions, RandomKey, bind_device_kernel};
use mxrt_tensor::{
    CallLaunch, Context, DType, DeviceLaunch, NDArray, Shape, TensorType, launch_native, no_device_kernel,
};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Passes whose results devices have kernels for; the others choose layouts of the host.
const DEVICE_PASSES: [&str; 2] = ["fuse_conv", "fuse_elementwise"];

/// Arrays of constants that a program keeps: one for each set of parameters.
const CONSTANT_SETS: usize = 4;

/// Where an operand lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// input of the graph
    Input(usize),
    /// result of the call
    Output(usize),
    /// byte of the arena
    Arena(usize),
    /// byte of the array of constants
    Constant(usize),
}

struct DeviceStep {
    kernel: Arc<dyn DeviceKernel>,
    inputs: Vec<Place>,
    outputs: Vec<Place>,
    /// number of its piece of the random stream
    random: Option<usize>,
    node: Arc<StepNode>,
}

/// What an error of a step is about.
#[derive(Clone)]
struct StepNode {
    op: &'static str,
    name: Arc<str>,
    attrs: Arc<Vec<(String, String)>>,
    inputs: Vec<TensorType>,
    reach: Reach,
}

/// Whether each result of the graph depends on something.
type Reach = Vec<bool>;

/// A graph for one signature and one kind of device.
pub(crate) struct DeviceProgram {
    steps: Vec<DeviceStep>,
    arena_bytes: usize,
    /// steps that depend on parameters alone
    constant_steps: Vec<DeviceStep>,
    constant_bytes: usize,
    /// inputs of the graph that these read
    constant_inputs: Vec<usize>,
    /// results that depend on each input of the graph, and on the constants
    input_reach: HashMap<usize, Reach>,
    constant_reach: Reach,
    constants: ForkSafeMutex<Vec<Arc<ConstantSet>>>,
}

/// Constants of one set of parameters.
struct ConstantSet {
    array: NDArray,
    /// variables and offsets of the parameters
    of: Vec<(u64, usize)>,
    /// their versions when the constants were computed; known before any call that reads them is
    /// enqueued
    versions: OnceLock<Vec<u64>>,
    /// a call met other versions
    stale: AtomicBool,
}

/// Addresses of a running program.
struct Places<'a> {
    inputs: &'a dyn Fn(usize) -> DevicePtr,
    outputs: &'a [DevicePtr],
    arena: DevicePtr,
    constants: DevicePtr,
}

impl DeviceProgram {
    /// Lowers a graph. An operator without a kernel is an error here.
    pub fn build(
        graph: &Graph,
        inputs: &[TensorType],
        (passes, options): (PassChoice, KernelOptions),
        device: DeviceId,
    ) -> Result<DeviceProgram, OpError> {
        let mut graph = graph.clone();
        let mut types = infer(&graph, inputs)?;
        for pass in TYPED_PASSES.iter().filter(|p| DEVICE_PASSES.contains(&p.name) && passes.runs(p.name)) {
            graph = (pass.run)(graph, &types, options)?;
            types = infer(&graph, inputs)?;
        }
        Lowering { graph: &graph, types: &types, options, device, alias: ValueMap::default() }.lower()
    }

    /// Pushes a call with these arrays for the inputs of the graph.
    pub fn push(
        self: &Arc<DeviceProgram>,
        engine: &'static Engine,
        device: DeviceId,
        call: &CallLaunch<'_>,
        sources: &Arc<[InputSource]>,
        random: SmallVec<[RandomKey; 2]>,
    ) -> Result<(), OpError> {
        let params = call.params.map_or(&[][..], |set| set.arrays());
        // Every call reads them and few ops write them: they need not remember their readers.
        params.iter().for_each(|array| engine.freeze(array.var()));
        let mut inputs: Vec<&NDArray> = call.inputs.iter().copied().chain(params).collect();
        let (sources, first_param) = (sources.clone(), call.inputs.len());
        let place = move |input: usize| match sources.get(input) {
            Some(InputSource::Data(i)) => *i,
            Some(InputSource::Param(i)) => first_param + i,
            None => usize::MAX,
        };
        let constants = self.constants(engine, device, &inputs, &place)?;
        let last = inputs.len();
        inputs.extend(constants.as_ref().map(|set| &set.array));
        let outputs = inputs.len()..inputs.len() + call.outputs.len();
        let work = DeviceLaunch {
            scratch: self.arena_bytes,
            kind: OpKind::Selective,
            priority: call.priority,
            deadline: call.deadline,
            ..DeviceLaunch::new(device, call.name.clone(), &inputs, call.outputs)
        };
        let (program, set) = (self.clone(), constants.clone());
        launch_native(engine, &work, move |ctx, at| {
            let (heirs, place_of, first) = (program.clone(), place.clone(), outputs.start);
            ctx.inherit(move |access| {
                let reached =
                    if access == last { heirs.constant_reach.clone() } else { heirs.reach_of(access, &place_of) };
                reached.iter().enumerate().filter(|(_, reached)| **reached).map(|(output, _)| first + output).collect()
            });
            let mut places = Places {
                inputs: &|input| at.inputs.get(place(input)).copied().unwrap_or(DevicePtr(0)),
                outputs: &at.outputs,
                arena: at.scratch,
                constants: at.inputs.get(last).copied().unwrap_or(DevicePtr(0)),
            };
            if let Some(set) = &set
                && set.versions.get() != Some(&program.versions(ctx, &place))
            {
                // A parameter was written since: this call computes its own.
                set.stale.store(true, Ordering::Relaxed);
                places.constants = ctx.scratch(program.constant_bytes)?;
                run(&program.constant_steps, ctx, &places, &[], Some(&outputs))?;
            }
            run(&program.steps, ctx, &places, &random, Some(&outputs))
        })
    }

    /// The constants for these parameters, perhaps still to be computed.
    fn constants(
        self: &Arc<DeviceProgram>,
        engine: &'static Engine,
        device: DeviceId,
        arrays: &[&NDArray],
        place: &(impl Fn(usize) -> usize + Clone + Send + 'static),
    ) -> Result<Option<Arc<ConstantSet>>, OpError> {
        if self.constant_steps.is_empty() {
            return Ok(None);
        }
        let of: Vec<(u64, usize)> = (self.constant_inputs.iter())
            .filter_map(|input| arrays.get(place(*input)))
            .map(|array| (array.var().id(), array.value_key().2))
            .collect();
        let known = |set: &&Arc<ConstantSet>| set.of == of && !set.stale.load(Ordering::Relaxed);
        if let Some(set) = self.constants.lock().iter().find(known) {
            return Ok(Some(set.clone()));
        }
        let context = arrays.first().map_or_else(Context::default, |array| array.context());
        let tensor = TensorType::new(DType::U8, Shape::new(&[self.constant_bytes]));
        let array = NDArray::new(engine, context, tensor)?;
        engine.freeze(array.var());
        engine.device(device)?.add_spare(self);
        let set = Arc::new(ConstantSet { array, of, versions: OnceLock::new(), stale: AtomicBool::new(false) });
        let (program, made, place) = (self.clone(), Arc::downgrade(&set), place.clone());
        let outputs = [&set.array];
        let launch = DeviceLaunch::new(device, "constants", arrays, &outputs);
        launch_native(engine, &launch, move |ctx, at| {
            if let Some(set) = made.upgrade() {
                let _ = set.versions.set(program.versions(ctx, &place));
            }
            let places = Places {
                inputs: &|input| at.inputs.get(place(input)).copied().unwrap_or(DevicePtr(0)),
                outputs: &[],
                arena: DevicePtr(0),
                constants: at.outputs[0],
            };
            run(&program.constant_steps, ctx, &places, &[], None)
        })?;
        let mut sets = self.constants.lock();
        sets.retain(|other| other.of != set.of);
        sets.insert(0, set.clone());
        let newest = CONSTANT_SETS.min(sets.len());
        let old = sets.split_off(newest);
        drop(sets);
        drop(old);
        Ok(Some(set))
    }

    /// The results that depend on an array of the call.
    fn reach_of(&self, access: usize, place: &impl Fn(usize) -> usize) -> Reach {
        let of = self.input_reach.iter().filter(|(input, _)| place(**input) == access).map(|(_, reach)| reach);
        of.fold(Reach::new(), joined)
    }

    fn versions(&self, ctx: &DeviceCtx<'_>, place: &impl Fn(usize) -> usize) -> Vec<u64> {
        self.constant_inputs.iter().map(|input| ctx.version_of(place(*input))).collect()
    }
}

/// Submits the steps. `results` are the accesses of the results, of which those fail that depend on a
/// step whose kernel does not like its data; without them the whole op fails.
fn run(
    steps: &[DeviceStep],
    ctx: &DeviceCtx<'_>,
    at: &Places<'_>,
    random: &[RandomKey],
    results: Option<&Range<usize>>,
) -> Result<(), OpError> {
    let address = |place: &Place| match *place {
        Place::Input(i) => (at.inputs)(i),
        Place::Output(i) => at.outputs.get(i).copied().unwrap_or(DevicePtr(0)),
        Place::Arena(offset) => at.arena.offset(offset),
        Place::Constant(offset) => at.constants.offset(offset),
    };
    for step in steps {
        let inputs: SmallVec<[DevicePtr; 8]> = step.inputs.iter().map(address).collect();
        let outputs: SmallVec<[DevicePtr; 4]> = step.outputs.iter().map(address).collect();
        let random = step.random.and_then(|n| random.get(n).copied());
        let operands = DeviceOperands { inputs: &inputs, outputs: &outputs, random };
        let enqueue = || step.kernel.enqueue(ctx, &operands);
        let enqueued = match results {
            Some(results) => ctx.within(step.node.clone(), results.clone(), enqueue),
            None => enqueue(),
        };
        enqueued.map_err(|e| step.node.describe(e))?;
    }
    Ok(())
}

impl KernelScope for StepNode {
    fn describe(&self, error: OpError) -> OpError {
        describe(error, (self.op, &self.name, &self.attrs), self.inputs.iter())
    }

    fn reaches(&self, output: usize) -> bool {
        self.reach.get(output) == Some(&true)
    }
}

impl SpareMemory for DeviceProgram {
    fn give_up(&self) {
        let idle = |set: &Arc<ConstantSet>| Arc::strong_count(set) == 1;
        let gone: Vec<Arc<ConstantSet>> = self.constants.lock().extract_if(.., |set| idle(set)).collect();
        // Arrays are freed under no lock.
        drop(gone);
    }
}

fn joined(mut all: Reach, reach: &Reach) -> Reach {
    all.resize(all.len().max(reach.len()), false);
    all.iter_mut().zip(reach).for_each(|(all, one)| *all |= one);
    all
}

/// From a graph to steps.
struct Lowering<'a> {
    graph: &'a Graph,
    types: &'a Types,
    options: KernelOptions,
    device: DeviceId,
    /// values that are other values under another shape
    alias: ValueMap<Value>,
}

/// A step whose operands have no places yet.
struct Draft {
    step: DeviceStep,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
}

impl Lowering<'_> {
    fn lower(mut self) -> Result<DeviceProgram, OpError> {
        let constant = self.graph.constant_nodes();
        let (mut steps, mut constant_steps, mut draws) = (Vec::new(), Vec::new(), 0);
        for (n, node) in self.graph.nodes.iter().enumerate() {
            if (node.op.rewrites.is_identity)(&node.attrs) && !node.inputs.is_empty() {
                let root = self.root(node.inputs[0]);
                self.alias.insert(Value::Node(n, 0), root);
                continue;
            }
            let mut draft = self.draft(n, node)?;
            if node.is_random() {
                draft.step.random = Some(draws);
                draws += 1;
            }
            if constant[n] { constant_steps.push(draft) } else { steps.push(draft) }
        }
        let mut results: HashMap<Value, usize> = HashMap::new();
        for (j, value) in self.graph.outputs.iter().enumerate() {
            let root = self.root(*value);
            let made_by_step = matches!(root, Value::Node(n, _) if !constant[n]);
            if !made_by_step || results.contains_key(&root) {
                steps.push(self.copy(root, j)?);
            } else {
                results.insert(root, j);
            }
        }
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

    fn root(&self, value: Value) -> Value {
        self.alias.get(&value).copied().unwrap_or(value)
    }

    fn type_of(&self, value: Value) -> Result<TensorType, OpError> {
        let unknown = || OpError::new(FailureKind::Shape, format!("the type of {value} is unknown"));
        self.types.get(&value).cloned().ok_or_else(unknown)
    }

    fn draft(&self, n: usize, node: &GraphNode) -> Result<Draft, OpError> {
        let inputs = node.inputs.iter().map(|v| self.type_of(*v)).collect::<Result<Vec<_>, _>>()?;
        let count = node.op.num_outputs(&node.attrs);
        let outputs = (0..count).map(|o| self.type_of(Value::Node(n, o))).collect::<Result<Vec<_>, _>>()?;
        let (name, attrs) = (node.name.clone(), node.attr_text.clone());
        let about = StepNode { op: node.stands_for, name, attrs, inputs, reach: Reach::new() };
        if node.flow.is_some() {
            return Err(about.describe(no_device_kernel(node.stands_for, self.device)));
        }
        let kernel = bind_device_kernel(
            (self.device, node.stands_for),
            node.op,
            &node.attrs,
            &about.inputs,
            &outputs,
            self.options,
        )
        .map_err(|e| about.describe(e))?;
        let (no_inputs, no_outputs) = (Vec::new(), Vec::new());
        let step = DeviceStep {
            kernel: kernel.into(),
            inputs: no_inputs,
            outputs: no_outputs,
            random: None,
            node: about.into(),
        };
        let values = node.inputs.iter().map(|v| self.root(*v)).collect();
        Ok(Draft { step, inputs: values, outputs: (0..count).map(|o| Value::Node(n, o)).collect() })
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
        let constant_bytes = self.assign(&values, &|_| (0, 1), &mut places, Place::Constant)?;
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
        let constants = ForkSafeMutex::default();
        Ok(DeviceProgram {
            steps,
            arena_bytes,
            constant_steps,
            constant_bytes,
            constant_inputs,
            input_reach,
            constant_reach,
            constants,
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
