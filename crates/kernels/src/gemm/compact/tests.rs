use super::super::tests::values;
use super::super::{Epilogue, Matrix, PackedForm, Sgemm};
use super::*;
use crate::activation::Activation;
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads};
use proptest::prelude::*;

/// A product on weights in 28 bits, whatever their size; none where the machine cannot.
fn compact(m: usize, n: usize, k: usize) -> Option<Sgemm> {
    let gemm = Sgemm::new(m, n, k, Isa::detect());
    fits(k, gemm.isa()).then_some(Sgemm { form: PackedForm::Compact, ..gemm })
}

fn packed(gemm: &Sgemm, weights: &[f32]) -> Vec<f32> {
    let mut packed = vec![f32::NAN; gemm.packed_len()];
    gemm.pack(Matrix::rows(weights, gemm.k).transposed(), &mut packed);
    packed
}

fn workspace(gemm: &Sgemm) -> Vec<f32> {
    vec![f32::NAN; gemm.workspace_len()]
}

/// All numbers, or nothing if the weights were packed unchanged.
fn unpacked(gemm: &Sgemm, packed: &[f32]) -> Option<Vec<u32>> {
    View::of(gemm, packed).ok()?;
    let mut all = vec![f32::NAN; gemm.n * gemm.k];
    gemm.unpack(packed, 0..gemm.n, &mut all);
    Some(bits(&all))
}

fn bits(weights: &[f32]) -> Vec<u32> {
    weights.iter().map(|w| w.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_bit_of_every_weight_comes_back(n in 1usize..100, k in 256usize..700, seed: u64, odd in prop::collection::vec(
        (any::<prop::sample::Index>(), any::<u32>()), 0..4), scale in -30i32..30,
    ) {
        let Some(gemm) = compact(1, n, k) else { return Ok(()) };
        let mut weights: Vec<f32> = values(seed, n * k).iter().map(|w| w * 2f32.powi(scale)).collect();
        for i in (0..weights.len()).step_by(7) {
            weights[i] = if i % 2 == 0 { 0.0 } else { -0.0 };
        }
        for (at, bits) in &odd {
            // Anything: infinities, NaN with its payload, numbers below the normal ones.
            weights[at.index(n * k)] = f32::from_bits(*bits);
        }
        prop_assert_eq!(unpacked(&gemm, &packed(&gemm, &weights)), Some(bits(&weights)));
    }

    #[test]
    fn a_product_on_compact_weights_equals_its_float64_reference(
        m in 1usize..60, n in 1usize..1200, k in 256usize..400, relu: bool, with_bias: bool, scattered: bool, zeros in 0usize..9,
        seed: u64,
    ) {
        let Some(gemm) = compact(m, n, k) else { return Ok(()) };
        let (mut a, mut weights) = (values(seed, m * k), values(seed ^ 1, n * k));
        // So many eighths of the inputs are zero in all rows, and some in one.
        for (i, value) in a.iter_mut().enumerate() {
            let zero = (i % k).wrapping_mul(0x9E37_79B9) >> 8 & 7 < zeros || i % 31 == 0;
            *value = if zero { 0.0 } else { *value };
        }
        if scattered {
            // Exponents everywhere: these weights are packed as they are.
            weights.iter_mut().enumerate().for_each(|(i, w)| *w *= 2f32.powi(i as i32 % 40 - 20));
        }
        let bias = values(seed ^ 2, n);
        let bias = with_bias.then_some(&bias[..]);
        let activation = if relu { Activation::Relu } else { Activation::None };
        let packed = packed(&gemm, &weights);
        prop_assert_eq!(View::of(&gemm, &packed).is_err(), scattered);
        let mut first = None;
        for par in [&Serial as &dyn Par, &Reverse, &Threads(2)] {
            let mut c = vec![7.0; m * n];
            let epilogue = Epilogue { bias, activation, ..Epilogue::default() };
            gemm.run(Matrix::rows(&a, k), &packed, epilogue, &mut c, n, &mut workspace(&gemm), par);
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let terms = (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(weights[j * k + l]));
                let bias = bias.map_or(0.0, |b| f64::from(b[j]));
                let (sum, scale) = terms.fold((bias, bias.abs() + 1e-30), |(s, a), t| (s + t, a + t.abs()));
                let (want, got) = (if relu { sum.max(0.0) } else { sum }, f64::from(c[i * n + j]));
                prop_assert!((got - want).abs() <= 1e-6 * scale, "({i}, {j}): {got}, expected {want}");
            }
            prop_assert_eq!(first.get_or_insert_with(|| bits(&c)), &bits(&c));
        }
    }
}

#[test]
fn a_few_exceptions_are_put_in_their_places_and_many_are_too_many() {
    let (n, k) = (40, 512);
    let Some(gemm) = compact(1, n, k) else { return };
    let mut weights = values(3, n * k).iter().map(|w| w.abs() + 1.0).collect::<Vec<_>>();
    let most = PackedPlaces::of(&gemm).most_exceptions();
    for i in 0..most {
        weights[i * 100] = 1e-20;
    }
    // The last one of the second panel.
    weights[n * k - 1] = f32::INFINITY;
    assert_eq!(unpacked(&gemm, &packed(&gemm, &weights)), Some(bits(&weights)));
    weights[most * 100] = -1e-20;
    let as_it_is = packed(&gemm, &weights);
    assert!(unpacked(&gemm, &as_it_is).is_none(), "one more in the first panel");
    let mut c = vec![0.0; n];
    gemm.run(Matrix::rows(&vec![1.0; k], k), &as_it_is, Epilogue::default(), &mut c, n, &mut workspace(&gemm), &Serial);
    let sums = weights.chunks(k).map(|row| row.iter().map(|w| f64::from(*w)).sum::<f64>() as f32);
    assert!(c.iter().zip(sums).all(|(c, sum)| *c == sum || (c - sum).abs() < 1e-3));
}

#[test]
fn zeros_and_numbers_that_are_not_finite_count_as_in_any_product() {
    let (n, k) = (200, 300);
    let Some(gemm) = compact(1, n, k) else { return };
    let mut a = values(1, k);
    a.iter_mut().step_by(2).for_each(|a| *a = 0.0);
    let product = |weights: &[f32], a: &[f32]| {
        let mut c = vec![7.0; n];
        gemm.run(
            Matrix::rows(a, k),
            &packed(&gemm, weights),
            Epilogue::default(),
            &mut c,
            n,
            &mut workspace(&gemm),
            &Serial,
        );
        c
    };
    let mut weights = values(2, n * k);
    // What is beside a zero changes nothing, as long as it is a number.
    let expected = product(&weights, &a);
    weights.iter_mut().skip(4 * k).step_by(4 * k + 2).for_each(|w| *w = 1e30);
    let beside: Vec<usize> = (4 * k..n * k).step_by(4 * k + 2).collect();
    assert!(beside.iter().all(|at| at % k % 2 == 0) && View::of(&gemm, &packed(&gemm, &weights)).is_ok());
    assert_eq!(product(&weights, &a), expected);
    // Infinity times a weight that has no code.
    let step = beside[3] % k;
    let mut infinite = a.clone();
    infinite[step] = f32::INFINITY;
    let signs = (0..n).map(|j| f32::INFINITY * weights[j * k + step].signum());
    assert_eq!(product(&weights, &infinite), signs.collect::<Vec<_>>());
    // Zero times infinity is no number, neither is what is added to it.
    let at = beside[3];
    weights[at] = f32::INFINITY;
    let got = product(&weights, &a);
    assert!(got[at / k].is_nan() && (0..n).filter(|j| *j != at / k).all(|j| (got[j] - expected[j]).abs() < 1e-4));
    // Inputs that are no numbers count.
    a[1] = f32::NAN;
    assert!(product(&weights, &a).iter().all(|c| c.is_nan()));
    // Nothing but zeros.
    assert_eq!(product(&values(2, n * k), &vec![-0.0; k]), vec![0.0; n]);
}

#[test]
fn weights_beside_zeros_are_not_read() {
    let (n, k) = (200, 300);
    let Some(gemm) = compact(1, n, k) else { return };
    // Other exponents at even steps than at odd ones.
    let scale = |at: usize| if (at % k).is_multiple_of(2) { 1.0 / 1024.0 } else { 1.0 };
    let weights: Vec<f32> =
        values(1, n * k).iter().enumerate().map(|(at, w)| (w.abs() * 0.9 + 1.0) * scale(at)).collect();
    let mut packed = packed(&gemm, &weights);
    let product = |packed: &[f32], even: f32| {
        let a: Vec<f32> = (0..k).map(|step| if step % 2 == 0 { even } else { 1.0 }).collect();
        let mut c = vec![7.0; n];
        gemm.run(Matrix::rows(&a, k), packed, Epilogue::default(), &mut c, n, &mut workspace(&gemm), &Serial);
        c
    };
    let expected = product(&packed, 0.0);
    // A kernel that reads a weight of an even step finds infinity or NaN.
    let places = PackedPlaces::of(&gemm);
    let tables = &mut bytemuck::cast_slice_mut::<_, u32>(&mut packed)[places.table(0)..places.ends()];
    tables.iter_mut().filter(|exponent| **exponent == (127 - 10) << 23).for_each(|exponent| *exponent = 0x7f80_0000);
    assert!(product(&packed, 1.0).iter().all(|c| !c.is_finite()));
    assert_eq!(product(&packed, 0.0), expected);
}

#[test]
fn an_eighth_less_is_touched_and_no_more_is_asked_for_than_a_cache_line_a_layer() {
    let Some(gemm) = compact(1, 4096, 9216) else { return };
    let plain = gemm.plain().packed_len();
    assert!(gemm.packed_len() <= plain + LANES);
    assert!(PackedPlaces::of(&gemm).exceptions() * 1000 < plain * 876);
    assert!(pays(4096, 9216, Isa::Avx512) && !pays(1000, 512, Isa::Avx512) && !pays(4096, 9216, Isa::Avx2));
}
