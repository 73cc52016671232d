//! `_npi_tensorsolve`: solutions of linear equations between arrays.

use super::{bind_solution, float_result};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_tensorsolve",
    doc: "The solution x of the equation tensordot(a, x, x.ndim) = b, after a_axes of a were moved to \
          its end.",
    inputs: Inputs::Fixed(&["a", "b"]),
    attrs: &[AttrDef::new("a_axes", AttrKind::OptShape, "None", "Axes of a to move to its end.")],
    infer_shape: |shapes| {
        let (Some(a), Some(b)) = (shapes.input(0), shapes.input(1)) else { return Ok(()) };
        let axes = solved_axes(shapes.attrs, a.len())?;
        // The unknowns take the last axes of a: as many as it has more than b, or all but as
        // many as it has less. So NumPy counts.
        let skipped = if a.len() > b.len() { b.len() } else { b.len() - a.len() };
        let out: Shape = axes.iter().skip(skipped).map(|axis| a[*axis]).collect();
        if b.size() != out.size() || b.size().checked_mul(out.size()) != Some(a.size()) {
            return Err(shape_error(format!("a {a} and b {b} make no square system of equations")));
        }
        shapes.set_output(0, out)
    },
    infer_dtype: float_result,
    bind: |attrs, signature| {
        let axes = solved_axes(attrs, signature.inputs[0].shape.len())?;
        bind_solution(signature.inputs[1].shape.size(), 1, axes, signature)
    },
    ..OpDef::BASE
}];

/// The axes of `tensorsolve`'s first input, those that move at the end.
fn solved_axes(attrs: &Attrs, rank: usize) -> Result<Vec<usize>, OpError> {
    let mut back = Vec::new();
    for axis in attrs.opt_ints("a_axes").unwrap_or(&[]) {
        let axis = resolve_axis(*axis, rank)?;
        if back.contains(&axis) {
            return Err(value_error(format!("a_axes names axis {axis} twice")));
        }
        back.push(axis);
    }
    let front = (0..rank).filter(|axis| !back.contains(axis)).collect::<Vec<_>>();
    Ok(front.into_iter().chain(back.iter().copied()).collect())
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn equations_between_arrays_are_solved() {
        let test = OpTest::new("_npi_tensorsolve").f32([2, 1, 2], &[4.0, 2.0, 2.0, 5.0]);
        assert_close(&f32s(&test.f32([2, 1], &[8.0, 9.0]).run(), [2]), &[1.375, 1.25]);
    }
}
