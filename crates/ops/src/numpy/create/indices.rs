//! `_npi_indices`: the indices of a grid.

use super::{DTYPES, MADE, bind_places};
use crate::numpy::CTX;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_indices",
    doc: "The indices of a grid: for each axis, an array of the index along it.",
    attrs: &[
        AttrDef::required("dimensions", AttrKind::Shape, "Shape of the grid."),
        AttrDef::new("dtype", DTYPES, "int32", "dtype of the result."),
        CTX,
    ],
    infer_shape: |shapes| {
        let dims = extents("dimensions", shapes.attrs.ints("dimensions"))?;
        shapes.set_output(0, std::iter::once(dims.len()).chain(dims).collect::<Shape>())
    },
    bind: |_, signature| {
        let dims = signature.outputs[0].shape.get(1..).unwrap_or(&[]).to_vec();
        let size = dims.iter().product::<usize>();
        let steps: Vec<usize> = (0..dims.len()).map(|axis| dims[axis + 1..].iter().product()).collect();
        bind_places(signature, move |i| (i % size / steps[i / size] % dims[i / size]) as f64)
    },
    ..MADE
}];

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn every_axis_has_its_index() {
        let y = OpTest::new("_npi_indices").attr("dimensions", "(2, 3)").run();
        assert_eq!(y.values::<i32>(), [0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2]);
    }
}
