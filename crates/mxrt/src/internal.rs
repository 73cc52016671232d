//! The part that borders to C and Python, tests and benchmarks take from the crates below.
//!
//! It is no part of the interface: any version may change it.

pub use crate::features::{cpu_features, mxnet_features};
pub use crate::predictor::{Predictor, PredictorInputs};
pub use crate::process::Process;
pub use crate::settings::Settings;
pub use mxrt_engine::{
    Config, Cost, Details, DeviceId, DeviceKind, Engine, EngineError, Failure, FailureKind, ForkSafeLazy,
    ForkSafeMutex, ForkSafeOnce, ForkSafeRwLock, MAX_CORES, OnComplete, OpError, PushSite, RequestScope, WaitError,
    WrongInput, memory, profile, reserve, set_inside_call, start_thread,
};
pub use mxrt_graph::{
    BoundOp, BuildOptions, CALL_OPTIONS, CacheStats, CachedOp, CachedOpFlags, CallOption, CallValue, Executor,
    ExecutorSite, GraphError, InferredShapes, InferredTypes, Interrupter, LoadOptions, NodeEntry, PassChoice,
    Reshaping, SharedArrays, Started, TrainingOp, TrainingScope, TwoModeOp, Watch, WatchCallback, invoke,
    invoke_custom, number_of_graphs, symbol,
};
pub use mxrt_io as io;
pub use mxrt_ops::{
    AttrDef, AttrKind, BoundOperatorCache, CallAttrs, ConvSignature, ConvTable, CustomArrays, CustomCall,
    CustomOperator, CustomOperators, CustomTypes, Inputs, Invocation, Isa, KernelOptions, Measured, Method, OpDef,
    Question, RandomState, Winograd, chosen, convert_into, infer_types, invoke_cached, measure,
    register_custom_operators, registry,
};
pub use mxrt_tensor::index::{Region, copy_region};
pub use mxrt_tensor::{
    CsrRef, DeviceType, External, Launch, NpShapeScope, PartialShape, ReadGuard, Ready, RowSparseRef, Shared,
    SparseContent, StorageType, StoredGuard, StoredInput, dlpack, launch, np_shape_scope, set_np_shape_scope,
};

pub mod devices {
    //! The kinds of devices, and what is known of them.
    pub use crate::devices::*;
}

pub mod settings {
    //! The settings that the environment gives.
    pub use crate::settings::*;
}
