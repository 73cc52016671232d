//! `_npi_isnan` and related operators: questions about every element.

use crate::prelude::*;
use mxrt_kernels::elementwise::{Binary, Question, Unary, ask};

macro_rules! question {
    ($name:literal, $doc:literal, $answer:expr, $form:expr) => {
        OpDef {
            name: $name,
            doc: $doc,
            inputs: Inputs::Fixed(&["x"]),
            ignores_unknown_attrs: true,
            infer_dtype: |dtypes| dtypes.set_output(0, DType::Bool),
            bind: |_, signature| bind_question($answer, signature),
            form: |_, signature| question_form($form, signature),
            ..OpDef::BASE
        }
    };
}

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    question!("_npi_logical_not", "True where an element is 0.", Question::Zero, equals(0.0)),
    question!("_npi_isnan", "True where an element is NaN.", Question::Nan, of(Unary::IsNan)),
    question!("_npi_isinf", "True where an element is infinite.", Question::Infinite, of(Unary::IsInf)),
    question!(
        "_npi_isposinf",
        "True where an element is positive infinity.",
        Question::PositiveInfinity,
        equals(f64::INFINITY)
    ),
    question!(
        "_npi_isneginf",
        "True where an element is negative infinity.",
        Question::NegativeInfinity,
        equals(f64::NEG_INFINITY)
    ),
    question!(
        "_npi_isfinite",
        "True where an element is neither infinite nor NaN.",
        Question::Finite,
        of(Unary::IsFinite)
    ),
];

fn of(function: Unary) -> KernelForm {
    KernelForm::of_function(Elementwise::Unary(function))
}

pub(super) fn equals(number: f64) -> KernelForm {
    KernelForm::WithNumber { function: Binary::Equal, number, first: false }
}

/// The form of a question that is asked of every element, of whole numbers in double precision.
fn question_form(form: KernelForm, signature: &Signature<'_>) -> MaybeForm {
    let dtype = signature.inputs[0].dtype;
    for_all(dtype, form.within(if dtype.is_float() { dtype } else { DType::F64 }))
}

/// A kernel that asks something of every element.
pub(super) fn bind_question(question: Question, signature: &Signature<'_>) -> BoundKernel {
    dispatch!(signature.inputs[0].dtype, all, T => Ok(kernel_fn(signature, move |call| {
        ask(call.par, question, elements::<T>(&call.inputs[0])?, elements_mut::<u8>(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;
    use mxrt_tensor::DType;

    #[test]
    fn questions_are_answered_with_bool_for_scalars_too() {
        let y = OpTest::new("_npi_isnan").f32([], &[f32::NAN]).run();
        assert_eq!((y.tensor.dtype, y.tensor.shape.len(), y.values::<u8>()), (DType::Bool, 0, vec![1]));
    }
}
