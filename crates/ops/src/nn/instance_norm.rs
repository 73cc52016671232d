//! `InstanceNorm`: normalisation over each channel of every instance.

use super::group_norm::{bind, form};
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "InstanceNorm",
    doc: "Normalises each channel of an instance; gamma and beta: one value a channel.",
    inputs: Inputs::Fixed(&["data", "gamma", "beta"]),
    hidden_outputs: |_| 2,
    attrs: &[AttrDef::new("eps", AttrKind::Float, "0.00100000005", "Added to the variance.")],
    infer_shape: instance_shapes,
    infer_dtype: |dtypes| {
        let data = dtypes.inputs[0].or(dtypes.outputs[0]).unwrap_or(DType::F32);
        dtypes.set_input(0, "data", data)?;
        dtypes.all_same()
    },
    bind: |attrs, signature| bind(channels(signature)?, attrs.float("eps"), signature),
    form: |attrs, signature| form(channels(signature)?, attrs.float("eps"), signature),
    rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
    ..OpDef::BASE
}];

fn instance_shapes(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    shapes.same_as_first()?;
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    if dims.len() < 2 {
        return Err(shape_error(format!("data has shape {} but needs a batch axis and channels", shapes.inputs[0])));
    }
    let channels = PartialShape::from_dims([dims[1]]);
    shapes.set_input(1, "gamma", channels.clone())?;
    shapes.set_input(2, "beta", channels)
}

/// How many channels there are. Without an axis after them there is nothing to normalise over.
fn channels(signature: &Signature<'_>) -> Result<usize, OpError> {
    let data = &signature.inputs[0].shape;
    match data.len() {
        0..3 => Err(shape_error(format!("data has shape {data} but needs an axis after the batch and the channels"))),
        _ => Ok(signature.inputs[1].shape.size()),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, assert_close, f32s};

    #[test]
    fn channels_are_normalised_on_their_own() {
        let y = OpTest::new("InstanceNorm")
            .attr("eps", "0")
            .f32([1, 2, 2], &[1.0, 3.0, 10.0, 30.0])
            .f32([2], &[1.0, 2.0])
            .f32([2], &[0.0, 1.0])
            .run();
        assert_close(&f32s(&y, [1, 2, 2]), &[-1.0, 1.0, -1.0, 3.0]);
    }

    #[test]
    fn channels_need_elements_to_normalise() {
        let flat = OpTest::new("InstanceNorm").f32([1, 2], &[1.0, 3.0]).f32([2], &[1.0; 2]).f32([2], &[0.0; 2]);
        assert!(flat.error().message.contains("needs an axis after the batch"));
    }
}
