//! Reading and writing symbol files.

use crate::common::*;
use mxrt_engine::OpError;
use mxrt_graph::{GraphError, LoadOptions, Symbol, symbol::text};

#[test]
fn files_of_mxnet_1_9_1_are_written_back_byte_for_byte() {
    for name in ["digits_cnn", "module_mlp", "siamese-001", "tails-001", "inception-001", "vgg-001", "resnet_v2-001"] {
        let file = fixture(name);
        let loaded = Symbol::load_json(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(loaded.warnings, Vec::<String>::new(), "{name}");
        assert_eq!(loaded.symbol.to_json(), file, "{name}");
    }
}

#[test]
fn a_file_of_mxnet_0_8_becomes_what_1_9_1_makes_of_it() {
    let loaded = Symbol::load_json(&fixture("legacy_mlp")).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        loaded.warnings,
        ["Loading symbol saved by previous version v0.8.0. Attempting to upgrade...", "Symbol successfully upgraded!"]
    );
    let (old, new) = (loaded.symbol, load(&fixture("module_mlp")));
    assert_eq!(text(&old), text(&new));
    assert_eq!(old.list_arguments(), new.list_arguments());
    // states were not in the file
    let states = ["bn1_moving_mean", "bn1_moving_var", "bn2_moving_mean", "bn2_moving_var"];
    assert_eq!(old.list_auxiliary_states(), states);
    let attrs = old.attr_dict();
    assert_eq!(attrs["bn1_moving_mean"]["__init__"], r#"["zero", {}]"#);
    assert_eq!(attrs["bn1_moving_var"]["__init__"], r#"["one", {}]"#);
    assert_eq!(attrs["bn1_moving_var"]["eps"], "0.001");
    // `ctx_group` belongs to the node, `weight_lr_mult` to the weight
    assert_eq!(attrs["fc1"]["__ctx_group__"], "first");
    assert_eq!(attrs["fc1_weight"]["__lr_mult__"], "2.0");
    assert!(!attrs["fc1"].contains_key("weight_lr_mult"));
}

#[test]
fn all_spellings_of_attributes_give_one_graph() {
    let texts: Vec<String> = ["legacy_attr-002", "legacy_attrs-002", "legacy_param-002"]
        .iter()
        .map(|name| text(&load(&fixture(name))).lines().map(without_name).collect::<Vec<_>>().join("\n"))
        .collect();
    assert!(texts[0].contains("Convolution(data, v0_weight, v0_bias) {kernel=(3, 3), num_filter=2, pad=(1, 1)}"));
    assert_eq!(texts[0], texts[1]);
    assert_eq!(texts[0], texts[2]);
}

/// Automatic names are counted through the files.
fn without_name(line: &str) -> String {
    line.split(" '").next().unwrap_or(line).to_owned()
}

#[test]
fn of_attr_and_attrs_the_last_counts_and_param_only_adds() {
    let node = |fields: &str| {
        graph(
            &format!("{DATA}, {{\"op\": \"Activation\", \"name\": \"a\", {fields}, \"inputs\": [[0, 0]]}}"),
            "[0]",
            "[[1, 0]]",
        )
    };
    let act = |fields: &str| load(&node(fields)).attr("act_type");
    let (relu, tanh) = (r#"{"act_type": "relu"}"#, r#"{"act_type": "tanh"}"#);
    assert_eq!(act(&format!(r#""attr": {relu}, "attrs": {tanh}"#)).as_deref(), Some("tanh"));
    assert_eq!(act(&format!(r#""attrs": {tanh}, "attr": {relu}"#)).as_deref(), Some("relu"));
    assert_eq!(act(&format!(r#""attrs": {tanh}, "param": {relu}"#)).as_deref(), Some("tanh"));
    assert_eq!(act(&format!(r#""param": {relu}, "backward_source_id": -1"#)).as_deref(), Some("relu"));
}

#[test]
fn nodes_may_come_in_any_order() {
    let text = graph(&format!("{}, {DATA}, {}", relu("b", "[2, 0, 0]"), relu("a", "[1, 0, 0]")), "[1]", "[[0, 0, 0]]");
    let names: Vec<String> = load(&text).topo().iter().map(|n| n.name.clone()).collect();
    assert_eq!(names, ["data", "a", "b"]);
}

#[test]
fn control_dependencies_survive() {
    let after = r#"{"op": "Activation", "name": "b", "attrs": {"act_type": "tanh"}, "inputs": [[0, 0, 0]], "control_deps": [1]}"#;
    let symbol = load(&graph(&format!("{DATA}, {}, {after}", relu("a", "[0, 0, 0]")), "[0]", "[[2, 0, 0]]"));
    assert_eq!(symbol.topo().len(), 3);
    let written = symbol.to_json();
    assert!(written.contains("\"inputs\": [[0, 0, 0]], \n      \"control_deps\": [1]\n"), "{written}");
    assert_eq!(load(&written).to_json(), written);
}

#[test]
fn aliases_are_written_back_as_canonical_names() {
    let text = graph(
        &format!(
            r#"{DATA}, {{"op": "concat", "name": "c", "attrs": {{"num_args": "2"}}, "inputs": [[0, 0], [0, 0]]}}"#
        ),
        "[0]",
        "[[1, 0]]",
    );
    assert!(load(&text).to_json().contains("\"op\": \"Concat\""));
}

#[test]
fn awkward_names_survive() {
    for name in ["a\tb", "say \"hi\"", "back\\slash", "two\nlines", "\u{1}\u{1f}", "größe 大", ""] {
        let written = var(name).to_json();
        assert_eq!(load(&written).list_arguments(), [name]);
    }
}

#[test]
fn numpy_shape_semantics_are_marked_and_translated() {
    let symbol = Symbol::variable("x", attrs(&[("__shape__", "(0, 3)")]));
    assert!(symbol.to_json_np_shape().contains("\"is_np_shape\": [\"int\", 1]"));
    let shape = |text: &str| {
        let loaded = Symbol::load_json_with(text, LoadOptions { np_shape: true, ..LoadOptions::default() });
        loaded.unwrap_or_else(|e| panic!("{e}")).symbol.attr("__shape__")
    };
    assert_eq!(shape(&symbol.to_json()).as_deref(), Some("[-1,3]"));
    assert_eq!(shape(&symbol.to_json_np_shape()).as_deref(), Some("(0, 3)"));
}

#[test]
fn newer_versions_are_read_with_a_warning() {
    let text = graph(DATA, "[0]", "[[0, 0, 0]]").replace("10901", "20000");
    let loaded = Symbol::load_json(&text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(loaded.warnings.len(), 1);
    assert!(loaded.warnings[0].starts_with("loading symbol saved by MXNet version 20000 with lower version"));
}

#[test]
fn unknown_operators_are_reported_together() {
    let node = |op: &str, name: &str| format!(r#"{{"op": "{op}", "name": "{name}", "inputs": []}}"#);
    let text = graph(&[node("Foo", "f1"), node("Bar", "b"), node("Foo", "f2")].join(", "), "[]", "[[0, 0, 0]]");
    let error = match Symbol::load_json(&text) {
        Err(e @ GraphError::UnknownOperators(_)) => e,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        error.to_string(),
        "cannot load the symbol: Operator Foo is not registered (node 'f1', 2 nodes use it); \
         Operator Bar is not registered (node 'b', 1 node uses it)"
    );
}

#[test]
fn unknown_operators_inside_graphs_of_nodes_are_found() {
    let file = fixture("foreach-002").replace("_mul_scalar", "NoSuchOperator");
    assert!(
        load_error(&file).contains("Operator NoSuchOperator is not registered (node '_mulscalar2', 1 node uses it)")
    );
}

#[test]
fn errors_name_the_node_and_the_key() {
    let cases: &[(String, &str)] = &[
        (
            graph(DATA, "[0]", "[[0, 0, 0]]").replace("\"heads\"", "\"extra\": 1, \"heads\""),
            "graph: Unknown field 'extra', candidates are: nodes, arg_nodes",
        ),
        (
            graph(&DATA.replace("\"inputs\"", "\"extra\": [], \"inputs\""), "[0]", "[[0, 0]]"),
            "node 0 'data': Unknown field 'extra', candidates are: op, name",
        ),
        (r#"{"nodes": [], "heads": []}"#.to_owned(), "graph: Missing field \"arg_nodes\""),
        (graph(r#"{"op": "null", "name": "x"}"#, "[0]", "[[0, 0]]"), "node 0 'x': Missing field \"inputs\""),
        (
            graph(&format!("{DATA}, {}", relu("a", "[7, 0, 0]")), "[0]", "[[1, 0, 0]]"),
            "input 0 of node 'a' refers to node 7, but there are 2 nodes",
        ),
        (
            graph(&format!("{DATA}, {}", relu("a", "[0, 3, 0]")), "[0]", "[[1, 0, 0]]"),
            "input 0 of 'a': output 3 of 'data' does not exist: it has 1 output",
        ),
        (
            graph(&format!("{DATA}, {}", relu("a", "[0, 0, 0], [0, 0, 0]")), "[0]", "[[1, 0, 0]]"),
            "Operator Activation expects 1 inputs (data), but got 2 instead: node 'a'",
        ),
        (graph(DATA, "[0]", "[[0, 5, 0]]"), "head 0: output 5 of 'data' does not exist"),
        (graph(DATA, "[0]", "[[9, 0, 0]]"), "heads refers to node 9"),
        (graph(DATA, "[0]", "[]"), "the graph has no outputs"),
        (graph(DATA, "[4]", "[[0, 0, 0]]"), "arg_nodes refers to node 4"),
        (
            graph(&format!("{DATA}, {}", relu("a", "[0, 0]")), "[1]", "[[1, 0]]"),
            "arg_nodes lists 'a', which is no variable but a Activation",
        ),
        (
            graph(&format!("{DATA}, {}, {}", relu("a", "[2, 0]"), relu("b", "[1, 0]")), "[0]", "[[1, 0]]"),
            "are part of a cycle",
        ),
        (graph(&relu("a", "[0, 0]"), "[]", "[[0, 0]]"), "are part of a cycle"),
        (graph(DATA, "[0]", "[[0]]"), "graph: heads: invalid length 1, expected [node, output]"),
        (graph(DATA, "[0]", "[[-1, 0]]"), "graph: heads: invalid value: integer `-1`"),
        (graph(DATA, "[0]", "[[4294967296, 0]]"), "graph: heads: invalid value"),
        (graph(DATA, "[0]", "[[1.5, 0]]"), "graph: heads: invalid type"),
        (
            graph(&relu("a", "").replace("\"relu\"", "3"), "[]", "[[0, 0]]"),
            "node 0 'a': attrs: 'act_type': invalid type: integer `3`, expected a string",
        ),
        (
            graph(DATA, "[0]", "[[0, 0]]").replace("[\"int\", 10901]", "[\"str\", 1]"),
            "'mxnet_version': expected [\"int\", version]",
        ),
        (graph(DATA, "[0]", "[[0, 0]]") + "x", "trailing characters"),
        (
            "{".to_owned(),
            "EOF while parsing an object at line 1 column 1: it ends too early; copy or download it again",
        ),
        ("".to_owned(), "EOF while parsing"),
        ("hello\n".to_owned(), "expected value at line 1 column 1: it is no JSON; copy or download it again"),
        ("[1]".to_owned(), "expected an object with the fields nodes"),
        ("[".repeat(100_000), "cannot load the symbol"),
    ];
    for (text, want) in cases {
        let got = load_error(text);
        assert!(got.contains(want), "wanted {want}\n   got {got}");
    }
}

#[test]
fn attribute_errors_name_operator_node_and_value() {
    let text = graph(&format!("{DATA}, {}", relu("act", "[0, 0]").replace("\"relu\"", "\"maybe\"")), "[0]", "[[1, 0]]");
    let error: OpError = match Symbol::load_json(&text) {
        Err(e) => e.into(),
        Ok(_) => panic!("accepted"),
    };
    assert!(error.message.contains("valid values are: {'relu', 'sigmoid'"), "{error}");
    assert!(error.message.ends_with(", in operator Activation(name=\"act\", act_type=\"maybe\")"), "{error}");
    assert_eq!((error.op.as_deref(), error.node.as_deref()), (Some("Activation"), Some("act")));
}

#[test]
fn counts_in_a_file_never_decide_how_much_is_allocated() {
    for huge in ["1000000000000", "9223372036854775807", "99999999999999999999", "-1"] {
        let concat =
            format!(r#"{{"op": "Concat", "name": "c", "attrs": {{"num_args": "{huge}"}}, "inputs": [[0, 0]]}}"#);
        let split = format!(
            r#"{{"op": "SliceChannel", "name": "s", "attrs": {{"num_outputs": "{huge}"}}, "inputs": [[0, 0]]}}"#
        );
        for node in [concat, split] {
            let error = load_error(&graph(&format!("{DATA}, {node}"), "[0]", "[[1, 0]]"));
            assert!(error.contains(&format!("\"{huge}\"")) || error.contains(huge), "{error}");
        }
    }
    // many nodes with as many outputs as one may have
    let split = |i: usize| {
        format!(
            r#", {{"op": "SliceChannel", "name": "s{i}", "attrs": {{"num_outputs": "40000"}}, "inputs": [[{i}, 0]]}}"#
        )
    };
    let nodes = format!("{DATA}{}{}", split(0), split(1));
    assert!(load_error(&graph(&nodes, "[0]", "[[2, 0]]")).contains("over 65536 outputs"));
}

#[test]
fn lists_of_more_than_ten_go_over_several_lines() {
    assert!(chain(8).to_json().contains("\"node_row_ptr\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], \n"));
    assert!(chain(9).to_json().contains("\"node_row_ptr\": [\n    0, \n    1, \n"));
    let x = var("x");
    let inputs = |n: usize| apply("Concat", "c", &[], &vec![&x; n]).to_json();
    assert!(inputs(10).contains("\"inputs\": [[0, 0, 0], "));
    assert!(inputs(11).contains("\"inputs\": [\n        [0, 0, 0], \n        [0, 0, 0]"));
}

#[test]
fn each_upgrade_applies_to_the_versions_before_it() {
    let batch_norm = |version: u32, inputs: &str| {
        let variables: String =
            ["a", "b", "c", "d"].map(|n| format!(r#", {{"op": "null", "name": "{n}", "inputs": []}}"#)).concat();
        let node = format!(r#", {{"op": "BatchNorm", "name": "bn", "inputs": [{inputs}]}}"#);
        graph(&format!("{DATA}{variables}{node}"), "[0, 1, 2, 3, 4]", "[[5, 0]]").replace("10901", &version.to_string())
    };
    let all = "[0, 0], [1, 0], [2, 0], [3, 0], [4, 0]";
    // 0.9.0: states are written
    let states = |version| {
        Symbol::load_json(&batch_norm(version, "[0, 0], [1, 0], [2, 0]")).map(|l| l.symbol.list_auxiliary_states())
    };
    assert_eq!(states(899).ok(), Some(vec!["bn_moving_mean".to_owned(), "bn_moving_var".to_owned()]));
    assert!(states(900).is_err_and(|e| e.to_string().contains("expects 5 inputs")));
    // 0.9.4: variables say how states start
    let init = |version| load(&batch_norm(version, all)).attr_dict().get("d").cloned();
    assert_eq!(init(903), Some(attrs(&[("__init__", r#"["one", {}]"#)])));
    assert_eq!(init(904), None);
    // 0.9.5: axis=-1 is the last axis
    let argmax = r#"{"op": "argmax", "name": "m", "attrs": {"axis": "-1"}, "inputs": [[0, 0]]}"#;
    let axis = |version: u32| {
        load(&graph(&format!("{DATA}, {argmax}"), "[0]", "[[1, 0]]").replace("10901", &version.to_string()))
            .attr("axis")
    };
    assert_eq!(axis(904), None);
    assert_eq!(axis(905).as_deref(), Some("-1"));
    // 1.9.1: bare keys become hidden ones
    let keyed = |version: u32| {
        let node = DATA.replace("\"inputs\"", "\"attrs\": {\"lr_mult\": \"3\"}, \"inputs\"");
        load(&graph(&node, "[0]", "[[0, 0]]").replace("10901", &version.to_string())).to_json()
    };
    assert!(keyed(10900).contains("\"__lr_mult__\": \"3\""));
    assert!(keyed(10901).contains("{\"lr_mult\": \"3\"}"));
}

#[test]
fn operators_that_only_passes_make_cannot_come_from_files() {
    let internal = mxrt_ops::registry().ops().iter().find(|op| op.internal).unwrap_or_else(|| panic!("there is none"));
    let node = format!(r#"{{"op": "{}", "name": "x", "inputs": []}}"#, internal.name);
    assert!(load_error(&graph(&node, "[]", "[[0, 0]]")).contains("is not registered"));
}
