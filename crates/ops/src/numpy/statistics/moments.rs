//! `_npi_var`, `_npi_std`: variances and standard deviations.

use super::counted;
use crate::numpy::reduce::{AXIS, DTYPE, KEEPDIMS, infer_shape, reduced_axes};
use crate::prelude::*;
use mxrt_kernels::elementwise::{Binary, Unary, binary_broadcast, unary_inplace};
use mxrt_kernels::reduce::{Reduction, reduce, row_square_sums, row_sums};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_var",
        outputs: Outputs::OneNamed("var"),
        doc: "The variance over axes.",
        bind: |attrs, signature| bind_moment(false, attrs, signature),
        form: |attrs, signature| moment_form(false, attrs, signature),
        ..MOMENT
    },
    OpDef {
        name: "_npi_std",
        outputs: Outputs::OneNamed("std"),
        doc: "The standard deviation over axes.",
        bind: |attrs, signature| bind_moment(true, attrs, signature),
        form: |attrs, signature| moment_form(true, attrs, signature),
        ..MOMENT
    },
];

const MOMENT: OpDef = OpDef {
    inputs: Inputs::Fixed(&["a"]),
    attrs: &[
        AXIS,
        DTYPE,
        AttrDef::new("ddof", AttrKind::Int, "0", "The sum is divided by the number less this."),
        KEEPDIMS,
    ],
    hidden_outputs: |_| 1,
    infer_shape,
    infer_dtype: |dtypes| match dtypes.attrs.opt_dtype("dtype").or(dtypes.inputs[0]) {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    },
    ..OpDef::BASE
};

/// The form of a moment in floating point; none for whole numbers, and for those of nothing.
fn moment_form(root: bool, attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (data, out) = (&signature.inputs[0], &signature.outputs[0]);
    let reduced = reduced_axes(attrs, data.shape.len())?.to_vec();
    let count = counted(&data.shape, &reduced);
    if !out.dtype.is_float() || count == 0 {
        return Ok(None);
    }
    let divisor = count as f64 - attrs.int("ddof") as f64;
    for_numeric(data.dtype, KernelForm::Variances { reduced, divisor, root })
}

fn bind_moment(root: bool, attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = signature.inputs[0].shape.clone();
    let reduced = reduced_axes(attrs, shape.len())?;
    let count = counted(&shape, &reduced);
    let divisor = count as f64 - attrs.int("ddof") as f64;
    let moment = move |sum: f64| if root { (sum / divisor).sqrt() } else { sum / divisor };
    check_numeric(signature.inputs[0].dtype)?;
    check_numeric(signature.outputs[0].dtype)?;
    let kept = kept_shape(&shape, &reduced);
    let whole = !signature.inputs[0].dtype.is_float() && !signature.outputs[0].dtype.is_float();
    let first = reduced.iter().position(|r| *r).unwrap_or(shape.len());
    if !whole && count > 0 && reduced[first..].iter().all(|r| *r) {
        return dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
            let x = elements::<T>(&call.inputs[0])?;
            let mut means = row_sums(call.par, x, count);
            means.iter_mut().for_each(|sum| *sum /= count as f64);
            let mut out = row_square_sums(call.par, x, count, &means);
            out.iter_mut().for_each(|sum| *sum = moment(*sum));
            store_floats(&out, &mut call.outputs[0])
        })));
    }
    Ok(kernel_fn(signature, move |call| {
        let data = floats(call.par, &call.inputs[0])?;
        let mut x = Scratch::<f64>::new(call.par, data.len());
        let mut out = Scratch::<f64>::new(call.par, call.outputs[0].len());
        reduce(call.par, Reduction::Mean, &data, &shape, &reduced, &mut out);
        // MXNet keeps the mean of whole numbers in their type.
        if whole {
            out.iter_mut().for_each(|mean| *mean = mean.trunc());
        }
        binary_broadcast(call.par, Binary::Sub, &data, &shape, &out, &kept, &mut x, &shape);
        unary_inplace(call.par, Unary::Square, &mut x);
        reduce(call.par, Reduction::Sum, &x, &shape, &reduced, &mut out);
        out.iter_mut().for_each(|sum| *sum = moment(*sum));
        store_floats(&out, &mut call.outputs[0])
    }))
}

/// The shape in which a result broadcasts against the data.
fn kept_shape(shape: &[usize], reduced: &[bool]) -> Vec<usize> {
    shape.iter().zip(reduced).map(|(n, r)| if *r { 1 } else { *n }).collect()
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    const X: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 9.0];

    #[test]
    fn variances_divide_by_what_ddof_leaves() {
        let var = |ddof: &str| OpTest::new("_npi_var").attr("axis", "(1,)").attr("ddof", ddof).f32([2, 3], &X).run();
        assert_eq!(f32s(&var("1"), [2]), [1.0, 7.0]);
        assert_eq!(f32s(&OpTest::new("_npi_std").f32([2], &[1.0, 3.0]).run(), []), [1.0]);
    }
}
