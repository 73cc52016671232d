//! The end of a product on tiles: bias, residual, activation, functions, and the target.

use super::lines::{Lines, LinesMut, Split, WrittenBlock};
use super::tiles::{LINE_NUMBERS, SIDE};
use crate::activation::{Activation, ActivationLimits};
use crate::gemm::{ElementFunction, Epilogue};
use crate::isa::Isa;
use crate::simd::{Body, Dst, LANES, Simd, Src, entry};

/// The treatment of a sum on tiles before it is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct TileEpilogue<'a> {
    /// Bias, residual, activation, and a function of the result.
    pub exact: Epilogue<'a>,
    /// The Gaussian error linear unit of the result, before the function, with an error of at most
    /// 2^-11 of the argument: for products in bf16.
    pub gelu: bool,
}

impl<'a> From<Epilogue<'a>> for TileEpilogue<'a> {
    fn from(exact: Epilogue<'a>) -> TileEpilogue<'a> {
        TileEpilogue { exact, gelu: false }
    }
}

impl<'a> TileEpilogue<'a> {
    /// Without what is for products in bf16.
    pub(super) fn exact(self) -> Epilogue<'a> {
        assert!(!self.gelu, "a product in float32 has no function with the precision of bf16");
        self.exact
    }
}

/// The place of the result of a product on tiles.
#[derive(Debug)]
pub enum Target<'a> {
    /// Rows of float32.
    Rows {
        /// The elements.
        c: &'a mut [f32],
        /// Distance between rows.
        stride: usize,
    },
    /// [`result_lines`](super::AmxGemm::result_lines), for the next product.
    Lines(&'a mut [u8]),
}

/// [`Target`] as threads share it.
enum SharedTarget {
    Rows { c: Dst, stride: usize },
    Lines(LinesMut),
}

/// The target of a running product.
pub(super) struct TileOutput<'a> {
    /// Rows and columns of C.
    size: [usize; 2],
    epilogue: TileEpilogue<'a>,
    limits: ActivationLimits,
    target: SharedTarget,
}

impl<'a> TileOutput<'a> {
    /// # Panics
    /// If an operand is smaller than C of this size needs.
    pub fn new([m, n]: [usize; 2], lines: Lines, epilogue: TileEpilogue<'a>, target: Target<'_>) -> TileOutput<'a> {
        let Epilogue { bias, residual, activation, .. } = epilogue.exact;
        assert!(bias.is_none_or(|b| b.len() >= n), "the bias needs {n} elements");
        assert!(residual.is_none_or(|r| r.len() >= m * n), "the residual needs {} elements", m * n);
        let target = match target {
            Target::Rows { c, stride } => {
                assert!(stride >= n, "rows of C are {n} long but {stride} apart");
                let needed = (m - 1) * stride + n;
                assert!(c.len() >= needed, "C needs {needed} elements, got {}", c.len());
                SharedTarget::Rows { c: Dst::new(c), stride }
            }
            Target::Lines(out) => SharedTarget::Lines(lines.target(out)),
        };
        TileOutput { size: [m, n], epilogue, limits: Activation::limits(activation), target }
    }

    /// Writes the sums of a register tile, `[32][32]`, to C. The sums are used up.
    ///
    /// # Safety
    /// No other thread may touch these rows and columns.
    pub unsafe fn store<T: Split>(&self, t: &mut T, [row, rows]: [usize; 2], column: usize, sums: &mut [f32]) {
        let n = self.size[1];
        let columns = SIDE.min(n - column);
        let mut bias = [0.0; SIDE];
        if let Some(b) = self.epilogue.exact.bias {
            bias[..columns].copy_from_slice(&b[column..column + columns]);
        }
        let within = Dst::new(sums);
        let functions = self.epilogue.gelu || self.epilogue.exact.function.is_some();
        let direct = match &self.target {
            SharedTarget::Rows { c, stride } if !functions => Some((c.add(row * stride + column), *stride)),
            _ => None,
        };
        let (to, to_row) = direct.unwrap_or((within, SIDE));
        let residual = self.epilogue.exact.residual.map(|r| Src::new(r).add(row * n + column));
        let args = FinishArgs {
            sums: within.as_src(),
            bias: Src::new(&bias),
            residual,
            residual_row: n,
            limits: self.limits,
            to,
            to_row,
            rows,
            columns,
        };
        // SAFETY: rows and columns are inside C and the residual; the rest is promised.
        unsafe { entry::<Finish>(Isa::detect())(&args) }
        if direct.is_some() {
            return;
        }
        let sums = &mut sums[..rows * SIDE];
        if self.epilogue.gelu {
            gelu(sums);
        }
        if let Some(ElementFunction(function)) = self.epilogue.exact.function {
            function(sums);
        }
        match &self.target {
            SharedTarget::Rows { c, stride } => {
                for (r, from) in sums.chunks_exact(SIDE).enumerate() {
                    // SAFETY: these rows and columns are inside C and this thread's.
                    unsafe { c.copy_from((row + r) * stride + column, Src::new(from), columns) }
                }
            }
            SharedTarget::Lines(lines) => {
                // SAFETY: as above; the sums have all rows.
                unsafe { lines.put(t, sums.as_ptr(), SIDE, WrittenBlock { row, rows, column, columns }) }
            }
        }
    }
}

struct FinishArgs {
    sums: Src,
    bias: Src,
    residual: Option<Src>,
    residual_row: usize,
    limits: ActivationLimits,
    to: Dst,
    to_row: usize,
    rows: usize,
    columns: usize,
}

struct Finish;

impl Body for Finish {
    type Args = FinishArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &FinishArgs) {
        let limits = x.limits.ready(s);
        // SAFETY: the sums and the bias have 32 columns; the target and the residual have `columns`.
        unsafe {
            let bias = [s.load(x.bias, 0), s.load(x.bias, LANES)];
            for r in 0..x.rows {
                for half in 0..2 {
                    let at = half * LANES;
                    if at >= x.columns {
                        break;
                    }
                    let n = LANES.min(x.columns - at);
                    let mut v = s.add(s.load(x.sums, r * SIDE + at), bias[half]);
                    if let Some(residual) = x.residual {
                        v = s.add(v, s.load_part(residual, r * x.residual_row + at, n, s.zero()));
                    }
                    let v = limits.apply(s, v);
                    if n == LANES {
                        s.store(x.to, r * x.to_row + at, v);
                    } else {
                        s.store_part(x.to, r * x.to_row + at, n, v);
                    }
                }
            }
        }
    }
}

/// The Gaussian error linear unit with an error of at most 2^-11 of the argument, in place.
fn gelu(x: &mut [f32]) {
    let args = (Dst::new(x), x.len());
    // SAFETY: the elements are there.
    unsafe { entry::<Gelu>(Isa::detect())(&args) }
}

struct Gelu;

/// The normal distribution's function, less a half, over the argument, as a polynomial of its
/// square on [-4.2, 4.2] (fitted to the function in double precision by reweighted least squares;
/// the argument times the error is at most 3e-5), highest power first. At 4.2 it exceeds a half.
const NORMAL: [f32; 9] = [
    5.998_329e-11,
    -5.6335645e-9,
    2.3437777e-7,
    -5.7610257e-6,
    9.457_863e-5,
    -1.114_198e-3,
    9.830_573e-3,
    -6.636_336e-2,
    3.989_254e-1,
];
const NORMAL_END: f32 = 4.2;
/// Vectors in progress at once.
const AT_ONCE: usize = 4;

impl Body for Gelu {
    type Args = (Dst, usize);
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &(Dst, usize)) {
        // SAFETY: promised by the caller; rows of sums are whole vectors.
        unsafe {
            let whole = x.1 / (AT_ONCE * LANES) * AT_ONCE * LANES;
            for at in (0..whole).step_by(AT_ONCE * LANES) {
                some_gelu::<S, AT_ONCE>(s, x.0, at);
            }
            for at in (whole..x.1).step_by(LANES) {
                some_gelu::<S, 1>(s, x.0, at);
            }
        }
    }
}

/// # Safety
/// N vectors from `at` on must be there.
#[inline(always)]
unsafe fn some_gelu<S: Simd, const N: usize>(s: S, x: Dst, at: usize) {
    let (mut v, mut near, mut square, mut sum) = ([s.zero(); N], [s.zero(); N], [s.zero(); N], [s.zero(); N]);
    let end = s.splat(NORMAL_END);
    for i in 0..N {
        // SAFETY: promised by the caller.
        v[i] = unsafe { s.load(x.as_src(), at + i * LANES) };
        near[i] = s.clamp(v[i], s.splat(-NORMAL_END), end);
        square[i] = s.mul(near[i], near[i]);
        sum[i] = s.splat(NORMAL[0]);
    }
    for c in 1..NORMAL.len() {
        for i in 0..N {
            sum[i] = s.fma(sum[i], square[i], s.splat(NORMAL[c]));
        }
    }
    for i in 0..N {
        let normal = s.clamp(s.fma(sum[i], near[i], s.splat(0.5)), s.zero(), s.splat(1.0));
        // SAFETY: as above.
        unsafe { s.store(x, at + i * LANES, s.mul(v[i], normal)) }
    }
}

const _: () = assert!(SIDE == LINE_NUMBERS && SIDE == 2 * LANES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gelu_of_bf16_is_near_the_exact_one_and_keeps_nan() {
        let mut x: Vec<f32> = (0..4096).map(|i| (i as f32 - 2048.0) / 200.0).collect();
        x.extend([
            f32::NAN,
            f32::INFINITY,
            -3.0e38,
            3.0e38,
            0.0,
            -0.0,
            1e-30,
            -1e-30,
            4.2,
            -4.2,
            4.3,
            -4.3,
            5.0,
            -5.0,
            9.0,
            1.0,
        ]);
        let mut y = x.clone();
        gelu(&mut y);
        for (x, y) in x.iter().zip(&y) {
            let want = crate::math::gelu(f64::from(*x));
            if want.is_nan() || want.is_infinite() {
                assert!(y.is_nan() == x.is_nan() && (x.is_nan() || y == x), "gelu({x}) = {y}");
                continue;
            }
            let error = (f64::from(*y) - want).abs();
            assert!(error <= f64::from(x.abs()) / 2048.0 / 12.0, "gelu({x}) = {y}, not {want}");
        }
        assert_eq!(y[4098], 0.0, "the largest negative number");
    }
}
