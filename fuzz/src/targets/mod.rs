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
mod symbol;

use crate::Seeds::{Made, OfTests, Own};
use crate::Target;

const GRAPHS: &str = "tests/conformance/data/graphs";

/// All of them.
pub static TARGETS: &[Target] = &[
    Target { name: "calls", run: calls::run, seeds: Made },
    Target { name: "csv", run: csv::run, seeds: Own },
    Target { name: "csv_parts", run: csv_parts::run, seeds: Own },
    Target { name: "graphs", run: graphs::run, seeds: Made },
    Target { name: "image", run: image::run, seeds: Own },
    Target { name: "index", run: index::run, seeds: Own },
    Target { name: "infer_request", run: infer_request::run, seeds: Own },
    Target { name: "libsvm", run: libsvm::run, seeds: Own },
    Target { name: "mnist", run: mnist::run, seeds: Own },
    Target {
        name: "params",
        run: params::run,
        seeds: OfTests(&[(GRAPHS, ".params"), ("tests/models/digits_cnn", ".params")]),
    },
    Target { name: "records", run: records::run, seeds: Own },
    Target {
        name: "symbol",
        run: symbol::run,
        seeds: OfTests(&[
            (GRAPHS, "-symbol.json"),
            ("tests/models/cnn_int8_fused", "-symbol.json"),
            ("tests/models/legacy_mlp", "-symbol.json"),
            ("tests/models/lstm_rows", "-symbol.json"),
        ]),
    },
];
