//! Compiling one piece of portable code for several vector widths and choosing at run time.
//!
//! The code inside stays plain Rust: no operation is contracted or reordered, so every width gives
//! the same bits.

use crate::isa::Isa;

/// How wide the vectors are that a loop was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Width {
    /// The instructions that every processor of the target has.
    Baseline,
    /// AVX2 with FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Width {
    /// The widest this processor runs; tests can ask for less.
    #[inline]
    pub(crate) fn widest() -> Width {
        #[cfg(test)]
        if let Some(limit) = LIMIT.get() {
            return limit.min(Width::detect());
        }
        Width::detect()
    }

    #[cfg(target_arch = "x86_64")]
    fn detect() -> Width {
        // The standard library caches what it detects.
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        if !avx2 || !is_x86_feature_detected!("f16c") {
            return Width::Baseline;
        }
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        if avx512 { Width::Avx512 } else { Width::Avx2 }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn detect() -> Width {
        Width::Baseline
    }

    /// The instruction set that kernels written for vectors have for it.
    pub(crate) fn isa(self) -> Isa {
        match self {
            Width::Baseline if cfg!(target_arch = "x86_64") => Isa::Portable,
            Width::Baseline => Isa::detect(),
            #[cfg(target_arch = "x86_64")]
            Width::Avx2 => Isa::Avx2,
            #[cfg(target_arch = "x86_64")]
            Width::Avx512 => Isa::Avx512,
        }
    }

    /// Every width this processor runs, narrowest first.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Width> {
        #[cfg(target_arch = "x86_64")]
        let known = [Width::Baseline, Width::Avx2, Width::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let known = [Width::Baseline];
        known.into_iter().filter(|&w| w <= Width::detect()).collect()
    }

    /// Runs `f` with loops of this thread compiled for no more than this width.
    #[cfg(test)]
    pub(crate) fn limit<R>(self, f: impl FnOnce() -> R) -> R {
        LIMIT.set(Some(self));
        let result = f();
        LIMIT.set(None);
        result
    }
}

#[cfg(test)]
thread_local! {
    static LIMIT: std::cell::Cell<Option<Width>> = const { std::cell::Cell::new(None) };
}

/// A loop to compile for several widths; `run` must be `#[inline(always)]` for that to have an
/// effect.
pub(crate) trait Loop {
    /// Runs the loop.
    fn run(self);
}

/// Runs `f` compiled for the widest vectors of this processor.
#[inline]
pub(crate) fn vectorize(f: impl Loop) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
        fn avx2(f: impl Loop) {
            f.run()
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
        fn avx512(f: impl Loop) {
            f.run()
        }
        match Width::widest() {
            Width::Baseline => f.run(),
            // SAFETY: `widest` found AVX2, FMA and F16C; every processor with AVX2 and FMA has BMI1
            // and BMI2.
            Width::Avx2 => unsafe { avx2(f) },
            // SAFETY: `widest` found AVX-512 F, BW, DQ and VL besides those.
            Width::Avx512 => unsafe { avx512(f) },
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    f.run()
}

/// Defines a function whose body is compiled for every width and that runs the widest; generic
/// parameters with one bound each go into square brackets, and so do the bounds of a where clause.
macro_rules! vectorized {
    ($(#[$meta:meta])* $vis:vis fn $name:ident[$($generic:ident: $bound:path),* $(,)?]($($arg:ident: $ty:ty),* $(,)?) $(where [$($bounds:tt)*])? $body:block) => {
        $(#[$meta])*
        $vis fn $name<$($generic: $bound),*>($($arg: $ty),*) $(where $($bounds)*)? {
            #[inline(always)]
            fn body<$($generic: $bound),*>($($arg: $ty),*) $(where $($bounds)*)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2")]
                fn avx2<$($generic: $bound),*>($($arg: $ty),*) $(where $($bounds)*)? {
                    body::<$($generic),*>($($arg),*)
                }
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2")]
                fn avx512<$($generic: $bound),*>($($arg: $ty),*) $(where $($bounds)*)? {
                    body::<$($generic),*>($($arg),*)
                }
                match $crate::vectorize::Width::widest() {
                    $crate::vectorize::Width::Baseline => body::<$($generic),*>($($arg),*),
                    // SAFETY: `widest` found AVX2, FMA and F16C; every processor with AVX2 and FMA
                    // has BMI1 and BMI2.
                    $crate::vectorize::Width::Avx2 => unsafe { avx2::<$($generic),*>($($arg),*) },
                    // SAFETY: `widest` found AVX-512 F, BW, DQ and VL besides those.
                    $crate::vectorize::Width::Avx512 => unsafe { avx512::<$($generic),*>($($arg),*) },
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            body::<$($generic),*>($($arg),*)
        }
    };
}
pub(crate) use vectorized;

#[cfg(test)]
mod tests {
    use super::Width;
    use crate::par::Serial;
    use crate::testing::random;
    use crate::{conv_plain, elementwise, gemm_plain, norm, pool, reduce, softmax};

    /// Runs `f` for every width of this processor and expects the same bits.
    #[track_caller]
    fn steady(name: &str, len: usize, f: impl Fn(&mut [f32])) {
        let run = |width: Width| {
            let mut out = vec![0f32; len];
            width.limit(|| f(&mut out));
            out.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
        };
        let expected = run(Width::Baseline);
        for width in Width::all() {
            assert!(run(width) == expected, "{name} on {width:?}");
        }
    }

    #[test]
    fn every_kernel_gives_the_same_bits_at_every_vector_width() {
        let (x, y) = (random(6000, 1), random(6000, 2));
        use elementwise::{Binary, Unary};
        for op in [Unary::Exp, Unary::Tanh, Unary::Gelu, Unary::Ln, Unary::Softrelu, Unary::Rsqrt, Unary::Relu] {
            steady("unary", 6000, |out| elementwise::unary(&Serial, op, &x, out));
        }
        let angles: Vec<f32> = x.iter().enumerate().map(|(i, x)| x * 1.01f32.powi(i as i32 / 2)).collect();
        for op in [Unary::Erfinv, Unary::Gamma, Unary::Cosh, Unary::Sinh, Unary::Round, Unary::Fix] {
            steady("functions in double precision and others", 6000, |out| elementwise::unary(&Serial, op, &x, out));
        }
        for op in [Unary::Sin, Unary::Cos] {
            steady("sines", 6000, |out| elementwise::unary(&Serial, op, &angles, out));
        }
        for op in [Binary::Add, Binary::Mul, Binary::Div, Binary::Prelu, Binary::Maximum, Binary::Lesser] {
            steady("binary", 6000, |out| elementwise::binary(&Serial, op, &x, &y, out));
        }
        for log in [false, true] {
            let params = softmax::SoftmaxParams { log, ..Default::default() };
            for shape in [[60, 100, 1], [3, 20, 100]] {
                steady("softmax", 6000, |out| softmax::softmax(&Serial, params, &x, shape, None, out));
            }
        }
        for op in [reduce::Reduction::Sum, reduce::Reduction::L2, reduce::Reduction::Max] {
            steady("rows", 6, |out| reduce::reduce(&Serial, op, &x, &[6, 1000], &[false, true], out));
            steady("columns", 1000, |out| reduce::reduce(&Serial, op, &x, &[6, 1000], &[true, false], out));
        }
        steady("layer_norm", 6000, |out| {
            norm::layer_norm(&Serial, &x, [6, 1000, 1], &y[..1000], &y[1000..2000], 1e-5, out);
        });
        for kind in [pool::PoolKind::Max, pool::PoolKind::Avg { count_include_pad: true }] {
            let params =
                pool::PoolParams { kind, kernel: &[3, 3], stride: &[2, 2], pad: &[1, 1], channels_last: false };
            steady("pool", 1500, |out| pool::pool(&Serial, params, &x, &[1, 6, 20, 50], out, &[1, 6, 10, 25]));
        }
        for kind in [pool::PoolKind::Max, pool::PoolKind::Avg { count_include_pad: true }] {
            let params =
                pool::PoolParams { kind, kernel: &[15, 20], stride: &[1, 1], pad: &[0, 0], channels_last: false };
            steady("global pool", 20, |out| pool::pool(&Serial, params, &x, &[1, 20, 15, 20], out, &[1, 20, 1, 1]));
        }
        steady("gemm", 2500, |out| {
            gemm_plain::gemm(&Serial, gemm_plain::Gemm::new(50, 50, 120), &x, &y, out);
        });
        let params =
            conv_plain::ConvParams { kernel: &[3, 3], stride: &[1, 1], pad: &[1, 1], dilate: &[1, 1], groups: 1 };
        steady("convolution", 4000, |out| {
            let weight = &y[..4 * 6 * 9];
            conv_plain::convolution(&Serial, params, &x, &[1, 6, 20, 50], weight, None, out, &[1, 4, 20, 50]);
        });
    }
}
