//! `_image_resize` and `_cvimresize`: images of another size.

use super::image_axis;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::image::resize::{Interpolation, Resize};
use mxrt_tensor::{DType, PartialShape};

const INTERP: AttrDef = AttrDef::new(
    "interp",
    AttrKind::Int,
    "1",
    "How pixels are made: 0 nearest, 1 bilinear, 2 cubic, 3 mean of the area, 4 Lanczos of 8 \
     pixels, 5 bilinear with shares of 8 bits. An image that keeps its size is copied.",
);

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
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
    },
    OpDef {
        name: "_cvimresize",
        aliases: &["_npi_cvimresize"],
        doc: "Resizes (height, width, channels).",
        inputs: Inputs::Fixed(&["src"]),
        attrs: &[
            AttrDef::required("w", AttrKind::IntFrom(1), "Width."),
            AttrDef::required("h", AttrKind::IntFrom(1), "Height."),
            INTERP,
        ],
        infer_shape: |shapes| {
            let axis = match shapes.dims(0) {
                Some(dims) if dims.len() != 3 => {
                    let have = &shapes.inputs[0];
                    return Err(shape_error(format!("src has shape {have}; expected (height, width, channels)")));
                }
                dims => dims.map(|_| 0),
            };
            infer_shape(shapes, axis, |attrs, _| Ok([Some(attrs.count("h")), Some(attrs.count("w"))]))
        },
        bind,
        form,
        ..OpDef::BASE
    },
];

/// Height and width, where they are known.
type Extents = [Option<usize>; 2];

fn infer_shape(
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

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let resize = resize(attrs, signature)?;
    let form = if resize.from == resize.to { KernelForm::Copy } else { KernelForm::ResizeImages(resize) };
    for_numeric(signature.inputs[0].dtype, form)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let resize = resize(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
        resize.run::<T>(call.par, elements(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn sizes_are_given_in_several_ways() {
        let shape = |attrs: &[(&str, &str)]| {
            let test = attrs.iter().fold(OpTest::new("_image_resize"), |t, (k, v)| t.attr(k, v));
            test.f32([4, 6, 1], &[1.0; 24]).run().tensor.shape[..2].to_vec()
        };
        assert_eq!(shape(&[("size", "(3, 2)")]), [2, 3]);
        assert_eq!(shape(&[("size", "3")]), [3, 3]);
        assert_eq!(shape(&[("size", "3"), ("keep_ratio", "True")]), [3, 4]);
        let y = OpTest::new("_cvimresize").attr("w", "1").attr("h", "2").f32([4, 6, 1], &[1.0; 24]).run();
        assert_eq!(f32s(&y, [2, 1, 1]), [1.0, 1.0]);
    }

    #[test]
    fn what_makes_no_image_is_an_error() {
        let error = |attrs: &[(&str, &str)]| {
            attrs.iter().fold(OpTest::new("_image_resize"), |t, (k, v)| t.attr(k, v)).f32([4, 6, 1], &[1.0; 24]).error()
        };
        assert!(error(&[]).message.contains("must be 1 or 2"));
        let message = "the image would have a width of 1000000000000 pixels; expected 1 to 2147483647";
        assert!(error(&[("size", "(1000000000000, 5)")]).message.contains(message));
        assert!(error(&[("size", "0")]).message.contains("greater than 0"));
        assert!(error(&[("size", "2"), ("interp", "7")]).message.contains("expected 0, 1, 2, 3, 4 or 5"));
    }

    #[test]
    fn an_image_that_keeps_its_size_is_copied_whatever_the_interpolation() {
        let values: Vec<f32> = (0..24).map(|v| v as f32).collect();
        for interp in ["5", "9", "-1"] {
            let test = OpTest::new("_cvimresize").attr("w", "6").attr("h", "4").attr("interp", interp);
            assert_eq!(f32s(&test.f32([4, 6, 1], &values).run(), [4, 6, 1]), values);
        }
    }
}
