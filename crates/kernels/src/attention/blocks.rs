//! Blocks of rows of attention: scores stay in the tiles of rows in which the first product leaves
//! them and the second one reads them.

use super::Attention;
use crate::gemm::Matrix;
use crate::gemm::rows::RowsProduct;
use crate::gemm::tile::Tap;
use crate::isa::Isa;
use crate::short_rows::{VectorRows, softmax_of_vectors};
use crate::simd::{Body, Dst, LANES, Simd, Src, entry};

/// How the rows of Q of each matrix are cut, and their products.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    pub count: usize,
    /// Rows of a block; the last one may have fewer.
    pub rows: usize,
    keys: usize,
    isa: Isa,
    /// Rows of Q with K.
    scores: RowsProduct,
    /// Weights of keys with V.
    weighted: RowsProduct,
    /// The factor of the scores, if queries do not have it.
    factor: f32,
    /// The factor of the queries: a power of two, which gives the same bits.
    queries_factor: f32,
}

/// A block of rows.
pub(super) struct Rows<'a> {
    /// The rows of Q and those after them.
    pub queries: Matrix<'a>,
    /// The mask, which is added to the scores, likewise.
    pub mask: Option<Matrix<'a>>,
    /// How many keys count for each row.
    pub lengths: Option<&'a [i64]>,
}

/// Scratch memory of a chunk.
pub(super) struct BlockMemory<'a> {
    blocks: Blocks,
    keys: &'a mut [f32],
    values: &'a mut [f32],
    queries: &'a mut [f32],
    scores: &'a mut [f32],
    sums: &'a mut [f32],
    taps: &'a mut [Tap],
}

impl Blocks {
    pub fn new(x: &Attention) -> Blocks {
        let rows = x.block_rows();
        let exact = x.scale.is_normal() && x.scale.to_bits() << 9 == 0;
        let [factor, queries_factor] = if exact { [1.0, x.scale] } else { [x.scale, 1.0] };
        Blocks {
            count: x.queries.div_ceil(rows),
            rows,
            keys: x.keys,
            isa: x.isa,
            scores: RowsProduct::new([rows, x.keys, x.depth], x.isa),
            weighted: RowsProduct::new([rows, x.width, x.keys], x.isa),
            factor,
            queries_factor,
        }
    }

    /// Elements of K, V, Q, the scores and the sums of a panel.
    fn lens(&self) -> [usize; 5] {
        let Blocks { scores, weighted, .. } = self;
        [
            scores.packed_len(),
            weighted.packed_len(),
            scores.left().len(),
            scores.sums().len(),
            weighted.panel_sums_len(),
        ]
    }

    fn taps(&self) -> usize {
        self.scores.taps_len().max(self.weighted.taps_len())
    }

    pub fn scratch_bytes(&self) -> usize {
        self.lens().iter().sum::<usize>() * size_of::<f32>() + self.taps() * size_of::<Tap>()
    }

    /// Divides scratch memory.
    pub fn memory(self, scratch: &mut [u8]) -> BlockMemory<'_> {
        let mut rest = scratch;
        let [keys, values, queries, scores, sums] = self.lens().map(|len| {
            let (part, after) = std::mem::take(&mut rest).split_at_mut(len * size_of::<f32>());
            rest = after;
            bytemuck::cast_slice_mut(part)
        });
        let taps = bytemuck::cast_slice_mut(&mut rest[..self.taps() * size_of::<Tap>()]);
        BlockMemory { blocks: self, keys, values, queries, scores, sums, taps }
    }
}

impl BlockMemory<'_> {
    /// Packs K and V for all blocks that follow.
    pub fn pack(&mut self, keys: Matrix<'_>, values: Matrix<'_>) {
        self.blocks.scores.pack(keys.transposed(), self.keys);
        self.blocks.weighted.pack(values, self.values);
    }

    /// Computes some rows of the output, `c_stride` apart.
    ///
    /// # Safety
    /// The output has these rows, which no other thread may touch.
    pub unsafe fn run(&mut self, rows: usize, x: &Rows<'_>, c: Dst, c_stride: usize) {
        let [products, weighted] = [self.blocks.scores, self.blocks.weighted].map(|product| product.of_rows(rows));
        products.pack_left(x.queries, self.queries);
        if self.blocks.queries_factor != 1.0 {
            let queries = &mut self.queries[..products.left().len()];
            queries.iter_mut().for_each(|x| *x *= self.blocks.queries_factor);
        }
        products.run_to_rows(self.queries, self.keys, self.scores, self.taps);
        let scores = products.sums();
        for (first, rows) in scores.groups() {
            self.weigh(first, &rows, x);
        }
        // SAFETY: promised by the caller.
        unsafe { weighted.run((self.scores, scores), self.values, (c, c_stride), self.sums, self.taps) }
    }

    /// Turns the scores of some rows, from number `first` on, into weights.
    fn weigh(&mut self, first: usize, rows: &VectorRows, x: &Rows<'_>) {
        let Blocks { keys, isa, factor, .. } = self.blocks;
        if keys == 0 {
            return;
        }
        let mask = x.mask.map(|mask| (Src::new(&mask.data[first * mask.row_stride..]), mask.row_stride));
        if mask.is_some() || factor != 1.0 {
            let args = AdjustArgs { scores: Dst::new(self.scores), rows: *rows, keys, factor, mask };
            // SAFETY: the scores have these rows, and the mask was checked with the operands.
            unsafe { entry::<Adjust>(isa)(&args) }
        }
        let lengths = x.lengths.map(|lengths| &lengths[first..][..rows.count]).unwrap_or_default();
        // The exponential of what does not count is 0.
        self.fill(rows, lengths, f32::NEG_INFINITY);
        softmax_of_vectors(self.scores, rows, keys);
        self.fill(rows, lengths, 0.0);
    }

    /// Overwrites the scores of the keys that do not count.
    fn fill(&mut self, rows: &VectorRows, lengths: &[i64], value: f32) {
        let keys = self.blocks.keys;
        for (start, length) in rows.starts.iter().zip(lengths) {
            let used = (*length).clamp(0, keys as i64) as usize;
            for vector in used / LANES..keys.div_ceil(LANES) {
                let from = used.saturating_sub(vector * LANES);
                self.scores[start + vector * rows.step..][from.min(LANES)..LANES].fill(value);
            }
        }
    }
}

struct AdjustArgs {
    scores: Dst,
    rows: VectorRows,
    keys: usize,
    factor: f32,
    /// The mask of the first of the rows, and elements from a row of it to the next.
    mask: Option<(Src, usize)>,
}

/// Multiplies scores and adds a mask.
struct Adjust;

impl Body for Adjust {
    type Args = AdjustArgs;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &AdjustArgs) {
        let factor = s.splat(x.factor);
        for row in 0..x.rows.count {
            for first in (0..x.keys).step_by(LANES) {
                let (at, n) = (x.rows.starts[row] + first / LANES * x.rows.step, LANES.min(x.keys - first));
                // SAFETY: promised by the caller.
                unsafe {
                    let mut v = s.mul(s.load(x.scores.as_src(), at), factor);
                    if let Some((mask, distance)) = x.mask {
                        let (mask, at) = (mask.add(row * distance), first);
                        let added = if n == LANES { s.load(mask, at) } else { s.load_part(mask, at, n, s.zero()) };
                        v = s.add(v, added);
                    }
                    s.store(x.scores, at, v);
                }
            }
        }
    }
}
