//! `Embedding`: rows of a table looked up by number.

use crate::prelude::*;
use mxrt_kernels::index::{OutOfRange, take};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "Embedding",
        aliases: &["_npx_embedding", "_sparse_Embedding"],
        doc: "The rows of weight that data names. Numbers outside of the table are moved to its ends; \
            floats are truncated.",
        attrs: &ATTRS,
        ..LOOKUP
    },
    OpDef {
        name: "_contrib_SparseEmbedding",
        doc: "The rows of weight that data names, as Embedding gives them.",
        attrs: &SPARSE_ATTRS,
        ..LOOKUP
    },
];

const LOOKUP: OpDef = OpDef {
    inputs: Inputs::Fixed(&["data", "weight"]),
    infer_shape,
    infer_dtype,
    bind,
    form,
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
};

const SPARSE_ATTRS: [AttrDef; 4] =
    [ATTRS[0], ATTRS[1], ATTRS[2], AttrDef::new("deterministic", AttrKind::Bool, "False", "For training.")];

pub(crate) const ATTRS: [AttrDef; 4] = [
    AttrDef::required("input_dim", AttrKind::IntFrom(1), "Number of rows."),
    AttrDef::required("output_dim", AttrKind::IntFrom(1), "Length of a row."),
    AttrDef::new(
        "dtype",
        AttrKind::DType(&["bfloat16", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]),
        "float32",
        "dtype of weight, where it is not known from elsewhere.",
    ),
    AttrDef::new("sparse_grad", AttrKind::Bool, "False", "For training."),
];

pub(crate) fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (rows, width) = (shapes.attrs.count("input_dim"), shapes.attrs.count("output_dim"));
    let have = shapes.inputs[1].clone();
    shapes.set_input(1, "weight", PartialShape::from_dims([Some(rows), Some(width)])).map_err(|_| {
        shape_error(format!(
            "weight has shape {have} but input_dim={rows} and output_dim={width} need ({rows}, \
             {width})"
        ))
    })?;
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    dims.push(Some(width));
    shapes.set_output(0, PartialShape::from_dims(dims))
}

fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let weight = dtypes.inputs[1].or(dtypes.outputs[0]).or(dtypes.attrs.opt_dtype("dtype")).unwrap_or(DType::F32);
    dtypes.set_input(1, "weight", weight)?;
    dtypes.set_output(0, weight)
}

fn form(_: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let [rows, width] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    check_integers("data", signature.inputs[0].dtype)?;
    Ok(Some(KernelForm::Take {
        data: 1,
        indices: 0,
        split: [1, rows, width],
        mode: OutOfRange::Clip,
        axis: 0,
        pick: false,
    }))
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let [rows, width] = signature.inputs[1].shape[..] else { return Err(wrong_arity()) };
    check_integers("data", signature.inputs[0].dtype)?;
    dispatch_size!(signature.inputs[1].dtype, T => Ok(kernel_fn(signature, move |call| {
        let ([data, weight], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (indices, table) = (integers(call.par, data)?, elements::<T>(weight)?);
        take(call.par, table, [1, rows, width], &indices, OutOfRange::Clip, 0, elements_mut(out)?)
            .map_err(kernel_error)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn rows_are_found_and_numbers_outside_are_clipped() {
        let test = |weight: &[f32], rows: usize| {
            OpTest::new("Embedding")
                .attr("input_dim", "3")
                .attr("output_dim", "2")
                .f32([3], &[1.7, -5.0, 9.0])
                .f32([rows, 2], weight)
        };
        let y = test(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 3).run();
        assert_eq!(f32s(&y, [3, 2]), [2.0, 3.0, 0.0, 1.0, 4.0, 5.0]);
        let error = test(&[0.0; 4], 2).error();
        assert!(error.message.contains("weight has shape (2, 2)"), "{}", error.message);
    }
}
