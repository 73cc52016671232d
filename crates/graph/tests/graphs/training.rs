//! Graphs as in training: which nodes change, and where.

use crate::common::{apply, attrs, op, var};
use mxrt_graph::{Symbol, TrainingScope};

const OUTSIDE: TrainingScope = TrainingScope { outside: true, inside: false };
const INSIDE: TrainingScope = TrainingScope { outside: false, inside: true };

fn drops(name: &str, data: &Symbol) -> Symbol {
    apply("Dropout", name, &[("p", "0.5")], &[data])
}

/// A Dropout, and a loop with one inside.
fn with_loop() -> Symbol {
    let inner = drops("inner", &var("row"));
    let places = [("in_data_locs", "[0]"), ("in_state_locs", "[1]"), ("remain_locs", "[]")];
    let counts = [("num_outputs", "2"), ("num_out_data", "1")];
    let body = Symbol::group(&[inner, apply("_copy", "last", &[], &[&var("state")])]);
    let inputs = [&drops("outer", &var("data")), &var("init")].map(|s| (None, s.clone()));
    let attrs = attrs(&[&places[..], &counts[..]].concat());
    Symbol::create_with_subgraphs(op("_foreach"), "loop".to_owned(), attrs, inputs.into(), vec![body])
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The names of nodes that always drop.
fn always(symbol: &Symbol) -> Vec<String> {
    let mut names = Vec::new();
    for node in symbol.topo() {
        names.extend((node.attr("mode").as_deref() == Some("always")).then(|| node.name.clone()));
        node.subgraphs.iter().for_each(|graph| names.extend(always(graph)));
    }
    names
}

fn form(symbol: &Symbol, scope: TrainingScope) -> Option<Symbol> {
    symbol.in_training(scope).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_graph_that_computes_the_same_has_no_other_form() {
    let plain = apply("Activation", "relu", &[("act_type", "relu")], &[&var("data")]);
    let fixed = apply("BatchNorm", "bn", &[("use_global_stats", "True")], &[&plain]);
    let leaky = apply("LeakyReLU", "leaky", &[("act_type", "leaky")], &[&fixed]);
    let nothing = apply("Dropout", "nothing", &[("p", "0")], &[&leaky]);
    assert!(form(&nothing, TrainingScope::WHOLE).is_none());
    assert!(form(&with_loop(), TrainingScope::NOTHING).is_none());
    assert!(form(&drops("outer", &var("data")), INSIDE).is_none());
}

#[test]
fn what_a_scope_names_changes_outside_loops_or_inside() {
    for (scope, names) in [(OUTSIDE, &["outer"][..]), (INSIDE, &["inner"]), (TrainingScope::WHOLE, &["outer", "inner"])]
    {
        let made = form(&with_loop(), scope).unwrap_or_else(|| panic!("{scope:?} changes nothing"));
        assert_eq!(always(&made), names, "{scope:?}");
        assert_eq!(made.list_inputs(), with_loop().list_inputs());
        assert_eq!(made.list_outputs(), with_loop().list_outputs());
    }
}

#[test]
fn nodes_behind_one_that_changes_read_its_new_outputs() {
    let norm = apply("BatchNorm", "bn", &[], &[&var("data")]);
    let after = apply("Activation", "relu", &[("act_type", "relu")], &[&norm]);
    let made = form(&Symbol::group(&[after, norm]), TrainingScope::WHOLE).expect("another graph");
    // The moving averages are read no more.
    assert_eq!(made.list_inputs(), ["data", "bn_gamma", "bn_beta"]);
    assert_eq!(made.list_outputs(), ["relu_output", "bn_output"]);
}
