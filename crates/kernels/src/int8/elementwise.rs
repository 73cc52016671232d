//! Bytes made of numbers and numbers made of bytes, element by element.

use super::{RoundTo, Rows};
use crate::par::{Par, chunk_elems, par_chunks_mut};
use crate::vectorize::vectorized;

/// Elements that are widened together.
const SOME: usize = 256;

/// Rounds numbers times `scale`.
///
/// # Panics
/// If `from` is shorter than `to`.
pub fn quantize<T: RoundTo>(par: &dyn Par, from: &[f32], scale: f32, to: &mut [T]) {
    par_chunks_mut(par, to, chunk_elems::<f32>(), |index, to| {
        quantize_some(&from[index * chunk_elems::<f32>()..][..to.len()], scale, to);
    });
}

/// Rounds sums times `scale`.
///
/// # Panics
/// If `from` is shorter than `to`.
pub fn requantize<T: RoundTo>(par: &dyn Par, from: &[i32], scale: f32, to: &mut [T]) {
    par_chunks_mut(par, to, chunk_elems::<i32>(), |index, to| {
        requantize_some(&from[index * chunk_elems::<i32>()..][..to.len()], scale, to);
    });
}

/// Multiplies bytes by the size of a step.
///
/// # Panics
/// If `from` is shorter than `to`.
pub fn dequantize(par: &dyn Par, from: Rows<'_>, step: f32, to: &mut [f32]) {
    par_chunks_mut(par, to, chunk_elems::<f32>(), |index, to| {
        let from = Rows { bytes: &from.bytes[index * chunk_elems::<f32>()..][..to.len()], ..from };
        scale_bytes(from, step, to);
    });
}

/// An operand of [`add`].
#[derive(Clone, Copy)]
pub struct ScaledBytes<'a> {
    /// The bytes.
    pub rows: Rows<'a>,
    /// Units of the sum for one of them.
    pub factor: f32,
    /// Whether products with the factor become `i8` before they are added.
    pub rounded: bool,
}

/// Adds two arrays of bytes, each times its factor, and rounds the sums.
///
/// # Panics
/// If an operand is shorter than `to`.
pub fn add<T: RoundTo>(par: &dyn Par, operands: [ScaledBytes<'_>; 2], to: &mut [T]) {
    par_chunks_mut(par, to, chunk_elems::<f32>(), |index, to| {
        let first = index * chunk_elems::<f32>();
        for (i, to) in to.chunks_mut(SOME).enumerate() {
            let mut values = [[0f32; SOME]; 2];
            for (values, x) in values.iter_mut().zip(operands) {
                let bytes = &x.rows.bytes[first + i * SOME..][..to.len()];
                scale_bytes(Rows { bytes, ..x.rows }, x.factor, &mut values[..to.len()]);
                if x.rounded {
                    round_to_bytes(&mut values[..to.len()]);
                }
            }
            add_some(&values[0], &values[1], to);
        }
    });
}

vectorized! {
    fn quantize_some[T: RoundTo](from: &[f32], scale: f32, to: &mut [T]) {
        to.iter_mut().zip(from).for_each(|(to, v)| *to = T::round_to(v * scale));
    }
}

vectorized! {
    fn requantize_some[T: RoundTo](from: &[i32], scale: f32, to: &mut [T]) {
        to.iter_mut().zip(from).for_each(|(to, v)| *to = T::round_to(*v as f32 * scale));
    }
}

vectorized! {
    fn scale_bytes[](from: Rows<'_>, step: f32, to: &mut [f32]) {
        if from.signed {
            to.iter_mut().zip(from.bytes).for_each(|(to, byte)| *to = f32::from(*byte as i8) * step);
        } else {
            to.iter_mut().zip(from.bytes).for_each(|(to, byte)| *to = f32::from(*byte) * step);
        }
    }
}

vectorized! {
    fn round_to_bytes[](values: &mut [f32]) {
        values.iter_mut().for_each(|v| *v = f32::from(i8::round_to(*v)));
    }
}

vectorized! {
    fn add_some[T: RoundTo](a: &[f32], b: &[f32], to: &mut [T]) {
        to.iter_mut().zip(a).zip(b).for_each(|((to, a), b)| *to = T::round_to(a + b));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};
    use crate::vectorize::Width;

    #[test]
    fn every_element_is_rounded_by_itself_at_every_width_of_vectors() {
        for len in [0, 1, 255, 257, 20_000] {
            let numbers: Vec<f32> = (0..len).map(|i| (i as f32 - 9000.0) * 0.37).collect();
            let sums: Vec<i32> = numbers.iter().map(|v| (*v * 91.0) as i32).collect();
            let bytes: Vec<u8> = (0..len).map(|i| (i * 77 % 256) as u8).collect();
            let rows = |signed| Rows { bytes: &bytes, signed };
            let number = |i: usize, signed: bool| if signed { f32::from(bytes[i] as i8) } else { f32::from(bytes[i]) };
            for (width, par) in Width::all()
                .into_iter()
                .flat_map(|width| [&Serial as &dyn Par, &Reverse, &Threads(3)].map(|par| (width, par)))
            {
                width.limit(|| {
                    let mut out = vec![0i8; len];
                    quantize(par, &numbers, 0.1, &mut out);
                    assert!(out.iter().zip(&numbers).all(|(out, v)| *out == i8::round_to(v * 0.1)));
                    requantize(par, &sums, 0.01, &mut out);
                    assert!(out.iter().zip(&sums).all(|(out, v)| *out == i8::round_to(*v as f32 * 0.01)));
                    for signed in [false, true] {
                        let mut out = vec![0f32; len];
                        dequantize(par, rows(signed), 0.3, &mut out);
                        assert!(out.iter().enumerate().all(|(i, out)| *out == number(i, signed) * 0.3));
                        let operand = |signed, rounded| ScaledBytes { rows: rows(signed), factor: 0.6, rounded };
                        let mut out = vec![0u8; len];
                        add(par, [operand(signed, false), operand(false, true)], &mut out);
                        let sum = |i| number(i, signed) * 0.6 + f32::from(i8::round_to(number(i, false) * 0.6));
                        assert!(out.iter().enumerate().all(|(i, out)| *out == u8::round_to(sum(i))));
                    }
                });
            }
        }
    }
}
