//! `C = A * Wᵀ` for few rows of A, straight from the rows of W: packing W would read and write more
//! than the product reads.

use super::tile::too_large;
use super::{Epilogue, Matrix};
use crate::activation::Limits;
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Body, Dst, Entry, LANES, Simd, Src, entry, prefetch_near};

/// Rows of W that share the loads of A, and rows of A that share the loads of W.
const W_ROWS: usize = 4;
const A_ROWS: usize = 4;
/// Multiply-adds that a chunk should have at least.
const CHUNK_WORK: usize = 256 << 10;
/// How far ahead of its use a row of W is requested, in elements.
const AHEAD: usize = 32 * LANES;

/// `c[m, n] = a[m, k] * w[n, k]ᵀ` with the epilogue applied; row i of C starts at `i * c_stride`.
/// Any m; pays for up to about 8.
///
/// # Panics
/// If an operand is smaller than the shape says, or the columns of A are not contiguous.
#[allow(clippy::too_many_arguments)]
pub fn multiply_rows(
    isa: Isa,
    [m, n, k]: [usize; 3],
    a: Matrix<'_>,
    w: &[f32],
    epilogue: Epilogue<'_>,
    c: &mut [f32],
    c_stride: usize,
    par: &dyn Par,
) {
    if m == 0 || n == 0 {
        return;
    }
    a.check("A", m, k);
    assert!(a.col_stride == 1 || k <= 1, "the columns of A must be contiguous, they are {} apart", a.col_stride);
    assert!(w.len() >= n * k, "W of {n} x {k} needs {} elements, got {}", n * k, w.len());
    super::check_output(m, n, c, c_stride, &epilogue);
    let (a_src, w_src, dst) = (Src::new(a.data), Src::new(w), Dst::new(c));
    let groups = n.div_ceil(W_ROWS);
    let chunk_groups = CHUNK_WORK.div_ceil((m * W_ROWS * k).max(1)).min(groups);
    par.run(groups.div_ceil(chunk_groups), 0, &|chunk, _| {
        for group in chunk * chunk_groups..((chunk + 1) * chunk_groups).min(groups) {
            let col = group * W_ROWS;
            let cols = W_ROWS.min(n - col);
            let mut bias = [0.0; W_ROWS];
            if let Some(b) = epilogue.bias {
                bias[..cols].copy_from_slice(&b[col..col + cols]);
            }
            for row in (0..m).step_by(A_ROWS) {
                let rows = A_ROWS.min(m - row);
                let args = DotArgs {
                    a: a_src.add(row * a.row_stride),
                    a_stride: a.row_stride,
                    w: w_src.add(col * k),
                    k,
                    bias,
                    limits: epilogue.activation.limits(),
                    c: dst.add(row * c_stride + col),
                    c_stride,
                };
                // SAFETY: these rows of A and W and elements of C were checked above; this chunk
                // has these columns of C.
                unsafe { dots(isa, rows, cols)(&args) }
            }
        }
    });
}

struct DotArgs {
    a: Src,
    a_stride: usize,
    w: Src,
    k: usize,
    bias: [f32; W_ROWS],
    limits: Limits,
    c: Dst,
    c_stride: usize,
}

/// Dot products of M rows of A with N rows of W.
struct Dots<const M: usize, const N: usize>;

impl<const M: usize, const N: usize> Body for Dots<M, N> {
    type Args = DotArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &DotArgs) {
        // SAFETY: the caller passes M rows of A, N of W and M x N elements of C.
        unsafe {
            let mut acc = [[s.zero(); N]; M];
            let whole = x.k / LANES * LANES;
            for at in (0..whole).step_by(LANES) {
                let mut w = [s.zero(); N];
                for n in 0..N {
                    w[n] = s.load(x.w, n * x.k + at);
                    prefetch_near(x.w, n * x.k + at + AHEAD);
                }
                for m in 0..M {
                    let a = s.load(x.a, m * x.a_stride + at);
                    for n in 0..N {
                        acc[m][n] = s.fma(a, w[n], acc[m][n]);
                    }
                }
            }
            for m in 0..M {
                for n in 0..N {
                    let mut lanes = [0.0f32; LANES];
                    s.store(Dst::new(&mut lanes), 0, acc[m][n]);
                    // Halves, then quarters and so on: short chains of additions.
                    let mut width = LANES / 2;
                    while width > 0 {
                        for i in 0..width {
                            lanes[i] += lanes[i + width];
                        }
                        width /= 2;
                    }
                    let mut sum = lanes[0];
                    for at in whole..x.k {
                        sum += x.a.read(m * x.a_stride + at) * x.w.read(n * x.k + at);
                    }
                    x.c.write(m * x.c_stride + n, x.limits.apply(sum + x.bias[n]));
                }
            }
        }
    }
}

fn dots(isa: Isa, rows: usize, cols: usize) -> Entry<DotArgs> {
    macro_rules! pick {
        ($($m:literal $n:literal),*) => {
            match (rows, cols) { $(($m, $n) => entry::<Dots<$m, $n>>(isa),)* _ => too_large(isa, rows, cols) }
        };
    }
    pick!(1 1, 1 2, 1 3, 1 4, 2 1, 2 2, 2 3, 2 4, 3 1, 3 2, 3 3, 3 4, 4 1, 4 2, 4 3, 4 4)
}
