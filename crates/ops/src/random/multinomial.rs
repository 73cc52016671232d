//! `_sample_multinomial`: random choices with given probabilities.

use super::key;
use crate::prelude::*;
use mxrt_kernels::random::Stream;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_sample_multinomial",
    aliases: &["sample_multinomial"],
    doc: "Numbers of choices, drawn with the probabilities along the last axis of data; with \
        get_prob also their log-probabilities.",
    outputs: Outputs::Count(|attrs| 1 + usize::from(attrs.bool("get_prob"))),
    attrs: &[
        AttrDef::new("shape", AttrKind::Shape, "()", "Shape drawn for every distribution."),
        AttrDef::new("get_prob", AttrKind::Bool, "False", "Return log-probabilities as well."),
        AttrDef::new(
            "dtype",
            AttrKind::DType(&["float16", "float32", "float64", "int32", "uint8"]),
            "int32",
            "dtype of the choices.",
        ),
    ],
    infer_shape,
    infer_dtype: |dtypes| {
        let dtype = dtypes.attrs.opt_dtype("dtype").unwrap_or(DType::I32);
        dtypes.set_output(0, dtype)?;
        match dtypes.inputs[0] {
            Some(data) => dtypes.set_output(1, data),
            None => Ok(()),
        }
    },
    bind,
    form,
    random: true,
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    if dims.pop().is_none() {
        return Err(shape_error("data has no axes; probabilities stand along the last one"));
    }
    dims.extend(extents("shape", shapes.attrs.ints("shape"))?.into_iter().map(Some));
    if dims.is_empty() {
        dims.push(Some(1));
    }
    for i in 0..shapes.outputs.len() {
        shapes.set_output(i, PartialShape::from_dims(dims.iter().copied()))?;
    }
    Ok(())
}

/// The first choice at which the running sum of probabilities passes `u`.
fn choose(probabilities: &[f64], u: f64) -> usize {
    let mut sum = 0.0;
    for (i, p) in probabilities.iter().enumerate() {
        sum += p;
        if u < sum {
            return i;
        }
    }
    probabilities.len().saturating_sub(1)
}

fn form(_: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    check_numeric(signature.outputs[0].dtype)?;
    match signature.inputs[0].shape.last() {
        None | Some(0) => Ok(None),
        Some(_) => for_floats(signature.inputs[0].dtype, KernelForm::Draw(DrawForm::Choices)),
    }
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = &signature.inputs[0].shape;
    let choices = shape.last().copied().unwrap_or(0);
    if choices == 0 {
        return Err(shape_error(format!("data has shape {shape}: there is nothing to choose from")));
    }
    let each = signature.outputs[0].shape.size().checked_div(shape.size() / choices).unwrap_or(0).max(1);
    check_float(signature.inputs[0].dtype)?;
    check_numeric(signature.outputs[0].dtype)?;
    Ok(kernel_fn(signature, move |call| {
        let p = floats(call.par, &call.inputs[0])?;
        let RandomKey { seed, position } = key(call)?;
        let Some((out, rest)) = call.outputs.split_first_mut() else { return Err(wrong_arity()) };
        let row = |i: usize| &p[i / each * choices..][..choices];
        let choose = |i: usize| choose(row(i), Stream::new(seed, position, i as u64).uniform());
        let chosen = Scratch::collect(call.par, out.len(), (0..out.len()).map(|i| choose(i) as i64));
        store_integers(&chosen, out)?;
        let Some(logs) = rest.first_mut() else { return Ok(()) };
        let logarithms = chosen.iter().enumerate().map(|(i, choice)| row(i)[*choice as usize].ln());
        store_floats(&Scratch::collect(call.par, chosen.len(), logarithms), logs)
    }))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn impossible_choices_are_never_made() {
        let y = OpTest::new("_sample_multinomial").attr("shape", "50").f32([3], &[0.0, 0.5, 0.5]).run();
        let y = y.values::<i32>();
        assert!(y.iter().all(|c| *c == 1 || *c == 2) && y.contains(&1) && y.contains(&2), "{y:?}");
    }
}
