//! `_cvcopyMakeBorder`: an image with a border.

use crate::prelude::*;
use mxrt_kernels::image::border::{Border, Bordered};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_cvcopyMakeBorder",
    doc: "(height, width, channels) with a border.",
    inputs: Inputs::Fixed(&["src"]),
    attrs: &[
        AttrDef::required("top", AttrKind::IntFrom(0), "Rows above the image."),
        AttrDef::required("bot", AttrKind::IntFrom(0), "Rows below it."),
        AttrDef::required("left", AttrKind::IntFrom(0), "Columns to the left of it."),
        AttrDef::required("right", AttrKind::IntFrom(0), "Columns to the right of it."),
        AttrDef::new(
            "type",
            AttrKind::Int,
            "0",
            "What it shows: 0 a colour, 1 the outermost pixel, 2 the mirrored image, 3 the \
             repeated image, 4 the image mirrored at its outermost pixel.",
        ),
        AttrDef::new("value", AttrKind::Float, "0.0", "The colour: one number for all channels.").wide(),
        AttrDef::new("values", AttrKind::Floats, "()", "The colour: a number for each channel.").wide(),
    ],
    infer_shape,
    bind,
    form,
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    if dims.len() != 3 {
        return Err(shape_error(format!("src has shape {}; expected (height, width, channels)", shapes.inputs[0])));
    }
    for (axis, sides) in [["top", "bot"], ["left", "right"]].into_iter().enumerate() {
        let more = sides.iter().try_fold(0_usize, |sum, side| sum.checked_add(shapes.attrs.count(side)));
        let Some(size) = dims[axis] else { continue };
        let sum = more.and_then(|more| more.checked_add(size)).filter(|sum| *sum <= 0x7fff_ffff);
        dims[axis] = Some(sum.ok_or_else(|| value_error("the image with its border would be too large"))?);
    }
    shapes.set_output(0, PartialShape::from_dims(dims))
}

/// The image with its border, and the colour of that.
fn bordered(attrs: &Attrs, signature: &Signature<'_>) -> Result<(Bordered, Vec<f64>), OpError> {
    let border = match attrs.int("type") {
        0 => Border::Constant,
        1 => Border::Replicate,
        2 => Border::Reflect,
        3 => Border::Wrap,
        4 => Border::Reflect101,
        other => return Err(value_error(format!("type is {other}, expected 0, 1, 2, 3 or 4"))),
    };
    let [old, new] = [&signature.inputs[0].shape, &signature.outputs[0].shape];
    let bordered = Bordered {
        shape: [old[0], old[1], old[2]],
        before: [attrs.count("top"), attrs.count("left")],
        to: [new[0], new[1]],
        border,
    };
    let values = attrs.floats("values");
    // As in OpenCV: a colour has up to four channels, and one number stands for the first three.
    let value = attrs.float("value");
    let colour: Vec<f64> = (0..old[2])
        .map(
            |c| if values.is_empty() { if c < 3 { value } else { 0.0 } } else { values.get(c).copied().unwrap_or(0.0) },
        )
        .collect();
    Ok((bordered, colour))
}

/// The colour in the type of the elements.
fn converted<T: Element>(colour: &[f64]) -> Vec<T> {
    colour.iter().map(|v| T::saturated(if T::FLOAT { *v } else { v.round_ties_even() })).collect()
}

fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (bordered, colour) = bordered(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, numeric, T => {
        let colour = converted::<T>(&colour).into_iter().map(Element::to_f64).collect();
        Ok(Some(KernelForm::BorderedImage { bordered, colour }))
    })
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let (bordered, colour) = bordered(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, numeric, T => {
        let colour: Vec<T> = converted(&colour);
        Ok(kernel_fn(signature, move |call| {
            bordered.run::<T>(call.par, &colour, elements(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
            Ok(())
        }))
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    fn border(pairs: &[(&str, &str)]) -> OpTest {
        let none = [("top", "0"), ("bot", "0")];
        none.iter().chain(pairs).fold(OpTest::new("_cvcopyMakeBorder"), |t, (k, v)| t.attr(k, v))
    }

    #[test]
    fn borders_have_a_colour_or_show_the_image() {
        let sides = [("left", "1"), ("right", "2")];
        let y = border(&[sides[0], sides[1], ("value", "7")]).f32([1, 2, 1], &[1.0, 2.0]).run();
        assert_eq!(f32s(&y, [1, 5, 1]), [7.0, 1.0, 2.0, 7.0, 7.0]);
        let y = border(&[sides[0], sides[1], ("type", "1")]).f32([1, 2, 1], &[1.0, 2.0]).run();
        assert_eq!(f32s(&y, [1, 5, 1]), [1.0, 1.0, 2.0, 2.0, 2.0]);
        let y = border(&[("left", "1"), ("right", "0"), ("values", "(3, 4)")]).f32([1, 1, 2], &[1.0, 2.0]).run();
        assert_eq!(f32s(&y, [1, 2, 2]), [3.0, 4.0, 1.0, 2.0]);
        assert!(
            border(&[sides[0], sides[1], ("type", "9")])
                .f32([1, 2, 1], &[1.0, 2.0])
                .error()
                .message
                .contains("type is 9")
        );
    }
}
