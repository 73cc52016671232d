//! `_contrib_box_iou`, `_contrib_box_encode`, `_contrib_box_decode`, `_contrib_bipartite_matching`.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::vision::boxes::{
    BoxDecoding, BoxEncoding, BoxFormat, Matching, decode_boxes, encode_boxes, match_greedily, overlaps,
};
use mxrt_tensor::PartialShape;

pub(super) const FORMATS: AttrKind = AttrKind::Enum(&["center", "corner"]);

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_contrib_box_iou",
        doc: "Intersection over union of every box of lhs with every box of rhs.\n\n\
            lhs is (..., 4), rhs (..., 4); the output has the leading axes of lhs, then those of \
            rhs.",
        inputs: Inputs::Fixed(&["lhs", "rhs"]),
        attrs: &[AttrDef::new(
            "format",
            FORMATS,
            "corner",
            "corner: left, top, right, bottom; center: x, y, width, height.",
        )],
        infer_shape: iou_shapes,
        infer_dtype: |dtypes| dtypes.uniform(&["lhs", "rhs"]),
        bind: bind_iou,
        form: |attrs, signature| {
            for_floats(signature.inputs[0].dtype, KernelForm::BoxOverlaps(format(attrs, "format")))
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_box_encode",
        doc: "Encodes reference boxes relative to anchors.\n\n\
            samples (batch, n): anchors above 0.5 are encoded; matches (batch, n): which of the m \
            boxes in refs (batch, m, 4) belongs to the anchor; anchors (batch, n, 4); means and \
            stds (4,). Boxes are corners. Outputs: targets and masks, both (batch, n, 4).",
        inputs: Inputs::Fixed(&["samples", "matches", "anchors", "refs", "means", "stds"]),
        outputs: Outputs::Count(|_| 2),
        infer_shape: encode_shapes,
        infer_dtype: |dtypes| dtypes.uniform(&["samples", "matches", "anchors", "refs", "means", "stds"]),
        bind: bind_encode,
        form: |_, signature| for_floats(signature.inputs[0].dtype, KernelForm::EncodeBoxes),
        ignores_unknown_attrs: true,
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_box_decode",
        doc: "Boxes (corners) out of numbers relative to anchors.\n\n\
            data is (batch, n, 4), anchors (1, n, 4).",
        inputs: Inputs::Fixed(&["data", "anchors"]),
        attrs: &[
            AttrDef::new("std0", AttrKind::Float, "1", "What the first number is multiplied by."),
            AttrDef::new("std1", AttrKind::Float, "1", "What the second number is multiplied by."),
            AttrDef::new("std2", AttrKind::Float, "1", "What the third number is multiplied by."),
            AttrDef::new("std3", AttrKind::Float, "1", "What the fourth number is multiplied by."),
            AttrDef::new("clip", AttrKind::Float, "-1", "Limit of the logarithms of the sides, if positive."),
            AttrDef::new("format", FORMATS, "center", "Format of the anchors."),
        ],
        infer_shape: decode_shapes,
        infer_dtype: |dtypes| dtypes.uniform(&["data", "anchors"]),
        bind: bind_decode,
        form: |attrs, signature| for_floats(signature.inputs[0].dtype, KernelForm::DecodeBoxes(decoding(attrs))),
        rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_bipartite_matching",
        doc: "Matches rows and columns one to one, best score first, the first of equal scores.\n\n\
            data is (..., rows, columns). Outputs: the column of each row, (..., rows), and the \
            row of each column, (..., columns); -1 for none. topk ends after one match more, as in \
            MXNet.",
        attrs: &[
            AttrDef::new("is_ascend", AttrKind::Bool, "False", "Whether low scores come first."),
            AttrDef::required("threshold", AttrKind::Float, "Scores not beyond it match nothing."),
            AttrDef::new("topk", AttrKind::Int, "-1", "Limit of matches; none if not positive."),
        ],
        outputs: Outputs::Count(|_| 2),
        infer_shape: matching_shapes,
        bind: bind_matching,
        form: |attrs, signature| {
            let (how, size) = matching(attrs, signature)?;
            for_floats(signature.inputs[0].dtype, KernelForm::Match { how, size })
        },
        rewrites: &Rewrites {
            row_wise: |_, signature, divided| divided == [true] && signature.inputs[0].shape.len() > 2,
            ..Rewrites::NONE
        },
        ..OpDef::BASE
    },
];

pub(super) fn format(attrs: &Attrs, name: &str) -> BoxFormat {
    if attrs.str(name) == "corner" { BoxFormat::Corner } else { BoxFormat::Center }
}

/// The leading axes of boxes, whose last axis must be 4.
fn box_axes(shapes: &Shapes<'_>, index: usize, name: &str) -> Result<Option<Vec<Option<usize>>>, OpError> {
    let Some(dims) = shapes.dims(index) else { return Ok(None) };
    match dims[..] {
        [ref leading @ .., last] if !leading.is_empty() && last.is_none_or(|n| n == 4) => Ok(Some(leading.to_vec())),
        _ => Err(shape_error(format!("{name} has shape {}; expected boxes, (..., n, 4)", shapes.inputs[index]))),
    }
}

fn iou_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (lhs, rhs) = (box_axes(shapes, 0, "lhs")?, box_axes(shapes, 1, "rhs")?);
    let (Some(lhs), Some(rhs)) = (lhs, rhs) else { return Ok(()) };
    shapes.set_output(0, PartialShape::from_dims(lhs.into_iter().chain(rhs)))
}

fn bind_iou(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let format = format(attrs, "format");
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (a, b) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        overlaps(call.par, format, a, b, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

fn encode_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.set_input(4, "means", PartialShape::from_dims([Some(4)]))?;
    shapes.set_input(5, "stds", PartialShape::from_dims([Some(4)]))?;
    let Some(anchors) = box_axes(shapes, 2, "anchors")? else { return Ok(()) };
    let [batch, n] = anchors[..] else {
        return Err(shape_error(format!("anchors has shape {}; expected (batch, n, 4)", shapes.inputs[2])));
    };
    shapes.set_input(0, "samples", PartialShape::from_dims([batch, n]))?;
    shapes.set_input(1, "matches", PartialShape::from_dims([batch, n]))?;
    shapes.set_input(3, "refs", PartialShape::from_dims([batch, None, Some(4)]))?;
    for output in 0..2 {
        shapes.set_output(output, PartialShape::from_dims([batch, n, Some(4)]))?;
    }
    Ok(())
}

fn bind_encode(_: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (anchors, references) = (&signature.inputs[2].shape, &signature.inputs[3].shape);
    let sizes = [anchors[0], anchors[1], references[1]];
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let ([samples, matches, anchors, references, means, deviations], [targets, masks]) =
            (call.inputs, &mut *call.outputs)
        else {
            return Err(wrong_arity());
        };
        let inputs = BoxEncoding {
            samples: elements::<T>(samples)?,
            matches: elements(matches)?,
            anchors: elements(anchors)?,
            references: elements(references)?,
            means: elements(means)?,
            deviations: elements(deviations)?,
        };
        encode_boxes(call.par, inputs, sizes, elements_mut(targets)?, elements_mut(masks)?);
        Ok(())
    })))
}

fn decode_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(leading) = box_axes(shapes, 0, "data")? else { return Ok(()) };
    let [batch, n] = leading[..] else {
        return Err(shape_error(format!("data has shape {}; expected (batch, n, 4)", shapes.inputs[0])));
    };
    shapes.set_input(1, "anchors", PartialShape::from_dims([Some(1), n, Some(4)]))?;
    shapes.set_output(0, PartialShape::from_dims([batch, n, Some(4)]))
}

fn decoding(attrs: &Attrs) -> BoxDecoding {
    BoxDecoding {
        format: format(attrs, "format"),
        scale: ["std0", "std1", "std2", "std3"].map(|name| attrs.float(name)),
        clip: Some(attrs.float("clip")).filter(|clip| *clip > 0.0),
    }
}

fn bind_decode(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let decoding = decoding(attrs);
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let (x, anchors) = (elements::<T>(&call.inputs[0])?, elements::<T>(&call.inputs[1])?);
        decode_boxes(call.par, decoding, x, anchors, elements_mut(&mut call.outputs[0])?);
        Ok(())
    })))
}

fn matching_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let [ref leading @ .., rows, columns] = dims[..] else {
        return Err(shape_error(format!("data has shape {}; expected (..., rows, columns)", shapes.inputs[0])));
    };
    let with = |last: Option<usize>| PartialShape::from_dims(leading.iter().copied().chain([last]));
    let (of_rows, of_columns) = (with(rows), with(columns));
    shapes.set_output(0, of_rows)?;
    shapes.set_output(1, of_columns)
}

/// Order and end of the matches, and the extents of a matrix of scores.
fn matching(attrs: &Attrs, signature: &Signature<'_>) -> Result<(Matching, [usize; 2]), OpError> {
    let [.., rows, columns] = signature.inputs[0].shape[..] else { return Err(wrong_arity()) };
    if u32::try_from(checked_product(&[rows, columns])?).is_err() {
        return Err(shape_error(format!("{rows} x {columns} scores are more than can be sorted")));
    }
    let matching =
        Matching { ascending: attrs.bool("is_ascend"), threshold: attrs.float("threshold"), limit: attrs.int("topk") };
    Ok((matching, [rows, columns]))
}

fn bind_matching(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (matching, size) = matching(attrs, signature)?;
    dispatch!(signature.inputs[0].dtype, float, T => Ok(kernel_fn(signature, move |call| {
        let ([scores], [of_rows, of_columns]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
        let scores = elements::<T>(scores)?;
        match_greedily(call.par, matching, scores, size, elements_mut(of_rows)?, elements_mut(of_columns)?);
        Ok(())
    })))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn boxes_overlap_in_all_pairs() {
        let a = [0.0, 0.0, 2.0, 2.0, 1.0, 1.0, 3.0, 3.0];
        let y = OpTest::new("_contrib_box_iou").f32([2, 4], &a).f32([1, 1, 4], &a[..4]).run();
        assert_close(&f32s(&y, [2, 1, 1]), &[1.0, 1.0 / 7.0]);
        let error = OpTest::new("_contrib_box_iou").f32([2, 4], &a).f32([1, 2], &a[..2]).error();
        assert!(error.message.contains("rhs has shape (1, 2)"));
    }

    #[test]
    fn rows_and_columns_match_once() {
        let scores = [0.5, 0.6, 0.1, 0.2, 0.3, 0.4];
        let test = OpTest::new("_contrib_bipartite_matching").attr("threshold", "1e-12");
        let y = test.f32([1, 3, 2], &scores).run_all();
        assert_eq!(f32s(&y[0], [1, 3]), [1.0, -1.0, 0.0]);
        assert_eq!(f32s(&y[1], [1, 2]), [2.0, 0.0]);
    }
}
