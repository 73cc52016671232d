use super::*;
use crate::par::Serial;
use crate::testing::{Reverse, Threads, assert_close, random};

struct Case {
    size: &'static [usize],
    kernel: &'static [usize],
    stride: &'static [usize],
    pad: &'static [usize],
    dilate: &'static [usize],
    channels: [usize; 2],
    groups: usize,
}

#[rustfmt::skip]
const CASES: [Case; 8] = [
    Case { size: &[11], kernel: &[3], stride: &[2], pad: &[1], dilate: &[1], channels: [3, 4], groups: 1 },
    Case { size: &[9], kernel: &[3], stride: &[1], pad: &[2], dilate: &[2], channels: [2, 2], groups: 1 },
    Case { size: &[8, 9], kernel: &[3, 3], stride: &[1, 1], pad: &[1, 1], dilate: &[1, 1], channels: [6, 8], groups: 2 },
    Case { size: &[7, 13], kernel: &[5, 2], stride: &[2, 3], pad: &[2, 0], dilate: &[1, 2], channels: [3, 5], groups: 1 },
    Case { size: &[6, 6], kernel: &[3, 3], stride: &[2, 2], pad: &[1, 1], dilate: &[1, 1], channels: [4, 4], groups: 4 },
    Case { size: &[5, 5], kernel: &[1, 1], stride: &[1, 1], pad: &[0, 0], dilate: &[1, 1], channels: [16, 3], groups: 1 },
    Case { size: &[4, 5, 6], kernel: &[2, 3, 3], stride: &[1, 2, 1], pad: &[1, 0, 1], dilate: &[1, 1, 2], channels: [2, 4], groups: 2 },
    Case { size: &[1, 1], kernel: &[3, 3], stride: &[1, 1], pad: &[1, 1], dilate: &[1, 1], channels: [3, 3], groups: 1 },
];

fn unravel(mut i: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for a in (0..shape.len()).rev() {
        index[a] = i % shape[a];
        i /= shape[a];
    }
    index
}

fn ravel(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |o, (i, n)| o * n + i)
}

/// Calls `f(index of x, index of weight, index of out)` for every product of a convolution of `x`
/// to `out`.
fn products(case: &Case, x: &[usize], out: &[usize], mut f: impl FnMut(usize, usize, usize)) {
    let per_group = x[1] / case.groups;
    let weight = [&[out[1], per_group], case.kernel].concat();
    for o in 0..out.iter().product() {
        let at = unravel(o, out);
        for k in 0..per_group * case.kernel.iter().product::<usize>() {
            let tap = unravel(k, &weight[1..]);
            let channel = at[1] / (out[1] / case.groups) * per_group + tap[0];
            let mut place = vec![at[0], channel];
            for a in 0..case.kernel.len() {
                let p = at[2 + a] * case.stride[a] + tap[1 + a] * case.dilate[a];
                if p >= case.pad[a] && p - case.pad[a] < x[2 + a] {
                    place.push(p - case.pad[a]);
                }
            }
            if place.len() == x.len() {
                f(ravel(&place, x), ravel(&[&[at[1]], tap.as_slice()].concat(), &weight), o);
            }
        }
    }
}

fn wide(v: &[f32]) -> Vec<f64> {
    v.iter().map(|&v| v as f64).collect()
}

/// Runs `f` under every way of splitting and expects the same bits; gives the result.
fn steady(len: usize, f: impl Fn(&dyn Par, &mut [f32])) -> Vec<f32> {
    let mut first = vec![f32::NAN; len];
    f(&Serial, &mut first);
    for par in [&Reverse as &dyn Par, &Threads(3)] {
        let mut again = vec![f32::NAN; len];
        f(par, &mut again);
        assert!(first.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
    first
}

#[test]
fn convolution_agrees_with_its_definition() {
    for case in &CASES {
        let Case { size, kernel, stride, pad, dilate, channels, groups } = *case;
        let sizes: Vec<usize> =
            (0..size.len()).map(|a| conv_size(size[a], kernel[a], stride[a], pad[a], dilate[a]).unwrap()).collect();
        let (shape, out_shape) = ([&[2, channels[0]], size].concat(), [&[2, channels[1]], sizes.as_slice()].concat());
        let taps: usize = kernel.iter().product();
        let x = random(shape.iter().product(), 1);
        let weight = random(channels[1] * channels[0] / groups * taps, 2);
        for bias in [None, Some(random(channels[1], 3))] {
            let pixels: usize = sizes.iter().product();
            let mut want: Vec<f64> = (0..out_shape.iter().product())
                .map(|i: usize| bias.as_ref().map_or(0.0, |b| b[i / pixels % channels[1]] as f64))
                .collect();
            let (wide_x, wide_w) = (wide(&x), wide(&weight));
            products(case, &shape, &out_shape, |i, w, o| want[o] += wide_x[i] * wide_w[w]);
            let p = ConvParams { kernel, stride, pad, dilate, groups };
            let got = steady(want.len(), |par, out| {
                convolution(par, p, &x, &shape, &weight, bias.as_deref(), out, &out_shape);
            });
            assert_close(&got, &want, 1e-6);
        }
    }
}

#[test]
fn deconvolution_is_convolution_run_backwards() {
    for case in &CASES {
        let Case { size, kernel, stride, pad, dilate, channels, groups } = *case;
        let sizes: Vec<usize> =
            (0..size.len()).map(|a| conv_size(size[a], kernel[a], stride[a], pad[a], dilate[a]).unwrap()).collect();
        // From the outputs of the convolution back to its inputs.
        let (shape, out_shape) = ([&[2, channels[1]], sizes.as_slice()].concat(), [&[2, channels[0]], size].concat());
        let taps: usize = kernel.iter().product();
        let x = random(shape.iter().product(), 1);
        let weight = random(channels[1] * channels[0] / groups * taps, 2);
        let bias = random(channels[0], 3);
        let pixels: usize = size.iter().product();
        let mut want: Vec<f64> =
            (0..out_shape.iter().product()).map(|i: usize| bias[i / pixels % channels[0]] as f64).collect();
        products(case, &out_shape, &shape, |o, w, i| want[o] += x[i] as f64 * weight[w] as f64);
        let p = ConvParams { kernel, stride, pad, dilate, groups };
        let got = steady(want.len(), |par, out| {
            deconvolution(par, p, &x, &shape, &weight, Some(&bias), out, &out_shape);
        });
        assert_close(&got, &want, 1e-6);
    }
}

#[test]
fn a_kernel_that_does_not_fit_has_no_size() {
    assert_eq!(conv_size(4, 3, 1, 0, 2), None);
    assert_eq!(conv_size(5, 3, 1, 0, 2), Some(1));
    assert_eq!(conv_size(5, 3, 0, 0, 1), None);
}
