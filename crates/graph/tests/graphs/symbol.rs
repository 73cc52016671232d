//! Making, composing and asking symbols.

use crate::common::*;
use mxrt_engine::FailureKind;
use mxrt_graph::{GraphError, NodeEntry, Symbol, symbol::text};
use std::collections::BTreeMap;

#[test]
fn missing_inputs_become_variables_with_the_attributes_of_the_node() {
    let data = var("data");
    let fc = apply("FullyConnected", "fc", &[("num_hidden", "3"), ("lr_mult", "2")], &[&data]);
    assert_eq!(fc.list_arguments(), ["data", "fc_weight", "fc_bias"]);
    assert_eq!(fc.list_outputs(), ["fc_output"]);
    let attrs = fc.attr_dict();
    assert_eq!(attrs["fc_weight"]["num_hidden"], "3");
    assert_eq!(attrs["fc_weight"]["__lr_mult__"], "2");
    assert!(!attrs.contains_key("data"));
}

#[test]
fn states_are_told_from_arguments_and_count_their_mutations() {
    let bn = apply("BatchNorm", "bn", &[], &[&var("data")]);
    assert_eq!(bn.list_arguments(), ["data", "bn_gamma", "bn_beta"]);
    assert_eq!(bn.list_auxiliary_states(), ["bn_moving_mean", "bn_moving_var"]);
    assert_eq!(bn.list_inputs(), ["data", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"]);
    assert_eq!(bn.attr_dict()["bn_moving_var"]["__init__"], r#"["one", {}]"#);
    let json = bn.to_json();
    assert!(json.contains("\"inputs\": [[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 1], [4, 0, 1]]"), "{json}");
    // a state that two layers share is mutated twice
    let mean = bn.get_internals().output_named("bn_moving_mean").unwrap_or_else(|| panic!("no such internal"));
    let arguments = vec![(None, bn), (Some("moving_mean".to_owned()), mean)];
    let second = Symbol::create(op("BatchNorm"), "bn2".to_owned(), BTreeMap::new(), arguments);
    let json = second.unwrap_or_else(|e| panic!("{e}")).to_json();
    assert!(json.contains("[3, 0, 2]"), "{json}");
}

#[test]
fn a_state_cannot_be_computed() {
    let relu = apply("Activation", "r", &[("act_type", "relu")], &[&var("x")]);
    let arguments = vec![(None, var("data")), (Some("moving_var".to_owned()), relu)];
    let error = Symbol::create(op("BatchNorm"), "bn".to_owned(), BTreeMap::new(), arguments).err();
    assert!(error.is_some_and(|e| e.message.contains("Mutation target can only be Variable")));
}

#[test]
fn operators_of_any_number_of_inputs_get_that_number() {
    let concat = apply("Concat", "c", &[("dim", "1")], &[&var("a"), &var("b"), &var("d")]);
    assert_eq!(concat.attr("num_args").as_deref(), Some("3"));
    assert_eq!(concat.list_arguments(), ["a", "b", "d"]);
    let short = apply("Concat", "c", &[("num_args", "2")], &[&var("a")]);
    assert_eq!(short.list_arguments(), ["a", "c_arg1"]);
    let error = try_apply("Concat", "c", &[("num_args", "1")], &[&var("a"), &var("b")]);
    assert!(error.is_err_and(|e| e.to_string().contains("Incorrect number of arguments, requires 1 inputs")));
}

#[test]
fn a_composition_by_position_names_the_symbols_and_the_variables() {
    let block = apply("elemwise_add", "sum", &[], &[&var("left"), &var("right")]);
    let error = block.compose(None, vec![(None, var("x"))]).err().map(|e| e.to_string());
    let expected = "argument 0 of 'sum', 'x', names no variable that it is to replace; the variables are left, right";
    assert!(error.is_some_and(|text| text.contains(expected)));
}

#[test]
fn arguments_are_matched_by_keyword() {
    let make = |keys: &[&str]| {
        let arguments = keys.iter().map(|k| (Some(k.to_string()), var(&format!("my_{k}")))).collect();
        Symbol::create(op("elemwise_add"), "sum".to_owned(), BTreeMap::new(), arguments)
    };
    assert_eq!(make(&["rhs"]).map(|s| s.list_arguments()).ok(), Some(vec!["sum_lhs".to_owned(), "my_rhs".to_owned()]));
    let unknown = make(&["third"]).map(|_| ()).map_err(|e| e.message.clone());
    let unknown = unknown.err().unwrap_or_default();
    assert!(
        unknown.contains("Keyword argument name third not found.\nCandidate arguments:\n\t[0]lhs\n\t[1]rhs"),
        "{unknown}"
    );
    let twice = make(&["lhs", "lhs"]).err().map(|e| e.message.clone()).unwrap_or_default();
    assert!(twice.contains("the input 'lhs' is given twice"), "{twice}");
}

#[test]
fn several_outputs_are_no_argument() {
    let split = apply("SliceChannel", "s", &[("num_outputs", "2")], &[&var("x")]);
    assert_eq!(split.list_outputs(), ["s_output0", "s_output1"]);
    let error = try_apply("Activation", "a", &[("act_type", "relu")], &[&split]).err().map(|e| e.to_string());
    assert!(error.is_some_and(|e| e.contains("Argument 0 is a tuple of 2 outputs, single value is required")));
    let second = split.output(1).map(|s| apply("Activation", "a", &[("act_type", "relu")], &[&s]));
    assert_eq!(
        second.map(|s| text(&s)),
        Some(
            "%0 = SliceChannel(x) {num_outputs=2} 's'\n%1 = Activation(%0.1) {act_type=relu} \
             'a'\nreturn %1\n"
                .to_owned()
        )
    );
    assert!(split.output(2).is_none());
    let whole = apply("SliceChannel", "w", &[("num_outputs", "1")], &[&var("x")]);
    assert_eq!(whole.list_outputs(), ["w_output0"]);
}

#[test]
fn operators_that_parse_no_attributes_keep_those_of_programs() {
    let (x, y) = (var("x"), var("y"));
    for (op, inputs) in [
        ("LinearRegressionOutput", vec![&x, &y]),
        ("_linalg_det", vec![&x]),
        ("_linalg_syevd", vec![&x]),
        ("_sparse_retain", vec![&x, &y]),
    ] {
        assert!(try_apply(op, "n", &[("mood", "angry")], &inputs).is_ok(), "{op}");
    }
}

#[test]
fn bad_attributes_say_where_they_were_given() {
    let error = try_apply("FullyConnected", "fc", &[("num_hidden", "many")], &[&var("x")]);
    let message = error.err().map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(
        message,
        "Invalid Parameter format for num_hidden expect int but value='many', \
         in operator FullyConnected(name=\"fc\", num_hidden=\"many\")"
    );
    let error = try_apply("FullyConnected", "fc", &[("num_hidden", "3"), ("weight_lr_mult", "2")], &[&var("x")]);
    assert!(error.is_err_and(|e| e.to_string().contains("sym = YourSymbolName(weight=w)")));
}

fn two_layers() -> Symbol {
    let relu = apply("Activation", "r", &[("act_type", "relu")], &[&var("x")]);
    apply("elemwise_add", "sum", &[], &[&relu, &var("y")])
}

#[test]
fn internals_children_and_outputs_are_found_by_name() {
    let net = two_layers();
    assert_eq!(net.get_internals().list_outputs(), ["x", "r_output", "y", "sum_output"]);
    assert_eq!(net.get_children().map(|s| s.list_outputs()), Some(vec!["r_output".to_owned(), "y".to_owned()]));
    assert!(var("x").get_children().is_none());
    assert_eq!(net.get_internals().output_named("r_output").and_then(|s| s.name()).as_deref(), Some("r"));
    assert!(net.output_named("nope").is_none());
    let missing = net.find_output("nope").map_err(|e| e.to_string()).err();
    assert_eq!(missing.as_deref(), Some("Cannot find output that matches name \"nope\""));
    let twice = Symbol::group(&[net.clone(), net.clone()]);
    assert_eq!(twice.list_outputs(), ["sum_output", "sum_output"]);
    assert!(twice.find_output("sum_output").is_err_and(|e| e.to_string().contains("multiple outputs")));
    assert_eq!(twice.name().as_deref(), Some("sum"));
    assert_eq!(Symbol::group(&[net, var("z")]).name(), None);
}

#[test]
fn hidden_attributes_are_seen_under_both_spellings() {
    let x = var("x");
    assert_eq!(x.set_attr("lr_mult", "0.5").map_err(|e| e.to_string()), Ok(()));
    assert_eq!(x.attr("lr_mult").as_deref(), Some("0.5"));
    assert_eq!(x.attr("__lr_mult__").as_deref(), Some("0.5"));
    let both = attrs(&[("__lr_mult__", "0.5"), ("lr_mult", "0.5")]);
    assert_eq!(x.list_attr(), both);
    assert_eq!(x.attr_dict()["x"], both);
    assert!(x.to_json().contains("\"attrs\": {\"__lr_mult__\": \"0.5\"}"));
    assert_eq!(x.attr("mood"), None);
    assert_eq!(x.attr("name").as_deref(), Some("x"));
}

#[test]
fn what_an_operator_was_made_with_stays() {
    let net = two_layers();
    assert_eq!(net.set_attr("__note__", "hi").map_err(|e| e.to_string()), Ok(()));
    let relu = apply("Activation", "r", &[("act_type", "relu")], &[&var("x")]);
    let error = relu.set_attr("act_type", "tanh");
    assert!(matches!(error, Err(GraphError::Op(e)) if e.kind == FailureKind::NotImplemented));
    assert_eq!(relu.attr("act_type").as_deref(), Some("relu"));
    assert!(relu.set_attr("nonsense", "1").is_err_and(|e| e.to_string().contains("Cannot find argument 'nonsense'")));
    assert!(relu.set_attr("name", "other").is_err());
}

#[test]
fn composing_replaces_variables_and_leaves_the_original_alone() {
    let net = two_layers();
    let inner = apply("Activation", "t", &[("act_type", "tanh")], &[&var("z")]);
    let composed = net.compose(Some("total"), vec![(Some("x".to_owned()), inner)]);
    let composed = composed.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        text(&composed),
        "%0 = Activation(z) {act_type=tanh} 't'\n%1 = Activation(%0) {act_type=relu} 'r'\n\
         %2 = elemwise_add(%1, y) 'total'\nreturn %2\n"
    );
    assert_eq!(net.list_arguments(), ["x", "y"]);
    let _ = composed.set_attr("__note__", "new");
    assert_eq!(net.attr("__note__"), None);
    let error = net.compose(None, vec![(Some("q".to_owned()), var("z"))]).map_err(|e| e.to_string()).err();
    assert_eq!(
        error.as_deref(),
        Some("Symbol.ComposeKeyword argument name q not found.\nCandidate arguments:\n\t[0]x\n\t[1]y\n")
    );
    assert!(net.compose(None, vec![(None, var("z"))]).is_err());
    let renamed = var("x").compose(None, vec![(Some("x".to_owned()), var("w"))]);
    assert_eq!(renamed.map(|s| s.list_outputs()).ok(), Some(vec!["w".to_owned()]));
}

#[test]
fn copies_have_attributes_of_their_own() {
    let net = two_layers();
    let copy = net.deep_copy();
    assert_eq!(copy.to_json(), net.to_json());
    let _ = copy.set_attr("__note__", "copy");
    assert_eq!(net.attr("__note__"), None);
    let shared = net.clone();
    let _ = shared.set_attr("__note__", "shared");
    assert_eq!(net.attr("__note__").as_deref(), Some("shared"));
}

#[test]
fn a_hundred_thousand_nodes_in_a_chain_are_no_problem() {
    let net = chain(100_000);
    assert_eq!(net.topo().len(), 100_001);
    let json = net.to_json();
    let again = load(&json);
    assert_eq!(again.to_json(), json);
    let copy = again.deep_copy();
    drop((net, again));
    let shapes = copy.infer_shape(&[("data".to_owned(), mxrt_tensor::Shape::new(&[2, 3]).into())], false);
    assert_eq!(shapes.map(|s| s.outs[0].to_string()).ok().as_deref(), Some("(2, 3)"));
    // the ends of one chain are held by different threads
    let middle = Symbol::from_entries(vec![NodeEntry::new(copy.topo()[50_000].clone(), 0)]);
    std::thread::spawn(move || drop(copy)).join().unwrap_or_else(|_| panic!("dropping failed"));
    assert_eq!(middle.topo().len(), 50_001);
}

#[test]
fn symbols_are_used_from_many_threads() {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Symbol>();
    let net = load(&fixture("module_mlp"));
    std::thread::scope(|scope| {
        for i in 0..8 {
            let net = &net;
            scope.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(net.deep_copy().list_outputs(), ["softmax_output"]);
                    assert!(net.set_attr(&format!("__by_{i}__"), "x").is_ok());
                }
            });
        }
    });
    assert_eq!(net.list_attr().len(), 8);
}

#[test]
fn nodes_without_a_name_give_plain_names() {
    let relu = apply("Activation", "", &[("act_type", "relu")], &[]);
    assert_eq!(relu.list_arguments(), ["data"]);
    assert_eq!(relu.list_outputs(), ["output"]);
}

#[test]
fn the_text_form_tells_equal_names_apart_and_shows_inner_graphs() {
    let sum = apply("elemwise_add", "s", &[], &[&var("x"), &var("x")]);
    assert_eq!(text(&sum), "%0 = elemwise_add(x, x#2) 's'\nreturn %0\n");
    assert_eq!(text(&var("a b")), "return \"a b\"\n");
    let wrapped = text(&load(&fixture("siamese-001")));
    assert!(wrapped.ends_with("%9 = L2Normalization(%1) 'l2normalization0'\nreturn %8, %9, %1\n"), "{wrapped}");
}

#[test]
fn hidden_keys_of_variables_are_kept_with_underscores_and_shown_both_ways() {
    let given = [("ctx_group", "d"), ("note", "x")].map(|(k, v)| (k.to_owned(), v.to_owned()));
    let v = Symbol::variable("v", given.into_iter().collect());
    assert!(v.to_json().contains("\"__ctx_group__\": \"d\""), "{}", v.to_json());
    assert!(!v.to_json().contains("\"ctx_group\""), "{}", v.to_json());
    assert_eq!(v.attr("ctx_group").as_deref(), Some("d"));
    assert_eq!(v.list_attr().len(), 3);
}
