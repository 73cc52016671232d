//! The end of a product of bytes: what becomes of its sums.

use super::function::{Function, apply_each};
use super::tile::{COLUMNS, PANEL, Sums};
use super::{RoundTo, round_even};
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

    /// Returns the results as limited numbers, if they are bytes and no others.
    fn limited(&self) -> Option<LimitedSums<'_>> {
        None
    }
}

/// Results that are `(sum + bias) * factor`, perhaps limited and with an addend, then limited and
/// rounded half to even. No result is NaN.
#[derive(Clone, Copy)]
pub struct LimitedSums<'a> {
    /// The bias of each column.
    pub bias: &'a [f32],
    /// The factor of each column.
    pub factor: &'a [f32],
    /// The addend, and the least and the largest number that it is added to.
    pub addend: Option<(AddedBytes, [f32; 2])>,
    /// The least and the largest result, which a byte holds.
    pub limits: [f32; 2],
    /// Biases and factors.
    scales: Scales,
}

/// Biases and factors of all columns, which are finite.
#[derive(Clone, Copy, Debug)]
struct Scales {
    /// The largest magnitudes of biases and factors.
    most: [f32; 2],
    /// Whether all biases are integers.
    whole: bool,
    /// Whether no factor is negative.
    rising: bool,
}

impl Scales {
    /// Describes biases and factors; `None` if one is not finite.
    fn of(bias: &[f32], factor: &[f32]) -> Option<Scales> {
        let finite = all(bias, f32::is_finite) && all(factor, f32::is_finite);
        finite.then(|| Scales {
            most: [bias, factor].map(largest),
            // No other number is its own one where `round_even` does not round.
            whole: all(bias, |v| round_even(v) == v),
            rising: all(factor, |v| v >= 0.0),
        })
    }
}

/// The largest magnitude. Those of floats have the order of their bits, of which the maximum is compiled
/// for vectors; that of floats is not.
fn largest(values: &[f32]) -> f32 {
    f32::from_bits(values.iter().fold(0, |most, v| most.max(v.abs().to_bits())))
}

/// Whether all values are of a kind. None is skipped, so that the loop is compiled for vectors.
fn all(values: &[f32], is: impl Fn(f32) -> bool) -> bool {
    values.iter().fold(true, |all, v| all & is(*v))
}

/// Ways to make numbers of sums in registers. All give the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversion {
    /// Adds the bias to the number of the sum.
    Bias,
    /// Sums begin with the bias, an integer. No number on the way is rounded.
    WholeBias,
    /// Sums begin with the bias and with the bits of 2^23. Read as a float, such a sum is 2^23 more
    /// than it counts. A fused multiplication and addition makes the result of it, rounded once.
    /// Results below zero are inexact, but stay below zero, and limits cut them off.
    Bits,
}

#[cfg(target_arch = "x86_64")]
impl Conversion {
    /// The bits of 2^23 as a float, of which the last bit counts 1.
    pub const TWO_POW_23: i32 = 0x4b00_0000;
}

impl LimitedSums<'_> {
    /// The largest magnitude of the sum of this number of products and a bias.
    fn most_sum(&self, products: usize) -> f32 {
        const MOST_PRODUCT: f32 = 255.0 * 128.0;
        products as f32 * MOST_PRODUCT + self.scales.most[0]
    }

    /// Whether 32 bits hold the results of this number of products before they are limited.
    pub(super) fn fit(&self, products: usize) -> bool {
        const MOST: f32 = (1u32 << 30) as f32;
        let fits = |(added, [low, high]): (AddedBytes, [f32; 2])| {
            255.0 * added.factor.abs() < MOST && low < MOST && high > -MOST
        };
        self.most_sum(products) * self.scales.most[1] < MOST && self.addend.is_none_or(fits)
    }

    /// The shortest way from sums of this number of products to numbers.
    pub(super) fn conversion(&self, products: usize) -> Conversion {
        let most = self.most_sum(products);
        let negative = self.limits[0] < 0.0 || self.addend.is_some();
        if !self.scales.whole || most >= (1 << 24) as f32 {
            Conversion::Bias
        } else if negative || !self.scales.rising || most >= (1 << 23) as f32 {
            Conversion::WholeBias
        } else {
            Conversion::Bits
        }
    }
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

/// An array of bytes that is added to results.
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
    scales: Option<Scales>,
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
        let scales = Scales::of(&bias, &factor);
        let (bias, factor) = (padded(bias), padded(factor));
        ScaledSums { bias, factor, scales, functions: [None; 2], unit: 1.0, addend: None }
    }
}

/// Values of columns, and as many after the last one as a block may have.
fn padded<T: Default>(mut values: Vec<T>) -> Vec<T> {
    values.resize_with(values.len() + PANEL, T::default);
    values
}

impl<T: RoundTo> Epilogue<T> for ScaledSums {
    fn finish(&self, block: &SumsBlock<'_>, out: &mut [[T; COLUMNS]]) {
        #[cfg(target_arch = "x86_64")]
        if let Some(signed) = T::SIGNED_BYTE {
            use crate::vectorize::Width;
            match Width::widest() {
                // SAFETY: `widest` found AVX-512.
                Width::Avx512 => unsafe {
                    return super::x86::finish_bytes(self, block, signed, bytemuck::cast_slice_mut(out));
                },
                // SAFETY: `widest` found AVX2 and FMA.
                Width::Avx2 => unsafe {
                    return super::x86::finish_bytes_avx2(self, block, signed, bytemuck::cast_slice_mut(out));
                },
                Width::Baseline => {}
            }
        }
        scale(self, block, out);
    }

    fn limited(&self) -> Option<LimitedSums<'_>> {
        let byte = if T::SIGNED_BYTE? { [-128.0, 127.0] } else { [0.0, 255.0] };
        let of_function = |function| match function {
            None => Some(ANY),
            Some(Function::Relu) => Some([0.0, f32::INFINITY]),
            Some(Function::Clip(low, high)) => {
                Some([low * self.unit, high * self.unit]).filter(|limits| !limits.iter().any(|limit| limit.is_nan()))
            }
            _ => None,
        };
        let [before, after] = [of_function(self.functions[0])?, of_function(self.functions[1])?];
        // Limits of limited numbers are limits.
        let limited = |numbers: [f32; 2], [low, high]: [f32; 2]| numbers.map(|v| v.max(low).min(high));
        let most = self.addend.map_or(before, |added| [f32::NEG_INFINITY, added.most]);
        let limits = limited(limited(most, after), byte);
        let scales = self.scales.filter(|_| self.addend.is_none_or(|added| added.factor.is_finite()))?;
        let sound = |[low, high]: [f32; 2]| low <= high;
        (sound(before) && sound(limits)).then_some(LimitedSums {
            bias: &self.bias,
            factor: &self.factor,
            addend: self.addend.map(|added| (added, before)),
            limits,
            scales,
        })
    }
}

/// All numbers.
pub(super) const ANY: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];

impl ScaledSums {
    /// The bias and the factor of the columns of a block.
    pub(super) fn of_columns(&self, block: &SumsBlock<'_>) -> [&[f32]; 2] {
        [&self.bias, &self.factor].map(|values| &values[block.first..][..block.columns])
    }
}

vectorized! {
    fn scale[T: RoundTo](x: &ScaledSums, block: &SumsBlock<'_>, out: &mut [[T; COLUMNS]]) {
        let [bias, factor] = x.of_columns(block);
        let mut values = [0f32; COLUMNS];
        let values = &mut values[..block.columns];
        for (row, (sums, out)) in block.sums.iter().zip(out).enumerate() {
            for (((v, sum), bias), factor) in values.iter_mut().zip(sums).zip(bias).zip(factor) {
                *v = (*sum as f32 + bias) * factor;
            }
            if let Some(function) = x.functions[0] {
                apply_each(function, x.unit, values);
            }
            if let Some(added) = x.addend {
                add_bytes(added, values, &block.addend[row]);
            }
            if let Some(function) = x.functions[1] {
                apply_each(function, x.unit, values);
            }
            for (v, out) in values.iter().zip(out) {
                *out = T::round_to(*v);
            }
        }
    }
}

/// Rounds each sum once, as MXNet does.
#[inline(always)]
fn add_bytes(added: AddedBytes, values: &mut [f32], bytes: &[u8; COLUMNS]) {
    let sum = |v: f32, byte: f32| byte.mul_add(added.factor, v).min(added.most);
    if added.signed {
        values.iter_mut().zip(bytes).for_each(|(v, byte)| *v = sum(*v, f32::from(*byte as i8)));
    } else {
        values.iter_mut().zip(bytes).for_each(|(v, byte)| *v = sum(*v, f32::from(*byte)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectorize::Width;

    /// Results of a block as the definition has them.
    fn expected<T: RoundTo>(x: &ScaledSums, block: &SumsBlock<'_>) -> Vec<T> {
        let of = |row: usize, column: usize| {
            let at = block.first + column;
            let mut v = (block.sums[row][column] as f32 + x.bias[at]) * x.factor[at];
            v = x.functions[0].map_or(v, |f| f.apply(v, x.unit));
            if let Some(added) = x.addend {
                let byte = block.addend[row][column];
                let byte = if added.signed { f32::from(byte as i8) } else { f32::from(byte) };
                v = byte.mul_add(added.factor, v).min(added.most);
            }
            T::round_to(x.functions[1].map_or(v, |f| f.apply(v, x.unit)))
        };
        (0..block.sums.len()).flat_map(|row| (0..block.columns).map(move |c| of(row, c))).collect()
    }

    fn check<T: RoundTo + PartialEq + std::fmt::Debug>(x: &ScaledSums, block: &SumsBlock<'_>) {
        let want = expected::<T>(x, block);
        for width in Width::all() {
            let mut out = vec![[T::round_to(1.0); COLUMNS]; block.sums.len()];
            width.limit(|| x.finish(block, &mut out));
            let got: Vec<T> = out.iter().flat_map(|row| row[..block.columns].to_vec()).collect();
            assert_eq!(got, want, "{width:?} {:?} {:?}", x.functions, x.addend);
        }
    }

    #[test]
    fn results_are_those_of_the_definition_for_every_function_type_and_width_of_vectors() {
        let sums: Vec<Sums> =
            (0..7).map(|r| std::array::from_fn(|c| (r * 64 + c as i32) * 977 % 4001 - 2000)).collect();
        let addend: Vec<[u8; COLUMNS]> = (0..7).map(|r| std::array::from_fn(|c| (r * 91 + c * 37) as u8)).collect();
        let bias = (0..150).map(|i| (i * 13 % 90) as f32 - 45.0).collect();
        // Exact halves, numbers out of range, and what is none.
        let mut factor: Vec<f32> = (0..150).map(|i| [0.5, 0.25, 0.03, 1e30, 0.001][i % 5]).collect();
        (factor[11], factor[100]) = (f32::NAN, f32::INFINITY);
        let mut x = ScaledSums::new(bias, factor);
        x.unit = 12.5;
        let all = [
            None,
            Some(Function::Relu),
            Some(Function::Clip(0.0, 6.0)),
            Some(Function::Leaky(0.1)),
            Some(Function::Tanh),
        ];
        for (first, second) in all.into_iter().flat_map(|first| all.map(|second| (first, second))) {
            for added in [None, Some((true, 0.37, 127.0)), Some((false, 1.5, f32::INFINITY))] {
                x.functions = [first, second];
                x.addend = added.map(|(signed, factor, most)| AddedBytes { signed, factor, most });
                let addend = if added.is_some() { &addend[..] } else { &[] };
                for (first, columns) in [(0, 64), (96, 16), (64, 48)] {
                    let block = SumsBlock { first, columns, sums: &sums, addend };
                    check::<u8>(&x, &block);
                    check::<i8>(&x, &block);
                    check::<i32>(&x, &block);
                }
            }
        }
    }

    #[test]
    fn results_that_32_bits_do_not_hold_before_they_are_limited_are_known() {
        let mut x = ScaledSums::new(vec![0.0; 64], vec![1.0; 64]);
        let fit = |x: &ScaledSums, products| Epilogue::<u8>::limited(x).expect("numbers with limits").fit(products);
        assert!(fit(&x, 9) && !fit(&x, 1 << 16));
        x.addend = Some(AddedBytes { signed: false, factor: 1.0, most: f32::INFINITY });
        assert!(fit(&x, 9));
        for (low, high, expected) in [(-5.0, 5.0, true), (1e20, 2e20, false), (-2e20, -1e20, false)] {
            x.functions[0] = Some(Function::Clip(low, high));
            assert_eq!(fit(&x, 9), expected, "{low} {high}");
        }
        x.functions[0] = None;
        x.addend = Some(AddedBytes { signed: false, factor: 1e9, most: f32::INFINITY });
        assert!(!fit(&x, 9));
    }
}
