//! Every pass, as text before and after.

mod fuse;
mod layouts;
mod simplify;

use mxrt_graph::infer;
use mxrt_graph::{Graph, Symbol, passes};
use mxrt_ops::{KernelOptions, Precision, registry};
use mxrt_tensor::{DType, PartialShape, Shape, TensorType};
use std::collections::BTreeMap;

fn var(name: &str) -> Symbol {
    Symbol::variable(name, BTreeMap::new())
}

fn apply(op: &str, name: &str, attrs: &[(&str, &str)], inputs: &[&Symbol]) -> Symbol {
    let op = registry().get(op).expect("the operator is registered");
    let attrs = attrs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let inputs = inputs.iter().map(|s| (None, (*s).clone())).collect();
    Symbol::create(op, name.to_owned(), attrs, inputs).expect("the symbol composes")
}

/// The graph of a symbol. Its parameters are found by the slots that they feed.
fn graph(symbol: &Symbol) -> Graph {
    let mut graph = Graph::from_symbol(symbol).expect("the symbol is a graph");
    graph.guess_constants();
    graph
}

fn run_graph(pass: &str, graph: Graph) -> Graph {
    let pass = passes::PASSES.iter().find(|p| p.name == pass).expect("there is such a pass");
    (pass.run)(graph).expect("the pass succeeds")
}

fn run(pass: &str, graph: Graph) -> String {
    run_graph(pass, graph).to_string()
}

fn conv(name: &str, x: &Symbol) -> Symbol {
    apply("Convolution", name, &[("kernel", "(3, 3)"), ("no_bias", "True"), ("num_filter", "8")], &[x])
}

fn relu(name: &str, x: &Symbol) -> Symbol {
    apply("Activation", name, &[("act_type", "relu")], &[x])
}

#[test]
fn every_pass_has_a_case_on_a_text_graph() {
    let source = [include_str!("simplify.rs"), include_str!("fuse.rs"), include_str!("layouts.rs")].concat();
    let names = passes::PASSES.iter().map(|p| p.name).chain(passes::TYPED_PASSES.iter().map(|p| p.name));
    let missing: Vec<&str> = names.filter(|name| !source.contains(&format!("#[test]\nfn {name}_"))).collect();
    assert!(missing.is_empty(), "no file of tests/passes has a test `fn <pass>_...` for {missing:?}");
}

/// The two tables of `PLANS.md`, made from the lists. `make generate` writes them.
#[test]
fn the_tables_of_the_page_are_up_to_date() {
    let table = |rows: Vec<(&str, &str)>| {
        let rows = rows.iter().map(|(name, effect)| format!("| `{name}` | {effect} |\n"));
        format!("| pass | effect |\n| --- | --- |\n{}", rows.collect::<String>())
    };
    let tables = [
        table(passes::PASSES.iter().map(|p| (p.name, p.effect)).collect()),
        table(passes::TYPED_PASSES.iter().map(|p| (p.name, p.effect)).collect()),
    ];
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/PLANS.md");
    let page = std::fs::read_to_string(path).expect("the page is readable");
    let mut wanted = String::new();
    let mut tables = tables.iter();
    let mut inside = false;
    for line in page.split_inclusive('\n') {
        if line == "| pass | effect |\n" {
            inside = true;
            wanted += tables.next().expect("the page has two tables of passes");
        }
        inside &= line.starts_with('|');
        if !inside {
            wanted += line;
        }
    }
    assert!(tables.next().is_none(), "PLANS.md lacks a table that begins with `| pass | effect |`");
    if std::env::var_os("MXRT_WRITE").is_some() {
        std::fs::write(path, &wanted).expect("the page is writable");
    } else {
        assert!(page == wanted, "PLANS.md is not up to date; `make generate` writes it. It must read:\n{wanted}");
    }
}

fn dense(x: &Symbol) -> Symbol {
    apply("FullyConnected", "d", &[("num_hidden", "4")], &[x])
}

/// Runs a pass that needs types, on float32 inputs of one shape.
fn run_typed(pass: &str, graph: Graph, shape: &[usize]) -> String {
    let inputs = vec![TensorType::new(DType::F32, shape); graph.inputs.len()];
    run_typed_on(&[pass], graph, &inputs)
}

/// Runs a pass on a symbol with parameters, whose shapes follow from that of the data.
fn run_typed_net(pass: &str, symbol: &Symbol, data: &[usize]) -> String {
    run_typed_all(&[pass], symbol, data)
}

/// Runs several passes, one after the other.
fn run_typed_all(passes: &[&str], symbol: &Symbol, data: &[usize]) -> String {
    run_typed_with(KernelOptions::default(), passes, symbol, data)
}

/// Runs several passes with options of kernels.
fn run_typed_with(options: KernelOptions, passes: &[&str], symbol: &Symbol, data: &[usize]) -> String {
    let known = [("data".to_owned(), PartialShape::from(Shape::new(data)))];
    let shapes = symbol.infer_shape(&known, false).expect("all shapes follow from the data's");
    let names = symbol.list_arguments().into_iter().chain(symbol.list_auxiliary_states());
    let by_name: BTreeMap<String, Shape> =
        names.zip(shapes.args.iter().chain(&shapes.aux)).filter_map(|(n, s)| Some((n, s.complete()?))).collect();
    let inputs: Vec<TensorType> =
        symbol.list_inputs().iter().map(|n| TensorType::new(DType::F32, by_name[n].clone())).collect();
    run_passes(options, passes, graph(symbol), &inputs)
}

fn run_typed_on(names: &[&str], graph: Graph, inputs: &[TensorType]) -> String {
    run_passes(KernelOptions::default(), names, graph, inputs)
}

fn run_passes(options: KernelOptions, names: &[&str], mut graph: Graph, inputs: &[TensorType]) -> String {
    for name in names {
        let types = infer(&graph, inputs).expect("the types follow");
        let pass = passes::TYPED_PASSES.iter().find(|p| p.name == *name).expect("there is such a pass");
        graph = (pass.run)(graph, &types, options).expect("the pass succeeds");
    }
    graph.to_string()
}

/// The operators of a graph's text.
fn operators(text: &str) -> Vec<&str> {
    text.lines().filter_map(|l| l.split(" = ").nth(1)).filter_map(|l| l.split('(').next()).collect()
}
