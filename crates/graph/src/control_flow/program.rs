//! Control flow with operators of the program as a step of a plan: one that is suspended.

use super::Flow;
use crate::compile::build::PlanBuilder;
use crate::compile::interrupt::Interrupter;
use crate::ir::{Graph, Value};
use crate::run::{CachedOp, ProgramLoop};
use mxrt_engine::{ForkSafeMutex as Mutex, OpError};
use mxrt_ops::CustomKernel;
use mxrt_tensor::TensorType;
use std::collections::HashMap;
use std::sync::Arc;

/// The graphs of nodes as calls of their own, each with its plans: what the plans for all
/// signatures share. By address of the node's graphs, which live as long as what holds this.
#[derive(Default)]
pub(crate) struct LoopGraphs(Mutex<HashMap<usize, Arc<[Arc<CachedOp>]>>>);

impl LoopGraphs {
    fn get_or_make(&self, flow: &Arc<Flow>, make: impl Fn(&Graph) -> CachedOp) -> Arc<[Arc<CachedOp>]> {
        let mut known = self.0.lock();
        let made = || flow.graphs.iter().map(|graph| Arc::new(make(graph))).collect();
        known.entry(Arc::as_ptr(flow).addr()).or_insert_with(made).clone()
    }
}

/// What runs the graphs of node `n`. All plans are built here.
pub(crate) fn program_loop(
    builder: &PlanBuilder<'_>,
    n: usize,
    flow: &Arc<Flow>,
    interrupter: &mut Interrupter<'_>,
) -> Result<CustomKernel, OpError> {
    let (node, wiring) = (&builder.graph.nodes[n], &flow.wiring);
    let ops = builder.shared.loops.get_or_make(flow, |graph| {
        let mut graph = graph.clone();
        // Every call brings copies of all arrays.
        graph.inputs.iter_mut().for_each(|input| input.constant = false);
        CachedOp::of_graph(builder.shared.engine, node.stands_for.into(), graph, builder.options)
    });
    let mut graphs = Vec::with_capacity(ops.len());
    for (op, feeds) in ops.iter().zip(&wiring.inputs) {
        let type_of = |k: &usize| {
            let tensor = builder.type_of(node.inputs[*k])?;
            Ok(if *k < wiring.rows { super::capture::row_type(tensor) } else { tensor.clone() })
        };
        let types = feeds.iter().map(type_of).collect::<Result<Vec<TensorType>, OpError>>()?;
        let program = op.program_whole(&types, interrupter)?;
        graphs.push((op.clone(), program));
    }
    let outputs = (0..node.op.num_outputs(&node.attrs))
        .map(|o| builder.type_of(Value::Node(n, o)).cloned())
        .collect::<Result<Vec<_>, _>>()?;
    for (g, (_, program)) in graphs.iter().enumerate() {
        super::compile::check_outputs(flow, g, program.outputs(), &outputs)?;
    }
    let rows = match wiring.rows {
        0 => 0,
        _ => builder.type_of(node.inputs[0])?.shape.first().copied().unwrap_or(0),
    };
    let (inputs, made) = (node.inputs.len(), outputs.len());
    let runs =
        ProgramLoop { wiring: wiring.clone(), op: node.stands_for, node: node.name.clone(), graphs, rows, outputs };
    let runs = Arc::new(runs);
    Ok(CustomKernel::new(Arc::new(move |call| runs.begin(call)), inputs, made))
}
