//! The end of a product of bytes: what becomes of its sums.

use super::tile::{COLUMNS, PANEL, Sums};
use super::{Function, RoundTo};
use crate::vectorize::vectorized;

/// Sums of neighbouring columns, row by row, and what is added to their results.
#[derive(Clone, Copy)]
pub struct SumsBlock<'a> {
    /// The first column.
    pub first: usize,
    /// Columns: a multiple of 16, of which the last may be after those of the product.
    pub columns: usize,
    /// Sums of each row.
    pub sums: &'a [Sums],
    /// Bytes at the same places of the addend; no rows without one.
    pub addend: &'a [[u8; COLUMNS]],
}

/// Makes results of sums.
pub trait Epilogue<T>: Sync {
    /// Writes the results of a block.
    fn finish(&self, block: &SumsBlock<'_>, out: &mut [[T; COLUMNS]]);
}

/// A function of the column and the sum, called for one sum after another.
#[derive(Clone, Copy, Debug)]
pub struct EachSum<F>(pub F);

impl<T, F: Fn(usize, i32) -> T + Sync> Epilogue<T> for EachSum<F> {
    fn finish(&self, block: &SumsBlock<'_>, out: &mut [[T; COLUMNS]]) {
        for (sums, out) in block.sums.iter().zip(out) {
            for (i, (sum, out)) in sums.iter().zip(out).enumerate().take(block.columns) {
                *out = self.0(block.first + i, *sum);
            }
        }
    }
}

/// Sums with an integer added to each column's, and not below the least.
#[derive(Clone, Debug)]
pub struct WholeSums {
    bias: Vec<i32>,
    least: i32,
}

impl WholeSums {
    /// The bias of each column, and the least result.
    pub fn new(bias: Vec<i32>, least: i32) -> WholeSums {
        WholeSums { bias: padded(bias), least }
    }
}

impl Epilogue<i32> for WholeSums {
    fn finish(&self, block: &SumsBlock<'_>, out: &mut [[i32; COLUMNS]]) {
        for (sums, out) in block.sums.iter().zip(out) {
            let bias = &self.bias[block.first..][..block.columns];
            for ((sum, bias), out) in sums.iter().zip(bias).zip(out) {
                *out = sum.wrapping_add(*bias).max(self.least);
            }
        }
    }
}

/// Where an array of bytes is added to results.
#[derive(Clone, Copy, Debug)]
pub struct AddedBytes {
    /// Whether the bytes are `i8`.
    pub signed: bool,
    /// Units of the results for one of them.
    pub factor: f32,
    /// The largest sum of both.
    pub most: f32,
}

/// Numbers, `(sum + bias) * factor` by column, with a function, an addend, another function, and
/// rounded to the type of the results.
#[derive(Clone, Debug)]
pub struct ScaledSums {
    bias: Vec<f32>,
    factor: Vec<f32>,
    /// Functions before and after the addend.
    pub functions: [Option<Function>; 2],
    /// Units of the results that are one for the functions.
    pub unit: f32,
    /// The addend.
    pub addend: Option<AddedBytes>,
}

impl ScaledSums {
    /// The bias and the factor of each column.
    pub fn new(bias: Vec<f32>, factor: Vec<f32>) -> ScaledSums {
        ScaledSums { bias: padded(bias), factor: padded(factor), functions: [None; 2], unit: 1.0, addend: None }
    }
}

/// Values of columns, and as many after the last one as a block may have.
fn padded<T: Default>(mut values: Vec<T>) -> Vec<T> {
    values.resize_with(values.len() + PANEL, T::default);
    values
}

impl<T: RoundTo> Epilogue<T> for ScaledSums {
    fn finish(&self, block: &SumsBlock<'_>, out: &mut [[T; COLUMNS]]) {
        scale(self, block, out);
    }
}

vectorized! {
    fn scale[T: RoundTo](x: &ScaledSums, block: &SumsBlock<'_>, out: &mut [[T; COLUMNS]]) {
        let SumsBlock { first, columns, sums, addend } = *block;
        let (bias, factor) = (&x.bias[first..][..columns], &x.factor[first..][..columns]);
        let mut values = [0f32; COLUMNS];
        let values = &mut values[..columns];
        for (row, (sums, out)) in sums.iter().zip(out).enumerate() {
            for (((v, sum), bias), factor) in values.iter_mut().zip(sums).zip(bias).zip(factor) {
                *v = (*sum as f32 + bias) * factor;
            }
            apply_all(x.functions[0], x.unit, values);
            if let Some(added) = x.addend {
                add_bytes(added, values, &addend[row]);
            }
            apply_all(x.functions[1], x.unit, values);
            for (v, out) in values.iter().zip(out) {
                *out = T::round_to(*v);
            }
        }
    }
}

#[inline(always)]
fn apply_all(function: Option<Function>, unit: f32, values: &mut [f32]) {
    match function {
        None => {}
        // What most layers have is compiled for vectors.
        Some(Function::Relu) => values.iter_mut().for_each(|v| *v = v.max(0.0)),
        Some(function) => values.iter_mut().for_each(|v| *v = function.apply(*v, unit)),
    }
}

/// Rounds each sum once, as MXNet's fused multiply-add: the product is exact in double precision.
#[inline(always)]
fn add_bytes(added: AddedBytes, values: &mut [f32], bytes: &[u8; COLUMNS]) {
    let factor = f64::from(added.factor);
    let sum = |v: f32, byte: i32| ((f64::from(v) + f64::from(byte) * factor) as f32).min(added.most);
    if added.signed {
        values.iter_mut().zip(bytes).for_each(|(v, byte)| *v = sum(*v, i32::from(*byte as i8)));
    } else {
        values.iter_mut().zip(bytes).for_each(|(v, byte)| *v = sum(*v, i32::from(*byte)));
    }
}
