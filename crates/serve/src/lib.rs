//! Serves models of mxrt over HTTP and gRPC, by the Open Inference Protocol (version 2).
//!
//! A [`Server`] serves the models of a [`Configuration`]. Its I/O threads read and write. They
//! compute nothing that takes longer than a few microseconds. A request becomes a call of the
//! model's graph, and the engine's callback completes it, so no thread waits per request.
//!
//! | module | does |
//! | --- | --- |
//! | `protocol` | text and bytes of requests and answers; nothing that a client says is trusted |
//! | `service` | methods of the server, for every transport |
//! | `endpoints` | HTTP: one file and one row for each endpoint |
//! | `batch` | joins requests that wait while a model computes |
//! | `settings` | settings of the server and of models: one row each |
//! | `account`, `answers`, `background` | charging a request for its costs, see ACCOUNTING.md |
//! | `holds`, `begun` | what a call keeps until its end; requests that the shutdown waits for |
//! | `queue`, `turns` | bounds on waiting requests and bytes; scheduling of calls |
//! | `repository` | models by name and version, loaded and unloaded while the server runs |
//! | `model`, `graph_call` | one version of a model: loading, types; calls of its graph |
//! | `tls`, `tokens`, `watched` | TLS and bearer tokens, from files that may change |
//! | `preprocess`, `hooks` | preprocessing of images; functions of users |
//! | `metrics`, `log`, `traces` | counters and histograms; log lines; spans for OpenTelemetry |
//! | `grpc` | the same protocol over gRPC |
//! | `refusal`, `status`, `error` | answers without results; their status over HTTP and gRPC; errors of the start |
//! | `server`, `shared`, `listen` | connections, shutdown |
//! | `connection`, `progress` | time limits of connections and of answers |
//! | `body`, `encoding`, `answer` | bodies of requests and answers, and their compression |
//! | `heads`, `rest` | memory of the heads of requests, and of the server when it is idle |
#![deny(unsafe_code)]

mod account;
mod answer;
mod answers;
mod background;
mod batch;
mod begun;
mod body;
mod connection;
mod encoding;
mod endpoints;
mod error;
mod graph_call;
mod grpc;
mod heads;
mod holds;
mod hooks;
mod listen;
mod log;
mod metrics;
mod model;
mod preferences;
mod preprocess;
mod progress;
pub mod protocol;
mod queue;
mod refusal;
mod regular;
mod repository;
mod rest;
mod server;
mod service;
pub mod settings;
mod shared;
mod status;
mod tls;
mod tokens;
mod traces;
mod turns;
mod watched;

pub use batch::{Joining, LocalBatcher};
pub use error::StartError;
pub use hooks::{HookArray, HookError, HookLoader, HookRequest, HookTensor, HookTensors, Hooks};
pub use listen::{ListenAddr, Protocol};
pub use log::{Level, LogForm, log_line};
pub use preprocess::Preprocess;
pub use refusal::{Cause, Outcome, Refusal};
pub use repository::IndexEntry;
pub use server::Server;
pub use settings::{
    BatchChoice, Config, Configuration, Control, GrpcPort, ModelSettings, ModelSpec, SageMaker, VersionChoice,
};
pub use traces::Span;
