//! Helpers of the tests of graphs.
#![allow(dead_code)]

pub mod compare;

use mxrt_engine::{OpError, WaitError};
use mxrt_graph::{BoundOp, CachedOp, CallOptions, GraphError, Interrupter, Node, NodeEntry, Started, Symbol};
use mxrt_ops::{OpDef, registry};
use mxrt_tensor::NDArray;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::path::Path;

/// A recorded symbol file.
pub fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(format!("{name}-symbol.json"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Reads a symbol from a text without errors.
pub fn load(text: &str) -> Symbol {
    Symbol::load_json(text).unwrap_or_else(|e| panic!("{e}")).symbol
}

/// Reads a text with an error, and returns the error.
pub fn load_error(text: &str) -> String {
    match Symbol::load_json(text) {
        Ok(_) => panic!("this was accepted: {text}"),
        Err(e) => e.to_string(),
    }
}

pub fn op(name: &str) -> &'static OpDef {
    registry().get(name).unwrap_or_else(|| panic!("no operator {name}"))
}

pub fn attrs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

pub fn var(name: &str) -> Symbol {
    Symbol::variable(name, BTreeMap::new())
}

/// An operator applied to positional arguments.
pub fn apply(op_name: &str, name: &str, pairs: &[(&str, &str)], inputs: &[&Symbol]) -> Symbol {
    try_apply(op_name, name, pairs, inputs).unwrap_or_else(|e| panic!("{e}"))
}

pub fn try_apply(op_name: &str, name: &str, pairs: &[(&str, &str)], inputs: &[&Symbol]) -> Result<Symbol, GraphError> {
    let inputs = inputs.iter().map(|s| (None, (*s).clone())).collect();
    Ok(Symbol::create(op(op_name), name.to_owned(), attrs(pairs), inputs)?)
}

/// A chain of `n` activations over `data`.
pub fn chain(n: usize) -> Symbol {
    let mut entry = NodeEntry::new(Node::variable("data", BTreeMap::new()), 0);
    for i in 0..n {
        let node = Node::operator(op("Activation"), format!("relu{i}"), attrs(&[("act_type", "relu")]), vec![entry]);
        entry = NodeEntry::new(node.unwrap_or_else(|e| panic!("{e}")), 0);
    }
    Symbol::from_entries(vec![entry])
}

/// A graph text around some nodes.
pub fn graph(nodes: &str, arg_nodes: &str, heads: &str) -> String {
    format!(
        r#"{{"nodes": [{nodes}], "arg_nodes": {arg_nodes}, "heads": {heads}, "attrs": {{"mxnet_version": ["int", 10901]}}}}"#
    )
}

pub const DATA: &str = r#"{"op": "null", "name": "data", "inputs": []}"#;

/// An Activation node over another node.
pub fn relu(name: &str, input: &str) -> String {
    format!(r#"{{"op": "Activation", "name": "{name}", "attrs": {{"act_type": "relu"}}, "inputs": [{input}]}}"#)
}

/// Results of a call.
pub type Arrays = SmallVec<[NDArray; 2]>;

/// Short forms of calls, which wait until the shapes of results are known.
pub trait Calls {
    fn run_unless(
        &self,
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
        interrupter: &mut Interrupter<'_>,
    ) -> Result<Arrays, OpError>;

    fn run_with(
        &self,
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        options: &CallOptions,
    ) -> Result<Arrays, OpError> {
        self.run_unless(inputs, outputs, options, &mut Interrupter::never())
    }

    fn run(&self, inputs: &[&NDArray]) -> Result<Arrays, OpError> {
        self.run_with(inputs, None, &CallOptions::default())
    }

    fn run_into(&self, inputs: &[&NDArray], outputs: &[&NDArray]) -> Result<(), OpError> {
        self.run_with(inputs, Some(outputs), &CallOptions::default()).map(drop)
    }
}

fn arrays(started: Started) -> Result<Arrays, OpError> {
    started.arrays().map_err(|error| match error {
        WaitError::Failed(failure) => OpError::from(failure),
        other => panic!("{other}"),
    })
}

macro_rules! calls {
    ($($op:ty),*) => {$(
        impl Calls for $op {
            fn run_unless(
                &self,
                inputs: &[&NDArray],
                outputs: Option<&[&NDArray]>,
                options: &CallOptions,
                interrupter: &mut Interrupter<'_>,
            ) -> Result<Arrays, OpError> {
                self.call(inputs, outputs, options, interrupter).and_then(arrays)
            }
        }
    )*};
}

calls!(CachedOp, BoundOp);
