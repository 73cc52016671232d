//! Tiles of products with the instructions of 64-bit ARM that sum products of bytes by four. They
//! are written as `asm!`: their intrinsics are not stable.

use super::finish::AddedBytes;
use super::tile::{ByteEnd, COLUMNS, GROUP, PANEL, PANELS, ROWS, Sums, TileArgs, TileEnd};
use crate::par::PickedRows;
use std::arch::aarch64::*;
use std::arch::asm;

/// Numbers of a vector, each of which has a group of bytes.
const LANES: usize = 4;
/// Vectors of the sums of a panel, and of the weights of a group of it.
const QUADS: usize = PANEL / LANES;
/// Bytes of the weights of a group of a panel.
const LINE: usize = GROUP * PANEL;

/// Sums of 16 columns.
type PanelSums = [int32x4_t; QUADS];
/// Numbers of 16 columns.
type PanelNumbers = [float32x4_t; QUADS];

/// An instruction that sums products of bytes by four.
trait Dot {
    /// Whether it takes data as signed numbers, which are unsigned ones with another first bit.
    const SIGNED: bool;

    /// Adds to the sums of four columns the products of their weights with a lane of the data.
    ///
    /// # Safety
    /// The machine has the instruction.
    unsafe fn add<const LANE: usize>(sums: int32x4_t, weights: int8x16_t, data: uint8x16_t) -> int32x4_t;
}

macro_rules! dot {
    ($(#[$meta:meta])* $name:ident, $instruction:literal, $signed:literal) => {
        $(#[$meta])*
        struct $name;

        impl Dot for $name {
            const SIGNED: bool = $signed;

            #[inline(always)]
            unsafe fn add<const LANE: usize>(mut sums: int32x4_t, weights: int8x16_t, data: uint8x16_t) -> int32x4_t {
                // SAFETY: the caller has the instruction, which changes only the sums.
                unsafe {
                    asm!(
                        concat!($instruction, " {:v}.4s, {:v}.16b, {:v}.4b[{}]"),
                        inout(vreg) sums, in(vreg) weights, in(vreg) data, const LANE,
                        options(pure, nomem, nostack, preserves_flags),
                    );
                }
                sums
            }
        }
    };
}

dot! {
    /// SDOT of DotProd, with both operands signed.
    Sdot, "sdot", true
}
dot! {
    /// SUDOT of I8MM, with signed weights and unsigned data.
    Sudot, "sudot", false
}

/// Computes the sums of whole tiles, or of one row, with DotProd.
///
/// # Safety
/// The machine has DotProd, and the operands are as long as [`TileArgs`] says.
#[target_feature(enable = "dotprod")]
pub(super) unsafe fn dotprod(x: &TileArgs<'_>, end: TileEnd<'_, '_>) {
    // SAFETY: promised by the caller.
    unsafe { multiply::<Sdot>(x, end) }
}

/// Computes the sums of whole tiles, or of one row, with I8MM.
///
/// # Safety
/// The machine has I8MM, and the operands are as long as [`TileArgs`] says.
#[target_feature(enable = "i8mm")]
pub(super) unsafe fn i8mm(x: &TileArgs<'_>, end: TileEnd<'_, '_>) {
    // SAFETY: promised by the caller.
    unsafe { multiply::<Sudot>(x, end) }
}

/// Computes all panels of one row together, or one panel of many rows after another.
///
/// # Safety
/// The machine has the instruction, and the operands are as long as [`TileArgs`] says.
#[inline(always)]
unsafe fn multiply<D: Dot>(x: &TileArgs<'_>, mut end: TileEnd<'_, '_>) {
    assert!(end.rows() == x.starts.len(), "{} rows of {}", end.rows(), x.starts.len());
    // SAFETY: promised by the caller.
    unsafe {
        match (x.starts.len(), x.count) {
            (1, 1) => tiles::<D, 1, 1>(x, 0, &mut end),
            (1, 2) => tiles::<D, 1, 2>(x, 0, &mut end),
            (1, 3) => tiles::<D, 1, 3>(x, 0, &mut end),
            (1, PANELS) => tiles::<D, 1, PANELS>(x, 0, &mut end),
            (_, count) => {
                for panel in 0..count {
                    tiles::<D, ROWS, 1>(x, panel, &mut end);
                }
            }
        }
    }
}

/// Computes the sums of R rows and P panels together, all in registers, as often as there are R
/// rows.
///
/// # Safety
/// The caller promises what [`multiply`] asks for, and there are P panels from `panel` on.
#[inline(always)]
unsafe fn tiles<D: Dot, const R: usize, const P: usize>(x: &TileArgs<'_>, panel: usize, end: &mut TileEnd<'_, '_>) {
    let places: [usize; P] = std::array::from_fn(|p| (panel + p) * PANEL);
    let scales = match end {
        TileEnd::Bytes(end, _) => places.map(|at| PanelScale::read(end, end.first + at)),
        TileEnd::Sums(_) => [PanelScale::NONE; P],
    };
    // SAFETY: promised by the caller.
    let first: [PanelSums; P] = std::array::from_fn(|p| unsafe { first_sums::<D>(x, panel + p) });
    for (tile, starts) in x.starts.as_chunks::<R>().0.iter().enumerate() {
        let mut sums = [first; R];
        let mut weights: [*const i8; P] = std::array::from_fn(|p| x.panel(panel + p).cast());
        for segment in x.segments() {
            let rows = starts.map(|start| x.data().wrapping_add(start + *segment));
            let whole = x.groups() / LANES * LANES;
            // SAFETY: every row has these groups of this segment, and so has every panel.
            unsafe {
                for g in (0..whole).step_by(LANES) {
                    let data = rows.map(|row| signed_as::<D>(vld1q_u8(row.wrapping_add(g * GROUP))));
                    add_group::<D, 0, R, P>(&mut sums, &mut weights, &data);
                    add_group::<D, 1, R, P>(&mut sums, &mut weights, &data);
                    add_group::<D, 2, R, P>(&mut sums, &mut weights, &data);
                    add_group::<D, 3, R, P>(&mut sums, &mut weights, &data);
                }
                for g in whole..x.groups() {
                    let data = rows.map(|row| {
                        let group = row.wrapping_add(g * GROUP).cast::<u32>().read_unaligned();
                        signed_as::<D>(vreinterpretq_u8_u32(vsetq_lane_u32::<0>(group, vdupq_n_u32(0))))
                    });
                    add_group::<D, 0, R, P>(&mut sums, &mut weights, &data);
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (p, sums) in sums.iter().enumerate() {
                match end {
                    TileEnd::Sums(out) => write_sums(sums, &mut out[tile * R + r], places[p]),
                    TileEnd::Bytes(end, out) => {
                        let bytes = narrowed(scales[p].limited(scales[p].numbers(*sums)));
                        write_bytes(bytes, end.flip, out.row(tile * R + r), places[p]);
                    }
                }
            }
        }
    }
}

/// The numbers that sums of a panel begin with. A correction is what sums of signed data have too
/// much if the instruction takes them as unsigned, and sums of unsigned data too little if it takes
/// them as signed.
///
/// # Safety
/// There is such a panel.
#[inline(always)]
unsafe fn first_sums<D: Dot>(x: &TileArgs<'_>, panel: usize) -> PanelSums {
    let corrections = x.panel(panel).wrapping_add(x.segments().len() * x.groups() * LINE).cast::<i32>();
    std::array::from_fn(|q| {
        // SAFETY: corrections follow the weights of a panel.
        unsafe {
            match (x.signed, D::SIGNED) {
                (true, false) => vld1q_s32(corrections.add(q * LANES)),
                (false, true) => vnegq_s32(vld1q_s32(corrections.add(q * LANES))),
                (true, true) | (false, false) => vdupq_n_s32(0),
            }
        }
    })
}

/// Data as the instruction takes them.
#[inline(always)]
fn signed_as<D: Dot>(data: uint8x16_t) -> uint8x16_t {
    // SAFETY: NEON is part of the baseline.
    if D::SIGNED { unsafe { veorq_u8(data, vdupq_n_u8(0x80)) } } else { data }
}

/// Adds the products of a group, which is a lane of the data, and moves on to the weights of the next
/// one.
///
/// # Safety
/// The machine has the instruction, and there are 64 bytes of weights in each panel.
#[inline(always)]
unsafe fn add_group<D: Dot, const LANE: usize, const R: usize, const P: usize>(
    sums: &mut [[PanelSums; P]; R],
    weights: &mut [*const i8; P],
    data: &[uint8x16_t; R],
) {
    for p in 0..P {
        for q in 0..QUADS {
            // SAFETY: promised by the caller.
            unsafe {
                let columns = vld1q_s8(weights[p].wrapping_add(q * LANES * GROUP));
                for r in 0..R {
                    sums[r][p][q] = D::add::<LANE>(sums[r][p][q], columns, data[r]);
                }
            }
        }
        weights[p] = weights[p].wrapping_add(LINE);
    }
}

/// Makes bytes of sums of 64 columns, with rows that are added, if there are any.
pub(super) fn finish_rows(end: &ByteEnd<'_>, sums: &[Sums], mut out: PickedRows<'_, u8>) {
    for at in (0..COLUMNS).step_by(PANEL) {
        let scale = PanelScale::read(end, end.first + at);
        for (row, sums) in sums.iter().enumerate().take(out.len()) {
            // SAFETY: NEON is part of the baseline; rows have 64 columns.
            let mut v = scale.numbers(std::array::from_fn(|q| unsafe { vld1q_s32(sums.as_ptr().add(at + q * LANES)) }));
            if let (Some(addend), Some((added, before))) = (end.added, end.sums.addend) {
                // SAFETY: as above.
                let bytes = unsafe { veorq_u8(vld1q_u8(addend.row(row).as_ptr().add(at)), vdupq_n_u8(addend.flip)) };
                v = add_bytes(added, limited(v, before), bytes);
            }
            write_bytes(narrowed(scale.limited(v)), end.flip, out.row(row), at);
        }
    }
}

/// Biases, factors and limits that make bytes of the sums of 16 columns.
#[derive(Clone, Copy)]
struct PanelScale {
    bias: [f32; PANEL],
    factor: [f32; PANEL],
    limits: [f32; 2],
}

impl PanelScale {
    /// A scale that is not used.
    const NONE: PanelScale = PanelScale { bias: [0.0; PANEL], factor: [0.0; PANEL], limits: [0.0; 2] };

    #[inline(always)]
    fn read(end: &ByteEnd<'_>, first: usize) -> PanelScale {
        // Columns after the last panel are not part of results.
        let read = |values: &[f32]| {
            values.get(first..).and_then(|values| values.first_chunk()).copied().unwrap_or([0.0; PANEL])
        };
        PanelScale { bias: read(end.sums.bias), factor: read(end.sums.factor), limits: end.sums.limits }
    }

    #[inline(always)]
    fn numbers(&self, sums: PanelSums) -> PanelNumbers {
        std::array::from_fn(|q| {
            // SAFETY: NEON is part of the baseline; there are 16 biases and factors.
            unsafe {
                let [bias, factor] = [&self.bias, &self.factor].map(|of| vld1q_f32(of.as_ptr().add(q * LANES)));
                vmulq_f32(vaddq_f32(vcvtq_f32_s32(sums[q]), bias), factor)
            }
        })
    }

    #[inline(always)]
    fn limited(&self, numbers: PanelNumbers) -> PanelNumbers {
        limited(numbers, self.limits)
    }
}

/// Numbers, none of which is NaN, that are not below or above the limits.
#[inline(always)]
fn limited(numbers: PanelNumbers, [low, high]: [f32; 2]) -> PanelNumbers {
    // SAFETY: NEON is part of the baseline.
    numbers.map(|v| unsafe { vminq_f32(vmaxq_f32(v, vdupq_n_f32(low)), vdupq_n_f32(high)) })
}

/// Numbers that bytes hold, rounded half to even.
#[inline(always)]
fn narrowed(numbers: PanelNumbers) -> uint8x16_t {
    // SAFETY: NEON is part of the baseline.
    unsafe {
        let [a, b, c, d] = numbers.map(|v| vreinterpretq_u16_s32(vcvtnq_s32_f32(v)));
        let [low, high] = [vuzp1q_u16(a, b), vuzp1q_u16(c, d)].map(|half| vreinterpretq_u8_u16(half));
        vuzp1q_u8(low, high)
    }
}

/// Adds bytes times a factor, rounded once.
#[inline(always)]
fn add_bytes(added: AddedBytes, mut v: PanelNumbers, bytes: uint8x16_t) -> PanelNumbers {
    for (v, bytes) in v.iter_mut().zip(widened(bytes, added.signed)) {
        // SAFETY: NEON is part of the baseline.
        *v = unsafe { vminq_f32(vfmaq_f32(*v, bytes, vdupq_n_f32(added.factor)), vdupq_n_f32(added.most)) };
    }
    v
}

/// The numbers of bytes.
#[inline(always)]
fn widened(bytes: uint8x16_t, signed: bool) -> PanelNumbers {
    // SAFETY: NEON is part of the baseline.
    unsafe {
        if signed {
            let bytes = vreinterpretq_s8_u8(bytes);
            let [low, high] = [vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)];
            return [vget_low_s16(low), vget_high_s16(low), vget_low_s16(high), vget_high_s16(high)]
                .map(|quarter| vcvtq_f32_s32(vmovl_s16(quarter)));
        }
        let [low, high] = [vmovl_u8(vget_low_u8(bytes)), vmovl_high_u8(bytes)];
        [vget_low_u16(low), vget_high_u16(low), vget_low_u16(high), vget_high_u16(high)]
            .map(|quarter| vcvtq_f32_u32(vmovl_u16(quarter)))
    }
}

/// Writes the sums of 16 columns.
#[inline(always)]
fn write_sums(sums: &PanelSums, row: &mut Sums, at: usize) {
    let to = row[at..].first_chunk_mut::<PANEL>().expect("a row has whole panels");
    for (q, sums) in sums.iter().enumerate() {
        // SAFETY: NEON is part of the baseline; there are 16 numbers.
        unsafe { vst1q_s32(to.as_mut_ptr().add(q * LANES), *sums) }
    }
}

/// Writes the bytes of 16 columns with some bits flipped.
#[inline(always)]
fn write_bytes(bytes: uint8x16_t, flip: u8, row: &mut [u8], at: usize) {
    let to = row[at..].first_chunk_mut::<PANEL>().expect("a row has whole panels");
    // SAFETY: NEON is part of the baseline; there are 16 bytes.
    unsafe { vst1q_u8(to.as_mut_ptr(), veorq_u8(bytes, vdupq_n_u8(flip))) }
}
