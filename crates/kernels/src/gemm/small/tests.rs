use super::super::tests::values;
use super::super::{Epilogue, Matrix, Sgemm};
use super::*;
use crate::activation::Activation;
use crate::isa::Isa;
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads};
use proptest::prelude::*;

const FORMS: [SmallWeights; 2] = [SmallWeights::Bf16, SmallWeights::Int8];

fn packed(gemm: &Sgemm, par: &dyn Par, weights: &[f32]) -> Vec<f32> {
    let mut packed = vec![f32::NAN; gemm.packed_len()];
    gemm.pack_in_parallel(par, Matrix::rows(weights, gemm.depth().max(1)).transposed(), &mut packed);
    packed
}

/// The weights that a form stores for those of a row.
fn rounded(form: SmallWeights, row: &[f32]) -> Vec<f64> {
    let largest = row.iter().fold(0.0f32, |m, w| m.max(w.abs()));
    let factor = f64::from(largest / 127.0);
    let stored = |w: &f32| match form {
        SmallWeights::Bf16 => half::bf16::from_f32(*w).to_f64(),
        SmallWeights::Int8 if largest == 0.0 => 0.0,
        SmallWeights::Int8 => f64::from((w / (largest / 127.0)).round_ties_even()) * factor,
    };
    row.iter().map(stored).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_product_on_small_weights_equals_its_float64_reference_on_every_instruction_set(
        m in 0usize..20, n in 0usize..140, k in 0usize..300, [with_bias, with_residual, relu]: [bool; 3],
        pad in 0usize..3, seed: u64,
    ) {
        let (a, mut weights) = (values(seed, m * k), values(seed ^ 1, n * k));
        // A row of zeros, and rows of very different size.
        weights.chunks_mut(k.max(1)).enumerate().for_each(|(i, row)| {
            row.iter_mut().for_each(|w| *w *= if i == 1 { 0.0 } else { 10f32.powi(i as i32 % 7 - 3) });
        });
        let (bias, residual) = (values(seed ^ 2, n), values(seed ^ 3, m * n));
        let bias = with_bias.then_some(&bias[..]);
        let residual = with_residual.then_some(&residual[..]);
        let activation = if relu { Activation::Relu } else { Activation::None };
        let epilogue = Epilogue { bias, residual, activation, ..Epilogue::default() };
        compare([m, n, k], [&a, &weights], epilogue, relu, pad);
    }
}

/// Compares products with those of the stored weights in double precision.
fn compare([m, n, k]: [usize; 3], [a, weights]: [&[f32]; 2], epilogue: Epilogue<'_>, relu: bool, pad: usize) {
    for (isa, form) in Isa::ALL.into_iter().flat_map(|isa| FORMS.map(|form| (isa, form))) {
        let gemm = Sgemm::with_small_weights(m, n, k, isa, form);
        let packed = packed(&gemm, &Serial, weights);
        let mut c = vec![7.0; m * (n + pad)];
        gemm.run(Matrix::rows(a, k), &packed, epilogue, &mut c, n + pad, &mut [], &Serial);
        for j in 0..n {
            let stored = rounded(form, &weights[j * k..][..k]);
            for i in 0..m {
                let added = |numbers: Option<&[f32]>, at: usize| numbers.map_or(0.0, |numbers| f64::from(numbers[at]));
                let start = added(epilogue.bias, j) + added(epilogue.residual, i * n + j);
                let terms = stored.iter().zip(&a[i * k..][..k]).map(|(w, a)| w * f64::from(*a));
                let (sum, scale) = terms.fold((start, start.abs() + 1.0), |(s, z), t| (s + t, z + t.abs()));
                let (want, got) = (if relu { sum.max(0.0) } else { sum }, f64::from(c[i * (n + pad) + j]));
                assert!((got - want).abs() <= 1e-6 * scale, "{isa} {form:?} ({i}, {j}): {got}, expected {want}");
            }
        }
        for i in 0..m {
            assert!(c[i * (n + pad) + n..][..pad].iter().all(|v| *v == 7.0), "wrote beyond a row of C");
        }
    }
}

#[test]
fn many_large_rows_meet_expanded_panels() {
    let (m, n, k) = (SOME_ROWS + 3, 70, NEAR / SOME_ROWS + 1);
    compare([m, n, k], [&values(1, m * k), &values(2, n * k)], Epilogue::default(), false, 1);
}

#[test]
fn small_weights_and_their_products_have_the_same_bits_whoever_runs_the_chunks() {
    for (m, n, k) in [(1, 1000, 512), (6, 700, 300), (7, 260, 520), (130, 300, 1000)] {
        let (a, weights) = (values(1, m * k), values(2, k * n));
        for (isa, form) in Isa::ALL.into_iter().flat_map(|isa| FORMS.map(|form| (isa, form))) {
            let gemm = Sgemm::with_small_weights(m, n, k, isa, form);
            let run = |par: &dyn Par| {
                let (packed, mut c) = (packed(&gemm, par, &weights), vec![0.0; m * n]);
                gemm.run(Matrix::rows(&a, k), &packed, Epilogue::default(), &mut c, n, &mut [], par);
                packed.iter().chain(&c).map(|v| v.to_bits()).collect::<Vec<_>>()
            };
            let serial = run(&Serial);
            assert_eq!(serial, run(&Reverse), "{isa} {form:?} {m}x{n}x{k}");
            assert_eq!(serial, run(&Threads(3)), "{isa} {form:?} {m}x{n}x{k}");
        }
    }
}

#[test]
fn any_number_of_rows_meets_the_same_rounded_weights() {
    let (n, k) = (70, 90);
    let weights = values(5, n * k);
    for (isa, form) in Isa::ALL.into_iter().flat_map(|isa| FORMS.map(|form| (isa, form))) {
        // Rows of the identity read weights back.
        let columns = |m: usize| {
            let gemm = Sgemm::with_small_weights(m, n, k, isa, form);
            let mut a = vec![0.0; m * k];
            (0..m).for_each(|i| a[i * k + i] = 1.0);
            let mut c = vec![0.0; m * n];
            let packed = packed(&gemm, &Serial, &weights);
            gemm.run(Matrix::rows(&a, k), &packed, Epilogue::default(), &mut c, n, &mut [], &Serial);
            c
        };
        let all = columns(k);
        (1..20).for_each(|m| assert_eq!(columns(m), all[..m * n], "{isa} {form:?} {m} rows"));
        for (j, row) in weights.chunks(k).enumerate() {
            for (i, want) in rounded(form, row).into_iter().enumerate() {
                assert!((f64::from(all[i * n + j]) - want).abs() <= 1e-7, "{isa} {form:?} ({i}, {j})");
            }
        }
    }
}

#[test]
fn rows_with_numbers_that_are_tiny_or_not_finite_are_not_mistaken_for_others() {
    let k = 40;
    for isa in Isa::ALL {
        let gemm = Sgemm::with_small_weights(1, 4, k, isa, SmallWeights::Int8);
        let mut weights = vec![1.0; 4 * k];
        weights[k + 3] = f32::INFINITY;
        weights[2 * k + 5] = f32::NAN;
        weights[3 * k..].fill(1e-42);
        let mut c = [0.0; 4];
        let packed = packed(&gemm, &Serial, &weights);
        gemm.run(Matrix::rows(&[1.0; 40], k), &packed, Epilogue::default(), &mut c, 4, &mut [], &Serial);
        assert!((c[0] - 40.0).abs() < 1e-4 && c[1].is_nan() && c[2].is_nan() && c[3].abs() < 1e-36, "{isa}: {c:?}");
    }
}

#[test]
fn small_weights_take_a_half_and_a_quarter_of_the_bytes() {
    let len = |form| Sgemm::with_small_weights(1, 1024, 4096, Isa::detect(), form).packed_len();
    assert_eq!(len(SmallWeights::Bf16), 1024 * 4096 / 2 + 1024);
    assert_eq!(len(SmallWeights::Int8), 1024 * 4096 / 4 + 1024);
}
