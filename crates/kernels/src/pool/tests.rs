use super::*;
use crate::par::Serial;
use crate::testing::{Reverse, Threads, assert_close, random};
use crate::vectorize::Width;
use half::f16;

/// Stands for NaN, which equals nothing.
const NAN: f64 = 77.0;

/// Pooling of one plane with three spatial axes as MXNet defines it; `three`: and not of fewer.
fn by_definition(
    kind: PoolKind,
    three: bool,
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
        let (mut values, mut padded, mut inside) = (vec![], 1, 1);
        let start = |a: usize| (o[a] * stride[a]) as isize - pad[a] as isize;
        for a in 0..3 {
            let end = start(a) + kernel[a] as isize;
            padded *= end.min((size[a] + pad[a]) as isize) - start(a);
            inside *= end.min(size[a] as isize) - start(a).max(0);
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
            PoolKind::Avg { count_include_pad } if three && 0 == if count_include_pad { padded } else { inside } => NAN,
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
                    let values = by_definition(kind, rank == 3, three(kernel, 1), s, three(pad, 0), size3, out3, plane);
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
            let first: Vec<f32> = first.iter().map(|v| if v.is_nan() { NAN as f32 } else { *v }).collect();
            let (got, want): (Vec<f32>, Vec<f64>) =
                first.iter().zip(want).filter(|p| *p.0 != f32::MIN || p.1 != f32::MIN as f64).unzip();
            assert_close(&got, &want, 1e-6);
            for par in [&Reverse as &dyn Par, &Threads(3)] {
                let mut again = vec![f32::NAN; first.len()];
                pool(par, params, &x, &shaped(size), &mut again, &shaped(&out));
                assert!(first.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits() || b.is_nan()));
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

/// Size of a plane, kernel, stride, padding and convention.
type Geometry = ([usize; 3], [usize; 3], [usize; 3], [usize; 3], Convention);

/// Sizes, kernel, stride, padding and convention of poolings whose rows, or planes, are pooled in
/// vectors written out.
fn in_vectors() -> Vec<Geometry> {
    let mut all = vec![];
    for width in [4, 8, 15, 16, 17, 33, 49, 112] {
        for (kernel, stride, pad) in [
            (2, 2, 0),
            (2, 2, 1),
            (3, 2, 1),
            (3, 2, 0),
            (3, 1, 1),
            (2, 1, 0),
            (4, 1, 2),
            (5, 2, 2),
            (5, 3, 0),
            (2, 4, 1),
        ] {
            for convention in [Convention::Valid, Convention::Full] {
                all.push((
                    [1, 9, width.max(kernel)],
                    [1, kernel, kernel],
                    [1, stride, stride],
                    [0, pad, pad],
                    convention,
                ));
            }
        }
    }
    all.push(([5, 6, 40], [2, 5, 3], [2, 1, 2], [1, 2, 1], Convention::Full));
    all.push(([4, 5, 21], [3, 2, 4], [1, 3, 1], [1, 0, 3], Convention::Valid));
    for size in [[1, 1, 1], [1, 3, 4], [1, 7, 7], [2, 5, 3], [1, 32, 32], [1, 40, 40]] {
        all.push((size, size, [1; 3], [0; 3], Convention::Valid));
    }
    all
}

/// Pools as many planes as are given, in the shape of a volume.
fn pooled<T: Element>(
    par: &dyn Par,
    kind: PoolKind,
    (size, kernel, stride, pad, convention): &([usize; 3], [usize; 3], [usize; 3], [usize; 3], Convention),
    x: &[T],
) -> Vec<T> {
    let out: [usize; 3] =
        std::array::from_fn(|a| pooled_size(size[a], kernel[a], stride[a], pad[a], *convention).unwrap());
    let planes = x.len() / size.iter().product::<usize>();
    let mut y = vec![T::ONE; planes * out.iter().product::<usize>()];
    let params = PoolParams { kind, kernel, stride, pad, channels_last: false };
    // Two axes, where the mean of nothing is 0, if there are no more.
    let axes = if [size[0], kernel[0], pad[0]] == [1, 1, 0] { 1 } else { 0 };
    let params = PoolParams { kernel: &kernel[axes..], stride: &stride[axes..], pad: &pad[axes..], ..params };
    let shape = |spatial: &[usize]| [&[1, planes], &spatial[axes..]].concat();
    pool(par, params, x, &shape(size), &mut y, &shape(&out));
    y
}

#[test]
fn single_and_half_precision_agree_with_double_precision_at_every_width() {
    for layer in &in_vectors() {
        let halves: Vec<f16> =
            random(19 * layer.0.iter().product::<usize>(), 4).iter().map(|v| f16::from_f32(*v)).collect();
        let singles: Vec<f32> = halves.iter().map(|v| v.to_f32()).collect();
        let doubles: Vec<f64> = halves.iter().map(|v| v.to_f64()).collect();
        for kind in &KINDS[..4] {
            let want: Vec<f64> = pooled(&Serial, *kind, layer, &doubles);
            // The lowest number of a type is what windows of padding have.
            let lowest = |v: f64, own: f64| if v == f64::MIN { own } else { v };
            for width in Width::all() {
                let (single, half) =
                    width.limit(|| (pooled(&Serial, *kind, layer, &singles), pooled(&Serial, *kind, layer, &halves)));
                for ((want, single), half) in want.iter().zip(single).zip(half) {
                    if want.is_nan() {
                        assert!(single.is_nan() && half.is_nan(), "{kind:?} {layer:?} {width:?}");
                        continue;
                    }
                    let (want_single, want_half) =
                        (lowest(*want, f64::from(f32::MIN)), lowest(*want, f64::from(f16::MIN)));
                    let allowed =
                        if *kind == PoolKind::Max { [0.0; 2] } else { [2e-6, 6e-4].map(|e| e * want.abs().max(1.0)) };
                    assert!(
                        (f64::from(single) - want_single).abs() <= allowed[0],
                        "{kind:?} {layer:?} {width:?}: {single} {want}"
                    );
                    assert!(
                        (half.to_f64() - want_half).abs() <= allowed[1],
                        "{kind:?} {layer:?} {width:?}: {half} {want}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_plane_has_the_same_bits_wherever_it_stands_and_whatever_is_beside_it() {
    for layer in &in_vectors() {
        let len = layer.0.iter().product();
        let plane = random(len, 8);
        for kind in [PoolKind::Max, PoolKind::Avg { count_include_pad: false }] {
            let alone: Vec<f32> = pooled(&Serial, kind, layer, &plane);
            for place in [0, 3, 15, 16, 20] {
                let mut x = vec![f32::NAN; 21 * len];
                x[place * len..][..len].copy_from_slice(&plane);
                for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
                    let all = pooled(par, kind, layer, &x);
                    let same = all[place * alone.len()..].iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{kind:?} {layer:?}, plane {place}");
                    let x: Vec<f16> = x.iter().map(|v| f16::from_f32(*v)).collect();
                    let halves = pooled(par, kind, layer, &x);
                    let half = pooled(&Serial, kind, layer, &x[place * len..][..len]);
                    let same = halves[place * alone.len()..].iter().zip(&half).all(|(a, b)| a.to_bits() == b.to_bits());
                    assert!(same, "{kind:?} {layer:?}, plane {place} of half precision");
                }
            }
        }
    }
}

#[test]
fn the_largest_of_a_window_is_never_nan_and_no_less_than_the_lowest_number() {
    for layer in [
        ([1, 1, 8], [1, 1, 2], [1, 1, 2], [0; 3], Convention::Valid),
        ([1, 2, 4], [1, 2, 4], [1; 3], [0; 3], Convention::Valid),
    ] {
        for width in Width::all() {
            let x = [f32::NAN, 3.0, f32::NAN, f32::NAN, f32::NEG_INFINITY, f32::NEG_INFINITY, f32::INFINITY, f32::NAN];
            let halves = x.map(f16::from_f32);
            let (single, half) = width.limit(|| {
                (pooled(&Serial, PoolKind::Max, &layer, &x), pooled(&Serial, PoolKind::Max, &layer, &halves))
            });
            if single.len() == 4 {
                assert_eq!(single, [3.0, f32::MIN, f32::MIN, f32::INFINITY], "{width:?}");
                assert_eq!(half, [f16::from_f32(3.0), f16::MIN, f16::MIN, f16::INFINITY], "{width:?}");
            } else {
                assert_eq!((single[0], half[0]), (f32::INFINITY, f16::INFINITY), "{width:?}");
            }
        }
    }
}

#[test]
fn poolings_without_outputs_are_nothing() {
    let params =
        PoolParams { kind: PoolKind::Max, kernel: &[1, 2], stride: &[1, 2], pad: &[0, 0], channels_last: false };
    pool::<f16>(&Serial, params, &[], &[1, 2, 0, 8], &mut [], &[1, 2, 0, 4]);
    pool::<f32>(&Serial, params, &[], &[0, 2, 3, 8], &mut [], &[0, 2, 3, 4]);
}

/// Recorded from MXNet 1.9.1, with `pooling_convention='full'`.
#[test]
fn the_mean_of_no_places_is_nan_where_there_are_three_spatial_axes() {
    let mean = |size: &[usize], kernel: &[usize], stride: &[usize], out: &[usize], padded: bool| {
        let shape = [&[1, 1], size].concat();
        let x: Vec<f32> = (1..=shape.iter().product()).map(|v| v as f32).collect();
        let pad = vec![0; size.len()];
        let kind = PoolKind::Avg { count_include_pad: padded };
        let params = PoolParams { kind, kernel, stride, pad: &pad, channels_last: false };
        let mut result = vec![5f32; out.iter().product()];
        pool(&Serial, params, &x, &shape, &mut result, &[&[1, 1], out].concat());
        result.iter().map(|v| if v.is_nan() { -1.0 } else { *v }).collect::<Vec<f32>>()
    };
    for padded in [true, false] {
        assert_eq!(mean(&[1, 3, 1], &[1, 1, 1], &[1, 3, 1], &[1, 2, 1], padded), [1.0, -1.0]);
        // A window that begins later has fewer places than none.
        assert_eq!(mean(&[1, 3, 1], &[1, 1, 1], &[1, 4, 1], &[1, 2, 1], padded), [1.0, 0.0]);
        assert_eq!(mean(&[1, 3, 3], &[1, 1, 1], &[1, 4, 3], &[1, 2, 2], padded), [1.0, -1.0, 0.0, -1.0]);
        assert_eq!(mean(&[3, 1], &[1, 1], &[3, 1], &[2, 1], padded), [1.0, 0.0]);
        assert_eq!(mean(&[3], &[1], &[3], &[2], padded), [1.0, 0.0]);
    }
    let wide = mean(&[2, 3, 9], &[1, 1, 2], &[1, 3, 1], &[2, 2, 8], true);
    assert_eq!(wide[..10], [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, -1.0, -1.0]);
}
