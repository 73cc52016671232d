//! Convolutions of bytes against their definition.

use super::*;
use crate::int8::{AddedBytes, EachSum, Function, ScaledSums};
use crate::par::Serial;
use crate::testing::{Reverse, Threads};

fn reference(conv: &Int8Conv, data: &[i32], weights: &[i8]) -> Vec<i32> {
    let [channels, filters] = [conv.channels, conv.filters].map(|n| n / conv.groups);
    let mut out = Vec::new();
    for n in 0..conv.batch {
        for f in 0..conv.filters {
            for y in 0..conv.output[1] {
                for x in 0..conv.output[2] {
                    let mut sum = 0;
                    for c in 0..channels {
                        for i in 0..conv.kernel[1] {
                            for j in 0..conv.kernel[2] {
                                let [h, w] = [conv.input[1] as isize, conv.input[2] as isize];
                                let at = |axis: usize, out: usize, tap: usize| {
                                    (out * conv.stride[axis] + tap * conv.dilate[axis]) as isize
                                        - conv.pad[axis] as isize
                                };
                                let (r, s) = (at(1, y, i), at(2, x, j));
                                if (0..h).contains(&r) && (0..w).contains(&s) {
                                    let c_in = f / filters * channels + c;
                                    let d = data[((n * conv.channels + c_in) as isize * h * w + r * w + s) as usize];
                                    let k = ((f * channels + c) * conv.kernel[1] + i) * conv.kernel[2] + j;
                                    sum += d * i32::from(weights[k]);
                                }
                            }
                        }
                    }
                    out.push(sum);
                }
            }
        }
    }
    out
}

#[test]
fn windows_groups_padding_and_dilation_agree_with_the_definition_on_every_set() {
    for (groups, stride, pad, dilate, signed) in
        [(1, 1, 1, 1, false), (2, 2, 0, 1, true), (4, 1, 2, 2, true), (1, 3, 1, 1, true)]
    {
        let (size, kernel) = (9, 3);
        let outputs = (size + 2 * pad - dilate * (kernel - 1) - 1) / stride + 1;
        for isa in Isa::ALL {
            let conv = Int8Conv {
                batch: 2,
                channels: 4,
                filters: 20,
                groups,
                input: [1, size, size],
                output: [1, outputs, outputs],
                kernel: [1, kernel, kernel],
                stride: [1, stride, stride],
                pad: [0, pad, pad],
                dilate: [1, dilate, dilate],
                isa,
            };
            let data: Vec<u8> = (0..2 * 4 * size * size).map(|i| (i * 37 % 251) as u8).collect();
            let weights: Vec<i8> = (0..20 * 4 / groups * 9).map(|i| (i * 53 % 255) as u8 as i8).collect();
            let wide = data.iter().map(|b| if signed { i32::from(*b as i8) } else { i32::from(*b) });
            let want = reference(&conv, &wide.collect::<Vec<_>>(), &weights);
            let mut packed = vec![0; conv.packed_len().unwrap()];
            conv.pack(&weights, &mut packed);
            for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
                let mut out = vec![i32::MIN; want.len()];
                let mut workspace = vec![0xa5; conv.workspace_len().unwrap()];
                let mut run = |epilogue: &dyn Epilogue<i32>, out: &mut [i32]| {
                    let data = Rows { bytes: &data, signed };
                    let operands = Int8ConvOperands { data, addend: None, packed: &packed, epilogue };
                    conv.run(par, &operands, out, &mut workspace);
                };
                run(&EachSum(|_, sum| sum), &mut out);
                assert_eq!(out, want, "{isa} {groups} {stride} {pad} {dilate}");
                // The epilogue is told of which filter a sum is.
                run(&EachSum(|f, _| f as i32), &mut out);
                assert!(out.iter().enumerate().all(|(i, f)| (i / (outputs * outputs) % 20) as i32 == *f));
            }
        }
    }
}

/// Numbers that look random, of all bytes.
fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| ((i + seed).wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

/// Channels, filters, groups, input, kernel, stride, pad.
type Layer = (usize, usize, usize, [usize; 3], usize, usize, usize);

#[test]
fn every_shape_of_layer_agrees_with_the_definition_in_bytes_with_and_without_an_addend() {
    let square = |n: usize| [1, n, n];
    let layers: [Layer; 11] = [
        (3, 64, 1, square(15), 7, 2, 3),
        (64, 128, 1, square(7), 1, 1, 0),
        (35, 70, 1, square(14), 3, 1, 1),
        (24, 24, 24, square(9), 3, 1, 1),
        (130, 130, 130, square(7), 3, 2, 1),
        (6, 12, 6, square(6), 3, 1, 1),
        (20, 40, 4, square(6), 3, 1, 1),
        (16, 1, 1, square(1), 1, 1, 0),
        (17, 33, 1, square(20), 1, 2, 0),
        // Rows that are copied in parts.
        (64, 16, 1, square(20), 1, 1, 0),
        (256, 16, 1, [1, 3, 70], 3, 1, 1),
    ];
    for (channels, filters, groups, input, kernel, stride, pad) in layers {
        let output = [1, 1, 2].map(|axis| (input[axis.min(2)] + 2 * pad - kernel) / stride + 1);
        let conv = |isa| Int8Conv {
            batch: 3,
            channels,
            filters,
            groups,
            input,
            output: [1, output[1], output[2]],
            kernel: [1, kernel, kernel],
            stride: [1, stride, stride],
            pad: [0, pad, pad],
            dilate: [1; 3],
            isa,
        };
        let any = conv(Isa::detect());
        let taps = kernel * kernel;
        let size = 3 * filters * output[1] * output[2];
        let (data, addend) = (bytes(3 * channels * input[1] * input[2], 1), bytes(size, 3));
        let weights: Vec<i8> = bytes(filters * channels / groups * taps, 2).iter().map(|b| *b as i8).collect();
        let factor: Vec<f32> = (0..filters).map(|f| 1e-3 * (1 + f % 5) as f32).collect();
        let bias: Vec<f32> = (0..filters).map(|f| (f * 91 % 400) as f32 - 200.0).collect();
        for signed in [false, true] {
            let of = |b: &u8| if signed { i32::from(*b as i8) } else { i32::from(*b) };
            let sums = reference(&any, &data.iter().map(of).collect::<Vec<_>>(), &weights);
            for added in [None, Some(true), Some(false)] {
                let result = |i: usize| {
                    let f = i / (output[1] * output[2]) % filters;
                    let v = ((sums[i] as f32 + bias[f]) * factor[f]).max(0.0);
                    let byte = |signed| if signed { f64::from(addend[i] as i8) } else { f64::from(addend[i]) };
                    let v = added.map_or(v, |signed| ((f64::from(v) + byte(signed) * 0.25) as f32).min(127.0));
                    u8::round_to(v)
                };
                let want: Vec<u8> = (0..size).map(result).collect();
                assert!(
                    size < 9 || want.iter().collect::<std::collections::BTreeSet<_>>().len() > 3,
                    "{channels} {filters}"
                );
                let added_bytes = added.map(|signed| AddedBytes { signed, factor: 0.25, most: 127.0 });
                let mut epilogue = ScaledSums::new(bias.clone(), factor.clone());
                epilogue.functions[0] = Some(Function::Relu);
                epilogue.addend = added_bytes;
                for isa in Isa::ALL {
                    let conv = conv(isa);
                    let mut packed = vec![0x5a; conv.packed_len().unwrap()];
                    conv.pack(&weights, &mut packed);
                    for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
                        let mut workspace = vec![0xa5; conv.workspace_len().unwrap()];
                        let mut out = vec![7u8; size];
                        let operands = Int8ConvOperands {
                            data: Rows { bytes: &data, signed },
                            addend: added.map(|signed| Rows { bytes: &addend, signed }),
                            packed: &packed,
                            epilogue: &epilogue,
                        };
                        conv.run(par, &operands, &mut out, &mut workspace);
                        assert!(out == want, "{isa}: {channels} {filters} {groups} {kernel} {signed} {added:?}");
                    }
                }
            }
        }
    }
}
