//! Typed arrays over engine memory: element types, shapes, contexts, views and [`NDArray`].
//!
//! A tensor knows which engine variable guards it and how to push work over it; it knows no
//! operators.

mod array;
pub mod attrs;
mod content;
mod context;
mod derived;
mod device;
pub mod dlpack;
mod dtype;
mod exchange;
mod external;
mod guard;
pub mod index;
mod launch;
mod lent;
mod memory;
mod np_shape;
mod params;
mod place;
mod ready;
mod release;
mod request;
mod result_array;
mod shape;
mod shared_memory;
mod sparse;
mod view;

pub use array::{Interest, NDArray, copied};
pub use context::{Context, DeviceType};
pub use derived::DerivedFrom;
pub use device::{
    DeviceArguments, DeviceLaunch, InputUse, RecordedCall, RegionKernelTable, RegionKernels, launch_native, launch_on,
    no_device_kernel, set_region_kernels,
};
pub use dtype::{DType, Element, UnknownDType};
pub use exchange::{DeviceImport, Shared};
pub use external::External;
pub use guard::ReadGuard;
pub use launch::{ArrayTypes, Launch, launch, launch_typed};
pub use mxrt_engine::device::ConsumerStream;
pub use np_shape::{NpShapeScope, is_np_shape, np_shape_scope, set_np_shape_scope};
pub use params::ParameterSet;
pub use ready::Ready;
pub use release::{ReleaseBatch, RestoreSource};
pub use request::{CallArrays, CallLaunch, CallPart, CallProgress, launch_call};
pub use result_array::{DeferredResult, ResultArray, ResultPlace};
pub use shape::{PartialShape, Shape, ShapeError};
pub use sparse::{
    CsrRef, RowSparseRef, SparseContent, StorageType, StoredGuard, StoredInput, StoredOutput, launch_stored,
};
pub use view::{TensorMut, TensorRef, TensorType, describe_inputs};
