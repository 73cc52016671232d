//! Comparison with names and inferred shapes that MXNet 1.9.1 gave for the graphs in `data/`.

use crate::common::*;
use mxrt_tensor::{DType, PartialShape, Shape};
use serde_json::Value;

fn read(file: &str) -> Value {
    let path = format!("{}/tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn recorded() -> Vec<(String, Value)> {
    match read("recorded.json") {
        Value::Object(all) => all.into_iter().collect(),
        other => panic!("{other}"),
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

#[test]
fn every_inner_shape_and_type_is_the_one_mxnet_computed() {
    for (name, dims, dtype) in [("digits_cnn", [1, 1, 8, 8], DType::F32), ("half_cnn", [1, 1, 8, 8], DType::F16)] {
        let symbol = load(&fixture(name));
        let shapes = symbol.infer_all_shapes(&[("data".to_owned(), Shape::from(dims).into())]);
        let shapes = shapes.unwrap_or_else(|e| panic!("{name}: {e}"));
        let types = symbol.infer_all_types(&[("data".to_owned(), dtype)]).unwrap_or_else(|e| panic!("{name}: {e}"));
        let internals = symbol.get_internals();
        let rows = read(&format!("{name}-types.json"));
        assert!(rows.as_array().is_some_and(|r| r.len() > 20));
        for row in rows.as_array().into_iter().flatten() {
            let output = row[0].as_str().unwrap_or_default();
            let found = internals.find_output(output).unwrap_or_else(|e| panic!("{name}: {e}"));
            let entry = &found.outputs()[0];
            assert_eq!(shapes.get(entry), Some(&shape(&row[1])), "{name}: {output}");
            let dtype = types.get(entry).copied().flatten().map(DType::name);
            assert_eq!(dtype, row[2].as_str(), "{name}: {output}");
        }
    }
}
