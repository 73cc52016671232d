//! `depth_to_space`: channels become blocks of pixels.

use super::space_to_depth::{ATTRS, divided, infer, view};
use super::{Strided, bind_strided, strided_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "depth_to_space",
    doc: "Moves channels into block_size x block_size blocks of pixels: (n, c, h, w) becomes \
        (n, c / (b * b), h * b, w * b).",
    attrs: ATTRS,
    infer_shape: |shapes| {
        infer(shapes, |[n, c, h, w], b| {
            let grow = |d: Option<usize>| d.map(|d| checked_product(&[d, b])).transpose();
            let what = format!("the number of channels, with block_size={b},");
            Ok([n, divided(&what, c, checked_product(&[b, b])?)?, grow(h)?, grow(w)?])
        })
    },
    bind: |attrs, signature| bind_strided(depth_view(attrs, signature)?, signature),
    form: |attrs, signature| strided_form(&depth_view(attrs, signature)?),
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

/// The output of `depth_to_space`.
fn depth_view(attrs: &Attrs, signature: &Signature<'_>) -> Result<Strided, OpError> {
    // (n, bh, bw, c, h, w) is read in the order (n, c, h, bh, w, bw).
    view(attrs, &signature.inputs[0].shape, |[n, c, h, w], b| ([n, b, b, c / (b * b), h, w], [0, 3, 4, 1, 5, 2]))
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn an_error_names_the_block_size_and_what_was_expected() {
        let error = OpTest::new("depth_to_space").attr("block_size", "3").f32([1, 4, 2, 2], &[0.0; 16]).error();
        assert_eq!(error.message, "the number of channels, with block_size=3, is 4, expected a multiple of 9");
    }
}
