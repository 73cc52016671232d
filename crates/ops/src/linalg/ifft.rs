//! `_contrib_ifft`: inverse Fourier transforms of the last axis.

use super::fft::{BY_ROWS, COMPUTE_SIZE, infer, plan};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_ifft",
    doc: "The real part of the inverse Fourier transform of the last axis, times its length.\n\nThe \
          last axis holds the real and the imaginary part of each number in turn, as _contrib_fft \
          gives them; that of the output is half as long. As in MXNet the sum is not divided by \
          the number of its terms. MXNet computes it on GPUs only.",
    inputs: Inputs::Fixed(&["data"]),
    attrs: COMPUTE_SIZE,
    infer_shape: |shapes| {
        infer(shapes, |len| match len % 2 {
            0 => Ok(len / 2),
            _ => Err(shape_error(format!(
                "data has {len} numbers in its last axis; expected an even number: real and imaginary parts in turn"
            ))),
        })
    },
    bind: |_, signature| {
        let (fft, cost) = plan(&signature.outputs[0].shape);
        dispatch!(signature.inputs[0].dtype, float, T => Ok(costed_kernel_fn("plain", cost, move |call| {
            if let Some(fft) = &fft {
                fft.inverse::<T>(call.par, elements(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
            }
            Ok(())
        })))
    },
    rewrites: &BY_ROWS,
    ..OpDef::BASE
}];

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn the_inverse_gives_the_numbers_times_their_count() {
        let half = 3f32.sqrt();
        let x = OpTest::new("_contrib_ifft").f32([1, 6], &[7.0, 0.0, -2.0, half, -2.0, -half]).run();
        assert_close(&f32s(&x, [1, 3]), &[3.0, 6.0, 12.0]);
        let odd = OpTest::new("_contrib_ifft").f32([1, 3], &[0.0; 3]).error();
        assert!(odd.message.contains("expected an even number"), "{}", odd.message);
    }
}
