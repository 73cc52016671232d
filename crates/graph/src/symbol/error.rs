//! Errors of graphs.

use mxrt_engine::{FailureKind, OpError};
use mxrt_ops::{OpDef, belongs_to_training, training_message};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Names listed in one message at most.
const MAX_LISTED: usize = 60;

/// Advice for families of operators that are absent, by the beginnings of their names.
const INSTEAD: &[(&[&str], &str)] = &[
    (
        &["_np_", "_npi_", "_npx_"],
        "MXNet 1.9 does not have these operators of mx.np, or reads images by them: export the network by MXNet 1.9 \
         again, and read images before the network, by mx.image",
    ),
    (
        &["_sg_", "_TensorRT", "TVMOp", "_FusedOp"],
        "A backend of MXNet made these: save the symbol as it was before optimize_for, and without \
         MXNET_SUBGRAPH_BACKEND",
    ),
];

/// An operator of a symbol file that this build does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownOperator {
    /// the operator
    pub op: String,
    /// the first node that uses it
    pub node: String,
    /// number of nodes that use it
    pub count: usize,
}

/// An error about a graph.
#[derive(Clone, Debug, thiserror::Error)]
pub enum GraphError {
    /// The text of a symbol is damaged or means nothing.
    #[error("cannot load the symbol: {0}")]
    Json(String),
    /// The symbol uses unknown operators; all of them are listed.
    #[error("cannot load the symbol: {}", describe_unknown(.0))]
    UnknownOperators(Vec<UnknownOperator>),
    /// The symbol has more nodes than a service accepts.
    #[error(
        "cannot load the symbol: it has {nodes} nodes and the limit is {limit}; \
         mxrt.set_limits(max_nodes=...) or MXRT_MAX_NODES raises it"
    )]
    TooLarge {
        /// nodes, those of inner graphs included
        nodes: usize,
        /// nodes that are accepted
        limit: usize,
    },
    /// A name was given that the graph does not have.
    #[error("{context}Keyword argument name {name} not found.{}", candidates(.known))]
    UnknownArgument {
        /// the action that failed, as a beginning of the message
        context: &'static str,
        /// the name given
        name: String,
        /// the names that the graph has
        known: Vec<String>,
    },
    /// The request makes no sense for this symbol.
    #[error("{0}")]
    Value(String),
    /// An error about one node.
    #[error("{0}")]
    Op(#[from] OpError),
}

impl From<GraphError> for OpError {
    fn from(error: GraphError) -> OpError {
        let kind = match &error {
            GraphError::Op(e) => return e.clone(),
            GraphError::Json(_) => FailureKind::Data,
            GraphError::UnknownOperators(list) if list.iter().any(|one| belongs_to_training(&one.op)) => {
                FailureKind::Training
            }
            GraphError::UnknownOperators(_) => FailureKind::NotImplemented,
            GraphError::UnknownArgument { .. } | GraphError::Value(_) | GraphError::TooLarge { .. } => {
                FailureKind::Value
            }
        };
        let text = error.to_string();
        let op_error = OpError::new(kind, text);
        match error {
            GraphError::UnknownOperators(mut list) if list.len() == 1 => match list.pop() {
                Some(one) => op_error.op(one.op).node(one.node),
                None => op_error,
            },
            _ => op_error,
        }
    }
}

fn describe_unknown(list: &[UnknownOperator]) -> String {
    let mut text = String::new();
    for (i, one) in list.iter().take(MAX_LISTED).enumerate() {
        let separator = if i == 0 { "" } else { "; " };
        let nodes = if one.count == 1 { "1 node uses it".to_owned() } else { format!("{} nodes use it", one.count) };
        let _ = match belongs_to_training(&one.op) {
            true => write!(text, "{separator}node '{}', {nodes}: {}", one.node, training_message(&one.op)),
            false => write!(text, "{separator}Operator {} is not registered (node '{}', {nodes})", one.op, one.node),
        };
    }
    if list.len() > MAX_LISTED {
        let _ = write!(text, "; and {} more operators", list.len() - MAX_LISTED);
    }
    for (beginnings, advice) in INSTEAD {
        if list.iter().any(|one| beginnings.iter().any(|beginning| one.op.starts_with(beginning))) {
            let _ = write!(text, ". {advice}");
        }
    }
    text
}

fn candidates(known: &[String]) -> String {
    let mut text = String::from("\nCandidate arguments:\n");
    for (i, name) in known.iter().take(MAX_LISTED).enumerate() {
        let _ = writeln!(text, "\t[{i}]{name}");
    }
    if known.len() > MAX_LISTED {
        let _ = writeln!(text, "\tand {} more", known.len() - MAX_LISTED);
    }
    text
}

/// Adds to an error of an attribute its operator, node and attributes, in MXNet's form.
pub(crate) fn attr_error(error: OpError, op: &OpDef, name: &str, attrs: &BTreeMap<String, String>) -> OpError {
    let mut error = error.op(op.name).node(name);
    let mut place = format!(", in operator {}(name=\"{name}\"", op.name);
    for (key, value) in attrs {
        let _ = write!(place, ", {key}=\"{value}\"");
    }
    place.push(')');
    error.message.push_str(&place);
    error.attrs(attrs.iter().map(|(k, v)| (k.clone(), v.clone())).collect())
}
