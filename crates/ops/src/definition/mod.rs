//! The definition of an operator: its names, attributes, inputs and outputs, inference, and the
//! lookup by name.

mod axes;
mod errors;
mod infer;
mod op_def;
mod registry;
mod signature;
mod training;

pub(crate) use axes::{
    Dims, checked_product, extents, resolve_axes, resolve_axis, resolve_new_axis, split_around, split_at, split_or_all,
};
pub(crate) use errors::{
    kernel_error, not_implemented, shape_error, type_error, unsupported_dtype, value_error, wrong_arity,
};
pub use infer::{DTypes, MAX_OUTPUTS, Shapes, infer_types};
pub(crate) use infer::{check_inputs, infer_with_outputs, infer_with_shapes};
pub use mxrt_tensor::attrs::{AttrDef, AttrKind, AttrValue, Attrs, ObjectParser};
pub use op_def::{Bind, Form, Inputs, OpDef, Outputs, StatePositions};
pub use registry::{Registry, registry};
pub use training::{belongs_to_training, training_message};
