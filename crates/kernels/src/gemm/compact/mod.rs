//! Packed weights in 28 bits each, without loss: reading large dense layers is all that few rows
//! cost, and an eighth less to read is an eighth less time.
//!
//! Sign and mantissa of a number take three bytes and stay unchanged. Four of the eight bits of the
//! exponent are kept: the weights of a panel have few exponents, most of them the 15 below some
//! highest one. The sixteenth code stands for the exponent of zero. A number with another exponent
//! is an exception: it is stored separately with its position, and added after the others. A panel
//! with many of them would be slow, so then the layer's weights are packed unchanged
//! ([`Sgemm::pack`]).
//!
//! The columns of up to sixteen panels are contiguous step by step: 1792 bytes, which need not be
//! read if the step's inputs are all zero, as half of a ReLU's outputs are. Weights are multiplied
//! where they are unpacked (`product.rs`).

pub(super) mod product;

use super::live::Live;
use super::{Matrix, Sgemm};
use crate::isa::{Isa, has_vbmi};
use crate::simd::{
    COMPACT_CODES, COMPACT_REST, COMPACT_SUMS_ROW, CompactColumns, Dst, LANES, Src, pack_compact, unpack_compact,
};
use std::ops::Range;

/// Panels whose steps are contiguous.
const SIDE: usize = COMPACT_SUMS_ROW / WIDTH;
/// Columns of a panel.
const WIDTH: usize = 2 * LANES;
/// Elements that a step of a panel takes.
const STEP: usize = COMPACT_REST + COMPACT_CODES;
/// Bytes of weights from which on the caches do not keep them from one call to the next.
const LARGE: usize = 12 << 20;
/// Least depth; smaller ones have no room for a panel's extra data.
const LEAST_DEPTH: usize = 256;
/// Exceptions that a panel may have: this number, and one for each group of this number of steps.
const FEW: usize = 8;
const STEPS_PER_EXCEPTION: usize = 8 * LANES;
/// Codes of exponents below the highest one; the next stands for zero.
const CODES: u32 = 15;
/// Approximate number of a panel's vectors that are examined to find its exponents.
const SAMPLE: usize = 4096;
/// Elements in front of the panels' tables.
const HEADER: usize = LANES;
/// The first element if the weights after it are in 28 bits.
const COMPACT: u32 = u32::from_le_bytes(*b"28b\n");
/// The second element if all weights are finite, so that zero times any of them is zero.
const FINITE: u32 = 1;
/// Elements after the last step, which is read in whole vectors.
const BEHIND: usize = LANES;

/// A weight whose exponent has no code.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Exception {
    /// step * 32 + column
    at: u32,
    bits: u32,
}

impl Exception {
    /// Step and column.
    fn place(&self) -> (usize, usize) {
        (self.at as usize / WIDTH, self.at as usize % WIDTH)
    }
}

/// Whether weights of this size are worth it, and the machine has what unpacking them takes.
pub(super) fn pays(n: usize, k: usize, isa: Isa) -> bool {
    fits(k, isa) && n.saturating_mul(k).saturating_mul(size_of::<f32>()) >= LARGE
}

pub(super) fn fits(k: usize, isa: Isa) -> bool {
    isa == Isa::Avx512 && has_vbmi() && (LEAST_DEPTH..=u32::MAX as usize / WIDTH).contains(&k)
}

/// The positions of the parts of packed weights, in elements: header, tables, ends of the panels'
/// exceptions, steps, exceptions.
#[derive(Clone, Copy)]
struct PackedPlaces {
    panels: usize,
    /// Depth of the product.
    k: usize,
}

impl PackedPlaces {
    fn of(gemm: &Sgemm) -> PackedPlaces {
        PackedPlaces { panels: gemm.n.div_ceil(WIDTH), k: gemm.k }
    }

    fn table(&self, panel: usize) -> usize {
        HEADER + panel * LANES
    }

    fn ends(&self) -> usize {
        self.table(self.panels)
    }

    /// Panels whose steps are contiguous with those of this one.
    fn side(&self, panel: usize) -> Range<usize> {
        let first = panel / SIDE * SIDE;
        first..self.panels.min(first + SIDE)
    }

    /// The first step of a panel: sign and mantissa, codes, and how far it is to the next step.
    fn steps(&self, panel: usize) -> (usize, usize, usize) {
        let (side, begin) = (self.side(panel), (self.ends() + self.panels).next_multiple_of(LANES));
        let (first, at) = (begin + side.start * self.k * STEP, panel - side.start);
        (first + at * COMPACT_REST, first + side.len() * COMPACT_REST + at * COMPACT_CODES, side.len() * STEP)
    }

    fn exceptions(&self) -> usize {
        (self.ends() + self.panels).next_multiple_of(LANES) + self.panels * self.k * STEP + BEHIND
    }

    fn most_exceptions(&self) -> usize {
        FEW + self.k / STEPS_PER_EXCEPTION
    }

    fn len(&self) -> usize {
        self.exceptions() + self.panels * self.most_exceptions() * 2
    }
}

/// Elements for weights in either form.
pub(super) fn packed_len(gemm: &Sgemm, plain: usize) -> usize {
    (HEADER + plain).max(PackedPlaces::of(gemm).len())
}

/// Packs B; as it is if there are too many exceptions.
pub(super) fn pack(gemm: &Sgemm, b: Matrix<'_>, out: &mut [f32]) {
    let exceptions = pack_steps(gemm, b, out);
    let finite = |e: &Exception| f32::from_bits(e.bits).is_finite();
    let (form, finite) = match &exceptions {
        Some(exceptions) => (COMPACT, exceptions.iter().all(finite)),
        None => (0, false),
    };
    let header: &mut [u32] = bytemuck::cast_slice_mut(&mut out[..HEADER]);
    header[..2].copy_from_slice(&[form, if finite { FINITE } else { 0 }]);
    if exceptions.is_none() {
        gemm.plain().pack(b, &mut out[HEADER..]);
    }
}

/// All exceptions, unless a panel has too many; otherwise what has been written means nothing.
fn pack_steps(gemm: &Sgemm, b: Matrix<'_>, out: &mut [f32]) -> Option<Vec<Exception>> {
    let places = PackedPlaces::of(gemm);
    let mut panel = vec![0.0; gemm.k * WIDTH];
    let mut exceptions = Vec::new();
    for p in 0..places.panels {
        let b = Matrix { data: &b.data[p * WIDTH * b.col_stride..], ..b };
        Sgemm { n: WIDTH.min(gemm.n - p * WIDTH), ..gemm.plain() }.pack(b, &mut panel);
        let (top, before) = (highest_code(bytemuck::cast_slice(&panel)), exceptions.len());
        write_steps(&panel, top, places.steps(p), out, &mut exceptions);
        if exceptions.len() - before > places.most_exceptions() {
            return None;
        }
        let out: &mut [u32] = bytemuck::cast_slice_mut(out);
        let (codes, zero) = out[places.table(p)..][..LANES].split_at_mut(CODES as usize);
        codes.iter_mut().zip(0..).for_each(|(exponent, code)| *exponent = (top - code) << 23);
        zero.fill(0);
        out[places.ends() + p] = exceptions.len() as u32;
    }
    bytemuck::cast_slice_mut(&mut out[places.exceptions()..][..2 * exceptions.len()]).copy_from_slice(&exceptions);
    Some(exceptions)
}

fn exponent(bits: u32) -> u32 {
    bits >> 23 & 0xff
}

/// The exponent of code 0 with which most numbers have a code, by a part of the numbers if they are
/// many. Of equally good ones the lowest: the part may not have met the rarest numbers, which are
/// small. Infinities and NaN get no code.
fn highest_code(numbers: &[u32]) -> u32 {
    let mut count = [0u32; 256];
    let some = numbers.chunks(LANES).step_by((numbers.len() / LANES / SAMPLE) | 1).flatten();
    some.for_each(|bits| count[exponent(*bits) as usize] += 1);
    let covered = |top: u32| (top + 1 - CODES..=top).map(|e| u64::from(count[e as usize])).sum::<u64>();
    (CODES..u8::MAX.into()).rev().max_by_key(|top| covered(*top)).unwrap_or(CODES)
}

/// Writes the steps of a panel of [`WIDTH`] columns to their places.
fn write_steps(
    panel: &[f32],
    top: u32,
    (rest, codes, step): (usize, usize, usize),
    out: &mut [f32],
    exceptions: &mut Vec<Exception>,
) {
    let out = Dst::new(out);
    for (k, numbers) in panel.chunks_exact(WIDTH).enumerate() {
        let at = k * step;
        // SAFETY: `fits` asked for the instructions; these are WIDTH numbers, and `Places` has room
        // for the step.
        let mut without_code = unsafe { pack_compact(Src::new(numbers), top, out.add(rest + at), out.add(codes + at)) };
        while without_code != 0 {
            let column = without_code.trailing_zeros() as usize;
            exceptions.push(Exception { at: (k * WIDTH + column) as u32, bits: numbers[column].to_bits() });
            without_code &= without_code - 1;
        }
    }
}

/// Packed weights in 28 bits.
pub(super) struct View<'a> {
    places: PackedPlaces,
    packed: &'a [f32],
    ends: &'a [u32],
    exceptions: &'a [Exception],
}

impl<'a> View<'a> {
    /// The output of [`pack`]: weights in 28 bits, or unchanged ones.
    pub(super) fn of(gemm: &Sgemm, packed: &'a [f32]) -> Result<View<'a>, &'a [f32]> {
        let places = PackedPlaces::of(gemm);
        if packed[0].to_bits() != COMPACT {
            return Err(&packed[HEADER..]);
        }
        let ends: &[u32] = bytemuck::cast_slice(&packed[places.ends()..][..places.panels]);
        let count = ends.last().map_or(0, |end| *end as usize);
        let exceptions = bytemuck::cast_slice(&packed[places.exceptions()..][..2 * count]);
        Ok(View { places, packed, ends, exceptions })
    }

    /// The steps that a product with `a` needs, in memory of [`Live::room`] elements.
    pub(super) fn live<'w>(&self, a: Matrix<'w>, rows: usize, room: &'w mut [f32]) -> Live<'w> {
        let all_finite = self.packed[1].to_bits() == FINITE;
        Live::of(a, rows, self.places.k, all_finite, room)
    }

    fn columns(&self, panels: &Range<usize>) -> CompactColumns {
        let (rest, codes, step) = self.places.steps(panels.start);
        debug_assert!(panels.end <= self.places.side(panels.start).end);
        CompactColumns {
            rest: Src::new(&self.packed[rest..]),
            codes: Src::new(&self.packed[codes..]),
            step,
            tables: Src::new(&self.packed[self.places.table(panels.start)..]),
            pairs: panels.len(),
        }
    }

    /// Some steps of a panel, as numbers.
    pub(super) fn unpack(&self, panel: usize, steps: Range<usize>, out: &mut [f32]) {
        assert!(steps.end <= self.places.k, "steps {steps:?} of {}", self.places.k);
        let out = &mut out[..steps.len() * WIDTH];
        // SAFETY: `fits` asked for the instructions; the panel has these steps, after the last of
        // which there are `BEHIND` elements; `out` has room for their numbers.
        unsafe { unpack_compact(&self.columns(&(panel..panel + 1)), steps.clone(), Dst::new(out)) }
        for (step, column, weight) in self.exceptions_of(panel, &steps) {
            out[(step - steps.start) * WIDTH + column] = weight;
        }
    }

    /// Exceptions of a panel at some steps: step, column, weight.
    fn exceptions_of(&self, panel: usize, steps: &Range<usize>) -> impl Iterator<Item = (usize, usize, f32)> {
        let begin = if panel == 0 { 0 } else { self.ends[panel - 1] as usize };
        let (exceptions, steps) = (&self.exceptions[begin..self.ends[panel] as usize], steps.clone());
        let passed = exceptions.partition_point(|e| e.place().0 < steps.start);
        let place = |e: &Exception| (e.place().0, e.place().1, f32::from_bits(e.bits));
        exceptions[passed..].iter().map(place).take_while(move |(step, ..)| *step < steps.end)
    }
}

#[cfg(test)]
mod tests;
