//! Layers on integer weights that return their sums: `_contrib_quantized_conv` and
//! `_contrib_quantized_fully_connected`.

use super::layer::{Int8Layer, PackedLayer, operands, rows};
use super::{Range, infer_float_ranges, infer_scalars, product_range, scale, store_range};
use crate::prelude::*;
use mxrt_kernels::int8::WholeSums;
use mxrt_tensor::TensorRef;

pub(super) const INPUTS: Inputs = Inputs::ByAttrs(|attrs| {
    if attrs.bool("no_bias") {
        &["data", "weight", "min_data", "max_data", "min_weight", "max_weight"]
    } else {
        &["data", "weight", "bias", "min_data", "max_data", "min_weight", "max_weight", "min_bias", "max_bias"]
    }
});

/// Names for errors, where there is a bias.
const NAMES: [&str; 9] =
    ["data", "weight", "bias", "min_data", "max_data", "min_weight", "max_weight", "min_bias", "max_bias"];

/// Ranges are one number each.
pub(super) fn infer_ranges(shapes: &mut Shapes<'_>) -> Result<(), OpError> {
    let arrays = 3 - usize::from(shapes.attrs.bool("no_bias"));
    infer_scalars(shapes, arrays, if arrays == 3 { &NAMES } else { &[] })
}

/// Bytes by int8 give int32.
pub(super) fn infer_dtype(dtypes: &mut DTypes<'_>) -> Result<(), OpError> {
    super::bytes_of(dtypes, 0, "data")?;
    let arrays = 3 - usize::from(dtypes.attrs.bool("no_bias"));
    for (i, name) in NAMES.iter().enumerate().take(arrays).skip(1) {
        dtypes.set_input(i, name, DType::I8)?;
    }
    dtypes.set_output(0, DType::I32)?;
    infer_float_ranges(dtypes, arrays, if arrays == 3 { &NAMES } else { &[] })
}

/// The kernel of either layer.
pub(super) struct SumsKernel {
    pub packed: PackedLayer,
    pub bias: bool,
}

impl SumsKernel {
    /// Integers that each filter adds to its sums. To those of a convolution of uint8 data the bias
    /// is added unchanged, as by oneDNN in MXNet.
    fn bias(&self, inputs: &[TensorRef<'_>], data: Range, weight: Range) -> Result<Vec<i32>, OpError> {
        if !self.bias {
            return Ok(vec![0; self.packed.layer.filters()]);
        }
        let bias = elements::<i8>(inputs.get(2).ok_or_else(wrong_arity)?)?;
        if matches!(self.packed.layer, Int8Layer::Conv(_)) && inputs[0].dtype == DType::U8 {
            return Ok(bias.iter().map(|b| i32::from(*b)).collect());
        }
        let range = Range::read("bias", inputs, 7)?;
        let step = scale(inputs[0].dtype, data) * scale(DType::I8, weight) * range.largest() / 127.5;
        Ok(bias.iter().map(|b| (f32::from(*b) * step) as i32).collect())
    }
}

impl Kernel for SumsKernel {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let first = 2 + usize::from(self.bias);
        let data = Range::read("data", call.inputs, first)?;
        let weight = Range::read("weight", call.inputs, first + 2)?;
        let bias = self.bias(call.inputs, data, weight)?;
        let (layer, packed) = (&self.packed.layer, self.packed.weights(call)?);
        let out = elements_mut::<i32>(&mut call.outputs[0])?;
        let epilogue = WholeSums::new(bias, i32::MIN);
        layer.run(call.par, &operands(rows(&call.inputs[0]), packed, &epilogue), out, call.workspace);
        let dense = matches!(layer, Int8Layer::Dense { .. });
        store_range(product_range(data, weight, dense && call.inputs[0].dtype == DType::U8), call.outputs)
    }

    fn workspace(&self) -> usize {
        self.packed.layer.workspace()
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

    fn multiply_adds(&self) -> Option<u64> {
        Some(self.packed.layer.multiply_adds())
    }
}
