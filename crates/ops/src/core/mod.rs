//! What an operator is: its definition, attributes, inference and kernels.

mod attrs;
mod call;
mod def;
mod infer;
mod invoke;
mod kernel;
mod random;
mod registry;

pub use attrs::{AttrDef, AttrKind, AttrValue, Attrs};
pub use call::EnginePar;
pub use def::{Inputs, OpDef, Outputs};
pub use infer::{DTypes, Shapes, infer_types};
pub use invoke::{Invocation, invoke};
pub use kernel::{Kernel, KernelCall, KernelOptions, Packing, Signature, kernel_fn};
pub use random::{RandomKey, RandomState};
pub use registry::{Registry, registry};
