//! `_fused_convolution`: a convolution with what follows it.

use super::{INPUTS, epilogue, infer_with_residual, with_epilogue};
use crate::blocked;
use crate::nn::convolution;
use crate::nn::convolution_kernel::{bind_convolution, convolution_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_fused_convolution",
    doc: "Convolution, then the addition of a residual, then an activation.",
    inputs: INPUTS,
    attrs: ATTRS,
    infer_shape: |shapes| infer_with_residual(shapes, convolution::infer_shape),
    bind: |attrs, signature| bind_convolution(attrs, signature, epilogue(attrs)),
    form: |attrs, _| convolution_form(attrs, epilogue(attrs)),
    internal: true,
    rewrites: &Rewrites {
        blocked_form: |attrs, signature| blocked::convolution::form(attrs, signature, epilogue(attrs)),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

static ATTRS: &[AttrDef] = &with_epilogue::<11, 16>(convolution::ALL_ATTRS);

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn the_residual_is_added_before_the_activation() {
        let y = OpTest::new("_fused_convolution")
            .attr("kernel", "(1, 1)")
            .attr("num_filter", "1")
            .attr("with_residual", "True")
            .attr("act_type", "clip")
            .attr("act_max", "6.0")
            .f32([1, 1, 1, 3], &[1.0, 2.0, -4.0])
            .f32([1, 1, 1, 1], &[2.0])
            .f32([1], &[1.0])
            .f32([1, 1, 1, 3], &[-1.0, 5.0, 1.0])
            .run();
        assert_eq!(f32s(&y, [1, 1, 1, 3]), [2.0, 6.0, 0.0]);
    }
}
