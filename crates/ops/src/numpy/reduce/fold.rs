//! `_np_sum`, `_np_prod`, `_npi_mean`, `_np_max`, `_np_min`: reductions over axes.

use super::{AXIS, DTYPE, KEEPDIMS, infer_shape, reduced_axes};
use crate::execution::{convert, in_dtypes};
use crate::math::cumsum::converted;
use crate::math::identity::{bind_fill, fill_form};
use crate::math::reduce::{Reduced, bind_reduction};
use crate::prelude::*;
use mxrt_kernels::reduce::{self, Reduction};
use mxrt_tensor::TensorRef;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_np_sum",
        doc: "The sum over axes; that of bool counts in int64.",
        bind: |attrs, signature| bind_fold(Reduction::Sum, attrs, signature),
        form: |attrs, signature| fold_form(Reduction::Sum, attrs, signature),
        ..FOLD
    },
    OpDef {
        name: "_np_prod",
        aliases: &["_np_product"],
        doc: "The product over axes; that of no elements is 0, as in MXNet.",
        inputs_before_attrs: 0,
        bind: |attrs, signature| bind_fold(Reduction::Prod, attrs, signature),
        form: |attrs, signature| fold_form(Reduction::Prod, attrs, signature),
        ..FOLD
    },
    OpDef {
        name: "_npi_mean",
        doc: "The mean over axes, in float32 for whole numbers; that of no elements is 0, as in MXNet.",
        infer_dtype: |dtypes| {
            let natural = dtypes.inputs[0].map(|d| if d.is_float() { d } else { DType::F32 });
            match dtypes.attrs.opt_dtype("dtype").or(natural) {
                Some(dtype) => dtypes.set_output(0, dtype),
                None => Ok(()),
            }
        },
        bind: |attrs, signature| bind_fold(Reduction::Mean, attrs, signature),
        form: |attrs, signature| fold_form(Reduction::Mean, attrs, signature),
        ..FOLD
    },
    OpDef {
        name: "_np_max",
        aliases: &["_np_amax"],
        doc: "The largest element over axes; NaN where there is one.",
        infer_shape: |shapes| infer_extreme(shapes, "maximum"),
        bind: |attrs, signature| bind_fold(Reduction::Max, attrs, signature),
        form: |attrs, signature| fold_form(Reduction::Max, attrs, signature),
        ..EXTREME
    },
    OpDef {
        name: "_np_min",
        aliases: &["_np_amin"],
        doc: "The smallest element over axes; NaN where there is one.",
        infer_shape: |shapes| infer_extreme(shapes, "minimum"),
        bind: |attrs, signature| bind_fold(Reduction::Min, attrs, signature),
        form: |attrs, signature| fold_form(Reduction::Min, attrs, signature),
        ..EXTREME
    },
];

const INITIAL: AttrDef =
    AttrDef::new("initial", AttrKind::OptFloat, "None", "Only None is possible, as in MXNet.").wide();

const FOLD: OpDef = OpDef {
    inputs: Inputs::Fixed(&["a"]),
    attrs: &[AXIS, DTYPE, KEEPDIMS, INITIAL],
    infer_shape,
    infer_dtype: |dtypes| {
        let natural = dtypes.inputs[0].map(|d| if d == DType::Bool { DType::I64 } else { d });
        match dtypes.attrs.opt_dtype("dtype").or(natural) {
            Some(dtype) => dtypes.set_output(0, dtype),
            None => Ok(()),
        }
    },
    ..OpDef::BASE
};
const EXTREME: OpDef = OpDef { inputs: Inputs::Fixed(&["a"]), attrs: &[AXIS, KEEPDIMS, INITIAL], ..OpDef::BASE };

/// Infers the shape of extremes. Those of no elements are refused in NumPy's words.
fn infer_extreme(shapes: &mut Shapes<'_>, function: &str) -> Result<(), OpError> {
    if let Some(shape) = shapes.input(0) {
        let reduced = reduced_axes(shapes.attrs, shape.len())?;
        if shape.iter().zip(&reduced).any(|(n, r)| *r && *n == 0) {
            let message = format!("zero-size array to reduction operation {function} which has no identity");
            return Err(value_error(message));
        }
    }
    infer_shape(shapes)
}

/// The type that a fold computes in: whole numbers fold without loss in 64 bits, floats in the
/// wider of the two types.
fn fold_type(from: DType, to: DType) -> DType {
    match (from, to) {
        (from, to) if from == to && from != DType::Bool => from,
        (from, DType::Bool) => {
            if from.is_float() {
                DType::F64
            } else {
                DType::I64
            }
        }
        (from, to) if from.is_float() && to.is_float() => crate::numpy::promoted(from, to).unwrap_or(DType::F64),
        (from, to) if from.is_float() || to.is_float() => DType::F64,
        _ => DType::I64,
    }
}

/// The form of a fold; none for whole means and for those that end in a conversion of floats to
/// whole numbers or to bool.
fn fold_form(reduction: Reduction, attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (data, out) = (&signature.inputs[0], &signature.outputs[0]);
    let reduced = reduced_axes(attrs, data.shape.len())?;
    if data.shape.size() == 0 {
        return fill_form(0.0, signature);
    }
    let within = fold_type(data.dtype, out.dtype);
    let is_whole_mean = reduction == Reduction::Mean && !out.dtype.is_float();
    if is_whole_mean || out.dtype == DType::Bool || within.is_float() != out.dtype.is_float() {
        return Ok(None);
    }
    let form = KernelForm::Reduce { reduction, reduced: reduced.to_vec() };
    let is_plain = data.dtype == within && out.dtype == within;
    for_numeric(within, if is_plain { form } else { form.within(within) })
}

fn bind_fold(reduction: Reduction, attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (data, out) = (&signature.inputs[0], &signature.outputs[0]);
    let reduced = reduced_axes(attrs, data.shape.len())?;
    if data.shape.size() == 0 {
        // MXNet's result of every sum, product and mean of nothing.
        return bind_fill(0.0, signature);
    }
    if reduction == Reduction::Mean && !out.dtype.is_float() && out.dtype != DType::Bool {
        return bind_whole_mean(reduced, signature);
    }
    // MXNet asks whether the sum of whole numbers is 0: the quotient of a small one would be.
    let asks = reduction == Reduction::Mean && out.dtype == DType::Bool && !data.dtype.is_float();
    let reduction = if asks { Reduction::Sum } else { reduction };
    let within = fold_type(data.dtype, out.dtype);
    in_dtypes(signature, |_| within, |_| within, |signature| bind_reduction(reduction, reduced, signature))
}

/// The mean as a whole number, as NumPy and MXNet make it: the sum wraps round in the type of the
/// result and is then divided, without the fraction.
fn bind_whole_mean(reduced: Reduced, signature: &Signature<'_>) -> BoundKernel {
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    let extents = signature.inputs[0].shape.iter().zip(&reduced);
    let count = extents.filter(|(_, r)| **r).map(|(n, _)| *n as i64).product::<i64>();
    Ok(kernel_fn(signature, move |call| {
        let (shape, size) = (call.inputs[0].shape, call.outputs[0].len());
        let mut sums = Scratch::<i64>::new(call.par, size);
        if from.is_float() {
            let mut exact = Scratch::<f64>::new(call.par, size);
            reduce::reduce(call.par, Reduction::Sum, &converted::<f64>(call, DType::F64)?, shape, &reduced, &mut exact);
            sums.iter_mut().zip(exact.iter()).for_each(|(sum, exact)| *sum = *exact as i64);
        } else {
            reduce::reduce(call.par, Reduction::Sum, &converted::<i64>(call, DType::I64)?, shape, &reduced, &mut sums);
        }
        sums.iter_mut().for_each(|sum| *sum = wrapped(*sum, to) / count);
        let means = TensorRef::new(DType::I64, call.outputs[0].shape, bytemuck::cast_slice(&sums));
        convert(call.par, &means, &mut call.outputs[0])
    }))
}

/// A number as its last bits in a type of whole numbers say.
fn wrapped(number: i64, dtype: DType) -> i64 {
    match dtype {
        DType::I8 => i64::from(number as i8),
        DType::U8 => i64::from(number as u8),
        DType::I32 => i64::from(number as i32),
        _ => number,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};
    use mxrt_tensor::DType;

    #[test]
    fn all_axes_leave_a_scalar_and_no_axes_leave_everything() {
        let x = || OpTest::new("_np_sum").f32([2, 2], &[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(f32s(&x().run(), []), [10.0]);
        assert_eq!(f32s(&x().attr("axis", "()").run(), [2, 2]), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(f32s(&x().attr("axis", "(0,)").attr("keepdims", "True").run(), [1, 2]), [4.0, 6.0]);
        let mean = OpTest::new("_npi_mean").i32([2], &[1, 2]).run();
        assert_eq!(f32s(&mean, []), [1.5]);
        let scalar = OpTest::new("_np_max").attr("axis", "-1").i32([], &[7]).run();
        assert_eq!((scalar.tensor.dtype, scalar.values::<i32>()), (DType::I32, vec![7]));
    }

    #[test]
    fn the_sum_of_a_whole_mean_wraps_round_before_the_division() {
        let of = |x: &[f32]| OpTest::new("_npi_mean").attr("dtype", "int8").f32([x.len()], x).run().values::<i8>();
        // 207 is -49 in int8.
        assert_eq!(of(&[100.0, 100.0, 7.0]), [-16]);
        assert_eq!(of(&[-91.5, 100.25, 7.0]), [5]);
    }

    #[test]
    fn a_whole_mean_as_bool_is_true_unless_the_sum_is_0() {
        let of = |x: OpTest| x.attr("dtype", "bool").run().values::<u8>();
        let mean = || OpTest::new("_npi_mean");
        assert_eq!(of(mean().i32([3], &[1, 0, 0])), [1]);
        assert_eq!(of(mean().i32([2], &[1, -1])), [0]);
        assert_eq!(of(mean().i8([3], &[1, -2, 3])), [1]);
        assert_eq!(of(mean().bools(&[2], &[true, false])), [1]);
        assert_eq!(of(mean().attr("axis", "(1,)").i32([2, 2], &[1, 0, 0, 0])), [1, 0]);
        assert_eq!(of(mean().f32([2], &[0.25, 0.5])), [1]);
    }

    #[test]
    fn an_extreme_of_nothing_is_refused_in_numpys_words() {
        let error = OpTest::new("_np_max").f32([0, 2], &[]).error();
        assert!(error.message.contains("zero-size array to reduction operation maximum which"), "{}", error.message);
    }
}
