//! How an operator runs: kernels, their cost, typed access to arrays, imperative calls and random
//! streams.

mod bound_operator;
mod channels_last;
mod cost;
mod data_dependent;
mod device;
mod draw_form;
mod elements;
mod form;
mod form_parts;
mod half;
mod in_dtypes;
mod int8_form;
mod invoke;
mod kernel;
mod matrix_form;
mod operator_cache;
mod par;
mod profiled_name;
mod random_stream;

pub(crate) use bound_operator::{check_call, check_context};
pub use channels_last::{ChannelsLast, LastInput, channels_last, channels_last_type};
pub use cost::{binary_picoseconds, elementwise_ns, program_picoseconds, streaming_ns, unary_picoseconds};
pub use data_dependent::{invoke_data_dependent, run_data_dependent};
pub use device::{
    DeviceKernel, DeviceKernelTable, DeviceKernels, DeviceOperands, LibraryUse, bind_device_kernel, bind_form,
    check_device_kernels, device_has_libraries, no_kernel, set_device_kernels,
};
pub use draw_form::DrawForm;
pub(crate) use elements::{
    check_float, check_integers, check_known, check_numeric, copy_first, dispatch, dispatch_size, elements,
    elements_mut, floats, integers, packed_elements, scratch, store_floats, store_integers,
};
pub(crate) use form::{BoundKernel, MaybeForm, for_all, for_floats, for_numeric, for_wide};
pub use form::{KernelForm, form_of};
pub use form_parts::{
    Anchors, MatrixSteps, Move, Ordered, PositionKind, RandomForm, Resampling, SequenceKind, SumEpilogue,
};
pub(crate) use half::bind_through_single;
pub(crate) use in_dtypes::{convert, in_dtypes, in_single};
pub use int8_form::{Int8Form, Int8Windows, RangeSource};
pub use invoke::{Invocation, invoke, invoke_cached};
pub use kernel::{
    Kernel, KernelCall, KernelOptions, Packing, Signature, Unpack, bind_kernel, costed_kernel_fn, in_place_kernel_fn,
    kernel_fn,
};
pub use matrix_form::{MatrixForm, Triangle};
pub use operator_cache::{BoundOperatorCache, CallAttrs};
pub use par::{DevicePar, EnginePar, catch_refusal};
pub use profiled_name::name_operators_inside;
pub(crate) use profiled_name::profiled_name;
pub use random_stream::{RandomKey, RandomState};
