//! Compiling one piece of portable code for several vector widths and choosing at run time.
//!
//! The code inside stays plain Rust: no operation is contracted or reordered, so every width gives the same bits.

/// How wide the vectors are that a loop was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Width {
    /// What every processor of the target has.
    Baseline,
    /// AVX2 with FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Width {
    /// The widest this processor runs.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn widest() -> Width {
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

    /// The widest this processor runs.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn widest() -> Width {
        Width::Baseline
    }

    /// Every width this processor runs, narrowest first.
    #[cfg(test)]
    pub(crate) fn all() -> Vec<Width> {
        #[cfg(target_arch = "x86_64")]
        let known = [Width::Baseline, Width::Avx2, Width::Avx512];
        #[cfg(not(target_arch = "x86_64"))]
        let known = [Width::Baseline];
        known.into_iter().filter(|&w| w <= Width::widest()).collect()
    }
}

/// A loop to compile for several widths; `run` must be `#[inline(always)]` for that to have an effect.
pub(crate) trait Loop {
    /// Runs the loop.
    fn run(self);
}

/// Runs `f` compiled for the widest vectors of this processor.
#[inline]
pub(crate) fn vectorize(f: impl Loop) {
    vectorize_for(Width::widest(), f)
}

/// Runs `f` compiled for `width`, or for the widest this processor has where that is less.
pub(crate) fn vectorize_for(width: Width, f: impl Loop) {
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
        match width.min(Width::widest()) {
            Width::Baseline => f.run(),
            // SAFETY: `widest` found AVX2, FMA and F16C; every processor with AVX2 and FMA has BMI1 and BMI2.
            Width::Avx2 => unsafe { avx2(f) },
            // SAFETY: `widest` found AVX-512 F, BW, DQ and VL besides those.
            Width::Avx512 => unsafe { avx512(f) },
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = width;
        f.run()
    }
}

/// Defines a function whose body is compiled for every width and that runs the widest; generic parameters with one bound each go into square brackets, and so do the bounds of a where clause.
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
                    // SAFETY: `widest` found AVX2, FMA and F16C; every processor with AVX2 and FMA has BMI1 and BMI2.
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
