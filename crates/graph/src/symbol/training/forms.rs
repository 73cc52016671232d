//! The operators that compute something else while training, and the nodes that compute it.

use super::{Node, NodeEntry, Place, outputs_of};
use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{Attrs, OpDef, registry};
use std::collections::BTreeMap;
use std::sync::Arc;

/// An attribute of `Custom` nodes that compute as in training; no keyword of a program has this
/// name.
pub const CUSTOM_TRAINS: &str = "mxrt:is_train";

type Made = Result<Vec<NodeEntry>, OpError>;

/// How an operator computes in training.
pub(super) struct TrainingForm {
    /// canonical names of the operators
    names: &'static [&'static str],
    /// whether these attributes make a difference
    pub differs: fn(&Attrs) -> bool,
    /// makes the nodes that take the place of one, and returns its outputs
    pub make: fn(&Node, Vec<NodeEntry>, Place) -> Made,
}

const FORMS: &[TrainingForm] = &[
    TrainingForm {
        names: &["BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU"],
        differs: |attrs| !attrs.bool("use_global_stats"),
        make: normalise,
    },
    TrainingForm {
        names: &["Custom"],
        differs: |_| true,
        make: |node, inputs, _| again(node, inputs, CUSTOM_TRAINS, "True"),
    },
    TrainingForm {
        names: &["Dropout"],
        differs: |attrs| attrs.float("p") > 0.0 && attrs.str("mode") != "always",
        make: |node, inputs, _| again(node, inputs, "mode", "always"),
    },
    TrainingForm { names: &["LeakyReLU"], differs: |attrs| attrs.str("act_type") == "rrelu", make: leak },
    TrainingForm {
        names: &["RNN"],
        differs: |attrs| attrs.float("p") > 0.0 && attrs.int("num_layers") > 1,
        make: recur,
    },
];

/// The form of an operator that computes something else in training.
pub(super) fn of(op: &OpDef) -> Option<&'static TrainingForm> {
    FORMS.iter().find(|form| form.names.contains(&op.name))
}

/// Applies an operator that a form consists of; gives its first output.
fn add(op: &str, name: String, inputs: Vec<NodeEntry>, attrs: &[(&str, &str)]) -> Result<NodeEntry, OpError> {
    let Some(def) = registry().get(op) else {
        return Err(OpError::new(
            FailureKind::NotImplemented,
            format!("training needs the operator {op}, which is absent"),
        ));
    };
    // To collect into a tree sorts first, in code that is compiled for each place.
    let mut texts = BTreeMap::new();
    texts.extend(attrs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    Ok(NodeEntry::new(Node::operator(def, name, texts, inputs)?, 0))
}

/// The node with another value of an attribute.
fn again(node: &Node, inputs: Vec<NodeEntry>, key: &str, value: &str) -> Made {
    let mut attrs = node.attrs();
    attrs.insert(key.to_owned(), value.to_owned());
    Ok(outputs_of(&with_attrs(node, attrs, inputs)?))
}

fn with_attrs(node: &Node, attrs: BTreeMap<String, String>, inputs: Vec<NodeEntry>) -> Result<Arc<Node>, OpError> {
    let op = node.op.ok_or_else(|| node.error(FailureKind::Value, "a variable computes nothing"))?;
    Node::operator(op, node.name.clone(), attrs, inputs)
}

/// BatchNorm with the statistics of the batch. Inside loops and branches the moving averages stay
/// inputs of the graph, whose inputs have fixed places.
fn normalise(node: &Node, inputs: Vec<NodeEntry>, place: Place) -> Made {
    let name = &node.name;
    let axis = node.attr("axis").unwrap_or_else(|| "1".to_owned());
    let over = [("axis", axis.as_str()), ("exclude", "True"), ("keepdims", "False")];
    let kept = [over[0], over[1], ("keepdims", "True")];
    // Statistics have the type of gamma: that of float16 is float32.
    let both = inputs[..2].to_vec();
    let wide = add("amp_multicast", format!("{name}_batch_wide"), both, &[("num_outputs", "2")])?;
    let mean = add("mean", format!("{name}_batch_mean"), vec![wide.clone()], &over)?;
    let centre = add("mean", format!("{name}_batch_center"), vec![wide.clone()], &kept)?;
    let apart = add("broadcast_sub", format!("{name}_batch_apart"), vec![wide, centre], &[])?;
    let square = add("square", format!("{name}_batch_square"), vec![apart], &[])?;
    let variance = add("mean", format!("{name}_batch_var"), vec![square], &over)?;
    let mut statistics = vec![mean, variance];
    if place == Place::Inside {
        for (i, (of_batch, of_model)) in statistics.iter_mut().zip(&inputs[3..5]).enumerate() {
            let pair = vec![of_batch.clone(), of_model.clone()];
            *of_batch = add("_identity_with_attr_like_rhs", format!("{name}_batch_kept{i}"), pair, &[])?;
        }
    }
    let inputs = inputs[..3].iter().cloned().chain(statistics).collect();
    again(node, inputs, "use_global_stats", "True")
}

/// LeakyReLU with a random slope for every negative element; the slopes are an output.
fn leak(node: &Node, inputs: Vec<NodeEntry>, _: Place) -> Made {
    let (name, data) = (&node.name, vec![inputs[0].clone()]);
    let bound = |key: &str, default: &str| node.attr(key).unwrap_or_else(|| default.to_owned());
    let (low, high) = (bound("lower_bound", "0.125"), bound("upper_bound", "0.334"));
    let range = [("low", low.as_str()), ("high", high.as_str())];
    let slopes = add("_random_uniform_like", format!("{name}_slopes"), data.clone(), &range)?;
    let above = add("_greater_scalar", format!("{name}_above"), data.clone(), &[("scalar", "0")])?;
    let ones = add("ones_like", format!("{name}_ones"), data.clone(), &[])?;
    let mask = add("where", format!("{name}_mask"), vec![above, ones, slopes], &[])?;
    let product = vec![data[0].clone(), mask.clone()];
    Ok(vec![add("elemwise_mul", name.clone(), product, &[])?, mask])
}

/// The sizes of an RNN's packed parameters: the weights of all layers, then all biases. How many
/// weights the first layer has depends on the data, so that all are counted from the end.
struct Packed {
    layers: i64,
    directions: i64,
    /// numbers of a layer after the first
    weights: i64,
    /// numbers of a layer
    biases: i64,
}

impl Packed {
    fn of(attrs: &Attrs) -> Packed {
        let size = attrs.int("state_size");
        let directions = 1 + i64::from(attrs.bool("bidirectional"));
        let projection = attrs.opt_int("projection_size");
        let gates =
            size * [("lstm", 4), ("gru", 3)].iter().find(|(m, _)| *m == attrs.str("mode")).map_or(1, |(_, n)| *n);
        let hidden = projection.unwrap_or(size);
        let projected = projection.map_or(0, |projection| size * projection);
        Packed {
            layers: attrs.int("num_layers"),
            directions,
            weights: directions * (gates * (directions + 1) * hidden + projected),
            biases: directions * 2 * gates,
        }
    }

    /// The ranges of a layer's weights and biases; an end of 0 is that of the parameters.
    fn ranges(&self, layer: i64) -> [(i64, i64); 2] {
        let behind = self.layers - 1 - layer;
        let of_biases = -self.layers * self.biases;
        let begin = if layer == 0 { 0 } else { of_biases - (behind + 1) * self.weights };
        [(begin, of_biases - behind * self.weights), (-(behind + 1) * self.biases, -behind * self.biases)]
    }
}

/// Part of an array along its first axis.
fn part(name: String, of: &NodeEntry, (begin, end): (i64, i64)) -> Result<NodeEntry, OpError> {
    let end = if end == 0 { "None".to_owned() } else { end.to_string() };
    let attrs = [("axis", "0"), ("begin", &begin.to_string()), ("end", &end)];
    add("slice_axis", name, vec![of.clone()], &attrs)
}

fn joined(name: String, parts: Vec<NodeEntry>) -> Result<NodeEntry, OpError> {
    let number = parts.len().to_string();
    add("Concat", name, parts, &[("dim", "0"), ("num_args", &number)])
}

/// An RNN for each layer, with Dropout between them.
fn recur(node: &Node, inputs: Vec<NodeEntry>, _: Place) -> Made {
    let (name, attrs) = (&node.name, node.parsed());
    let packed = Packed::of(attrs);
    let number = if attrs.str("mode") == "lstm" { 2 } else { 1 };
    let (states, lengths) = inputs[2..].split_at(number);
    let dropout = node.attr("p").unwrap_or_default();
    let mut data = inputs[0].clone();
    let mut ends: Vec<Vec<NodeEntry>> = vec![Vec::new(); number];
    for layer in 0..packed.layers {
        let [weights, biases] = packed.ranges(layer);
        let weights = part(format!("{name}_weights{layer}"), &inputs[1], weights)?;
        let biases = part(format!("{name}_biases{layer}"), &inputs[1], biases)?;
        let parameters = joined(format!("{name}_parameters{layer}"), vec![weights, biases])?;
        let first = layer * packed.directions;
        let begins = states
            .iter()
            .enumerate()
            .map(|(i, state)| part(format!("{name}_begin{layer}_{i}"), state, (first, first + packed.directions)));
        let begins = begins.collect::<Result<Vec<_>, _>>()?;
        if layer > 0 {
            let always = [("p", dropout.as_str()), ("mode", "always")];
            data = add("Dropout", format!("{name}_dropout{layer}"), vec![data], &always)?;
        }
        let inputs = [vec![data, parameters], begins, lengths.to_vec()].concat();
        let made = one_layer(node, format!("{name}_layer{layer}"), inputs)?;
        data = NodeEntry::new(made.clone(), 0);
        if attrs.bool("state_outputs") {
            ends.iter_mut().enumerate().for_each(|(i, ends)| ends.push(NodeEntry::new(made.clone(), 1 + i)));
        }
    }
    let ends = ends.into_iter().filter(|ends| !ends.is_empty()).enumerate();
    let ends = ends.map(|(i, ends)| joined(format!("{name}_ends{i}"), ends));
    std::iter::once(Ok(data)).chain(ends).collect()
}

/// A layer of an RNN as an RNN of its own.
fn one_layer(node: &Node, name: String, inputs: Vec<NodeEntry>) -> Result<Arc<Node>, OpError> {
    let mut attrs = node.attrs();
    attrs.insert("num_layers".to_owned(), "1".to_owned());
    attrs.insert("p".to_owned(), "0".to_owned());
    let layer = with_attrs(node, attrs, inputs)?;
    Ok(layer.with_inputs(name, layer.inputs.clone(), Vec::new()))
}
