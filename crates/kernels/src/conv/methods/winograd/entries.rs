//! The transforms of every scheme, compiled for every instruction set.

use super::scheme::{Scheme, TileSide};
use super::strided_transforms::{Strided2, Strided3, Strided4};
use super::taps_transforms;
use super::transforms::{F2, F4, InputArgs, InputTile, OutputArgs, OutputTile};
use crate::gemm::tile::Elements;
use crate::isa::Isa;
use crate::simd::{Entry, entry, entry_rounding};

/// The input transform of a scheme.
pub(super) fn input_entry(scheme: Scheme, elements: Elements, isa: Isa) -> Entry<InputArgs<*const u32>> {
    use Elements::{Pairs, Single};
    use TileSide::{F23, F25, F27, F43, One};
    type Tile<T, U, const P: usize, const O: usize, const Q: usize, const N: usize> =
        InputTile<T, U, *const u32, P, O, Q, N>;
    match (scheme.rows, scheme.cols, elements) {
        (F23, F23, Single) => entry::<Tile<F2, F2, 4, 2, 4, 2>>(isa),
        (F23, F23, Pairs) => entry_rounding::<Tile<F2, F2, 4, 2, 4, 2>>(),
        (F43, F43, Single) => entry::<Tile<F4, F4, 6, 4, 6, 4>>(isa),
        (F25, F25, Single) => entry::<Tile<taps_transforms::F25, taps_transforms::F25, 6, 2, 6, 2>>(isa),
        (One, F43, Single) => entry::<Tile<taps_transforms::One, F4, 1, 1, 6, 4>>(isa),
        (F43, One, Single) => entry::<Tile<F4, taps_transforms::One, 6, 4, 1, 1>>(isa),
        (One, F25, Single) => entry::<Tile<taps_transforms::One, taps_transforms::F25, 1, 1, 6, 2>>(isa),
        (F25, One, Single) => entry::<Tile<taps_transforms::F25, taps_transforms::One, 6, 2, 1, 1>>(isa),
        (One, F27, Single) => entry::<Tile<taps_transforms::One, taps_transforms::F27, 1, 1, 8, 2>>(isa),
        (F27, One, Single) => entry::<Tile<taps_transforms::F27, taps_transforms::One, 8, 2, 1, 1>>(isa),
        (TileSide::Strided2, TileSide::Strided2, Single) => entry::<Tile<Strided2, Strided2, 5, 2, 5, 2>>(isa),
        (TileSide::Strided2, TileSide::Strided2, Pairs) => entry_rounding::<Tile<Strided2, Strided2, 5, 2, 5, 2>>(),
        (TileSide::Strided3, TileSide::Strided3, Single) => entry::<Tile<Strided3, Strided3, 7, 3, 7, 3>>(isa),
        (TileSide::Strided3, TileSide::Strided3, Pairs) => entry_rounding::<Tile<Strided3, Strided3, 7, 3, 7, 3>>(),
        (TileSide::Strided4, TileSide::Strided4, Single) => entry::<Tile<Strided4, Strided4, 9, 4, 9, 4>>(isa),
        _ => panic!("there is no transform to {elements:?} values for {scheme:?}: selection asked for it"),
    }
}

/// The output transform of a scheme.
pub(super) fn output_entry(scheme: Scheme, isa: Isa) -> Entry<OutputArgs<*const u32>> {
    use TileSide::{F23, F25, F27, F43, One};
    type Tile<T, U, const P: usize, const O: usize, const Q: usize, const N: usize> =
        OutputTile<T, U, *const u32, P, O, Q, N>;
    match (scheme.rows, scheme.cols) {
        (F23, F23) => entry::<Tile<F2, F2, 4, 2, 4, 2>>(isa),
        (F43, F43) => entry::<Tile<F4, F4, 6, 4, 6, 4>>(isa),
        (F25, F25) => entry::<Tile<taps_transforms::F25, taps_transforms::F25, 6, 2, 6, 2>>(isa),
        (One, F43) => entry::<Tile<taps_transforms::One, F4, 1, 1, 6, 4>>(isa),
        (F43, One) => entry::<Tile<F4, taps_transforms::One, 6, 4, 1, 1>>(isa),
        (One, F25) => entry::<Tile<taps_transforms::One, taps_transforms::F25, 1, 1, 6, 2>>(isa),
        (F25, One) => entry::<Tile<taps_transforms::F25, taps_transforms::One, 6, 2, 1, 1>>(isa),
        (One, F27) => entry::<Tile<taps_transforms::One, taps_transforms::F27, 1, 1, 8, 2>>(isa),
        (F27, One) => entry::<Tile<taps_transforms::F27, taps_transforms::One, 8, 2, 1, 1>>(isa),
        (TileSide::Strided2, TileSide::Strided2) => entry::<Tile<Strided2, Strided2, 5, 2, 5, 2>>(isa),
        (TileSide::Strided3, TileSide::Strided3) => entry::<Tile<Strided3, Strided3, 7, 3, 7, 3>>(isa),
        (TileSide::Strided4, TileSide::Strided4) => entry::<Tile<Strided4, Strided4, 9, 4, 9, 4>>(isa),
        _ => panic!("there is no transform of {scheme:?}: selection asked for it"),
    }
}
