//! The type stub of the iterators' classes, `python/mxrt/io/_iterators.pyi`, says what the table
//! says.
//!
//! `make generate` writes it.

use mxrt_io::iterators::{ITERATORS, IterDef};
use mxrt_tensor::attrs::{AttrDef, AttrKind};
use std::fmt::Write;
use std::path::Path;

/// The type of values that Python code may pass. `marked`: the parameter has to be given although
/// one before it has not, so that Python shows a mark as its default, which is of no type.
fn annotation(parameter: &AttrDef, marked: bool) -> String {
    if marked {
        return "Any".to_owned();
    }
    let words = |words: &[&str]| words.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(", ");
    match parameter.kind {
        AttrKind::Enum(known) if parameter.name == "on_error" => {
            format!("Literal[{}] | Callable[[Exception], object]", words(known))
        }
        AttrKind::OptInt => "int | None".to_owned(),
        AttrKind::OptFloat => "float | None".to_owned(),
        AttrKind::Floats => "Sequence[float]".to_owned(),
        AttrKind::Int | AttrKind::IntFrom(_) => "int".to_owned(),
        AttrKind::Float | AttrKind::FloatIn(..) => "float".to_owned(),
        AttrKind::Bool => "bool".to_owned(),
        AttrKind::Shape => "int | Sequence[int]".to_owned(),
        AttrKind::Enum(known) => format!("Literal[{}]", words(known)),
        AttrKind::Str if parameter.default.is_none() => "str | PathLike[str]".to_owned(),
        AttrKind::Str => "str | PathLike[str] | None".to_owned(),
        _ => "Any".to_owned(),
    }
}

fn class(def: &IterDef) -> String {
    let mut optional = false;
    let mut text = format!("class {}(MXDataIter):\n    def __init__(\n        self,\n", def.name);
    for parameter in def.all_parameters() {
        optional |= parameter.default.is_some();
        let default = if optional { " = ..." } else { "" };
        writeln!(
            text,
            "        {}: {}{default},",
            parameter.name,
            annotation(parameter, optional && parameter.default.is_none())
        )
        .unwrap();
    }
    text + "        data_name: str = ...,\n        label_name: str = ...,\n    ) -> None: ...\n"
}

fn stub() -> String {
    let names = ITERATORS.iter().map(|def| format!("    \"{}\",\n", def.name)).collect::<String>();
    let classes = ITERATORS.iter().map(|def| class(def)).collect::<Vec<_>>().join("\n");
    let typing = if classes.contains("Literal[") { "Any, Literal" } else { "Any" };
    format!(
        "\"\"\"Data iterators of the Rust side. Written by crates/io/tests/files/stubs.rs; do not edit.\"\"\"\n\n\
         from collections.abc import Callable, Sequence\nfrom os import PathLike\nfrom typing import {typing}\n\n\
         from .io import MXDataIter\n\n# ruff: noqa\n\n__all__ = [\n{names}]\n\n{classes}"
    )
}

#[test]
fn the_stub_of_the_iterators_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/mxrt/io/_iterators.pyi");
    if std::env::var_os("MXRT_WRITE").is_some() {
        std::fs::write(&path, stub()).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == stub(), "python/mxrt/io/_iterators.pyi is not up to date; `make generate` writes it");
}

#[test]
fn every_file_of_an_iterator_has_its_row() {
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src/iterators")];
    let mut definitions = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                definitions += std::fs::read_to_string(&path).unwrap().matches(": IterDef = ").count();
            }
        }
    }
    assert_eq!(definitions, ITERATORS.len(), "an IterDef under src/iterators is not in ITERATORS");
}

#[test]
fn iterators_have_names_of_their_own_and_parameters_whose_defaults_parse() {
    for (i, def) in ITERATORS.iter().enumerate() {
        assert!(ITERATORS[..i].iter().all(|other| other.name != def.name), "{} occurs twice", def.name);
        let parameters = def.all_parameters();
        for (i, parameter) in parameters.iter().enumerate() {
            assert!(parameters[..i].iter().all(|p| p.name != parameter.name), "{} twice: {}", def.name, parameter.name);
            assert!(!parameter.doc.is_empty(), "{}: {} has no documentation", def.name, parameter.name);
        }
        let required: Vec<(&str, &str)> =
            parameters.iter().filter(|p| p.default.is_none()).map(|p| (p.name, "1")).collect();
        mxrt_tensor::attrs::Attrs::parse(parameters, required).unwrap_or_else(|e| panic!("{}: {e}", def.name));
    }
}
