//! `_np_any`, `_np_all`: questions about the elements along axes.

use super::{AXIS, KEEPDIMS, infer_shape, reduced_axes};
use crate::math::identity::fill_form;
use crate::prelude::*;
use mxrt_kernels::elementwise::{Comparison, compare_number};
use mxrt_kernels::reduce::{self, Reduction};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_np_any",
        aliases: &["_np_sometrue"],
        doc: "Whether any element over axes is not 0.",
        bind: |attrs, signature| bind_question(Reduction::Max, attrs, signature),
        form: |attrs, signature| question_form(false, attrs, signature),
        ..QUESTION
    },
    OpDef {
        name: "_np_all",
        doc: "Whether all elements over axes are not 0.",
        bind: |attrs, signature| bind_question(Reduction::Min, attrs, signature),
        form: |attrs, signature| question_form(true, attrs, signature),
        ..QUESTION
    },
];

const QUESTION: OpDef = OpDef {
    attrs: &[AXIS, KEEPDIMS],
    infer_shape,
    infer_dtype: |dtypes| dtypes.set_output(0, DType::Bool),
    ..OpDef::BASE
};

fn question_form(every: bool, attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let shape = &signature.inputs[0].shape;
    let reduced = reduced_axes(attrs, shape.len())?.to_vec();
    if shape.size() == 0 {
        return fill_form(f64::from(every), signature);
    }
    for_all(signature.inputs[0].dtype, KernelForm::Truths { every, reduced })
}

fn bind_question(reduction: Reduction, attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let reduced = reduced_axes(attrs, signature.inputs[0].shape.len())?;
    let nothing = reduction == Reduction::Min;
    dispatch!(signature.inputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        let (x, out) = (&call.inputs[0], elements_mut::<u8>(&mut call.outputs[0])?);
        if x.is_empty() {
            out.fill(nothing.into());
            return Ok(());
        }
        let (values, mut truths) = (elements::<T>(x)?, Scratch::<u8>::new(call.par, x.len()));
        compare_number(call.par, Comparison::NotEqual, values, T::ZERO, &mut truths);
        reduce::reduce(call.par, reduction, &truths, x.shape, &reduced, out);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn all_of_nothing_are_true() {
        assert_eq!(OpTest::new("_np_all").f32([0], &[]).run().values::<u8>(), [1]);
    }
}
