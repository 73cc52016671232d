//! `_contrib_intgemm_*`: int8 products as Sockeye uses them.
//!
//! intgemm rearranges prepared weights for the processor. Here they stay rows of integers, and
//! plans pack them.

use super::layer::{Int8Layer, PackedLayer, operands, rows};
use crate::nn::fully_connected::infer_shape as infer_dense;
use crate::prelude::*;
use mxrt_engine::OpError;
use mxrt_kernels::index::{OutOfRange, take};
use mxrt_kernels::int8::{EachSum, Rows, WholeSums, quantize};
use mxrt_kernels::par::Par;
use mxrt_tensor::{DType, PartialShape};

/// Rows of the table.
pub static OPS: &[OpDef] = &[
    OpDef {
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
    },
    OpDef {
        name: "_contrib_intgemm_prepare_data",
        aliases: &["_npx_intgemm_prepare_data"],
        doc: "Quantizes float32 to int8 from -127 to 127, so that maxabs becomes 127.",
        inputs: Inputs::Fixed(&["data", "maxabs"]),
        infer_shape: |shapes| {
            shapes.same_as_first()?;
            shapes.set_input(1, "maxabs", PartialShape::from_dims([Some(1)]))
        },
        infer_dtype: |dtypes| {
            dtypes.set_input(0, "data", DType::F32)?;
            dtypes.set_input(1, "maxabs", DType::F32)?;
            dtypes.set_output(0, DType::I8)
        },
        bind: |_, signature| Ok(costed_kernel_fn("quantize", elementwise_ns(signature, 0), prepare)),
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_intgemm_prepare_weight",
        aliases: &["_npx_intgemm_prepare_weight"],
        doc: "Prepares weights for _contrib_intgemm_fully_connected: quantizes float32 ones as \
            _contrib_intgemm_prepare_data does.",
        inputs: Inputs::ByAttrs(
            |attrs| {
                if attrs.bool("already_quantized") { &["weight"] } else { &["weight", "maxabs"] }
            },
        ),
        attrs: &[AttrDef::new("already_quantized", AttrKind::Bool, "False", "Whether the weight is int8 already.")],
        infer_shape: |shapes| {
            shapes.same_as_first()?;
            shapes.set_input(1, "maxabs", PartialShape::from_dims([Some(1)]))
        },
        infer_dtype: |dtypes| {
            let prepared = dtypes.attrs.bool("already_quantized");
            dtypes.set_input(0, "weight", if prepared { DType::I8 } else { DType::F32 })?;
            dtypes.set_input(1, "maxabs", DType::F32)?;
            dtypes.set_output(0, DType::I8)
        },
        bind: |attrs, signature| {
            let run = if attrs.bool("already_quantized") { copy_first } else { prepare };
            Ok(costed_kernel_fn("prepare", elementwise_ns(signature, 0), run))
        },
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_intgemm_take_weight",
        aliases: &["_npx_intgemm_take_weight"],
        doc: "The rows of a prepared weight that indices name.",
        inputs: Inputs::Fixed(&["weight", "indices"]),
        infer_shape: infer_taken,
        infer_dtype: |dtypes| {
            dtypes.set_input(0, "weight", DType::I8)?;
            dtypes.set_input(1, "indices", DType::I32)?;
            dtypes.set_output(0, DType::I8)
        },
        bind: bind_take,
        ..OpDef::BASE
    },
    OpDef {
        name: "_contrib_intgemm_fully_connected",
        aliases: &["_npx_intgemm_fully_connected"],
        doc: "Dense layer of float32 data, which are quantized, or int8 data, with a prepared weight. float32 outputs \
            are the sums times scaling, plus bias.",
        inputs: Inputs::ByAttrs(|attrs| match (attrs.str("out_type"), attrs.bool("no_bias")) {
            ("float32", true) => &["data", "weight", "scaling"],
            ("float32", false) => &["data", "weight", "scaling", "bias"],
            (_, true) => &["data", "weight"],
            (_, false) => &["data", "weight", "bias"],
        }),
        attrs: &[
            AttrDef::required("num_hidden", AttrKind::IntFrom(1), "Number of outputs."),
            AttrDef::new("no_bias", AttrKind::Bool, "False", "Without the input bias."),
            AttrDef::new("flatten", AttrKind::Bool, "True", "Join all axes of data but the first."),
            AttrDef::new("out_type", AttrKind::Enum(&["float32", "int32"]), "float32", "dtype of the output."),
        ],
        infer_shape: infer_product,
        infer_dtype: infer_product_dtype,
        bind: bind_product,
        ..OpDef::BASE
    },
];

fn only_float(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    dtypes.set_input(0, "data", DType::F32)?;
    dtypes.set_output(0, DType::F32)
}

fn largest(numbers: &[f32]) -> f32 {
    numbers.iter().fold(0.0, |largest: f32, v| largest.max(v.abs()))
}

fn prepare(call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
    let maxabs = elements::<f32>(&call.inputs[1])?.first().copied().unwrap_or(f32::NAN);
    if !maxabs.is_finite() || maxabs < 0.0 {
        return Err(value_error(format!(
            "maxabs is {maxabs}; it must be the largest magnitude of the array, which _contrib_intgemm_maxabsolute finds"
        )));
    }
    quantize_symmetric(call.par, elements(&call.inputs[0])?, maxabs, elements_mut(&mut call.outputs[0])?);
    Ok(())
}

/// Quantizes to -127 ..= 127.
fn quantize_symmetric(par: &dyn Par, from: &[f32], maxabs: f32, to: &mut [i8]) {
    quantize::<i8>(par, from, if maxabs == 0.0 { 0.0 } else { 127.0 / maxabs }, to);
    to.iter_mut().for_each(|v| *v = (*v).max(-127));
}

fn infer_taken(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (weight, indices) = (shapes.inputs[0].clone(), shapes.inputs[1].clone());
    shapes.set_input(0, "weight", PartialShape::of_rank(2))?;
    shapes.set_input(1, "indices", PartialShape::of_rank(1))?;
    shapes.set_output(0, PartialShape::from_dims([indices.dim(0), weight.dim(1)]))
}

fn bind_take(_: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let [rows, width] = signature.inputs[0].shape[..] else { return Err(wrong_arity()) };
    Ok(kernel_fn(signature, move |call| {
        let (indices, table) = (integers(call.par, &call.inputs[1])?, elements::<i8>(&call.inputs[0])?);
        let out = elements_mut(&mut call.outputs[0])?;
        take(call.par, table, [1, rows, width], &indices, OutOfRange::Raise, 0, out).map_err(kernel_error)
    }))
}

/// Position of the bias.
fn bias_at(attrs: &Attrs) -> Option<usize> {
    (!attrs.bool("no_bias")).then_some(2 + usize::from(attrs.str("out_type") == "float32"))
}

fn infer_product(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let (scaled, outputs) = (shapes.attrs.str("out_type") == "float32", shapes.attrs.count("num_hidden"));
    if scaled {
        shapes.set_input(2, "scaling", PartialShape::from_dims([Some(1)]))?;
    }
    match bias_at(shapes.attrs) {
        // The bias of a dense layer is input 2, which is scaling here.
        Some(3) => {
            let column = PartialShape::from_dims([Some(outputs), Some(1)]);
            if shapes.rank(3) != Some(2) || shapes.set_input(3, "bias", column).is_err() {
                shapes.set_input(3, "bias", PartialShape::from_dims([Some(outputs)]))?;
            }
            infer_weight(shapes)
        }
        Some(_) => infer_dense(shapes),
        None => infer_weight(shapes),
    }
}

/// Infers data, weight and output alone.
fn infer_weight(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let text = [
        ("num_hidden", shapes.attrs.count("num_hidden").to_string()),
        ("no_bias", "True".to_owned()),
        ("flatten", if shapes.attrs.bool("flatten") { "True" } else { "False" }.to_owned()),
    ];
    let attrs = Attrs::parse(&crate::nn::fully_connected::ALL_ATTRS, text.iter().map(|(k, v)| (*k, v.as_str())))?;
    infer_dense(&mut Shapes { attrs: &attrs, inputs: shapes.inputs, outputs: shapes.outputs })
}

fn infer_product_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    if let Some(other) = dtypes.inputs[0]
        && !matches!(other, DType::F32 | DType::I8)
    {
        return Err(unsupported_dtype(other, "float32 and int8"));
    }
    let scaled = dtypes.attrs.str("out_type") == "float32";
    let out = if scaled { DType::F32 } else { DType::I32 };
    dtypes.set_input(1, "weight", DType::I8)?;
    if scaled {
        dtypes.set_input(2, "scaling", DType::F32)?;
    }
    if let Some(at) = bias_at(dtypes.attrs) {
        dtypes.set_input(at, "bias", out)?;
    }
    dtypes.set_output(0, out)
}

fn bind_product(attrs: &Attrs, signature: &Signature<'_>) -> Result<Box<dyn Kernel>, OpError> {
    let layer = Int8Layer::dense(&signature.inputs[1].shape, &signature.outputs[0].shape, &signature.options)?;
    let data = &signature.inputs[0];
    let copied = if data.dtype == DType::F32 { data.shape.size() } else { 0 };
    Ok(Box::new(IntgemmProduct { packed: PackedLayer::new(layer)?, copied, bias: bias_at(attrs) }))
}

struct IntgemmProduct {
    packed: PackedLayer,
    /// bytes of the quantized data
    copied: usize,
    bias: Option<usize>,
}

impl Kernel for IntgemmProduct {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let packed = self.packed.weights(call)?;
        let data = &call.inputs[0];
        let mut factor = 1.0;
        let rows = if data.dtype == DType::F32 {
            let numbers = elements::<f32>(data)?;
            let copy = scratch::<i8>(call.workspace, self.copied)?;
            let maxabs = largest(numbers);
            if !maxabs.is_finite() {
                return Err(value_error("data holds an infinity, so it cannot be quantized"));
            }
            quantize_symmetric(call.par, numbers, maxabs, copy);
            factor = maxabs / 127.0;
            Rows { bytes: bytemuck::cast_slice(copy), signed: true }
        } else {
            rows(data)
        };
        if call.outputs[0].dtype == DType::I32 {
            let bias = self.bias.map(|at| elements::<i32>(&call.inputs[at])).transpose()?;
            let out = elements_mut::<i32>(&mut call.outputs[0])?;
            let bias = bias.map_or_else(|| vec![0; self.packed.layer.filters()], <[i32]>::to_vec);
            let epilogue = WholeSums::new(bias, i32::MIN);
            self.packed.layer.run(call.par, &operands(rows, packed, &epilogue), out, &mut []);
            return Ok(());
        }
        let bias = self.bias.map(|at| elements::<f32>(&call.inputs[at])).transpose()?;
        let factor = factor * elements::<f32>(&call.inputs[2])?.first().copied().ok_or_else(wrong_arity)?;
        let out = elements_mut::<f32>(&mut call.outputs[0])?;
        // A block of columns may end after the last one.
        let of = |f: usize| bias.and_then(|b| b.get(f)).copied().unwrap_or(0.0);
        let epilogue = EachSum(|f: usize, sum: i32| sum as f32 * factor + of(f));
        self.packed.layer.run(call.par, &operands(rows, packed, &epilogue), out, &mut []);
        Ok(())
    }

    fn workspace(&self) -> usize {
        self.copied
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(&self.packed)
    }

    fn describe(&self) -> String {
        self.packed.layer.describe()
    }

    fn cost_ns(&self) -> u64 {
        self.packed.layer.cost_ns()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::OpTest;

    #[test]
    fn quantized_numbers_never_are_minus_128() {
        let test = OpTest::new("_contrib_intgemm_prepare_data").f32([5], &[0.5, 1.5, -2.5, -127.0, -300.0]);
        assert_eq!(test.f32([1], &[127.0]).run().values::<i8>(), [0, 2, -2, -127, -127]);
    }

    #[test]
    fn a_product_of_prepared_arrays_is_the_product() {
        let prepare = |rows: usize, values: &[f32]| {
            let test = OpTest::new("_contrib_intgemm_prepare_weight").f32([rows, 2], values);
            test.f32([1], &[127.0]).run()
        };
        let dense = OpTest::new("_contrib_intgemm_fully_connected").attr("num_hidden", "3").attr("no_bias", "True");
        let data = dense.f32([1, 2], &[127.0, 2.0]).array(prepare(3, &[1.0, 0.0, 2.0, 3.0, -5.0, 7.0]));
        assert_eq!(data.f32([1], &[1.0]).run().values::<f32>(), [127.0, 260.0, -621.0]);
    }

    #[test]
    fn a_magnitude_that_is_none_is_refused() {
        let of = |maxabs: f32| OpTest::new("_contrib_intgemm_prepare_data").f32([1], &[1.0]).f32([1], &[maxabs]);
        assert!(of(f32::NAN).error().message.contains("maxabs is NaN"));
        assert!(of(-1.0).error().message.contains("maxabs is -1"));
    }
}
