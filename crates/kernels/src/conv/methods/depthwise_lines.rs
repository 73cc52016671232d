//! Rows of depthwise convolutions where input or output is in lines of bf16: 32 channels, computed
//! in float32.

use crate::activation::ActivationLimits;
use crate::blocked::lines::Pixels;
use crate::gemm::tile::Tap;
use crate::simd::{Dst, LANES, PairsBody, Rounding, Src};

/// Pixels whose sums are kept in registers.
const PIXELS: usize = 4;

/// Arguments of a row of outputs of 32 channels.
pub(super) struct LinesRow {
    /// The input pixel under the first tap of the first output.
    pub a: Pixels<Src>,
    /// Elements between the input pixels of neighbouring outputs.
    pub pixel: usize,
    /// Positions of the taps.
    pub taps: *const Tap,
    pub taps_len: usize,
    /// Whether three neighbouring taps make a row of them, and outputs are at neighbouring pixels.
    pub dense: bool,
    /// A vector of weights per tap, of both halves of the channels.
    pub weights: [Src; 2],
    /// One value per channel.
    pub bias: Src,
    pub residual: Option<Pixels<Src>>,
    pub y: Pixels<Dst>,
    pub cols: usize,
    pub limits: ActivationLimits,
}

impl PairsBody for LinesRow {
    type Args = LinesRow;
    #[inline(always)]
    unsafe fn run<S: Rounding>(s: S, x: &LinesRow) {
        let whole = x.cols / PIXELS * PIXELS;
        // SAFETY: the caller passes valid taps, and operands that they and the columns cover.
        unsafe {
            for col in (0..whole).step_by(PIXELS) {
                if x.dense {
                    store(s, x, col, dense(s, x, col));
                } else {
                    store(s, x, col, sums::<S, PIXELS>(s, x, col));
                }
            }
            for col in whole..x.cols {
                store(s, x, col, sums::<S, 1>(s, x, col));
            }
        }
    }
}

/// The sums of M pixels.
///
/// # Safety
/// Taps must be valid, and inputs readable.
#[inline(always)]
unsafe fn sums<S: Rounding, const M: usize>(s: S, x: &LinesRow, col: usize) -> [[S::V; 2]; M] {
    // SAFETY: promised by the caller.
    unsafe {
        let taps = std::slice::from_raw_parts(x.taps, x.taps_len);
        let mut acc = [[s.load(x.bias, 0), s.load(x.bias, LANES)]; M];
        for (t, tap) in taps.iter().enumerate() {
            let w = [s.load(x.weights[0], t * LANES), s.load(x.weights[1], t * LANES)];
            for m in 0..M {
                let v = x.a.load(s, tap.offset as usize + (col + m) * x.pixel);
                acc[m] = [s.fma(v[0], w[0], acc[m][0]), s.fma(v[1], w[1], acc[m][1])];
            }
        }
        acc
    }
}

/// Computes these sums in this order, with every input loaded once for a row of taps.
///
/// # Safety
/// The caller promises what [`sums`] asks for.
#[inline(always)]
unsafe fn dense<S: Rounding>(s: S, x: &LinesRow, col: usize) -> [[S::V; 2]; PIXELS] {
    // SAFETY: promised by the caller.
    unsafe {
        let taps = std::slice::from_raw_parts(x.taps, x.taps_len);
        let mut acc = [[s.load(x.bias, 0), s.load(x.bias, LANES)]; PIXELS];
        for (i, taps) in taps.chunks_exact(3).enumerate() {
            let mut inputs = [[s.zero(); 2]; PIXELS + 2];
            for m in 0..PIXELS + 2 {
                inputs[m] = x.a.load(s, taps[0].offset as usize + (col + m) * LANES);
            }
            for j in 0..3 {
                let w = [s.load(x.weights[0], (i * 3 + j) * LANES), s.load(x.weights[1], (i * 3 + j) * LANES)];
                for m in 0..PIXELS {
                    let v = inputs[m + j];
                    acc[m] = [s.fma(v[0], w[0], acc[m][0]), s.fma(v[1], w[1], acc[m][1])];
                }
            }
        }
        acc
    }
}

/// Adds the residual, applies the activation and stores M pixels.
///
/// # Safety
/// The residual must be readable and the outputs this thread's.
#[inline(always)]
unsafe fn store<S: Rounding, const M: usize>(s: S, x: &LinesRow, col: usize, acc: [[S::V; 2]; M]) {
    let limits = x.limits.ready(s);
    for m in 0..M {
        // SAFETY: promised by the caller.
        unsafe {
            let (at, mut v) = ((col + m) * LANES, acc[m]);
            if let Some(residual) = x.residual {
                let more = residual.load(s, at);
                v = [s.add(v[0], more[0]), s.add(v[1], more[1])];
            }
            x.y.store(s, at, [limits.apply(s, v[0]), limits.apply(s, v[1])]);
        }
    }
}
