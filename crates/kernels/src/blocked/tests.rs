//! Pooling, element-wise work and slices of channels, compared with their definitions on NCHW.

use super::*;
use crate::activation::Activation;
use crate::isa::Isa;
use crate::par::{Par, Serial};
use crate::testing::{Reverse, Threads};
use proptest::prelude::*;

/// Multiples of 1/8 between -2 and 2: sums of a few are exact.
fn values(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 40) % 33) as f32 / 8.0 - 2.0
        })
        .collect()
}

fn halo(seed: usize) -> Halo {
    Halo { top: seed % 3, left: seed / 3 % 3, bottom: seed / 9 % 3, right: seed / 27 % 3 }
}

/// A tensor from NCHW values, in a buffer that held NaN.
fn blocked(shape: BlockedShape, x: &[f32]) -> Vec<f32> {
    let mut data = vec![f32::NAN; shape.len()];
    to_blocked(Isa::Portable, x, &mut BlockedMut::new(shape, &mut data), &Serial);
    data
}

/// NCHW values of a tensor that `write` filled, having checked that its halo is zero.
fn written(shape: BlockedShape, write: impl Fn(&mut BlockedMut<'_>)) -> Vec<f32> {
    let mut data = vec![f32::NAN; shape.len()];
    write(&mut BlockedMut::new(shape, &mut data));
    let mut out = vec![0.0; shape.n * shape.c * shape.h * shape.w];
    from_blocked(Isa::Portable, Blocked::new(shape, &data), &mut out, &Serial);
    let clean = blocked(shape, &out);
    for block in 0..shape.n * shape.blocks() {
        for row in 0..shape.halo.top + shape.h + shape.halo.bottom {
            for col in 0..shape.halo.left + shape.w + shape.halo.right {
                let inside = (shape.halo.top..shape.halo.top + shape.h).contains(&row)
                    && (shape.halo.left..shape.halo.left + shape.w).contains(&col);
                let at = block * shape.block_stride() + row * shape.row_stride() + col * BLOCK;
                assert!(inside || data[at..at + BLOCK] == clean[at..at + BLOCK], "halo at ({row}, {col})");
            }
        }
    }
    out
}

/// Pooling from its definition.
fn pool_reference(kind: PoolKind, p: Pool2dParams, [n, c, h, w]: [usize; 4], out: [usize; 2], x: &[f32]) -> Vec<f32> {
    let mut y = Vec::new();
    for plane in x.chunks_exact(h * w).take(n * c) {
        for r in 0..out[0] {
            for s in 0..out[1] {
                let (mut sum, mut max, mut inside, mut padded) = (0.0, f32::MIN, 0, 0);
                for i in 0..p.kernel[0] {
                    for j in 0..p.kernel[1] {
                        let (row, col) = (r * p.stride[0] + i, s * p.stride[1] + j);
                        padded += usize::from(row < h + 2 * p.pad[0] && col < w + 2 * p.pad[1]);
                        if (p.pad[0]..p.pad[0] + h).contains(&row) && (p.pad[1]..p.pad[1] + w).contains(&col) {
                            let v = plane[(row - p.pad[0]) * w + col - p.pad[1]];
                            sum += v;
                            max = max.max(v);
                            inside += 1;
                        }
                    }
                }
                y.push(match kind {
                    PoolKind::Max => max,
                    PoolKind::Sum => sum,
                    PoolKind::Average { count_pad: true } => sum / padded as f32,
                    PoolKind::Average { count_pad: false } => sum / inside as f32,
                });
            }
        }
    }
    y
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn pooling_equals_its_definition_on_every_instruction_set(
        n in 1usize..3, c in 1usize..36, h in 1usize..14, w in 1usize..14,
        kernel in [1usize..5, 1usize..5], stride in [1usize..4, 1usize..4], pad in [0usize..3, 0usize..3],
        ceil: bool, kind in 0usize..4, halos in 0usize..6561,
    ) {
        // Padding beyond the kernel would make windows without a value.
        let pad = [pad[0].min(kernel[0] - 1), pad[1].min(kernel[1] - 1)];
        let params = Pool2dParams { kernel, stride, pad };
        let kind = [
            PoolKind::Max, PoolKind::Sum, PoolKind::Average { count_pad: true }, PoolKind::Average { count_pad: false },
        ][kind];
        let along = |i: usize, size: usize| {
            let room = (size + 2 * pad[i]).checked_sub(kernel[i])?;
            let windows = room / stride[i] + 1 + usize::from(ceil && room % stride[i] != 0);
            // A window that would start beyond the image has no value.
            Some(windows.min((size + pad[i] - 1) / stride[i] + 1))
        };
        let (Some(oh), Some(ow)) = (along(0, h), along(1, w)) else { return Ok(()) };
        let xs = BlockedShape::new(n, c, h, w, halo(halos / 81));
        let ys = BlockedShape::new(n, c, oh, ow, halo(halos));
        let x = values(halos as u64, n * c * h * w);
        let data = blocked(xs, &x);
        let expected = pool_reference(kind, params, [n, c, h, w], [oh, ow], &x);
        for isa in Isa::ALL {
            for par in [&Serial as &dyn Par, &Reverse] {
                let y = written(ys, |y| pool(isa, kind, params, Blocked::new(xs, &data), y, par));
                for (got, want) in y.iter().zip(&expected) {
                    prop_assert!((got - want).abs() <= 1e-6, "{isa} {kind:?}: {got}, expected {want}");
                }
            }
        }
    }

    #[test]
    fn element_wise_work_equals_its_definition_on_every_instruction_set(
        n in 1usize..3, c in 1usize..36, h in 1usize..9, w in 1usize..9, halos in 0usize..6561,
        scale in 0usize..3, shift: bool, add: bool, relu: bool,
    ) {
        let shape = |h_: usize| BlockedShape::new(n, c, h, w, halo(h_));
        let (x, other) = (values(1, n * c * h * w), values(2, n * c * h * w));
        let (scales, shifts) = (values(3, n * c), values(4, c));
        let scales = [None, Some(&scales[..c]), Some(&scales[..])][scale];
        let (x_data, other_data) = (blocked(shape(halos / 81), &x), blocked(shape(halos / 9), &other));
        let op = Pointwise {
            scale: scales,
            shift: shift.then_some(&shifts[..]),
            add: add.then(|| Blocked::new(shape(halos / 9), &other_data)),
            activation: if relu { Activation::Relu } else { Activation::None },
        };
        let expected: Vec<f32> = (0..x.len()).map(|at| {
            let (image, channel) = (at / (c * h * w), at / (h * w) % c);
            let scaled = x[at] * scales.map_or(1.0, |s| s[(image * c + channel) % s.len()]);
            let v = scaled + if shift { shifts[channel] } else { 0.0 } + if add { other[at] } else { 0.0 };
            if relu { v.max(0.0) } else { v }
        }).collect();
        for isa in Isa::ALL {
            let y = written(shape(halos), |y| pointwise(isa, Blocked::new(shape(halos / 81), &x_data), op, y, &Reverse));
            prop_assert_eq!(&y, &expected);
        }
    }
}

#[test]
fn pooling_over_the_whole_image_gives_one_pixel_with_the_same_bits_whoever_runs_it() {
    let (xs, ys) = (BlockedShape::new(2, 512, 7, 7, halo(40)), BlockedShape::new(2, 512, 1, 1, Halo::default()));
    let data = blocked(xs, &values(5, 2 * 512 * 49));
    let params = Pool2dParams { kernel: [7, 7], stride: [1, 1], pad: [0, 0] };
    let kind = PoolKind::Average { count_pad: true };
    let run = |par: &dyn Par| written(ys, |y| pool(Isa::detect(), kind, params, Blocked::new(xs, &data), y, par));
    assert_eq!(run(&Serial), run(&Threads(3)));
}

#[test]
fn max_pooling_keeps_infinities_and_passes_over_nan() {
    let shape = BlockedShape::new(1, 1, 1, 3, Halo::default());
    let data = blocked(shape, &[f32::NAN, f32::NEG_INFINITY, f32::INFINITY]);
    let params = Pool2dParams { kernel: [1, 2], stride: [1, 1], pad: [0, 0] };
    let out = BlockedShape::new(1, 1, 1, 2, Halo::default());
    for isa in Isa::ALL {
        let y = written(out, |y| pool(isa, PoolKind::Max, params, Blocked::new(shape, &data), y, &Serial));
        assert_eq!(y, [f32::MIN, f32::INFINITY]);
    }
}

/// A halo of zeros, and the same shape in lines or not.
fn shape_of(n: usize, c: usize, size: [usize; 2], halos: usize, lines: bool) -> BlockedShape {
    let make = if lines { BlockedShape::lines } else { BlockedShape::new };
    make(n, c, size[0], size[1], halo(halos))
}

/// A tensor from NCHW values in one of the forms, in a buffer that held NaN.
fn data_of(shape: &BlockedShape, x: &[f32]) -> Vec<f32> {
    let BlockedShape { n, c, h, w, halo, .. } = *shape;
    let blocks = BlockedShape::new(n, c, h, w, halo);
    let mut data = blocked(blocks, x);
    lines::testing::fill_unused(&blocks, &mut data, f32::NAN);
    if shape.in_lines() { lines::testing::to_lines(shape, &data).1 } else { data }
}

/// The numbers, halo included, that `write` writes to a tensor in one of the forms, in blocks.
fn blocks_of(shape: &BlockedShape, write: impl Fn(&mut BlockedMut<'_>)) -> Vec<f32> {
    let mut data = vec![f32::NAN; shape.len()];
    write(&mut BlockedMut::new(*shape, &mut data));
    if shape.in_lines() {
        assert!(
            data.iter().all(|pair| bytemuck::cast::<f32, [u16; 2]>(*pair).iter().all(|half| half & 0x7f80 < 0x7f80))
        );
        return lines::testing::to_blocks(shape, &data).1;
    }
    lines::testing::fill_unused(shape, &mut data, 0.0);
    data
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn pooling_and_element_wise_work_on_lines_give_the_rounded_numbers_of_blocks(
        n in 1usize..3, c in 1usize..100, h in 1usize..12, w in 1usize..12,
        kernel in [1usize..4, 1usize..4], stride in [1usize..4, 1usize..4], pad in [0usize..2, 0usize..2],
        kind in 0usize..4, halos in 0usize..6561, lines: [bool; 3], scale: bool, add: bool,
    ) {
        let pad = [pad[0].min(kernel[0] - 1), pad[1].min(kernel[1] - 1)];
        let params = Pool2dParams { kernel, stride, pad };
        let kind = [
            PoolKind::Max, PoolKind::Sum, PoolKind::Average { count_pad: true }, PoolKind::Average { count_pad: false },
        ][kind];
        let out = [0, 1].map(|i| ([h, w][i] + 2 * pad[i]).checked_sub(kernel[i]).map(|room| room / stride[i] + 1));
        let [Some(oh), Some(ow)] = out else { return Ok(()) };
        // Numbers that bf16 holds.
        let (x, other) = (values(halos as u64, n * c * h * w), values(2, n * c * h * w));
        let shapes = |size: [usize; 2], at: usize, lines: bool| shape_of(n, c, size, halos / [1, 81][at], lines);
        let rounded = |x: Vec<f32>, lines: bool| if lines { lines::testing::rounded(&x) } else { x };
        for isa in [Isa::Portable, Isa::detect()] {
            let run = |lines_in: bool, lines_out: bool| {
                let (xs, ys) = (shapes([h, w], 1, lines_in), shapes([oh, ow], 0, lines_out));
                let data = data_of(&xs, &x);
                blocks_of(&ys, |y| pool(isa, kind, params, Blocked::new(xs, &data), y, &Reverse))
            };
            prop_assert_eq!(rounded(run(false, false), lines[1]), run(lines[0], lines[1]), "{} {:?}", isa, kind);

            let (scales, shifts) = (values(3, c), values(4, c));
            let run = |lines: [bool; 3]| {
                let [xs, rs, ys] = [(1, lines[0]), (0, lines[2]), (0, lines[1])].map(|(at, l)| shapes([h, w], at, l));
                let [data, other] = [data_of(&xs, &x), data_of(&rs, &other)];
                let op = Pointwise {
                    scale: scale.then_some(&scales[..]),
                    shift: scale.then_some(&shifts[..]),
                    add: add.then(|| Blocked::new(rs, &other)),
                    activation: Activation::Relu,
                };
                blocks_of(&ys, |y| pointwise(isa, Blocked::new(xs, &data), op, y, &Reverse))
            };
            prop_assert_eq!(rounded(run([false; 3]), lines[1]), run(lines), "{} {:?}", isa, lines);

            let xs = shapes([h, w], 1, true);
            let mut plain = vec![f32::NAN; x.len()];
            from_blocked(isa, Blocked::new(xs, &data_of(&xs, &x)), &mut plain, &Reverse);
            prop_assert_eq!(&plain, &x, "{}", isa);
        }
    }
}
