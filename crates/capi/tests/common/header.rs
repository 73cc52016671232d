//! The declarations of the headers.

#![allow(dead_code, reason = "each test uses some of it")]

use super::repository;

/// A function of a header.
pub struct Declaration {
    pub returns: String,
    pub name: String,
    /// type, with stars but without spaces around them, and name
    pub arguments: Vec<(String, String)>,
}

/// Every function that the headers declare.
pub fn declarations() -> Vec<Declaration> {
    let include = repository().join("crates/capi/include");
    let headers = ["mxrt.h", "mxnet/c_api.h", "mxnet/c_predict_api.h", "nnvm/c_api.h"];
    let mut all: Vec<Declaration> = Vec::new();
    for header in headers {
        let text = std::fs::read_to_string(include.join(header)).expect("the header");
        for declared in text.split("MXNET_DLL ").skip(1) {
            let (declared, _) = declared.split_once(';').expect("a semicolon");
            let made = parse(declared);
            if !all.iter().any(|other| other.name == made.name) {
                all.push(made);
            }
        }
    }
    assert!(all.len() > 150, "{} declarations", all.len());
    all
}

fn parse(declared: &str) -> Declaration {
    let (head, arguments) = declared.split_once('(').expect("an argument list");
    let (returns, name) = named(head);
    let arguments = arguments.trim_end().strip_suffix(')').expect("a closing parenthesis");
    let arguments = arguments.split(',').map(str::trim).filter(|argument| *argument != "void");
    let arguments = arguments.map(|argument| named(argument.split(" MXNET_DEFAULT").next().unwrap_or(argument)));
    Declaration { returns, name, arguments: arguments.collect() }
}

/// `const char **keys` is the type `const char**` and the name `keys`.
fn named(text: &str) -> (String, String) {
    let text = text.trim();
    let start = text.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    let (kind, name) = text.split_at(start);
    (kind.split_whitespace().collect::<Vec<_>>().join(" ").replace(" *", "*"), name.to_owned())
}
