//! `_contrib_intgemm_fully_connected`: products with prepared weights.

use super::{largest, quantize_symmetric};
use crate::nn::fully_connected::infer_shape as infer_dense;
use crate::prelude::*;
use crate::quantized::layer::{Int8Layer, PackedLayer, operands, rows};
use mxrt_kernels::int8::{EachSum, Rows, WholeSums};

/// Rows of the table.
pub static OPS: &[OpDef] = &[OpDef {
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
}];

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

fn bind_product(attrs: &Attrs, signature: &Signature<'_>) -> BoundKernel {
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
    fn a_product_of_prepared_arrays_is_the_product() {
        let prepare = |rows: usize, values: &[f32]| {
            let test = OpTest::new("_contrib_intgemm_prepare_weight").f32([rows, 2], values);
            test.f32([1], &[127.0]).run()
        };
        let dense = OpTest::new("_contrib_intgemm_fully_connected").attr("num_hidden", "3").attr("no_bias", "True");
        let data = dense.f32([1, 2], &[127.0, 2.0]).array(prepare(3, &[1.0, 0.0, 2.0, 3.0, -5.0, 7.0]));
        assert_eq!(data.f32([1], &[1.0]).run().values::<f32>(), [127.0, 260.0, -621.0]);
    }
}
