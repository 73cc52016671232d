//! Types of every value of a graph, from the types of its inputs.

use super::{Graph, GraphNode, Value, ValueMap};
use crate::control_flow::InnerGraphs;
use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{DTypes, Shapes};
use mxrt_tensor::{DType, PartialShape, TensorType};
use smallvec::SmallVec;

/// Types of all values of a graph.
pub type Types = ValueMap<TensorType>;

/// A type of which parts may be unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialType {
    /// the shape, which may be unknown in whole or in part
    pub shape: PartialShape,
    /// the element type, if known
    pub dtype: Option<DType>,
}

impl PartialType {
    /// A type of which nothing is known.
    pub const UNKNOWN: PartialType = PartialType { shape: PartialShape::UNKNOWN, dtype: None };
}

impl PartialType {
    /// The type, if all of it is known.
    pub fn complete(&self) -> Option<TensorType> {
        Some(TensorType { dtype: self.dtype?, shape: self.shape.complete()? })
    }
}

impl From<&TensorType> for PartialType {
    fn from(known: &TensorType) -> PartialType {
        PartialType { shape: (&known.shape).into(), dtype: Some(known.dtype) }
    }
}

/// Infers forwards and backwards until nothing new is learnt, then demands that everything is
/// known.
pub fn infer(graph: &Graph, inputs: &[TensorType]) -> Result<Types, OpError> {
    infer_checked(graph, inputs, &mut || Ok(()))
}

/// Infers types as [`infer`] does. It calls `check` periodically and returns its error.
pub(crate) fn infer_checked(
    graph: &Graph,
    inputs: &[TensorType],
    check: &mut dyn FnMut() -> Result<(), OpError>,
) -> Result<Types, OpError> {
    let known = propagate(graph, inputs.iter().map(PartialType::from), true, check)?;
    let mut types = Types::default();
    types.reserve(known.len());
    for (value, k) in known {
        if let (Some(shape), Some(dtype)) = (k.shape.complete(), k.dtype) {
            types.insert(value, TensorType { dtype, shape });
        }
    }
    Ok(types)
}

/// Infers forwards and backwards from what is given of the inputs. Returns what is then known of
/// them.
pub fn infer_inputs(graph: &Graph, inputs: &[PartialType]) -> Result<Vec<PartialType>, OpError> {
    let mut known = propagate(graph, inputs.iter().cloned(), false, &mut || Ok(()))?;
    Ok((0..inputs.len()).map(|i| known.remove(&Value::Input(i)).unwrap_or(PartialType::UNKNOWN)).collect())
}

/// Infers what is known of the outputs of a node from what is given of its inputs.
pub(crate) fn infer_node(node: &GraphNode, inputs: &[PartialType]) -> Result<Vec<PartialType>, OpError> {
    let node = GraphNode { inputs: (0..inputs.len()).map(Value::Input).collect(), ..node.clone() };
    let outputs = node.op.num_outputs(&node.attrs);
    let graph = Graph { nodes: vec![node], ..Graph::default() };
    let mut known = propagate(&graph, inputs.iter().cloned(), false, &mut || Ok(()))?;
    let mut output = |o| known.remove(&Value::Node(0, o)).unwrap_or(PartialType::UNKNOWN);
    Ok((0..outputs).map(&mut output).collect())
}

/// Visits nodes until nothing new is learnt. If `complete` is demanded, unknown types are an error.
/// `check` is called periodically, and its error is returned.
fn propagate(
    graph: &Graph,
    inputs: impl Iterator<Item = PartialType>,
    complete: bool,
    check: &mut dyn FnMut() -> Result<(), OpError>,
) -> Result<ValueMap<PartialType>, OpError> {
    let mut known: ValueMap<PartialType> = ValueMap::default();
    known.reserve(graph.inputs.len() + graph.nodes.len());
    known.extend(inputs.enumerate().map(|(i, given)| (Value::Input(i), given)));
    match settle(graph, &mut known, check)? {
        Some(open) if complete => Err(unknown_around(graph, open)),
        _ => Ok(known),
    }
}

/// Visits open nodes until nothing new is learnt. Returns the first node with unknown types around
/// it.
fn settle(
    graph: &Graph,
    known: &mut ValueMap<PartialType>,
    check: &mut dyn FnMut() -> Result<(), OpError>,
) -> Result<Option<usize>, OpError> {
    let mut open: Vec<usize> = (0..graph.nodes.len()).collect();
    // Most graphs are done after one round; graphs with unknown extents (a zero batch of a start
    // state) take a few. Rounds go forwards and backwards in turn, because what is known at the end
    // of a chain would otherwise move by one node in each round.
    while !open.is_empty() {
        let mut learnt = false;
        let mut still_open = Vec::new();
        for &n in &open {
            if n.is_multiple_of(64) {
                check()?;
            }
            let (all, changed) = visit(graph, n, known)?;
            learnt |= changed;
            if !all {
                still_open.push(n);
            }
        }
        if !learnt {
            return Ok(still_open.iter().min().copied());
        }
        still_open.reverse();
        open = still_open;
    }
    Ok(None)
}

/// Completes what is known of the inputs and outputs of a graph inside a node.
fn infer_inner(graph: &Graph, inputs: &mut [PartialType], outputs: &mut [PartialType]) -> Result<(), OpError> {
    let places: Vec<Value> = (0..graph.inputs.len()).map(Value::Input).chain(graph.outputs.iter().copied()).collect();
    let mut known: ValueMap<PartialType> = ValueMap::default();
    for (value, given) in places.iter().zip(inputs.iter().chain(outputs.iter())) {
        let slot = known.entry(*value).or_insert(PartialType::UNKNOWN);
        slot.shape.merge(&given.shape).map_err(|e| OpError::new(FailureKind::Shape, e.to_string()))?;
        slot.dtype = slot.dtype.or(given.dtype);
    }
    settle(graph, &mut known, &mut || Ok(()))?;
    for (value, found) in places.iter().zip(inputs.iter_mut().chain(outputs)) {
        *found = known.get(value).cloned().unwrap_or(PartialType::UNKNOWN);
    }
    Ok(())
}

impl InnerGraphs for Vec<Graph> {
    fn infer_shapes(
        &self,
        graph: usize,
        inputs: &mut [PartialShape],
        outputs: &mut [PartialShape],
    ) -> Result<(), OpError> {
        let known = |shapes: &[PartialShape]| -> Vec<PartialType> {
            shapes.iter().map(|shape| PartialType { shape: shape.clone(), dtype: None }).collect()
        };
        let (mut ins, mut outs) = (known(inputs), known(outputs));
        infer_inner(&self[graph], &mut ins, &mut outs)?;
        inputs.iter_mut().zip(ins).for_each(|(shape, found)| *shape = found.shape);
        outputs.iter_mut().zip(outs).for_each(|(shape, found)| *shape = found.shape);
        Ok(())
    }

    fn infer_dtypes(
        &self,
        graph: usize,
        inputs: &mut [Option<DType>],
        outputs: &mut [Option<DType>],
    ) -> Result<(), OpError> {
        let known = |dtypes: &[Option<DType>]| -> Vec<PartialType> {
            dtypes.iter().map(|dtype| PartialType { dtype: *dtype, ..PartialType::UNKNOWN }).collect()
        };
        let (mut ins, mut outs) = (known(inputs), known(outputs));
        infer_inner(&self[graph], &mut ins, &mut outs)?;
        inputs.iter_mut().zip(ins).for_each(|(dtype, found)| *dtype = found.dtype);
        outputs.iter_mut().zip(outs).for_each(|(dtype, found)| *dtype = found.dtype);
        Ok(())
    }
}

fn unknown_around(graph: &Graph, n: usize) -> OpError {
    let node = &graph.nodes[n];
    let message = "shapes or dtypes around this node cannot be told from those of the inputs";
    OpError::new(FailureKind::Shape, message).op(node.stands_for).node(&*node.name)
}

/// Infers around one node. Returns whether all types around it are known, and whether one was
/// learnt.
fn visit(graph: &Graph, n: usize, known: &mut ValueMap<PartialType>) -> Result<(bool, bool), OpError> {
    let node = &graph.nodes[n];
    let outputs: SmallVec<[Value; 2]> = (0..node.op.num_outputs(&node.attrs)).map(|o| Value::Node(n, o)).collect();
    let shape_of =
        |known: &ValueMap<PartialType>, v: &Value| known.get(v).map_or(PartialShape::UNKNOWN, |k| k.shape.clone());
    let mut in_shapes: SmallVec<[PartialShape; 4]> = node.inputs.iter().map(|v| shape_of(known, v)).collect();
    let mut out_shapes: SmallVec<[PartialShape; 2]> = outputs.iter().map(|v| shape_of(known, v)).collect();
    let mut in_dtypes: SmallVec<[Option<DType>; 4]> =
        node.inputs.iter().map(|v| known.get(v).and_then(|k| k.dtype)).collect();
    let mut out_dtypes: SmallVec<[Option<DType>; 2]> =
        outputs.iter().map(|v| known.get(v).and_then(|k| k.dtype)).collect();
    let facts = |e: OpError| {
        let shapes = node.inputs.iter().filter_map(|v| known.get(v).and_then(|k| k.shape.complete()));
        let dtypes = node.inputs.iter().filter_map(|v| known.get(v).and_then(|k| k.dtype));
        e.op(node.stands_for)
            .node(&*node.name)
            .shapes(shapes.map(|s| s.to_vec()).collect())
            .dtypes(dtypes.map(|d| d.name()).collect())
    };
    if let Some(flow) = &node.flow {
        let (wiring, graphs) = (&flow.wiring, &flow.graphs);
        wiring.infer_shapes(graphs, &mut in_shapes, &mut out_shapes).map_err(facts)?;
        wiring.infer_dtypes(graphs, &mut in_dtypes, &mut out_dtypes).map_err(facts)?;
    } else {
        (node.op.infer_shape)(&mut Shapes { attrs: &node.attrs, inputs: &mut in_shapes, outputs: &mut out_shapes })
            .map_err(facts)?;
        (node.op.infer_dtype)(&mut DTypes { attrs: &node.attrs, inputs: &mut in_dtypes, outputs: &mut out_dtypes })
            .map_err(facts)?;
    }
    let shapes = in_shapes.into_iter().chain(out_shapes);
    let dtypes = in_dtypes.into_iter().chain(out_dtypes);
    let found = node.inputs.iter().chain(&outputs).copied().zip(shapes.zip(dtypes));
    learn(known, found).map_err(|e| e.op(node.stands_for).node(&*node.name))
}

/// Adds what was found to the known types. Returns whether all of these values have complete types,
/// and whether one was learnt.
fn learn(
    known: &mut ValueMap<PartialType>,
    found: impl Iterator<Item = (Value, (PartialShape, Option<DType>))>,
) -> Result<(bool, bool), OpError> {
    let (mut complete, mut changed) = (true, false);
    for (value, (shape, dtype)) in found {
        let slot = known.entry(value).or_insert(PartialType::UNKNOWN);
        changed |= slot.shape.merge(&shape).map_err(|e| OpError::new(FailureKind::Shape, e.to_string()))?;
        if slot.dtype.is_none() && dtype.is_some() {
            slot.dtype = dtype;
            changed = true;
        }
        complete &= slot.shape.is_complete() && slot.dtype.is_some();
    }
    Ok((complete, changed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shape that is known at the end of a chain alone is known everywhere after a few rounds.
    #[test]
    fn what_is_known_at_the_end_of_a_chain_reaches_its_beginning_in_linear_time() {
        const NODES: usize = 640;
        let node = |name, inputs| GraphNode::new(name, "n".into(), Vec::new(), inputs).expect("the operator exists");
        let mut nodes = vec![node("negative", vec![Value::Input(0)])];
        nodes.extend((1..NODES).map(|n| node("negative", vec![Value::Node(n - 1, 0)])));
        nodes.push(node("elemwise_add", vec![Value::Node(NODES - 1, 0), Value::Input(1)]));
        let graph = Graph { nodes, ..Graph::default() };
        let known = PartialType::from(&TensorType::new(DType::F32, &[2, 3][..]));
        let mut checks = 0;
        let mut count = || {
            checks += 1;
            Ok(())
        };
        let inputs = [PartialType::UNKNOWN, known.clone()];
        let types = propagate(&graph, inputs.into_iter(), false, &mut count).expect("it is consistent");
        assert_eq!(types.get(&Value::Input(0)), Some(&known));
        // There is a check for every 64 visits.
        assert!(checks <= 6 * NODES / 64, "{checks} checks");
    }
}
