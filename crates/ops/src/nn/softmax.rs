//! `softmax`, `log_softmax`, `softmin`: exponentials normalised along an axis.

use crate::prelude::*;
use half::f16;
use mxrt_kernels::softmax::{SoftmaxParams, softmax};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "softmax",
        aliases: &["_npx_softmax"],
        doc: "exp(x / temperature) divided by its sum along an axis. With use_length the input \
            length tells how many elements count; the rest becomes 0.",
        inputs: Inputs::ByAttrs(|attrs| if uses_length(attrs) { &["data", "length"] } else { &["data"] }),
        bind: |attrs, signature| bind(attrs, signature, SoftmaxParams::default()),
        form: |attrs, signature| form(attrs, signature, SoftmaxParams::default()),
        ..SOFTMAX
    },
    OpDef {
        name: "log_softmax",
        aliases: &["_npx_log_softmax"],
        doc: "The logarithm of softmax, computed without leaving the logarithm.",
        bind: |attrs, signature| bind(attrs, signature, SoftmaxParams { log: true, ..Default::default() }),
        form: |attrs, signature| form(attrs, signature, SoftmaxParams { log: true, ..Default::default() }),
        ..SOFTMAX
    },
    OpDef {
        name: "softmin",
        doc: "softmax of the negated input: the smallest element becomes the largest.",
        bind: |attrs, signature| bind(attrs, signature, SoftmaxParams { negate: true, ..Default::default() }),
        form: |attrs, signature| form(attrs, signature, SoftmaxParams { negate: true, ..Default::default() }),
        ..SOFTMAX
    },
];

const SOFTMAX: OpDef = OpDef {
    attrs: &[
        AttrDef::new("axis", AttrKind::Int, "-1", "The axis."),
        AttrDef::new("temperature", AttrKind::OptFloat, "None", "Divides the input; 1 if not given.").wide(),
        AttrDef::new(
            "dtype",
            AttrKind::OptDType(&["float16", "float32", "float64"]),
            "None",
            "dtype of the result; that of the input if not given.",
        ),
        AttrDef::new("use_length", AttrKind::OptBool, "False", "Whether lengths are given (softmax only)."),
    ],
    infer_shape,
    infer_dtype,
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| !divided.contains(&false) && is_within_rows(attrs.int("axis"), signature),
        ..Rewrites::NONE
    },
    ..OpDef::BASE
};

fn uses_length(attrs: &Attrs) -> bool {
    attrs.opt_bool("use_length") == Some(true)
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.same_as_first()?;
    if let Some(mut dims) = shapes.dims(0)
        && shapes.inputs.len() == 2
    {
        dims.remove(resolve_axis(shapes.attrs.int("axis"), dims.len())?);
        if dims.is_empty() {
            dims.push(Some(1));
        }
        shapes.set_input(1, "length", PartialShape::from_dims(dims))?;
    }
    Ok(())
}

fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    match dtypes.attrs.opt_dtype("dtype") {
        // Data of another type is converted; data without one has that of the output.
        Some(dtype) => {
            if dtypes.inputs[0].is_none() {
                dtypes.set_input(0, "data", dtype)?;
            }
            dtypes.set_output(0, dtype)
        }
        None => match dtypes.inputs[0].or(dtypes.outputs[0]) {
            Some(dtype) => {
                dtypes.set_input(0, "data", dtype)?;
                dtypes.set_output(0, dtype)
            }
            None => Ok(()),
        },
    }
}

/// Parameters, and the axes around that of the softmax.
fn softmax_of(
    attrs: &Attrs,
    signature: &Signature<'_>,
    params: SoftmaxParams,
) -> Result<(SoftmaxParams, [usize; 3]), OpError> {
    if uses_length(attrs) && signature.inputs.len() != 2 {
        return Err(not_implemented("use_length is only for softmax"));
    }
    let split = split_at(attrs.int("axis"), &signature.inputs[0].shape)?;
    let temperature = attrs.opt_float("temperature").unwrap_or(1.0);
    Ok((SoftmaxParams { temperature, ..params }, split))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>, params: SoftmaxParams) -> BoundKernel {
    let (params, split) = softmax_of(attrs, signature, params)?;
    bind_softmax(params, split, signature)
}

fn form(attrs: &Attrs, signature: &Signature<'_>, params: SoftmaxParams) -> MaybeForm {
    let (params, split) = softmax_of(attrs, signature, params)?;
    softmax_form(params, split, signature)
}

/// Whether a second input holds lengths.
fn has_length(signature: &Signature<'_>) -> Result<bool, OpError> {
    match signature.inputs.get(1) {
        Some(length) => check_integers("length", length.dtype).map(|()| true),
        None => Ok(false),
    }
}

/// The form of [`bind_softmax`].
pub(crate) fn softmax_form(params: SoftmaxParams, split: [usize; 3], signature: &Signature<'_>) -> MaybeForm {
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    let has_length = has_length(signature)?;
    match from == DType::F16 && to != DType::F16 {
        true => Ok(None),
        false => for_floats(from, KernelForm::Softmax { params, split, has_length }),
    }
}

/// Softmax along the middle of three joined axes; a second input holds lengths.
pub(crate) fn bind_softmax(params: SoftmaxParams, split: [usize; 3], signature: &Signature<'_>) -> BoundKernel {
    let has_length = has_length(signature)?;
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if from == DType::F16 && to != DType::F16 {
        return bind_half(params, split, has_length, signature);
    }
    if from != to {
        // What is computed in the type of the input is converted, as the kernel itself would do it.
        let dtypes: Vec<DType> = signature.inputs.iter().map(|input| input.dtype).collect();
        return in_dtypes(signature, |i| dtypes[i], |_| from, |signature| bind_softmax(params, split, signature));
    }
    dispatch!(from, float, T => Ok(kernel_fn(signature, move |call| {
        let x = elements::<T>(&call.inputs[0])?;
        let lengths = if has_length { Some(integers(call.par, &call.inputs[1])?) } else { None };
        softmax::<T, T>(call.par, params, x, split, lengths.as_deref(), elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

/// Binds softmax from half precision to another type: MXNet rounds every step to half precision,
/// which a result in another dtype shows.
fn bind_half(
    params: SoftmaxParams,
    [outer, n, inner]: [usize; 3],
    has_length: bool,
    signature: &Signature<'_>,
) -> BoundKernel {
    dispatch!(signature.outputs[0].dtype, float, O => Ok(kernel_fn(signature, move |call| {
        let x = elements::<f16>(&call.inputs[0])?;
        let lengths = if has_length { Some(integers(call.par, &call.inputs[1])?) } else { None };
        let out = elements_mut::<O>(&mut call.outputs[0])?;
        let mut column = Scratch::filled(call.par, n, f16::ZERO);
        for at in 0..outer * inner {
            let place = |k: usize| (at / inner * n + k) * inner + at % inner;
            let length = lengths.as_deref().map_or(n, |l| usize::try_from(l[at]).unwrap_or(0).min(n));
            column.fill(f16::ZERO);
            (0..length).for_each(|k| column[k] = x[place(k)]);
            half_column(params, &mut column[..length]);
            (0..n).for_each(|k| out[place(k)] = O::from_f64(column[k].to_f64()));
        }
        Ok(())
    })))
}

/// Softmax of one column in half precision.
fn half_column(params: SoftmaxParams, column: &mut [f16]) {
    let round = f16::from_f32;
    let sign = if params.negate { -1.0 } else { 1.0 };
    let largest = column.iter().map(|v| sign * v.to_f32()).fold(f32::NEG_INFINITY, f32::max);
    for v in column.iter_mut() {
        *v = round(round(sign * v.to_f32() - largest).to_f32() / params.temperature as f32);
    }
    let sum = column.iter().fold(f16::ZERO, |sum, v| round(sum.to_f32() + v.to_f32().exp())).to_f32();
    for v in column.iter_mut() {
        *v = round(if params.log { v.to_f32() - sum.ln() } else { v.to_f32().exp() / sum });
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn rows_sum_to_one_and_lengths_cut_them() {
        let x = [0.0f32, 0.0, 0.0, 1.0, 2.0, 3.0];
        let y = f32s(&OpTest::new("softmax").f32([2, 3], &x).run(), [2, 3]);
        assert_close(&y, &[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.090_030_57, 0.244_728_48, 0.665_240_94]);
        let y = OpTest::new("softmax").attr("use_length", "True").f32([2, 3], &x).i32([2], &[2, 1]).run();
        assert_close(&f32s(&y, [2, 3]), &[0.5, 0.5, 0.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn temperature_divides_and_softmin_negates() {
        let y = OpTest::new("softmin").attr("temperature", "2").f32([2], &[0.0, 2.0]).run();
        assert_close(&f32s(&y, [2]), &[0.731_058_6, 0.268_941_4]);
        let y = OpTest::new("log_softmax").attr("axis", "0").f32([2, 1], &[0.0, 0.0]).run();
        assert_close(&f32s(&y, [2, 1]), &[-std::f32::consts::LN_2; 2]);
        OpTest::new("softmax").attr("axis", "2").f32([2, 1], &[0.0, 0.0]).error();
    }

    #[test]
    fn softmax_of_a_scalar_is_one() {
        assert_eq!(f32s(&OpTest::new("softmax").f32([], &[3.0]).run(), []), [1.0]);
        OpTest::new("log_softmax").attr("axis", "1").f32([], &[3.0]).error();
    }
}
