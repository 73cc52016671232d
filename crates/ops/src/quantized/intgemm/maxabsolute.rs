//! `_contrib_intgemm_maxabsolute`: the largest magnitude.

use super::largest;
use crate::prelude::*;

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "_contrib_intgemm_maxabsolute",
    aliases: &["_npx_intgemm_maxabsolute"],
    doc: "The largest magnitude in a float32 array.",
    infer_shape: |shapes| shapes.set_output(0, PartialShape::from_dims([Some(1)])),
    infer_dtype: only_float,
    bind: |_, signature| {
        Ok(costed_kernel_fn("largest magnitude", streaming_ns(signature), |call| {
            let largest = largest(elements(&call.inputs[0])?);
            elements_mut::<f32>(&mut call.outputs[0])?.fill(largest);
            Ok(())
        }))
    },
    ..OpDef::BASE
}];

fn only_float(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    dtypes.set_input(0, "data", DType::F32)?;
    dtypes.set_output(0, DType::F32)
}
