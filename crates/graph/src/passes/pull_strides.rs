//! Computes only those pixels of a convolution that are read.
//!
//! Where all readers of a convolution are convolutions of one pixel that step over pixels, it steps
//! over these itself, and they read every pixel that is left. What is added to it is thinned out by
//! a pooling of one pixel. A convolution of one pixel passes strides on, so that this goes from
//! back to front: at the end of a stage of resnet50_v1 a 3x3 layer gets stride 2.

use crate::ir::{Graph, GraphNode, Rewriter, Types, Value};
use mxrt_engine::OpError;
use mxrt_ops::KernelOptions;
use std::collections::HashMap;
use std::sync::Arc;

/// Distances between outputs, one for each spatial axis.
type Strides = Vec<i64>;

/// Moves strides from `Convolution(1x1)` to the convolutions before them.
pub fn run(graph: Graph, _: &Types, _: KernelOptions) -> Result<Graph, OpError> {
    let readers = readers(&graph);
    let mut strides: Vec<Option<Strides>> = graph.nodes.iter().map(strides_of).collect();
    // What is left out of the outputs of a node.
    let mut pulled: Vec<Option<Strides>> = vec![None; graph.nodes.len()];
    for n in (0..graph.nodes.len()).rev() {
        let value = Value::Node(n, 0);
        let Some(own) = &strides[n] else { continue };
        let Some(theirs) = common_stride(&graph, &strides, readers.get(&value)).cloned() else { continue };
        let Some(product) = product(own, &theirs).filter(|_| !graph.outputs.contains(&value)) else { continue };
        strides[n] = Some(product);
        readers[&value].iter().for_each(|(reader, _)| strides[*reader] = Some(vec![1; theirs.len()]));
        pulled[n] = Some(theirs);
    }
    let mut new = Rewriter::new(&graph);
    for (n, node) in graph.nodes.iter().enumerate() {
        match &strides[n] {
            Some(strides) if pulled[n].is_some() || strides_of(node).as_ref() != Some(strides) => {
                let made = with_strides(&mut new, node, strides, pulled[n].as_ref())?;
                new.replace(Value::Node(n, 0), Value::Node(made, 0));
            }
            _ => new.keep(n, node),
        }
    }
    Ok(new.finish(&graph))
}

/// Both strides as one, unless that is more than a layer takes.
fn product(own: &Strides, theirs: &Strides) -> Option<Strides> {
    let each = |(own, theirs): (&i64, &i64)| own.checked_mul(*theirs).filter(|both| *both <= i64::from(i32::MAX));
    if own.len() == theirs.len() { own.iter().zip(theirs).map(each).collect() } else { None }
}

/// A node that reads a value, and as which input.
fn readers(graph: &Graph) -> HashMap<Value, Vec<(usize, usize)>> {
    let mut readers: HashMap<Value, Vec<(usize, usize)>> = HashMap::new();
    for (n, node) in graph.nodes.iter().enumerate() {
        for (slot, value) in node.inputs.iter().enumerate() {
            readers.entry(*value).or_default().push((n, slot));
        }
    }
    readers
}

/// The strides of a convolution with channels first.
fn strides_of(node: &GraphNode) -> Option<Strides> {
    let convolution = matches!(node.op.name, "Convolution" | "_fused_convolution");
    let channels_last = convolution && node.attrs.opt_str("layout").is_some_and(|layout| layout.ends_with('C'));
    if !convolution || channels_last {
        return None;
    }
    let given = node.attrs.ints("stride");
    Some(if given.is_empty() { vec![1; node.attrs.ints("kernel").len()] } else { given.to_vec() })
}

/// The stride that all readers share, if they are convolutions of one pixel that step over some.
fn common_stride<'s>(
    graph: &Graph,
    strides: &'s [Option<Strides>],
    readers: Option<&Vec<(usize, usize)>>,
) -> Option<&'s Strides> {
    let readers = readers?;
    let stride = strides[readers.first()?.0].as_ref().filter(|stride| stride.iter().any(|s| *s > 1))?;
    let alike = |(n, slot): &(usize, usize)| {
        let attrs = &graph.nodes[*n].attrs;
        let same = *slot == 0 && strides[*n].as_ref() == Some(stride);
        same && attrs.ints("kernel").iter().all(|k| *k == 1) && attrs.ints("pad").iter().all(|p| *p == 0)
    };
    readers.iter().all(alike).then_some(stride)
}

/// A convolution with other strides, its residual thinned out by what was pulled into it.
fn with_strides(
    new: &mut Rewriter,
    node: &GraphNode,
    strides: &Strides,
    pulled: Option<&Strides>,
) -> Result<usize, OpError> {
    let mut inputs = new.values(&node.inputs);
    let residual = node.attrs.declares("with_residual") && node.attrs.bool("with_residual");
    if let (true, Some(pulled), Some(last)) = (residual, pulled, inputs.last_mut()) {
        let one = tuple(&vec![1; pulled.len()]);
        // The sum of one value keeps NaN and infinities, its maximum does not.
        let attrs = [("kernel", one), ("stride", tuple(pulled)), ("pool_type", "sum".to_owned())];
        let attrs = attrs.map(|(key, value)| (key.to_owned(), value)).to_vec();
        let pixels = GraphNode::new("Pooling", Arc::clone(&node.name), attrs, vec![*last])?.standing_for(node);
        *last = Value::Node(new.push(pixels), 0);
    }
    let mut attrs = node.attr_text.to_vec();
    attrs.retain(|(key, _)| key != "stride");
    attrs.push(("stride".to_owned(), tuple(strides)));
    Ok(new.push(GraphNode::new(node.op.name, Arc::clone(&node.name), attrs, inputs)?.standing_for(node)))
}

fn tuple(numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    format!("({},)", numbers.join(", "))
}
