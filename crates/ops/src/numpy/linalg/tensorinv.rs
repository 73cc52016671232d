//! `_npi_tensorinv`: inverses of arrays that map arrays to arrays.

use super::{float_result, matrix_error};
use crate::prelude::*;
use mxrt_kernels::linalg;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_tensorinv",
    doc: "The inverse of an array as a map from its axes from ind on to those before.",
    inputs: Inputs::Fixed(&["a"]),
    attrs: &[AttrDef::new("ind", AttrKind::IntFrom(1), "2", "Number of axes of the result of the map.")],
    infer_shape: |shapes| {
        let Some(a) = shapes.input(0) else { return Ok(()) };
        let ind = shapes.attrs.count("ind");
        let Some((front, back)) = a.split_at_checked(ind) else {
            return Err(value_error(format!("ind={ind} exceeds the {} axes of a", a.len())));
        };
        if front.iter().product::<usize>() != back.iter().product::<usize>() {
            return Err(shape_error(format!("a has shape {a}, which is no square matrix when cut at axis {ind}")));
        }
        shapes.set_output(0, back.iter().chain(front).copied().collect::<Shape>())
    },
    infer_dtype: float_result,
    bind: |attrs, signature| {
        let n: usize = signature.inputs[0].shape.iter().take(attrs.count("ind")).product();
        Ok(kernel_fn(signature, move |call| {
            let a = floats(call.par, &call.inputs[0])?;
            let mut out = Scratch::<f64>::new(call.par, a.len());
            linalg::inverse(call.par, n, &a, &mut out).map_err(matrix_error)?;
            store_floats(&out, &mut call.outputs[0])
        }))
    },
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn an_inverse_has_the_axes_the_other_way_round() {
        let x = OpTest::new("_npi_tensorinv").attr("ind", "1").f32([2, 2, 1], &[2.0, 0.0, 0.0, 4.0]).run();
        assert_close(&f32s(&x, [2, 1, 2]), &[0.5, 0.0, 0.0, 0.25]);
    }
}
