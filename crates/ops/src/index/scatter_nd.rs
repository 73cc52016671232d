//! `scatter_nd`: elements put in places given by several indices.

use super::take::first_decides;
use crate::prelude::*;
use mxrt_kernels::index::scatter_set_nd;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "scatter_nd",
    doc: "An array of the given shape with data at the places indices name, zero elsewhere.",
    inputs: Inputs::Fixed(&["data", "indices"]),
    attrs: &[AttrDef::required("shape", AttrKind::Shape, "Shape of the result.")],
    infer_shape: |shapes| {
        let shape = Shape::new(&extents("shape", shapes.attrs.ints("shape"))?);
        shapes.set_output(0, shape)
    },
    infer_dtype: first_decides,
    bind: bind_scatter,
    form: |_, signature| {
        let [values, indices] = signature.inputs else { return Err(wrong_arity()) };
        SlicePositions::new(&signature.outputs[0].shape, &values.shape, &indices.shape)?.form(false, signature)
    },
    ..OpDef::BASE
}];

/// The targets of slices of values.
pub(super) struct SlicePositions {
    pub(super) sizes: Dims,
    pub(super) inner: usize,
    pub(super) count: usize,
}

impl SlicePositions {
    pub(super) fn new(whole: &Shape, values: &Shape, indices: &Shape) -> Result<SlicePositions, OpError> {
        let Some((axes, places)) = indices.split_first() else { return Err(shape_error("indices has no axes")) };
        let Some(rest) = whole.get(*axes..) else {
            return Err(shape_error(format!("indices {indices} name {axes} axes but the array {whole} has fewer")));
        };
        let expected: Shape = places.iter().chain(rest).copied().collect();
        if values.checked_size() != expected.checked_size() {
            return Err(shape_error(format!(
                "the values have shape {values} but indices {indices} into {whole} need {expected}"
            )));
        }
        Ok(SlicePositions {
            sizes: whole[..*axes].into(),
            inner: rest.iter().product(),
            count: places.iter().product(),
        })
    }

    pub(super) fn form(self, onto_first: bool, signature: &Signature<'_>) -> MaybeForm {
        let (values, indices) = (usize::from(onto_first), usize::from(onto_first) + 1);
        check_integers("indices", signature.inputs[indices].dtype)?;
        let SlicePositions { sizes, inner, count } = self;
        Ok(Some(KernelForm::ScatterRows { onto_first, values, indices, sizes: sizes.to_vec(), inner, count }))
    }
}

fn bind_scatter(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let places =
        SlicePositions::new(&signature.outputs[0].shape, &signature.inputs[0].shape, &signature.inputs[1].shape)?;
    check_integers("indices", signature.inputs[1].dtype)?;
    dispatch_size!(signature.inputs[0].dtype, T => Ok(kernel_fn(signature, move |call| {
        let ([values, indices], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let SlicePositions { sizes, inner, count } = &places;
        let (values, indices, out) = (elements::<T>(values)?, integers(call.par, indices)?, elements_mut::<T>(out)?);
        out.fill(0);
        scatter_set_nd(values, &indices, *count, out, sizes, *inner).map_err(kernel_error)
    })))
}
