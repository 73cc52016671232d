//! Conversion between element types, with C's results on x86: floats truncate towards zero,
//! integers wrap when they narrow, half precision overflows to infinity, truth is "not zero".

use crate::element::{Bool, Element, c_i32, c_i64};
use crate::error::check_len;
use crate::par::{Par, chunk_elems, par_chunks_mut};
use crate::vectorize::vectorized;
use half::f16;

/// Converts to `D` as C does.
pub trait CastTo<D>: Element {
    /// Converts one value.
    fn cast(self) -> D;
    /// Converts as many values.
    #[inline(always)]
    fn cast_all(x: &[Self], out: &mut [D]) {
        out.iter_mut().zip(x).for_each(|(out, v)| *out = v.cast());
    }
}

macro_rules! casts {
    ($from:ty: $($to:ty = |$v:ident| $e:expr),* $(,)?) => {
        $(impl CastTo<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to {
                let $v = self;
                $e
            }
        })*
    };
}

macro_rules! float_casts {
    ($($from:ty),*) => {$(
        casts!($from:
            f32 = |v| v as f32, f64 = |v| v as f64,
            u8 = |v| c_i32(v as f64) as u8, i8 = |v| c_i32(v as f64) as i8,
            i32 = |v| c_i32(v as f64), i64 = |v| c_i64(v as f64), Bool = |v| Bool((v != 0.0) as u8));
    )*};
}
float_casts!(f32, f64);
casts!(f64: f16 = |v| f16::from_f32(v as f32));

impl CastTo<f16> for f32 {
    #[inline(always)]
    fn cast(self) -> f16 {
        f16::from_f32(self)
    }
    fn cast_all(x: &[f32], out: &mut [f16]) {
        f16::from_acc_all(x, out);
    }
}

impl CastTo<f32> for f16 {
    #[inline(always)]
    fn cast(self) -> f32 {
        self.to_f32()
    }
    fn cast_all(x: &[f16], out: &mut [f32]) {
        f16::acc_all(x, out);
    }
}

macro_rules! int_casts {
    ($($from:ty),*) => {$(
        casts!($from:
            f32 = |v| v as f32, f64 = |v| v as f64, f16 = |v| f16::from_f32(v as f32),
            u8 = |v| v as u8, i8 = |v| v as i8, i32 = |v| v as i32, i64 = |v| v as i64,
            Bool = |v| Bool((v != 0) as u8));
    )*};
}
int_casts!(u8, i8, i32, i64);

macro_rules! through {
    ($from:ty, |$v:ident| $inner:expr; $($to:ty),*) => {
        $(impl CastTo<$to> for $from {
            #[inline(always)]
            fn cast(self) -> $to {
                let $v = self;
                $inner.cast()
            }
        })*
    };
}
through!(f16, |v| v.to_f32(); f64, u8, i8, i32, i64, Bool);
through!(Bool, |v| (v.0 != 0) as u8; f32, f64, f16, u8, i8, i32, i64, Bool);
casts!(f16: f16 = |v| v);

vectorized! {
    pub(crate) fn cast_block[S: CastTo<D>, D: Element](x: &[S], out: &mut [D]) {
        S::cast_all(x, out);
    }
}

/// `out[i] = (D)x[i]`.
pub fn cast<S: CastTo<D>, D: Element>(par: &dyn Par, x: &[S], out: &mut [D]) {
    check_len("the input", x.len(), out.len());
    let chunk = chunk_elems::<D>().min(chunk_elems::<S>());
    par_chunks_mut(par, out, chunk, |i, out| cast_block(&x[i * chunk..][..out.len()], out));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;

    fn all<S: CastTo<D>, D: Element>(x: &[S]) -> Vec<D> {
        let mut out = vec![D::ZERO; x.len()];
        cast(&Serial, x, &mut out);
        out
    }

    #[test]
    fn floats_truncate_and_what_does_not_fit_is_what_x86_gives() {
        let x = [1.9f32, -1.9, 300.0, -1.0, 3e9, f32::NAN, -2147483648.0];
        assert_eq!(all::<_, i32>(&x), [1, -1, 300, -1, i32::MIN, i32::MIN, i32::MIN]);
        assert_eq!(all::<_, u8>(&x), [1, 255, 44, 255, 0, 0, 0]);
        assert_eq!(all::<_, i8>(&x), [1, -1, 44, -1, 0, 0, 0]);
        assert_eq!(all::<_, i64>(&x), [1, -1, 300, -1, 3_000_000_000, i64::MIN, -2147483648]);
        assert_eq!(all::<_, i64>(&[9.3e18f64, -1e30]), [i64::MIN, i64::MIN]);
        assert_eq!(all::<_, Bool>(&[0.0f32, -0.0, 0.1, f32::NAN]), [Bool(0), Bool(0), Bool(1), Bool(1)]);
    }

    #[test]
    fn integers_wrap_when_they_narrow() {
        assert_eq!(all::<_, i8>(&[200u8, 100]), [-56, 100]);
        assert_eq!(all::<_, u8>(&[-1i64, 256, 511]), [255, 0, 255]);
        assert_eq!(all::<_, i32>(&[1i64 << 32 | 5]), [5]);
        assert_eq!(all::<_, Bool>(&[256i32, 0]), [Bool(1), Bool(0)]);
    }

    #[test]
    fn half_precision_overflows_to_infinity() {
        assert_eq!(all::<_, f16>(&[70000.0f32, -1e30, 65504.0]), [f16::INFINITY, f16::NEG_INFINITY, f16::MAX]);
        assert_eq!(all::<_, f16>(&[100_000i32]), [f16::INFINITY]);
        assert_eq!(all::<_, i32>(&[f16::from_f32(-2.7)]), [-2]);
        assert_eq!(all::<_, f32>(&[Bool(1), Bool(7)]), [1.0, 1.0]);
    }

    #[test]
    fn long_arrays_convert_in_every_chunk() {
        let x: Vec<i32> = (0..100_003).collect();
        let wide: Vec<f64> = all(&x);
        assert_eq!(all::<_, i32>(&wide), x);
    }
}
