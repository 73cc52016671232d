//! Every declaration of the headers against the function in Rust: numbers, types and depths of
//! pointers of the arguments.

use crate::common::header::declarations;
use crate::common::repository;
use std::collections::BTreeMap;

/// Depth of pointers and the type that they lead to, under one name for C and Rust.
fn shape(kind: &str) -> (usize, String) {
    let mut depth = kind.matches('*').count();
    let words: Vec<&str> = kind
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| !matches!(*word, "" | "const" | "mut" | "struct" | "std" | "ffi" | "crate"))
        .collect();
    let base = match words.join(" ").as_str() {
        "unsigned int" | "uint32_t" | "nn_uint" | "mx_uint" | "u32" => "u32",
        "int" | "c_int" | "i32" => "i32",
        "int64_t" | "dim_t" | "i64" => "i64",
        "uint64_t" | "u64" => "u64",
        "size_t" | "usize" => "usize",
        "float" | "f32" => "f32",
        "char" | "c_char" => "char",
        "bool" | "u8" => "bool",
        "PredMonitorCallback" | "ExecutorMonitorCallback" | "MonitorCallback" => "monitor",
        "ContextFields" | "c_void" | "void" => "void",
        handle if handle.ends_with("Handle") || handle.ends_with("Creator") => {
            depth += 1;
            "void"
        }
        other => return (depth, other.to_owned()),
    };
    (depth, base.to_owned())
}

/// The text between an opening parenthesis and its closing one.
fn inside(text: &str) -> &str {
    let mut open = 1;
    for (at, c) in text.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return &text[..at];
        }
    }
    panic!("no closing parenthesis in {text}");
}

fn types(arguments: &str) -> Vec<(usize, String)> {
    arguments.split(',').filter_map(|argument| argument.split_once(':')).map(|(_, kind)| shape(kind)).collect()
}

fn exported(name: &str) -> bool {
    name.starts_with("MX") || name.starts_with("NN")
}

/// Functions that a macro makes: `name(type, ...);` for a template of arguments.
fn from_templates(text: &str, found: &mut BTreeMap<String, Vec<(usize, String)>>) {
    for part in text.split("macro_rules! ").skip(1) {
        let Some((head, rest)) = part.split_once("$name:ident(") else { continue };
        let variables: Vec<&str> =
            inside(rest).split(',').filter_map(|v| v.trim().split_once(':').map(|(name, _)| name)).collect();
        let Some((_, template)) = rest.split_once("fn $name(") else { continue };
        let template = inside(template);
        let name = head.split_whitespace().next().expect("a name");
        let Some((_, instances)) = part.split_once(&format!("\n{name}! {{")) else { continue };
        let instances = instances.split("\n}").next().expect("instances");
        for line in instances.lines().map(str::trim).filter(|line| exported(line)) {
            let (name, values) = line.split_once('(').expect("arguments");
            let mut arguments = template.to_owned();
            for (variable, value) in variables.iter().zip(inside(values).split(',')) {
                arguments = arguments.replace(variable, value.trim());
            }
            found.insert(name.to_owned(), types(&arguments));
        }
    }
}

fn rust() -> BTreeMap<String, Vec<(usize, String)>> {
    let mut found = BTreeMap::new();
    let sources = std::fs::read_dir(repository().join("crates/capi/src")).expect("the sources");
    for entry in sources {
        let text = std::fs::read_to_string(entry.expect("an entry").path()).expect("a source");
        for part in text.split(" fn ").skip(1) {
            let Some((name, rest)) = part.split_once('(') else { continue };
            if exported(name) && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                found.insert(name.to_owned(), types(inside(rest)));
            }
        }
        from_templates(&text, &mut found);
    }
    found
}

#[test]
fn declarations_have_the_arguments_of_the_functions() {
    let rust = rust();
    let mut wrong = Vec::new();
    for declared in declarations() {
        let wanted: Vec<(usize, String)> = declared.arguments.iter().map(|(kind, _)| shape(kind)).collect();
        match rust.get(&declared.name) {
            None => wrong.push(format!("{} is not defined", declared.name)),
            Some(have) if *have != wanted => {
                wrong.push(format!("{}: the header has {wanted:?}, Rust {have:?}", declared.name));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What is not refused is declared.
    let names: Vec<String> = declarations().into_iter().map(|declared| declared.name).collect();
    let missing: Vec<&String> = rust.keys().filter(|name| !names.contains(name)).collect();
    assert!(missing.is_empty(), "in no header: {missing:?}");
}
