//! Symbol files.

use super::calls::{attributes, operators};
use super::{Choices, ODD_NUMBERS, engine, filled, have_values};
use mxrt::internal::{CachedOp, CachedOpFlags, Interrupter, LoadOptions, PartialShape};
use mxrt::types::TensorType;
use mxrt::{CallOptions, DType, NDArray, Shape, Symbol};

/// The outcome of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The file is no symbol.
    Refused,
    /// The file is a symbol that cannot be called.
    Loaded,
    /// A call gave results.
    Computed,
}

/// A node before it is written.
#[derive(Clone, Default)]
struct Node {
    op: String,
    name: String,
    attrs: Vec<(String, String)>,
    inputs: Vec<[usize; 2]>,
    control_deps: Vec<usize>,
    subgraphs: Vec<File>,
}

#[derive(Clone, Default)]
struct File {
    nodes: Vec<Node>,
    heads: Vec<[usize; 2]>,
    /// arguments that the file lists wrongly, in addition to the right ones
    wrong_args: Vec<usize>,
    /// text in the place of a part
    spelling: Spelling,
}

/// How a file is written: all of these have been.
#[derive(Clone, Copy, Default)]
struct Spelling {
    attrs: usize,
    entries: usize,
    version: usize,
}

/// An operator, its attributes and the number of its inputs.
type Layer = (&'static str, &'static [(&'static str, &'static str)], usize);

/// Operators that networks are made of, with attributes that fit images of 4 channels.
const LAYERS: [Layer; 22] = [
    ("Activation", &[("act_type", "relu")], 1),
    ("Activation", &[("act_type", "tanh")], 1),
    ("elemwise_add", &[], 2),
    ("broadcast_mul", &[], 2),
    ("_mul_scalar", &[("scalar", "0.5")], 1),
    ("_plus_scalar", &[("scalar", "1")], 1),
    ("Convolution", &[("num_filter", "4"), ("kernel", "(3, 3)"), ("pad", "(1, 1)"), ("no_bias", "True")], 0),
    ("Convolution", &[("num_filter", "4"), ("kernel", "(1, 1)"), ("no_bias", "True")], 0),
    ("FullyConnected", &[("num_hidden", "4"), ("no_bias", "True"), ("flatten", "False")], 0),
    ("BatchNorm", &[("fix_gamma", "False")], 3),
    ("Pooling", &[("kernel", "(3, 3)"), ("pad", "(1, 1)"), ("pool_type", "max")], 1),
    ("softmax", &[("axis", "1")], 1),
    ("Concat", &[("num_args", "2"), ("dim", "2")], 2),
    ("SliceChannel", &[("num_outputs", "2"), ("axis", "1")], 1),
    ("transpose", &[("axes", "(0, 1, 3, 2)")], 1),
    ("Reshape", &[("shape", "(0, 0, 0, -1)")], 1),
    ("identity", &[], 1),
    ("Dropout", &[("p", "0.5")], 1),
    ("clip", &[("a_min", "0"), ("a_max", "6")], 1),
    ("add_n", &[("num_args", "2")], 2),
    ("_ones", &[("shape", "(1,)")], 4),
    ("negative", &[], 1),
];

fn variable(file: &mut File, name: String) -> usize {
    file.nodes.push(Node { op: "null".to_owned(), name, ..Node::default() });
    file.nodes.len() - 1
}

fn texts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// A value that is there already, as a rule a late one.
fn earlier(choices: &mut Choices<'_>, values: &[[usize; 2]]) -> [usize; 2] {
    let near = values.len().min(4);
    if choices.once_in(4) { choices.pick(values) } else { values[values.len() - 1 - choices.below(near)] }
}

fn layer(choices: &mut Choices<'_>, file: &mut File, values: &[[usize; 2]], number: usize) -> Node {
    let name = format!("n{number}");
    if choices.once_in(6) {
        // Any operator, with attributes of its own.
        let op = choices.pick(&operators());
        let count = 1 + choices.below(3);
        let attrs = attributes(choices, op, 4, count);
        let wanted = op.parse_attrs(attrs.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        let inputs = wanted.map_or(count, |attrs| op.num_inputs(&attrs)).min(16);
        let inputs = (0..inputs).map(|_| earlier(choices, values)).collect();
        return Node { op: op.name.to_owned(), name, attrs, inputs, ..Node::default() };
    }
    let (op, attrs, kind) = choices.pick(&LAYERS);
    let mut inputs: Vec<[usize; 2]> = Vec::new();
    if kind != 4 {
        inputs.push(earlier(choices, values));
    }
    match kind {
        0 => inputs.push([variable(file, format!("{name}_weight")), 0]),
        2 => inputs.push(earlier(choices, values)),
        3 => {
            let states = ["gamma", "beta", "moving_mean", "moving_var"];
            inputs.extend(states.map(|state| [variable(file, format!("{name}_{state}")), 0]));
        }
        _ => {}
    }
    Node { op: op.to_owned(), name, attrs: texts(attrs), inputs, ..Node::default() }
}

/// A loop over the rows of a value whose body has layers of its own.
fn foreach(choices: &mut Choices<'_>, values: &[[usize; 2]], number: usize, depth: usize) -> Node {
    let layers = 1 + choices.below(4);
    let inner = network(choices, layers, depth + 1, &["row"]);
    // The body reads its row, and what its layers need is captured from a value outside.
    let count = inner.nodes.iter().filter(|node| node.op == "null").count();
    let others: Vec<String> = (1..count).map(|i| i.to_string()).collect();
    let list = |items: &[String]| format!("[{}]", items.join(", "));
    let attrs = vec![
        ("num_args".to_owned(), (count + 1).to_string()),
        ("num_outputs".to_owned(), inner.heads.len().to_string()),
        ("num_out_data".to_owned(), inner.heads.len().to_string()),
        ("in_data_locs".to_owned(), "[0]".to_owned()),
        ("in_state_locs".to_owned(), "[]".to_owned()),
        ("remain_locs".to_owned(), list(&others)),
    ];
    let inputs = (0..count).map(|_| earlier(choices, values)).collect();
    Node {
        op: "_foreach".to_owned(),
        name: format!("n{number}"),
        attrs,
        inputs,
        subgraphs: vec![inner],
        ..Node::default()
    }
}

/// A graph of `layers` layers over these variables.
fn network(choices: &mut Choices<'_>, layers: usize, depth: usize, variables: &[&str]) -> File {
    let mut file = File::default();
    let mut values: Vec<[usize; 2]> =
        variables.iter().map(|name| [variable(&mut file, (*name).to_owned()), 0]).collect();
    for number in 0..layers {
        let node = match depth < 3 && choices.once_in(12) {
            true => foreach(choices, &values, number, depth),
            false => layer(choices, &mut file, &values, number),
        };
        let outputs = if node.op == "SliceChannel" { 2 } else { 1 };
        file.nodes.push(node);
        values.extend((0..outputs).map(|output| [file.nodes.len() - 1, output]));
    }
    file.heads.push(values[values.len() - 1]);
    for _ in 0..choices.repeats(4) {
        file.heads.push(earlier(choices, &values));
    }
    file.spelling = Spelling { attrs: choices.below(4), entries: choices.below(2), version: choices.below(6) };
    file
}

/// Breaks one thing.
fn damage(choices: &mut Choices<'_>, file: &mut File) {
    let count = file.nodes.len();
    let at = choices.below(count);
    let anywhere = choices.pick(&[0, at, at + 1, count - 1, count, count + 7, u32::MAX as usize]);
    let node = &mut file.nodes[at];
    match choices.below(14) {
        0 => node.inputs.iter_mut().for_each(|input| input[0] = anywhere),
        1 => node.inputs.iter_mut().for_each(|input| input[1] = anywhere),
        2 => node.inputs.push([anywhere, 0]),
        3 => drop(node.inputs.pop()),
        4 => node.control_deps.push(anywhere),
        5 => {
            node.op =
                choices.pick(&["", "null", "NoSuchOperator", "_fused_elementwise", "_foreach", "Custom"]).to_owned()
        }
        6 => node.name = choices.pick(&["", "data", "n0", "a\"b\\c", "\u{e9}\u{4e2d}", "%s%n"]).to_owned(),
        7 if !node.attrs.is_empty() => {
            let which = choices.below(node.attrs.len());
            let texts = ["", "None", "(", "-1", "(1, 2, 3, 4, 5, 6, 7, 8, 9)", "True", "1e999"];
            let text = if choices.once_in(2) { choices.pick(&ODD_NUMBERS) } else { choices.pick(&texts) };
            node.attrs[which].1 = text.to_owned();
        }
        8 => {
            node.attrs.push((choices.pick(&["__shape__", "__dtype__", "no_such", ""]).to_owned(), "(2, 0)".to_owned()))
        }
        9 => file.heads.push([anywhere, choices.below(3)]),
        10 => file.heads.clear(),
        11 => file.wrong_args.push(anywhere),
        12 => {
            let copy = file.clone();
            file.nodes[at].subgraphs.push(copy);
        }
        _ => file.nodes.swap(at, anywhere.min(count - 1)),
    }
}

fn write_entries(text: &mut String, entries: &[[usize; 2]], spelling: Spelling) {
    let written = entries.iter().map(|[node, output]| match spelling.entries {
        0 => format!("[{node}, {output}, 0]"),
        _ => format!("[{node}, {output}]"),
    });
    *text += &format!("[{}]", written.collect::<Vec<_>>().join(", "));
}

fn write(file: &File) -> String {
    let spelling = file.spelling;
    let mut nodes = Vec::new();
    for node in &file.nodes {
        let mut text = format!("{{\"op\": {:?}, \"name\": {:?}, ", node.op, node.name);
        if !node.attrs.is_empty() || spelling.attrs == 1 {
            let key = ["attrs", "attrs", "attr", "param"][spelling.attrs];
            let pairs: Vec<String> = node.attrs.iter().map(|(k, v)| format!("{k:?}: {v:?}")).collect();
            text += &format!("\"{key}\": {{{}}}, ", pairs.join(", "));
        }
        if !node.control_deps.is_empty() {
            text += &format!("\"control_deps\": {:?}, ", node.control_deps);
        }
        if !node.subgraphs.is_empty() {
            let graphs: Vec<String> = node.subgraphs.iter().map(write).collect();
            text += &format!("\"subgraphs\": [{}], ", graphs.join(", "));
        }
        text += "\"inputs\": ";
        write_entries(&mut text, &node.inputs, spelling);
        nodes.push(text + "}");
    }
    let variables = file.nodes.iter().enumerate().filter(|(_, node)| node.op == "null").map(|(i, _)| i);
    let args: Vec<usize> = variables.chain(file.wrong_args.iter().copied()).collect();
    let mut text = format!("{{\"nodes\": [{}], \"arg_nodes\": {args:?}, \"heads\": ", nodes.join(", "));
    write_entries(&mut text, &file.heads, spelling);
    let version = ["10901", "10800", "800", "0", "99999"].get(spelling.version);
    if let Some(version) = version {
        text += &format!(", \"attrs\": {{\"mxnet_version\": [\"int\", {version}]}}");
    }
    text + "}"
}

/// The text of a file: as a rule a network, sometimes with something broken.
pub fn text(choices: &mut Choices<'_>) -> String {
    let layers = 1 + choices.below(12);
    let mut file = network(choices, layers, 0, &["data"]);
    for _ in 0..choices.repeats(3) {
        damage(choices, &mut file);
    }
    write(&file)
}

/// Reads a file, asks the symbol everything, and calls it.
pub fn use_text(choices: &mut Choices<'_>, text: &str) -> Outcome {
    let options = LoadOptions { max_nodes: Some(10_000), ..LoadOptions::default() };
    let Ok(loaded) = Symbol::load_json_with(text, options) else { return Outcome::Refused };
    let symbol = loaded.symbol;
    let names = symbol.list_inputs();
    let _ = (symbol.list_outputs(), symbol.attr_dict(), symbol.get_internals().list_outputs());
    let _ = (symbol.infer_type(&[], true), symbol.infer_shape(&[], true));
    let written = symbol.to_json();
    let again = Symbol::load_json(&written).expect("what was written can be read").symbol;
    assert_eq!(again.to_json(), written);
    if called(choices, &symbol, &names).is_some() { Outcome::Computed } else { Outcome::Loaded }
}

fn called(choices: &mut Choices<'_>, symbol: &Symbol, names: &[String]) -> Option<()> {
    let known = [("data".to_owned(), PartialShape::from(Shape::new(&[2, 4, 6, 6])))];
    let shapes = symbol.infer_shape(&known, true).ok()?;
    let variables = symbol.list_arguments().into_iter().chain(symbol.list_auxiliary_states());
    let shapes: Vec<(String, &PartialShape)> = variables.zip(shapes.args.iter().chain(&shapes.aux)).collect();
    let mut arrays: Vec<NDArray> = Vec::new();
    for name in names {
        let shape = shapes.iter().find(|(known, _)| known == name).and_then(|(_, shape)| shape.complete());
        arrays.push(filled(choices, &TensorType::new(DType::F32, shape.unwrap_or_else(|| Shape::new(&[4]))))?);
    }
    let op = CachedOp::new(engine(), symbol, &CachedOpFlags::default()).ok()?;
    let refs: Vec<&NDArray> = arrays.iter().collect();
    let started = op.call(&refs, None, &CallOptions::default(), &mut Interrupter::never()).ok()?;
    let results = started.arrays().ok()?;
    have_values(&results).then_some(())
}
