//! The kernel of quantized fused layers.

use super::weights::{PackedWeights, WeightSource, pack, pack_integers, packed_len};
use crate::prelude::*;
use crate::quantized::layer::{Int8Layer, operands, rows};
use crate::quantized::{Range, product_range, scale, store_range};
use mxrt_kernels::int8::{AddedBytes, Function, Int8ConvOperands, Int8Result, ScaledSums, WholeSums};
use mxrt_kernels::par::Par;
use mxrt_tensor::TensorRef;

/// The result of a layer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Results {
    /// int32 sums with their range
    Sums,
    /// bytes of this range
    Bytes(Range),
    /// float32 numbers
    Numbers,
}

/// Source of the weights.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Weights {
    /// float32 parameters
    Floats(WeightSource),
    /// int8 with ranges, at these inputs: of the weight, and of the bias if there is one
    Integers { weight: usize, bias: Option<usize> },
}

/// A quantized layer, its addend and its functions.
pub(crate) struct FusedLayer {
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
                let bias = packed.bias.iter().zip(packed.scales).map(|(b, s)| whole(b * (s * data))).collect();
                let weight = Range { min: packed.range[0], max: packed.range[1] };
                let step = packed.scales.first().map_or(1.0, |s| s * data);
                Ok(Sums { scales: packed.scales.to_vec(), step, bias, weight })
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
                Ok(Sums { scales: vec![of_weight; filters], step, bias, weight: range })
            }
        }
    }

    fn finish<T: Int8Result>(
        &self,
        call: &mut KernelCall<'_, '_>,
        packed: &PackedWeights<'_>,
        epilogue: &ScaledSums,
    ) -> Result<(), OpError> {
        let out = elements_mut::<T>(&mut call.outputs[0])?;
        let addend = epilogue.addend.and(self.addend).map(|(at, _)| rows(&call.inputs[at]));
        let operands = Int8ConvOperands { addend, ..operands(rows(&call.inputs[0]), packed.weights, epilogue) };
        self.layer.run(call.par, &operands, out, call.workspace);
        Ok(())
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
        let epilogue = WholeSums::new(bias, if relu { 0 } else { i32::MIN });
        let out = elements_mut::<i32>(&mut call.outputs[0])?;
        self.layer.run(call.par, &operands(rows(&call.inputs[0]), packed.weights, &epilogue), out, call.workspace);
        Ok(())
    }

    /// The addend of results whose steps are `unit` for one.
    fn added(&self, call: &KernelCall<'_, '_>, unit: f32) -> Result<Option<AddedBytes>, OpError> {
        let Some((at, range)) = self.addend else { return Ok(None) };
        let array = &call.inputs[at];
        if !matches!(array.dtype, DType::I8 | DType::U8) {
            return Err(unsupported_dtype(array.dtype, "int8 and uint8"));
        }
        let signed = array.dtype == DType::I8;
        let factor = unit / scale(array.dtype, Range::read("sum", call.inputs, range)?);
        // MXNet computes in the type of the addend: unsigned results of a signed one end at 127.
        let most = if signed && call.outputs[0].dtype == DType::U8 { 127.0 } else { f32::INFINITY };
        Ok(Some(AddedBytes { signed, factor, most }))
    }
}

/// A bias in integers, half to even. `round_ties_even` is a call for each where the compiler may not
/// take later instructions than those of every processor.
#[inline(always)]
fn whole(bias: f32) -> f32 {
    // Numbers from here on have no fraction.
    const WHOLE: f32 = (1 << 23) as f32;
    if bias.abs() < WHOLE {
        let shift = WHOLE.copysign(bias);
        (bias + shift) - shift
    } else {
        bias
    }
}

struct Sums {
    /// integers for one unit of each filter's weights
    scales: Vec<f32>,
    /// integers for one unit of the first filter's sums
    step: f32,
    bias: Vec<f32>,
    weight: Range,
}

impl Kernel for FusedLayer {
    fn run(&self, call: &mut KernelCall<'_, '_>) -> Result<(), OpError> {
        let packed = call.packed.and_then(|p| p.get(..self.packed_len)).ok_or_else(wrong_arity)?;
        let packed = PackedWeights::of(&self.layer, packed)?;
        let (dtype, data) = (call.inputs[0].dtype, Range::read("data", call.inputs, self.data_range)?);
        let of_data = scale(dtype, data);
        let sums = self.sums(call, &packed, of_data)?;
        let output = call.outputs[0].dtype;
        // Integers of the output for one unit.
        let unit = match self.results {
            Results::Bytes(range) => scale(output, range),
            Results::Numbers => 1.0,
            Results::Sums => sums.step,
        };
        let added = self.added(call, unit)?;
        // Divided twice, as MXNet does: where a result is between two integers, the last bit
        // decides.
        let whole = matches!(self.results, Results::Sums);
        let factor = |scale: &f32| if whole { 1.0 } else { unit / of_data / scale };
        let factors = sums.scales.iter().map(factor).collect();
        if whole && added.is_none() && self.functions.iter().flatten().all(|f| *f == Function::Relu) {
            self.finish_whole(call, &packed, &sums)?;
        } else {
            let mut epilogue = ScaledSums::new(sums.bias, factors);
            (epilogue.functions, epilogue.unit, epilogue.addend) = (self.functions, unit, added);
            match output {
                DType::I32 => self.finish::<i32>(call, &packed, &epilogue)?,
                DType::U8 => self.finish::<u8>(call, &packed, &epilogue)?,
                DType::I8 => self.finish::<i8>(call, &packed, &epilogue)?,
                _ => self.finish::<f32>(call, &packed, &epilogue)?,
            }
        }
        match self.results {
            Results::Bytes(range) => store_range(range, call.outputs),
            Results::Sums => store_range(product_range(sums.weight, data, dtype == DType::U8), call.outputs),
            Results::Numbers => Ok(()),
        }
    }

    fn workspace(&self) -> usize {
        self.layer.workspace()
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

    fn pack(&self, par: &dyn Par, inputs: &[TensorRef<'_>], out: &mut [u8]) -> Result<(), OpError> {
        let out = out.get_mut(..self.packed_len).ok_or_else(wrong_arity)?;
        match self.weights {
            Weights::Floats(source) => pack(par, &self.layer, source, inputs, out),
            Weights::Integers { .. } => pack_integers(&self.layer, inputs.first().ok_or_else(wrong_arity)?, out),
        }
    }

    fn key(&self) -> String {
        format!("fused {} {:?}", self.layer.packing(), self.weights)
    }
}
