//! Matches of rows and columns: `matching.h`, after `order.h` has sorted the scores.

use crate::arguments::MatchingArgument;
use crate::launch::{Bound, code, each, each_row, launch, of_floats};
use crate::order::sorted_rows;
use mxrt_kernels::sort::Order;
use mxrt_kernels::vision::boxes::Matching;
use mxrt_ops::{KernelForm, Signature};

pub(crate) fn bind(form: &KernelForm, signature: &Signature<'_>) -> Option<Bound> {
    let KernelForm::Match { how, size: [rows, columns] } = *form else { return None };
    let ([scores], [of_rows, of_columns]) = (signature.inputs, signature.outputs) else { return None };
    of_floats(scores.dtype, [(); 2])?;
    let all = of_rows.shape.size() + of_columns.shape.size();
    let (size, dtype) = (rows * columns, scores.dtype);
    // One of the extents may be 0.
    let counted = of_rows.shape.size().checked_div(rows).or(of_columns.shape.size().checked_div(columns));
    let matrices = counted.unwrap_or(0);
    let Matching { ascending, threshold, limit } = how;
    let most = rows.min(columns) as i64;
    let argument = MatchingArgument {
        of_rows: 0,
        of_columns: 0,
        scores: 0,
        positions: 0,
        matrices: matrices as i64,
        rows: rows as i64,
        columns: columns as i64,
        padded: 0,
        most: if limit > 0 { most.min(limit.saturating_add(1)) } else { most },
        threshold,
        ascending: i32::from(ascending),
        dtype: code(dtype),
    };
    let order = Order { ascending, k: size };
    Some(Bound::new(move |ctx, at| {
        let Some(grid) = each(all) else { return Ok(()) };
        let (of_rows, of_columns, scores) = (at.outputs[0].0, at.outputs[1].0, at.inputs[0].0);
        let argument = MatchingArgument { of_rows, of_columns, scores, ..argument };
        launch(ctx, c"match_clear", grid, &argument)?;
        let Some(of_matrices) = each_row(matrices).filter(|_| size > 0) else { return Ok(()) };
        let sorted = sorted_rows(ctx, at.inputs[0], dtype, [matrices, size], order)?;
        let (positions, padded) = (sorted.positions, sorted.padded);
        launch(ctx, c"match_pairs", of_matrices, &MatchingArgument { positions, padded, ..argument })
    }))
}
