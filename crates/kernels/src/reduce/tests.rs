use super::*;
use crate::par::Serial;
use crate::testing::{Reverse, Threads, assert_close, random, random64};
use half::f16;

/// The values that end up in each output, by definition.
fn groups(x: &[f64], shape: &[usize], reduced: &[bool]) -> Vec<Vec<f64>> {
    let kept: usize = shape.iter().zip(reduced).filter(|p| !p.1).map(|p| p.0).product();
    let mut groups = vec![vec![]; kept];
    for (i, &v) in x.iter().enumerate() {
        let (mut rest, mut at, mut step) = (i, 0, 1);
        for a in (0..shape.len()).rev() {
            let k = rest % shape[a];
            rest /= shape[a];
            if !reduced[a] {
                at += k * step;
                step *= shape[a];
            }
        }
        groups[at].push(v);
    }
    groups
}

fn by_definition(op: Reduction, v: &[f64]) -> f64 {
    match op {
        Reduction::Sum | Reduction::NanSum => v.iter().sum(),
        Reduction::Mean => v.iter().sum::<f64>() / v.len() as f64,
        Reduction::Prod | Reduction::NanProd => v.iter().product(),
        Reduction::Max => v.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Reduction::Min => v.iter().copied().fold(f64::INFINITY, f64::min),
        Reduction::L1 => v.iter().map(|v| v.abs()).sum(),
        Reduction::L2 => v.iter().map(|v| v * v).sum::<f64>().sqrt(),
        Reduction::SumSquares => v.iter().map(|v| v * v).sum(),
    }
}

const ALL: [Reduction; 10] = [
    Reduction::Sum,
    Reduction::Mean,
    Reduction::Prod,
    Reduction::NanSum,
    Reduction::NanProd,
    Reduction::Max,
    Reduction::Min,
    Reduction::L1,
    Reduction::L2,
    Reduction::SumSquares,
];

#[test]
fn every_reduction_over_any_axes_agrees_with_its_definition() {
    let cases: [(&[usize], &[bool]); 11] = [
        (&[700, 30], &[true, false]),
        (&[150, 3, 2, 20], &[true, false, true, false]),
        (&[7, 300], &[false, true]),
        (&[300, 7], &[true, false]),
        (&[3, 40, 5], &[true, false, true]),
        (&[3, 40, 5], &[false, true, false]),
        (&[2, 3, 4, 5, 6], &[true, false, true, false, true]),
        (&[2, 3, 4, 5, 6], &[false, true, false, true, false]),
        (&[9001], &[true]),
        (&[4, 5], &[false, false]),
        (&[1, 600, 1, 2], &[true, true, false, false]),
    ];
    for (shape, reduced) in cases {
        let x = random64(shape.iter().product(), 11);
        let groups = groups(&x, shape, reduced);
        let narrow: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        for op in ALL {
            let want: Vec<f64> = groups.iter().map(|g| by_definition(op, g)).collect();
            let mut wide = vec![f64::NAN; want.len()];
            reduce(&Threads(3), op, &x, shape, reduced, &mut wide);
            let mut first = vec![f32::NAN; want.len()];
            reduce(&Serial, op, &narrow, shape, reduced, &mut first);
            assert_close(&first, &want, 1e-6);
            let wide: Vec<f32> = wide.iter().map(|&v| v as f32).collect();
            assert_close(&wide, &want, 2e-7);
            for par in [&Reverse as &dyn Par, &Threads(3)] {
                let mut again = vec![f32::NAN; want.len()];
                reduce(par, op, &narrow, shape, reduced, &mut again);
                assert!(first.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
    }
}

#[test]
fn few_long_rows_have_the_bits_of_one_thread_in_all_threads() {
    let shape = [2, 3, 50_000];
    let x = random(300_000, 4);
    for (reduced, n) in [([false, true, true], 2), ([true, false, true], 3), ([true, true, true], 1)] {
        for op in [Reduction::Sum, Reduction::Max, Reduction::L2] {
            let run = |par: &dyn Par| {
                let mut out = vec![0f32; n];
                reduce(par, op, &x, &shape, &reduced, &mut out);
                out
            };
            let wide: Vec<f64> = x.iter().map(|v| f64::from(*v)).collect();
            let want: Vec<f64> = groups(&wide, &shape, &reduced).iter().map(|g| by_definition(op, g)).collect();
            let got = run(&Serial);
            assert!(got.iter().zip(&want).all(|(g, w)| (f64::from(*g) - w).abs() < 1e-3), "{op:?} {got:?} {want:?}");
            assert!(got == run(&Reverse) && got == run(&Threads(3)));
        }
    }
}

fn one<T: Element>(op: Reduction, x: &[T]) -> T {
    let mut out = [T::ZERO];
    reduce(&Serial, op, x, &[x.len()], &[true], &mut out);
    out[0]
}

#[test]
fn long_sums_stay_accurate() {
    let x = vec![0.1f32; 10_000_000];
    assert!((one(Reduction::Sum, &x) / 1e6 - 1.0).abs() < 1e-6);
    let mut out = [0f32; 2];
    reduce(&Serial, Reduction::Sum, &x, &[5_000_000, 2], &[true, false], &mut out);
    assert!((out[1] / 5e5 - 1.0).abs() < 1e-6);
}

#[test]
fn integers_keep_their_type_and_wrap() {
    assert_eq!(one(Reduction::Sum, &[200u8, 100]), 44);
    assert_eq!(one(Reduction::Mean, &[1i32, 2, 4]), 2);
    assert_eq!(one(Reduction::Mean, &[-1i32, -2, -4]), -2);
    assert_eq!(one(Reduction::Prod, &[100i8, 3]), 44);
    assert_eq!(one(Reduction::Max, &[i64::MIN, -5, -7]), -5);
    assert_eq!(one(Reduction::L2, &[3i32, 4]), 5);
}

#[test]
fn nan_wins_extremes_and_is_left_out_where_asked() {
    let mut x = random(100, 3);
    x[40] = f32::NAN;
    assert!(one(Reduction::Max, &x).is_nan() && one(Reduction::Min, &x).is_nan());
    assert!(one(Reduction::Sum, &x).is_nan());
    assert!(!one(Reduction::NanSum, &x).is_nan() && !one(Reduction::NanProd, &x).is_nan());
    let mut at = [0f32];
    argmax(&Serial, &x, [1, 100, 1], &mut at);
    assert_eq!(at, [40.0]);
    argmin(&Serial, &x, [1, 50, 2], &mut [0f32; 2]);
    let mut long = vec![0.5f32; 100_000];
    (long[40_000], long[70_000], long[70_001]) = (f32::INFINITY, f32::NAN, f32::NAN);
    argmax(&Threads(3), &long, [1, 100_000, 1], &mut at);
    assert_eq!(at, [70_000.0]);
}

#[test]
fn half_precision_sums_in_single_precision() {
    let x = vec![f16::from_f32(1.0); 4000];
    assert_eq!(one(Reduction::Sum, &x).to_f32(), 4000.0);
    assert_eq!(one(Reduction::Mean, &[f16::from_f32(60000.0); 9]).to_f32(), 60000.0);
}

#[test]
fn positions_of_extremes_are_those_of_the_first() {
    for (shape, seed) in [([3, 50, 1], 1), ([2, 17, 300], 2), ([1, 1, 5], 3), ([2, 70_000, 1], 4), ([9, 5000, 1], 5)] {
        let [outer, n, inner] = shape;
        let x: Vec<f32> = random(outer * n * inner, seed).iter().map(|v| (v * 5.0).round()).collect();
        for par in [&Serial as &dyn Par, &Threads(2)] {
            let (mut high, mut low) = (vec![0i64; outer * inner], vec![0i64; outer * inner]);
            argmax(par, &x, shape, &mut high);
            argmin(par, &x, shape, &mut low);
            for o in 0..outer {
                for i in 0..inner {
                    let column: Vec<f32> = (0..n).map(|k| x[(o * n + k) * inner + i]).collect();
                    let max = column.iter().copied().fold(f32::MIN, f32::max);
                    let min = column.iter().copied().fold(f32::MAX, f32::min);
                    assert_eq!(column.iter().position(|&v| v == max), Some(high[o * inner + i] as usize));
                    assert_eq!(column.iter().position(|&v| v == min), Some(low[o * inner + i] as usize));
                }
            }
        }
    }
}

#[test]
fn running_sums_run_along_their_axis() {
    let x = [1i32, 2, 3, 4, 5, 6];
    let mut out = [0i64; 6];
    cumsum(&Serial, &x, [1, 2, 3], &mut out);
    assert_eq!(out, [1, 2, 3, 5, 7, 9]);
    cumsum(&Serial, &x, [2, 3, 1], &mut out);
    assert_eq!(out, [1, 3, 6, 4, 9, 15]);
    for split in [[1, 2, 1], [1, 2, 3]] {
        let mut out = vec![1f32; split.iter().product()];
        cumsum(&Serial, &vec![-0f32; out.len()], split, &mut out);
        assert!(out.iter().all(|v| v.to_bits() == 1 << 31), "{out:?}");
    }
}
