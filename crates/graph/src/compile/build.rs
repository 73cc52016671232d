//! Building a plan: types inferred, kernels bound, constants named, memory laid out.

use super::interrupt::Interrupter;
use super::join::{Join, JoinInput, Joined, reads};
use super::step::{ArenaPiece, CopyKernel, Operand, OperandPlace, PackedPlace, Step};
use crate::control_flow::{ControlFlow, Flow, FlowKernel, InnerPlans};
use crate::ir::{Graph, GraphNode, Types, Value, ValueMap, describe, infer_checked};
use crate::memory::arena::{ArenaLayout, StepDraft};
use crate::memory::constants::{ConstNode, ConstPack, ConstPlan, ConstSlot, ConstSource};
use crate::memory::fingerprint::Fingerprint;
use crate::memory::offsets::ALIGN;
use crate::passes::{CONCAT_IN_PLACE, PassChoice, TYPED_PASSES};
use mxrt_engine::{CoreLimit, FailureKind, OpError};
use mxrt_ops::{ConcatenatedInput, ConvSignature, Kernel, KernelOptions, Signature, bind_kernel};
use mxrt_tensor::{Shape, TensorType};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How much a plan cache may keep. The plan used last always stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLimit {
    /// plans
    pub plans: usize,
    /// bytes of plans and of folded and packed weights
    pub bytes: usize,
    /// bytes of folded and packed weights, beside those of the plan with most, that are kept even
    /// if that is more than 1.5 times the parameters
    pub packed: usize,
}

impl Default for CacheLimit {
    fn default() -> Self {
        CacheLimit { plans: 64, bytes: 1 << 30, packed: 16 << 20 }
    }
}

/// Choices for building plans.
#[derive(Clone, Copy, Debug)]
pub struct BuildOptions {
    /// choices for kernels
    pub kernel: KernelOptions,
    /// passes that run
    pub passes: PassChoice,
    /// what a cache of plans may keep
    pub cache: CacheLimit,
    /// bound of the cores that calls on the CPU use together
    pub cores: Option<&'static CoreLimit>,
    /// recordings of its kernels that a plan keeps on a GPU, for calls that run at a time; 0: none
    pub gpu_recordings: usize,
}

impl Default for BuildOptions {
    fn default() -> Self {
        let (kernel, passes, cache) = (KernelOptions::default(), PassChoice::default(), CacheLimit::default());
        BuildOptions { kernel, passes, cache, cores: None, gpu_recordings: 4 }
    }
}

/// State that the plans of a graph share.
#[derive(Default)]
pub(crate) struct SharedPlans {
    /// plans of the graphs inside nodes
    pub inner: InnerPlans,
}

/// An immutable program for one signature. Running it touches only what the request brings along.
pub struct Plan {
    pub(crate) steps: Vec<Step>,
    pub(crate) consts: ConstPlan,
    pub(crate) arena_bytes: usize,
    /// the step that makes each result
    pub(crate) made_by: Vec<usize>,
    pub(crate) inputs: Vec<TensorType>,
    /// positions of the inputs that are not parameters
    data: Vec<usize>,
    outputs: Vec<TensorType>,
    cost_ns: u64,
    /// the steps whose weights are packed before the first iteration of a loop
    pub(crate) packed_once: Vec<usize>,
    /// what a reader of its text should know
    pub(crate) notes: Vec<&'static str>,
}

impl Plan {
    /// Builds the plan of a graph for these input types.
    pub(crate) fn build(
        graph: &Graph,
        inputs: &[TensorType],
        options: BuildOptions,
        shared: &SharedPlans,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Plan, OpError> {
        let mut graph = graph.clone();
        let mut types = infer_checked(&graph, inputs, &mut || interrupter.check())?;
        for pass in TYPED_PASSES.iter().filter(|pass| options.passes.runs(pass.name)) {
            let old = graph.clone();
            graph = (pass.run)(graph, &types, options.kernel)?;
            if graph.is_same(&old) {
                continue;
            }
            types = infer_checked(&graph, inputs, &mut || interrupter.check())?;
        }
        PlanBuilder::new(&graph, &types, options, shared).build(inputs, interrupter)
    }

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

    /// How many pieces of the random stream one request draws.
    pub fn random_draws(&self) -> usize {
        self.steps.iter().filter(|s| s.random).count()
    }

    /// The plan and those of the graphs inside its nodes.
    pub(crate) fn with_inner(&self) -> Vec<&Plan> {
        let inner = self.steps.iter().filter_map(|step| step.flow.as_ref()).flat_map(|flow| flow.all_plans());
        [self].into_iter().chain(inner).collect()
    }

    /// Bytes of the plan itself, about; without its constants.
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
}

/// A kernel and the types it was bound to.
struct BoundNode {
    kernel: Box<dyn Kernel>,
    inputs: Vec<TensorType>,
    outputs: Vec<TensorType>,
}

pub(crate) struct PlanBuilder<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) types: &'a Types,
    pub(crate) options: BuildOptions,
    pub(crate) shared: &'a SharedPlans,
    pub(crate) constant: Vec<bool>,
    /// values that are other values under another shape (Reshape, Flatten, Dropout at inference)
    alias: ValueMap<Value>,
    slots: Vec<ConstSlot>,
    pub(crate) slot_of: HashMap<Fingerprint, usize>,
    /// what constant nodes compute
    expressions: HashMap<usize, Fingerprint>,
    /// values that lie inside joined ones
    pub(crate) joined: Joined,
    /// as of the plan
    packed_once: Vec<usize>,
}

impl<'a> PlanBuilder<'a> {
    fn new(graph: &'a Graph, types: &'a Types, options: BuildOptions, shared: &'a SharedPlans) -> PlanBuilder<'a> {
        let constant = graph.constant_nodes();
        let mut alias: ValueMap<Value> = ValueMap::default();
        for (n, node) in graph.nodes.iter().enumerate() {
            if (node.op.rewrites.is_identity)(&node.attrs) && !constant[n] && !node.inputs.is_empty() {
                let root = alias.get(&node.inputs[0]).copied().unwrap_or(node.inputs[0]);
                alias.insert(Value::Node(n, 0), root);
            }
        }
        let (slots, slot_of, joined) = (Vec::new(), HashMap::new(), Joined::default());
        let (expressions, packed_once) = (HashMap::new(), Vec::new());
        let mut builder = PlanBuilder {
            graph,
            types,
            options,
            shared,
            constant,
            alias,
            slots,
            slot_of,
            expressions,
            joined,
            packed_once,
        };
        for n in (0..graph.nodes.len()).filter(|n| builder.constant[*n]).collect::<Vec<_>>() {
            let node = &graph.nodes[n];
            let inputs: Vec<Fingerprint> = node.inputs.iter().map(|v| builder.expression(*v)).collect();
            let expression = Fingerprint::of((node.op.name, &node.attr_text, inputs));
            builder.expressions.insert(n, expression);
        }
        builder
    }

    pub(crate) fn root(&self, value: Value) -> Value {
        self.alias.get(&value).copied().unwrap_or(value)
    }

    pub(crate) fn is_constant(&self, value: Value) -> bool {
        match self.root(value) {
            Value::Input(i) => self.graph.inputs[i].constant,
            Value::Node(n, _) => self.constant[n],
        }
    }

    /// Whether a value is the same in all iterations.
    fn is_captured(&self, value: Value) -> bool {
        matches!(value, Value::Input(i) if self.graph.inputs[i].captured)
    }

    pub(crate) fn type_of(&self, value: Value) -> Result<&TensorType, OpError> {
        self.types
            .get(&value)
            .ok_or_else(|| OpError::new(FailureKind::Shape, format!("the type of {value} is unknown")))
    }

    fn signature_types(&self, n: usize) -> Result<(Vec<TensorType>, Vec<TensorType>), OpError> {
        let node = &self.graph.nodes[n];
        let ins = node.inputs.iter().map(|v| self.type_of(*v).cloned()).collect::<Result<_, _>>()?;
        let outs = (0..node.op.num_outputs(&node.attrs))
            .map(|o| self.type_of(Value::Node(n, o)).cloned())
            .collect::<Result<Vec<_>, _>>()?;
        match outs.iter().find(|t| t.checked_bytes().is_none_or(|bytes| isize::try_from(bytes).is_err())) {
            None => Ok((ins, outs)),
            Some(large) => {
                let message = format!("a value of {large} is larger than the address space");
                let error = OpError::new(FailureKind::Memory, message);
                Err(describe(error, (node.stands_for, &node.name, &node.attr_text), ins.iter()))
            }
        }
    }

    fn bind(&self, n: usize) -> Result<BoundNode, OpError> {
        let node = &self.graph.nodes[n];
        let (ins, outs) = self.signature_types(n)?;
        let signature = Signature { inputs: &ins, outputs: &outs, options: self.options.kernel };
        let kernel = bind_kernel(node.op, &node.attrs, &signature)
            .map_err(|e| describe(e, (node.stands_for, &node.name, &node.attr_text), ins.iter()))?;
        Ok(BoundNode { kernel, inputs: ins, outputs: outs })
    }

    fn build(mut self, inputs: &[TensorType], interrupter: &mut Interrupter<'_>) -> Result<Plan, OpError> {
        let mut drafts = Vec::new();
        if self.options.passes.runs(CONCAT_IN_PLACE) {
            self.joined = self.join()?;
        }
        for n in (0..self.graph.nodes.len()).filter(|n| self.is_step(*n)).collect::<Vec<_>>() {
            if n.is_multiple_of(64) {
                interrupter.check()?;
            }
            match self.joined.copies(n) {
                Some(copies) => {
                    for (k, place) in copies {
                        drafts.push(self.copy_into(n, *k, *place)?);
                    }
                }
                None => {
                    let draft = match &self.graph.nodes[n].flow {
                        Some(flow) => self.flow_draft(n, flow, interrupter)?,
                        None => self.draft(n, drafts.len())?,
                    };
                    drafts.push(draft);
                }
            }
        }
        let outputs: Vec<TensorType> =
            self.graph.outputs.iter().map(|v| self.type_of(*v).cloned()).collect::<Result<_, _>>()?;
        let made_in_place = self.place_outputs(&mut drafts, &outputs)?;
        let nodes = self.const_nodes(interrupter)?;
        interrupter.check()?;
        let (steps, arena_bytes) = ArenaLayout::new(&self, drafts, &made_in_place).finish();
        let made_by = makers(&steps, outputs.len())?;
        let cost_ns = steps.iter().fold(0u64, |sum, s| sum.saturating_add(s.kernel.cost_ns()));
        let consts = ConstPlan::new(nodes, self.slots, inputs);
        let data = (0..inputs.len()).filter(|i| !self.graph.inputs[*i].constant).collect();
        let notes = self.options.kernel.notes().collect();
        let (inputs, packed_once) = (inputs.to_vec(), self.packed_once);
        Ok(Plan { steps, consts, arena_bytes, made_by, inputs, data, outputs, cost_ns, packed_once, notes })
    }

    fn is_step(&self, n: usize) -> bool {
        !self.constant[n] && !self.alias.contains_key(&Value::Node(n, 0))
    }

    /// Finds concatenations whose inputs can be made in place.
    fn join(&self) -> Result<Joined, OpError> {
        let mut joins = Vec::new();
        for (n, node) in self.graph.nodes.iter().enumerate().filter(|(n, _)| self.is_step(*n)) {
            let Some(parts) = self.join_parts(n)? else { continue };
            let aligned = |p: &ConcatenatedInput| {
                !p.bytes.is_empty() && [p.bytes.start, p.bytes.end].iter().all(|b| b.is_multiple_of(ALIGN))
            };
            if parts.iter().all(aligned) {
                let values = node.inputs.iter().map(|v| self.root(*v));
                let part = |(value, part): (Value, ConcatenatedInput)| JoinInput {
                    value,
                    offset: part.bytes.start,
                    alone: part.merge.is_none(),
                };
                joins.push(Join { node: n, parts: values.zip(parts).map(part).collect() });
            }
        }
        let results: HashSet<Value> = self.graph.outputs.iter().map(|v| self.root(*v)).collect();
        let made = |v: Value| matches!(v, Value::Node(n, _) if self.is_step(n));
        let reads = reads(self.graph, &joins, &results, &|v| self.root(v));
        Ok(Joined::new(&joins, &reads, &results, &made))
    }

    fn join_parts(&self, n: usize) -> Result<Option<Vec<ConcatenatedInput>>, OpError> {
        let (node, (ins, outs)) = (&self.graph.nodes[n], self.signature_types(n)?);
        let signature = Signature { inputs: &ins, outputs: &outs, options: self.options.kernel };
        Ok((node.op.rewrites.concatenation)(&node.attrs, &signature))
    }

    /// A step that copies input `k` of the joining node `n` to its place.
    fn copy_into(&self, n: usize, k: usize, place: Value) -> Result<StepDraft, OpError> {
        let node = &self.graph.nodes[n];
        let tensor = self.type_of(node.inputs[k])?;
        let mut draft =
            copy_draft(node.name.clone(), tensor, OperandPlace::Arena(usize::MAX), self.root(node.inputs[k]));
        if let Some(ConcatenatedInput { bytes, merge: Some(merge) }) =
            self.join_parts(n)?.and_then(|parts| parts.into_iter().nth(k))
        {
            let shape = Shape::new(&[bytes.len() / tensor.dtype.size()]);
            draft.step.outputs[0].tensor = TensorType::new(tensor.dtype, shape);
            draft.step.kernel = merge;
        }
        draft.step.stands_for = node.stands_for;
        draft.outputs.push(place);
        Ok(draft)
    }

    fn draft(&mut self, n: usize, step: usize) -> Result<StepDraft, OpError> {
        let BoundNode { kernel, inputs: ins, outputs: outs } = self.bind(n)?;
        let node = &self.graph.nodes[n];
        let values: Vec<Value> = node.inputs.iter().map(|v| self.root(*v)).collect();
        let mut packed = None;
        if let Some(packing) = kernel.packing() {
            let wanted: Vec<Value> = packing.inputs().iter().map(|i| values[*i]).collect();
            if wanted.iter().all(|v| self.is_constant(*v)) {
                let method = Fingerprint::of(packing.key());
                let source = ConstSource::Pack(ConstPack { step, inputs: wanted, method });
                packed = Some(PackedPlace::Const(self.slot(packing.bytes(), source)));
            } else if wanted.iter().all(|v| self.is_captured(*v)) {
                packed = Some(PackedPlace::Once(self.packed_once.len()));
                self.packed_once.push(step);
            } else {
                packed = Some(PackedPlace::Arena(usize::MAX));
            }
        }
        let place = |tensor: TensorType| Operand { place: OperandPlace::Arena(usize::MAX), tensor };
        let draft = StepDraft {
            step: Step {
                kernel,
                op: node.op.name,
                stands_for: node.stands_for,
                name: node.name.clone(),
                attrs: node.attr_text.clone(),
                inputs: ins.into_iter().map(place).collect(),
                outputs: outs.into_iter().map(place).collect(),
                pieces: Vec::new(),
                workspace: None,
                packed,
                random: node.is_random(),
                flow: None,
                needs: Vec::new(),
            },
            inputs: values,
            outputs: (0..node.op.num_outputs(&node.attrs)).map(|o| Value::Node(n, o)).collect(),
        };
        Ok(draft)
    }

    /// A step that runs the graphs of a node.
    fn flow_draft(&self, n: usize, flow: &Arc<Flow>, interrupter: &mut Interrupter<'_>) -> Result<StepDraft, OpError> {
        let (ins, outs) = self.signature_types(n)?;
        let node = &self.graph.nodes[n];
        let described = |error: OpError| match error.node {
            Some(_) => error,
            None => describe(error, (node.stands_for, &node.name, &node.attr_text), ins.iter()),
        };
        let compiled = ControlFlow::compile(self, n, flow, interrupter).map_err(described)?;
        let (kernel, operands) = (Box::new(FlowKernel(compiled.flow.clone())), compiled.operands);
        let place = |tensor: TensorType| Operand { place: OperandPlace::Arena(usize::MAX), tensor };
        let step = Step {
            kernel,
            flow: Some(compiled.flow),
            op: node.op.name,
            stands_for: node.stands_for,
            name: node.name.clone(),
            attrs: node.attr_text.clone(),
            inputs: operands.iter().map(|k| place(ins[*k].clone())).collect(),
            outputs: outs.into_iter().map(place).collect(),
            pieces: Vec::new(),
            workspace: None,
            packed: None,
            random: node.is_random(),
            needs: Vec::new(),
        };
        let inputs = operands.iter().map(|k: &usize| self.root(node.inputs[*k])).collect();
        let outputs = (0..node.op.num_outputs(&node.attrs)).map(|o| Value::Node(n, o)).collect();
        Ok(StepDraft { step, inputs, outputs })
    }

    /// Decides which results are made in place; the others get a copying step at the end.
    fn place_outputs(
        &mut self,
        drafts: &mut Vec<StepDraft>,
        outputs: &[TensorType],
    ) -> Result<ValueMap<usize>, OpError> {
        let mut in_place: ValueMap<usize> = ValueMap::default();
        for (j, value) in self.graph.outputs.iter().enumerate() {
            let root = self.root(*value);
            let made_by_step = matches!(root, Value::Node(n, _) if !self.constant[n]);
            if made_by_step && !in_place.contains_key(&root) {
                in_place.insert(root, j);
                continue;
            }
            drafts.push(copy_draft(format!("output{j}").into(), &outputs[j], OperandPlace::Output(j), root));
        }
        // Constants that steps read directly need a slot each.
        let direct = |d: &StepDraft| -> Vec<Value> {
            (0..d.inputs.len()).filter(|i| !d.step.is_packed(*i)).map(|i| d.inputs[i]).collect()
        };
        let read: Vec<Value> = drafts.iter().flat_map(direct).collect();
        for value in read {
            if matches!(value, Value::Node(..)) && self.is_constant(value) {
                let bytes = self.type_of(value)?.bytes();
                self.slot(bytes, ConstSource::Value(value));
            }
        }
        Ok(in_place)
    }

    fn slot(&mut self, bytes: usize, source: ConstSource) -> usize {
        let expression = source.fingerprint(|value| self.expression(*value));
        *self.slot_of.entry(expression).or_insert_with(|| {
            self.slots.push(ConstSlot { source, expression, bytes });
            self.slots.len() - 1
        })
    }

    /// The slot of a constant value that a step reads as it is.
    pub(crate) fn slot_of_value(&self, value: Value) -> usize {
        self.slot_of[&ConstSource::Value(value).fingerprint(|value| self.expression(*value))]
    }

    /// The expression of a constant value, of which the inputs of the outermost graph are the
    /// variables.
    pub(crate) fn expression(&self, value: Value) -> Fingerprint {
        match self.root(value) {
            Value::Input(i) => Fingerprint::of(self.graph.inputs[i].origin),
            Value::Node(n, o) => Fingerprint::of((self.expressions[&n], o)),
        }
    }

    /// What a constant node computes of its inputs: their types stand with their contents.
    fn computation(&self, node: &GraphNode, kernel: &dyn Kernel, outputs: &[TensorType]) -> Fingerprint {
        let KernelOptions { isa, winograd, precision, .. } = self.options.kernel;
        // What has several methods says by its packing which one it is.
        let method = kernel.packing().map(|packing| format!("{} {winograd} {precision:?}", packing.key()));
        Fingerprint::of((node.op.name, &node.attr_text, outputs, format!("{isa:?}"), method))
    }

    fn const_nodes(&self, interrupter: &mut Interrupter<'_>) -> Result<HashMap<usize, ConstNode>, OpError> {
        let mut nodes = HashMap::new();
        for (n, node) in self.graph.nodes.iter().enumerate().filter(|(n, _)| self.constant[*n]) {
            if n.is_multiple_of(64) {
                interrupter.check()?;
            }
            let BoundNode { kernel, outputs, .. } = self.bind(n)?;
            let (inputs, name) = (node.inputs.clone(), node.name.clone());
            let computation = self.computation(node, &*kernel, &outputs);
            nodes.insert(n, ConstNode { kernel, op: node.stands_for, name, inputs, outputs, computation });
        }
        Ok(nodes)
    }
}

/// The step that makes each result.
fn makers(steps: &[Step], outputs: usize) -> Result<Vec<usize>, OpError> {
    let mut made_by = vec![None; outputs];
    for (s, step) in steps.iter().enumerate() {
        for operand in &step.outputs {
            if let OperandPlace::Output(j) = operand.place {
                made_by[j].get_or_insert(s);
            }
        }
    }
    let missing = |j| OpError::new(FailureKind::Operator, format!("no step of the plan makes result {j}"));
    made_by.into_iter().enumerate().map(|(j, step)| step.ok_or_else(|| missing(j))).collect()
}

/// A step that copies a value.
fn copy_draft(name: Arc<str>, tensor: &TensorType, to: OperandPlace, value: Value) -> StepDraft {
    let operand = |place| Operand { place, tensor: tensor.clone() };
    StepDraft {
        step: Step {
            kernel: Box::new(CopyKernel),
            flow: None,
            op: "_copy",
            stands_for: "_copy",
            name,
            attrs: Arc::default(),
            inputs: vec![operand(OperandPlace::Arena(usize::MAX))],
            outputs: vec![operand(to)],
            pieces: Vec::new(),
            workspace: None,
            packed: None,
            random: false,
            needs: Vec::new(),
        },
        inputs: vec![value],
        outputs: Vec::new(),
    }
}
