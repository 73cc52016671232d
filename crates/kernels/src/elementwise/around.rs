//! Rounding to decimal places.

use super::BLOCK;
use crate::element::{Element, is_same};
use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_chunks_mut};
use crate::vectorize::vectorized;

/// `out[i]` is `x[i]` rounded to decimal places, of two equally near the even one, by as many steps of
/// a factor of 10; negative places are before the point. A number that has fewer places is unchanged.
pub fn around<T: Element>(par: &dyn Par, places: i32, x: &[T], out: &mut [T]) {
    check_len("the input", x.len(), out.len());
    let chunk = chunk_elems::<T>();
    par_chunks_mut(par, out, chunk, |i, out| {
        let x = &x[i * chunk..][..out.len()];
        if is_same::<T, f32>() {
            return around_f32(bytemuck::cast_slice(x), places, bytemuck::cast_slice_mut(out));
        }
        // Each step is rounded to the type, as in MXNet, but for whole numbers.
        let step = |v: f64| if T::FLOAT { T::from_f64(v).to_f64() } else { v };
        let shift = |x: f64, up: bool| (0..places.abs()).fold(x, |x, _| step(if up { x * 10.0 } else { x / 10.0 }));
        for (out, x) in out.iter_mut().zip(x) {
            let x = x.to_f64();
            let scaled = shift(x, places > 0);
            *out = T::from_f64(if scaled.is_finite() { shift(scaled.round_ties_even(), places < 0) } else { x });
        }
    });
}

vectorized! {
    fn around_f32[](x: &[f32], places: i32, out: &mut [f32]) {
        let mut scaled = [0.0; BLOCK];
        for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            let scaled = &mut scaled[..x.len()];
            scaled.copy_from_slice(x);
            (0..places.abs()).for_each(|_| step(scaled, places > 0));
            out.iter_mut().zip(&*scaled).for_each(|(out, v)| *out = v.round_ties_even());
            (0..places.abs()).for_each(|_| step(out, places < 0));
            for ((out, scaled), x) in out.iter_mut().zip(&*scaled).zip(x) {
                *out = if scaled.is_finite() { *out } else { *x };
            }
        }
    }
}

/// A step to the next decimal place.
#[inline(always)]
fn step(x: &mut [f32], up: bool) {
    if up { x.iter_mut().for_each(|v| *v *= 10.0) } else { x.iter_mut().for_each(|v| *v /= 10.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Threads, random};
    use crate::vectorize::Width;

    #[test]
    fn steps_in_single_precision_are_those_that_are_rounded_to_it() {
        let mut x: Vec<f32> =
            random(20_000, 3).iter().enumerate().map(|(i, v)| v * 1.01f32.powi(i as i32 / 4 - 2000)).collect();
        x.extend([0.5, 1.5, -2.5, 2.35, -0.04, f32::INFINITY, f32::MAX, f32::NAN]);
        for places in [0i32, 1, 3, -2, 40, -400] {
            let of_one = |x: f32| {
                let shift = |v: f32, up: bool| {
                    (0..places.abs())
                        .fold(v, |v, _| (if up { f64::from(v) * 10.0 } else { f64::from(v) / 10.0 }) as f32)
                };
                let scaled = shift(x, places > 0);
                if scaled.is_finite() { shift(scaled.round_ties_even(), places < 0) } else { x }
            };
            for width in Width::all() {
                let mut out = vec![0.0; x.len()];
                width.limit(|| around(&crate::par::Serial, places, &x, &mut out));
                for (x, out) in x.iter().zip(out) {
                    let expected = of_one(*x);
                    assert!(
                        out.to_bits() == expected.to_bits() || out.is_nan() && expected.is_nan(),
                        "{x} to {places} places: {out}, expected {expected}"
                    );
                }
            }
        }
        let mut out = [0; 4];
        around(&Threads(2), -1, &[14, 15, 25, -36], &mut out);
        assert_eq!(out, [10, 20, 20, -40]);
    }
}
