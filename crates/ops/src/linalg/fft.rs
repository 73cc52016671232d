//! `_contrib_fft`: Fourier transforms of the last axis.

use super::cost_ns;
use crate::prelude::*;
use mxrt_kernels::fft::Fft;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_fft",
    doc: "The discrete Fourier transform of the last axis of real numbers.\n\nThe last axis of \
          the output is twice as long: the real and the imaginary part of each number in turn. \
          MXNet computes it on GPUs only.",
    inputs: Inputs::Fixed(&["data"]),
    attrs: COMPUTE_SIZE,
    infer_shape: |shapes| infer(shapes, |len| checked_product(&[len, 2])),
    bind: |_, signature| {
        let (fft, cost) = plan(&signature.inputs[0].shape);
        dispatch!(signature.inputs[0].dtype, float, T => Ok(costed_kernel_fn("plain", cost, move |call| {
            if let Some(fft) = &fft {
                fft.forward::<T>(call.par, elements(&call.inputs[0])?, elements_mut(&mut call.outputs[0])?);
            }
            Ok(())
        })))
    },
    rewrites: &BY_ROWS,
    ..OpDef::BASE
}];

pub(super) const COMPUTE_SIZE: &[AttrDef] = &[AttrDef::new(
    "compute_size",
    AttrKind::IntFrom(1),
    "128",
    "Number of transforms that MXNet computes together; without effect here.",
)];

pub(super) static BY_ROWS: Rewrites = Rewrites {
    row_wise: |_, signature, divided| is_within_rows(-1, signature) && !divided.contains(&false),
    ..Rewrites::NONE
};

/// The transform of rows of an array of real numbers, if it has any, and the time of all.
pub(super) fn plan(real: &Shape) -> (Option<Fft>, u64) {
    let len = real.last().copied().unwrap_or(0);
    let steps = 2 + len.checked_ilog2().unwrap_or(0) as usize;
    ((real.size() > 0).then(|| Fft::new(len)), cost_ns(real.size().saturating_mul(5 * steps)))
}

pub(super) fn infer(shapes: &mut Shapes<'_>, last: impl Fn(usize) -> Result<usize, OpError>) -> Result<(), OpError> {
    let Some(mut dims) = shapes.dims(0) else { return Ok(()) };
    let Some(len) = dims.pop() else {
        return Err(shape_error(format!("data has shape {}; expected at least one axis", shapes.inputs[0])));
    };
    dims.push(len.map(last).transpose()?);
    shapes.set_output(0, PartialShape::from_dims(dims))
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn real_and_imaginary_parts_alternate() {
        let y = OpTest::new("_contrib_fft").f32([1, 3], &[1.0, 2.0, 4.0]).run();
        let half = 3f32.sqrt();
        assert_close(&f32s(&y, [1, 6]), &[7.0, 0.0, -2.0, half, -2.0, -half]);
        assert!(f32s(&OpTest::new("_contrib_fft").f32([0, 0], &[]).run(), [0, 0]).is_empty());
    }
}
