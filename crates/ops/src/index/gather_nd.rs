//! `gather_nd`: elements found by several indices.

use super::take::first_decides;
use crate::prelude::*;
use crate::shape::PartialDims;
use mxrt_kernels::index::gather_nd;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "gather_nd",
    aliases: &["_npi_gather_nd", "_npx_gather_nd"],
    doc: "data[indices[0], indices[1], ...]: the first axis of indices counts axes of data; \
        negative indices count from the end.",
    inputs: Inputs::Fixed(&["data", "indices"]),
    ignores_unknown_attrs: true,
    infer_shape,
    infer_dtype: first_decides,
    bind,
    form: |_, signature| {
        let GatherRows { sizes, inner, .. } = rows(signature)?;
        Ok(Some(KernelForm::GatherRows { sizes: sizes.to_vec(), inner }))
    },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (Some(data), Some(indices)) = (shapes.dims(0), shapes.dims(1)) else { return Ok(()) };
    let Some((Some(axes), places)) = indices.split_first() else { return Ok(()) };
    if *axes > data.len() {
        return Err(shape_error(format!(
            "indices {} name {axes} axes but data {} has {}",
            shapes.inputs[1],
            shapes.inputs[0],
            data.len()
        )));
    }
    let mut out: PartialDims = places.iter().copied().collect();
    out.extend_from_slice(&data[*axes..]);
    if out.is_empty() {
        out.push(Some(1));
    }
    shapes.set_output(0, PartialShape::from_dims(out))
}

/// Rows by their numbers along the first axes.
struct GatherRows {
    /// extents of these axes
    sizes: Dims,
    /// elements of a row
    inner: usize,
    /// rows of the result
    count: usize,
}

fn rows(signature: &Signature<'_>) -> Result<GatherRows, OpError> {
    let (data, indices) = (&signature.inputs[0].shape, &signature.inputs[1].shape);
    let Some((axes, places)) = indices.split_first() else { return Err(shape_error("indices has no axes")) };
    let (sizes, inner): (Dims, usize) = (data[..*axes].into(), data[*axes..].iter().product());
    let count = places.iter().product();
    check_integers("indices", signature.inputs[1].dtype)?;
    Ok(GatherRows { sizes, inner, count })
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let GatherRows { sizes, inner, count } = rows(signature)?;
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let ([data, indices], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let (x, indices) = (elements::<T>(data)?, integers(call.par, indices)?);
        gather_nd(call.par, x, &sizes, inner, &indices, count, elements_mut(out)?).map_err(kernel_error)
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn an_error_says_that_an_index_may_be_nan() {
        let test = OpTest::new("gather_nd").f32([3], &[0.0; 3]).f32([1, 1], &[f32::NAN]);
        let message = test.error().message.clone();
        assert!(message.contains("(or NaN) is out of range"), "{message}");
    }
}
