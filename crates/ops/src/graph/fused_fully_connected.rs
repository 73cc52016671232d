//! `_fused_fully_connected`: a dense layer with what follows it.

use super::fused_elementwise::FusedChain;
use super::{INPUTS, epilogue, infer_with_residual, with_epilogue};
use crate::nn::fully_connected;
use crate::nn::fully_connected_kernel::{bind_dense, dense_form};
use crate::prelude::*;
use mxrt_engine::OpError;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_fused_fully_connected",
    doc: "FullyConnected, then the addition of a residual, then an activation, then a chain of \
        functions of single elements.",
    inputs: INPUTS,
    attrs: ATTRS,
    infer_shape: |shapes| infer_with_residual(shapes, fully_connected::infer_shape),
    bind: |attrs, signature| bind_dense(signature, epilogue(attrs), chain(attrs)?),
    form: |attrs, signature| match sums(attrs)? {
        Some(sums) => dense_form(signature, sums),
        None => Ok(None),
    },
    internal: true,
    ..OpDef::BASE
}];

static ATTRS: &[AttrDef] = &with_epilogue::<4, 9>({
    let [outputs, bias, flatten] = fully_connected::ALL_ATTRS;
    [outputs, bias, flatten, PROGRAM]
});

const PROGRAM: AttrDef =
    AttrDef::new("program", AttrKind::Str, "", "Functions of single elements that are applied last, as steps.");

/// The chain that follows everything else.
fn chain(attrs: &Attrs) -> Result<Option<FusedChain>, OpError> {
    let program = attrs.str(PROGRAM.name);
    (!program.is_empty()).then(|| FusedChain::of_one(program)).transpose()
}

/// Steps that follow the sums; none if they are more than devices do there.
fn sums(attrs: &Attrs) -> Result<Option<SumEpilogue>, OpError> {
    let sums = epilogue(attrs).form();
    let Some(chain) = chain(attrs)? else { return Ok(Some(sums)) };
    let last = chain.only().filter(|function| sums.activation.is_none() && SumEpilogue::applies(*function));
    Ok(last.map(|function| SumEpilogue { activation: Some(function), ..sums }))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f16s, f32s};

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

    #[test]
    fn a_chain_of_functions_is_applied_last() {
        // 40 rows and 70 columns do not fill the blocks in which functions are applied.
        let (x, w): (Vec<f32>, Vec<f32>) = ((0..40 * 3).map(|i| i as f32 - 60.0).collect(), vec![0.25; 70 * 3]);
        let layer = |op: &'static str| OpTest::new(op).attr("num_hidden", "70").attr("no_bias", "True");
        let y = layer("_fused_fully_connected")
            .attr("act_type", "relu")
            .attr("program", "_plus_scalar(in0){scalar=1};elemwise_mul(in0,0)")
            .f32([40, 3], &x)
            .f32([70, 3], &w)
            .run();
        let plain = layer("FullyConnected").f32([40, 3], &x).f32([70, 3], &w).run();
        let want: Vec<f32> = f32s(&plain, [40, 70]).iter().map(|v| v.max(0.0) * (v.max(0.0) + 1.0)).collect();
        assert_eq!(f32s(&y, [40, 70]), want);
    }

    #[test]
    fn a_chain_in_float16_rounds_once_and_float64_has_none() {
        let layer = |op: &'static str| OpTest::new(op).attr("num_hidden", "2").attr("no_bias", "True");
        let chain = || layer("_fused_fully_connected").attr("program", "square(in0)");
        let (x, w) = ([1.0, 0.000_488_281_25], [3.0, 3.0, 3.0, 3.0]);
        // 3.00146... rounds to 3.00195 in float16, whose square to 9.0117.
        let y = chain().f16([1, 2], &x).f16([2, 2], &w).run();
        assert_eq!(f16s(&y, [1, 2]), [9.0078125; 2]);
        let ones = |shape| OpTest::new("_ones").attr("shape", shape).attr("dtype", "float64").run();
        let error = chain().array(ones("(1, 2)")).array(ones("(2, 2)")).error();
        assert!(error.message.contains("float32"), "{}", error.message);
    }
}
