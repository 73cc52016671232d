//! Inference of shapes and types over graphs.

use crate::common::*;
use mxrt_engine::OpError;
use mxrt_graph::{GraphError, InferredShapes, Symbol};
use mxrt_tensor::{DType, NpShapeScope, PartialShape, Shape, set_np_shape_scope};
use std::collections::BTreeMap;

fn known(pairs: &[(&str, &[usize])]) -> Vec<(String, PartialShape)> {
    pairs.iter().map(|(n, s)| (n.to_string(), PartialShape::from(&Shape::new(s)))).collect()
}

fn shapes(symbol: &Symbol, pairs: &[(&str, &[usize])]) -> InferredShapes {
    symbol.infer_shape(&known(pairs), false).unwrap_or_else(|e| panic!("{e}"))
}

fn words(shapes: &[PartialShape]) -> Vec<String> {
    shapes.iter().map(|s| s.to_string()).collect()
}

fn by_name(names: Vec<String>, shapes: &[PartialShape]) -> BTreeMap<String, String> {
    names.into_iter().zip(words(shapes)).collect()
}

#[test]
fn shapes_of_parameters_follow_from_the_data() {
    let net = load(&fixture("module_mlp"));
    let got = shapes(&net, &[("data", &[5, 64])]);
    assert!(got.complete);
    let args = by_name(net.list_arguments(), &got.args);
    assert_eq!(args["fc1_weight"], "(128, 64)");
    assert_eq!(args["fc3_bias"], "(10,)");
    assert_eq!(args["bn1_gamma"], "(128,)");
    assert_eq!(args["softmax_label"], "(5,)");
    let aux = by_name(net.list_auxiliary_states(), &got.aux);
    assert_eq!(aux["bn2_moving_var"], "(64,)");
    assert_eq!(words(&got.outs), ["(5, 10)"]);
}

#[test]
fn hints_that_leave_extents_open_are_completed() {
    let net = load(&fixture("digits_cnn"));
    let got = shapes(&net, &[("data", &[3, 1, 8, 8])]);
    assert!(got.complete);
    let args = by_name(net.list_arguments(), &got.args);
    assert_eq!(args["digitsnet_conv0_weight"], "(16, 1, 3, 3)");
    assert_eq!(words(&got.outs), ["(3, 10)"]);
}

#[test]
fn hints_are_scalars_and_empty_axes_with_numpy_shapes() {
    let hinted = |text: &str| shapes(&Symbol::variable("x", attrs(&[("__shape__", text)])), &[]);
    for (text, expected) in [("()", "()"), ("(0, 2)", "(0, 2)")] {
        assert!(!hinted(text).complete, "{text}");
        set_np_shape_scope(NpShapeScope::Thread);
        let got = hinted(text);
        assert!(got.complete, "{text}");
        assert_eq!(words(&got.outs), [expected]);
        assert!(!hinted("(-1, 2)").complete);
        set_np_shape_scope(NpShapeScope::Off);
    }
}

#[test]
fn internals_can_be_asked_for() {
    let net = load(&fixture("digits_cnn"));
    let all = net.infer_all_shapes(&known(&[("data", &[3, 1, 8, 8])])).unwrap_or_else(|e| panic!("{e}"));
    let relu = net.get_internals().output_named("digitsnet_relu0_fwd_output");
    let shape = relu.and_then(|s| all.get(&s.outputs()[0]).map(|s| s.to_string()));
    assert_eq!(shape.as_deref(), Some("(3, 16, 8, 8)"));
}

fn sum() -> Symbol {
    let relu = apply("Activation", "r", &[("act_type", "relu")], &[&var("x")]);
    apply("elemwise_add", "sum", &[], &[&relu, &var("y")])
}

#[test]
fn shapes_travel_backwards_through_the_graph() {
    let got = shapes(&sum(), &[("y", &[2, 3])]);
    assert_eq!(words(&got.args), ["(2, 3)", "(2, 3)"]);
    assert!(got.complete);
}

#[test]
fn halves_of_a_shape_meet() {
    let known = [
        ("x".to_owned(), PartialShape::from_zero_unknown(&[2, 0])),
        ("y".to_owned(), PartialShape::from_zero_unknown(&[0, 3])),
    ];
    let got = sum().infer_shape(&known, false).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(words(&got.args), ["(2, 3)", "(2, 3)"]);
    assert_eq!(words(&got.outs), ["(2, 3)"]);
}

#[test]
fn what_cannot_be_known_stays_unknown() {
    let got = shapes(&sum(), &[]);
    assert_eq!(words(&got.args), ["unknown", "unknown"]);
    assert!(!got.complete);
    assert!(sum().infer_shape(&[], true).is_ok_and(|s| s.complete));
}

#[test]
fn contradictions_name_the_node() {
    let error: OpError = match sum().infer_shape(&known(&[("x", &[2, 3]), ("y", &[4, 5])]), false) {
        Err(e) => e.into(),
        Ok(got) => panic!("{got:?}"),
    };
    assert!(error.message.starts_with("Error in operator sum: "), "{error}");
    assert!(error.message.contains("(2, 3)") && error.message.contains("(4, 5)"), "{error}");
    assert_eq!((error.op.as_deref(), error.node.as_deref()), (Some("elemwise_add"), Some("sum")));
    assert_eq!(error.shapes, [vec![2, 3], vec![4, 5]]);
}

#[test]
fn a_wrong_weight_is_found_before_anything_runs() {
    let fc = apply("FullyConnected", "fc", &[("num_hidden", "3")], &[&var("x")]);
    let error = fc.infer_shape(&known(&[("x", &[2, 3]), ("fc_weight", &[4, 4])]), false);
    let error = error.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(
        error.starts_with("Error in operator fc: ") && error.contains("(4, 4)") && error.contains("(3, 3)"),
        "{error}"
    );
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let error = sum().infer_shape(&known(&[("zzz", &[1])]), false).err().map(|e| e.to_string());
    assert_eq!(
        error.as_deref(),
        Some("InferShapeKeyword argument name zzz not found.\nCandidate arguments:\n\t[0]x\n\t[1]y\n")
    );
    let error = sum().infer_type(&[("zzz".to_owned(), DType::F32)], false);
    assert!(matches!(error, Err(GraphError::UnknownArgument { context: "InferType", .. })));
}

#[test]
fn given_shapes_win_over_hints() {
    let x = Symbol::variable("x", attrs(&[("__shape__", "(1, 3)")]));
    let relu = apply("Activation", "r", &[("act_type", "relu")], &[&x]);
    assert_eq!(words(&shapes(&relu, &[]).outs), ["(1, 3)"]);
    assert_eq!(words(&shapes(&relu, &[("x", &[7, 2])]).outs), ["(7, 2)"]);
}

#[test]
fn bad_hints_name_the_variable() {
    for (key, value) in [("__shape__", "(a, b)"), ("__shape__", "(-7,)"), ("__dtype__", "99"), ("__dtype__", "float32")]
    {
        let x = Symbol::variable("x", attrs(&[(key, value)]));
        let shape = x.infer_shape(&[], false).err().map(|e| e.to_string());
        let dtype = x.infer_type(&[], false).err().map(|e| e.to_string());
        let error = shape.or(dtype).unwrap_or_else(|| panic!("{key}={value} was accepted"));
        assert!(error.contains("variable 'x'") && error.contains(value), "{error}");
    }
    let many = format!("({})", vec!["1"; 100_000].join(","));
    let x = Symbol::variable("x", attrs(&[("__shape__", &many)]));
    assert!(x.infer_shape(&[], false).is_err_and(|e| e.to_string().contains("no array has that many axes")));
}

#[test]
fn types_travel_both_ways() {
    let got = sum().infer_type(&[("y".to_owned(), DType::F16)], false).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(got.args, [Some(DType::F16), Some(DType::F16)]);
    assert_eq!(got.outs, [Some(DType::F16)]);
    assert!(got.complete);
    let mixed = sum().infer_type(&[("x".to_owned(), DType::F32), ("y".to_owned(), DType::I32)], false);
    let error = mixed.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.starts_with("Error in operator sum: "), "{error}");
    assert!(error.contains("float32") && error.contains("int32"), "{error}");
}

#[test]
fn type_hints_of_variables_are_used() {
    let x = Symbol::variable("x", attrs(&[("__dtype__", "6")]));
    let got = apply("elemwise_add", "s", &[], &[&x, &var("y")]).infer_type(&[], false);
    assert_eq!(got.map(|t| t.args).ok(), Some(vec![Some(DType::I64), Some(DType::I64)]));
}

#[test]
fn long_chains_are_inferred_backwards_in_little_time() {
    let net = chain(20_000);
    let head = apply("elemwise_add", "sum", &[], &[&net, &var("y")]);
    let got = shapes(&head, &[("y", &[4])]);
    assert_eq!(words(&got.args), ["(4,)", "(4,)"]);
}

#[test]
fn shapes_of_too_many_axes_are_refused() {
    let ones = format!("({})", vec!["1"; 100].join(","));
    let reshaped = apply("Reshape", "r", &[("shape", &ones)], &[&var("x")]);
    let error = reshaped.infer_shape(&known(&[("x", &[1])]), false).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.starts_with("Error in operator r: ") && error.contains("no array has more than 64"), "{error}");
}

/// `data` of (4, 3) and a label that passes these operators, in front of a SoftmaxOutput.
fn with_label(views: &[(&str, &str)]) -> Symbol {
    let mut nodes =
        r#"{"op": "null", "name": "data", "inputs": []}, {"op": "null", "name": "label", "inputs": []}"#.to_owned();
    for (place, (op, attrs)) in views.iter().enumerate() {
        nodes += &format!(
            r#", {{"op": "{op}", "name": "view{place}", "attrs": {{{attrs}}}, "inputs": [[{}, 0, 0]]}}"#,
            place + 1
        );
    }
    let last = views.len() + 1;
    nodes += &format!(r#", {{"op": "SoftmaxOutput", "name": "out", "inputs": [[0, 0, 0], [{last}, 0, 0]]}}"#);
    let heads = last + 1;
    let text = format!(r#"{{"nodes": [{nodes}], "arg_nodes": [0, 1], "heads": [[{heads}, 0, 0]]}}"#);
    load(&text)
}

#[test]
fn labels_that_are_reshaped_get_a_shape_that_fits() {
    let flat = ("Reshape", r#""shape": "(-1,)""#);
    for (views, wanted) in [
        (&[flat][..], "(4,)"),
        (&[("transpose", ""), flat], "(4,)"),
        (&[flat, ("Cast", r#""dtype": "float32""#), ("BlockGrad", "")], "(4,)"),
        // No shape fits: it stays open.
        (&[("Flatten", "")], "None"),
        (&[("negative", ""), flat], "None"),
    ] {
        let net = with_label(views);
        let all = net.with_label_shapes(known(&[("data", &[4, 3])])).unwrap_or_else(|e| panic!("{e}"));
        let found =
            all.iter().find(|(name, _)| name == "label").map_or("None".to_owned(), |(_, shape)| shape.to_string());
        assert_eq!(found, wanted, "{views:?}");
    }
}
