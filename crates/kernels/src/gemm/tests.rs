use super::*;
use crate::activation::Activation;
use crate::par::Serial;
use crate::testing::{Reverse, Threads};
use proptest::prelude::*;

/// Values that are far from round, repeatable from `seed`.
pub(crate) fn values(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
        })
        .collect()
}

/// The product in f64, and the largest sum of magnitudes (the scale of its rounding).
fn reference(m: usize, n: usize, k: usize, a: Matrix<'_>, b: Matrix<'_>, bias: Option<&[f32]>) -> (Vec<f64>, f64) {
    let at = |x: Matrix<'_>, i: usize, j: usize| f64::from(x.data[i * x.row_stride + j * x.col_stride]);
    let mut scale = 1e-30;
    let c = (0..m * n)
        .map(|ij| {
            let (i, j) = (ij / n, ij % n);
            let bias = bias.map_or(0.0, |b| f64::from(b[j]));
            scale = f64::max(scale, bias.abs() + (0..k).map(|l| (at(a, i, l) * at(b, l, j)).abs()).sum::<f64>());
            bias + (0..k).map(|l| at(a, i, l) * at(b, l, j)).sum::<f64>()
        })
        .collect();
    (c, scale)
}

fn activations() -> impl Strategy<Value = Activation> {
    prop_oneof![
        Just(Activation::None),
        Just(Activation::Relu),
        Just(Activation::Clip { lo: -0.5, hi: 1.5 }),
        Just(Activation::Leaky { slope: 0.25 })
    ]
}

/// A function of single elements.
fn halve(x: &mut [f32]) {
    x.iter_mut().for_each(|x| *x = 0.5 * *x - 1.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn a_product_equals_its_float64_reference_on_every_instruction_set(
        m in 0usize..70, n in 0usize..140, k in 0usize..300,
        [a_transposed, b_transposed]: [bool; 2], [with_bias, with_residual, with_function]: [bool; 3],
        pad in 0usize..3, activation in activations(), seed: u64,
    ) {
        let (a_data, b_data) = (values(seed, (m + pad) * (k + pad)), values(seed ^ 1, (k + pad) * (n + pad)));
        let a = if a_transposed { Matrix::rows(&a_data, m + pad).transposed() } else { Matrix::rows(&a_data, k + pad) };
        let b = if b_transposed { Matrix::rows(&b_data, k + pad).transposed() } else { Matrix::rows(&b_data, n + pad) };
        let bias = values(seed ^ 2, n);
        let bias = with_bias.then_some(&bias[..]);
        let residual = values(seed ^ 3, m * n);
        let residual = with_residual.then_some(&residual[..]);
        let function = with_function.then_some(ElementFunction(&halve));
        let epilogue = Epilogue { bias, residual, activation, function };
        let (expected, scale) = reference(m, n, k, a, b, bias);
        let finished = |at: usize| {
            let sum = activation.of(expected[at] + residual.map_or(0.0, |r| f64::from(r[at])));
            if with_function { 0.5 * sum - 1.0 } else { sum }
        };
        for isa in Isa::ALL {
            let gemm = Sgemm::new(m, n, k, isa);
            let mut packed = vec![f32::NAN; gemm.packed_len()];
            gemm.pack(b, &mut packed);
            let mut c = vec![7.0; m * (n + pad)];
            gemm.run(a, &packed, epilogue, &mut c, n + pad, &mut [], &Serial);
            for i in 0..m {
                for j in 0..n {
                    let (got, want) = (f64::from(c[i * (n + pad) + j]), finished(i * n + j));
                    prop_assert!((got - want).abs() <= 1e-6 * (scale + 1.0), "{isa} ({i}, {j}): {got}, expected {want}");
                }
                prop_assert!(c[i * (n + pad) + n..][..pad].iter().all(|&v| v == 7.0), "wrote beyond a row of C");
            }
        }
    }
}

/// Rows that are packed in several parts, sums in several runs, columns of several chunks.
#[test]
fn a_large_product_equals_its_float64_reference_on_every_instruction_set() {
    let [m, n, k] = [600, 150, 2000];
    let (a, b, bias) = (values(1, m * k), values(2, k * n), values(3, n));
    let (expected, scale) = reference(m, n, k, Matrix::rows(&a, k), Matrix::rows(&b, n), Some(&bias));
    for isa in Isa::ALL {
        let packed = PackedB::pack(&b, k, n, false, isa);
        let run = |par: &dyn Par| {
            let mut c = vec![f32::NAN; m * n];
            let epilogue = Epilogue { bias: Some(&bias), ..Epilogue::default() };
            packed.multiply(m, Matrix::rows(&a, k), epilogue, &mut c, par);
            c
        };
        let c = run(&Serial);
        for (at, (got, want)) in c.iter().zip(&expected).enumerate() {
            assert!((f64::from(*got) - want).abs() <= 1e-6 * scale, "{isa} {at}: {got}, expected {want}");
        }
        assert!(run(&Threads(3)).iter().zip(&c).all(|(x, y)| x.to_bits() == y.to_bits()), "{isa}");
    }
}

#[test]
fn a_product_has_the_same_bits_whoever_runs_its_chunks() {
    for (m, n, k) in [(1, 1000, 512), (3, 700, 300), (200, 260, 520), (130, 31, 1000)] {
        let (a, b) = (values(1, m * k), values(2, k * n));
        for isa in Isa::ALL {
            let packed = PackedB::pack(&b, k, n, false, isa);
            let run = |par: &dyn Par| {
                let mut c = vec![0.0; m * n];
                packed.multiply(m, Matrix::rows(&a, k), Epilogue::default(), &mut c, par);
                c.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
            };
            let serial = run(&Serial);
            assert_eq!(serial, run(&Reverse), "{isa} {m}x{n}x{k}");
            assert_eq!(serial, run(&Threads(3)), "{isa} {m}x{n}x{k}");
        }
    }
}

#[test]
fn the_weights_of_a_fully_connected_layer_pack_from_output_major_order() {
    let (x, w) = ([1.0, 2.0, 3.0], [1.0, 0.0, 0.0, 0.0, 10.0, 100.0]);
    let packed = PackedB::pack(&w, 3, 2, true, Isa::detect());
    let mut y = [0.0; 2];
    let epilogue = Epilogue { bias: Some(&[0.5, -500.0]), activation: Activation::Relu, ..Epilogue::default() };
    packed.multiply(1, Matrix::rows(&x, 3), epilogue, &mut y, &Serial);
    assert_eq!(y, [1.5, 0.0]);
}

#[test]
fn nan_and_infinity_pass_through_a_product_and_its_activation() {
    let a = [f32::NAN, 1.0, f32::INFINITY, 1.0];
    let b = [1.0, 1.0];
    for isa in Isa::ALL {
        let mut c = [0.0; 2];
        let epilogue = Epilogue { activation: Activation::Relu, ..Epilogue::default() };
        PackedB::pack(&b, 2, 1, false, isa).multiply(2, Matrix::rows(&a, 2), epilogue, &mut c, &Serial);
        assert!(c[0].is_nan(), "{isa}");
        assert_eq!(c[1], f32::INFINITY, "{isa}");
    }
}
