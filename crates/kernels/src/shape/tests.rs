use super::*;
use crate::par::Serial;
use crate::testing::{Reverse, Threads};
use proptest::prelude::*;

fn numbers(shape: &[usize]) -> Vec<u32> {
    (0..shape.iter().product::<usize>() as u32).collect()
}

/// Calls `f` with every index of `shape`, in row-major order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &n in shape {
        all = all.iter().flat_map(|i| (0..n).map(move |k| [i.as_slice(), &[k]].concat())).collect();
    }
    all
}

fn at(x: &[u32], shape: &[usize], index: &[usize]) -> u32 {
    x[index.iter().zip(shape).fold(0, |o, (i, n)| o * n + i)]
}

fn shapes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1usize..5, 15usize..40], 1..5)
        .prop_filter("small enough", |s| s.iter().product::<usize>() < 60_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn transposing_moves_every_element_to_its_place(
        (shape, axes) in shapes().prop_flat_map(|s| {
            let axes: Vec<usize> = (0..s.len()).collect();
            (Just(s), Just(axes).prop_shuffle())
        })
    ) {
        let x = numbers(&shape);
        let out_shape: Vec<usize> = axes.iter().map(|&a| shape[a]).collect();
        let expected: Vec<u32> = indices(&out_shape).iter().map(|i| {
            let mut index = vec![0; shape.len()];
            axes.iter().zip(i).for_each(|(&a, &k)| index[a] = k);
            at(&x, &shape, &index)
        }).collect();
        for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
            let mut out = vec![u32::MAX; x.len()];
            transpose(par, &x, &shape, &axes, &mut out).unwrap();
            prop_assert_eq!(&out, &expected);
        }
    }

    #[test]
    fn slices_read_and_write_the_same_elements(
        (shape, picks) in shapes().prop_flat_map(|s| {
            let picks: Vec<_> = s.iter().map(|&n| (0..n, 1..=n, 1isize..4, any::<bool>())).collect();
            (Just(s), picks)
        })
    ) {
        let x = numbers(&shape);
        let (mut begin, mut step, mut part) = (vec![], vec![], vec![]);
        for (&n, &(b, _, s, negative)) in shape.iter().zip(&picks) {
            begin.push(b);
            step.push(if negative { -s } else { s });
            let room = if negative { b } else { n - 1 - b };
            part.push(room / s as usize + 1);
        }
        let expected: Vec<u32> = indices(&part).iter().map(|i| {
            let index: Vec<usize> =
                (0..i.len()).map(|k| (begin[k] as isize + i[k] as isize * step[k]) as usize).collect();
            at(&x, &shape, &index)
        }).collect();
        let mut out = vec![u32::MAX; expected.len()];
        slice(&Threads(2), &x, &shape, &begin, &step, &part, &mut out).unwrap();
        prop_assert_eq!(&out, &expected);
        let mut back = x.clone();
        let marks = vec![7_000_000; expected.len()];
        assign_slice(&marks, &part, &mut back, &shape, &begin, &step).unwrap();
        for (i, &v) in back.iter().enumerate() {
            prop_assert_eq!(v == 7_000_000, expected.contains(&(i as u32)));
        }
    }

    /// Axes in any order and direction, read in steps or again and again.
    #[test]
    fn strided_copies_read_every_element_from_its_place(
        axes in prop::collection::vec(
            (prop_oneof![1usize..6, 14usize..40, Just(150usize)], 0usize..4, any::<bool>()), 1..5
        ).prop_filter("small enough", |a| a.iter().map(|a| a.0).product::<usize>() < 60_000),
        order in Just((0..4usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        // Steps of the axes where these are laid out in `order`, every element `gap` times as far.
        let mut strides = vec![0isize; axes.len()];
        let (mut step, mut offset) = (1isize, 0usize);
        for axis in order.into_iter().filter(|axis| *axis < axes.len()) {
            let (n, gap, backwards) = axes[axis];
            strides[axis] = if backwards { -step } else { step } * gap as isize;
            if backwards {
                offset += (n - 1) * step as usize * gap;
            }
            step *= (n * gap.max(1)) as isize;
        }
        let shape: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
        let place = |index: &Vec<usize>| {
            index.iter().zip(&strides).fold(offset as isize, |at, (i, step)| at + *i as isize * step) as usize
        };
        let places: Vec<usize> = indices(&shape).iter().map(place).collect();
        let len = places.iter().max().unwrap() + 1;
        fn copied<T: Item + PartialEq + std::fmt::Debug>(
            of: impl Fn(usize) -> T,
            len: usize,
            [offset, chunk]: [usize; 2],
            (strides, shape): (&[isize], &[usize]),
            places: &[usize],
        ) {
            let x: Vec<T> = (0..len).map(&of).collect();
            let par: &dyn Par = [&Threads(3) as &dyn Par, &Reverse][chunk % 2];
            let mut out = vec![T::zeroed(); places.len()];
            copy_strided(par, &x, offset, strides, shape, &mut out).unwrap();
            assert!(out.iter().zip(places).all(|(out, place)| *out == of(*place)), "{strides:?} {shape:?}");
        }
        let view = (&strides[..], &shape[..]);
        copied(|i| i as u8 ^ (i >> 8) as u8, len, [offset, 0], view, &places);
        copied(|i| i as u16, len, [offset, 1], view, &places);
        copied(|i| i as u32, len, [offset, 0], view, &places);
        copied(|i| i as u64, len, [offset, 1], view, &places);
        copied(|i| [i as u8, (i >> 8) as u8, (i >> 16) as u8], len, [offset, 0], view, &places);
    }

    #[test]
    fn padding_follows_its_mode(
        (shape, widths) in prop::collection::vec(3usize..7, 1..4).prop_flat_map(|s| {
            let n = s.len();
            (Just(s), prop::collection::vec((0usize..3, 0usize..3), n))
        }),
        mode in prop_oneof![
            Just(PadMode::Constant(99)),
            Just(PadMode::Edge),
            Just(PadMode::Reflect),
            Just(PadMode::Symmetric)
        ],
    ) {
        let x = numbers(&shape);
        let out_shape: Vec<usize> = shape.iter().zip(&widths).map(|(n, (a, b))| n + a + b).collect();
        let expected: Vec<u32> = indices(&out_shape).iter().map(|i| {
            let mut index = vec![];
            for k in 0..i.len() {
                let (p, n) = (i[k] as isize - widths[k].0 as isize, shape[k] as isize);
                index.push(match mode {
                    PadMode::Constant(_) if p < 0 || p >= n => return 99,
                    PadMode::Reflect if p < 0 => -p,
                    PadMode::Reflect if p >= n => 2 * (n - 1) - p,
                    PadMode::Symmetric if p < 0 => -p - 1,
                    PadMode::Symmetric if p >= n => 2 * n - 1 - p,
                    _ => p.clamp(0, n - 1),
                } as usize);
            }
            at(&x, &shape, &index)
        }).collect();
        let mut out = vec![u32::MAX; expected.len()];
        pad(&Reverse, &x, &shape, &widths, mode, &mut out).unwrap();
        prop_assert_eq!(out, expected);
    }
}

#[test]
fn splitting_undoes_joining() {
    let (outer, inner, sizes) = (7, 3, [4usize, 0, 1, 900]);
    let parts: Vec<Vec<u32>> = sizes
        .iter()
        .enumerate()
        .map(|(k, n)| (0..(outer * n * inner) as u32).map(|v| v + 100_000 * k as u32).collect())
        .collect();
    let inputs: Vec<(&[u32], usize)> = parts.iter().map(|p| p.as_slice()).zip(sizes).collect();
    let n: usize = sizes.iter().sum();
    for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
        let mut joined = vec![u32::MAX; outer * n * inner];
        concat(par, &inputs, outer, inner, &mut joined);
        assert_eq!(&joined[n * inner..][..12], &parts[0][12..24]);
        let mut back: Vec<Vec<u32>> = parts.iter().map(|p| vec![0; p.len()]).collect();
        let mut outputs: Vec<&mut [u32]> = back.iter_mut().map(|p| p.as_mut_slice()).collect();
        split(par, &joined, [outer, n, inner], &sizes, &mut outputs).unwrap();
        assert_eq!(back, parts);
    }
}

#[test]
fn tiling_repeating_and_flipping_small_arrays() {
    let x = [1, 2, 3, 4];
    let mut out = [0; 8];
    tile(&Serial, &x, &[2, 2], &[1, 2], &mut out).unwrap();
    assert_eq!(out, [1, 2, 1, 2, 3, 4, 3, 4]);
    tile(&Serial, &x, &[4], &[2, 1], &mut out).unwrap();
    assert_eq!(out, [1, 2, 3, 4, 1, 2, 3, 4]);
    tile(&Serial, &x, &[2, 2], &[2], &mut out).unwrap();
    assert_eq!(out, [1, 2, 1, 2, 3, 4, 3, 4]);
    repeat(&Serial, &x, [1, 2, 2], 2, &mut out).unwrap();
    assert_eq!(out, [1, 2, 1, 2, 3, 4, 3, 4]);
    repeat(&Serial, &x, [2, 2, 1], 2, &mut out).unwrap();
    assert_eq!(out, [1, 1, 2, 2, 3, 3, 4, 4]);
    let mut out = [0; 4];
    flip(&Serial, &x, &[2, 2], &[true, false], &mut out).unwrap();
    assert_eq!(out, [3, 4, 1, 2]);
    broadcast_to(&Serial, &x[..2], &[2, 1], &mut out, &[2, 2]).unwrap();
    assert_eq!(out, [1, 1, 2, 2]);
}

#[test]
fn reading_outside_of_the_source_is_an_error() {
    let mut out = [0; 4];
    let error = copy_strided(&Serial, &[1, 2, 3], 0, &[2, 1], &[2, 2], &mut out).unwrap_err();
    assert_eq!(error, KernelError::OutOfBounds { low: 0, high: 3, len: 3 });
    let error = copy_strided(&Serial, &[1, 2, 3], 0, &[-1], &[4], &mut out).unwrap_err();
    assert_eq!(error, KernelError::OutOfBounds { low: -3, high: 0, len: 3 });
}

#[test]
fn reflections_wider_than_their_axis_go_to_and_fro() {
    let padded = |x: &[u8], widths, mode| {
        let mut out = vec![0; x.len() + 9];
        pad(&Threads(2), x, &[x.len()], &[widths], mode, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(padded(b"abc", (4, 5), PadMode::Reflect), "abcbabcbabcb");
    assert_eq!(padded(b"abc", (4, 5), PadMode::Symmetric), "ccbaabccbaab");
    assert_eq!(padded(b"a", (4, 5), PadMode::Reflect), "aaaaaaaaaa");
    let error = pad(&Serial, &[], &[0], &[(1, 0)], PadMode::Edge, &mut [0]).unwrap_err();
    assert_eq!(error, KernelError::EmptyAxis { axis: 0 });
}

#[test]
fn an_axis_of_one_element_takes_a_step_of_any_size() {
    let x = numbers(&[2, 3]);
    for step in [isize::MIN, isize::MAX] {
        let mut out = [0; 3];
        slice(&Serial, &x, &[2, 3], &[1, 0], &[step, 1], &[1, 3], &mut out).expect("it is inside");
        assert_eq!(out, [3, 4, 5]);
        let mut changed = x.clone();
        assign_slice(&[7, 8, 9], &[1, 3], &mut changed, &[2, 3], &[1, 0], &[step, 1]).expect("it is inside");
        assert_eq!(changed, [0, 1, 2, 7, 8, 9]);
    }
}
