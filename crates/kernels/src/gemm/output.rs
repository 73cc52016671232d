//! The target of products: bias and activation are applied before storing.

use super::Sgemm;
use crate::activation::{Activation, Limits};
use crate::simd::{Body, Dst, LANES, Simd, Src, entry};

/// The treatment of a sum before it is stored: bias of its column, then the activation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// One value per column of C.
    pub bias: Option<&'a [f32]>,
    /// Applied last.
    pub activation: Activation,
}

/// C and the bias are as large as an m x n product needs.
pub(crate) fn check_output(m: usize, n: usize, c: &[f32], c_stride: usize, epilogue: &Epilogue<'_>) {
    assert!(c_stride >= n, "rows of C are {n} long but {c_stride} apart");
    let c_len = (m - 1) * c_stride + n;
    assert!(c.len() >= c_len, "C needs {c_len} elements, got {}", c.len());
    assert!(epilogue.bias.is_none_or(|b| b.len() >= n), "the bias needs {n} elements");
}

/// Factors of a product and of what C holds before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub alpha: f32,
    /// C is not read where this is 0.
    pub beta: f32,
}

impl Default for Scale {
    fn default() -> Self {
        Scale { alpha: 1.0, beta: 0.0 }
    }
}

/// The target of a product.
pub(crate) struct Output<'a> {
    pub gemm: Sgemm,
    pub epilogue: Epilogue<'a>,
    pub scale: Scale,
    pub c: Dst,
    pub c_stride: usize,
}

impl Output<'_> {
    /// Writes `rows` rows of the finished sums of a panel to C with the epilogue applied.
    ///
    /// # Safety
    /// As for [`store_columns`](Self::store_columns).
    pub unsafe fn store(&self, first: usize, rows: usize, panel: usize, sums: Src, sums_row: usize) {
        let width = self.gemm.panel();
        // SAFETY: promised by the caller.
        unsafe { self.store_columns(first, rows, panel * width, width, sums, sums_row) }
    }

    /// Writes finished sums to `rows` rows and up to `width` columns of C, as many as it has, with
    /// the epilogue applied; `width` is at most 32.
    ///
    /// # Safety
    /// No other thread may touch these rows and columns; `sums` must hold `rows` rows of whole
    /// blocks of columns, `sums_row` elements from one to the next.
    pub unsafe fn store_columns(
        &self,
        first: usize,
        rows: usize,
        col: usize,
        width: usize,
        sums: Src,
        sums_row: usize,
    ) {
        let cols = width.min(self.gemm.n - col);
        let mut bias = [0.0; 2 * LANES];
        if let Some(b) = self.epilogue.bias {
            bias[..cols].copy_from_slice(&b[col..col + cols]);
        }
        let args = StoreArgs {
            sums,
            sums_row,
            bias: Src::new(&bias),
            limits: self.epilogue.activation.limits(),
            scale: self.scale,
            c: self.c.add(first * self.c_stride + col),
            c_stride: self.c_stride,
            rows,
            cols,
        };
        // SAFETY: rows `first ..` and columns `col ..` lie inside C (checked in `run`); the rest is
        // promised by the caller.
        unsafe { entry::<StoreRows>(self.gemm.isa)(&args) }
    }
}

/// Rows of finished sums, and where they go in C.
struct StoreArgs {
    sums: Src,
    sums_row: usize,
    bias: Src,
    limits: Limits,
    scale: Scale,
    c: Dst,
    c_stride: usize,
    rows: usize,
    cols: usize,
}

struct StoreRows;

impl Body for StoreRows {
    type Args = StoreArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &StoreArgs) {
        let limits = x.limits.ready(s);
        let (alpha, beta) = (s.splat(x.scale.alpha), s.splat(x.scale.beta));
        for r in 0..x.rows {
            for j in (0..x.cols).step_by(LANES) {
                // SAFETY: the sums have whole blocks of columns; C gets `cols` of them, the last
                // block by way of a buffer.
                unsafe {
                    let at = r * x.c_stride + j;
                    let mut v = s.mul(s.load(x.sums, r * x.sums_row + j), alpha);
                    if x.scale.beta != 0.0 {
                        let old = s.load_part(x.c.as_src(), at, LANES.min(x.cols - j), s.zero());
                        v = s.fma(old, beta, v);
                    }
                    let v = limits.apply(s, s.add(v, s.load(x.bias, j)));
                    if j + LANES <= x.cols {
                        s.store(x.c, at, v);
                    } else {
                        let mut last = [0.0; LANES];
                        s.store(Dst::new(&mut last), 0, v);
                        x.c.copy_from(at, Src::new(&last), x.cols - j);
                    }
                }
            }
        }
    }
}
