//! Matrix products `C = A * B` in `f32`, with bias and activation applied on the way out.
//!
//! B is packed once into panels of 16 or 32 columns in reading order; A may have any strides and is repacked a few rows at a
//! time. Every element of C is summed over k in the same order whatever the threads do. Large weights are packed in fewer bytes
//! (`compact.rs`).

mod bf16;
mod compact;
#[allow(clippy::needless_range_loop)]
mod dots;
#[allow(clippy::needless_range_loop)]
pub(crate) mod tile;
mod unpack;

pub use bf16::Bf16Gemm;
pub use dots::multiply_rows;

use crate::activation::{Activation, Limits};
use crate::aligned::AlignedVec;
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Body, Dst, LANES, Simd, Src, entry};
use tile::{Elements, ProductArgs, Split, Tap, product, tile_size};

/// Steps of k between two visits of C if there are several tiles of rows: a panel of this depth stays in the first-level cache
/// while they pass by.
const DEPTH: usize = 256;
/// Register tiles of rows that a chunk packs together.
const ROW_TILES: usize = 8;
/// Multiply-adds that a chunk should have at least; and where rows are so few that reading B takes the time.
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

/// What happens to a sum before it is stored: bias of its column, then the activation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// One value per column of C.
    pub bias: Option<&'a [f32]>,
    /// Applied last.
    pub activation: Activation,
}

/// The product of an m x k by a k x n matrix on one instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sgemm {
    m: usize,
    n: usize,
    k: usize,
    isa: Isa,
    /// What the k values of a row of A are.
    elements: Elements,
    /// Whether B is packed in 28 bits for each number where this loses nothing.
    compact: bool,
}

/// C and the bias are as large as an m x n product needs.
fn check_output(m: usize, n: usize, c: &[f32], c_stride: usize, epilogue: &Epilogue<'_>) {
    assert!(c_stride >= n, "rows of C are {n} long but {c_stride} apart");
    let c_len = (m - 1) * c_stride + n;
    assert!(c.len() >= c_len, "C needs {c_len} elements, got {}", c.len());
    assert!(epilogue.bias.is_none_or(|b| b.len() >= n), "the bias needs {n} elements");
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

    /// A product with the weights of a layer, which are packed so that they are read in the least time: for all m in one way.
    pub fn with_weights(m: usize, n: usize, k: usize, isa: Isa) -> Sgemm {
        Sgemm { compact: compact::pays(n, k, isa.or_best()), ..Sgemm::new(m, n, k, isa) }
    }

    /// The same product on a B that is packed as it is.
    fn plain(&self) -> Sgemm {
        Sgemm { compact: false, ..*self }
    }

    /// Whether B is packed in 28 bits for each number where this loses nothing.
    pub fn is_compact(&self) -> bool {
        self.compact
    }

    /// The instruction set it runs on.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    fn panel(&self) -> usize {
        tile_size(self.isa).blocks * LANES
    }

    /// Elements that [`pack`](Self::pack) writes.
    pub fn packed_len(&self) -> usize {
        let plain = self.n.next_multiple_of(self.panel()) * self.k;
        if self.compact { compact::packed_len(self, plain) } else { plain }
    }

    /// Packs B, `[k, n]`, in panels of columns; missing columns are zero. Independent of m.
    ///
    /// # Panics
    /// If B is smaller than k x n or `out` than [`packed_len`](Self::packed_len).
    pub fn pack(&self, b: Matrix<'_>, out: &mut [f32]) {
        b.check("B", self.k, self.n);
        let width = self.panel();
        assert!(out.len() >= self.packed_len(), "packing B needs {} elements, got {}", self.packed_len(), out.len());
        if self.compact {
            return compact::pack(self, b, out);
        }
        if self.k == 0 {
            return;
        }
        for (p, panel) in out[..self.packed_len()].chunks_exact_mut(width * self.k).enumerate() {
            let first = p * width;
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
        // Panels that make a chunk worth its start, and at least eight so that repacking A stays small beside its use.
        let band_work = (row_tiles * size.rows).min(self.m.max(1)) * self.panel() * self.k.max(1);
        let least = if rows.parts == 1 { FEW_ROWS_WORK } else { CHUNK_WORK };
        let group = least.div_ceil(band_work).max(8);
        Cut { rows, row_tiles, panels, bands, panel_groups: panels.div_ceil(group).max(1) }
    }

    /// `c = a * b` with the epilogue applied; `packed` is B as [`pack`](Self::pack) left it, row i of C starts at `i * c_stride`.
    ///
    /// # Panics
    /// If an operand is smaller than the shape says.
    pub fn run(
        &self,
        a: Matrix<'_>,
        packed: &[f32],
        epilogue: Epilogue<'_>,
        c: &mut [f32],
        c_stride: usize,
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

        let cut = self.cut();
        let panels = match self.compact.then(|| compact::View::of(self, packed)) {
            Some(Ok(view)) => Panels::Compact(view),
            Some(Err(plain)) => Panels::Plain(plain),
            None => Panels::Plain(packed),
        };
        let job = Job { gemm: *self, cut, a, panels, epilogue, c: Dst::new(c), c_stride };
        let floats = job.band_rows() * (self.k.next_multiple_of(LANES) + self.panel()) + job.unpacked_len();
        let scratch = size_of::<f32>() * floats + size_of::<Tap>() * self.k.div_ceil(LANES);
        par.run(cut.bands * cut.panel_groups, scratch, &|chunk, scratch| job.chunk(chunk, scratch));
    }
}

/// One panel of a B whose columns are not contiguous, 16 rows at a time so that reads stay in the lines they opened.
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

/// B as it was packed.
enum Panels<'a> {
    Plain(&'a [f32]),
    Compact(compact::View<'a>),
}

/// A running product: what every chunk needs to know.
struct Job<'a> {
    gemm: Sgemm,
    cut: Cut,
    a: Matrix<'a>,
    panels: Panels<'a>,
    epilogue: Epilogue<'a>,
    c: Dst,
    c_stride: usize,
}

impl Job<'_> {
    /// Rows of the largest band.
    fn band_rows(&self) -> usize {
        self.cut.row_tiles * tile_size(self.gemm.isa).rows
    }

    /// Elements that are unpacked at a time.
    fn unpacked_len(&self) -> usize {
        if self.gemm.compact { compact::STEPS * self.gemm.panel() } else { 0 }
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
        let (c_bytes, rest) = rest.split_at_mut(size_of::<f32>() * self.band_rows() * width);
        let (unpacked, tap_bytes) = rest.split_at_mut(size_of::<f32>() * self.unpacked_len());
        let unpacked: &mut [f32] = bytemuck::cast_slice_mut(unpacked);
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
        let steps = match self.panels {
            Panels::Compact(_) => compact::STEPS,
            Panels::Plain(_) if tiles.len() > 1 => DEPTH,
            Panels::Plain(_) => k.max(1),
        };
        for panel in panels {
            for k0 in (0..k).step_by(steps) {
                let b = match &self.panels {
                    Panels::Plain(packed) => Src::new(&packed[panel * width * k..][..width * k]).add(k0 * width),
                    Panels::Compact(view) => {
                        view.unpack(panel, k0, unpacked);
                        Src::new(unpacked)
                    }
                };
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
                    // SAFETY: tile t was packed above with `rows` rows at `at * depth`; the taps cover its `steps` from k0, as
                    // many as `b` has; `sums` has `width` columns for every row of the band.
                    unsafe { self.cut.rows_entry(&entries, t)(&args) }
                }
            }
            if k == 0 {
                // SAFETY: `sums` is this chunk's own.
                unsafe { c.zero(0, self.band_rows() * width) }
            }
            let rows = self.cut.rows.start(tiles.end - 1) + self.cut.rows.rows(tiles.end - 1) - first;
            self.store(first, rows, panel * width, c.as_src());
        }
    }

    /// Writes `rows` rows of finished sums to C with the epilogue applied.
    fn store(&self, first: usize, rows: usize, col: usize, sums: Src) {
        let width = self.gemm.panel();
        let cols = width.min(self.gemm.n - col);
        let mut bias = [0.0; 2 * LANES];
        if let Some(b) = self.epilogue.bias {
            bias[..cols].copy_from_slice(&b[col..col + cols]);
        }
        let args = StoreArgs {
            sums,
            width,
            bias: Src::new(&bias),
            limits: self.epilogue.activation.limits(),
            c: self.c.add(first * self.c_stride + col),
            c_stride: self.c_stride,
            rows,
            cols,
        };
        // SAFETY: rows `first ..` and columns `col ..` lie inside C (checked in `run`), and no other chunk has this band and
        // panel; `sums` holds `rows` rows of `width`.
        unsafe { entry::<StoreRows>(self.gemm.isa)(&args) }
    }
}

/// Rows of finished sums, and where they go in C.
struct StoreArgs {
    sums: Src,
    width: usize,
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
                // SAFETY: the sums have whole blocks of columns; C gets `cols` of them, the last block by way of a buffer.
                unsafe {
                    let v = s.add(s.load(x.sums, r * x.width + j), s.load(x.bias, j));
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

impl Cut {
    #[inline(always)]
    fn rows_entry(&self, entries: &tile::SplitEntries<ProductArgs>, t: usize) -> crate::simd::Entry<ProductArgs> {
        entries.of(&self.rows, t)
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
    /// Packs B: rows of `[k, n]`, or of `[n, k]` if `transposed` (the weights of a fully connected layer).
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
        Sgemm::new(m, self.n, self.k, self.isa).run(a, &self.data, epilogue, c, self.n, par)
    }
}

#[cfg(test)]
mod tests;
