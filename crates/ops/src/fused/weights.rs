//! Weights of fused layers: folded with a BatchNorm, quantized by filter or as a whole, packed.

use crate::prelude::*;
use crate::quantized::layer::Int8Layer;
use mxrt_kernels::int8::RoundTo;
use mxrt_tensor::TensorRef;

/// A BatchNorm after the layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm {
    pub eps: f64,
    pub fix_gamma: bool,
}

/// Source of weights and of what belongs to them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeightSource {
    /// whether there is a bias
    pub bias: bool,
    /// whether gamma, beta, mean and variance follow
    pub norm: Option<Norm>,
    /// each filter has steps of its own
    pub by_filter: bool,
}

/// Packed weights as kernels read them.
pub(super) struct PackedWeights<'a> {
    pub weights: &'a [u8],
    /// integers for one unit, by filter
    pub scales: &'a [f32],
    /// bias in units, by filter
    pub bias: &'a [f32],
    /// the least and the largest weight
    pub range: [f32; 2],
}

/// Bytes of the packed form: weights, scales, bias, range; every part in whole lines.
pub(super) fn packed_len(layer: &Int8Layer) -> Result<usize, OpError> {
    let [weights, numbers, range] = parts(layer)?;
    let total = numbers.checked_mul(2).and_then(|n| n.checked_add(weights)).and_then(|n| n.checked_add(range));
    total.ok_or_else(|| shape_error("the weights are larger than the address space"))
}

fn parts(layer: &Int8Layer) -> Result<[usize; 3], OpError> {
    let numbers = checked_product(&[layer.filters(), size_of::<f32>()])?;
    Ok([layer.packed_len()?.next_multiple_of(64), numbers.next_multiple_of(64), 64])
}

impl PackedWeights<'_> {
    /// Finds the parts.
    pub fn of<'a>(layer: &Int8Layer, packed: &'a [u8]) -> Result<PackedWeights<'a>, OpError> {
        let ([weights, numbers, _], filters) = (parts(layer)?, layer.filters());
        let floats = |start: usize, len: usize| packed_elements::<f32>(packed.get(start..).unwrap_or_default(), len);
        let range = floats(weights + 2 * numbers, 2)?;
        Ok(PackedWeights {
            weights: packed.get(..layer.packed_len()?).ok_or_else(wrong_arity)?,
            scales: floats(weights, filters)?,
            bias: floats(weights + numbers, filters)?,
            range: [range[0], range[1]],
        })
    }
}

/// Folds, quantizes and packs float32 weights; `inputs` are the weight and what follows it.
pub(super) fn pack(
    par: &dyn Par,
    layer: &Int8Layer,
    source: WeightSource,
    inputs: &[TensorRef<'_>],
    out: &mut [u8],
) -> Result<(), OpError> {
    let filters = layer.filters();
    let mut rest = inputs.iter();
    let mut next = || elements::<f32>(rest.next().ok_or_else(wrong_arity)?);
    let mut weights = Scratch::copy_of(par, next()?);
    let mut bias = if source.bias { next()?.to_vec() } else { vec![0.0; filters] };
    let row = weights.len() / filters.max(1);
    if let Some(norm) = source.norm {
        let (gamma, beta, mean, variance) = (next()?, next()?, next()?, next()?);
        for f in 0..filters {
            // In double precision, as MXNet: the largest weight of a filter is half a step beyond the
            // last integer, and which way it goes depends on the last bit.
            let gamma = if norm.fix_gamma { 1.0 } else { f64::from(gamma[f]) };
            let alpha = (gamma / (f64::from(variance[f]) + norm.eps).sqrt()) as f32;
            bias[f] = beta[f] + alpha * (bias[f] - mean[f]);
            weights[f * row..][..row].iter_mut().for_each(|w| *w *= alpha);
        }
    }
    if let Some(wrong) = weights.iter().chain(&bias).find(|v| !v.is_finite()) {
        return Err(value_error(format!("a weight or bias is {wrong} and cannot be quantized")));
    }
    let of = |row: &[f32]| row.iter().fold([0f32; 2], |[low, high], w| [low.min(*w), high.max(*w)]);
    let all = of(&weights);
    let scale = |[low, high]: [f32; 2]| {
        let largest = high.max(-low);
        if largest == 0.0 { i32::MAX as f32 } else { 127.5 / largest }
    };
    let rows = weights.chunks_exact(row.max(1));
    let mut scales: Vec<f32> = rows.map(|row| scale(if source.by_filter { of(row) } else { all })).collect();
    scales.resize(filters, i32::MAX as f32);
    let integers = weights.iter().enumerate().map(|(i, w)| i8::round_to(w * scales[i / row.max(1)]));
    let integers = Scratch::collect(par, weights.len(), integers);
    write(layer, &integers, &scales, &bias, all, out)
}

/// Packs integers whose steps the caller knows.
pub(super) fn pack_integers(layer: &Int8Layer, weight: &TensorRef<'_>, out: &mut [u8]) -> Result<(), OpError> {
    if weight.dtype != DType::I8 {
        return Err(unsupported_dtype(weight.dtype, "int8"));
    }
    let none = vec![0.0; layer.filters()];
    write(layer, elements(weight)?, &none, &none, [0.0; 2], out)
}

fn write(
    layer: &Int8Layer,
    integers: &[i8],
    scales: &[f32],
    bias: &[f32],
    range: [f32; 2],
    out: &mut [u8],
) -> Result<(), OpError> {
    let [weights, numbers, _] = parts(layer)?;
    let len = layer.packed_len()?;
    layer.pack(integers, out.get_mut(..len).ok_or_else(wrong_arity)?);
    for (start, values) in [(weights, scales), (weights + numbers, bias), (weights + 2 * numbers, &range)] {
        scratch::<f32>(out.get_mut(start..).ok_or_else(wrong_arity)?, values.len())?.copy_from_slice(values);
    }
    Ok(())
}
