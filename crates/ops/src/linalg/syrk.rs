//! `_linalg_syrk`: products of matrices with their transposes.

use super::{cost_ns, matrices};
use crate::execution::in_single;
use crate::prelude::*;
use mxrt_kernels::gemm_plain::{Gemm, gemm};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_linalg_syrk",
    aliases: &["linalg_syrk"],
    doc: "alpha * A A^T, or alpha * A^T A with transpose.",
    inputs: Inputs::Fixed(&["A"]),
    attrs: &[
        AttrDef::new("transpose", AttrKind::Bool, "False", "Whether the first factor is transposed."),
        AttrDef::new("alpha", AttrKind::Float, "1", "Scale of the result.").wide(),
    ],
    infer_shape: |shapes| {
        let Some((mut dims, rows, columns)) = matrices(shapes, 0, "A")? else { return Ok(()) };
        let order = if shapes.attrs.bool("transpose") { columns } else { rows };
        dims.extend([order, order]);
        shapes.set_output(0, PartialShape::from_dims(dims))
    },
    bind: bind_syrk,
    form: syrk_form,
    ..OpDef::BASE
}];

/// The product that `syrk` is.
fn syrk(attrs: &Attrs, signature: &Signature<'_>) -> Result<Gemm, OpError> {
    let [ref batch @ .., rows, columns] = signature.inputs[0].shape[..] else { return Err(wrong_arity()) };
    let transpose = attrs.bool("transpose");
    let (n, k) = if transpose { (columns, rows) } else { (rows, columns) };
    Ok(Gemm {
        batch: batch.iter().product(),
        transpose_a: transpose,
        transpose_b: !transpose,
        alpha: attrs.float("alpha"),
        ..Gemm::new(n, n, k)
    })
}

/// Both operands are input 0.
fn syrk_form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let product = syrk(attrs, signature)?;
    let [m, n, k] = [product.m, product.n, product.k].map(|extent| extent as isize);
    let matrix =
        |steps: [isize; 2], size: isize| MatrixSteps { array: 0, first: 0, steps: [size, 0, steps[0], steps[1]] };
    // Rows of the left operand are columns of the right one.
    let [across, along] = if product.transpose_a { [1, m] } else { [k, 1] };
    let operands = [matrix([across, along], m * k), matrix([along, across], m * k), matrix([n, 1], m * n)];
    let form = KernelForm::Product {
        batch: [product.batch, 1],
        size: [product.m, product.n, product.k],
        operands,
        alpha: product.alpha,
        epilogue: SumEpilogue::default(),
    };
    for_floats(signature.inputs[0].dtype, form)
}

fn bind_syrk(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let product = syrk(attrs, signature)?.on(signature.options.isa);
    let cost = cost_ns(signature.inputs[0].shape.size().saturating_mul(product.n));
    in_single(signature, |signature| {
        dispatch!(signature.inputs[0].dtype, wide, T => Ok(costed_kernel_fn("plain", cost, move |call| {
            let a = elements::<T>(&call.inputs[0])?;
            gemm(call.par, product, a, a, elements_mut(&mut call.outputs[0])?);
            Ok(())
        })))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f16s, f32s};

    #[test]
    fn a_product_with_the_transpose() {
        let syrk =
            |transpose: &str| OpTest::new("linalg_syrk").attr("transpose", transpose).f32([1, 2], &[3.0, 4.0]).run();
        assert_close(&f32s(&syrk("False"), [1, 1]), &[25.0]);
        assert_close(&f32s(&syrk("True"), [2, 2]), &[9.0, 12.0, 12.0, 16.0]);
    }

    #[test]
    fn half_precision_is_summed_in_single_precision() {
        let square = OpTest::new("linalg_syrk").f16([1, 5000], &vec![1.0; 5000]);
        assert_eq!(f16s(&square.run(), [1, 1]), [5000.0]);
    }
}
