//! Operators that a device cannot run.

use crate::compile::values::GraphValues;
use crate::ir::{Graph, Types, infer};
use crate::symbol::Symbol;
use mxrt_engine::{DeviceId, OpError};
use mxrt_ops::{KernelOptions, Signature, bind_form, form_of};
use mxrt_tensor::TensorType;
use std::sync::Arc;

/// Returns the numbers of the nodes for which a device has no kernel. Nodes that run on the host
/// in any case are left out.
pub(super) fn without_kernel(
    graph: &Graph,
    types: &Types,
    device: DeviceId,
    options: KernelOptions,
) -> Result<Vec<usize>, OpError> {
    let values = GraphValues::new(graph, types, true);
    let mut lacking = Vec::new();
    for (n, node) in graph.nodes.iter().enumerate().filter(|(n, _)| !values.is_alias(*n)) {
        if node.is_stage() || node.flow.is_some() {
            continue;
        }
        let (inputs, outputs) = values.signature_types(n)?;
        let signature = Signature { inputs: &inputs, outputs: &outputs, options };
        let Ok(form) = form_of(node.op, &node.attrs, &signature) else { continue };
        if form.and_then(|form| bind_form(device, &form, &signature)).is_none() {
            lacking.push(n);
        }
    }
    Ok(lacking)
}

impl Symbol {
    /// Returns the names of the nodes that a device does not run, for inputs of these types in the
    /// order of [`Symbol::list_inputs`]: those without a kernel there, and those that run on the host
    /// in any case. No such device is needed.
    pub fn nodes_not_on(&self, device: DeviceId, inputs: &[TensorType]) -> Result<Vec<Arc<str>>, OpError> {
        let graph = Graph::from_symbol(self)?;
        let types = infer(&graph, inputs)?;
        let lacking = without_kernel(&graph, &types, device, KernelOptions::default())?;
        let on_host = |(n, node): &(usize, &crate::ir::GraphNode)| {
            node.is_stage() || node.flow.is_some() || lacking.binary_search(n).is_ok()
        };
        Ok(graph.nodes.iter().enumerate().filter(on_host).map(|(_, node)| node.name.clone()).collect())
    }
}
