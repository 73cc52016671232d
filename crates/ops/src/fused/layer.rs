//! The kernel of quantized fused layers.

use super::Function;
use super::weights::{PackedWeights, WeightSource, pack, pack_integers, packed_len};
use crate::prelude::*;
use crate::quantized::layer::{Int8Layer, rows};
use crate::quantized::{Range, dispatch_bytes, product_range, scale, store_range};
use mxrt_engine::OpError;
use mxrt_kernels::Element;
use mxrt_kernels::int8::RoundTo;
use mxrt_kernels::par::Par;
use mxrt_tensor::{DType, TensorRef};

/// The result of a layer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Results {
    /// int32 sums with their range
    Sums,
    /// bytes of this range
    Bytes(Range),
    /// float32 numbers
    Numbers,
}

/// Source of the weights.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weights {
    /// float32 parameters
    Floats(WeightSource),
    /// int8 with ranges, at these inputs: of the weight, and of the bias if there is one
    Integers { weight: usize, bias: Option<usize> },
}

/// A quantized layer, its addend and its functions.
pub(super) struct FusedLayer {
    pub layer: Int8Layer,
    pub weights: Weights,
    /// inputs that are packed: the weight and what belongs to it
    pub packed_inputs: Vec<usize>,
    /// first of the two inputs with the range of the data
    pub data_range: usize,
    /// the addend, and the first of the two inputs with its range
    pub addend: Option<(usize, usize)>,
    /// applied to the sums, and after the addend
    pub functions: [Option<Function>; 2],
    pub results: Results,
    pub packed_len: usize,
}

/// Numbers that turn sums of a filter into results.
struct Steps {
    /// added to the sum
    bias: f32,
    /// multiplied afterwards
    factor: f32,
}

impl FusedLayer {
    /// Counts what is packed.
    pub fn counted(mut self) -> Result<FusedLayer, OpError> {
        self.packed_len = packed_len(&self.layer)?;
        Ok(self)
    }

    /// Integers for one unit of each filter's sums, its bias in integers, and the range of the
    /// weights.
    fn sums(&self, call: &KernelCall<'_, '_>, packed: &PackedWeights<'_>, data: f32) -> Result<Sums, OpError> {
        match self.weights {
            Weights::Floats(_) => {
                let steps: Vec<f32> = packed.scales.iter().map(|s| s * data).collect();
                let bias = packed.bias.iter().zip(&steps).map(|(b, s)| whole(b * s)).collect();
                let weight = Range { min: packed.range[0], max: packed.range[1] };
                Ok(Sums { scales: packed.scales.to_vec(), steps, bias, weight })
            }
            Weights::Integers { weight, bias } => {
                let range = Range::read("weight", call.inputs, weight)?;
                let (of_weight, filters) = (scale(DType::I8, range), self.layer.filters());
                let step = of_weight * data;
                let bias = match bias {
                    None => vec![0.0; filters],
                    Some(at) => {
                        let factor = step / scale(DType::I8, Range::read("bias", call.inputs, at)?);
                        let integers = elements::<i8>(&call.inputs[2])?;
                        integers.iter().map(|b| (f32::from(*b) * factor).round()).collect()
                    }
                };
                Ok(Sums { scales: vec![of_weight; filters], steps: vec![step; filters], bias, weight: range })
            }
        }
    }

    fn finish<T: RoundTo + bytemuck::Pod>(
        &self,
        call: &mut KernelCall<'_, '_>,
        packed: &PackedWeights<'_>,
        steps: &[Steps],
        unit: f32,
        addend: Option<f32>,
    ) -> Result<(), OpError> {
        let [first, second] = self.functions;
        let apply = |function: Option<Function>, v: f32| function.map_or(v, |f| f.apply(v, unit));
        let out_dtype = call.outputs[0].dtype;
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        let data = rows(&call.inputs[0]);
        let own = |f: usize, sum: i32| apply(first, (sum as f32 + steps[f].bias) * steps[f].factor);
        let Some((factor, (at, _))) = addend.zip(self.addend) else {
            let epilogue = |_, f, sum| T::round_to(apply(second, own(f, sum)));
            self.layer.run(call.par, data, packed.weights, &epilogue, out);
            return Ok(());
        };
        let array = &call.inputs[at];
        // MXNet computes in the type of the addend: unsigned results of a signed one end at 127.
        let most = if array.dtype == DType::I8 && out_dtype == DType::U8 { 127.0 } else { f32::INFINITY };
        dispatch_bytes!(array.dtype, A => {
            let addend = elements::<A>(array)?;
            // Rounded once, as MXNet's fused multiply-add: the product is exact in double precision.
            let sum = |at: usize, f, sum| {
                (f64::from(own(f, sum)) + addend[at].to_f64() * f64::from(factor)) as f32
            };
            let epilogue = |at, f, s| T::round_to(apply(second, sum(at, f, s)).min(most));
            self.layer.run(call.par, data, packed.weights, &epilogue, out);
            Ok(())
        })
    }

    /// Sums stay whole where nothing needs numbers.
    fn finish_whole(
        &self,
        call: &mut KernelCall<'_, '_>,
        packed: &PackedWeights<'_>,
        sums: &Sums,
    ) -> Result<(), OpError> {
        let bias: Vec<i32> = sums.bias.iter().map(|b| *b as i32).collect();
        let relu = self.functions.contains(&Some(Function::Relu));
        let least = if relu { 0 } else { i32::MIN };
        let out = elements_mut::<i32>(&mut call.outputs[0])?;
        let epilogue = |_, f: usize, sum: i32| sum.wrapping_add(bias[f]).max(least);
        self.layer.run(call.par, rows(&call.inputs[0]), packed.weights, &epilogue, out);
        Ok(())
    }
}

/// A bias in integers. Sums of 32 bits hold no larger one; as a float32 it needs no rounding.
fn whole(bias: f32) -> f32 {
    if bias.abs() < (1 << 30) as f32 { bias.round_ties_even() } else { bias }
}

struct Sums {
    /// integers for one unit of each filter's weights
    scales: Vec<f32>,
    /// integers for one unit of each filter's sums
    steps: Vec<f32>,
    bias: Vec<f32>,
    weight: Range,
}

/// Refuses a range with numbers that the element type of the data does not have.
fn check_sign(dtype: DType, data: Range) -> Result<(), OpError> {
    if data.min < 0.0 && dtype == DType::U8 {
        return Err(value_error(format!(
            "data is uint8, but its range is min={}, max={}: numbers below zero need int8, which quantized_dtype int8 \
             or auto makes",
            data.min, data.max
        )));
    }
    Ok(())
}

impl Kernel for FusedLayer {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let packed = call.packed.and_then(|p| p.get(..self.packed_len)).ok_or_else(wrong_arity)?;
        let packed = PackedWeights::of(&self.layer, packed)?;
        let (dtype, data) = (call.inputs[0].dtype, Range::read("data", call.inputs, self.data_range)?);
        check_sign(dtype, data)?;
        let of_data = scale(dtype, data);
        let sums = self.sums(call, &packed, of_data)?;
        let output = call.outputs[0].dtype;
        let own = sums.steps.first().copied().unwrap_or(1.0);
        // Integers of the output for one unit.
        let unit = match self.results {
            Results::Bytes(range) => scale(output, range),
            Results::Numbers => 1.0,
            Results::Sums => own,
        };
        let addend = match self.addend {
            Some((at, range)) => Some(unit / scale(call.inputs[at].dtype, Range::read("sum", call.inputs, range)?)),
            None => None,
        };
        // Divided twice, as MXNet does: where a result is between two integers, the last bit decides.
        let steps = sums.scales.iter().zip(&sums.bias);
        let whole = matches!(self.results, Results::Sums);
        let factor = |scale: &f32| if whole { 1.0 } else { unit / of_data / scale };
        let steps: Vec<Steps> = steps.map(|(scale, bias)| Steps { bias: *bias, factor: factor(scale) }).collect();
        match (self.results, output) {
            (Results::Sums, _) if addend.is_none() && self.functions.iter().flatten().all(|f| *f == Function::Relu) => {
                self.finish_whole(call, &packed, &sums)?;
            }
            (_, DType::I32) => self.finish::<i32>(call, &packed, &steps, unit, addend)?,
            (_, DType::U8) => self.finish::<u8>(call, &packed, &steps, unit, addend)?,
            (_, DType::I8) => self.finish::<i8>(call, &packed, &steps, unit, addend)?,
            _ => self.finish::<f32>(call, &packed, &steps, unit, addend)?,
        }
        match self.results {
            Results::Bytes(range) => store_range(range, call.outputs),
            Results::Sums => store_range(product_range(sums.weight, data, dtype == DType::U8), call.outputs),
            Results::Numbers => Ok(()),
        }
    }

    fn packing(&self) -> Option<&dyn Packing> {
        Some(self)
    }

    fn describe(&self) -> String {
        self.layer.describe()
    }

    fn cost_ns(&self) -> u64 {
        self.layer.cost_ns()
    }

    fn multiply_adds(&self) -> Option<u64> {
        Some(self.layer.multiply_adds())
    }
}

impl Packing for FusedLayer {
    fn inputs(&self) -> &[usize] {
        &self.packed_inputs
    }

    fn bytes(&self) -> usize {
        self.packed_len
    }

    fn pack(&self, _: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let out = out.get_mut(..self.packed_len).ok_or_else(wrong_arity)?;
        match self.weights {
            Weights::Floats(source) => pack(&self.layer, source, inputs, out),
            Weights::Integers { .. } => pack_integers(&self.layer, inputs.first().ok_or_else(wrong_arity)?, out),
        }
    }

    fn key(&self) -> String {
        format!("fused {} {:?}", self.layer.describe(), self.weights)
    }
}
