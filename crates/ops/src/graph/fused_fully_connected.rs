//! `_fused_fully_connected`: a dense layer with what follows it.

use super::{INPUTS, epilogue, infer_with_residual, with_epilogue};
use crate::nn::fully_connected;
use crate::nn::fully_connected_kernel::{bind_dense, dense_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_fused_fully_connected",
    doc: "FullyConnected, then the addition of a residual, then an activation.",
    inputs: INPUTS,
    attrs: ATTRS,
    infer_shape: |shapes| infer_with_residual(shapes, fully_connected::infer_shape),
    bind: |attrs, signature| bind_dense(signature, epilogue(attrs)),
    form: |attrs, signature| dense_form(signature, epilogue(attrs)),
    internal: true,
    ..OpDef::BASE
}];

static ATTRS: &[AttrDef] = &with_epilogue::<3, 8>(fully_connected::ALL_ATTRS);

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn bias_residual_and_relu_follow_the_product() {
        let y = OpTest::new("_fused_fully_connected")
            .attr("num_hidden", "2")
            .attr("with_residual", "True")
            .attr("act_type", "relu")
            .f32([1, 2], &[1.0, 2.0])
            .f32([2, 2], &[1.0, 1.0, -1.0, -1.0])
            .f32([2], &[0.5, 0.5])
            .f32([1, 2], &[1.0, 2.0])
            .run();
        assert_eq!(f32s(&y, [1, 2]), [4.5, 0.0]);
    }
}
