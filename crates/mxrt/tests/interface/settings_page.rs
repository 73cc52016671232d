//! docs/settings.md and the types of the options of calls say what the tables say.
//!
//! `make generate` writes it.

use mxrt::internal::settings::SETTINGS;
use mxrt::internal::{CALL_OPTIONS, CachedOpFlags};
use std::fmt::Write;
use std::path::Path;

const WIDTH: usize = 100;

/// The variables that Python code reads, as `python/mxrt/cli/_variables.py` has them.
const OF_PYTHON: &[&str] = &[
    "`MXNET_HOME`: Folder in which weights of the model zoo, data sets and embeddings are expected. Value: the \
     path of a folder. Default: `~/.mxnet`.",
    "`MXNET_GLUON_REPO`: Address of the published files, for packages such as GluonNLP that ask for it; mxrt \
     downloads nothing. Value: an address. Default: that of Apache MXNet.",
    "`MXNET_SUBGRAPH_BACKEND`: Backend of `mx.subgraph` that rewrites the graphs of blocks and of each `CachedOp`; \
     NONE and MKLDNN change nothing. Value: NONE, MKLDNN or the name of a backend. Default: NONE.",
    "`MXNET_PROFILER_AUTOSTART`: 1: the profiler runs from the import of mxrt on. Value: 0 or 1. Default: 0.",
];

/// One entry of a list, wrapped and indented below its first line.
fn entry(text: &str) -> String {
    let mut lines = vec![String::from("-")];
    for word in text.split_whitespace() {
        if lines.last().is_some_and(|line| line.len() + 1 + word.len() > WIDTH) {
            lines.push(String::from(" "));
        }
        let line = lines.last_mut().expect("a line");
        line.push(' ');
        line.push_str(word);
    }
    lines.join("\n") + "\n"
}

fn page() -> String {
    let mut page = String::from(
        "# Settings\n\n\
         Written by crates/mxrt/tests/interface/settings_page.rs from the tables of the program; do not edit.\n\n\
         ## Environment variables\n\n\
         mxrt reads them once, when it is first used. A variable that is set to nothing counts as not set. A\n\
         value that is refused is an error that names the variable. `mxrt info` prints what is set and names\n\
         variables that mxrt does not read; `mxrt info --settings` prints this list. The settings of\n\
         `mxrt serve` are variables `MXRT_SERVE_KEY`, too: [the command](commands.md#mxrt-serve) lists them.\n",
    );
    let mut subjects: Vec<&str> = Vec::new();
    for setting in SETTINGS {
        if !subjects.contains(&setting.subject) {
            subjects.push(setting.subject);
        }
    }
    for subject in subjects {
        writeln!(page, "\n### {subject}\n").expect("text");
        for setting in SETTINGS.iter().filter(|setting| setting.subject == subject) {
            let end = format!("Value: {}. Default: {}.", setting.expects, setting.default);
            page += &entry(&format!("`{}`: {} {end}", setting.name, setting.doc));
        }
    }
    page += "\n### Python package\n\nPython code reads these when it needs them.\n\n";
    for line in OF_PYTHON {
        page += &entry(line);
    }
    page += "\n## Options of a model\n\n\
             `net.hybridize(...)`, `CachedOp(symbol, flags)` and `CachedOpFlags::parse` take them by name.\n\n";
    for flag in CachedOpFlags::definitions() {
        let default = match flag.default {
            None => "It has to be given.".to_owned(),
            Some("") => "Default: empty.".to_owned(),
            Some(default) => format!("Default: `{default}`."),
        };
        page += &entry(&format!("`{}` ({}): {}. {default}", flag.name, flag.type_name(), flag.doc));
    }
    page += "\n## Options of a call\n\n\
             Calls of compiled graphs take them as keywords: blocks, `CachedOp` and `Module.forward`.\n\n";
    for option in CALL_OPTIONS {
        let text = format!("`{}`: {} Value: {}. Default: {}.", option.name, option.doc, option.expects, option.default);
        page += &entry(&text);
    }
    page
}

/// The beginning of the types of the options of calls.
const TYPES: &str = r#""""Options of calls. Written by crates/mxrt/tests/interface/settings_page.rs; do not edit."""

from __future__ import annotations

from typing import TypedDict


class CallOptions(TypedDict, total=False):
    """The keywords of a call of a compiled graph; docs/settings.md says what they do."""

"#;

fn types_of_call_options() -> String {
    let fields = CALL_OPTIONS.iter().map(|option| format!("    {}: {}\n", option.name, option.python_type));
    TYPES.to_owned() + &fields.collect::<String>()
}

/// Whether a file says `wanted`; with `MXRT_WRITE` it does afterwards.
fn is_up_to_date(name: &str, wanted: &str) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    if std::env::var_os("MXRT_WRITE").is_some() {
        std::fs::write(&path, wanted).expect("a file");
    }
    std::fs::read_to_string(&path).unwrap_or_default() == wanted
}

#[test]
fn the_page_of_settings_is_up_to_date() {
    assert!(is_up_to_date("docs/settings.md", &page()), "docs/settings.md is old; `make generate` writes it");
}

#[test]
fn the_types_of_call_options_are_up_to_date() {
    let name = "python/mxrt/_operators/call_options.py";
    assert!(is_up_to_date(name, &types_of_call_options()), "{name} is old; `make generate` writes it");
}

#[test]
fn every_variable_has_one_row() {
    for (i, setting) in SETTINGS.iter().enumerate() {
        assert!(SETTINGS[..i].iter().all(|other| other.name != setting.name), "{} occurs twice", setting.name);
        for text in [setting.expects, setting.default, setting.doc, setting.subject] {
            assert!(!text.is_empty(), "{} lacks a text", setting.name);
        }
    }
}

/// A default that is a number is what an empty environment gives.
#[test]
fn defaults_in_the_table_are_those_of_the_program() {
    let without = mxrt::internal::Settings::from_environment(&|_| None).expect("settings");
    for setting in
        SETTINGS.iter().filter(|setting| setting.default.parse::<u64>().is_ok() || setting.name.ends_with("_MODE"))
    {
        let find = |name: &str| (name == setting.name).then(|| setting.default.to_owned());
        let with = mxrt::internal::Settings::from_environment(&find).expect(setting.name);
        let shown = |settings: &mxrt::internal::Settings| {
            let sim = mxrt::internal::devices::SimSettings { memory: None, ..settings.devices.sim.clone() };
            let (bulk, streams) = (settings.engine.bulk_size, settings.engine.compute_streams);
            format!("{:?} {:?} {bulk:?} {streams} {sim:?}", settings.plans, settings.debug)
        };
        assert_eq!(shown(&with), shown(&without), "{}", setting.name);
    }
    let find = |name: &str| (name == "MXNET_ENGINE_TYPE").then(|| "ThreadedEnginePerDevice".to_owned());
    let with = mxrt::internal::Settings::from_environment(&find).expect("settings");
    assert_eq!(with.engine.kind, without.engine.kind);
}
