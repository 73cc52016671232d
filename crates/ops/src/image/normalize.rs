//! `_image_normalize`: planes minus their mean, divided by their deviation.

use crate::prelude::*;
use mxrt_kernels::image::layout::normalize;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_image_normalize",
    aliases: &["_npx__image_normalize"],
    doc: "Subtracts mean from (channels, height, width), or a batch of it, and divides by std: one \
          number, or one for each of the 1 or 3 channels.",
    attrs: &[
        AttrDef::new("mean", AttrKind::Floats, "(0.0, 0.0, 0.0, 0.0)", "Mean of each channel."),
        AttrDef::new("std", AttrKind::Floats, "(1.0, 1.0, 1.0, 1.0)", "Standard deviation of each channel."),
    ],
    infer_shape,
    bind,
    form: |attrs, signature| {
        let (pixels, terms) = planes(attrs, signature)?;
        for_numeric(signature.inputs[0].dtype, KernelForm::NormalizePlanes { pixels, terms })
    },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.all_same()?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let channels = match dims[..] {
        [channels, _, _] | [_, channels, _, _] => channels,
        _ => {
            return Err(shape_error(format!(
                "Input tensor must have shape (channels, height, width), or (N, channels, height, \
                 width), but got {}",
                shapes.inputs[0]
            )));
        }
    };
    match channels {
        Some(channels @ (1 | 3)) => terms(shapes.attrs, channels).map(drop),
        None => Ok(()),
        Some(_) => Err(shape_error(format!(
            "the channel dimension of the input tensor must have either 1 or 3 elements, but got \
             input with shape {}",
            shapes.inputs[0]
        ))),
    }
}

/// Mean and deviation of each channel. Both must be given: the four numbers that stand for "not
/// given" fit no image, as in MXNet.
fn terms(attrs: &Attrs, channels: usize) -> Result<Vec<[f64; 2]>, OpError> {
    let of = |name: &str, channel: usize| match attrs.floats(name) {
        [one] => Ok(*one),
        all if all.len() == channels => Ok(all[channel]),
        all => Err(value_error(format!(
            "Invalid {name} for an input with {channels} channels: it must have either 1 or {channels} elements, but \
             got {}",
            all.len()
        ))),
    };
    (0..channels).map(|channel| Ok([of("mean", channel)?, of("std", channel)?])).collect()
}

/// Elements of a plane, and the terms of each channel.
fn planes(attrs: &Attrs, signature: &Signature<'_>) -> Result<(usize, Vec<[f64; 2]>), OpError> {
    let shape = &signature.inputs[0].shape;
    let axis = shape.len() - 3;
    Ok((shape[axis + 1] * shape[axis + 2], terms(attrs, shape[axis])?))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (pixels, terms) = planes(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        normalize::<T>(call.par, pixels, &terms, elements(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn channels_have_terms_of_their_own_or_one_for_all() {
        let x = [1.0, 2.0, 3.0];
        let y = OpTest::new("_image_normalize").attr("mean", "(1, 0, 1)").attr("std", "2").f32([3, 1, 1], &x).run();
        assert_eq!(f32s(&y, [3, 1, 1]), [0.0, 1.0, 1.0]);
        let y = OpTest::new("_image_normalize").attr("mean", "0").attr("std", "1").f32([1, 3, 1, 1], &x).run();
        assert_eq!(f32s(&y, [1, 3, 1, 1]), x);
        for attr in ["mean", "std"] {
            let error = OpTest::new("_image_normalize").attr(attr, "1").f32([3, 1, 1], &x).error().message.clone();
            assert!(error.contains("either 1 or 3 elements, but got 4"), "{error}");
        }
        let error = OpTest::new("_image_normalize").attr("mean", "(1, 2)").f32([3, 1, 1], &x).error().message.clone();
        assert!(error.contains("either 1 or 3 elements, but got 2"), "{error}");
        assert!(OpTest::new("_image_normalize").f32([2, 1, 1], &x[..2]).error().message.contains("either 1 or 3"));
    }
}
