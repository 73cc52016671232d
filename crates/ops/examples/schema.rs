//! Prints the signatures of all public operators as JSON: a list of objects, in the order of the
//! table.
//!
//! `scripts/gen_stubs.py` writes the type stubs from it.

use mxrt_ops::{AttrDef, OpDef, registry};
use serde_json::{Value, json};

fn main() {
    let public = registry().ops().iter().filter(|op| !op.internal);
    println!("{:#}", Value::Array(public.map(|op| operator(op)).collect()));
}

fn operator(op: &OpDef) -> Value {
    json!({
        "name": op.name,
        "aliases": op.aliases,
        "doc": op.doc,
        "inputs": op.possible_inputs(),
        "input_count": op.input_count(),
        "attrs": op.attrs.iter().map(attribute).collect::<Vec<_>>(),
        "dtype_attrs": op.dtype_attrs().collect::<Vec<_>>(),
        "single_output": op.has_single_output(),
    })
}

fn attribute(attr: &AttrDef) -> Value {
    json!({ "name": attr.name, "type": attr.type_name(), "default": attr.default, "doc": attr.doc })
}
