//! Graph passes, in two lists. A pass is a file of its name and a row here: `PLANS.md`,
//! `MXRT_PASSES` and tests have it from the row.

mod assign_layouts;
mod choice;
mod drop_dead;
mod drop_identities;
mod fold_batch_norm;
mod fold_creation;
mod fold_scalar;
mod fuse_attention;
mod fuse_conv;
mod fuse_dense;
mod fuse_elementwise;
mod fuse_layer_norm;
mod fuse_pooling;
mod keep_lines;
mod merge_equal;
mod pull_strides;
mod scale_shift;
mod use_lines;
mod views;

pub use choice::PassChoice;

use crate::ir::{Flow, Graph, Types, Value};
use mxrt_engine::OpError;
use mxrt_ops::KernelOptions;
use std::sync::Arc;

/// A pass.
pub struct Pass {
    /// name, for switching it off
    pub name: &'static str,
    /// effect of the pass, for `PLANS.md`
    pub effect: &'static str,
    /// the pass
    pub run: fn(Graph) -> Result<Graph, OpError>,
}

/// All passes, in the order in which they run.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "drop_identities",
        effect: "removes Dropout and copies, which do nothing at inference",
        run: drop_identities::run,
    },
    Pass { name: "merge_equal", effect: "merges nodes that compute the same", run: merge_equal::run },
    Pass {
        name: "fold_creation",
        effect: "makes a constant of a value that depends on attributes alone (zeros, ranges), up \
            to 1 MB; values whose shape comes from a reader and random numbers stay",
        run: fold_creation::run,
    },
    Pass {
        name: "fold_batch_norm",
        effect: "folds BatchNorm into the layer before it; the folded weights are a constant node",
        run: fold_batch_norm::run,
    },
    Pass {
        name: "fold_scalar",
        effect: "folds factors and offsets of a layer's result into its weights and bias",
        run: fold_scalar::run,
    },
    Pass { name: "drop_dead", effect: "removes nodes that nothing reads", run: drop_dead::run },
];

/// Runs the chosen ones of [`PASSES`], also on the graphs of nodes.
pub fn run_all(graph: Graph, choice: PassChoice) -> Result<Graph, OpError> {
    let mut passes = PASSES.iter().filter(|pass| choice.runs(pass.name));
    let mut graph = passes.try_fold(graph, |graph, pass| (pass.run)(graph))?;
    let (inputs, nodes) = (graph.inputs.clone(), graph.constant_nodes());
    let constant = |value| match value {
        Value::Input(i) => inputs[i].constant,
        Value::Node(n, _) => nodes[n],
    };
    for node in &mut graph.nodes {
        if let Some(flow) = &node.flow {
            let inner = on_graphs(Flow::clone(flow), &node.inputs, &constant, choice)?;
            node.flow = Some(Arc::new(inner));
        }
    }
    Ok(graph)
}

/// Runs the passes on the graphs of a node. Inputs that the node captures are constant where `constant`
/// says so of the values that it reads.
fn on_graphs(
    mut flow: Flow,
    reads: &[Value],
    constant: &dyn Fn(Value) -> bool,
    choice: PassChoice,
) -> Result<Flow, OpError> {
    for (graph, feeds) in flow.graphs.iter_mut().zip(&flow.wiring.inputs) {
        for (input, k) in graph.inputs.iter_mut().zip(feeds) {
            input.constant = flow.wiring.is_captured(*k) && constant(reads[*k]);
        }
        *graph = run_all(std::mem::take(graph), choice)?;
    }
    Ok(flow)
}

/// A kind of target of the lowering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// the host's kernels
    Host,
    /// a device with kernels of its own
    Device,
}

const HOST: &[On] = &[On::Host];
const DEVICE: &[On] = &[On::Device];
const ALL: &[On] = &[On::Host, On::Device];

/// A pass that needs the types of all values; it runs when a plan is built.
pub struct TypedPass {
    /// name, for switching it off
    pub name: &'static str,
    /// effect of the pass, for `PLANS.md`
    pub effect: &'static str,
    /// targets that have kernels for what it makes
    pub on: &'static [On],
    /// the pass
    pub run: fn(Graph, &Types, KernelOptions) -> Result<Graph, OpError>,
}

/// All passes that need types, in the order in which they run.
pub const TYPED_PASSES: &[TypedPass] = &[
    TypedPass {
        name: "fuse_attention",
        effect: "computes a product, its softmax and the product with that as one step, which reads \
            and writes heads where layers store them",
        on: HOST,
        run: fuse_attention::run,
    },
    TypedPass {
        name: "fuse_conv",
        effect: "a layer adds a residual and applies its activation where it stores its output",
        on: ALL,
        run: fuse_conv::run,
    },
    TypedPass {
        name: "fuse_layer_norm",
        effect: "a LayerNorm along the last axis makes the sum that it normalises",
        on: HOST,
        run: fuse_layer_norm::run,
    },
    TypedPass {
        name: "pull_strides",
        effect: "a convolution whose readers are all strided 1x1 layers computes only the pixels \
            that these read",
        on: HOST,
        run: pull_strides::run,
    },
    TypedPass {
        name: "scale_shift",
        effect: "turns a remaining BatchNorm into one multiplication and addition",
        on: HOST,
        run: scale_shift::run,
    },
    TypedPass {
        name: "fuse_elementwise",
        effect: "turns a chain of element-wise operators into one loop with the same bits",
        on: ALL,
        run: fuse_elementwise::run,
    },
    TypedPass {
        name: "fuse_dense",
        effect: "a dense layer applies functions of its result (GELU, sigmoid, HardSwish, their \
            chains) where it stores it",
        on: HOST,
        run: fuse_dense::run,
    },
    TypedPass {
        name: "fuse_function",
        effect: "on a GPU a dense layer applies one function of its result (GELU, sigmoid, tanh) where \
            it stores it",
        on: DEVICE,
        run: fuse_dense::run_on_device,
    },
    TypedPass {
        name: "keep_lines",
        effect: "rows between dense layers on tiles stay in the form that tiles read, with \
            the precision of the products",
        on: HOST,
        run: keep_lines::run,
    },
    TypedPass {
        name: "assign_layouts",
        effect: "chooses layouts for convolutions and what lies between them ([below](#layouts))",
        on: HOST,
        run: assign_layouts::run,
    },
    TypedPass {
        name: "fuse_pooling",
        effect: "computes a large convolution and the pooling after it as one step",
        on: HOST,
        run: fuse_pooling::run,
    },
    TypedPass {
        name: "use_lines",
        effect: "keeps values that a convolution on tiles reads in lines of bf16 ([below](#layouts))",
        on: HOST,
        run: use_lines::run,
    },
];

/// Part of the memory plan: an input of a concatenation is made inside its output.
pub(crate) const CONCAT_IN_PLACE: &str = "concat_in_place";
/// Part of the memory plan: an element-wise step overwrites an input without later readers.
pub(crate) const OVERWRITE: &str = "overwrite";
/// A large batch of a graph that treats each row alone runs in parts.
pub(crate) const DIVIDE_BATCH: &str = "divide_batch";

/// Part of compiling a loop: what depends on captured values alone is computed before the first
/// iteration.
pub(crate) const HOIST: &str = "hoist";

/// Part of lowering for a GPU: images have their channels last between convolutions.
pub(crate) const CHANNELS_LAST: &str = "channels_last";

/// Part of lowering for a GPU: chains of functions are compiled, where there is a compiler.
pub(crate) const COMPILE_CHAINS: &str = "compile_chains";

/// A graph without the nodes whose values have no reader.
pub(crate) fn without_dead(graph: Graph) -> Result<Graph, OpError> {
    drop_dead::run(graph)
}

/// Names of what can be switched off: all passes, and six parts of building a plan.
pub fn names() -> impl Iterator<Item = &'static str> {
    let passes = PASSES.iter().map(|pass| pass.name).chain(TYPED_PASSES.iter().map(|pass| pass.name));
    passes.chain([CONCAT_IN_PLACE, OVERWRITE, DIVIDE_BATCH, HOIST, CHANNELS_LAST, COMPILE_CHAINS])
}
