//! mxrt for Rust programs: MXNet models, answered from any number of threads.
//!
//! A model is a [`Symbol`] (its `-symbol.json`) and parameters (its `.params`, see [`params`]). A
//! [`CachedOp`] makes the symbol callable; it is `Send + Sync`, and calling it returns [`NDArray`]s
//! at once, which are computed in the background and waited for when they are read. All of them
//! belong to an [`Engine`].
//!
//! ```
//! use mxrt::{CachedOp, CachedOpFlags, Config, Context, DType, Engine};
//! use mxrt::{NDArray, Symbol, TensorType};
//!
//! let engine = Engine::start(Config::default())?;
//! let json = r#"{"nodes": [{"op": "null", "name": "x", "inputs": []},
//!                          {"op": "relu", "name": "y", "inputs": [[0, 0, 0]]}],
//!                "arg_nodes": [0], "heads": [[1, 0, 0]]}"#;
//! let model = CachedOp::new(engine, &Symbol::load_json(json)?.symbol, &CachedOpFlags::default())?;
//! let x = NDArray::from_slice(engine, Context::cpu(0), [2, 2], &[1.0f32, -2.0, 3.0, -4.0])?;
//! let y = model.call(&[&x])?;
//! assert_eq!(y[0].read()?.tensor().as_slice::<f32>()?, [1.0, 0.0, 3.0, 0.0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/rust/serve.rs` in the repository loads a model from its files and serves it from
//! several threads.
#![forbid(unsafe_code)]

pub mod devices;
mod predictor;
pub mod settings;

pub use mxrt_engine::{
    Config, Cost, Engine, EngineError, EngineKind, Failure, FailureKind, ForkSafeMutex, ForkSafeRwLock, MAX_CORES,
    OnComplete, OpError, PushSite, RequestScope, WaitError, memory, profile, reserve,
};
pub use mxrt_graph::{
    BoundOp, BuildOptions, CALL_OPTIONS, CacheLimit, CacheStats, CachedOp, CachedOpFlags, CallOption, CallOptions,
    CallValue, Executor, ExecutorSite, GraphError, InferredShapes, InferredTypes, LoadOptions, NodeEntry, PassChoice,
    PlanReport, Reshaping, StepReport, Symbol, Watch, WatchCallback, symbol,
};
pub use mxrt_io as io;
pub use mxrt_io::params;
pub use mxrt_ops::{
    AttrDef, AttrKind, BoundOperatorCache, CallAttrs, ConvSignature, ConvTable, CustomCall, CustomOperator,
    CustomOperators, CustomTypes, Inputs, Invocation, Isa, KernelOptions, Measured, Method, OpDef, Precision,
    RandomState, Winograd, chosen, infer_types, invoke_cached, measure, register_custom_operators, registry,
};
pub use mxrt_tensor::{
    Context, DType, DeviceType, Element, External, Launch, NDArray, PartialShape, ReadGuard, Shape, Shared, TensorRef,
    TensorType, dlpack, launch,
};
pub use predictor::{Predictor, PredictorInputs};
pub use settings::Settings;
