//! Graph passes, in one list. Each is a function from graph to graph.

mod choice;
mod cleanup;
mod elementwise;
mod fold_batch_norm;
mod fold_creation;
mod fold_scalar;
mod fuse;
mod fuse_pooling;
mod layout;
mod pull_strides;
mod scale_shift;

pub use choice::PassChoice;

use crate::ir::{Graph, Types};
use mxrt_engine::OpError;
use mxrt_ops::KernelOptions;

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
    Pass { name: "fold_creation", run: fold_creation::run },
    Pass { name: "fold_batch_norm", run: fold_batch_norm::run },
    Pass { name: "fold_scalar", run: fold_scalar::run },
    Pass { name: "drop_dead", run: cleanup::drop_dead },
];

/// Runs the chosen ones of [`PASSES`].
pub fn run_all(graph: Graph, choice: PassChoice) -> Result<Graph, OpError> {
    PASSES.iter().filter(|pass| choice.runs(pass.name)).try_fold(graph, |graph, pass| (pass.run)(graph))
}

/// A pass that needs the types of all values; it runs when a plan is built.
pub struct TypedPass {
    /// name, for switching it off
    pub name: &'static str,
    /// what it does
    pub run: fn(Graph, &Types, KernelOptions) -> Result<Graph, OpError>,
}

/// All passes that need types, in the order in which they run.
pub const TYPED_PASSES: &[TypedPass] = &[
    TypedPass { name: "fuse_conv", run: fuse::run },
    TypedPass { name: "pull_strides", run: pull_strides::run },
    TypedPass { name: "scale_shift", run: scale_shift::run },
    TypedPass { name: "fuse_elementwise", run: elementwise::run },
    TypedPass { name: "assign_layouts", run: layout::run },
    TypedPass { name: "fuse_pooling", run: fuse_pooling::run },
];

/// Part of the memory plan that can be switched off like a pass: element-wise steps overwrite an input that no
/// later step reads.
pub const OVERWRITE: &str = "overwrite";

/// Large batches of graphs that treat every row alone are run in parts, which can be switched off like a pass.
pub const DIVIDE_BATCH: &str = "divide_batch";

/// Where another packing of the weights would not fit beside those of other plans, a plan makes do with one that serves all image
/// sizes; without it, other plans go.
pub const SHARE_PACKINGS: &str = "share_packings";

/// Part of the memory plan that can be switched off like a pass: inputs of a concatenation are made inside its output.
pub const JOIN_IN_PLACE: &str = "concat_in_place";
