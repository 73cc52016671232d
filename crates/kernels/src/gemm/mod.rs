//! Matrix products `C = A * B` in `f32`, with bias and activation applied before storing.
//!
//! B is packed once into panels of 16 or 32 columns in reading order; A may have any strides and is
//! repacked a few rows at a time. Every element of C is summed over k in the same order whatever
//! the threads do. Large weights are packed in fewer bytes (`compact.rs`).

mod bf16;
mod compact;
#[allow(clippy::needless_range_loop)]
mod dots;
mod live;
mod output;
#[allow(clippy::needless_range_loop)]
pub(crate) mod tile;
mod unpack;

pub use bf16::Bf16Gemm;
pub use dots::multiply_rows;
pub use output::Epilogue;

use crate::aligned::AlignedVec;
use crate::isa::Isa;
use crate::par::{Par, chunk_rows, par_chunks_mut};
use crate::simd::{Dst, LANES, Src};
use live::Live;
use output::{Output, check_output};
use tile::{Elements, ProductArgs, Split, Tap, product, tile_size};

/// Steps of k between two visits of C if there are several tiles of rows: a panel of this depth
/// stays in the first-level cache while they pass by.
const DEPTH: usize = 256;
/// Register tiles of rows that a chunk packs together.
const ROW_TILES: usize = 8;
/// Multiply-adds that a chunk should have at least; and where rows are so few that reading B takes
/// the time.
const CHUNK_WORK: usize = 1 << 20;
const FEW_ROWS_WORK: usize = 128 << 10;

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
    /// Whether B is packed in 28 bits for each number where this loses nothing.
    compact: bool,
}

/// How a product is cut into chunks; a function of its shape and instruction set alone.
#[derive(Clone, Copy, Debug)]
struct Cut {
    rows: Split,
    row_tiles: usize,
    panels: usize,
    bands: usize,
    panel_groups: usize,
}

impl Sgemm {
    /// A product of `[m, k]` by `[k, n]`.
    pub fn new(m: usize, n: usize, k: usize, isa: Isa) -> Sgemm {
        Sgemm { m, n, k, isa: isa.or_best(), elements: Elements::Single, compact: false }
    }

    /// A product with the weights of a layer, which are packed so that they are read in the least
    /// time: for all m in one way.
    pub fn with_weights(m: usize, n: usize, k: usize, isa: Isa) -> Sgemm {
        Sgemm { compact: compact::pays(n, k, isa.or_best()), ..Sgemm::new(m, n, k, isa) }
    }

    /// The product with a B that is packed unchanged.
    fn plain(&self) -> Sgemm {
        Sgemm { compact: false, ..*self }
    }

    /// Whether B is packed in 28 bits for each number where this loses nothing.
    pub fn is_compact(&self) -> bool {
        self.compact
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
        if self.compact { compact::packed_len(self, plain) } else { plain }
    }

    /// Packs B, `[k, n]`, in panels of columns, each `[k, panel]`; missing columns are zero.
    /// Independent of m.
    ///
    /// # Panics
    /// If B is smaller than k x n or `out` than [`packed_len`](Self::packed_len).
    pub fn pack(&self, b: Matrix<'_>, out: &mut [f32]) {
        b.check("B", self.k, self.n);
        assert!(out.len() >= self.packed_len(), "packing B needs {} elements, got {}", self.packed_len(), out.len());
        if self.compact {
            return compact::pack(self, b, out);
        }
        self.pack_panels(0, b, &mut out[..self.packed_len()]);
    }

    /// Packs with the same bits, with panels as the chunks of a loop.
    ///
    /// # Panics
    /// As [`pack`](Self::pack).
    pub fn pack_in_parallel(&self, par: &dyn Par, b: Matrix<'_>, out: &mut [f32]) {
        let panel = self.panel() * self.k;
        if self.compact || out.len() < self.packed_len() {
            return self.pack(b, out);
        }
        b.check("B", self.k, self.n);
        let panels = chunk_rows::<f32>(panel);
        par_chunks_mut(par, &mut out[..self.packed_len()], panels * panel, |chunk, out| {
            self.pack_panels(chunk * panels, b, out);
        });
    }

    /// Packs panels from number `first` on, as many as `out` has room for.
    fn pack_panels(&self, first: usize, b: Matrix<'_>, out: &mut [f32]) {
        let width = self.panel();
        if self.k == 0 {
            return;
        }
        for (p, panel) in out.chunks_exact_mut(width * self.k).enumerate() {
            let first = (first + p) * width;
            let cols = width.min(self.n - first);
            if b.col_stride == 1 {
                for (i, row) in panel.chunks_exact_mut(width).enumerate() {
                    row[..cols].copy_from_slice(&b.data[i * b.row_stride + first..][..cols]);
                    row[cols..].fill(0.0);
                }
            } else {
                pack_columns(b, first, cols, width, panel);
            }
        }
    }

    fn cut(&self) -> Cut {
        let size = tile_size(self.isa);
        let rows = Split::tiles(self.m, self.isa);
        let panels = self.n.div_ceil(self.panel());
        let bands = rows.parts.div_ceil(ROW_TILES);
        let row_tiles = rows.parts.div_ceil(bands);
        // Panels that make a chunk worth its start, and at least eight so that repacking A stays
        // small beside its use.
        let band_work = (row_tiles * size.rows).min(self.m.max(1)) * self.panel() * self.k.max(1);
        let least = if rows.parts == 1 { FEW_ROWS_WORK } else { CHUNK_WORK };
        let group = least.div_ceil(band_work).max(8);
        Cut { rows, row_tiles, panels, bands, panel_groups: panels.div_ceil(group).max(1) }
    }

    /// Elements of memory that [`run`](Self::run) needs for as long as it runs.
    pub fn workspace_len(&self) -> usize {
        let compact = || Live::room(self.m, self.k) + compact::product::Cut::new(self.m, self.n).room();
        if self.compact { compact() } else { 0 }
    }

    /// `c = a * b` with the epilogue applied; `packed` is B as [`pack`](Self::pack) left it, row i
    /// of C starts at `i * c_stride`. Weights in 28 bits that meet nothing but zeros are not read.
    ///
    /// # Panics
    /// If an operand is smaller than the shape says, or `workspace` than
    /// [`workspace_len`](Self::workspace_len); on weights in 28 bits if the rows of A are not
    /// contiguous.
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
        let output = Output { gemm: *self, epilogue, c: Dst::new(c), c_stride };
        let b = match self.compact.then(|| compact::View::of(self, packed)) {
            Some(Ok(view)) => {
                let (live, sums) = workspace.split_at_mut(Live::room(self.m, self.k));
                let (cut, live) = (compact::product::Cut::new(self.m, self.n), view.live(a, self.m, live));
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
        let cut = self.cut();
        let job = Job { gemm: *self, cut, a, b, output };
        let floats = job.band_rows() * (self.k.next_multiple_of(LANES) + self.panel());
        let scratch = size_of::<f32>() * floats + size_of::<Tap>() * self.k.div_ceil(LANES);
        par.run(cut.bands * cut.panel_groups, scratch, &|chunk, scratch| job.chunk(chunk, scratch));
    }
}

/// One panel of a B whose columns are not contiguous, 16 rows at a time so that reads stay in the
/// lines they opened.
fn pack_columns(b: Matrix<'_>, first: usize, cols: usize, width: usize, panel: &mut [f32]) {
    for (block, rows) in panel.chunks_mut(LANES * width).enumerate() {
        let i0 = block * LANES;
        for j in 0..cols {
            let column = &b.data[(first + j) * b.col_stride + i0 * b.row_stride..];
            for (i, row) in rows.chunks_exact_mut(width).enumerate() {
                row[j] = column[i * b.row_stride];
            }
        }
        rows.chunks_exact_mut(width).for_each(|row| row[cols..].fill(0.0));
    }
}

/// A running product: what every chunk needs to know.
struct Job<'a> {
    gemm: Sgemm,
    cut: Cut,
    a: Matrix<'a>,
    /// B in packed form.
    b: &'a [f32],
    output: Output<'a>,
}

impl Job<'_> {
    /// Rows of the largest band.
    fn band_rows(&self) -> usize {
        self.cut.row_tiles * tile_size(self.gemm.isa).rows
    }

    /// One band of rows times one group of panels.
    fn chunk(&self, chunk: usize, scratch: &mut [u8]) {
        let Sgemm { k, isa, elements, .. } = self.gemm;
        let (band, group) = (chunk % self.cut.bands, chunk / self.cut.bands);
        let tiles = band * self.cut.row_tiles..((band + 1) * self.cut.row_tiles).min(self.cut.rows.parts);
        let panels =
            group * self.cut.panels / self.cut.panel_groups..(group + 1) * self.cut.panels / self.cut.panel_groups;
        let (width, blocks) = (self.gemm.panel(), tile_size(isa).blocks);

        let depth = k.next_multiple_of(LANES);
        let (a_bytes, rest) = scratch.split_at_mut(size_of::<f32>() * self.band_rows() * depth);
        let (c_bytes, tap_bytes) = rest.split_at_mut(size_of::<f32>() * self.band_rows() * width);
        let packed_a: &mut [f32] = bytemuck::cast_slice_mut(a_bytes);
        let sums: &mut [f32] = bytemuck::cast_slice_mut(c_bytes);
        let taps: &mut [Tap] = bytemuck::cast_slice_mut(&mut tap_bytes[..size_of::<Tap>() * k.div_ceil(LANES)]);

        let first = self.cut.rows.start(tiles.start);
        for t in tiles.clone() {
            let (start, rows) = (self.cut.rows.start(t), self.cut.rows.rows(t));
            pack_rows(self.a, start, rows, k, &mut packed_a[(start - first) * depth..]);
        }
        let entries = self.cut.rows.entries(|rows| product(isa, elements, rows, blocks));
        let (a, c) = (Src::new(packed_a), Dst::new(sums));
        let steps = if tiles.len() > 1 { DEPTH } else { k.max(1) };
        for panel in panels {
            for k0 in (0..k).step_by(steps) {
                let b = Src::new(&self.b[panel * width * k..][..width * k]).add(k0 * width);
                for t in tiles.clone() {
                    let (at, rows) = (self.cut.rows.start(t) - first, self.cut.rows.rows(t));
                    let taps = row_taps(taps, k0, k.min(k0 + steps), rows);
                    let args = ProductArgs {
                        a: a.add(at * depth),
                        taps: taps.as_ptr(),
                        taps_len: taps.len(),
                        b,
                        c: c.add(at * width),
                        add: k0 > 0,
                    };
                    // SAFETY: tile t was packed above with `rows` rows at `at * depth`; the taps
                    // cover its `steps` from k0, as many as `b` has; `sums` has `width` columns for
                    // every row of the band.
                    unsafe { entries.of(&self.cut.rows, t)(&args) }
                }
            }
            if k == 0 {
                // SAFETY: `sums` is this chunk's own.
                unsafe { c.zero(0, self.band_rows() * width) }
            }
            let rows = self.cut.rows.start(tiles.end - 1) + self.cut.rows.rows(tiles.end - 1) - first;
            // SAFETY: no other chunk has this band and panel.
            unsafe { self.output.store(first, rows, panel, c.as_src(), width) }
        }
    }
}

/// Packs `rows` rows of A from `first` as `[k / 16][rows][16]`, zero beyond k.
fn pack_rows(a: Matrix<'_>, first: usize, rows: usize, k: usize, out: &mut [f32]) {
    for (block, out) in out.chunks_exact_mut(rows * LANES).take(k.div_ceil(LANES)).enumerate() {
        let k0 = block * LANES;
        let count = LANES.min(k - k0);
        for (r, out) in out.chunks_exact_mut(LANES).enumerate() {
            let row = &a.data[(first + r) * a.row_stride + k0 * a.col_stride..];
            if let (1, Some(row)) = (a.col_stride, row.first_chunk::<LANES>()) {
                // A whole vector, also where only `count` are ours: the rest is overwritten below.
                out.copy_from_slice(row);
            } else {
                out[..count].iter_mut().enumerate().for_each(|(j, o)| *o = row[j * a.col_stride]);
            }
            out[count..].fill(0.0);
        }
    }
}

/// The taps of steps `k0 .. k1` in a tile of `rows` packed rows.
fn row_taps(taps: &mut [Tap], k0: usize, k1: usize, rows: usize) -> &[Tap] {
    let blocks = k0 / LANES..k1.div_ceil(LANES);
    let taps = &mut taps[..blocks.len()];
    for (tap, block) in taps.iter_mut().zip(blocks) {
        *tap = Tap { offset: (block * rows * LANES) as u32, count: LANES.min(k1 - block * LANES) as u32 };
    }
    taps
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
mod tests;
