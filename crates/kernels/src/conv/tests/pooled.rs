//! Convolutions followed by a pooling, compared with the two one after the other.

use crate::activation::Activation;
use crate::blocked::{
    BLOCK, Blocked, BlockedMut, BlockedShape, Halo, Pool2dParams, PoolKind, from_blocked, pool, to_blocked,
};
use crate::conv::tests::method;
use crate::conv::*;
use crate::isa::Isa;
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads, Uneven, assert_close, random};
use proptest::prelude::*;

/// A convolution, what pools it, and data for both.
struct PooledCase {
    conv: ConvKernel,
    kind: PoolKind,
    windows: Pool2dParams,
    /// Rows and columns of windows.
    out: [usize; 2],
    x: Vec<f32>,
    packed: Vec<f32>,
    bias: Vec<f32>,
}

impl PooledCase {
    /// None where the method does not compute such a convolution, or a window does not fit.
    fn new(
        params: Conv2dParams,
        shape: [usize; 4],
        isa: Isa,
        method: Method,
        pooling: (PoolKind, Pool2dParams),
    ) -> Option<PooledCase> {
        let isa = isa.or_best();
        let signature = ConvSignature {
            isa,
            units: crate::vector_units::VectorUnits::detect(isa),
            cache: crate::cache_class::CacheClass::detect(),
            precision: Precision::Single,
            params,
            shape,
        };
        let conv = ConvKernel::of(&signature, method, false).filter(|conv| conv.method() == method)?;
        let (kind, windows) = pooling;
        let size = [conv.output_shape().h, conv.output_shape().w];
        let count =
            |i: usize| Some((size[i] + 2 * windows.pad[i]).checked_sub(windows.kernel[i])? / windows.stride[i] + 1);
        let xs = conv.input_shape();
        let mut x = vec![f32::NAN; xs.len()];
        let image = random(shape.iter().product(), 1);
        to_blocked(isa, &image, &mut BlockedMut::new(xs, &mut x), &Serial);
        let mut packed = vec![0.0; conv.packed_len()];
        conv.pack(&random(params.weight_len(), 2), &mut packed);
        let bias = random(params.out_channels, 3);
        Some(PooledCase { out: [count(0)?, count(1)?], conv, kind, windows, x, packed, bias })
    }

    fn epilogue(&self) -> ConvEpilogue<'_> {
        ConvEpilogue { bias: Some(&self.bias), residual: Residual::None, activation: Activation::Relu }
    }

    fn input(&self) -> Blocked<'_> {
        Blocked::new(self.conv.input_shape(), &self.x)
    }

    fn output(&self, halo: Halo) -> BlockedShape {
        let whole = self.conv.output_shape();
        BlockedShape::new(whole.n, whole.c, self.out[0], self.out[1], halo)
    }

    /// NCHW values.
    fn plain(&self, shape: BlockedShape, y: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; shape.n * shape.c * shape.h * shape.w];
        from_blocked(Isa::Portable, Blocked::new(shape, y), &mut out, &Serial);
        out
    }

    fn one_after_the_other(&self) -> Vec<f32> {
        let shape = self.conv.output_shape();
        let mut whole = vec![f32::NAN; shape.len()];
        let mut scratch = vec![0.0; self.conv.scratch_len()];
        let mut y = BlockedMut::new(shape, &mut whole);
        self.conv.run(self.input(), &self.packed, self.epilogue(), &mut y, &mut scratch, &Serial);
        let pooled = self.output(Halo::default());
        let mut out = vec![f32::NAN; pooled.len()];
        let mut y = BlockedMut::new(pooled, &mut out);
        pool(self.conv.isa(), self.kind, self.windows, Blocked::new(shape, &whole), &mut y, &Serial);
        self.plain(pooled, &out)
    }

    /// The results in bands of up to `most` bytes; none if they would have to be larger. The halo
    /// is zero.
    fn together(&self, most: usize, par: &dyn Par) -> Option<Vec<f32>> {
        let kernel = PooledKernel::with(&self.conv, self.kind, self.windows, self.out, most)?;
        let shape = self.output(Halo { top: 1, left: 2, bottom: 0, right: 1 });
        let mut out = vec![f32::NAN; shape.len()];
        kernel.run(self.input(), &self.packed, self.epilogue(), &mut BlockedMut::new(shape, &mut out), par);
        let halo = out
            .chunks_exact(shape.row_stride())
            .flat_map(|row| row[..2 * BLOCK].iter().chain(&row[row.len() - BLOCK..]));
        assert!(halo.chain(&out[..shape.row_stride()]).all(|v| *v == 0.0), "halo of {}", kernel.name());
        Some(self.plain(shape, &out))
    }

    /// Whether there were bands at all.
    fn check(&self) -> bool {
        // Sums of few tiles are made in another order than those of many.
        let want: Vec<f64> = self.one_after_the_other().into_iter().map(f64::from).collect();
        let whole = self.conv.output_shape().image_len() * size_of::<f32>();
        let mut seen = false;
        for most in [whole / 4, whole / 2, 2 * whole] {
            let Some(got) = self.together(most, &Serial) else { continue };
            assert_close(&got, &want, 1e-5);
            for par in [&Reverse as &dyn Par, &Threads(3), &Uneven(2), &Uneven(3)] {
                assert_eq!(
                    self.together(most, par).as_ref(),
                    Some(&got),
                    "{} does not depend on threads",
                    self.conv.name()
                );
            }
            seen = true;
        }
        seen
    }
}

fn kinds() -> impl Strategy<Value = PoolKind> {
    let mean = |count_pad| PoolKind::Average { count_pad };
    prop_oneof![Just(PoolKind::Max), Just(PoolKind::Sum), any::<bool>().prop_map(mean)]
}

fn pooling() -> impl Strategy<Value = (PoolKind, Pool2dParams)> {
    let windows = ([1usize..5, 1usize..4], [1usize..4, 1usize..4], [0usize..2, 0usize..2]);
    let windows = windows.prop_map(|(kernel, stride, pad)| Pool2dParams { kernel, stride, pad });
    (kinds(), windows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_pooled_convolution_is_both_steps(
        inputs in 1usize..40, outputs in 1usize..40, n in 1usize..3, h in 8usize..40, w in 8usize..40,
        pad in 0usize..2, pooling in pooling(),
    ) {
        let params = Conv2dParams { pad: [pad; 2], ..Conv2dParams::square(inputs, outputs, 3) };
        for isa in Isa::ALL {
            for method in [method("direct"), method("winograd-f2"), method("winograd-f4")] {
                if let Some(case) = PooledCase::new(params, [n, inputs, h, w], isa, method, pooling) {
                    case.check();
                }
            }
        }
    }

    #[test]
    fn a_pooled_convolution_of_another_filter_is_both_steps(
        inputs in 1usize..40, outputs in 1usize..40, n in 1usize..3, h in 8usize..40, w in 8usize..40,
        kernel in prop::sample::select(&[[5, 5], [1, 7], [7, 1], [3, 1]][..]), pooling in pooling(),
    ) {
        let params = Conv2dParams { kernel, pad: [kernel[0] / 2, 1], ..Conv2dParams::square(inputs, outputs, 1) };
        for isa in Isa::ALL {
            if let Some(case) = PooledCase::new(params, [n, inputs, h, w], isa, method("winograd-taps"), pooling) {
                case.check();
            }
        }
    }

    #[test]
    fn a_pooled_stem_is_both_steps(
        inputs in 1usize..5, outputs in 1usize..40, h in 20usize..80, w in 20usize..50, pooling in pooling(),
    ) {
        let params = Conv2dParams { pad: [3, 3], stride: [2, 2], ..Conv2dParams::square(inputs, outputs, 7) };
        for isa in Isa::ALL {
            for method in [method("direct"), method("winograd-polyphase")] {
                if let Some(case) = PooledCase::new(params, [1, inputs, h, w], isa, method, pooling) {
                    case.check();
                }
            }
        }
    }
}

const WINDOWS: Pool2dParams = Pool2dParams { kernel: [3, 3], stride: [2, 2], pad: [1, 1] };

#[test]
fn every_method_for_large_maps_has_bands() {
    let stem = Conv2dParams { pad: [3, 3], stride: [2, 2], ..Conv2dParams::square(3, 32, 7) };
    let layer = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(16, 32, 3) };
    let wide = Conv2dParams { pad: [2, 2], ..Conv2dParams::square(16, 32, 5) };
    let first = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(3, 32, 3) };
    for (params, shape, method) in [
        (stem, [2, 3, 80, 80], method("winograd-polyphase")),
        (first, [2, 3, 56, 56], method("direct")),
        (layer, [2, 16, 56, 56], method("winograd-f4")),
        (wide, [2, 16, 56, 56], method("winograd-taps")),
    ] {
        let case =
            PooledCase::new(params, shape, Isa::Avx512, method, (PoolKind::Max, WINDOWS)).expect("it can compute this");
        assert!(case.check(), "{method:?}");
    }
}

#[test]
fn what_does_not_pay_stays_two_steps() {
    let apart = Pool2dParams { kernel: [2, 2], stride: [2, 2], pad: [0, 0] };
    let pooled = |inputs, outputs, size, method, windows| {
        let params = Conv2dParams { pad: [1, 1], ..Conv2dParams::square(inputs, outputs, 3) };
        let case = PooledCase::new(params, [1, inputs, size, size], Isa::Avx2, method, (PoolKind::Max, windows));
        let case = case.expect("it can compute this");
        PooledKernel::new(&case.conv, case.kind, case.windows, case.out).is_some()
    };
    assert!(pooled(3, 64, 112, method("direct"), apart));
    assert!(pooled(64, 128, 112, method("winograd-f4"), apart));
    assert!(pooled(64, 128, 112, method("winograd-f4"), WINDOWS));
    assert!(!pooled(3, 64, 112, method("direct"), WINDOWS), "windows share rows");
    assert!(!pooled(3, 64, 56, method("direct"), apart), "the output is small");
    assert!(!pooled(64, 64, 112, method("direct"), apart), "sums take longer than writing them");
    assert!(!pooled(512, 512, 28, method("winograd-f4"), apart), "38 MB of weights for every band");
}
