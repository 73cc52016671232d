//! Half precision to single precision and back, eight at a time where the processor has F16C. The
//! conversions of slices in the crate `half` take each eight through a function and the stack.

#[cfg(any(target_arch = "x86_64", test))]
use crate::vectorize::Width;
use half::f16;

/// Every value in single precision.
pub(crate) fn widen(x: &[f16], out: &mut [f32]) {
    assert_eq!(x.len(), out.len(), "as many values come out as go in");
    #[cfg(target_arch = "x86_64")]
    if Width::widest() >= Width::Avx2 {
        // SAFETY: `widest` found F16C and AVX2.
        return unsafe { f16c::widen(x, out) };
    }
    out.iter_mut().zip(x).for_each(|(out, v)| *out = v.to_f32());
}

/// Every value rounded to half precision.
pub(crate) fn narrow(x: &[f32], out: &mut [f16]) {
    assert_eq!(x.len(), out.len(), "as many values come out as go in");
    #[cfg(target_arch = "x86_64")]
    if Width::widest() >= Width::Avx2 {
        // SAFETY: `widest` found F16C and AVX2.
        return unsafe { f16c::narrow(x, out) };
    }
    out.iter_mut().zip(x).for_each(|(out, v)| *out = f16::from_f32(*v));
}

#[cfg(target_arch = "x86_64")]
mod f16c {
    use half::f16;
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn widen(x: &[f16], out: &mut [f32]) {
        let ((x, x_rest), (out, rest)) = (x.as_chunks::<8>(), out.as_chunks_mut::<8>());
        x.iter().zip(out).for_each(|(x, out)| eight_wide(x, out));
        if !rest.is_empty() {
            let (mut halves, mut wide) = ([f16::ZERO; 8], [0.0; 8]);
            halves[..x_rest.len()].copy_from_slice(x_rest);
            eight_wide(&halves, &mut wide);
            rest.copy_from_slice(&wide[..rest.len()]);
        }
    }

    #[target_feature(enable = "avx,f16c")]
    pub(super) fn narrow(x: &[f32], out: &mut [f16]) {
        let ((x, x_rest), (out, rest)) = (x.as_chunks::<8>(), out.as_chunks_mut::<8>());
        x.iter().zip(out).for_each(|(x, out)| eight_narrow(x, out));
        if !rest.is_empty() {
            let (mut wide, mut halves) = ([0.0; 8], [f16::ZERO; 8]);
            wide[..x_rest.len()].copy_from_slice(x_rest);
            eight_narrow(&wide, &mut halves);
            rest.copy_from_slice(&halves[..rest.len()]);
        }
    }

    #[target_feature(enable = "avx,f16c")]
    #[inline]
    fn eight_wide(x: &[f16; 8], out: &mut [f32; 8]) {
        // SAFETY: eight halves are 128 bits, eight numbers 256.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr(), _mm256_cvtph_ps(_mm_loadu_si128(x.as_ptr().cast()))) }
    }

    #[target_feature(enable = "avx,f16c")]
    #[inline]
    fn eight_narrow(x: &[f32; 8], out: &mut [f16; 8]) {
        // SAFETY: eight halves are 128 bits, eight numbers 256.
        unsafe {
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(_mm256_loadu_ps(x.as_ptr()));
            _mm_storeu_si128(out.as_mut_ptr().cast(), halves);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_widens_and_narrows_to_itself_at_every_width_and_length() {
        let all: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
        for width in Width::all() {
            for len in [all.len(), 1, 3, 7, 8, 9, 12, 100] {
                let x = &all[all.len() - len..];
                let (mut wide, mut back) = (vec![0.0; len], vec![f16::ZERO; len]);
                width.limit(|| (widen(x, &mut wide), narrow(&wide, &mut back)));
                for ((x, wide), back) in x.iter().zip(wide).zip(back) {
                    assert!(wide == x.to_f32() || (wide.is_nan() && x.is_nan()), "{width:?} {len}: {x:?} {wide}");
                    assert!(
                        back.to_bits() == x.to_bits() || (back.is_nan() && x.is_nan()),
                        "{width:?} {len}: {x:?} {back:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn narrowing_rounds_to_the_nearest_at_every_width() {
        let x: Vec<f32> =
            (0..1000).map(|i| (i as f32 * 1.37 - 500.0) * 10f32.powi(i % 13 - 9)).chain([1e9, -65520.0]).collect();
        let want: Vec<u16> = x.iter().map(|v| f16::from_f32(*v).to_bits()).collect();
        for width in Width::all() {
            let mut out = vec![f16::ZERO; x.len()];
            width.limit(|| narrow(&x, &mut out));
            assert_eq!(out.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), want, "{width:?}");
        }
    }
}
