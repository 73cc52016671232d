//! Damaged symbol texts: always an error or a graph, never a panic.

use crate::common::*;
use mxrt_graph::{Symbol, symbol::text};

/// Everything a caller might do with a text, whatever it says.
fn try_everything(json: &[u8]) -> bool {
    let Ok(loaded) = Symbol::load_json(&String::from_utf8_lossy(json)) else { return false };
    let symbol = loaded.symbol;
    let written = symbol.to_json();
    let again =
        Symbol::load_json(&written).unwrap_or_else(|e| panic!("what was written cannot be read: {e}\n{written}"));
    assert_eq!(again.symbol.to_json(), written);
    let _ = (text(&symbol), symbol.list_outputs(), symbol.list_auxiliary_states(), symbol.attr_dict());
    let _ = symbol.get_internals().infer_shape(&[], true);
    let _ = symbol.infer_type(&[], true);
    true
}

/// A small graph with a bit of everything.
fn sample() -> String {
    let nodes = [
        r#"{"op": "null", "name": "x", "attrs": {"__shape__": "(0, 6)", "__dtype__": "0"}, "inputs": []}"#,
        r#"{"op": "SliceChannel", "name": "s", "attr": {"num_outputs": "2", "axis": "1"}, "inputs": [[0, 0, 0]]}"#,
        r#"{"op": "Concat", "name": "c", "param": {"num_args": "2"}, "inputs": [[1, 1], [1, 0]]}"#,
        r#"{"op": "Activation", "name": "a", "attrs": {"act_type": "relu"}, "inputs": [[2, 0, 0]], "control_deps": [1]}"#,
    ];
    graph(&nodes.join(", "), "[0]", "[[3, 0, 0], [1, 1, 0]]").replace("10901", "904")
}

#[test]
fn every_cut_of_a_file_is_an_error() {
    let json = sample();
    assert!(try_everything(json.as_bytes()));
    for end in 0..json.len() {
        assert!(!try_everything(&json.as_bytes()[..end]), "accepted when cut at {end}");
    }
}

#[test]
fn every_flip_of_a_byte_gives_an_error_or_a_graph() {
    let json = sample();
    let mut graphs = 0;
    for at in 0..json.len() {
        for mask in [1u8, 2, 4, 8, 16, 32, 64, 128, 255] {
            let mut bytes = json.clone().into_bytes();
            bytes[at] ^= mask;
            graphs += usize::from(try_everything(&bytes));
        }
    }
    assert!(graphs > 100, "flips in names must not matter, but only {graphs} texts were read");
}

#[test]
fn every_removed_or_doubled_byte_gives_an_error_or_a_graph() {
    let json = sample().into_bytes();
    for at in 0..json.len() {
        let mut less = json.clone();
        less.remove(at);
        try_everything(&less);
        let mut more = json.clone();
        more.insert(at, json[at]);
        try_everything(&more);
    }
}

#[test]
fn numbers_out_of_range_give_errors() {
    let json = sample();
    for number in ["-1", "4294967295", "4294967296", "18446744073709551616", "1e99", "0.5", "null", "\"0\"", "[]", "{}"]
    {
        for (at, _) in json.match_indices(|c: char| c.is_ascii_digit()) {
            try_everything(format!("{}{number}{}", &json[..at], &json[at + 1..]).as_bytes());
        }
    }
}
