//! Packed weights in 28 bits each, without loss: reading large dense layers is all that few rows cost, and an eighth less to read
//! is an eighth less time.
//!
//! Of a number, sign and mantissa take three bytes and stay as they are. Of the eight bits of the exponent four are kept: the
//! weights of a panel have few exponents, most of them the 15 below some highest one. The sixteenth code stands for the exponent
//! of zero. What has another exponent is an exception: it is written down beside its place, and put there whenever its block is
//! unpacked. A panel with many of them would be slow, so then the layer's weights are packed as they are ([`Sgemm::pack`]).
//!
//! Blocks of [`STEPS`] steps are unpacked to the first-level cache, where the register tiles find them.

use super::{Matrix, Sgemm};
use crate::isa::{Isa, has_vbmi};
use crate::simd::{COMPACT_UNIT, Dst, LANES, Src, pack_compact, unpack_compact};

/// Steps of k that are unpacked together.
pub(super) const STEPS: usize = 4 * LANES;
/// Columns of a panel.
const WIDTH: usize = 2 * LANES;
/// Bytes of weights from which on the caches do not keep them from one call to the next.
const LARGE: usize = 12 << 20;
/// Smaller depths have no room for what is written down beside a panel.
const LEAST_DEPTH: usize = 256;
/// Exceptions that a panel may have: so many, and one for so many units.
const FEW: usize = 8;
const UNITS_PER_EXCEPTION: usize = 8;
/// Codes of exponents below the highest one; the next stands for zero.
const CODES: u32 = 15;
/// About so many vectors of a panel are looked at to find its exponents.
const SAMPLE: usize = 4096;
/// Elements in front of the panels' tables.
const HEADER: usize = LANES;
/// What the first element holds if the weights behind it are in 28 bits.
const COMPACT: u32 = u32::from_le_bytes(*b"28b\n");
/// Elements behind the last unit, which is read in whole vectors.
const BEHIND: usize = LANES;

/// A weight whose exponent has no code.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Exception {
    /// step * 32 + column
    at: u32,
    bits: u32,
}

/// Whether weights of this size are worth it, and the machine has what unpacking them takes.
pub(super) fn pays(n: usize, k: usize, isa: Isa) -> bool {
    fits(k, isa) && n.saturating_mul(k).saturating_mul(size_of::<f32>()) >= LARGE
}

pub(super) fn fits(k: usize, isa: Isa) -> bool {
    isa == Isa::Avx512 && has_vbmi() && k >= LEAST_DEPTH
}

/// Where the parts of packed weights lie, in elements: header, tables, ends of the panels' exceptions, units, exceptions.
#[derive(Clone, Copy)]
struct Places {
    panels: usize,
    /// Units of a panel.
    units: usize,
}

impl Places {
    fn of(gemm: &Sgemm) -> Places {
        Places { panels: gemm.n.div_ceil(WIDTH), units: gemm.k.div_ceil(LANES) }
    }

    fn table(&self, panel: usize) -> usize {
        HEADER + panel * LANES
    }

    fn ends(&self) -> usize {
        self.table(self.panels)
    }

    fn unit(&self, panel: usize, unit: usize) -> usize {
        (self.ends() + self.panels).next_multiple_of(LANES) + (panel * self.units + unit) * COMPACT_UNIT
    }

    fn exceptions(&self) -> usize {
        self.unit(self.panels, 0) + BEHIND
    }

    fn most_exceptions(&self) -> usize {
        FEW + self.units / UNITS_PER_EXCEPTION
    }

    fn len(&self) -> usize {
        self.exceptions() + self.panels * self.most_exceptions() * 2
    }
}

/// Elements for weights in either form.
pub(super) fn packed_len(gemm: &Sgemm, plain: usize) -> usize {
    (HEADER + plain).max(Places::of(gemm).len())
}

/// Packs B; as it is if there are too many exceptions.
pub(super) fn pack(gemm: &Sgemm, b: Matrix<'_>, out: &mut [f32]) {
    let packed = pack_units(gemm, b, out);
    bytemuck::cast_slice_mut::<_, u32>(out)[0] = if packed { COMPACT } else { 0 };
    if !packed {
        gemm.plain().pack(b, &mut out[HEADER..]);
    }
}

/// Whether no panel has too many exceptions; otherwise what has been written means nothing.
fn pack_units(gemm: &Sgemm, b: Matrix<'_>, out: &mut [f32]) -> bool {
    let places = Places::of(gemm);
    let mut panel = vec![0.0; gemm.k * WIDTH];
    let mut exceptions = Vec::new();
    for p in 0..places.panels {
        let b = Matrix { data: &b.data[p * WIDTH * b.col_stride..], ..b };
        Sgemm { n: WIDTH.min(gemm.n - p * WIDTH), ..gemm.plain() }.pack(b, &mut panel);
        let (top, before) = (highest_code(bytemuck::cast_slice(&panel)), exceptions.len());
        write_units(&panel, top, &mut out[places.unit(p, 0)..places.unit(p + 1, 0)], &mut exceptions);
        if exceptions.len() - before > places.most_exceptions() {
            return false;
        }
        let out: &mut [u32] = bytemuck::cast_slice_mut(out);
        let (codes, zero) = out[places.table(p)..][..LANES].split_at_mut(CODES as usize);
        codes.iter_mut().zip(0..).for_each(|(exponent, code)| *exponent = (top - code) << 23);
        zero.fill(0);
        out[places.ends() + p] = exceptions.len() as u32;
    }
    bytemuck::cast_slice_mut(&mut out[places.exceptions()..][..2 * exceptions.len()]).copy_from_slice(&exceptions);
    true
}

fn exponent(bits: u32) -> u32 {
    bits >> 23 & 0xff
}

/// The exponent of code 0 with which most numbers have a code, by a part of the numbers if they are many. Of equally good ones the
/// lowest: the part may not have met the rarest numbers, which are small.
fn highest_code(numbers: &[u32]) -> u32 {
    let mut count = [0u32; 256];
    let some = numbers.chunks(LANES).step_by((numbers.len() / LANES / SAMPLE) | 1).flatten();
    some.for_each(|bits| count[exponent(*bits) as usize] += 1);
    let covered = |top: u32| (top + 1 - CODES..=top).map(|e| u64::from(count[e as usize])).sum::<u64>();
    (CODES..=u8::MAX.into()).rev().max_by_key(|top| covered(*top)).unwrap_or(CODES)
}

/// Units of 16 steps, each of 32 columns; zeros behind the last step.
fn write_units(numbers: &[f32], top: u32, units: &mut [f32], exceptions: &mut Vec<Exception>) {
    let mut last = [0.0; LANES * WIDTH];
    for (u, (numbers, unit)) in numbers.chunks(LANES * WIDTH).zip(units.chunks_exact_mut(COMPACT_UNIT)).enumerate() {
        let whole = numbers.first_chunk().unwrap_or_else(|| {
            last[..numbers.len()].copy_from_slice(numbers);
            &last
        });
        // SAFETY: `fits` asked for the instructions; `whole` is 16 steps, `unit` a unit.
        let without_code = unsafe { pack_compact(Src::new(whole), top, Dst::new(unit)) };
        for (step, mut columns) in without_code.into_iter().enumerate() {
            while columns != 0 {
                let at = step * WIDTH + columns.trailing_zeros() as usize;
                exceptions.push(Exception { at: (u * LANES * WIDTH + at) as u32, bits: whole[at].to_bits() });
                columns &= columns - 1;
            }
        }
    }
}

/// Packed weights in 28 bits.
pub(super) struct View<'a> {
    places: Places,
    packed: &'a [f32],
    ends: &'a [u32],
    exceptions: &'a [Exception],
}

impl<'a> View<'a> {
    /// What [`pack`] wrote: weights in 28 bits, or as they are.
    pub(super) fn of(gemm: &Sgemm, packed: &'a [f32]) -> Result<View<'a>, &'a [f32]> {
        let places = Places::of(gemm);
        if packed[0].to_bits() != COMPACT {
            return Err(&packed[HEADER..]);
        }
        let ends: &[u32] = bytemuck::cast_slice(&packed[places.ends()..][..places.panels]);
        let count = ends.last().map_or(0, |end| *end as usize);
        let exceptions = bytemuck::cast_slice(&packed[places.exceptions()..][..2 * count]);
        Ok(View { places, packed, ends, exceptions })
    }

    /// Steps `first .. first + STEPS` of a panel, as far as there are any, as numbers.
    pub(super) fn unpack(&self, panel: usize, first: usize, out: &mut [f32]) {
        let unit = first / LANES;
        let units = (self.places.units - unit).min(STEPS / LANES);
        let steps = Src::new(self.packed).add(self.places.unit(panel, unit));
        let table = Src::new(&self.packed[self.places.table(panel)..][..LANES]);
        let out = &mut out[..units * LANES * WIDTH];
        // SAFETY: `fits` asked for the instructions; the panel has these units, behind the last of which there are `BEHIND`
        // elements; `out` has room for them.
        unsafe { unpack_compact(steps, units, table, Dst::new(out)) }
        let begin = if panel == 0 { 0 } else { self.ends[panel - 1] as usize };
        let exceptions = &self.exceptions[begin..self.ends[panel] as usize];
        let start = first * WIDTH;
        let passed = exceptions.partition_point(|e| (e.at as usize) < start);
        for e in &exceptions[passed..] {
            match out.get_mut(e.at as usize - start) {
                Some(number) => *number = f32::from_bits(e.bits),
                None => break,
            }
        }
    }
}

#[cfg(test)]
mod tests;
