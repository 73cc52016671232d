//! `_scale_shift`: a factor and an offset for every channel, then perhaps relu.

use crate::blocked;
use crate::prelude::*;
use mxrt_kernels::Float;
use mxrt_kernels::elementwise::{Unary, unary_inplace};
use mxrt_kernels::norm::{Channels, batch_norm};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_scale_shift",
    doc: "data * scale + shift along an axis of channels, then an activation.",
    inputs: Inputs::Fixed(&["data", "scale", "shift"]),
    attrs: &[
        AttrDef::new("axis", AttrKind::Int, "1", "The axis of channels."),
        AttrDef::new("act_type", AttrKind::Enum(&["none", "relu"]), "none", "Activation applied last."),
    ],
    infer_shape,
    bind,
    internal: true,
    rewrites: &Rewrites {
        blocked_form: |attrs, signature| {
            let axes = signature.inputs.first()?.shape.len();
            let of_channels = resolve_axis(attrs.int("axis"), axes).ok()? == 1;
            of_channels.then(|| blocked::pointwise::form("_blocked_scale_shift", signature, 1)).flatten()
        },
        ..Rewrites::NONE
    },
    ..OpDef::BASE
}];

fn infer_shape(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.same_as_first()?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let channels = PartialShape::from_dims([dims[resolve_axis(shapes.attrs.int("axis"), dims.len())?]]);
    shapes.set_input(1, "scale", channels.clone())?;
    shapes.set_input(2, "shift", channels)
}

fn bind(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
    let shape = &signature.inputs[0].shape;
    let axis = resolve_axis(attrs.int("axis"), shape.len())?;
    let split = [shape[..axis].iter().product(), shape[axis], shape[axis + 1..].iter().product()];
    let relu = attrs.str("act_type") == "relu";
    dispatch!(signature.inputs[0].dtype, wide, T => {
        let neutral = NeutralStatistics::<T>::new(shape[axis]);
        Ok(costed_kernel_fn("plain", streaming_ns(signature), move |call| {
            let ([data, scale, shift], [out]) = (call.inputs, &mut *call.outputs) else { return Err(wrong_arity()) };
            let params = neutral.channels(elements(scale)?, elements(shift)?);
            let out = elements_mut::<T>(out)?;
            batch_norm(call.par, elements::<T>(data)?, split, params, out);
            if relu {
                unary_inplace(call.par, Unary::Relu, out);
            }
            Ok(())
        }))
    })
}

/// Statistics that change nothing: BatchNorm with them is a factor and an offset.
struct NeutralStatistics<T> {
    mean: Vec<T>,
    variance: Vec<T>,
}

impl<T: Float> NeutralStatistics<T> {
    fn new(channels: usize) -> NeutralStatistics<T> {
        NeutralStatistics { mean: vec![<T as Element>::ZERO; channels], variance: vec![<T as Element>::ONE; channels] }
    }

    fn channels<'a>(&'a self, scale: &'a [T], shift: &'a [T]) -> Channels<'a, T> {
        Channels { mean: &self.mean, variance: &self.variance, gamma: Some(scale), beta: shift, eps: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn every_channel_has_its_factor_and_offset() {
        let y = OpTest::new("_scale_shift")
            .attr("act_type", "relu")
            .f32([1, 2, 2], &[1.0, 2.0, 3.0, 4.0])
            .f32([2], &[2.0, -1.0])
            .f32([2], &[0.5, 3.5])
            .run();
        assert_eq!(f32s(&y, [1, 2, 2]), [2.5, 4.5, 0.5, 0.0]);
    }
}
