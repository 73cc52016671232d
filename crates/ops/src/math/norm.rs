//! `norm`: length of vectors.

use super::reduce::{Reduced, bind_reduction, left_shape, reduced_axes, reduction_form};
use crate::prelude::*;
use mxrt_kernels::reduce::{Reduction, reduce};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "norm",
    aliases: &["_sparse_norm"],
    doc: "The sum of absolute values (ord 1) or the Euclidean norm (ord 2) over one or two axes, \
        or of everything.",
    attrs: &[
        AttrDef::new("ord", AttrKind::Int, "2", "1 or 2."),
        AttrDef::new("axis", AttrKind::OptShape, "None", "Axes to reduce; all if not given."),
        AttrDef::new(
            "out_dtype",
            AttrKind::OptDType(&["float16", "float32", "float64", "int32", "int64", "int8"]),
            "None",
            "dtype of the result; that of the input if not given.",
        ),
        AttrDef::new("keepdims", AttrKind::Bool, "False", "Keep reduced axes with size 1."),
    ],
    infer_shape: |shapes| {
        let Some(dims) = shapes.dims(0) else { return Ok(()) };
        let reduced = reduced_axes(shapes.attrs, dims.len())?;
        shapes.set_output(0, left_shape(&dims, &reduced, shapes.attrs.bool("keepdims")))
    },
    infer_dtype: |dtypes| match dtypes.attrs.opt_dtype("out_dtype") {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => dtypes.all_same(),
    },
    bind,
    form: |attrs, signature| {
        let (reduction, reduced) = reduction(attrs, signature)?;
        let same = signature.inputs[0].dtype == signature.outputs[0].dtype;
        if same { reduction_form(reduction, &reduced, signature) } else { Ok(None) }
    },
    ..OpDef::BASE
}];

/// The reduction and its axes.
fn reduction(attrs: &Attrs, signature: &Signature<'_>) -> Result<(Reduction, Reduced), OpError> {
    let reduction = match attrs.int("ord") {
        1 => Reduction::L1,
        2 => Reduction::L2,
        other => return Err(value_error(format!("ord must be 1 or 2, got {other}"))),
    };
    Ok((reduction, reduced_axes(attrs, signature.inputs[0].shape.len())?))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (reduction, reduced) = reduction(attrs, signature)?;
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if from == to { bind_reduction(reduction, reduced, signature) } else { bind_wide(reduction, reduced, signature) }
}

/// Computes in double precision and rounds to another dtype.
fn bind_wide(reduction: Reduction, reduced: Reduced, signature: &Signature<'_>) -> BoundKernel {
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if !to.is_float() && from.is_float() {
        return Err(type_error(format!("out_dtype {to} cannot hold the norm of {from}; give a floating dtype")));
    }
    check_numeric(from)?;
    check_numeric(to)?;
    Ok(kernel_fn(signature, move |call| {
        let mut sums = Scratch::<f64>::new(call.par, call.outputs[0].len());
        reduce(call.par, reduction, &floats(call.par, &call.inputs[0])?, call.inputs[0].shape, &reduced, &mut sums);
        store_floats(&sums, &mut call.outputs[0])
    }))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn the_result_may_have_another_dtype() {
        let x = OpTest::new("norm").f32([2, 2], &[3.0, 4.0, 0.0, 1e30]).attr("axis", "1");
        let y = x.attr("out_dtype", "float64").run();
        assert_eq!(y.values::<f64>(), [5.0, f64::from(1e30f32)]);
        let refused = OpTest::new("norm").f32([2], &[3.0, 4.0]).attr("out_dtype", "int32").error();
        assert!(refused.message.contains("floating dtype"), "{}", refused.message);
    }
}
