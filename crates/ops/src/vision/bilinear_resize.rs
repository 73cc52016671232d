//! `_contrib_BilinearResize2D`: bilinear resizing of images.

use super::{image_dims, planes};
use crate::prelude::*;
use mxrt_kernels::vision::resize::BilinearResize;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_BilinearResize2D",
    doc: "Resizes images by bilinear interpolation.\n\n\
        data is (batch, channels, height, width). mode says what the new height and width are: \
        size (height and width, or the old ones times scale_height and scale_width), odd_scale ((n \
        - 1) * scale + 1 for odd n, else n * scale), like (those of the second input), \
        to_even_down, to_even_up, to_odd_down, to_odd_up (the next number of that kind).",
    inputs: Inputs::ByAttrs(|attrs| if attrs.str("mode") == "like" { &["data", "like"] } else { &["data"] }),
    attrs: &[
        AttrDef::new("height", AttrKind::IntFrom(1), "1", "Height of the output in mode size."),
        AttrDef::new("width", AttrKind::IntFrom(1), "1", "Width of the output in mode size."),
        AttrDef::new("scale_height", AttrKind::OptFloat, "None", "Factor of the height in modes size and odd_scale."),
        AttrDef::new("scale_width", AttrKind::OptFloat, "None", "Factor of the width in modes size and odd_scale."),
        AttrDef::new(
            "mode",
            AttrKind::Enum(&["like", "odd_scale", "size", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"]),
            "size",
            "What the size of the output is.",
        ),
        AttrDef::new(
            "align_corners",
            AttrKind::Bool,
            "True",
            "Whether the centers of the corner pixels fall on each other, not the edges of the \
            images.",
        ),
    ],
    infer_shape,
    // Only the extents of `like` are used: its element type is its own.
    infer_dtype: |dtypes| {
        let of_data = dtypes.inputs[0];
        let Some(dtype) = of_data.or(dtypes.outputs[0]).or(dtypes.inputs.iter().find_map(|d| *d)) else {
            return Ok(());
        };
        dtypes.inputs.iter_mut().filter(|known| known.is_none()).for_each(|unknown| *unknown = Some(dtype));
        dtypes.set_output(0, dtype)
    },
    bind,
    form: |attrs, signature| {
        planes(signature)?;
        let align_corners = attrs.bool("align_corners");
        for_floats(signature.inputs[0].dtype, KernelForm::Resample(Resampling::Bilinear { align_corners }))
    },
    rewrites: &Rewrites {
        row_wise: |attrs, signature, divided| {
            if attrs.str("mode") == "like" { divided == [true, true] } else { rows_of_data(attrs, signature, divided) }
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// A scaled extent, computed in single precision and truncated as in MXNet.
fn scaled(n: usize, scale: f64) -> usize {
    (scale as f32 * n as f32) as usize
}

/// The scales of modes that need both.
fn scales(attrs: &Attrs) -> Result<[f64; 2], OpError> {
    let mode = attrs.str("mode");
    match (attrs.opt_float("scale_height"), attrs.opt_float("scale_width")) {
        (Some(height), Some(width)) if [height, width].iter().all(|s| *s > 0.0 && s.is_finite()) => Ok([height, width]),
        (Some(height), Some(width)) => {
            Err(value_error(format!("scale_height={height} and scale_width={width} must be positive and finite")))
        }
        _ => Err(value_error(format!("mode {mode} with one scale needs the other one: scale_height and scale_width"))),
    }
}

/// The extent of the output along axis 0 (height) or 1 (width) of an image with `n` pixels there.
fn resized(attrs: &Attrs, axis: usize, n: usize) -> Result<usize, OpError> {
    let odd = !n.is_multiple_of(2);
    let size = match attrs.str("mode") {
        // A scale of the width alone is ignored, as in MXNet.
        "size" if attrs.opt_float("scale_height").is_none() => attrs.count(["height", "width"][axis]),
        "size" => scaled(n, scales(attrs)?[axis]),
        "odd_scale" if odd => scaled(n - 1, scales(attrs)?[axis]).saturating_add(1),
        "odd_scale" => scaled(n, scales(attrs)?[axis]),
        "to_even_down" => n - usize::from(odd),
        "to_even_up" => n + usize::from(odd),
        "to_odd_down" => n.saturating_sub(usize::from(!odd)),
        _ => n + usize::from(!odd),
    };
    match size {
        0..=0x7fff_ffff => Ok(size),
        _ => Err(shape_error(format!("{n} pixels along an axis would become {size}; expected 0 to 2147483647"))),
    }
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some([batch, channels, height, width]) = image_dims(shapes, 0, "data")? else { return Ok(()) };
    let size = if shapes.attrs.str("mode") == "like" {
        let Some([_, _, height, width]) = image_dims(shapes, 1, "like")? else { return Ok(()) };
        [height, width]
    } else {
        let extent = |axis: usize, n: Option<usize>| n.map(|n| resized(shapes.attrs, axis, n)).transpose();
        [extent(0, height)?, extent(1, width)?]
    };
    shapes.set_output(0, PartialShape::from_dims([batch, channels, size[0], size[1]]))
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let [from, to] = planes(signature)?;
    let align_corners = attrs.bool("align_corners");
    let resize = BilinearResize { from, to, align_corners };
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        resize.run(call.par, elements::<T>(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f16s, f32s};

    fn resize(attrs: &[(&str, &str)]) -> OpTest {
        OpTest::new("_contrib_BilinearResize2D").attrs(attrs)
    }

    #[test]
    fn corners_are_aligned_by_their_centers_or_by_their_edges() {
        let x = [0.0, 3.0];
        let y = resize(&[("height", "1"), ("width", "4")]).f32([1, 1, 1, 2], &x).run();
        assert_close(&f32s(&y, [1, 1, 1, 4]), &[0.0, 1.0, 2.0, 3.0]);
        let y = resize(&[("width", "4"), ("align_corners", "False")]).f32([1, 1, 1, 2], &x).run();
        assert_close(&f32s(&y, [1, 1, 1, 4]), &[0.0, 0.75, 2.25, 3.0]);
    }

    #[test]
    fn modes_choose_the_size() {
        let size = |attrs: &[(&str, &str)]| {
            let y = resize(attrs).f32([1, 1, 5, 4], &[1.0; 20]).run();
            y.tensor.shape[2..].to_vec()
        };
        let scales = [("scale_height", "2"), ("scale_width", "0.5")];
        assert_eq!(size(&scales), [10, 2]);
        assert_eq!(size(&[("mode", "odd_scale"), scales[0], scales[1]]), [9, 2]);
        for (mode, want) in
            [("to_even_down", [4, 4]), ("to_even_up", [6, 4]), ("to_odd_down", [5, 3]), ("to_odd_up", [5, 5])]
        {
            assert_eq!(size(&[("mode", mode)]), want, "{mode}");
        }
        let like = resize(&[("mode", "like")]).f32([1, 1, 5, 4], &[1.0; 20]).f32([2, 3, 1, 7], &[0.0; 42]).run();
        assert_eq!(like.tensor.shape[..], [1, 1, 1, 7]);
        let like = resize(&[("mode", "like")]).f16([1, 1, 1, 1], &[3.0]).i32([1, 1, 1, 2], &[0; 2]).run();
        assert_eq!(f16s(&like, [1, 1, 1, 2]), [3.0, 3.0]);
    }

    #[test]
    fn what_makes_no_image_is_an_error() {
        let error = |attrs: &[(&str, &str)]| resize(attrs).f32([1, 1, 5, 4], &[1.0; 20]).error().message.clone();
        assert!(error(&[("scale_height", "2")]).contains("needs the other one"));
        error(&[("mode", "odd_scale")]);
        for scales in [["inf", "1"], ["1", "nan"], ["0", "1"]] {
            let scales = [("mode", "odd_scale"), ("scale_height", scales[0]), ("scale_width", scales[1])];
            assert!(error(&scales).ends_with("must be positive and finite"));
        }
        let none = resize(&[("scale_height", "0.1"), ("scale_width", "1")]).f32([1, 1, 5, 4], &[1.0; 20]).run();
        assert_eq!(none.tensor.shape[..], [1, 1, 0, 4]);
        error(&[("scale_height", "1e30"), ("scale_width", "1")]);
        error(&[("height", "0")]);
        assert!(resize(&[("height", "2")]).f32([5, 4], &[1.0; 20]).error().message.contains("4 axes"));
    }
}
