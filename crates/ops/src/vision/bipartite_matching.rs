//! `_contrib_bipartite_matching`: pairs of rows and columns, best first.

use crate::prelude::*;
use mxrt_kernels::vision::boxes::{Matching, match_greedily};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

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

fn bind_matching(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
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
    use crate::testing::{OpTest, f32s};

    #[test]
    fn rows_and_columns_match_once() {
        let scores = [0.5, 0.6, 0.1, 0.2, 0.3, 0.4];
        let test = OpTest::new("_contrib_bipartite_matching").attr("threshold", "1e-12");
        let y = test.f32([1, 3, 2], &scores).run_all();
        assert_eq!(f32s(&y[0], [1, 3]), [1.0, -1.0, 0.0]);
        assert_eq!(f32s(&y[1], [1, 2]), [2.0, 0.0]);
    }
}
