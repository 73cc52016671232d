//! The operators: one file and one `mod` line each, from which `build.rs` writes the `table`.
//!
//! An operator joins attribute parsing, shape and type inference and kernels; from its definition
//! come `mx.nd.*`, `mx.sym.*`, signatures, docstrings and type stubs. It knows nothing of graphs,
//! files or Python.
#![forbid(unsafe_code)]

mod definition;
mod execution;
mod prelude;
mod rewrite;
mod table;

mod blocked;
mod control;
mod create;
mod custom;
mod fused;
mod graph;
mod image;
mod index;
mod linalg;
mod math;
mod nn;
mod numpy;
mod quantized;
mod random;
mod sequence;
mod shape;
mod sparse;
mod vision;

#[cfg(test)]
mod testing;

pub use crate::blocked::convolution::with_pooling;
pub use crate::custom::{
    Callback, CustomArrays, CustomCall, CustomOperator, CustomOperators, CustomReply, CustomResults, CustomTypes,
    Question, callback, register_custom_operators,
};
pub use crate::definition::{
    AttrDef, AttrKind, AttrValue, Attrs, Bind, DTypes, Form, Inputs, MAX_OUTPUTS, OpDef, Outputs, Registry, Shapes,
    belongs_to_training, infer_types, registry, training_message,
};
pub use crate::execution::{
    Anchors, BoundOperatorCache, CallAttrs, ChannelsLast, DeviceKernel, DeviceKernelTable, DeviceKernels,
    DeviceOperands, DevicePar, DrawForm, EnginePar, Int8Form, Int8Windows, Invocation, Kernel, KernelCall, KernelForm,
    KernelOptions, LastInput, LibraryUse, MatrixForm, MatrixSteps, Move, Ordered, Packing, PositionKind, RandomForm,
    RandomKey, RandomState, RangeSource, Resampling, SequenceKind, Signature, SumEpilogue, Triangle, Unpack,
    binary_picoseconds, bind_device_kernel, bind_form, bind_kernel, catch_refusal, channels_last, channels_last_type,
    check_device_kernels, costed_kernel_fn, device_has_libraries, elementwise_ns, form_of, in_place_kernel_fn, invoke,
    invoke_cached, invoke_data_dependent, kernel_fn, name_operators_inside, no_kernel, program_picoseconds,
    run_data_dependent, set_device_kernels, streaming_ns, unary_picoseconds,
};
pub use crate::fused::{InnerValue, NESTED, NestedGraph, NestedNode, NestedWriter, has_nested_graph, unfolded};
pub use crate::image::files::{ImageChannels, ImageFiles, set_image_files};
pub use crate::nn::fully_connected_kernel::DenseForm;
pub use crate::numpy::choice::weights_error;
pub use crate::numpy::multinomial::probabilities_error;
pub use crate::quantized::{infinity_error, is_quantizable, range_error};
pub use crate::rewrite::{
    BlockedForm, BlockedLayout, ConcatenatedInput, Elementwise, ElementwiseProgram, Layout, Lines, LinesForm,
    MAX_PROGRAM_STEPS, OperandBroadcast, Rewrites, ShapesOfContents, StepInput, layout_attrs, layouts, program_step,
};
pub use crate::sequence::ctc_loss::sequence_error;
pub use crate::sparse::{
    LastStoredCall, StorageChoice, choose_storage, convert_into, dense_copies_text, fallback_warning, invoke_again,
    invoke_stored, knows_storage, makes_sparse, result_storage, to_storage,
};
pub use mxrt_kernels::Par;
pub use mxrt_kernels::amx::is_available as has_amx;
pub use mxrt_kernels::conv::{ConvSignature, ConvTable, Measured, Method, Precision, Winograd, chosen, measure};
pub use mxrt_kernels::isa::Isa;
pub use mxrt_kernels::par::par_chunks_mut;
