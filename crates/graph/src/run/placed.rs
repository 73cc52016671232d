//! Graphs over several contexts.
//!
//! Nodes have contexts of their own where the caller says so (`group2ctx`). Elsewhere all are on the
//! device of the call's arrays, except those that it cannot run: operators of the program; on devices
//! with kernels of their own also loops and branches, and with [`BuildOptions::fallback`] operators
//! without a kernel for the types of the call.
//!
//! [`BuildOptions::fallback`]: crate::BuildOptions::fallback

use super::cached_op::CachedOp;
use super::lacking::without_kernel;
use super::parts::NodePlaces;
use super::placements::PlacementKey;
use super::plan_cache::CallSignature;
use crate::compile::interrupt::Interrupter;
use crate::compile::report::PlanReport;
use crate::ir::{GraphNode, infer};
use mxrt_engine::OpError;
use mxrt_tensor::{Context, NDArray, TensorType};
use std::collections::BTreeSet;

impl CachedOp {
    /// The facts that decide on the contexts of nodes in calls with arrays of a context and these types;
    /// none where all nodes run there in any case.
    pub(super) fn context_key(&self, context: Context, types: impl Fn() -> CallSignature) -> Option<PlacementKey> {
        if self.groups.is_some() {
            return Some(PlacementKey::default());
        }
        context.device().filter(|_| self.hosted || self.options.fallback)?;
        let types = if self.options.fallback { types() } else { CallSignature::new() };
        Some(PlacementKey { storage: None, types, context })
    }

    /// The contexts of the nodes for arrays on a device; none if all nodes run there.
    pub(super) fn places_by_context(
        &self,
        context: Context,
        types: &[TensorType],
    ) -> Result<Option<NodePlaces>, OpError> {
        let Some(device) = context.device() else { return Ok(None) };
        // What follows from contents is computed on the host, which then runs all of the graph.
        if self.is_data_dependent() {
            return Ok(None);
        }
        let lacking = self.lacking(context, types)?;
        let own_kernels = !self.engine().device(device)?.backend().host_addressable();
        let hosted = |(n, node): (usize, &GraphNode)| {
            node.is_stage() || (own_kernels && node.flow.is_some()) || lacking.contains(&n)
        };
        if !self.source.nodes.iter().enumerate().any(hosted) {
            return Ok(None);
        }
        if !lacking.is_empty() {
            self.placements.notice.get_or_init(|| self.on_host(context, &lacking));
        }
        let place = |node: (usize, &GraphNode)| if hosted(node) { Context::default() } else { context };
        let nodes = self.source.nodes.iter().enumerate().map(place).collect();
        Ok(Some(NodePlaces::Contexts { nodes, results: Some(context) }))
    }

    /// The plan for arrays like these: that of the host, with a note of what runs where.
    pub fn plan_for(&self, inputs: &[&NDArray]) -> Result<PlanReport, OpError> {
        let types: Vec<TensorType> = inputs.iter().map(|array| array.tensor_type()).collect();
        let mut report = self.plan(&types)?;
        let context = self.unbound.context(inputs);
        self.note_libraries_of_calls(&mut report, context, &types)?;
        let lacking = self.lacking(context, &types)?;
        if !lacking.is_empty() {
            report.note(self.on_host(context, &lacking));
        }
        self.note_stored(&mut report, inputs)?;
        Ok(report)
    }

    /// Notes what libraries compute in calls with arrays of a context and these types: in the whole
    /// plan, or in each part's.
    pub(super) fn note_libraries_of_calls(
        &self,
        report: &mut PlanReport,
        context: Context,
        types: &[TensorType],
    ) -> Result<(), OpError> {
        let parts = self.context_key(context, || types.into()).map(|key| self.parts_for(key)).transpose()?;
        match parts.flatten() {
            Some(parts) => parts.each_graph(types, &mut Interrupter::never(), |op, context, types| {
                op.note_libraries(report, context, types)
            }),
            None => self.note_libraries(report, context, types),
        }
    }

    /// Whether anything runs on the host in calls with these arrays, because it has no kernel.
    pub(super) fn has_lacking(&self, inputs: &[&NDArray]) -> Result<bool, OpError> {
        let types: Vec<TensorType> = inputs.iter().map(|array| array.tensor_type()).collect();
        Ok(!self.lacking(self.unbound.context(inputs), &types)?.is_empty())
    }

    /// The nodes that run on the host because a device has no kernel for them and these types of the
    /// inputs; none without [`BuildOptions::fallback`](crate::BuildOptions::fallback).
    fn lacking(&self, context: Context, types: &[TensorType]) -> Result<Vec<usize>, OpError> {
        let Some(device) = context.device().filter(|_| self.options.fallback && self.groups.is_none()) else {
            return Ok(Vec::new());
        };
        if self.is_data_dependent() || self.engine().device(device)?.backend().host_addressable() {
            return Ok(Vec::new());
        }
        // What is wrong with the graph or an operator is said where it is compiled.
        let Ok(types) = infer(&self.source, types) else { return Ok(Vec::new()) };
        without_kernel(&self.source, &types, device, self.options.kernel)
    }

    fn on_host(&self, context: Context, lacking: &[usize]) -> String {
        let mut names = BTreeSet::new();
        names.extend(lacking.iter().map(|n| self.source.nodes[*n].stands_for));
        let names: Vec<&str> = names.into_iter().collect();
        format!("{context} has no kernel for {}: run on the host, with copies around (fallback)", names.join(", "))
    }
}
