//! `_npi_zeros`, `_npi_ones`: one value everywhere.

use super::MADE;
use crate::math::identity::{bind_fill, fill_form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "_npi_zeros",
        doc: "An array of zeros.",
        bind: |_, signature| bind_fill(0.0, signature),
        form: |_, signature| fill_form(0.0, signature),
        ..MADE
    },
    OpDef {
        name: "_npi_ones",
        doc: "An array of ones.",
        bind: |_, signature| bind_fill(1.0, signature),
        form: |_, signature| fill_form(1.0, signature),
        ..MADE
    },
];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn empty_and_scalar_arrays_are_made() {
        assert_eq!(f32s(&OpTest::new("_npi_zeros").attrs(&[("shape", "()")]).run(), []), [0.0]);
        assert_eq!(
            OpTest::new("_npi_ones").attrs(&[("shape", "(0, 3)"), ("dtype", "bool")]).run().tensor.shape.to_vec(),
            [0, 3]
        );
        OpTest::new("_npi_zeros").attrs(&[("shape", "(2, -3)")]).error();
    }
}
