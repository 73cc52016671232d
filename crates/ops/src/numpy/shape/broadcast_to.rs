//! `_npi_broadcast_to`: elements repeated along axes.

use super::MOVED;
use crate::prelude::*;
use crate::shape::{PartialDims, Strided, bind_strided, strided_form};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_npi_broadcast_to",
    doc: "Repeated along axes of size 1, and along new ones, to a shape; -2 keeps an extent.",
    inputs: Inputs::Fixed(&["array"]),
    attrs: &[AttrDef::new("shape", AttrKind::Shape, "()", "The new shape.")],
    infer_shape: infer_broadcast,
    bind: |_, signature| bind_strided(broadcast(signature), signature),
    form: |_, signature| strided_form(&broadcast(signature)),
    ..MOVED
}];

fn infer_broadcast(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let Some(dims) = shapes.dims(0) else { return Ok(()) };
    let target = shapes.attrs.ints("shape");
    let Some(missing) = target.len().checked_sub(dims.len()) else {
        return Err(shape_error(format!(
            "an array of shape {} cannot be broadcast to {} axes: it has more",
            shapes.inputs[0],
            target.len()
        )));
    };
    let mut out = PartialDims::new();
    for (i, extent) in target.iter().enumerate() {
        let own = if i < missing { Some(1) } else { dims[i - missing] };
        let want = if *extent == -2 && i >= missing { own } else { Some(extents("shape", &[*extent])?[0]) };
        if let (Some(own), Some(want)) = (own, want)
            && own != want
            && own != 1
        {
            return Err(shape_error(format!(
                "an array of shape {} cannot be broadcast: axis {i} of the new shape is {want}, not {own}",
                shapes.inputs[0]
            )));
        }
        out.push(want);
    }
    shapes.set_output(0, PartialShape::from_dims(out))
}

fn broadcast(signature: &Signature<'_>) -> Strided {
    let out = &signature.outputs[0].shape;
    let strides = mxrt_kernels::strides::broadcast(&signature.inputs[0].shape, out);
    Strided { offset: 0, strides, shape: out.to_vec() }
}

#[cfg(test)]
mod tests {
    use crate::testing::{OpTest, f32s};

    #[test]
    fn a_scalar_is_repeated() {
        let y = OpTest::new("_npi_broadcast_to").attr("shape", "(2, 2)").f32([], &[3.0]).run();
        assert_eq!(f32s(&y, [2, 2]), [3.0; 4]);
    }
}
