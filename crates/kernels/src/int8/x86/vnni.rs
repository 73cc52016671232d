//! Tiles of products with AVX512-VNNI.

use super::super::finish::Conversion;
use super::super::tile::{ByteEnd, GROUP, PANEL, PANELS, ROWS, Sums, TileArgs, TileEnd};
use super::bytes::{Adder, Narrow, PanelScale};
use crate::par::PickedRows;
use std::arch::x86_64::*;

/// Bytes of the weights of a group of a panel.
const LINE: usize = GROUP * PANEL;
/// Rows of a tile of one or two panels.
const HIGH_ROWS: usize = 2 * ROWS;

/// Sums of R rows and P panels.
type Tile<const R: usize, const P: usize> = [[__m512i; P]; R];

/// Computes the sums of whole tiles, or of one row, with AVX512-VNNI.
///
/// # Safety
/// The machine has AVX512-VNNI, and the operands are as long as [`TileArgs`] says.
pub(crate) unsafe fn vnni(x: &TileArgs<'_>, end: TileEnd<'_, '_>) {
    assert!(end.rows() == x.starts.len(), "{} rows of {}", end.rows(), x.starts.len());
    // SAFETY: promised by the caller.
    unsafe {
        match (x.starts.len(), x.count) {
            (1, 1) => tiles::<1, 1>(x, end),
            (1, 2) => tiles::<1, 2>(x, end),
            (1, 3) => tiles::<1, 3>(x, end),
            (1, PANELS) => tiles::<1, PANELS>(x, end),
            (_, 1) => high_tiles::<1>(x, end),
            (_, 2) => high_tiles::<2>(x, end),
            (_, 3) => tiles::<ROWS, 3>(x, end),
            (_, PANELS) => tiles::<ROWS, PANELS>(x, end),
            (rows, panels) => unreachable!("{rows} x {panels}"),
        }
    }
}

/// Computes tiles of few panels, which have twice as many rows where there are as many, so that
/// enough sums are in flight.
///
/// # Safety
/// The caller promises what [`vnni`] asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn high_tiles<const P: usize>(x: &TileArgs<'_>, mut end: TileEnd<'_, '_>) {
    let all = x.starts.len();
    let (high, low) = x.starts.split_at(all / HIGH_ROWS * HIGH_ROWS);
    // SAFETY: promised by the caller.
    unsafe {
        tiles::<HIGH_ROWS, P>(&x.with_starts(high), end.part(0..high.len()));
        tiles::<ROWS, P>(&x.with_starts(low), end.part(high.len()..all));
    }
}

/// Computes the sums of R rows and P panels together, all in registers, as often as there are R
/// rows.
///
/// # Safety
/// The caller promises what [`vnni`] asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
unsafe fn tiles<const R: usize, const P: usize>(x: &TileArgs<'_>, end: TileEnd<'_, '_>) {
    let starts = x.starts.as_chunks::<R>().0;
    if starts.is_empty() {
        return;
    }
    match end {
        TileEnd::Sums(out) => {
            let first = std::array::from_fn(|p| first_sums(x, p));
            for (starts, out) in starts.iter().zip(out.as_chunks_mut::<R>().0) {
                // SAFETY: promised by the caller.
                store_sums(unsafe { products::<R, P>(x, starts, first) }, out);
            }
        }
        TileEnd::Bytes(end, mut out) => {
            let bytes = TileBytes::<P>::new(&end, &mut out);
            let first = std::array::from_fn(|p| _mm512_add_epi32(first_sums(x, p), bytes.scales[p].first));
            for (tile, starts) in starts.iter().enumerate() {
                // SAFETY: promised by the caller; `end` has as many rows.
                unsafe { bytes.store(tile * R, products::<R, P>(x, starts, first)) }
            }
        }
    }
}

/// The numbers that the sums of a panel begin with.
#[inline]
#[target_feature(enable = "avx512f")]
fn first_sums(x: &TileArgs<'_>, panel: usize) -> __m512i {
    let first = x.first_sums(panel);
    // SAFETY: there are 16 numbers.
    unsafe { _mm512_loadu_si512(first.as_ptr().cast()) }
}

/// The sums of a tile.
///
/// # Safety
/// The caller promises what [`vnni`] asks for.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn products<const R: usize, const P: usize>(
    x: &TileArgs<'_>,
    starts: &[usize; R],
    first: [__m512i; P],
) -> Tile<R, P> {
    let mut sums = [first; R];
    let mut weights: [_; P] = std::array::from_fn(|p| x.panel(p));
    for segment in x.segments() {
        let rows = starts.map(|start| x.data().wrapping_add(start + *segment));
        for g in 0..x.groups() {
            // SAFETY: every panel has this group of this segment, and so has every row.
            unsafe {
                let mut lines = [_mm512_setzero_si512(); P];
                for p in 0..P {
                    lines[p] = _mm512_loadu_si512(weights[p].cast());
                    weights[p] = weights[p].add(LINE);
                }
                for r in 0..R {
                    let data = _mm512_set1_epi32(rows[r].add(g * GROUP).cast::<i32>().read_unaligned());
                    for p in 0..P {
                        sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], data, lines[p]);
                    }
                }
            }
        }
    }
    sums
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_sums<const R: usize, const P: usize>(sums: Tile<R, P>, out: &mut [Sums; R]) {
    for r in 0..R {
        for p in 0..P {
            // SAFETY: a row of sums has those of all panels.
            unsafe { _mm512_storeu_si512(out[r].as_mut_ptr().add(p * PANEL).cast(), sums[r][p]) }
        }
    }
}

/// Makes bytes of tiles with P panels.
struct TileBytes<'a, const P: usize> {
    scales: [PanelScale; PANELS],
    conversion: Conversion,
    added: Option<Adder<'a>>,
    narrow: Narrow,
    /// Address of the results of row 0, and bytes from a row to the next.
    out: (*mut u8, usize),
    /// The row of each result.
    rows: &'a [usize],
}

impl<'a, const P: usize> TileBytes<'a, P> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(end: &ByteEnd<'a>, out: &'a mut PickedRows<'_, u8>) -> Self {
        let (address, pitch, rows) = out.addresses(P * PANEL);
        // Numbers that bytes are added to are not made in one step.
        let conversion = if end.added.is_some() { Conversion::Bias } else { end.conversion };
        TileBytes {
            scales: PanelScale::of(end, conversion),
            conversion,
            added: Adder::of(end),
            narrow: Narrow::of(end),
            out: (address, pitch),
            rows,
        }
    }

    /// Writes the results of a tile, of which the first row has this number.
    ///
    /// # Safety
    /// There are as many rows.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn store<const R: usize>(&self, first: usize, mut sums: Tile<R, P>) {
        if let Some(added) = &self.added {
            let stored = sums;
            // SAFETY: promised by the caller.
            return unsafe { self.store_added(added, first, &stored) };
        }
        match self.conversion {
            Conversion::Bits => self.convert(&mut sums, |scale, sum| scale.of_bits(sum)),
            Conversion::WholeBias => self.convert(&mut sums, |scale, sum| scale.of_whole(sum)),
            Conversion::Bias => self.convert(&mut sums, |scale, sum| scale.of_sum(sum)),
        }
        // Rows of few panels become bytes together.
        let together = PANELS / P;
        for group in 0..R.div_ceil(together) {
            let row = group * together;
            let integers = std::array::from_fn(|i| match (row + i / P, i % P) {
                (r, p) if i < together * P && r < R => sums[r][p],
                _ => _mm512_setzero_si512(),
            });
            let bytes = self.narrow.in_order(integers);
            for i in 0..together.min(R - row) {
                // SAFETY: promised by the caller; `addresses` checked rows and their length.
                unsafe { store_row::<P>(bytes, i, self.address(first + row + i)) }
            }
        }
    }

    /// Makes integers of sums, panel by panel: the scales of all would not leave registers enough for
    /// the sums.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn convert<const R: usize>(&self, sums: &mut Tile<R, P>, number: impl Fn(&PanelScale, __m512i) -> __m512) {
        for p in 0..P {
            for r in 0..R {
                sums[r][p] = _mm512_cvtps_epi32(number(&self.scales[p], sums[r][p]));
            }
        }
    }

    /// Writes the results of a tile, with bytes added. A loop over rows reads sums from memory; it would
    /// be too long if it was unrolled.
    ///
    /// # Safety
    /// There are as many rows.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn store_added<const R: usize>(&self, added: &Adder<'_>, first: usize, sums: &Tile<R, P>) {
        for (r, sums) in sums.iter().enumerate() {
            let row = added.row(first + r);
            let mut integers = [_mm512_setzero_si512(); PANELS];
            for p in 0..P {
                integers[p] = _mm512_cvtps_epi32(added.add(row, p, self.scales[p].of_sum(sums[p])));
            }
            // SAFETY: promised by the caller; `addresses` checked rows and their length.
            unsafe { store_row::<P>(self.narrow.in_order(integers), 0, self.address(first + r)) }
        }
    }

    /// Address of the results of a row.
    ///
    /// # Safety
    /// There is such a row.
    #[inline]
    unsafe fn address(&self, row: usize) -> *mut u8 {
        // SAFETY: promised by the caller.
        self.out.0.wrapping_add(unsafe { *self.rows.get_unchecked(row) } * self.out.1)
    }
}

/// Writes one of the rows of P panels whose bytes follow each other.
///
/// # Safety
/// The row has the bytes of all panels.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn store_row<const P: usize>(bytes: __m512i, i: usize, to: *mut u8) {
    let low = _mm512_castsi512_si256(bytes);
    let half = |i: usize| if i == 0 { low } else { _mm512_extracti64x4_epi64::<1>(bytes) };
    // SAFETY: promised by the caller.
    unsafe {
        match P {
            1 if i.is_multiple_of(2) => _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(half(i / 2))),
            1 => _mm_storeu_si128(to.cast(), _mm256_extracti128_si256::<1>(half(i / 2))),
            2 => _mm256_storeu_si256(to.cast(), half(i)),
            3 => _mm512_mask_storeu_epi32(to.cast(), 0x0fff, bytes),
            _ => _mm512_storeu_si512(to.cast(), bytes),
        }
    }
}
