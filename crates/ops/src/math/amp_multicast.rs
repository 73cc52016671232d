//! `amp_multicast`: one floating-point type for several arrays.

use crate::prelude::*;
use mxrt_kernels::Par;
use mxrt_kernels::cast::cast;
use mxrt_tensor::{TensorMut, TensorRef};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
    name: "amp_multicast",
    doc: "Converts float16 and float32 arrays to the wider dtype of them, or to the narrower \
          one; other arrays stay unchanged.",
    inputs: Inputs::Variadic { count: "num_outputs", prefix: "data_", named: |_| None },
    outputs: Outputs::Count(|attrs| attrs.count("num_outputs")),
    attrs: &[
        AttrDef::required("num_outputs", AttrKind::IntFrom(1), "Number of arrays."),
        AttrDef::new("cast_narrow", AttrKind::Bool, "False", "Whether the narrower dtype is taken."),
    ],
    infer_shape: |shapes| {
        for (input, output) in shapes.inputs.iter_mut().zip(shapes.outputs.iter_mut()) {
            PartialShape::unify(input, output)
                .map_err(|e| shape_error(format!("an input and its output differ: {e}")))?;
        }
        Ok(())
    },
    infer_dtype: infer_common_float,
    form: |_, signature| {
        let mut arrays = signature.inputs.iter().zip(signature.outputs);
        arrays.try_for_each(|(from, to)| converter(from.dtype, to.dtype).map(drop))?;
        Ok(Some(KernelForm::CastEach))
    },
    bind: |_, signature| {
        let kernels = signature.inputs.iter().zip(signature.outputs).map(|(from, to)| converter(from.dtype, to.dtype));
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        Ok(kernel_fn(signature, move |call| {
            let arrays = call.inputs.iter().zip(call.outputs.iter_mut());
            arrays.zip(&kernels).try_for_each(|((input, output), convert)| convert(call.par, input, output))
        }))
    },
    ..OpDef::BASE
}];

/// Converts one array.
type Converter = fn(&dyn Par, &TensorRef<'_>, &mut TensorMut<'_>) -> Result<(), OpError>;

fn converter(from: DType, to: DType) -> Result<Converter, OpError> {
    match (from, to) {
        (DType::F16, DType::F32) => Ok(|par, x, out| {
            cast(par, elements::<half::f16>(x)?, elements_mut::<f32>(out)?);
            Ok(())
        }),
        (DType::F32, DType::F16) => Ok(|par, x, out| {
            cast(par, elements::<f32>(x)?, elements_mut::<half::f16>(out)?);
            Ok(())
        }),
        (from, to) if from == to => Ok(|par, x, out| {
            mxrt_kernels::shape::copy(par, x.bytes(), out.bytes_mut());
            Ok(())
        }),
        (from, to) => Err(not_implemented(format!("{from} arrays cannot be converted to {to} here"))),
    }
}

/// All arrays of float16 and float32 get one of the two.
fn infer_common_float(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    let low = |dtype: &DType| matches!(dtype, DType::F16 | DType::F32);
    let (narrow, other) =
        if dtypes.attrs.bool("cast_narrow") { (DType::F16, DType::F32) } else { (DType::F32, DType::F16) };
    // An unknown input leaves the common dtype open, unless the dtype to be taken is there.
    let known = dtypes.inputs.iter().all(Option::is_some);
    let common = match dtypes.inputs.contains(&Some(narrow)) {
        true => Some(narrow),
        false => known.then_some(other),
    };
    for i in 0..dtypes.inputs.len() {
        match (dtypes.inputs[i], common) {
            (Some(dtype), Some(common)) if low(&dtype) => dtypes.set_output(i, common)?,
            (Some(dtype), _) if !low(&dtype) => dtypes.set_output(i, dtype)?,
            _ => {}
        }
    }
    Ok(())
}
