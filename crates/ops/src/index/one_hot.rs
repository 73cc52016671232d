//! `one_hot`: numbers as rows with a single mark.

use crate::prelude::*;
use mxrt_kernels::index::one_hot;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "one_hot",
    aliases: &["_npx_one_hot"],
    doc: "For every index a row of depth elements: on_value at the index, off_value elsewhere. \
        Indices outside give rows of off_value.",
    inputs: Inputs::Fixed(&["indices"]),
    attrs: &[
        AttrDef::required("depth", AttrKind::IntFrom(0), "Length of a row."),
        AttrDef::new("on_value", AttrKind::Float, "1", "Value at the index.").wide(),
        AttrDef::new("off_value", AttrKind::Float, "0", "Value elsewhere.").wide(),
        AttrDef::new(
            "dtype",
            AttrKind::DType(&["bfloat16", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]),
            "float32",
            "dtype of the result.",
        ),
    ],
    infer_shape: |shapes| {
        let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
        dims.push(Some(shapes.attrs.count("depth")));
        shapes.set_output(0, PartialShape::from_dims(dims))
    },
    infer_dtype: |dtypes| {
        let dtype = dtypes.attrs.opt_dtype("dtype").unwrap_or(DType::F32);
        dtypes.set_output(0, dtype)
    },
    bind,
    form: |attrs, signature| {
        let (depth, on, off) = (attrs.count("depth"), attrs.float("on_value"), attrs.float("off_value"));
        check_integers("indices", signature.inputs[0].dtype)?;
        for_numeric(signature.outputs[0].dtype, KernelForm::OneHot { depth, on, off })
    },
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (depth, on, off) = (attrs.count("depth"), attrs.float("on_value"), attrs.float("off_value"));
    check_integers("indices", signature.inputs[0].dtype)?;
    dispatch!(signature.outputs[0].dtype, numeric, T => {
        let (on, off) = (T::from_f64(on), T::from_f64(off));
        Ok(kernel_fn(signature, move |call| {
            let indices = integers(call.par, &call.inputs[0])?;
            one_hot(call.par, &indices, depth, on, off, elements_mut(&mut call.outputs[0])?);
            Ok(())
        }))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn rows_may_have_no_elements() {
        let of = |depth: &str| OpTest::new("one_hot").attr("depth", depth).f32([2], &[1.0, 0.0]);
        assert_eq!(of("0").run().tensor.shape[..], [2, 0]);
        of("-1").error();
    }
}
