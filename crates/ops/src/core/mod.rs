//! What an operator is: its definition, attributes, inference and kernels.

mod attrs;
mod bound;
#[cfg(test)]
mod by_rows_tests;
mod call;
mod cost;
mod def;
mod elementwise;
mod infer;
mod invoke;
mod kernel;
mod layout;
mod random;
mod registry;
mod support;

pub use attrs::{AttrDef, AttrKind, AttrValue, Attrs};
pub use bound::{BoundCache, Given};
pub use call::{DevicePar, EnginePar};
pub use cost::{binary_picoseconds, elementwise_ns, program_picoseconds, streaming_ns, unary_picoseconds};
pub use def::{Bind, Inputs, JoinPart, OpDef, Outputs};
pub use elementwise::{Elementwise, MAX_STEPS, Program, Source, Spread, program_step};
pub use infer::{DTypes, Shapes, infer_types};
pub use invoke::{Invocation, invoke, invoke_cached};
pub use kernel::{
    Kernel, KernelCall, KernelOptions, Packing, Signature, Unpack, costed_kernel_fn, in_place_kernel_fn, kernel_fn,
};
pub use layout::{BlockedForm, BlockedLayout, Layout, layout_attrs};
pub(crate) use layout::{LAYOUTS, OUT_LAYOUT, layouts};
pub use mxrt_kernels::Par;
pub use mxrt_kernels::conv_fast::{ConvSignature, ConvTable, Measured, Method, Precision, Winograd, chosen, measure};
pub use mxrt_kernels::isa::Isa;
pub use mxrt_kernels::par::par_chunks_mut;
pub use random::{RandomKey, RandomState};
pub use registry::{Registry, registry};
pub(crate) use support::{
    Dims, check_integers, checked_product, copy_first, dispatch, dispatch_size, elements, elements_mut, extents,
    integers, is_within_rows, kernel_error, not_implemented, packed_elements, resolve_axes, resolve_axis, rows_of_data,
    scratch, shape_error, type_error, unsupported_dtype, value_error, wrong_arity,
};
