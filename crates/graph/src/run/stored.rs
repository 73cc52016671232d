//! Graphs on sparse arrays.
//!
//! A call infers from the storage types of its arrays, as MXNet does, which nodes have a kernel for
//! sparse arrays, and how their results are stored. These nodes run one by one, like imperative
//! calls. The nodes between them are compiled as graphs of their own, which read dense arrays.

use super::cached_op::CachedOp;
use super::parts::NodePlaces;
use super::placements::{InputStorage, PlacementKey};
use super::prepared::PreparedCall;
use crate::compile::report::PlanReport;
use crate::ir::{Graph, GraphNode, Value, ValueMap, describe, infer};
use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{StorageChoice, choose_storage, dense_copies_text, result_storage};
use mxrt_tensor::{Context, NDArray, StorageType, TensorType};

/// How the nodes of a graph deal with sparse arrays.
struct StoredTypes {
    /// flag for each node: it runs on arrays as they are stored
    stored: Vec<bool>,
    /// MXNet's warnings, one for each node that has no kernel for sparse arrays
    warnings: Vec<String>,
}

/// Whether a graph makes sparse arrays of dense ones.
pub(super) fn makes_sparse(graph: &Graph) -> bool {
    graph.nodes.iter().any(|node| mxrt_ops::makes_sparse(node.op, &node.attrs))
}

impl CachedOp {
    /// The facts that decide which nodes run on arrays as they are stored; none for calls without
    /// sparse arrays.
    pub(super) fn storage_key(&self, call: &PreparedCall<'_>) -> Option<PlacementKey> {
        let sparse = call.binding.sparse || self.makes_sparse || call.data.iter().any(|array| array.is_sparse());
        if !sparse || !self.knows_storage || self.groups.is_some() {
            return None;
        }
        let array = |i: usize| call.binding.array(i, call.data);
        let storage = (0..self.num_inputs()).map(|i| array(i).map_or(StorageType::Default, NDArray::storage_type));
        let (storage, context) = (Some(storage.collect()), call.binding.context(call.data));
        Some(PlacementKey { storage, types: (call.types)(), context })
    }

    /// The nodes that run on arrays as they are stored; none if one op computes all densely. On a
    /// device, whose kernels are given dense copies, the graph runs in parts in any case.
    pub(super) fn places_by_storage(
        &self,
        inputs: &[StorageType],
        types: &[TensorType],
        context: Context,
    ) -> Result<Option<NodePlaces>, OpError> {
        let Some(StoredTypes { stored, warnings }) = self.infer_storage(inputs, types, context)? else {
            return Ok(None);
        };
        self.placements.warn(warnings);
        let on_device = context.device().is_some();
        Ok((on_device || stored.contains(&true)).then_some(NodePlaces::Storage { nodes: stored, on_device }))
    }

    /// Says in a report of a plan what is computed with arrays as they are stored.
    pub(super) fn note_stored(&self, report: &mut PlanReport, inputs: &[&NDArray]) -> Result<(), OpError> {
        if !self.knows_storage || !(self.makes_sparse || inputs.iter().any(|array| array.is_sparse())) {
            return Ok(());
        }
        let types: Vec<TensorType> = inputs.iter().map(|array| array.tensor_type()).collect();
        let stored: InputStorage = inputs.iter().map(|array| array.storage_type()).collect();
        let inferred = self.infer_storage(&stored, &types, self.unbound.context(inputs))?;
        let stored = inferred.map_or_else(Vec::new, |inferred| inferred.stored);
        let nodes = self.source.nodes.iter().zip(&stored).filter(|(_, stored)| **stored);
        let named: Vec<String> = nodes.map(|(node, _)| format!("{} ({})", node.name, node.stands_for)).collect();
        report.note(match named.is_empty() {
            true => "sparse arrays are copied densely: no node has a kernel for them".to_owned(),
            false => format!("with sparse arrays as they are stored, before or between plans: {}", named.join(", ")),
        });
        Ok(())
    }

    /// How the nodes deal with arrays that are stored so; none if the types do not fit.
    fn infer_storage(
        &self,
        inputs: &[StorageType],
        types: &[TensorType],
        context: Context,
    ) -> Result<Option<StoredTypes>, OpError> {
        let nodes = &self.source.nodes;
        // What is wrong with types is said where the graph is compiled.
        let Ok(types) = infer(&self.source, types) else { return Ok(None) };
        let mut storage: ValueMap<StorageType> = ValueMap::default();
        storage.extend(inputs.iter().enumerate().map(|(i, stored)| (Value::Input(i), *stored)));
        let (mut stored, mut warnings) = (Vec::with_capacity(nodes.len()), Vec::new());
        for (n, node) in nodes.iter().enumerate() {
            let of = |value: &Value| storage.get(value).copied().unwrap_or(StorageType::Default);
            let reads: InputStorage = node.inputs.iter().map(of).collect();
            let (choice, result) = choose(node, &reads, &types).map_err(|error| {
                let known = node.inputs.iter().filter_map(|value| types.get(value));
                describe(error, (node.stands_for, &node.name, &node.attr_text), known)
            })?;
            if choice == StorageChoice::Warned {
                let results = vec![result; node.num_outputs()];
                warnings.push(dense_copies_text(node.op, &node.attr_text, &reads, &results, context));
            }
            let any = reads.iter().any(|s| s.is_sparse());
            stored.push(result.is_sparse() || (any && matches!(choice, StorageChoice::Kernel(_))));
            storage.insert(Value::Node(n, 0), result);
        }
        Ok(Some(StoredTypes { stored, warnings }))
    }
}

/// Decides what happens to a node, and how its first result is stored.
fn choose(
    node: &GraphNode,
    reads: &[StorageType],
    types: &ValueMap<TensorType>,
) -> Result<(StorageChoice, StorageType), OpError> {
    let sparse = reads.iter().any(|s| s.is_sparse());
    let all: Option<Vec<TensorType>> = node.inputs.iter().map(|value| types.get(value).cloned()).collect();
    let dense = if sparse { StorageChoice::Warned } else { StorageChoice::Dense };
    let Some(all) = all.filter(|_| node.flow.is_none() && !node.is_stage()) else {
        return Ok((dense, StorageType::Default));
    };
    match choose_storage(node.op, &node.attrs, reads, &all, None) {
        StorageChoice::Refused(reason) => Err(OpError::new(FailureKind::NotImplemented, reason)),
        choice => Ok((choice, result_storage(node.op, &node.attrs, reads, choice))),
    }
}
