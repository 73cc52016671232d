//! The host as a target: kernels of the host in one arena, with constants by expression.

use super::inner::{InnerContext, InnerPlans, compile_flow};
use super::interrupt::Interrupter;
use super::lower::{Target, lower};
use super::options::BuildOptions;
use super::values::{Expressions, GraphValues, Results};
use crate::execute::FlowKernel;
use crate::ir::{Flow, Graph, GraphNode, Value, describe};
use crate::memory::join::{Join, JoinInput, Joined, reads};
use crate::memory::offsets::ALIGN;
use crate::memory::steps::{StepDraft, StepLayout};
use crate::passes::{CONCAT_IN_PLACE, OVERWRITE, On};
use crate::plan::{
    ConstNode, ConstPack, ConstPlan, ConstSlot, ConstSource, CopyKernel, Fingerprint, Operand, OperandPlace,
    PackedPlace, Plan, Step,
};
use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{ConcatenatedInput, Kernel, KernelOptions, Signature, bind_kernel};
use mxrt_tensor::{Shape, TensorType};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

impl Plan {
    /// Builds the plan of a graph for these input types.
    pub(crate) fn build(
        graph: &Graph,
        inputs: &[TensorType],
        options: BuildOptions,
        shared: &InnerPlans,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Plan, OpError> {
        lower(Host::new(inputs, options, shared), graph, inputs, &options, interrupter)
    }
}

/// A kernel and the types it was bound to.
struct BoundNode {
    kernel: Box<dyn Kernel>,
    inputs: Vec<TensorType>,
    outputs: Vec<TensorType>,
}

struct Host<'a> {
    inputs: &'a [TensorType],
    options: BuildOptions,
    shared: &'a InnerPlans,
    drafts: Vec<StepDraft>,
    slots: Vec<ConstSlot>,
    slot_of: HashMap<Fingerprint, usize>,
    expressions: Expressions,
    /// values that are stored inside joined ones
    joined: Joined,
    /// steps whose weights are packed before the first iteration
    packed_once: Vec<usize>,
}

impl Target for Host<'_> {
    type Lowered = Plan;
    const ON: On = On::Host;

    fn begin(&mut self, values: &GraphValues<'_>) -> Result<(), OpError> {
        self.expressions = Expressions::new(values);
        if self.options.passes.runs(CONCAT_IN_PLACE) {
            self.joined = self.join(values)?;
        }
        Ok(())
    }

    fn node(&mut self, values: &GraphValues<'_>, n: usize, interrupter: &mut Interrupter<'_>) -> Result<(), OpError> {
        if values.constant[n] {
            return Ok(());
        }
        if let Some(copies) = self.joined.copies(n) {
            let copies = copies.iter().map(|(k, place)| self.copy_into(values, n, *k, *place));
            let copies = copies.collect::<Result<Vec<StepDraft>, OpError>>()?;
            self.drafts.extend(copies);
            return Ok(());
        }
        let draft = match &values.graph.nodes[n].flow {
            Some(flow) => self.flow_draft(values, n, flow, interrupter)?,
            None => self.draft(values, n)?,
        };
        self.drafts.push(draft);
        Ok(())
    }

    fn copy(&mut self, values: &GraphValues<'_>, output: usize, value: Value) -> Result<(), OpError> {
        let tensor = values.type_of(values.graph.outputs[output])?;
        self.drafts.push(copy_draft(format!("output{output}").into(), tensor, OperandPlace::Output(output), value));
        Ok(())
    }

    fn finish(
        mut self,
        values: &GraphValues<'_>,
        results: &Results,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Plan, OpError> {
        self.constants_read(values)?;
        let nodes = self.const_nodes(values, interrupter)?;
        interrupter.check()?;
        let outputs = values.outputs()?;
        let drafts = std::mem::take(&mut self.drafts);
        let layout = StepLayout {
            values_inside: &self.joined,
            results: &results.in_place,
            overwrite: self.options.passes.runs(OVERWRITE),
            bytes_of: &|value| Some(values.types.get(&value)?.bytes()),
            constant: &|value| values.is_constant(value).then(|| self.slot_of_value(values, value)),
        };
        let (steps, arena_bytes) = layout.place(drafts);
        let made_by = makers(&steps, outputs.len())?;
        let cost_ns = steps.iter().fold(0u64, |sum, s| sum.saturating_add(s.kernel.cost_ns()));
        let consts = ConstPlan::new(nodes, self.slots, self.inputs);
        let data = (0..self.inputs.len()).filter(|i| !values.graph.inputs[*i].constant).collect();
        let notes = self.options.kernel.notes().collect();
        let (inputs, packed_once) = (self.inputs.to_vec(), self.packed_once);
        Ok(Plan { steps, consts, arena_bytes, made_by, inputs, data, outputs, cost_ns, packed_once, notes })
    }
}

impl<'a> Host<'a> {
    fn new(inputs: &'a [TensorType], options: BuildOptions, shared: &'a InnerPlans) -> Host<'a> {
        Host {
            inputs,
            options,
            shared,
            drafts: Vec::new(),
            slots: Vec::new(),
            slot_of: HashMap::new(),
            expressions: Expressions::default(),
            joined: Joined::default(),
            packed_once: Vec::new(),
        }
    }

    fn bind(&self, values: &GraphValues<'_>, n: usize) -> Result<BoundNode, OpError> {
        let node = &values.graph.nodes[n];
        let (ins, outs) = values.signature_types(n)?;
        let signature = Signature { inputs: &ins, outputs: &outs, options: self.options.kernel };
        let kernel = bind_kernel(node.op, &node.attrs, &signature)
            .map_err(|e| describe(e, (node.stands_for, &node.name, &node.attr_text), ins.iter()))?;
        Ok(BoundNode { kernel, inputs: ins, outputs: outs })
    }

    /// Finds concatenations whose inputs can be made in place.
    fn join(&self, values: &GraphValues<'_>) -> Result<Joined, OpError> {
        let mut joins = Vec::new();
        for (n, node) in values.graph.nodes.iter().enumerate().filter(|(n, _)| values.is_step(*n)) {
            let Some(parts) = self.join_parts(values, n)? else { continue };
            let aligned = |p: &ConcatenatedInput| {
                !p.bytes.is_empty() && [p.bytes.start, p.bytes.end].iter().all(|b| b.is_multiple_of(ALIGN))
            };
            if parts.iter().all(aligned) {
                let values = node.inputs.iter().map(|v| values.root(*v));
                let part = |(value, part): (Value, ConcatenatedInput)| JoinInput {
                    value,
                    offset: part.bytes.start,
                    alone: part.merge.is_none(),
                };
                joins.push(Join { node: n, parts: values.zip(parts).map(part).collect() });
            }
        }
        let results: HashSet<Value> = values.graph.outputs.iter().map(|v| values.root(*v)).collect();
        let made = |v: Value| matches!(v, Value::Node(n, _) if values.is_step(n));
        let reads = reads(values.graph, &joins, &results, &|v| values.root(v));
        Ok(Joined::new(&joins, &reads, &results, &made))
    }

    fn join_parts(&self, values: &GraphValues<'_>, n: usize) -> Result<Option<Vec<ConcatenatedInput>>, OpError> {
        let (node, (ins, outs)) = (&values.graph.nodes[n], values.signature_types(n)?);
        let signature = Signature { inputs: &ins, outputs: &outs, options: self.options.kernel };
        Ok((node.op.rewrites.concatenation)(&node.attrs, &signature))
    }

    /// A step that copies input `k` of the joining node `n` to its place.
    fn copy_into(&self, values: &GraphValues<'_>, n: usize, k: usize, place: Value) -> Result<StepDraft, OpError> {
        let node = &values.graph.nodes[n];
        let tensor = values.type_of(node.inputs[k])?;
        let mut draft =
            copy_draft(node.name.clone(), tensor, OperandPlace::Arena(usize::MAX), values.root(node.inputs[k]));
        if let Some(ConcatenatedInput { bytes, merge: Some(merge) }) =
            self.join_parts(values, n)?.and_then(|parts| parts.into_iter().nth(k))
        {
            let shape = Shape::new(&[bytes.len() / tensor.dtype.size()]);
            draft.step.outputs[0].tensor = TensorType::new(tensor.dtype, shape);
            draft.step.kernel = merge;
        }
        draft.step.stands_for = node.stands_for;
        draft.outputs.push(place);
        Ok(draft)
    }

    fn draft(&mut self, values: &GraphValues<'_>, n: usize) -> Result<StepDraft, OpError> {
        let BoundNode { kernel, inputs: ins, outputs: outs } = self.bind(values, n)?;
        let node = &values.graph.nodes[n];
        let (reads, step) = (node.inputs.iter().map(|v| values.root(*v)).collect::<Vec<_>>(), self.drafts.len());
        let mut packed = None;
        if let Some(packing) = kernel.packing() {
            let wanted: Vec<Value> = packing.inputs().iter().map(|i| reads[*i]).collect();
            if wanted.iter().all(|v| values.is_constant(*v)) {
                let method = Fingerprint::of(packing.key());
                let source = ConstSource::Pack(ConstPack { step, inputs: wanted, method });
                packed = Some(PackedPlace::Const(self.slot(values, packing.bytes(), source)));
            } else if wanted.iter().all(|v| values.is_captured(*v)) {
                packed = Some(PackedPlace::Once(self.packed_once.len()));
                self.packed_once.push(step);
            } else {
                packed = Some(PackedPlace::Arena(usize::MAX));
            }
        }
        let draft = StepDraft {
            step: Step {
                packed,
                ..new_step(
                    node,
                    kernel,
                    ins.into_iter().map(unplaced).collect(),
                    outs.into_iter().map(unplaced).collect(),
                )
            },
            inputs: reads,
            outputs: values.made_by(n),
        };
        Ok(draft)
    }

    /// A step that runs the graphs of a node.
    fn flow_draft(
        &self,
        values: &GraphValues<'_>,
        n: usize,
        flow: &Arc<Flow>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<StepDraft, OpError> {
        let (ins, outs) = values.signature_types(n)?;
        let node = &values.graph.nodes[n];
        let described = |error: OpError| match error.node {
            Some(_) => error,
            None => describe(error, (node.stands_for, &node.name, &node.attr_text), ins.iter()),
        };
        let (expressions, options, plans) = (&self.expressions, self.options, self.shared);
        let context = InnerContext { values, expressions, options, plans, build: Plan::build };
        let compiled = compile_flow(&context, n, flow, interrupter).map_err(described)?;
        let (kernel, operands) = (Box::new(FlowKernel(compiled.flow.clone())), compiled.operands);
        let operand = |k: &usize| unplaced(ins[*k].clone());
        let step =
            new_step(node, kernel, operands.iter().map(operand).collect(), outs.into_iter().map(unplaced).collect());
        let inputs = operands.iter().map(|k: &usize| values.root(node.inputs[*k])).collect();
        Ok(StepDraft { step: Step { body: Some(compiled.flow), ..step }, inputs, outputs: values.made_by(n) })
    }

    /// Gives a slot to each constant that steps read unpacked.
    fn constants_read(&mut self, values: &GraphValues<'_>) -> Result<(), OpError> {
        let unpacked = |d: &StepDraft| -> Vec<Value> {
            (0..d.inputs.len()).filter(|i| !d.step.is_packed(*i)).map(|i| d.inputs[i]).collect()
        };
        for value in self.drafts.iter().flat_map(unpacked).collect::<Vec<_>>() {
            if value.node().is_some() && values.is_constant(value) {
                self.slot(values, values.type_of(value)?.bytes(), ConstSource::Value(value));
            }
        }
        Ok(())
    }

    fn slot(&mut self, values: &GraphValues<'_>, bytes: usize, source: ConstSource) -> usize {
        let expression = source.fingerprint(|value| self.expressions.of(values, *value));
        *self.slot_of.entry(expression).or_insert_with(|| {
            self.slots.push(ConstSlot { source, expression, bytes });
            self.slots.len() - 1
        })
    }

    /// The slot of a constant value that a step reads unpacked.
    fn slot_of_value(&self, values: &GraphValues<'_>, value: Value) -> usize {
        self.slot_of[&ConstSource::Value(value).fingerprint(|value| self.expressions.of(values, *value))]
    }

    /// Name of what a constant node computes of its inputs. Contents name the types of these.
    fn computation(&self, node: &GraphNode, kernel: &dyn Kernel, outputs: &[TensorType]) -> Fingerprint {
        let KernelOptions { isa, winograd, precision, .. } = self.options.kernel;
        // What has several methods says by its packing which one it is.
        let method = kernel.packing().map(|packing| format!("{} {winograd} {precision:?}", packing.key()));
        Fingerprint::of((node.op.name, &node.attr_text, outputs, format!("{isa:?}"), method))
    }

    fn const_nodes(
        &self,
        values: &GraphValues<'_>,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<HashMap<usize, ConstNode>, OpError> {
        let mut nodes = HashMap::new();
        for (n, node) in values.graph.nodes.iter().enumerate().filter(|(n, _)| values.constant[*n]) {
            if n.is_multiple_of(64) {
                interrupter.check()?;
            }
            let BoundNode { kernel, outputs, .. } = self.bind(values, n)?;
            let (inputs, name) = (node.inputs.clone(), node.name.clone());
            let computation = self.computation(node, &*kernel, &outputs);
            nodes.insert(n, ConstNode { kernel, op: node.stands_for, name, inputs, outputs, computation });
        }
        Ok(nodes)
    }
}

/// An operand that has no place yet.
fn unplaced(tensor: TensorType) -> Operand {
    Operand { place: OperandPlace::Arena(usize::MAX), tensor }
}

/// The step of a node.
fn new_step(node: &GraphNode, kernel: Box<dyn Kernel>, inputs: Vec<Operand>, outputs: Vec<Operand>) -> Step {
    Step {
        kernel,
        body: None,
        op: node.op.name,
        stands_for: node.stands_for,
        name: node.name.clone(),
        attrs: node.attr_text.clone(),
        inputs,
        outputs,
        pieces: Vec::new(),
        workspace: None,
        packed: None,
        random: node.is_random(),
        needs: Vec::new(),
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
    StepDraft {
        step: Step {
            kernel: Box::new(CopyKernel),
            body: None,
            op: "_copy",
            stands_for: "_copy",
            name,
            attrs: Arc::default(),
            inputs: vec![unplaced(tensor.clone())],
            outputs: vec![Operand { place: to, tensor: tensor.clone() }],
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
