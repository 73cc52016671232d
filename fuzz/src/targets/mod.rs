//! The targets, one file and one row each.

mod calls;
mod csv;
mod csv_parts;
mod graphs;
mod image;
mod index;
mod infer_request;
mod libsvm;
mod mnist;
mod params;
mod records;
mod settings;
mod sparse;
mod symbol;

use crate::Seeds::{Made, OfTests, Own};
use crate::Target;

const GRAPHS: &str = "tests/conformance/data/graphs";

/// All of them.
pub static TARGETS: &[Target] = &[
    Target { name: "calls", run: calls::run, bounded: false, seeds: Made },
    Target { name: "csv", run: csv::run, bounded: true, seeds: Own },
    Target { name: "csv_parts", run: csv_parts::run, bounded: true, seeds: Own },
    Target { name: "graphs", run: graphs::run, bounded: false, seeds: Made },
    Target { name: "image", run: image::run, bounded: true, seeds: Own },
    Target { name: "index", run: index::run, bounded: true, seeds: Own },
    Target { name: "infer_request", run: infer_request::run, bounded: false, seeds: Own },
    Target { name: "libsvm", run: libsvm::run, bounded: true, seeds: Own },
    Target { name: "mnist", run: mnist::run, bounded: true, seeds: Own },
    Target {
        name: "params",
        run: params::run,
        bounded: false,
        seeds: OfTests(&[(GRAPHS, ".params"), ("tests/models/digits_cnn", ".params")]),
    },
    Target { name: "records", run: records::run, bounded: true, seeds: Own },
    Target { name: "settings", run: settings::run, bounded: false, seeds: Own },
    Target { name: "sparse", run: sparse::run, bounded: false, seeds: Made },
    Target {
        name: "symbol",
        run: symbol::run,
        bounded: false,
        seeds: OfTests(&[
            (GRAPHS, "-symbol.json"),
            ("tests/models/cnn_int8_fused", "-symbol.json"),
            ("tests/models/legacy_mlp", "-symbol.json"),
            ("tests/models/lstm_rows", "-symbol.json"),
        ]),
    },
];
