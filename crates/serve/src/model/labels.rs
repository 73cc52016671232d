//! Labels of a graph: zeros, whose shapes follow from those of the inputs.

use super::bad;
use mxrt_engine::OpError;
use mxrt_graph::Symbol;
use mxrt_tensor::{DType, PartialShape, Shape, TensorType};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Number of shapes of inputs for which the types of labels are cached.
const KNOWN: usize = 64;

/// Labels among the arguments of a graph, and their types by the shapes of its inputs.
pub(super) struct Labels {
    symbol: Symbol,
    names: Vec<String>,
    /// names of the inputs, in the order of their shapes
    inputs: Vec<String>,
    known: Mutex<HashMap<Vec<Shape>, Vec<TensorType>>>,
}

impl Labels {
    pub(super) fn new(symbol: Symbol, names: Vec<String>, inputs: Vec<String>) -> Labels {
        Labels { symbol, names, inputs, known: Mutex::default() }
    }

    /// Returns the types for inputs of these shapes if nothing has to be computed for them.
    pub(super) fn known(&self, shapes: &[Shape]) -> Option<Vec<TensorType>> {
        if self.names.is_empty() {
            return Some(Vec::new());
        }
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(shapes).cloned()
    }

    /// Returns the types for inputs of these shapes. Infers the shapes of the whole graph
    /// if it has labels and their types are not cached.
    pub(super) fn types(&self, shapes: Vec<Shape>) -> Result<Vec<TensorType>, OpError> {
        if let Some(known) = self.known(&shapes) {
            return Ok(known);
        }
        let given = self.inputs.iter().zip(&shapes);
        let given: Vec<_> =
            given.map(|(name, s)| (name.clone(), PartialShape::from_dims(s.iter().copied().map(Some)))).collect();
        let found = self.symbol.infer_shape(&self.symbol.with_label_shapes(given)?, true)?;
        let arguments = self.symbol.list_arguments();
        let of_label = |label: &String| {
            let shape = arguments.iter().zip(&found.args).find(|(name, _)| *name == label);
            let shape = shape.and_then(|(_, shape)| shape.complete());
            let unknown = || bad(format!("the shape of '{label}' does not follow from the inputs"));
            Ok(TensorType { dtype: DType::F32, shape: shape.ok_or_else(unknown)? })
        };
        let types: Vec<TensorType> = self.names.iter().map(of_label).collect::<Result<_, OpError>>()?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN {
            known.clear();
        }
        known.insert(shapes, types.clone());
        Ok(types)
    }
}
