//! Types of every value of a graph, from the types of its inputs.

use super::{Graph, Value};
use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{DTypes, Shapes};
use mxrt_tensor::{DType, PartialShape, TensorType};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Types of all values of a graph.
pub type Types = HashMap<Value, TensorType>;

/// A type of which parts may be unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct PartialType {
    /// its shape
    pub shape: PartialShape,
    /// its element type
    pub dtype: Option<DType>,
}

impl PartialType {
    /// Nothing is known.
    pub const UNKNOWN: PartialType = PartialType { shape: PartialShape::UNKNOWN, dtype: None };
}

impl From<&TensorType> for PartialType {
    fn from(known: &TensorType) -> PartialType {
        PartialType { shape: (&known.shape).into(), dtype: Some(known.dtype) }
    }
}

/// Infers forwards and backwards until nothing new is learnt, then demands that everything is
/// known.
pub fn infer(graph: &Graph, inputs: &[TensorType]) -> Result<Types, OpError> {
    let known = propagate(graph, inputs.iter().map(PartialType::from), true)?;
    let mut types = Types::new();
    for (value, k) in known {
        if let (Some(shape), Some(dtype)) = (k.shape.complete(), k.dtype) {
            types.insert(value, TensorType { dtype, shape });
        }
    }
    Ok(types)
}

/// What is known of the inputs after inferring forwards and backwards from what is given of them.
pub fn infer_inputs(graph: &Graph, inputs: &[PartialType]) -> Result<Vec<PartialType>, OpError> {
    let mut known = propagate(graph, inputs.iter().cloned(), false)?;
    Ok((0..inputs.len()).map(|i| known.remove(&Value::Input(i)).unwrap_or(PartialType::UNKNOWN)).collect())
}

/// Visits nodes until nothing new is learnt. What is unknown then is an error if `complete` is
/// demanded.
fn propagate(
    graph: &Graph,
    inputs: impl Iterator<Item = PartialType>,
    complete: bool,
) -> Result<HashMap<Value, PartialType>, OpError> {
    let mut known: HashMap<Value, PartialType> =
        inputs.enumerate().map(|(i, given)| (Value::Input(i), given)).collect();
    let mut open: Vec<usize> = (0..graph.nodes.len()).collect();
    // Most graphs are done after one round; graphs with unknown extents (a zero batch of a start
    // state) take a few.
    while !open.is_empty() {
        let mut learnt = false;
        let mut still_open = Vec::new();
        for &n in &open {
            let (all, changed) = visit(graph, n, &mut known)?;
            learnt |= changed;
            if !all {
                still_open.push(n);
            }
        }
        if !learnt {
            match still_open.first() {
                Some(first) if complete => return Err(unknown_around(graph, *first)),
                _ => break,
            }
        }
        open = still_open;
    }
    Ok(known)
}

fn unknown_around(graph: &Graph, n: usize) -> OpError {
    let node = &graph.nodes[n];
    let message = "shapes or dtypes around this node cannot be told from those of the inputs";
    OpError::new(FailureKind::Shape, message).op(node.stands_for).node(&*node.name)
}

/// One node. Returns whether all is known around it, and whether anything was learnt.
fn visit(graph: &Graph, n: usize, known: &mut HashMap<Value, PartialType>) -> Result<(bool, bool), OpError> {
    let node = &graph.nodes[n];
    let outputs: SmallVec<[Value; 2]> = (0..node.op.num_outputs(&node.attrs)).map(|o| Value::Node(n, o)).collect();
    let shape_of = |known: &HashMap<Value, PartialType>, v: &Value| {
        known.get(v).map_or(PartialShape::UNKNOWN, |k| k.shape.clone())
    };
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
    (node.op.infer_shape)(&mut Shapes { attrs: &node.attrs, inputs: &mut in_shapes, outputs: &mut out_shapes })
        .map_err(facts)?;
    (node.op.infer_dtype)(&mut DTypes { attrs: &node.attrs, inputs: &mut in_dtypes, outputs: &mut out_dtypes })
        .map_err(facts)?;
    let mut changed = false;
    let mut complete = true;
    let shapes = in_shapes.into_iter().chain(out_shapes);
    let dtypes = in_dtypes.into_iter().chain(out_dtypes);
    for ((value, shape), dtype) in node.inputs.iter().chain(&outputs).zip(shapes).zip(dtypes) {
        let slot = known.entry(*value).or_insert(PartialType { shape: PartialShape::UNKNOWN, dtype: None });
        changed |= slot
            .shape
            .merge(&shape)
            .map_err(|e| OpError::new(FailureKind::Shape, e.to_string()).op(node.stands_for).node(&*node.name))?;
        if slot.dtype.is_none() && dtype.is_some() {
            slot.dtype = dtype;
            changed = true;
        }
        complete &= slot.shape.is_complete() && slot.dtype.is_some();
    }
    Ok((complete, changed))
}
