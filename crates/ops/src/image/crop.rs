//! `_image_crop`: a part of images.

use super::image_axis;
use crate::prelude::*;
use crate::shape::slice::{Range, bind_ranges, ranges_form};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_image_crop",
    aliases: &["_npx__image_crop"],
    doc: "The part of (height, width, channels), or of a batch of it, that begins at column x and \
          row y.",
    attrs: &[
        AttrDef::required("x", AttrKind::Int, "First column."),
        AttrDef::required("y", AttrKind::Int, "First row."),
        AttrDef::required("width", AttrKind::Int, "Width of the part."),
        AttrDef::required("height", AttrKind::Int, "Height of the part."),
    ],
    infer_shape,
    bind: |attrs, signature| bind_ranges(&ranges(attrs, signature)?, signature),
    form: |attrs, signature| ranges_form(&ranges(attrs, signature)?, signature),
    ..OpDef::BASE
}];

/// First pixel and length along height (axis 0) or width.
fn part(attrs: &Attrs, axis: usize, size: Option<usize>) -> Result<[usize; 2], OpError> {
    let (start, length) = (["y", "x"][axis], ["height", "width"][axis]);
    let [first, count] = [start, length].map(|name| attrs.int(name));
    if first < 0 {
        return Err(value_error(format!("{start} is {first}, expected a number of at least 0")));
    }
    if count <= 0 {
        return Err(value_error("Input height and width must be greater than 0"));
    }
    match size {
        Some(size) if first.checked_add(count).is_none_or(|end| end > size as i64) => Err(shape_error(format!(
            "{start} + {length} should not be greater than input {length}: {first} + {count} > \
             {size}"
        ))),
        _ => Ok([first as usize, count as usize]),
    }
}

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(axis) = image_axis(shapes)? else { return Ok(()) };
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    for i in 0..2 {
        dims[axis + i] = Some(part(shapes.attrs, i, dims[axis + i])?[1]);
    }
    shapes.set_output(0, PartialShape::from_dims(dims))
}

/// The ranges of the input that the output is.
fn ranges(attrs: &Attrs, signature: &Signature<'_>) -> Result<Vec<Range>, OpError> {
    let shape = &signature.inputs[0].shape;
    let mut ranges: Vec<Range> = shape.iter().map(|&len| Range { start: 0, step: 1, len }).collect();
    let axis = shape.len() - 3;
    for i in 0..2 {
        let [start, len] = part(attrs, i, Some(shape[axis + i]))?;
        ranges[axis + i] = Range { start, step: 1, len };
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    fn crop(x: &str, width: &str) -> OpTest {
        OpTest::new("_image_crop").attr("x", x).attr("y", "1").attr("width", width).attr("height", "1")
    }

    #[test]
    fn a_part_of_images_is_cut_out() {
        let x: Vec<f32> = (0..12).map(|v| v as f32).collect();
        assert_eq!(f32s(&crop("1", "2").f32([2, 2, 3, 1], &x).run(), [2, 1, 2, 1]), [4.0, 5.0, 10.0, 11.0]);
        assert_eq!(f32s(&crop("0", "1").f32([2, 2, 3], &x).run(), [1, 1, 3]), [6.0, 7.0, 8.0]);
        for (x, width, message) in [("2", "2", "2 + 2 > 3"), ("-1", "2", "at least 0"), ("0", "0", "greater than 0")] {
            let error = crop(x, width).f32([2, 3, 2], &[0.0; 12]).error().message.clone();
            assert!(error.contains(message), "{error}");
        }
    }
}
