//! The target of products: what follows the sums is applied before they are stored.

use super::Sgemm;
use crate::activation::{Activation, ActivationLimits};
use crate::simd::{Body, Dst, LANES, Simd, Src, entry};
use std::ops::Range;

/// The treatment of a sum before it is stored, in this order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// One value per column of C, which is added.
    pub bias: Option<&'a [f32]>,
    /// A matrix of the size of C, without gaps between its rows, which is added.
    pub residual: Option<&'a [f32]>,
    /// The activation.
    pub activation: Activation,
    /// A function of single elements.
    pub function: Option<ElementFunction<'a>>,
}

/// A function of single elements, in place. It gets some of them at a time, in any order, and is
/// called by several threads.
#[derive(Clone, Copy)]
pub struct ElementFunction<'a>(pub &'a (dyn Fn(&mut [f32]) + Sync));

impl std::fmt::Debug for ElementFunction<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Function")
    }
}

/// Columns that are stored together at most.
pub(super) const MOST_COLUMNS: usize = 128;
/// Elements that an [`ElementFunction`] gets at most.
const TOGETHER: usize = 1024;

/// C and the bias are as large as an m x n product needs.
pub(crate) fn check_output(m: usize, n: usize, c: &[f32], c_stride: usize, epilogue: &Epilogue<'_>) {
    assert!(c_stride >= n, "rows of C are {n} long but {c_stride} apart");
    let c_len = (m - 1) * c_stride + n;
    assert!(c.len() >= c_len, "C needs {c_len} elements, got {}", c.len());
    assert!(epilogue.bias.is_none_or(|b| b.len() >= n), "the bias needs {n} elements");
    assert!(epilogue.residual.is_none_or(|r| r.len() >= m * n), "the residual needs {} elements", m * n);
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
pub(crate) struct GemmOutput<'a> {
    pub gemm: Sgemm,
    pub epilogue: Epilogue<'a>,
    pub scale: Scale,
    /// A factor for each column of the product.
    pub factors: Option<&'a [f32]>,
    pub c: Dst,
    pub c_stride: usize,
}

impl GemmOutput<'_> {
    /// Writes `rows` rows of the finished sums of a panel to C with the epilogue applied.
    ///
    /// # Safety
    /// The caller promises what [`store_panels`](Self::store_panels) asks for, of one panel.
    pub unsafe fn store(&self, first: usize, rows: usize, panel: usize, sums: Src, sums_row: usize) {
        // SAFETY: promised by the caller.
        unsafe {
            self.store_panels(
                first,
                rows,
                panel..panel + 1,
                FinishedSums { at: sums, row: sums_row, panel: self.gemm.panel() },
            )
        }
    }

    /// Writes `rows` rows of the finished sums of some panels to C, as many columns as it has, with
    /// the epilogue applied: row after row, so that what is written is contiguous.
    ///
    /// # Safety
    /// No other thread may touch these rows and columns, which are at most [`MOST_COLUMNS`]; `sums`
    /// must hold `rows` rows of whole panels.
    pub unsafe fn store_panels(&self, first: usize, rows: usize, panels: Range<usize>, sums: FinishedSums) {
        let width = self.gemm.panel();
        let col = panels.start * width;
        let cols = (panels.len() * width).min(self.gemm.n - col);
        let (mut bias, mut factors) = ([0.0; MOST_COLUMNS], [self.scale.alpha; MOST_COLUMNS]);
        if let Some(b) = self.epilogue.bias {
            bias[..cols].copy_from_slice(&b[col..col + cols]);
        }
        if let Some(f) = self.factors {
            factors.iter_mut().zip(&f[col..col + cols]).for_each(|(factor, f)| *factor *= f);
        }
        let store = entry::<StoreRows>(self.gemm.isa);
        let c = self.c.add(first * self.c_stride + col);
        let args = StoreArgs {
            sums,
            panel_bits: width.ilog2(),
            gap: sums.panel - width,
            bias: Src::new(&bias),
            residual: self.epilogue.residual.map(|r| Src::new(r).add(first * self.gemm.n + col)),
            residual_row: self.gemm.n,
            limits: self.epilogue.activation.limits(),
            factors: Src::new(&factors),
            beta: self.scale.beta,
            old: c.as_src(),
            old_row: self.c_stride,
            c,
            c_row: self.c_stride,
            rows,
            cols,
        };
        let Some(ElementFunction(function)) = self.epilogue.function else {
            // SAFETY: rows `first ..` and columns `col ..` are inside C and the residual (checked
            // in `run`); the rest is promised by the caller.
            return unsafe { store(&args) };
        };
        let mut finished = [0.0; TOGETHER];
        let most = TOGETHER / cols;
        for row in (0..rows).step_by(most) {
            let rows = most.min(rows - row);
            let args = StoreArgs {
                sums: FinishedSums { at: sums.at.add(row * sums.row), ..sums },
                residual: args.residual.map(|r| r.add(row * self.gemm.n)),
                old: args.old.add(row * self.c_stride),
                c: Dst::new(&mut finished),
                c_row: cols,
                rows,
                ..args
            };
            // SAFETY: as above, but for the target, which holds these rows without gaps.
            unsafe { store(&args) };
            function(&mut finished[..rows * cols]);
            for (r, from) in finished[..rows * cols].chunks_exact(cols).enumerate() {
                // SAFETY: these rows and columns are inside C and this thread's.
                unsafe { c.copy_from((row + r) * self.c_stride, Src::new(from), cols) }
            }
        }
    }
}

/// Finished sums of some rows and panels.
#[derive(Clone, Copy)]
pub(crate) struct FinishedSums {
    pub at: Src,
    /// Elements from one row to the next.
    pub row: usize,
    /// Elements from one panel to the next.
    pub panel: usize,
}

/// Rows of finished sums, what is added to them, and where they go.
struct StoreArgs {
    sums: FinishedSums,
    /// The columns of a panel are two to the power of this.
    panel_bits: u32,
    /// Elements from the end of a row in a panel to its beginning in the next.
    gap: usize,
    bias: Src,
    residual: Option<Src>,
    residual_row: usize,
    limits: ActivationLimits,
    factors: Src,
    beta: f32,
    old: Src,
    old_row: usize,
    c: Dst,
    c_row: usize,
    rows: usize,
    cols: usize,
}

struct StoreRows;

impl Body for StoreRows {
    type Args = StoreArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &StoreArgs) {
        let limits = x.limits.ready(s);
        let beta = s.splat(x.beta);
        for r in 0..x.rows {
            for j in (0..x.cols).step_by(LANES) {
                // SAFETY: the sums, the bias and the factors have whole blocks of columns; C and the
                // residual have `cols` of them.
                unsafe {
                    let (at, n) = (r * x.c_row + j, LANES.min(x.cols - j));
                    let sum = s.load(x.sums.at, r * x.sums.row + j + (j >> x.panel_bits) * x.gap);
                    let mut v = s.mul(sum, s.load(x.factors, j));
                    if x.beta != 0.0 {
                        let old = s.load_part(x.old, r * x.old_row + j, n, s.zero());
                        v = s.fma(old, beta, v);
                    }
                    v = s.add(v, s.load(x.bias, j));
                    if let Some(residual) = x.residual {
                        v = s.add(v, s.load_part(residual, r * x.residual_row + j, n, s.zero()));
                    }
                    let v = limits.apply(s, v);
                    if j + LANES <= x.cols { s.store(x.c, at, v) } else { s.store_part(x.c, at, n, v) }
                }
            }
        }
    }
}
