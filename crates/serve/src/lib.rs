//! Serves models of mxrt over HTTP/1.1, by the Open Inference Protocol (version 2).
//!
//! A [`Server`] answers for the models of a [`Repository`]. Its I/O threads read and write; they
//! compute nothing that takes longer than a few microseconds. A request becomes a call of the
//! model's graph, and the engine's callback completes it, so no thread waits per request.
//!
//! | module | does |
//! | --- | --- |
//! | `protocol` | text and bytes of requests and answers; nothing that a client says is trusted |
//! | `service` | what the server does, for every transport |
//! | `endpoints` | HTTP: one file and one row for each path |
//! | `batch` | joins requests that wait while a model computes |
//! | `queue` | how many requests and bytes may wait |
//! | `repository`, `model` | models by name and version; one model: loading, types, calls |
//! | `metrics` | counters and histograms |
//! | `server`, `connection`, `body` | accepting, limits of time and size, the end |
#![forbid(unsafe_code)]

mod batch;
mod body;
mod config;
mod connection;
mod endpoints;
mod metrics;
mod model;
pub mod protocol;
mod queue;
mod refusal;
mod repository;
mod server;
mod service;

pub use config::Config;
pub use model::{BatchChoice, Model, ModelSpec};
pub use refusal::{Outcome, Refusal};
pub use repository::{IndexEntry, Repository};
pub use server::{Server, StartError};
