//! Matrix products `C = A * B` in `f32`, with an epilogue applied before storing.
//!
//! B is packed once into panels of 16 or 32 columns in reading order; A may have any strides and is
//! repacked: by every chunk where it has few rows, else once (`shared.rs`). Every element of C is
//! summed over k in the same order whatever the threads do. Large weights are packed in fewer bytes
//! without loss (`compact`), and any weights on request with less precision (`small`).

mod batch;
mod bf16;
mod compact;
#[allow(clippy::needless_range_loop)]
mod few_rows;
#[allow(clippy::needless_range_loop)]
mod job;
mod live;
pub(crate) mod output;
pub(crate) mod rows;
mod shared;
mod small;
#[allow(clippy::needless_range_loop)]
pub(crate) mod tile;
mod unpack;

pub use batch::{BatchProduct, Matrices, MatricesMut, Places};
pub use bf16::Bf16Gemm;
pub use output::{ElementFunction, Epilogue};
pub use small::SmallWeights;

use crate::aligned::AlignedVec;
use crate::isa::Isa;
use crate::par::{Par, Serial, chunk_rows, par_chunks_mut};
use crate::simd::{Dst, LANES, Src};
use job::{GemmCut, Job, Right, scratch_bytes};
use live::Live;
use output::{GemmOutput, Scale, check_output};
use tile::{Elements, tile_size};

/// A matrix read with strides: element (i, j) is `data[i * row_stride + j * col_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// Distance between rows.
    pub row_stride: usize,
    /// Distance between columns.
    pub col_stride: usize,
}

impl<'a> Matrix<'a> {
    /// Rows of `cols` elements, one after another.
    pub fn rows(data: &'a [f32], cols: usize) -> Self {
        Matrix { data, row_stride: cols, col_stride: 1 }
    }

    /// The transpose of this matrix.
    pub fn transposed(self) -> Self {
        Matrix { data: self.data, row_stride: self.col_stride, col_stride: self.row_stride }
    }

    fn check(&self, what: &str, rows: usize, cols: usize) {
        if rows > 0 && cols > 0 {
            let last = (rows - 1) * self.row_stride + (cols - 1) * self.col_stride;
            assert!(
                last < self.data.len(),
                "{what} of {rows} x {cols} needs {} elements, got {}",
                last + 1,
                self.data.len()
            );
        }
    }
}

/// The product of an m x k by a k x n matrix on one instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sgemm {
    m: usize,
    n: usize,
    k: usize,
    isa: Isa,
    /// Elements of a row of A.
    elements: Elements,
    form: PackedForm,
}

/// The form of the numbers of a packed B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackedForm {
    /// Unchanged.
    Plain,
    /// 28 bits for each number where this loses nothing.
    Compact,
    /// Fewer bytes, by rounding.
    Small(SmallWeights),
}

impl Sgemm {
    /// A product of `[m, k]` by `[k, n]`.
    pub fn new(m: usize, n: usize, k: usize, isa: Isa) -> Sgemm {
        Sgemm { m, n, k, isa: isa.or_best(), elements: Elements::Single, form: PackedForm::Plain }
    }

    /// A product with the weights of a layer, which are packed so that they are read in the least
    /// time: for all m in one way.
    pub fn with_weights(m: usize, n: usize, k: usize, isa: Isa) -> Sgemm {
        let form = if compact::pays(n, k, isa.or_best()) { PackedForm::Compact } else { PackedForm::Plain };
        Sgemm { form, ..Sgemm::new(m, n, k, isa) }
    }

    /// A product with weights that are rounded to fewer bytes when they are packed: for all m in
    /// one way.
    pub fn with_small_weights(m: usize, n: usize, k: usize, isa: Isa, weights: SmallWeights) -> Sgemm {
        Sgemm { form: PackedForm::Small(weights), ..Sgemm::new(m, n, k, isa) }
    }

    /// The product with a B that is packed unchanged.
    fn plain(&self) -> Sgemm {
        Sgemm { form: PackedForm::Plain, ..*self }
    }

    /// Whether B is packed in 28 bits for each number where this loses nothing.
    pub fn is_compact(&self) -> bool {
        self.form == PackedForm::Compact
    }

    /// The form of weights in fewer bytes, if B is packed in one.
    pub fn small_weights(&self) -> Option<SmallWeights> {
        if let PackedForm::Small(weights) = self.form { Some(weights) } else { None }
    }

    /// Columns of B and C.
    pub fn columns(&self) -> usize {
        self.n
    }

    /// Products in a sum.
    pub fn depth(&self) -> usize {
        self.k
    }

    /// The instruction set it runs on.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Columns of a panel of packed B.
    pub fn panel(&self) -> usize {
        tile_size(self.isa).blocks * LANES
    }

    /// Elements that [`pack`](Self::pack) writes.
    pub fn packed_len(&self) -> usize {
        let plain = self.n.next_multiple_of(self.panel()) * self.k;
        match self.form {
            PackedForm::Plain => plain,
            PackedForm::Compact => compact::packed_len(self, plain),
            PackedForm::Small(weights) => weights.packed_len(self),
        }
    }

    /// Packs B, `[k, n]`, in panels of columns, each `[k, panel]`; missing columns are zero.
    /// Independent of m.
    ///
    /// # Panics
    /// If B is smaller than k x n or `out` than [`packed_len`](Self::packed_len).
    pub fn pack(&self, b: Matrix<'_>, out: &mut [f32]) {
        b.check("B", self.k, self.n);
        assert!(out.len() >= self.packed_len(), "packing B needs {} elements, got {}", self.packed_len(), out.len());
        let out = &mut out[..self.packed_len()];
        match self.form {
            PackedForm::Plain => self.pack_panels(0, b, out),
            PackedForm::Compact => compact::pack(self, b, out),
            PackedForm::Small(weights) => weights.pack(self, &Serial, b, out),
        }
    }

    /// Packs with the same bits, with panels as the chunks of a loop.
    ///
    /// # Panics
    /// As [`pack`](Self::pack).
    pub fn pack_in_parallel(&self, par: &dyn Par, b: Matrix<'_>, out: &mut [f32]) {
        let panel = self.panel() * self.k;
        if self.is_compact() || out.len() < self.packed_len() {
            return self.pack(b, out);
        }
        b.check("B", self.k, self.n);
        if let PackedForm::Small(weights) = self.form {
            return weights.pack(self, par, b, &mut out[..self.packed_len()]);
        }
        let panels = chunk_rows::<f32>(panel);
        par_chunks_mut(par, &mut out[..self.packed_len()], panels * panel, |chunk, out| {
            self.pack_panels(chunk * panels, b, out);
        });
    }

    /// Elements of memory that [`run`](Self::run) needs for as long as it runs.
    pub fn workspace_len(&self) -> usize {
        let compact = || Live::room(self.m, self.k) + compact::product::CompactCut::new(self.m, self.n).room();
        if self.is_compact() { compact() } else { 0 }
    }

    /// `c = a * b` with the epilogue applied; `packed` is B as [`pack`](Self::pack) left it, row i
    /// of C starts at `i * c_stride`. Weights in 28 bits that meet nothing but zeros are not read.
    ///
    /// # Panics
    /// If an operand is smaller than the shape says, or `workspace` than
    /// [`workspace_len`](Self::workspace_len); on weights in fewer bytes if the rows of A are
    /// not contiguous.
    #[allow(clippy::too_many_arguments)]
    pub fn run(
        &self,
        a: Matrix<'_>,
        packed: &[f32],
        epilogue: Epilogue<'_>,
        c: &mut [f32],
        c_stride: usize,
        workspace: &mut [f32],
        par: &dyn Par,
    ) {
        if self.m == 0 || self.n == 0 {
            return;
        }
        a.check("A", self.m, self.k);
        assert!(
            packed.len() >= self.packed_len(),
            "packed B needs {} elements, got {}",
            self.packed_len(),
            packed.len()
        );
        check_output(self.m, self.n, c, c_stride, &epilogue);

        let (needed, given) = (self.workspace_len(), workspace.len());
        assert!(given >= needed, "the workspace needs {needed} elements, got {given}");
        let output =
            GemmOutput { gemm: *self, epilogue, scale: Scale::default(), factors: None, c: Dst::new(c), c_stride };
        if let PackedForm::Small(weights) = self.form {
            return weights.run(a, packed, output, par);
        }
        let b = match self.is_compact().then(|| compact::View::of(self, packed)) {
            Some(Ok(view)) => {
                let (live, sums) = workspace.split_at_mut(Live::room(self.m, self.k));
                let (cut, live) = (compact::product::CompactCut::new(self.m, self.n), view.live(a, self.m, live));
                let sums = compact::product::multiply(&view, cut, &live, sums, par);
                for panel in 0..self.n.div_ceil(self.panel()) {
                    let sums = Src::new(&sums[cut.place(panel)..]);
                    // SAFETY: there is no other thread.
                    unsafe { output.store(0, self.m, panel, sums, compact::product::ROW) }
                }
                return;
            }
            Some(Err(plain)) => plain,
            None => packed,
        };
        if self.m > tile_size(self.isa).rows {
            return shared::multiply(a, b, output, par);
        }
        let cut = GemmCut::of(self);
        let job = Job { gemm: *self, cut, a, b: Right::Packed(b), output };
        par.run(cut.chunks(), scratch_bytes(self, &cut, false), &|chunk, scratch| job.chunk(chunk, scratch));
    }
}

/// A matrix packed for products with any number of rows.
#[derive(Clone, Debug)]
pub struct PackedB {
    data: AlignedVec,
    n: usize,
    k: usize,
    isa: Isa,
}

impl PackedB {
    /// Packs B: rows of `[k, n]`, or of `[n, k]` if `transposed` (the weights of a fully connected
    /// layer).
    ///
    /// # Panics
    /// If `b` is smaller than k x n.
    pub fn pack(b: &[f32], k: usize, n: usize, transposed: bool, isa: Isa) -> PackedB {
        let gemm = Sgemm::new(1, n, k, isa);
        let mut data = AlignedVec::zeroed(gemm.packed_len());
        let matrix = if transposed { Matrix::rows(b, k).transposed() } else { Matrix::rows(b, n) };
        gemm.pack(matrix, &mut data);
        PackedB { data, n, k, isa: gemm.isa() }
    }

    /// `c[m, n] = a[m, k] * B` with the epilogue applied.
    ///
    /// # Panics
    /// If `a` or `c` is smaller than the shape says.
    pub fn multiply(&self, m: usize, a: Matrix<'_>, epilogue: Epilogue<'_>, c: &mut [f32], par: &dyn Par) {
        Sgemm::new(m, self.n, self.k, self.isa).run(a, &self.data, epilogue, c, self.n, &mut [], par)
    }
}

#[cfg(test)]
pub(crate) mod tests;
