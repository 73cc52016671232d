//! Runs models of Apache MXNet for inference, from any number of threads.
//!
//! ```
//! # fn main() -> Result<(), mxrt::Error> {
//! # let json = r#"{"nodes": [{"op": "null", "name": "data", "inputs": []},
//! #                          {"op": "relu", "name": "y", "inputs": [[0, 0, 0]]}],
//! #                "arg_nodes": [0], "heads": [[1, 0, 0]]}"#;
//! # let model = mxrt::Model::builder()
//! #     .from_symbol(mxrt::Symbol::load_json(json)?.symbol, Default::default())?;
//! # #[cfg(any())]
//! let model = mxrt::Model::load("resnet18", 0)?; // resnet18-symbol.json, resnet18-0000.params
//! let y = model.run([("data", ([2, 2], &[1.0f32, -2.0, 3.0, -4.0]))])?;
//! assert_eq!(y[0].to_vec::<f32>()?, [1.0, 0.0, 3.0, 0.0]);
//! # Ok(())
//! # }
//! ```
//!
//! # Loading
//!
//! [`Model::load`] takes the prefix and the epoch of the two files that `net.export` and
//! `mx.model.save_checkpoint` write, of any version of MXNet up to 1.9.1. [`Model::load_bytes`]
//! takes their contents. [`Model::inputs`] and [`Model::outputs`] give names, shapes and element
//! types. Variables of the graph that the file of parameters does not name are the inputs. Labels of
//! losses may be left out, as they count while training only.
//!
//! [`Model::builder`] chooses threads, memory limit, precision, device and more:
//!
//! ```no_run
//! # fn main() -> Result<(), mxrt::Error> {
//! use mxrt::{Model, Precision};
//!
//! let model = Model::builder().threads(8).precision(Precision::Bf16).inputs(["data"]).load("resnet18", 0)?;
//! println!("{model:?}"); // Model(data: float32 of any shape -> ...)
//! # Ok(())
//! # }
//! ```
//!
//! Environment variables count only with [`ModelBuilder::from_environment`].
//!
//! # Threads
//!
//! [`Model`] is `Send`, `Sync` and cheap to clone, and [`Model::run`] takes `&self`. Any number of
//! threads call one model, or many, concurrently and with inputs of different shapes. The
//! number of requests that compute concurrently is at most the number of cores, first come, first
//! served; a lone request is split over idle cores. Results do not depend on the number of threads:
//! their bits are equal.
//!
//! ```
//! # fn serve(model: &mxrt::Model, images: &[Vec<f32>]) {
//! std::thread::scope(|scope| {
//!     for image in images {
//!         scope.spawn(move || model.run([("data", ([1, 3, 224, 224], image))]));
//!     }
//! });
//! # }
//! ```
//!
//! Under load, [`CallOptions`] say which call goes first, and from when on an answer is of no use:
//! [`Model::run_with`].
//!
//! # Futures
//!
//! [`Model::run_async`] begins a call and returns a future, for tokio or any other executor. No
//! thread waits for it. Dropping the future cancels a call that has not started.
//!
//! ```
//! # async fn ask(model: &mxrt::Model, image: &mxrt::NDArray) -> Result<(), mxrt::Error> {
//! let options = mxrt::CallOptions::default().within(std::time::Duration::from_millis(100));
//! let y = model.run_async_with([("data", image)], &options)?.await?;
//! # Ok(())
//! # }
//! ```
//!
//! Arrays that operators compute in the background are futures by [`NDArray::ready`], take callbacks
//! by [`NDArray::on_ready`], and say by [`NDArray::is_ready`] whether they are there.
//!
//! # Errors
//!
//! [`Error`] is the error of every function of a model, and all others of this crate convert into
//! it. It has a [kind](Error::kind), the [operator](Error::operator) and the [node](Error::node)
//! that failed, and, where an input does not fit, its [name](Error::input), what was
//! [passed](Error::got) and what is [wanted](Error::wanted). Nothing that a file or an input can
//! contain makes this crate panic; a panic of an operator is an error of kind
//! [`Panic`](ErrorKind::Panic) of the calls that depend on it.
//!
//! # Custom operators
//!
//! [`register_operator`](operators::register_operator) gives nodes of the operator `Custom` a meaning:
//! a type that implements [`Operator`](operators::Operator), or a closure. They run as steps of plans,
//! like all other operators.
//!
//! # Performance
//!
//! * The first call with new shapes builds a plan, which takes milliseconds, and packs the weights.
//!   [`Model::plan`] builds it beforehand and shows it: steps, kernels, memory, estimated times.
//!   Models keep 64 plans each ([`ModelBuilder::plan_cache`]).
//! * An input that is passed more than once is best made once, by [`Model::array`]. Slices are
//!   copied at each call, which costs little compared with most models.
//! * [`NDArray::read`] gives access to a result without a copy.
//! * Many threads with one request each are faster than one thread with batches if requests arrive
//!   one by one; a large batch is divided over the cores automatically.
//! * Models with equal choices share an engine, and with it the cores. Two engines compete for
//!   them.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | adds |
//! | --- | --- |
//! | `ndarray` | arrays of that crate as inputs, and `types::to_ndarray` for results |
//! | `half` | the types `types::f16` and `types::bf16` |
//! | `serde` | [`PlanReport`](plan::PlanReport) implements `Serialize` |
//! | `tracing` | a span `mxrt.request` for each call, and an event at its end |
//! | `sim` | simulated devices |
#![forbid(unsafe_code)]

mod devices;
pub mod engine;
mod error;
mod features;
mod images;
#[doc(hidden)]
pub mod internal;
mod model;
mod network;
pub mod operators;
pub mod plan;
mod predictor;
mod process;
mod settings;
mod trace;
pub mod types;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use error::{Error, ErrorKind};
pub use model::{Input, Model, ModelBuilder, Outputs, Pending, ValueInfo};
pub use mxrt_graph::{CallOptions, Symbol};
pub use mxrt_io::params;
pub use mxrt_ops::Precision;
pub use mxrt_tensor::{Context, DType, NDArray, Shape};
