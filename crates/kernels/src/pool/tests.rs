use super::*;
use crate::par::Serial;
use crate::testing::{Reverse, Threads, assert_close, random};
use half::f16;

/// Pooling of one plane with three spatial axes as MXNet defines it.
fn by_definition(
    kind: PoolKind,
    kernel: [usize; 3],
    stride: [usize; 3],
    pad: [usize; 3],
    size: [usize; 3],
    out: [usize; 3],
    x: impl Fn([usize; 3]) -> f64,
) -> Vec<f64> {
    let mut result = vec![];
    for i in 0..out.iter().product() {
        let o = [i / (out[1] * out[2]), i / out[2] % out[1], i % out[2]];
        let (mut values, mut padded) = (vec![], 1);
        let start = |a: usize| (o[a] * stride[a]) as isize - pad[a] as isize;
        for a in 0..3 {
            padded *= (start(a) + kernel[a] as isize).min((size[a] + pad[a]) as isize) - start(a);
        }
        for k in 0..kernel.iter().product() {
            let tap = [k / (kernel[1] * kernel[2]), k / kernel[2] % kernel[1], k % kernel[2]];
            let at: [isize; 3] = std::array::from_fn(|a| start(a) + tap[a] as isize);
            if (0..3).all(|a| at[a] >= 0 && at[a] < size[a] as isize) {
                values.push(x(at.map(|v| v as usize)));
            }
        }
        result.push(match kind {
            PoolKind::Max => values.iter().copied().fold(f32::MIN as f64, f64::max),
            PoolKind::Sum => values.iter().sum(),
            PoolKind::Avg { count_include_pad: true } => values.iter().sum::<f64>() / padded.max(1) as f64,
            PoolKind::Avg { .. } => values.iter().sum::<f64>() / values.len().max(1) as f64,
            PoolKind::Lp { p } => values.iter().map(|v| v.powi(p as i32)).sum::<f64>().powf(1.0 / p as f64),
        });
    }
    result
}

const KINDS: [PoolKind; 6] = [
    PoolKind::Max,
    PoolKind::Sum,
    PoolKind::Avg { count_include_pad: true },
    PoolKind::Avg { count_include_pad: false },
    PoolKind::Lp { p: 2 },
    PoolKind::Lp { p: 3 },
];

fn check(size: &[usize], kernel: &[usize], stride: &[usize], pad: &[usize], convention: Convention) {
    let (n, c, rank) = (2, 5, size.len());
    let out: Vec<usize> =
        (0..rank).map(|a| pooled_size(size[a], kernel[a], stride[a], pad[a], convention).unwrap()).collect();
    let (pixels, out_pixels) = (size.iter().product::<usize>(), out.iter().product::<usize>());
    // Positive, for the cube root of the reference.
    let x: Vec<f32> = random(n * c * pixels, 3).iter().map(|v| v + 1.1).collect();
    for kind in KINDS {
        for channels_last in [false, true] {
            let at = |n: usize, c_: usize, p: usize, pixels: usize| {
                if channels_last { (n * pixels + p) * c + c_ } else { (n * c + c_) * pixels + p }
            };
            let mut want = vec![0.0; n * c * out_pixels];
            let (s, size3, out3) = (three(stride, 1), three(size, 1), three(&out, 1));
            for i in 0..n {
                for k in 0..c {
                    let plane = |p: [usize; 3]| {
                        let p = (p[0] * size3[1] + p[1]) * size3[2] + p[2];
                        x[at(i, k, p, pixels)] as f64
                    };
                    let values = by_definition(kind, three(kernel, 1), s, three(pad, 0), size3, out3, plane);
                    for (p, v) in values.into_iter().enumerate() {
                        want[at(i, k, p, out_pixels)] = v;
                    }
                }
            }
            let shaped = |spatial: &[usize]| {
                if channels_last { [&[n], spatial, &[c]].concat() } else { [&[n, c], spatial].concat() }
            };
            let params = PoolParams { kind, kernel, stride, pad, channels_last };
            let mut first = vec![f32::NAN; want.len()];
            pool(&Serial, params, &x, &shaped(size), &mut first, &shaped(&out));
            // The lowest finite number would hide everything else.
            let (got, want): (Vec<f32>, Vec<f64>) =
                first.iter().zip(want).filter(|p| *p.0 != f32::MIN || p.1 != f32::MIN as f64).unzip();
            assert_close(&got, &want, 1e-6);
            for par in [&Reverse as &dyn Par, &Threads(3)] {
                let mut again = vec![f32::NAN; first.len()];
                pool(par, params, &x, &shaped(size), &mut again, &shaped(&out));
                assert!(first.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
        }
    }
}

#[test]
fn every_kind_agrees_with_its_definition() {
    for convention in [Convention::Valid, Convention::Full] {
        check(&[17], &[3], &[2], &[1], convention);
        check(&[12, 13], &[3, 3], &[2, 2], &[1, 1], convention);
        check(&[28, 28], &[2, 2], &[1, 1], &[0, 0], convention);
        check(&[9, 40], &[2, 5], &[3, 4], &[1, 2], convention);
        check(&[7, 7], &[7, 7], &[1, 1], &[0, 0], convention);
        check(&[8, 8], &[6, 5], &[2, 2], &[0, 1], convention);
        check(&[5, 6, 7], &[2, 3, 2], &[2, 1, 2], &[1, 1, 0], convention);
        check(&[4, 4], &[2, 2], &[3, 3], &[1, 1], convention);
    }
    check(&[9], &[4], &[2], &[0], Convention::Same);
}

#[test]
fn a_window_of_padding_only_gives_the_lowest_number_or_zero() {
    let params = PoolParams { kind: PoolKind::Max, kernel: &[1], stride: &[2], pad: &[1], channels_last: false };
    let mut out = [0f32; 4];
    pool(&Serial, params, &[5.0, 6.0, 7.0], &[1, 1, 3], &mut out, &[1, 1, 4]);
    assert_eq!(out, [f32::MIN, 6.0, f32::MIN, f32::MIN]);
    let params = PoolParams { kind: PoolKind::Avg { count_include_pad: false }, ..params };
    pool(&Serial, params, &[5.0, 6.0, 7.0], &[1, 1, 3], &mut out, &[1, 1, 4]);
    assert_eq!(out, [0.0, 6.0, 0.0, 0.0]);
}

#[test]
fn bytes_and_half_precision_pool_too() {
    let params = PoolParams { kind: PoolKind::Max, kernel: &[2], stride: &[2], pad: &[0], channels_last: false };
    let mut out = [0i8; 2];
    pool(&Serial, params, &[-5, -6, 7, 1], &[1, 1, 4], &mut out, &[1, 1, 2]);
    assert_eq!(out, [-5, 7]);
    let params = PoolParams { kind: PoolKind::Avg { count_include_pad: true }, ..params };
    let x = [60000.0, 60000.0].map(f16::from_f32);
    let mut out = [f16::ZERO];
    pool(&Serial, params, &x, &[1, 1, 2], &mut out, &[1, 1, 1]);
    assert_eq!(out[0].to_f32(), 60000.0);
}
