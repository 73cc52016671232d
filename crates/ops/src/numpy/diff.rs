//! `_npi_diff`: differences of neighbours along an axis.

use crate::prelude::*;
use mxrt_kernels::elementwise::{Binary, binary};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_diff",
    doc: "Differences of neighbours along an axis, n times.",
    inputs: Inputs::Fixed(&["a"]),
    attrs: &[
        AttrDef::new("n", AttrKind::IntFrom(0), "1", "How often differences are taken."),
        AttrDef::new("axis", AttrKind::Int, "-1", "The axis."),
    ],
    infer_shape: |shapes| {
        let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
        let axis = resolve_axis(shapes.attrs.int("axis"), dims.len())?;
        dims[axis] = dims[axis].map(|n| n.saturating_sub(shapes.attrs.count("n")));
        shapes.set_output(0, PartialShape::from_dims(dims))
    },
    bind: |attrs, signature| {
        let [outer, whole, inner] = split_at(attrs.int("axis"), &signature.inputs[0].shape)?;
        let times = attrs.count("n").min(whole);
        dispatch!(signature.inputs[0].dtype, numeric, T => Ok(kernel_fn(signature, move |call| {
            let mut x = ReadElements::Borrowed(elements::<T>(&call.inputs[0])?);
            let out = elements_mut::<T>(&mut call.outputs[0])?;
            if times == 0 {
                out.copy_from_slice(&x);
                return Ok(());
            }
            let less = |x: &[T], n: usize, out: &mut [T]| {
                let kept = (n - 1) * inner;
                for (block, out) in x.chunks((n * inner).max(1)).take(outer).zip(out.chunks_mut(kept.max(1))) {
                    binary(call.par, Binary::Sub, &block[block.len() - kept..], &block[..kept], out);
                }
            };
            for done in 0..times - 1 {
                let mut made = Scratch::<T>::new(call.par, outer * (whole - done - 1) * inner);
                less(&x, whole - done, &mut made);
                x = ReadElements::Made(made);
            }
            less(&x, whole + 1 - times, out);
            Ok(())
        })))
    },
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn differences_are_taken_again_and_again() {
        let of = |n: &str, axis: &str| {
            OpTest::new("_npi_diff").attr("n", n).attr("axis", axis).f32([2, 3], &[1.0, 3.0, 8.0, 0.0, 0.0, 1.0]).run()
        };
        assert_eq!(f32s(&of("1", "-1"), [2, 2]), [2.0, 5.0, 0.0, 1.0]);
        assert_eq!(f32s(&of("2", "1"), [2, 1]), [3.0, 1.0]);
        assert_eq!(f32s(&of("5", "0"), [0, 3]), [0.0; 0]);
    }
}
