//! Random graphs, written to text and read back.

use crate::common::*;
use mxrt_graph::{Symbol, symbol::text};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Operator to apply next, and the two values that it reads.
type Step = (u8, usize, usize);

/// A graph over two variables, step by step; all values that no step reads are outputs too.
fn build(steps: &[Step]) -> Symbol {
    let mut values = vec![var("x"), Symbol::variable("y", attrs(&[("__shape__", "(2, 4)")]))];
    for (i, (kind, a, b)) in steps.iter().enumerate() {
        let (a, b) = (values[a % values.len()].clone(), values[b % values.len()].clone());
        let name = format!("n{i}");
        let made = match kind % 4 {
            0 => apply("Activation", &name, &[("act_type", "relu"), ("__note__", "a\t\"b\"\\")], &[&a]),
            1 => apply("elemwise_add", &name, &[], &[&a, &b]),
            2 => apply("Concat", &name, &[("dim", "0")], &[&a, &b, &a]),
            _ => apply("SliceChannel", &name, &[("num_outputs", "2")], &[&a]),
        };
        values.extend((0..made.outputs().len()).filter_map(|i| made.output(i)));
    }
    Symbol::group(&values[values.len().saturating_sub(3)..])
}

/// Puts the nodes of a text in another order.
fn shuffled(json: &str, keys: &[u64]) -> String {
    let mut graph: serde_json::Value = serde_json::from_str(json).unwrap_or_else(|e| panic!("{e}"));
    let nodes = graph["nodes"].as_array().cloned().unwrap_or_default();
    let mut order: Vec<usize> = (0..nodes.len()).collect();
    order.sort_by_key(|i| keys[i % keys.len()].rotate_left(*i as u32));
    let place: BTreeMap<usize, usize> = order.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let moved = |id: &serde_json::Value| serde_json::json!(place[&(id.as_u64().unwrap_or(0) as usize)]);
    let mut new_nodes: Vec<serde_json::Value> = order.iter().map(|old| nodes[*old].clone()).collect();
    for node in &mut new_nodes {
        node["inputs"].as_array_mut().into_iter().flatten().for_each(|e| e[0] = moved(&e[0]));
    }
    graph["heads"].as_array_mut().into_iter().flatten().for_each(|e| e[0] = moved(&e[0]));
    graph["arg_nodes"].as_array_mut().into_iter().flatten().for_each(|id| *id = moved(id));
    graph["nodes"] = new_nodes.into();
    graph.to_string()
}

proptest! {
    #[test]
    fn graphs_survive_their_text(steps in proptest::collection::vec(any::<Step>(), 0..30), keys in proptest::collection::vec(any::<u64>(), 1..40)) {
        let symbol = build(&steps);
        let json = symbol.to_json();
        prop_assert_eq!(load(&json).to_json(), json.clone());
        prop_assert_eq!(load(&shuffled(&json, &keys)).to_json(), json.clone());
        let copy = symbol.deep_copy();
        prop_assert_eq!(text(&copy), text(&symbol));
        prop_assert_eq!(copy.to_json(), json);
    }

    #[test]
    fn types_given_at_the_inputs_reach_everything(steps in proptest::collection::vec(any::<Step>(), 1..30)) {
        let symbol = build(&steps);
        let known: Vec<_> = symbol.list_arguments().into_iter().map(|n| (n, mxrt_tensor::DType::F32)).collect();
        let got = symbol.infer_type(&known, false);
        prop_assert!(got.is_ok_and(|t| t.complete && t.outs.iter().all(|d| *d == Some(mxrt_tensor::DType::F32))));
    }
}
