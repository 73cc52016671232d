//! Chooses memory layouts: convolutions work on blocks of 16 channels, quantized ones on pixels
//! with all channels, and what lies between them stays so.
//!
//! Conversions appear only at the borders. The halo of a blocked value is the largest that any of
//! its readers needs. This pass needs types, so it runs when a plan is built.

use crate::ir::{Graph, GraphNode, Rewriter, Types, Value};
use mxrt_engine::OpError;
use mxrt_ops::{BlockedForm, BlockedLayout, KernelOptions, Layout, Signature, layout_attrs};
use mxrt_tensor::TensorType;
use std::collections::HashMap;
use std::sync::Arc;

/// Rewrites the graph for these types.
pub fn run(graph: Graph, types: &Types, options: KernelOptions) -> Result<Graph, OpError> {
    let choice = LayoutChoice::make(&graph, types, options);
    if choice.forms.is_empty() {
        return Ok(graph);
    }
    let mut emit =
        LayoutRewriter { graph: &graph, new: Rewriter::new(&graph), choice: &choice, converted: HashMap::new() };
    for (n, node) in graph.nodes.iter().enumerate() {
        match choice.forms.get(&n) {
            Some(form) => emit.blocked(n, node, form)?,
            None => emit.plain(n, node)?,
        }
    }
    let outputs = graph.outputs.iter().map(|v| emit.read_plain(*v)).collect::<Result<Vec<_>, _>>()?;
    let mut result = emit.new.finish(&graph);
    result.outputs = outputs;
    Ok(result)
}

/// Nodes that work on blocks, and the layout of every blocked value.
#[derive(Default)]
struct LayoutChoice {
    forms: HashMap<usize, BlockedForm>,
    /// values made blocked
    made: HashMap<Value, BlockedLayout>,
    /// plain values that are read blocked, by size of block
    wanted: HashMap<(Value, usize), BlockedLayout>,
}

impl LayoutChoice {
    fn make(graph: &Graph, types: &Types, options: KernelOptions) -> LayoutChoice {
        let constant = graph.constant_nodes();
        let mut choice = LayoutChoice::default();
        for (n, node) in graph.nodes.iter().enumerate().filter(|(n, _)| !constant[*n]) {
            if let Some(form) = form_of(n, node, types, options)
                && (form.starts || choice.reads_blocked(node, &form))
            {
                choice.take(n, node, form);
            }
        }
        choice.unify_halos(graph, types);
        choice
    }

    /// Gives the inputs of a concatenation of one image the halo of its output, so that they can be
    /// made inside it. (Several images are interleaved in the output, and their inputs are copied.)
    fn unify_halos(&mut self, graph: &Graph, types: &Types) {
        let one_image = |n: usize| types.get(&Value::Node(n, 0)).is_some_and(|t| t.shape.first() == Some(&1));
        let concats = self.forms.iter().filter(|(n, form)| form.op == "_blocked_concat" && one_image(**n));
        let mut concats: Vec<usize> = concats.map(|(n, _)| *n).collect();
        concats.sort_unstable();
        // A concatenation may be an input of another one, in both directions.
        loop {
            let mut changed = false;
            for n in &concats {
                let values = || std::iter::once(Value::Node(*n, 0)).chain(graph.nodes[*n].inputs.iter().copied());
                let halos: Vec<BlockedLayout> = values().filter_map(|v| self.made.get(&v).copied()).collect();
                for value in values() {
                    if let Some(made) = self.made.get_mut(&value) {
                        let wide = halos.iter().fold(*made, |layout, other| layout.with_halo_of(other));
                        changed |= wide != *made;
                        *made = wide;
                    }
                }
            }
            if !changed {
                break;
            }
        }
    }

    fn reads_blocked(&self, node: &GraphNode, form: &BlockedForm) -> bool {
        let pairs = node.inputs.iter().zip(&form.inputs);
        pairs.filter(|(_, l)| l.blocked().is_some()).any(|(v, _)| self.made.contains_key(v))
    }

    fn take(&mut self, n: usize, node: &GraphNode, mut form: BlockedForm) {
        // What is blocked already stays as it is.
        if let (Some(layout), Some(data)) = (form.from_blocked, node.inputs.first())
            && self.made.contains_key(data)
        {
            form.inputs[0] = Layout::Blocked(layout);
        }
        for (value, layout) in node.inputs.iter().zip(&form.inputs) {
            let Some(need) = layout.blocked() else { continue };
            let slot = match self.made.get_mut(value) {
                Some(made) if made.block == need.block => made,
                _ => self.wanted.entry((*value, need.block)).or_insert(need),
            };
            *slot = slot.with_halo_of(&need);
        }
        if let Layout::Blocked(layout) = form.output {
            self.made.insert(Value::Node(n, 0), layout);
        }
        self.forms.insert(n, form);
    }
}

fn form_of(n: usize, node: &GraphNode, types: &Types, options: KernelOptions) -> Option<BlockedForm> {
    let inputs: Vec<TensorType> = node.inputs.iter().map(|v| types.get(v).cloned()).collect::<Option<_>>()?;
    let outputs: Vec<TensorType> =
        (0..node.op.num_outputs(&node.attrs)).map(|o| types.get(&Value::Node(n, o)).cloned()).collect::<Option<_>>()?;
    (node.op.rewrites.blocked_form)(&node.attrs, &Signature { inputs: &inputs, outputs: &outputs, options })
}

struct LayoutRewriter<'a> {
    graph: &'a Graph,
    new: Rewriter,
    choice: &'a LayoutChoice,
    /// conversions made so far: of an old value, to blocks of this size (0: to plain)
    converted: HashMap<(Value, usize), Value>,
}

impl LayoutRewriter<'_> {
    fn plain(&mut self, n: usize, node: &GraphNode) -> Result<(), OpError> {
        let inputs = node.inputs.iter().map(|v| self.read_plain(*v)).collect::<Result<Vec<_>, _>>()?;
        let made = self.new.push(GraphNode { inputs, ..node.clone() });
        for output in 0..node.op.num_outputs(&node.attrs) {
            self.new.replace(Value::Node(n, output), Value::Node(made, output));
        }
        Ok(())
    }

    fn blocked(&mut self, n: usize, node: &GraphNode, form: &BlockedForm) -> Result<(), OpError> {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        let mut layouts = Vec::with_capacity(node.inputs.len());
        for (value, layout) in node.inputs.iter().zip(&form.inputs) {
            let (value, layout) = match layout {
                Layout::Plain => (self.read_plain(*value)?, Layout::Plain),
                Layout::Blocked(need) => {
                    let (value, have) = self.read_blocked(*value, need)?;
                    (value, Layout::Blocked(have))
                }
            };
            inputs.push(value);
            layouts.push(layout);
        }
        let output = self.choice.made.get(&Value::Node(n, 0)).map_or(Layout::Plain, |l| Layout::Blocked(*l));
        let mut attrs = node.attr_text.to_vec();
        attrs.extend(layout_attrs(&layouts, output));
        let made = self.new.push(GraphNode::new(form.op, Arc::clone(&node.name), attrs, inputs)?.standing_for(node));
        // Ranges of bytes are further outputs.
        for output in 0..node.op.num_outputs(&node.attrs) {
            self.new.replace(Value::Node(n, output), Value::Node(made, output));
        }
        Ok(())
    }

    /// An old value, plain.
    fn read_plain(&mut self, value: Value) -> Result<Value, OpError> {
        let Some(layout) = self.choice.made.get(&value) else { return Ok(self.new.value(value)) };
        if let Some(done) = self.converted.get(&(value, 0)) {
            return Ok(*done);
        }
        let source = self.new.value(value);
        let attrs = layout_attrs(&[Layout::Blocked(*layout)], Layout::Plain);
        self.convert("_from_blocked", value, 0, source, attrs)
    }

    /// The blocked form of an old value, with the halo of `need` or a larger one, and its layout.
    fn read_blocked(&mut self, value: Value, need: &BlockedLayout) -> Result<(Value, BlockedLayout), OpError> {
        if let Some(layout) = self.choice.made.get(&value)
            && layout.block == need.block
        {
            return Ok((self.new.value(value), *layout));
        }
        let layout = self.choice.wanted.get(&(value, need.block)).copied().unwrap_or(*need);
        if let Some(done) = self.converted.get(&(value, need.block)) {
            return Ok((*done, layout));
        }
        let source = self.read_plain(value)?;
        let attrs = layout_attrs(&[Layout::Plain], Layout::Blocked(layout));
        Ok((self.convert("_to_blocked", value, need.block, source, attrs)?, layout))
    }

    fn convert(
        &mut self,
        op: &str,
        old: Value,
        block: usize,
        source: Value,
        attrs: [(String, String); 2],
    ) -> Result<Value, OpError> {
        let name = format!("{}{}", self.graph.name_of(old), if block == 0 { "_plain" } else { "_blocked" });
        let made = self.new.push(GraphNode::new(op, name.into(), attrs.to_vec(), vec![source])?);
        self.converted.insert((old, block), Value::Node(made, 0));
        Ok(Value::Node(made, 0))
    }
}
