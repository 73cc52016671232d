//! Keeps blocked values in lines of bf16 where a convolution on tiles (AMX) reads them.
//!
//! Such a convolution rounds its input to bf16 and orders it in lines, unless its producer did both
//! already. A value is kept in lines if its producer can write them, all of its readers can read
//! them, and one of these gains. The layouts of nodes change, and nothing else of the graph.

use crate::ir::{Graph, GraphNode, Rewriter, Types, Value};
use mxrt_engine::OpError;
use mxrt_ops::{KernelOptions, Layout, Lines, LinesForm, Signature, layout_attrs, layouts};
use mxrt_tensor::TensorType;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Rewrites the layouts of blocked values.
pub fn run(graph: Graph, types: &Types, options: KernelOptions) -> Result<Graph, OpError> {
    let lined = Candidates::find(&graph, types, options)?.chosen();
    if lined.is_empty() {
        return Ok(graph);
    }
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        match with_lines(node, n, &lined)? {
            Some(attrs) => {
                let inputs = new.values(&node.inputs);
                let made = GraphNode::new(node.op.name, Arc::clone(&node.name), attrs, inputs)?.standing_for(node);
                let made = new.push(made);
                new.replace(Value::Node(n, 0), Value::Node(made, 0));
            }
            None => new.keep(n, node),
        }
    }
    Ok(new.finish(&graph))
}

/// Knowledge of a value: whether lines are possible, and whether somebody gains.
#[derive(Clone, Copy)]
struct Candidate {
    possible: bool,
    gains: bool,
}

/// Values in blocks, in groups that have one layout.
#[derive(Default)]
struct Candidates {
    values: HashMap<Value, Candidate>,
    /// the value that stands for a group, for all but itself
    groups: HashMap<Value, Value>,
}

impl Candidates {
    fn find(graph: &Graph, types: &Types, options: KernelOptions) -> Result<Candidates, OpError> {
        let mut all = Candidates::default();
        for (n, node) in graph.nodes.iter().enumerate() {
            let form = form_of(n, node, types, options);
            let output = Value::Node(n, 0);
            if let (Some(form), true) = (&form, made_in_blocks(node)) {
                all.values.insert(output, Candidate { possible: form.output, gains: false });
            }
            for (slot, value) in node.inputs.iter().enumerate() {
                let lines = form.as_ref().and_then(|form| form.inputs.get(slot)).copied().unwrap_or(Lines::Never);
                if let Some(value) = all.values.get_mut(value) {
                    value.possible &= lines != Lines::Never;
                    value.gains |= lines == Lines::Gains;
                }
            }
            if form.is_some_and(|form| form.alike) {
                all.make_alike(node, output)?;
            }
        }
        for output in &graph.outputs {
            all.values.remove(output);
        }
        Ok(all)
    }

    /// Gives the inputs and the output of a node one layout: blocks, if the channels of one do not
    /// fill lines.
    fn make_alike(&mut self, node: &GraphNode, output: Value) -> Result<(), OpError> {
        let (inputs, made) = layouts(&node.attrs)?;
        let fills = |layout: &Layout| layout.blocked().is_some_and(|layout| layout.fills_lines());
        if !inputs.iter().chain([&made]).all(fills) {
            node.inputs.iter().chain([&output]).for_each(|value| {
                self.values.remove(value);
            });
        }
        node.inputs.iter().for_each(|input| self.join(*input, output));
        Ok(())
    }

    /// Gives two values one layout.
    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.group(a), self.group(b));
        if a != b {
            self.groups.insert(a, b);
        }
    }

    fn group(&self, mut value: Value) -> Value {
        while let Some(next) = self.groups.get(&value) {
            value = *next;
        }
        value
    }

    /// The values that are kept in lines.
    fn chosen(&self) -> HashSet<Value> {
        let mut groups: HashMap<Value, Candidate> = HashMap::new();
        let joined = self.groups.keys().chain(self.groups.values());
        for value in self.values.keys().chain(joined) {
            let own = self.values.get(value).copied().unwrap_or(Candidate { possible: false, gains: false });
            let group = groups.entry(self.group(*value)).or_insert(Candidate { possible: true, gains: false });
            group.possible &= own.possible;
            group.gains |= own.gains;
        }
        let kept = |value: &&Value| groups.get(&self.group(**value)).is_some_and(|group| group.possible && group.gains);
        self.values.keys().filter(kept).copied().collect()
    }
}

/// Whether a node makes blocks that could be lines.
fn made_in_blocks(node: &GraphNode) -> bool {
    let made = if node.attrs.declares("out_layout") { layouts(&node.attrs).ok() } else { None };
    made.and_then(|(_, output)| output.blocked()?.in_lines()).is_some()
}

fn form_of(n: usize, node: &GraphNode, types: &Types, options: KernelOptions) -> Option<LinesForm> {
    if !node.attrs.declares("out_layout") {
        return None;
    }
    let inputs: Vec<TensorType> = node.inputs.iter().map(|v| types.get(v).cloned()).collect::<Option<_>>()?;
    let outputs = [types.get(&Value::Node(n, 0))?.clone()];
    (node.op.rewrites.lines)(&node.attrs, &Signature { inputs: &inputs, outputs: &outputs, options })
}

/// The attributes of a node some of whose operands are in lines; none if there are none.
fn with_lines(node: &GraphNode, n: usize, lined: &HashSet<Value>) -> Result<Option<Vec<(String, String)>>, OpError> {
    let made = lined.contains(&Value::Node(n, 0));
    if !made && !node.inputs.iter().any(|value| lined.contains(value)) {
        return Ok(None);
    }
    let (mut inputs, output) = layouts(&node.attrs)?;
    let in_lines = |layout: Layout| layout.blocked().and_then(|l| l.in_lines()).map_or(layout, Layout::Blocked);
    for (layout, value) in inputs.iter_mut().zip(&node.inputs) {
        if lined.contains(value) {
            *layout = in_lines(*layout);
        }
    }
    let changed = layout_attrs(&inputs, if made { in_lines(output) } else { output });
    let mut attrs = node.attr_text.to_vec();
    attrs.retain(|(key, _)| changed.iter().all(|(k, _)| k != key));
    attrs.extend(changed);
    Ok(Some(attrs))
}
