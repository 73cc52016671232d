//! What MXNet 1.9.1 said about the graphs in `data/`: names and inferred shapes.

mod common;

use common::*;
use mxrt_tensor::{PartialShape, Shape};
use serde_json::Value;

fn recorded() -> Vec<(String, Value)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/recorded.json");
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    match serde_json::from_str(&text) {
        Ok(Value::Object(all)) => all.into_iter().collect(),
        other => panic!("{other:?}"),
    }
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

fn shape(dims: &Value) -> PartialShape {
    let dims: Vec<usize> =
        dims.as_array().into_iter().flatten().filter_map(|d| d.as_u64()).map(|d| d as usize).collect();
    Shape::new(&dims).into()
}

#[test]
fn arguments_states_and_outputs_have_the_recorded_names() {
    for (name, want) in recorded() {
        let symbol = load(&fixture(&name));
        assert_eq!(symbol.list_arguments(), texts(&want["arguments"]), "{name}");
        assert_eq!(symbol.list_auxiliary_states(), texts(&want["aux"]), "{name}");
        assert_eq!(symbol.list_outputs(), texts(&want["output_names"]), "{name}");
    }
}

#[test]
fn output_shapes_are_the_recorded_ones() {
    for (name, want) in recorded() {
        let given = want["infer"]["shapes"].as_object().into_iter().flatten();
        let known: Vec<(String, PartialShape)> = given.map(|(k, v)| (k.clone(), shape(v))).collect();
        let got = load(&fixture(&name)).infer_shape(&known, false).unwrap_or_else(|e| panic!("{name}: {e}"));
        let outputs: Vec<PartialShape> = want["infer"]["outputs"].as_array().into_iter().flatten().map(shape).collect();
        assert!(!outputs.is_empty() && got.complete, "{name}");
        assert_eq!(got.outs, outputs, "{name}");
    }
}
