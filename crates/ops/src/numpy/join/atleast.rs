//! `_np_atleast_1d`, `_np_atleast_2d`, `_np_atleast_3d`: axes added to arrays that have fewer.

use super::{NUM_ARGS, widened};
use crate::prelude::*;

macro_rules! at_least {
    ($name:literal, $axes:literal, $doc:literal) => {
        OpDef {
            name: $name,
            doc: $doc,
            inputs: Inputs::Variadic { count: "num_args", prefix: "ary", named: |_| None },
            attrs: &[NUM_ARGS],
            outputs: Outputs::Count(|attrs| attrs.count("num_args")),
            infer_shape: |shapes| {
                for i in 0..shapes.inputs.len() {
                    if let Some(shape) = shapes.input(i) {
                        shapes.set_output(i, widened(&shape, $axes))?;
                    }
                }
                Ok(())
            },
            infer_dtype: |dtypes| {
                for i in 0..dtypes.inputs.len() {
                    if let Some(dtype) = dtypes.inputs[i] {
                        dtypes.set_output(i, dtype)?;
                    }
                }
                Ok(())
            },
            bind: |_, signature| {
                Ok(kernel_fn(signature, |call| {
                    let pairs = call.outputs.iter_mut().zip(call.inputs);
                    pairs.for_each(|(out, x)| mxrt_kernels::shape::copy(call.par, x.bytes(), out.bytes_mut()));
                    Ok(())
                }))
            },
            ..OpDef::BASE
        }
    };
}

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    at_least!("_np_atleast_1d", 1, "The arrays; scalars get an axis."),
    at_least!("_np_atleast_2d", 2, "The arrays with two axes at least; new ones come first."),
    at_least!(
        "_np_atleast_3d",
        3,
        "The arrays with three axes at least; vectors become (1, n, 1), matrices (m, n, 1)."
    ),
];
