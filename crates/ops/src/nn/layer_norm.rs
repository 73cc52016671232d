//! `LayerNorm`: normalisation along one axis of each instance.

use crate::prelude::*;
use mxrt_kernels::norm::{layer_norm, mean_std};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "LayerNorm",
    aliases: &["_npx_layer_norm"],
    doc: "Normalises along one axis by its mean and deviation, then scales by gamma and adds beta.",
    inputs: Inputs::Fixed(&["data", "gamma", "beta"]),
    outputs: Outputs::Named(
        |attrs| {
            if attrs.bool("output_mean_var") { &["output", "mean", "std"] } else { &["output"] }
        },
    ),
    hidden_outputs: |attrs| if attrs.bool("output_mean_var") { 0 } else { 2 },
    attrs: &[
        AttrDef::new("axis", AttrKind::Int, "-1", "The axis that is normalised."),
        AttrDef::new("eps", AttrKind::Float, "9.99999975e-06", "Added to the variance."),
        AttrDef::new("output_mean_var", AttrKind::Bool, "False", "Return mean and deviation as well."),
    ],
    infer_shape,
    infer_dtype: |dtypes| dtypes.uniform(&["data", "gamma", "beta"]),
    bind,
    form,
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            is_within_rows(attrs.int("axis"), signature) && rows_of_data(attrs, signature, divided)
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.same_as_first()?;
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let axis = resolve_axis(shapes.attrs.int("axis"), dims.len())?;
    let size = PartialShape::from_dims([dims[axis]]);
    shapes.set_input(1, "gamma", size.clone())?;
    shapes.set_input(2, "beta", size)?;
    dims[axis] = Some(1);
    for i in 1..shapes.outputs.len() {
        shapes.set_output(i, PartialShape::from_dims(dims.iter().copied()))?;
    }
    Ok(())
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (data, eps) = (&signature.inputs[0], attrs.float("eps"));
    let split = split_at(attrs.int("axis"), &data.shape)?;
    for_floats(data.dtype, KernelForm::LayerNorm { split, eps, of_rows: None })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let split = split_at(attrs.int("axis"), &signature.inputs[0].shape)?;
    let eps = attrs.float("eps");
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let [data, gamma, beta] = call.inputs else { return Err(wrong_arity()) };
        let x = elements::<T>(data)?;
        let Some((out, others)) = call.outputs.split_first_mut() else { return Err(wrong_arity()) };
        layer_norm(call.par, x, split, elements(gamma)?, elements(beta)?, eps, elements_mut(out)?);
        if let [mean, std] = others {
            mean_std(call.par, x, split, eps, elements_mut(mean)?, elements_mut(std)?);
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn mean_and_deviation_are_taken_out() {
        let y = OpTest::new("LayerNorm")
            .attr("eps", "0")
            .attr("output_mean_var", "1")
            .f32([1, 2], &[1.0, 3.0])
            .f32([2], &[1.0, 10.0])
            .f32([2], &[0.0, 0.5])
            .run_all();
        assert_close(&f32s(&y[0], [1, 2]), &[-1.0, 10.5]);
        assert_close(&[f32s(&y[1], [1, 1])[0], f32s(&y[2], [1, 1])[0]], &[2.0, 1.0]);
    }
}
