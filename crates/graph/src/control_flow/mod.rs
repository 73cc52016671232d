//! How nodes that run graphs (`_foreach`, `_while_loop`, `_cond`) feed them, and types through them.
//!
//! | module | does |
//! | --- | --- |
//! | `wiring` | which array of the node is which input of which graph |
//! | `infer` | types around the node, through its graphs in both directions |
//!
//! The graphs are compiled in `compile/inner`, and run in `execute/iterations`.

mod infer;
mod wiring;

pub(crate) use infer::InnerGraphs;
pub use wiring::number_of_graphs;
pub(crate) use wiring::{FlowKind, Wiring};

use mxrt_engine::OpError;
use mxrt_tensor::{DType, TensorType};

/// Graphs inside graphs go no deeper.
pub(crate) const MAX_DEPTH: usize = 8;

/// The type of one row.
pub(crate) fn row_type(tensor: &TensorType) -> TensorType {
    let row: &[usize] = if tensor.shape.len() < 2 { &[1] } else { &tensor.shape[1..] };
    TensorType::new(tensor.dtype, row)
}

/// Adds to an error where in the loop it happened.
pub(crate) fn failed_in(mut error: OpError, kind: FlowKind, op: &str, node: &str, iteration: usize) -> OpError {
    if error.inherited().is_none() {
        let place = match kind {
            FlowKind::Cond => format!(" (in {op} '{node}')"),
            _ => format!(" (in iteration {iteration} of {op} '{node}')"),
        };
        error.message.push_str(&place);
    }
    error
}

/// Whether a single number is not zero.
pub(crate) fn is_true(dtype: DType, bytes: &[u8]) -> bool {
    match bytes.split_last() {
        // The last byte of a float has its sign: minus zero is zero.
        Some((last, rest)) if dtype.is_float() => rest.iter().any(|b| *b != 0) || last & 0x7f != 0,
        _ => bytes.iter().any(|b| *b != 0),
    }
}
