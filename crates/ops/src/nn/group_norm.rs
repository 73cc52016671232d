//! `GroupNorm`: normalisation over groups of channels of every instance.

use crate::prelude::*;
use mxrt_kernels::norm::{mean_std, row_norm};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "GroupNorm",
    doc: "Normalises groups of channels of an instance; gamma and beta: one value a group.",
    inputs: Inputs::Fixed(&["data", "gamma", "beta"]),
    outputs: Outputs::Named(
        |attrs| {
            if attrs.bool("output_mean_var") { &["output", "mean", "std"] } else { &["output"] }
        },
    ),
    hidden_outputs: |attrs| if attrs.bool("output_mean_var") { 0 } else { 2 },
    attrs: &[
        AttrDef::new("num_groups", AttrKind::IntFrom(1), "1", "Number of groups."),
        AttrDef::new("eps", AttrKind::Float, "9.99999975e-06", "Added to the variance."),
        AttrDef::new("output_mean_var", AttrKind::Bool, "False", "Return mean and deviation as well."),
    ],
    infer_shape: group_shapes,
    bind: |attrs, signature| bind(attrs.count("num_groups"), attrs.float("eps"), signature),
    form: |attrs, signature| form(attrs.count("num_groups"), attrs.float("eps"), signature),
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn group_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.same_as_first()?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let groups = shapes.attrs.count("num_groups");
    if dims.len() < 3 || dims[1].is_some_and(|c| c % groups != 0) {
        return Err(shape_error(format!(
            "data has shape {} but needs at least 3 axes and channels (axis 1) that \
             num_groups={groups} divides",
            shapes.inputs[0]
        )));
    }
    let each = PartialShape::from_dims([Some(groups)]);
    shapes.set_input(1, "gamma", each.clone())?;
    shapes.set_input(2, "beta", each)?;
    for i in 1..shapes.outputs.len() {
        shapes.set_output(i, PartialShape::from_dims([dims[0], Some(groups)]))?;
    }
    Ok(())
}

/// Rows and elements of a row, where every instance consists of `groups` rows.
fn rows_of(groups: usize, shape: &Shape) -> [usize; 2] {
    let rows = shape[0] * groups;
    [rows, shape.size().checked_div(rows).unwrap_or(0)]
}

pub(super) fn form(groups: usize, eps: f64, signature: &Signature<'_>) -> MaybeForm {
    let [rows, each] = rows_of(groups, &signature.inputs[0].shape);
    let form = KernelForm::LayerNorm { split: [rows, each, 1], eps, of_rows: Some(groups) };
    for_floats(signature.inputs[0].dtype, form)
}

pub(super) fn bind(groups: usize, eps: f64, signature: &Signature<'_>) -> BoundKernel {
    let [rows, each] = rows_of(groups, &signature.inputs[0].shape);
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let [data, gamma, beta] = call.inputs else { return Err(wrong_arity()) };
        let x = elements::<T>(data)?;
        let Some((out, others)) = call.outputs.split_first_mut() else { return Err(wrong_arity()) };
        row_norm(call.par, x, [rows, each], elements(gamma)?, elements(beta)?, eps, elements_mut(out)?);
        if let [mean, std] = others {
            mean_std(call.par, x, [rows, each, 1], eps, elements_mut(mean)?, elements_mut(std)?);
        }
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn groups_are_normalised_on_their_own() {
        let test = OpTest::new("GroupNorm").attr("eps", "0").attr("num_groups", "2").attr("output_mean_var", "1");
        let test = test.f32([1, 2, 2], &[1.0, 3.0, 10.0, 30.0]).f32([2], &[1.0, 1.0]).f32([2], &[0.0, 0.0]);
        let y = test.run_all();
        assert_close(&f32s(&y[0], [1, 2, 2]), &[-1.0, 1.0, -1.0, 1.0]);
        assert_close(&f32s(&y[1], [1, 2]), &[2.0, 20.0]);
    }
}
