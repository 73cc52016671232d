//! `Cast`, `amp_cast`: another element type.

use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::Par;
use mxrt_kernels::cast::cast;
use mxrt_tensor::{DType, PartialShape, TensorMut, TensorRef};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
        name: "Cast",
        aliases: &["_npi_cast", "_npx_cast", "cast"],
        doc: "Converts to another dtype: floats are truncated to integers, narrower integers wrap \
            around.",
        attrs: &[AttrDef::required(
            "dtype",
            AttrKind::DType(&["bfloat16", "bool", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]),
            "The new dtype.",
        )],
        infer_dtype,
        bind,
        form,
        rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
        ..OpDef::BASE
    },
    OpDef {
        name: "amp_cast",
        doc: "Converts to another dtype, in networks converted to mixed precision.",
        attrs: &[AttrDef::required(
            "dtype",
            AttrKind::DType(&["bfloat16", "float16", "float32", "float64", "int32", "int64", "int8", "uint8"]),
            "The new dtype.",
        )],
        infer_dtype: |dtypes| {
            // Only floats are converted.
            match dtypes.inputs[0] {
                Some(dtype) if !dtype.is_float() => dtypes.set_output(0, dtype),
                _ => infer_dtype(dtypes),
            }
        },
        bind,
        form,
        rewrites: &Rewrites { row_wise: rows_of_data, ..Rewrites::NONE },
        ..OpDef::BASE
    },
    OpDef {
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
            let kernels =
                signature.inputs.iter().zip(signature.outputs).map(|(from, to)| converter(from.dtype, to.dtype));
            let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
            Ok(kernel_fn(signature, move |call| {
                let arrays = call.inputs.iter().zip(call.outputs.iter_mut());
                arrays.zip(&kernels).try_for_each(|((input, output), convert)| convert(call.par, input, output))
            }))
        },
        ..OpDef::BASE
    },
];

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
        (from, to) if from == to => Ok(|_, x, out| {
            out.bytes_mut().copy_from_slice(x.bytes());
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

fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    match dtypes.attrs.opt_dtype("dtype") {
        Some(dtype) => dtypes.set_output(0, dtype),
        None => Ok(()),
    }
}

fn check_convertible(from: DType, to: DType) -> Result<(), OpError> {
    match from == DType::BF16 || to == DType::BF16 {
        true => Err(not_implemented("bfloat16 arrays cannot be converted yet")),
        false => Ok(()),
    }
}

fn form(_: &Attrs, signature: &Signature<'_>) -> MaybeForm {
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if from == to {
        return Ok(Some(KernelForm::Copy));
    }
    check_convertible(from, to)?;
    Ok(Some(KernelForm::Cast))
}

fn bind(_: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let (from, to) = (signature.inputs[0].dtype, signature.outputs[0].dtype);
    if from == to {
        return Ok(costed_kernel_fn("copy", elementwise_ns(signature, 0), copy_first));
    }
    check_convertible(from, to)?;
    // Most pairs of types are converted one by one.
    let cost = elementwise_ns(signature, 500);
    Ok(costed_kernel_fn("plain", cost, |call| convert(call.par, &call.inputs[0], &mut call.outputs[0])))
}
