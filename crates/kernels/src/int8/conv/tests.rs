//! Convolutions of bytes against their definition.

use super::*;
use crate::blocked::Halo;
use crate::int8::{AddedBytes, EachSum, Function, ScaledSums, from_pixels, to_pixels};
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
        for &level in Level::ALL {
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
                level,
                pixels: None,
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
                assert_eq!(out, want, "{level:?} {groups} {stride} {pad} {dilate}");
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

const fn square(n: usize) -> [usize; 3] {
    [1, n, n]
}

const LAYERS: [Layer; 24] = [
    (3, 64, 1, square(15), 7, 2, 3),
    (64, 128, 1, square(7), 1, 1, 0),
    (35, 70, 1, square(14), 3, 1, 1),
    (24, 24, 24, square(9), 3, 1, 1),
    (130, 130, 130, square(7), 3, 2, 1),
    (70, 70, 70, [1, 5, 8], 3, 1, 1),
    (66, 66, 66, square(10), 3, 3, 1),
    (70, 70, 70, square(6), 5, 1, 2),
    (6, 12, 6, square(6), 3, 1, 1),
    (20, 40, 4, square(6), 3, 1, 1),
    // Groups whose filters are no parts of a tile.
    (16, 68, 4, square(6), 3, 1, 1),
    (8, 80, 2, square(6), 1, 1, 0),
    (40, 240, 10, square(5), 3, 2, 1),
    (8, 20, 1, square(6), 2, 1, 1),
    (16, 1, 1, square(1), 1, 1, 0),
    (17, 33, 1, square(20), 1, 2, 0),
    // Bands of many pixels, and few pixels after them.
    (20, 100, 1, [1, 14, 14], 1, 1, 0),
    // Rows that are copied in parts.
    (64, 16, 1, square(20), 1, 1, 0),
    (256, 16, 1, [1, 3, 70], 3, 1, 1),
    // Tiles of transforms that end within the output, and channels in several parts.
    (40, 40, 1, square(7), 3, 1, 1),
    (130, 33, 1, [1, 9, 13], 3, 1, 1),
    (33, 64, 1, square(11), 3, 1, 0),
    (34, 65, 1, [1, 8, 30], 3, 1, 2),
    // Many taps.
    (66, 66, 66, square(8), 8, 1, 4),
];

/// A layer on three images.
fn conv_of((channels, filters, groups, input, kernel, stride, pad): Layer, level: Level) -> Int8Conv {
    let output = [1, 2].map(|axis| (input[axis] + 2 * pad - kernel) / stride + 1);
    Int8Conv {
        batch: 3,
        channels,
        filters,
        groups,
        input,
        output: [1, output[0], output[1]],
        kernel: [1, kernel, kernel],
        stride: [1, stride, stride],
        pad: [0, pad, pad],
        dilate: [1; 3],
        level,
        pixels: None,
    }
}

/// The ways in which work is shared, one after the other: each is taken by a third of the cases, which
/// are many.
fn shares() -> impl FnMut() -> &'static dyn Par {
    let mut next = 0;
    move || {
        next += 1;
        [&Serial as &dyn Par, &Reverse, &Threads(3)][next % 3]
    }
}

/// Biases and factors of filters.
fn scales(filters: usize) -> ScaledSums {
    let factor = (0..filters).map(|f| 1e-3 * (1 + f % 5) as f32).collect();
    let bias = (0..filters).map(|f| (f * 91 % 400) as f32 - 200.0).collect();
    ScaledSums::new(bias, factor)
}

#[test]
fn every_shape_of_layer_agrees_with_the_definition_in_bytes_with_and_without_an_addend() {
    let mut shares = shares();
    for layer in LAYERS {
        let (channels, filters, groups, input, kernel, ..) = layer;
        let any = conv_of(layer, Level::Portable);
        let (output, taps) = (any.output, kernel * kernel);
        let size = 3 * filters * output[1] * output[2];
        let (data, addend) = (bytes(3 * channels * input[1] * input[2], 1), bytes(size, 3));
        let weights: Vec<i8> = bytes(filters * channels / groups * taps, 2).iter().map(|b| *b as i8).collect();
        let factor = |f: usize| 1e-3 * (1 + f % 5) as f32;
        let bias = |f: usize| (f * 91 % 400) as f32 - 200.0;
        for signed in [false, true] {
            let of = |b: &u8| if signed { i32::from(*b as i8) } else { i32::from(*b) };
            let sums = reference(&any, &data.iter().map(of).collect::<Vec<_>>(), &weights);
            for added in [None, Some(true), Some(false)] {
                let result = |i: usize| {
                    let f = i / (output[1] * output[2]) % filters;
                    let v = ((sums[i] as f32 + bias(f)) * factor(f)).max(0.0);
                    let byte = |signed| if signed { f32::from(addend[i] as i8) } else { f32::from(addend[i]) };
                    let v = added.map_or(v, |signed| byte(signed).mul_add(0.25, v).min(127.0));
                    u8::round_to(v)
                };
                let want: Vec<u8> = (0..size).map(result).collect();
                assert!(
                    size < 9 || want.iter().collect::<std::collections::BTreeSet<_>>().len() > 3,
                    "{channels} {filters}"
                );
                let added_bytes = added.map(|signed| AddedBytes { signed, factor: 0.25, most: 127.0 });
                let mut epilogue = scales(filters);
                epilogue.functions[0] = Some(Function::Relu);
                epilogue.addend = added_bytes;
                for &level in Level::ALL {
                    let conv = conv_of(layer, level);
                    let mut packed = vec![0x5a; conv.packed_len().unwrap()];
                    conv.pack(&weights, &mut packed);
                    let mut workspace = vec![0xa5; conv.workspace_len().unwrap()];
                    let mut out = vec![7u8; size];
                    let operands = Int8ConvOperands {
                        data: Rows { bytes: &data, signed },
                        addend: added.map(|signed| Rows { bytes: &addend, signed }),
                        packed: &packed,
                        epilogue: &epilogue,
                    };
                    conv.run(shares(), &operands, &mut out, &mut workspace);
                    assert!(out == want, "{level:?}: {channels} {filters} {groups} {kernel} {signed} {added:?}");
                }
            }
        }
    }
}

/// Planes, or pixels with a halo.
fn in_layout(shape: Option<BlockedShape>, planes: &[u8], signed: bool) -> Vec<u8> {
    let Some(shape) = shape else { return planes.to_vec() };
    let mut pixels = vec![0xa5; shape.len()];
    to_pixels(&Threads(2), Rows { bytes: planes, signed }, shape, &mut pixels);
    pixels
}

/// Checks that pixels hold what a layer makes in planes, with a halo of zeros.
fn check_pixels<T: Int8Result + PartialEq>(
    layer: Layer,
    level: Level,
    par: &dyn Par,
    signed: bool,
    added: Option<bool>,
) {
    let planes = conv_of(layer, level);
    let (channels, filters, groups, input, ..) = layer;
    let [n, h, w] = [3, planes.output[1], planes.output[2]];
    let (data, addend) = (bytes(n * channels * input[1] * input[2], 1), bytes(n * filters * h * w, 3));
    let weights: Vec<i8> = bytes(filters * channels / groups * planes.taps(), 2).iter().map(|b| *b as i8).collect();
    let mut epilogue = scales(filters);
    // Limits before the addend, and none.
    epilogue.functions = [added.filter(|signed| *signed).map(|_| Function::Clip(-9.5, 30.0)), Some(Function::Relu)];
    epilogue.addend = added.map(|signed| AddedBytes { signed, factor: 0.25, most: 127.0 });
    let run = |conv: &Int8Conv, data: &[u8], addend: &[u8], len: usize| {
        let mut out = vec![T::round_to(77.0); len];
        let mut packed = vec![0x5a; conv.packed_len().unwrap()];
        conv.pack(&weights, &mut packed);
        let operands = Int8ConvOperands {
            data: Rows { bytes: data, signed },
            addend: added.map(|signed| Rows { bytes: addend, signed }),
            packed: &packed,
            epilogue: &epilogue,
        };
        conv.run(par, &operands, &mut out, &mut vec![0xa5; conv.workspace_len().unwrap()]);
        bytemuck::cast_slice::<T, u8>(&out).to_vec()
    };
    let want = run(&planes, &data, &addend, n * filters * h * w);
    let halo = |some: usize| Halo { top: some, left: some + 1, bottom: some + 2, right: some };
    let output = BlockedShape::pixels(n, filters, h, w, halo(1));
    let other = BlockedShape::pixels(n, filters, h, w, halo(0));
    let pad = layer.6;
    let input = BlockedShape::pixels(n, channels, input[1], input[2], halo(pad));
    let whole_groups = groups == 1 || planes.is_depthwise() || (channels / groups).is_multiple_of(GROUP);
    for from in [None, Some(input)].into_iter().take(1 + usize::from(whole_groups)) {
        let conv = Int8Conv { pixels: Some(PixelForm { data: from, output, addend: other }), ..planes.clone() };
        let added_signed = added.unwrap_or(false);
        let pixels =
            run(&conv, &in_layout(from, &data, signed), &in_layout(Some(other), &addend, added_signed), output.len());
        let out_signed = T::SIGNED_BYTE == Some(true);
        let mut got = vec![0; want.len()];
        from_pixels(par, Rows { bytes: &pixels, signed: out_signed }, output, &mut got);
        assert!(got == want, "{level:?} {layer:?} {from:?} {signed} {added:?}");
        // All but the channels after the last are known.
        let expected = in_layout(Some(output), &want, out_signed);
        let known = |i: &usize| i % output.pixel() < filters;
        assert!((0..output.len()).filter(known).all(|i| pixels[i] == expected[i]), "{level:?} {layer:?}: the halo");
    }
}

#[test]
fn pixels_hold_what_planes_hold() {
    let mut shares = shares();
    for layer in LAYERS {
        for &level in Level::ALL {
            for signed in [false, true] {
                check_pixels::<u8>(layer, level, shares(), signed, None);
                check_pixels::<i8>(layer, level, shares(), signed, Some(signed));
                check_pixels::<u8>(layer, level, shares(), signed, Some(!signed));
            }
        }
    }
}

/// A byte that depends on all bits of a sum.
fn digest(sum: i32) -> u8 {
    sum.wrapping_mul(0x1e35_a7bd).to_be_bytes()[0]
}

/// Digests of the sums of a layer on an image of pixels, in planes, and the method of the layer.
fn digests(planes: &Int8Conv, par: &dyn Par, data: Rows<'_>, weights: &[i8]) -> (Vec<u8>, Option<&'static str>) {
    let Int8Conv { channels, filters, pad: [_, pad, _], .. } = *planes;
    let halo = Halo { top: pad, left: pad + 1, bottom: pad, right: pad };
    let from = BlockedShape::pixels(1, channels, planes.input[1], planes.input[2], halo);
    let output = BlockedShape::pixels(1, filters, planes.output[1], planes.output[2], Halo::default());
    let conv = Int8Conv { pixels: Some(PixelForm { data: Some(from), output, addend: output }), ..planes.clone() };
    let mut packed = vec![0x5a; conv.packed_len().unwrap()];
    conv.pack(weights, &mut packed);
    let operands = Int8ConvOperands {
        data: Rows { bytes: &in_layout(Some(from), data.bytes, data.signed), signed: data.signed },
        addend: None,
        packed: &packed,
        epilogue: &EachSum(|_, sum| digest(sum)),
    };
    let mut out = vec![0x5a; output.len()];
    conv.run(par, &operands, &mut out, &mut []);
    let mut digests = vec![0; filters * conv.output[1] * conv.output[2]];
    from_pixels(&Serial, Rows { bytes: &out, signed: false }, output, &mut digests);
    (digests, conv.method())
}

#[test]
fn sums_of_pixels_are_those_of_the_definition_however_large() {
    let small = (1..=7).flat_map(|size| (0..3).map(move |pad| (33, 40, 1, square(size), 3, 1, pad)));
    let small = small.filter(|(_, _, _, [_, size, _], _, _, pad)| size + 2 * pad >= 3);
    // Channels that are a part, and more than that, of both schemes.
    let large = [
        (112, 32, 1, square(9), 3, 1, 1),
        (128, 48, 1, [1, 13, 9], 3, 1, 1),
        (240, 32, 1, square(11), 3, 1, 0),
        (1830, 32, 1, square(5), 3, 1, 1),
    ];
    let threads: [&dyn Par; 3] = [&Serial, &Threads(2), &Threads(8)];
    let mut methods = std::collections::BTreeSet::new();
    for (i, layer) in small.chain(large).enumerate() {
        let any = Int8Conv { batch: 1, ..conv_of(layer, Level::Portable) };
        let (len, taps) = (any.channels * any.input[1] * any.input[2], any.channels * 9);
        let random: Vec<i8> = bytes(any.filters * taps, 2).iter().map(|b| *b as i8).collect();
        // Filters that add all products, or those of every second tap to the others' negatives.
        let largest = |i: usize| if (i / taps).is_multiple_of(2) || i.is_multiple_of(2) { -128i8 } else { 127 };
        let largest: Vec<i8> = (0..any.filters * taps).map(largest).collect();
        for (data, weights, signed) in [
            (bytes(len, 1), &random, i % 2 == 0),
            (vec![255; len], &largest, false),
            (vec![[0x80, 0x7f][i % 2]; len], &largest, true),
        ] {
            let number = |b: &u8| if signed { i32::from(*b as i8) } else { i32::from(*b) };
            let sums = reference(&any, &data.iter().map(number).collect::<Vec<_>>(), weights);
            let want: Vec<u8> = sums.into_iter().map(digest).collect();
            for &level in Level::ALL {
                let conv = Int8Conv { level, ..any.clone() };
                let (got, method) = digests(&conv, threads[i % 3], Rows { bytes: &data, signed }, weights);
                assert!(got == want, "{level:?} {layer:?} {signed} {method:?}");
                methods.extend(method);
            }
        }
    }
    if Level::Avx2.or_best() == Level::Avx2 {
        assert_eq!(methods.into_iter().collect::<Vec<_>>(), ["winograd-f2", "winograd-f4"]);
    }
}
