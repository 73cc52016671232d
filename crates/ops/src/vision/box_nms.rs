//! `_contrib_box_nms`: of boxes that overlap, the one with the highest score stays.

use super::boxes::{FORMATS, format};
use crate::prelude::*;
use mxrt_kernels::vision::nms::BoxNms;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_box_nms",
    aliases: &["_contrib_box_non_maximum_suppression"],
    doc: "Non-maximum suppression: of boxes that overlap, the one with the highest score \
            stays.\n\n\
            data is (..., n, k): n rows of k numbers. The output has the rows that stay, best \
            score first, equal scores in their order in data; the rest is filled with -1.",
    attrs: &[
        AttrDef::new(
            "overlap_thresh",
            AttrKind::Float,
            "0.5",
            "Intersection over union above which the lower score goes.",
        ),
        AttrDef::new("valid_thresh", AttrKind::Float, "0", "Boxes with a score not above it go."),
        AttrDef::new("topk", AttrKind::Int, "-1", "How many of the best boxes take part; all if negative."),
        AttrDef::new("coord_start", AttrKind::Int, "2", "Where in a row the four coordinates begin."),
        AttrDef::new("score_index", AttrKind::Int, "1", "Where in a row the score is."),
        AttrDef::new("id_index", AttrKind::Int, "-1", "Where in a row the class is; there is none if negative."),
        AttrDef::new("background_id", AttrKind::Int, "-1", "Boxes of this class go."),
        AttrDef::new(
            "force_suppress",
            AttrKind::Bool,
            "False",
            "Whether boxes of different classes suppress each other.",
        ),
        AttrDef::new("in_format", FORMATS, "corner", "corner: left, top, right, bottom; center: x, y, width, height."),
        AttrDef::new("out_format", FORMATS, "corner", "Format that the coordinates get."),
    ],
    hidden_outputs: |_| 1,
    outputs: Outputs::Named(|_| &["output0"]),
    infer_shape: nms_shapes,
    bind: bind_nms,
    form,
    rewrites: &Rewrites {
        row_wise: |_, signature, divided| divided == [true] && signature.inputs[0].shape.len() > 2,
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

/// Positions in a row of `width` numbers: coordinates, score, class.
fn positions(attrs: &Attrs, width: usize) -> Result<(usize, usize, Option<usize>), OpError> {
    let position = |name: &str, length: i64| {
        let at = attrs.int(name);
        let inside = at >= 0 && at.checked_add(length).is_some_and(|end| end <= width as i64);
        let last = (width as i64).saturating_sub(length);
        if inside {
            Ok(at as usize)
        } else {
            Err(value_error(format!("{name}={at} must be from 0 to {last} in rows of {width} numbers")))
        }
    };
    let (coordinates, score) = (position("coord_start", 4)?, position("score_index", 1)?);
    let class = if attrs.int("id_index") < 0 { None } else { Some(position("id_index", 1)?) };
    let clash = |name: &str, at: usize| {
        Err(value_error(format!("{name}={at} is one of the coordinates {coordinates} to {}", coordinates + 3)))
    };
    let within = coordinates..coordinates + 4;
    match class {
        _ if within.contains(&score) => clash("score_index", score),
        Some(class) if within.contains(&class) => clash("id_index", class),
        Some(class) if class == score => Err(value_error(format!("id_index and score_index are both {class}"))),
        class => Ok((coordinates, score, class)),
    }
}

fn nms_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    if let Some(dims) = shapes.dims(0) {
        let [.., _, width] = dims[..] else {
            return Err(shape_error(format!("data has shape {}; expected (..., boxes, numbers)", shapes.inputs[0])));
        };
        if let Some(width) = width {
            positions(shapes.attrs, width)?;
        }
    }
    shapes.same_as_first()
}

fn suppression(attrs: &Attrs, signature: &Signature<'_>) -> Result<BoxNms, OpError> {
    let [.., count, width] = signature.inputs[0].shape[..] else { return Err(wrong_arity()) };
    let (coordinates, score, class) = positions(attrs, width)?;
    if u32::try_from(count).is_err() {
        return Err(shape_error(format!("{count} boxes are more than can be sorted")));
    }
    Ok(BoxNms {
        width,
        count,
        overlap: attrs.float("overlap_thresh"),
        valid: attrs.float("valid_thresh"),
        limit: usize::try_from(attrs.int("topk")).ok(),
        coordinates,
        score,
        class,
        background: attrs.int("background_id") as f64,
        across_classes: attrs.bool("force_suppress"),
        from: format(attrs, "in_format"),
        to: format(attrs, "out_format"),
    })
}

/// The form. Its numbers are those of the element type, with which elements are compared.
fn form(attrs: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let nms = suppression(attrs, signature)?;
    if nms.limit == Some(0) {
        return for_floats(signature.inputs[0].dtype, KernelForm::Copy);
    }
    dispatch!(signature.inputs[0].dtype, float, T => {
        let [valid, background] = [nms.valid, nms.background].map(|v| T::from_f64(v).to_f64());
        Ok(Some(KernelForm::Suppress(BoxNms { valid, background, ..nms })))
    })
}

fn bind_nms(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let nms = suppression(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        nms.run(call.par, elements::<T>(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn positions_in_a_row_are_checked() {
        let nms = |name: &str, value: &str| {
            OpTest::new("_contrib_box_nms").attr(name, value).f32([2, 6], &[0.0; 12]).error().message.clone()
        };
        assert!(nms("coord_start", "3").contains("from 0 to 2"));
        assert!(nms("score_index", "4").contains("is one of the coordinates"));
        assert!(nms("id_index", "1").contains("both 1"));
        assert!(nms("score_index", "9223372036854775807").contains("score_index"));
    }
}
