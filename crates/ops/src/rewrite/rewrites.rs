//! The rewrites that graph passes may apply to an operator.

use super::{BlockedForm, Elementwise, LinesForm};
use crate::definition::Attrs;
use crate::execution::{Kernel, Signature};
use mxrt_engine::OpError;
use mxrt_kernels::Par;
use mxrt_tensor::{Shape, TensorRef};
use std::ops::Range;

/// An input of an operator that only concatenates its inputs.
pub struct ConcatenatedInput {
    /// The bytes of the output that hold it.
    pub bytes: Range<usize>,
    /// Writes the input there and leaves the other content of these bytes unchanged. `None` if the
    /// bytes hold nothing else.
    pub merge: Option<Box<dyn Kernel>>,
}

/// The rewrites that graph passes may apply to an operator, besides running it as its definition
/// says.
///
/// [`OpDef::rewrites`](crate::OpDef::rewrites) refers to one of these. The default,
/// [`Rewrites::NONE`], allows nothing and is always correct. A pass calls these functions and never
/// looks at the name of an operator. A new kind of rewrite is a field here with a default in
/// `NONE`; no definition changes for it.
///
/// # Kernels of devices, subgraphs, and operators of the program
///
/// Three features that an operator may need are not rewrites:
///
/// * **Kernels of a device.** The definition says what the operator computes
///   ([`OpDef::form`](crate::OpDef::form)). The crate of the device has kernels by form
///   ([`DeviceKernels`](crate::DeviceKernels)), which
///   [`bind_device_kernel`](crate::bind_device_kernel) asks for. An operator without one is an
///   error that names operator and device. Where a device shares the host's memory the host's
///   kernel runs.
/// * **Subgraphs.** `_foreach`, `_while_loop` and `_cond` run graphs, which this crate cannot
///   compile. Their definitions have names and attributes only. The graph crate infers types
///   through the graphs of such a node and makes a step of their plans, before it would call
///   `bind_kernel`.
/// * **Operators of the program.** Parsing the attributes of `Custom` finds the operator
///   ([`register_custom_operators`](crate::register_custom_operators)), which then is an attribute.
///   Graphs call it as a stage of their own ([`Callback`](crate::Callback)), unless it runs as a
///   kernel.
pub struct Rewrites {
    /// Whether, at inference, output 0 has the bytes of input 0, perhaps under another shape
    /// (Dropout, Reshape). Plans make no step of such an operator.
    pub is_identity: fn(&Attrs) -> bool,
    /// The function of single elements that the operator computes, if that is all it does where all
    /// arrays are float32, and of one shape or broadcast as [`Elementwise::broadcast`] says. Chains
    /// of these become one loop.
    pub elementwise: fn(&Attrs) -> Option<Elementwise>,
    /// The form of the operator that works on blocked operands, if there is one for these types.
    pub blocked_form: fn(&Attrs, &Signature<'_>) -> Option<BlockedForm>,
    /// The operands of an operator on blocked data that may be in lines of bf16.
    pub lines: fn(&Attrs, &Signature<'_>) -> Option<LinesForm>,
    /// Whether every row (along the first axis) of the outputs depends on the same row of the
    /// inputs named by the flags, and on the other inputs as a whole. Large batches of such
    /// operators are run in parts.
    pub row_wise: fn(&Attrs, &Signature<'_>, &[bool]) -> bool,
    /// The positions of the inputs in the output, if for these types the operator only concatenates
    /// them. All inputs fit the output's bytes. Those that need `merge` come after the ones that
    /// they share bytes with.
    pub concatenation: fn(&Attrs, &Signature<'_>) -> Option<Vec<ConcatenatedInput>>,
    /// The shapes of an operator's outputs, if these depend on the contents of its inputs.
    /// Inference leaves extents that depend on contents unknown. `bind` is called with the true
    /// shapes, when the inputs are ready. Plans end at such an operator: see the graph crate.
    pub shapes_of_contents: Option<ShapesOfContents>,
}

/// Shapes of all outputs from the contents of the inputs.
pub type ShapesOfContents = fn(&dyn Par, &Attrs, &[TensorRef<'_>]) -> Result<Vec<Shape>, OpError>;

impl Rewrites {
    /// No rewrite at all; the fields that a definition does not set.
    pub const NONE: Rewrites = Rewrites {
        is_identity: |_| false,
        elementwise: |_| None,
        blocked_form: |_, _| None,
        lines: |_, _| None,
        row_wise: |_, _, _| false,
        concatenation: |_, _| None,
        shapes_of_contents: None,
    };
}
