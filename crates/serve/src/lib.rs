//! Serves models of mxrt over HTTP and gRPC, by the Open Inference Protocol (version 2).
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
//! | `tls`, `tokens`, `watched` | TLS and bearer tokens, from files that may change |
//! | `metrics` | counters and histograms |
//! | `grpc` | the same protocol over gRPC |
//! | `server`, `listen`, `connection`, `body`, `answer` | accepting, limits of time and size, the end |
#![deny(unsafe_code)]

mod answer;
mod batch;
mod body;
mod config;
mod connection;
mod endpoints;
mod grpc;
mod listen;
mod metrics;
mod model;
pub mod protocol;
mod queue;
mod refusal;
mod repository;
mod server;
mod service;
mod tls;
mod tokens;
mod watched;

pub use config::{Config, TlsFiles};
pub use listen::{Place, Speaks};
pub use model::{BatchChoice, Model, ModelSpec};
pub use refusal::{Outcome, Refusal};
pub use repository::{IndexEntry, Repository};
pub use server::{Server, StartError};
