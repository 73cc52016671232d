//! `_image_resize`: images of another size.

use super::image_axis;
use crate::prelude::*;
use mxrt_kernels::image::resize::{Interpolation, Resize};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_image_resize",
    aliases: &["_npx__image_resize"],
    doc: "Resizes (height, width, channels), or a batch of it.",
    attrs: &[
        AttrDef::new("size", AttrKind::Shape, "()", "(width, height), or one number for both."),
        AttrDef::new("keep_ratio", AttrKind::Bool, "False", "With one number: it is the shorter edge."),
        INTERP,
    ],
    infer_shape: |shapes| infer_shape(shapes, image_axis(shapes)?, image_size),
    bind,
    form,
    ..OpDef::BASE
}];

pub(super) const INTERP: AttrDef = AttrDef::new(
    "interp",
    AttrKind::Int,
    "1",
    "How pixels are made: 0 nearest, 1 bilinear, 2 cubic, 3 mean of the area, 4 Lanczos of 8 \
     pixels, 5 bilinear with shares of 8 bits. An image that keeps its size is copied.",
);

/// Height and width, where they are known.
type Extents = [Option<usize>; 2];

pub(super) fn infer_shape(
    shapes: &mut Shapes<'_>,
    axis: Option<usize>,
    size: fn(&Attrs, Extents) -> Result<Extents, OpError>,
) -> Result<(), OpError> {
    let (Some(axis), Some(mut dims)) = (axis, shapes.dims(0)) else { return Ok(()) };
    let made = size(shapes.attrs, [dims[axis], dims[axis + 1]])?;
    for (name, extent) in ["height", "width"].iter().zip(made) {
        if let Some(extent) = extent.filter(|extent| !(1..=0x7fff_ffff).contains(extent)) {
            return Err(shape_error(format!(
                "the image would have a {name} of {extent} pixels; expected 1 to 2147483647"
            )));
        }
    }
    dims[axis..axis + 2].copy_from_slice(&made);
    shapes.set_output(0, PartialShape::from_dims(dims))
}

/// Height and width that `size` and `keep_ratio` ask for.
fn image_size(attrs: &Attrs, old: Extents) -> Result<Extents, OpError> {
    let size = attrs.ints("size");
    if let Some(wrong) = size.iter().find(|size| **size <= 0) {
        return Err(value_error(format!("Input size should be greater than 0, but got {wrong}")));
    }
    match *size {
        [width, height] => Ok([Some(height as usize), Some(width as usize)]),
        [edge] if !attrs.bool("keep_ratio") => Ok([Some(edge as usize); 2]),
        [edge] => {
            let [Some(height), Some(width)] = old else { return Ok([None; 2]) };
            let edge = edge as usize;
            let longer = |long: usize, short: usize| long.saturating_mul(edge).checked_div(short).unwrap_or(0);
            Ok(if height > width {
                [Some(longer(height, width)), Some(edge)]
            } else {
                [Some(edge), Some(longer(width, height))]
            })
        }
        _ => Err(value_error(format!("Input size dimension must be 1 or 2, but got {}", size.len()))),
    }
}

/// The way to make pixels of an element type, as OpenCV numbers them.
fn interpolation(attrs: &Attrs, dtype: DType) -> Result<Interpolation, OpError> {
    Ok(match attrs.int("interp") {
        0 => Interpolation::Nearest,
        1 => Interpolation::Linear,
        2 => Interpolation::Cubic,
        3 => Interpolation::Area,
        4 => Interpolation::Lanczos,
        5 if dtype == DType::U8 => Interpolation::LinearExact,
        5 => Interpolation::Linear,
        other => return Err(value_error(format!("interp is {other}, expected 0, 1, 2, 3, 4 or 5"))),
    })
}

fn resize(attrs: &Attrs, signature: &Signature<'_>) -> Result<Resize, OpError> {
    let [old, new] = [&signature.inputs[0].shape, &signature.outputs[0].shape];
    let axis = old.len() - 3;
    let (from, to) = ([old[axis], old[axis + 1]], [new[axis], new[axis + 1]]);
    // No pixels are made of an image that keeps its size, whatever the number.
    let interpolation =
        if from == to { Interpolation::Nearest } else { interpolation(attrs, signature.inputs[0].dtype)? };
    let resize = Resize { from, to, channels: old[axis + 2], interpolation };
    crate::vision::check_pixels(resize.from, &signature.outputs[0])?;
    Ok(resize)
}

pub(super) fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let resize = resize(attrs, signature)?;
    let form = if resize.from == resize.to { KernelForm::Copy } else { KernelForm::ResizeImages(resize) };
    for_numeric(signature.inputs[0].dtype, form)
}

pub(super) fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let resize = resize(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        resize.run::<T>(call.par, elements(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn sizes_are_given_in_several_ways() {
        let shape = |attrs: &[(&str, &str)]| {
            let test = OpTest::new("_image_resize").attrs(attrs);
            test.f32([4, 6, 1], &[1.0; 24]).run().tensor.shape[..2].to_vec()
        };
        assert_eq!(shape(&[("size", "(3, 2)")]), [2, 3]);
        assert_eq!(shape(&[("size", "3")]), [3, 3]);
        assert_eq!(shape(&[("size", "3"), ("keep_ratio", "True")]), [3, 4]);
    }

    #[test]
    fn what_makes_no_image_is_an_error() {
        let error =
            |attrs: &[(&str, &str)]| OpTest::new("_image_resize").attrs(attrs).f32([4, 6, 1], &[1.0; 24]).error();
        assert!(error(&[]).message.contains("must be 1 or 2"));
        let message = "the image would have a width of 1000000000000 pixels; expected 1 to 2147483647";
        assert!(error(&[("size", "(1000000000000, 5)")]).message.contains(message));
        assert!(error(&[("size", "0")]).message.contains("greater than 0"));
        assert!(error(&[("size", "2"), ("interp", "7")]).message.contains("expected 0, 1, 2, 3, 4 or 5"));
    }
}
