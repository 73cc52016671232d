//! The target of products: what follows the sums is applied before they are stored.

use super::Sgemm;
use crate::activation::{Activation, ActivationLimits};
use crate::simd::{Body, Dst, LANES, Simd, Src, entry};

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
        let mut factors = [self.scale.alpha; 2 * LANES];
        if let Some(f) = self.factors {
            factors.iter_mut().zip(&f[col..col + cols]).for_each(|(factor, f)| *factor *= f);
        }
        let store = entry::<StoreRows>(self.gemm.isa);
        let c = self.c.add(first * self.c_stride + col);
        let args = StoreArgs {
            sums,
            sums_row,
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
                sums: sums.add(row * sums_row),
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

/// Rows of finished sums, what is added to them, and where they go.
struct StoreArgs {
    sums: Src,
    sums_row: usize,
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
                // SAFETY: the sums have whole blocks of columns; C and the residual have `cols` of
                // them, and the last block is stored by way of a buffer.
                unsafe {
                    let (at, n) = (r * x.c_row + j, LANES.min(x.cols - j));
                    let mut v = s.mul(s.load(x.sums, r * x.sums_row + j), s.load(x.factors, j));
                    if x.beta != 0.0 {
                        let old = s.load_part(x.old, r * x.old_row + j, n, s.zero());
                        v = s.fma(old, beta, v);
                    }
                    v = s.add(v, s.load(x.bias, j));
                    if let Some(residual) = x.residual {
                        v = s.add(v, s.load_part(residual, r * x.residual_row + j, n, s.zero()));
                    }
                    let v = limits.apply(s, v);
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
