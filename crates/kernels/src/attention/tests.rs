use super::*;
use crate::gemm::tests::values;
use crate::par::Serial;
use crate::testing::{Reverse, Threads};
use proptest::prelude::*;

/// Arrays of one attention, and the places of their matrices.
struct AttentionCase {
    attention: Attention,
    arrays: [Vec<f32>; 3],
    at: [Places; 3],
    mask: Option<(Vec<f32>, Places)>,
    lengths: Option<Vec<i64>>,
    out: Places,
}

impl AttentionCase {
    /// Matrices one after the other, or interleaved by head as `[row][request][head][column]`.
    fn new(batch: [usize; 2], [m, n, d, w]: [usize; 4], interleaved: bool, seed: u64) -> AttentionCase {
        let place = |rows: usize, columns: usize| match interleaved {
            false => Places::contiguous(batch, rows, columns),
            true => {
                let row = batch[0] * batch[1] * columns;
                Places { first: 0, batch: [batch[1] * columns, columns], row, column: 1 }
            }
        };
        let [outer, inner] = batch;
        let array = |i: u64, rows: usize, columns: usize| values(seed ^ i, outer * inner * rows * columns);
        let scale = 1.0 / (d.max(1) as f32).sqrt();
        AttentionCase {
            attention: Attention {
                batch,
                queries: m,
                keys: n,
                depth: d,
                width: w,
                scale,
                isa: Isa::detect(),
                tiles: false,
            },
            arrays: [array(1, m, d), array(2, n, d), array(3, n, w)],
            at: [place(m, d), place(n, d), place(n, w)],
            mask: None,
            lengths: None,
            out: place(m, w),
        }
    }

    fn run(&self, isa: Isa, par: &dyn Par) -> Vec<f32> {
        let Attention { batch, queries, width, .. } = self.attention;
        let mut out = vec![7.0; batch[0] * batch[1] * queries * width];
        let matrices = |i: usize| Matrices { data: &self.arrays[i], at: self.at[i] };
        let operands = AttentionOperands {
            queries: matrices(0),
            keys: matrices(1),
            values: matrices(2),
            mask: self.mask.as_ref().map(|(data, at)| Matrices { data, at: *at }),
            lengths: self.lengths.as_deref(),
        };
        Attention { isa, ..self.attention }.run(par, operands, MatricesMut { data: &mut out, at: self.out });
        out
    }

    /// The definition in float64.
    fn expected(&self) -> Vec<f64> {
        let Attention { batch: [outer, inner], queries: m, keys: n, depth: d, width: w, scale, .. } = self.attention;
        let mut out = vec![0.0; outer * inner * m * w];
        for (o, i, r) in (0..outer * inner * m).map(|x| (x / m / inner, x / m % inner, x % m)) {
            let get = |k: usize, row: usize, column: usize| {
                let at = self.at[k];
                f64::from(self.arrays[k][at.of([o, i]) + row * at.row + column])
            };
            let length = self.lengths.as_ref().map_or(n, |l| l[(o * inner + i) * m + r].clamp(0, n as i64) as usize);
            let score = |key: usize| {
                let product: f64 = (0..d).map(|c| get(0, r, c) * get(1, key, c)).sum();
                let mask =
                    self.mask.as_ref().map_or(0.0, |(data, at)| f64::from(data[at.of([o, i]) + r * at.row + key]));
                product * f64::from(scale) + mask
            };
            let scores: Vec<f64> = (0..length).map(score).collect();
            let max = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for c in 0..w {
                let mixed: f64 = weights.iter().enumerate().map(|(key, weight)| weight / sum * get(2, key, c)).sum();
                out[self.out.of([o, i]) + r * self.out.row + c] = if length == 0 { 0.0 } else { mixed };
            }
        }
        out
    }

    /// The answer of every instruction set is the definition's, with the same bits whoever runs it.
    fn check(&self) {
        let expected = self.expected();
        for isa in Isa::ALL {
            let out = self.run(isa, &Serial);
            for (got, want) in out.iter().zip(&expected) {
                let (got, same) = (f64::from(*got), got.is_nan() && want.is_nan());
                assert!(same || (got - want).abs() <= 3e-6, "{isa} {:?}: {got}, expected {want}", self.attention);
            }
            for par in [&Reverse as &dyn Par, &Threads(3)] {
                let again = self.run(isa, par);
                assert!(again.iter().zip(&out).all(|(x, y)| x.to_bits() == y.to_bits()), "{isa}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn attention_equals_its_float64_reference_on_every_instruction_set(
        outer in 0usize..3, inner in 1usize..4, m in 0usize..70, n in 1usize..90, d in 0usize..40, w in 0usize..50,
        interleaved: bool, masked: bool, repeats: [bool; 2], lengths: bool, seed: u64,
    ) {
        let mut case = AttentionCase::new([outer, inner], [m, n, d, w], interleaved, seed);
        if masked {
            // Keys that count for nobody, among others.
            let mask = values(seed ^ 4, outer * inner * m * n + 1);
            let mask = mask.iter().map(|x| if *x > 0.7 { f32::NEG_INFINITY } else { *x }).collect();
            let batch = if repeats[1] { [0, 0] } else { [inner * m * n, m * n] };
            case.mask = Some((mask, Places { first: 0, batch, row: if repeats[0] { 0 } else { n }, column: 1 }));
        }
        case.lengths = lengths.then(|| {
            let random = values(seed ^ 5, outer * inner * m);
            random.iter().map(|x| (f64::from(*x) * 1.3 * n as f64) as i64).collect()
        });
        case.check();
    }
}

#[test]
fn rows_of_many_keys_are_taken_in_blocks() {
    let mut case = AttentionCase::new([1, 2], [200, 1500, 8, 17], true, 9);
    assert_eq!(case.attention.block_rows(), 48);
    case.check();
    case.lengths = Some((0..400).map(|row| [0, 1, 700, 1500, 9000, -3][row % 6]).collect());
    case.check();
    assert!(Attention { keys: 128, queries: 128, ..case.attention }.block_rows() == 128);
}

#[test]
fn a_row_without_keys_is_zero_and_one_masked_by_infinity_is_nan_as_of_single_operators() {
    let mut case = AttentionCase::new([1, 1], [5, 20, 4, 3], false, 3);
    case.lengths = Some(vec![0, 20, 3, 0, 1]);
    let out = case.run(Isa::detect(), &Serial);
    assert_eq!([&out[..3], &out[9..12]], [&[0.0; 3]; 2]);
    assert!(out[3..9].iter().all(|x| *x != 0.0));
    case.lengths = None;
    let mut mask = vec![0.0; 100];
    mask[20..40].fill(f32::NEG_INFINITY);
    case.mask = Some((mask, Places::contiguous([1, 1], 5, 20)));
    let out = case.run(Isa::detect(), &Serial);
    assert!(out[3..6].iter().all(|x| x.is_nan()) && out[..3].iter().chain(&out[6..]).all(|x| x.is_finite()));
    case.check();
}

#[test]
#[should_panic(expected = "the mask needs Some(100) elements, got 99")]
fn a_mask_that_ends_too_early_is_refused() {
    let mut case = AttentionCase::new([1, 1], [5, 20, 4, 3], false, 3);
    case.mask = Some((vec![0.0; 99], Places::contiguous([1, 1], 5, 20)));
    case.run(Isa::detect(), &Serial);
}

/// The case on the tiles `T`.
fn on_tiles<T: crate::amx::lines::Split>(case: &AttentionCase, par: &dyn Par) -> Vec<f32> {
    let Attention { batch, queries, width, .. } = case.attention;
    let mut out = vec![7.0; batch[0] * batch[1] * queries * width];
    let matrices = |i: usize| Matrices { data: &case.arrays[i], at: case.at[i] };
    let operands = AttentionOperands {
        queries: matrices(0),
        keys: matrices(1),
        values: matrices(2),
        mask: case.mask.as_ref().map(|(data, at)| Matrices { data, at: *at }),
        lengths: case.lengths.as_deref(),
    };
    assert!(case.attention.suits_tiles(case.at));
    let out_mut = MatricesMut { data: &mut out, at: case.out };
    crate::amx::attention::run::<T>(&case.attention, par, operands, out_mut);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn attention_on_tiles_equals_its_float64_reference_and_the_model_of_tiles(
        inner in 1usize..3, m in 1usize..70, n in 16usize..80, d in 1usize..3, w in 1usize..3, interleaved: bool,
        masked: bool, with_lengths: bool, negative: bool, seed: u64,
    ) {
        let mut case = AttentionCase::new([1, inner], [m, n, d * 32, w * 32], interleaved, seed);
        if negative {
            case.attention.scale = -case.attention.scale;
        }
        if masked {
            case.mask = Some((values(seed ^ 9, m * n), Places { batch: [0, 0], ..Places::contiguous([1, inner], m, n) }));
        }
        if with_lengths {
            let lengths = (0..inner * m).map(|i| (seed.rotate_left(i as u32) % (n as u64 + 3)) as i64 - 1);
            case.lengths = Some(lengths.collect());
        }
        let out = on_tiles::<crate::amx::model::Modelled>(&case, &Serial);
        for (got, want) in out.iter().zip(case.expected()) {
            // Values are at most 1; weights, queries, keys and values are rounded to 8 bits each.
            prop_assert!((f64::from(*got) - want).abs() <= 0.04, "{got}, expected {want}");
        }
        for par in [&Reverse as &dyn Par, &Threads(3)] {
            let again = on_tiles::<crate::amx::model::Modelled>(&case, par);
            prop_assert!(again.iter().zip(&out).all(|(x, y)| x.to_bits() == y.to_bits()));
        }
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if crate::amx::is_permitted() {
            let hardware = on_tiles::<crate::amx::hardware::Hardware>(&case, &Threads(2));
            prop_assert!(hardware.iter().zip(&out).all(|(x, y)| x.to_bits() == y.to_bits()));
        }
    }
}

#[test]
fn rows_of_nan_on_tiles_stay_rows_of_nan_and_disturb_no_others() {
    let mut case = AttentionCase::new([1, 1], [40, 50, 32, 32], false, 5);
    case.arrays[0][7 * 32 + 3] = f32::NAN;
    let out = on_tiles::<crate::amx::model::Modelled>(&case, &Serial);
    for (row, out) in out.chunks_exact(32).enumerate() {
        assert!(out.iter().all(|x| x.is_nan() == (row == 7)), "row {row}: {out:?}");
    }
}
