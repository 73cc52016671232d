//! [`WatchedGraph`]: the values inside a graph, named as MXNet's monitors and hooks name them.

use super::{Node, NodeEntry, Symbol};
use mxrt_engine::OpError;
use mxrt_ops::OpDef;
use std::collections::HashMap;
use std::sync::Arc;

/// Attribute by which a normalization returns its statistics, which MXNet hides otherwise.
const STATISTICS: &str = "output_mean_var";

/// Operators that call their only input `data`. Others have no name for theirs in MXNet.
const NAMED_INPUT: &[&str] = &[
    "Dropout",
    "GridGenerator",
    "L2Normalization",
    "LRN",
    "LeakyReLU",
    "MakeLoss",
    "Pad",
    "Pooling",
    "Pooling_v1",
    "SliceChannel",
    "SwapAxis",
    "_contrib_MultiBoxPrior",
    "_contrib_index_array",
    "_contrib_quadratic",
    "_contrib_quantize_v2",
    "_histogram",
    "_image_normalize",
    "_image_to_tensor",
    "_ravel_multi_index",
    "_split_v2",
    "_unravel_index",
    "all_finite",
    "col2im",
    "depth_to_space",
    "diag",
    "im2col",
    "log_softmax",
    "moments",
    "repeat",
    "reverse",
    "softmax",
    "space_to_depth",
    "squeeze",
    "tile",
];

/// Operators of MXNet that have names for their outputs.
const NAMED_OUTPUTS: &[&str] = &[
    "Activation",
    "BatchNorm",
    "BilinearSampler",
    "Concat",
    "Convolution",
    "Correlation",
    "Crop",
    "Custom",
    "Deconvolution",
    "Dropout",
    "FullyConnected",
    "GridGenerator",
    "GroupNorm",
    "InstanceNorm",
    "L2Normalization",
    "LRN",
    "LayerNorm",
    "LeakyReLU",
    "MakeLoss",
    "Pad",
    "Pooling",
    "Pooling_v1",
    "RNN",
    "ROIPooling",
    "SVMOutput",
    "SequenceLast",
    "SequenceMask",
    "SequenceReverse",
    "SliceChannel",
    "SoftmaxActivation",
    "SoftmaxOutput",
    "SpatialTransformer",
    "SwapAxis",
    "UpSampling",
    "_contrib_BatchNormWithReLU",
    "_contrib_DeformableConvolution",
    "_contrib_ModulatedDeformableConvolution",
    "_contrib_MultiBoxDetection",
    "_contrib_MultiBoxPrior",
    "_contrib_MultiBoxTarget",
    "_contrib_MultiProposal",
    "_contrib_PSROIPooling",
    "_contrib_Proposal",
    "_contrib_ROIAlign",
    "_contrib_SyncBatchNorm",
    "_contrib_index_array",
    "_contrib_interleaved_matmul_encdec_qk",
    "_contrib_interleaved_matmul_encdec_valatt",
    "_contrib_interleaved_matmul_selfatt_qk",
    "_contrib_interleaved_matmul_selfatt_valatt",
    "_contrib_quantized_act",
    "_contrib_quantized_batch_norm",
    "_contrib_quantized_concat",
    "_contrib_quantized_conv",
    "_contrib_quantized_elemwise_add",
    "_contrib_quantized_elemwise_mul",
    "_contrib_quantized_embedding",
    "_contrib_quantized_flatten",
    "_contrib_quantized_fully_connected",
    "_contrib_quantized_pooling",
    "_contrib_quantized_rnn",
    "_npi_concatenate",
    "_npi_dstack",
    "_npi_hstack",
    "_npi_matmul",
    "_npi_std",
    "_npi_var",
    "_rnn_param_concat",
    "_sg_mkldnn_conv",
    "_sg_mkldnn_fully_connected",
    "_sg_mkldnn_selfatt_qk",
    "_sg_mkldnn_selfatt_valatt",
    "col2im",
    "elemwise_add",
    "im2col",
    "make_loss",
    "softmax",
    "softmin",
];

/// Kind of callback that is told the values inside a graph.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// the monitor of an executor
    Monitor,
    /// the operator hook of a block
    Hook,
}

/// Source of a watched value.
#[derive(Clone, Copy)]
pub enum WatchedSource {
    /// a variable, by its place among the inputs
    Input(usize),
    /// an operator, by the place among the results
    Result(usize),
}

/// A value that is told.
pub struct WatchedValue {
    /// name of the node and of its input or output, or of a variable
    pub name: String,
    /// operator whose input or output it is
    pub operator: &'static str,
    /// source of the value
    pub source: WatchedSource,
}

/// A graph with the results of all operators as outputs, and the names that a listener hears.
pub struct WatchedGraph {
    /// graph that returns what all operators compute
    pub everything: Symbol,
    /// values in the order in which they are told
    pub values: Vec<WatchedValue>,
    /// sources of the results of the graph itself
    pub heads: Vec<WatchedSource>,
}

impl WatchedGraph {
    /// Prepares a graph. With `inputs_too` the listener hears the inputs of operators as well.
    pub fn new(symbol: &Symbol, listener: Listener, inputs_too: bool) -> Result<WatchedGraph, OpError> {
        let nodes = symbol.topo();
        let AllResults { mut entries, first, hidden } = AllResults::of(&nodes, listener)?;
        // Outputs that are variables, so that these are among the inputs.
        entries.extend(symbol.outputs().iter().filter(|entry| entry.node.is_variable()).cloned());
        let everything = Symbol::from_entries(entries);
        let variables = everything.input_nodes();
        let places: HashMap<usize, usize> = variables.iter().enumerate().map(|(i, node)| (address(node), i)).collect();
        let source = |entry: &NodeEntry| match first.get(&address(&entry.node)) {
            Some(place) => WatchedSource::Result(place + entry.index),
            None => WatchedSource::Input(places[&address(&entry.node)]),
        };

        let mut values = Vec::new();
        for node in &nodes {
            let Some(op) = node.op else { continue };
            let mut tell = |name: String, source| values.push(WatchedValue { name, operator: op.name, source });
            if inputs_too {
                for (entry, input) in node.inputs.iter().zip(input_names(node)) {
                    if listener == Listener::Monitor && entry.node.is_variable() {
                        tell(entry.node.name.clone(), source(entry));
                    }
                    tell(format!("{}_{input}", node.name), source(entry));
                }
            }
            for i in 0..node.num_outputs() {
                let numbered = listener == Listener::Hook && !names_outputs(op);
                let name = if numbered { format!("{}_{i}", node.name) } else { node.output_name(i) };
                tell(name, source(&NodeEntry::new(node.clone(), i)));
            }
            if let Some((place, telling)) = hidden.get(&address(node)) {
                for i in node.num_outputs()..telling.num_outputs() {
                    tell(telling.output_name(i), WatchedSource::Result(place + i - node.num_outputs()));
                }
            }
        }
        let heads = symbol.outputs().iter().map(source).collect();
        Ok(WatchedGraph { everything, values, heads })
    }
}

/// The results of all operators in one list, and where those of a node begin, by its address.
#[derive(Default)]
struct AllResults {
    entries: Vec<NodeEntry>,
    first: HashMap<usize, usize>,
    /// results that MXNet hides, and the node that returns them
    hidden: HashMap<usize, (usize, Arc<Node>)>,
}

impl AllResults {
    fn of(nodes: &[Arc<Node>], listener: Listener) -> Result<AllResults, OpError> {
        let mut all = AllResults::default();
        for node in nodes.iter().filter(|node| !node.is_variable()) {
            all.first.insert(address(node), all.entries.len());
            all.entries.extend((0..node.num_outputs()).map(|i| NodeEntry::new(node.clone(), i)));
            if let (Listener::Monitor, Some(telling)) = (listener, with_statistics(node)?) {
                let outputs = node.num_outputs()..telling.num_outputs();
                all.hidden.insert(address(node), (all.entries.len(), telling.clone()));
                all.entries.extend(outputs.map(|i| NodeEntry::new(telling.clone(), i)));
            }
        }
        Ok(all)
    }
}

/// Whether MXNet has names for the outputs of an operator. Where it has none, it counts them.
pub fn names_outputs(op: &OpDef) -> bool {
    NAMED_OUTPUTS.contains(&op.name)
}

fn address(node: &Arc<Node>) -> usize {
    Arc::as_ptr(node).addr()
}

/// Copies a normalization that hides its statistics, so that it returns them. `None` for every other
/// node.
fn with_statistics(node: &Node) -> Result<Option<Arc<Node>>, OpError> {
    let Some(op) = node.op else { return Ok(None) };
    let declared = op.attrs.iter().any(|attr| attr.name == STATISTICS);
    if !declared || node.parsed().bool(STATISTICS) {
        return Ok(None);
    }
    let mut attrs = node.attrs();
    attrs.insert(STATISTICS.to_owned(), "True".to_owned());
    Node::operator(op, node.name.clone(), attrs, node.inputs.clone()).map(Some)
}

/// The names that MXNet uses for the inputs of a node where it tells their values.
fn input_names(node: &Node) -> Vec<String> {
    let names = node.input_names();
    let Some(op) = node.op else { return names };
    if names == ["data"] && !NAMED_INPUT.contains(&op.name) {
        return vec!["input0".to_owned()];
    }
    // The inputs of a fused dense layer are called as the variables of its nested graph.
    match (op.name, node.subgraphs.first()) {
        ("_sg_mkldnn_fully_connected", Some(graph)) => {
            let mut inner = graph.list_inputs();
            inner.extend(names.into_iter().skip(inner.len()));
            inner
        }
        _ => names,
    }
}
