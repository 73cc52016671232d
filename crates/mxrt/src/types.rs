//! Element types, types of tensors and views of their memory.

#[cfg(feature = "ndarray")]
pub use crate::model::to_ndarray;
#[cfg(feature = "half")]
pub use half::{bf16, f16};
pub use mxrt_tensor::{Element, TensorMut, TensorRef, TensorType};
