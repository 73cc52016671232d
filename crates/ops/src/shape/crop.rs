//! `Crop`: a window of images.

use super::slice::{Range, bind_ranges, ranges_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "Crop",
    doc: "The window of (batch, channel, height, width) that offset and h_w give; with two inputs \
        it is as large as the second.",
    inputs: Inputs::Variadic { count: "num_args", prefix: "arg", named: |_| None },
    attrs: &[
        AttrDef::required("num_args", AttrKind::IntFrom(1), "Number of inputs: 1 or 2."),
        AttrDef::new("offset", AttrKind::Shape, "(0, 0)", "First row and column."),
        AttrDef::new("h_w", AttrKind::Shape, "(0, 0)", "Height and width, for one input."),
        AttrDef::new("center_crop", AttrKind::Bool, "False", "Take the middle; offset is ignored."),
    ],
    infer_shape,
    bind: |attrs, signature| bind_ranges(&ranges(attrs, signature)?, signature),
    form: |attrs, signature| ranges_form(&ranges(attrs, signature)?, signature),
    ..OpDef::BASE
}];

fn pair(attrs: &Attrs, name: &str) -> Result<[usize; 2], OpError> {
    let given = extents(name, attrs.ints(name))?;
    <[usize; 2]>::try_from(&given[..])
        .map_err(|_| value_error(format!("{name} needs two numbers, got {}", given.len())))
}

/// First row and column of a window of `size` in an image of `full`.
fn corner(attrs: &Attrs, full: [usize; 2], size: [usize; 2]) -> Result<[usize; 2], OpError> {
    let offset = pair(attrs, "offset")?;
    let mut corner = [0; 2];
    for i in 0..2 {
        let room = full[i].checked_sub(size[i]).ok_or_else(|| {
            shape_error(format!("a window of {} x {} does not fit into {} x {}", size[0], size[1], full[0], full[1]))
        })?;
        corner[i] = if attrs.bool("center_crop") { room / 2 } else { offset[i] };
        if corner[i] > room {
            return Err(value_error(format!("offset {} moves the window out of the image", offset[i])));
        }
    }
    Ok(corner)
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    if shapes.inputs.len() > 2 {
        return Err(value_error("num_args must be 1 or 2"));
    }
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let size = match shapes.inputs.get(1) {
        None => {
            let size = pair(shapes.attrs, "h_w")?;
            if size.contains(&0) {
                let words = "expected the height and width of the window, or a second input as large as it";
                return Err(value_error(format!("h_w is ({}, {}); {words}", size[0], size[1])));
            }
            size.map(Some)
        }
        Some(like) => [like.dim(2), like.dim(3)],
    };
    let [_, _, height, width] = &mut dims[..] else {
        return Err(shape_error(format!(
            "data must have 4 axes (batch, channel, height, width), got {}",
            shapes.inputs[0]
        )));
    };
    if let (Some(h), Some(w), [Some(a), Some(b)]) = (*height, *width, size) {
        corner(shapes.attrs, [h, w], [a, b])?;
    }
    [*height, *width] = size;
    shapes.set_output(0, PartialShape::from_dims(dims))
}

/// The ranges of the input that the output is.
fn ranges(attrs: &Attrs, signature: &Signature<'_>) -> Result<[Range; 4], OpError> {
    let ([.., h, w], [n, c, a, b]) = (&signature.inputs[0].shape[..], &signature.outputs[0].shape[..]) else {
        return Err(wrong_arity());
    };
    let [y, x] = corner(attrs, [*h, *w], [*a, *b])?;
    let range = |start, len: &usize| Range { start, step: 1, len: *len };
    Ok([range(0, n), range(0, c), range(y, a), range(x, b)])
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_window_is_cut_at_an_offset_or_from_the_middle() {
        let x: Vec<f32> = (0..9).map(|v| v as f32).collect();
        let of = |attrs: &[(&str, &str)]| {
            OpTest::new("Crop").attr("num_args", "1").attr("h_w", "(1, 2)").attrs(attrs).f32([1, 1, 3, 3], &x)
        };
        assert_eq!(f32s(&of(&[("offset", "(2, 1)")]).run(), [1, 1, 1, 2]), [7.0, 8.0]);
        assert_eq!(f32s(&of(&[("center_crop", "True")]).run(), [1, 1, 1, 2]), [3.0, 4.0]);
        of(&[("offset", "(3, 0)")]).error();
        of(&[("h_w", "(4, 4)")]).error();
        let error = OpTest::new("Crop").attr("num_args", "1").f32([1, 1, 3, 3], &x).error();
        assert!(error.message.contains("h_w is (0, 0)"), "{}", error.message);
    }
}
