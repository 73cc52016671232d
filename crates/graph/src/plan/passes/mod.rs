//! Graph passes, in one list. Each is a function from graph to graph.

mod cleanup;
mod fold_batch_norm;
mod fuse;

use super::ir::Graph;
use mxrt_engine::OpError;

/// A pass.
pub struct Pass {
    /// name, for switching it off
    pub name: &'static str,
    /// what it does
    pub run: fn(Graph) -> Result<Graph, OpError>,
}

/// All passes, in the order in which they run.
pub const PASSES: &[Pass] = &[
    Pass { name: "drop_identities", run: cleanup::drop_identities },
    Pass { name: "merge_equal", run: cleanup::merge_equal },
    Pass { name: "fold_batch_norm", run: fold_batch_norm::run },
    Pass { name: "fuse_convolution", run: fuse::run },
    Pass { name: "drop_dead", run: cleanup::drop_dead },
];

/// Runs every pass.
pub fn run_all(graph: Graph) -> Result<Graph, OpError> {
    PASSES.iter().try_fold(graph, |graph, pass| (pass.run)(graph))
}
