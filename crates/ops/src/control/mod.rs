//! Operators that run graphs. Their definitions have names and attributes; what they compute is
//! compiled and run by the graph crate, which has the graphs.

use crate::prelude::*;

pub mod cond;
pub mod foreach;
pub mod while_loop;

/// A call on arrays has no graphs, so that there is nothing to run.
fn no_graphs() -> OpError {
    not_implemented("runs graphs, which only a node of a symbol has; use mx.sym.contrib or mx.nd.contrib")
}

/// The common part of the definitions: as many inputs as `num_args` says, less one for each graph.
const BASE: OpDef = OpDef {
    inputs: Inputs::Variadic { count: "num_args", prefix: "data", named: |_| None },
    outputs: Outputs::Count(|attrs| attrs.count("num_outputs")),
    infer_shape: |_| Err(no_graphs()),
    infer_dtype: |_| Err(no_graphs()),
    bind: |_, _| Err(no_graphs()),
    ..OpDef::BASE
};

const NUM_OUTPUTS: AttrDef = AttrDef::required("num_outputs", AttrKind::IntFrom(1), "Number of outputs.");
