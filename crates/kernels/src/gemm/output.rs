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
pub(super) fn check_output(m: usize, n: usize, c: &[f32], c_stride: usize, epilogue: &Epilogue<'_>) {
    assert!(c_stride >= n, "rows of C are {n} long but {c_stride} apart");
    let c_len = (m - 1) * c_stride + n;
    assert!(c.len() >= c_len, "C needs {c_len} elements, got {}", c.len());
    assert!(epilogue.bias.is_none_or(|b| b.len() >= n), "the bias needs {n} elements");
}

/// The target of a product.
pub(super) struct Output<'a> {
    pub gemm: Sgemm,
    pub epilogue: Epilogue<'a>,
    pub c: Dst,
    pub c_stride: usize,
}

impl Output<'_> {
    /// Writes `rows` rows of the finished sums of a panel to C with the epilogue applied.
    ///
    /// # Safety
    /// No other thread may touch these rows of the panel; `sums` must hold `rows` rows of its
    /// width, `sums_row` elements from one to the next.
    pub unsafe fn store(&self, first: usize, rows: usize, panel: usize, sums: Src, sums_row: usize) {
        let width = self.gemm.panel();
        let col = panel * width;
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
        for r in 0..x.rows {
            for j in (0..x.cols).step_by(LANES) {
                // SAFETY: the sums have whole blocks of columns; C gets `cols` of them, the last
                // block by way of a buffer.
                unsafe {
                    let v = s.add(s.load(x.sums, r * x.sums_row + j), s.load(x.bias, j));
                    let v = limits.apply(s, v);
                    let at = r * x.c_stride + j;
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
