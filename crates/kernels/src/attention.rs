//! Attention in one step: products of queries and keys, softmax, and values weighted by it, for a
//! block of rows of one head at a time. Scores never exist beyond such a block.

use crate::exponentials;
use crate::gemm::{BatchBlock, Matrices, MatricesMut, Matrix, Places};
use crate::isa::Isa;
use crate::par::Par;
use crate::short_rows;
use crate::simd::{Dst, LANES};
use crate::vectorize::vectorized;

/// Scores of a block of rows: they stay in the second-level cache.
const SCORES: usize = 64 << 10;
/// Fewest rows of a block, where there are as many: every block packs keys and values
/// again.
const LEAST_ROWS: usize = 48;
/// Elements of a row up to which softmax is computed sixteen rows at a time.
const SHORT: usize = 1024;

/// `softmax(scale * Q Kᵀ + mask) V` for each matrix of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// Matrices along both axes of the batch: requests and heads, for example.
    pub batch: [usize; 2],
    /// Rows of Q.
    pub queries: usize,
    /// Rows of K and V.
    pub keys: usize,
    /// Columns of Q and K.
    pub depth: usize,
    /// Columns of V.
    pub width: usize,
    /// Factor of the products of queries and keys.
    pub scale: f32,
    /// The instruction set.
    pub isa: Isa,
    /// Whether products may be in bf16 on tiles, where those suit the shape. The system must permit
    /// tiles.
    pub tiles: bool,
}

/// Arrays that attention reads.
#[derive(Clone, Copy, Debug)]
pub struct AttentionOperands<'a> {
    /// Q, `[queries, depth]`.
    pub queries: Matrices<'a>,
    /// K, `[keys, depth]`.
    pub keys: Matrices<'a>,
    /// V, `[keys, width]`.
    pub values: Matrices<'a>,
    /// A matrix `[queries, keys]` that is added to the scaled products; distances of 0 repeat a
    /// row or matrix.
    pub mask: Option<Matrices<'a>>,
    /// How many keys count, for every row of Q; others have no weight. A row without keys gives
    /// zeros.
    pub lengths: Option<&'a [i64]>,
}

impl AttentionOperands<'_> {
    /// Panics if an operand ends before its last matrix, or lengths are missing.
    fn check(&self, of: &Attention) {
        let Attention { batch, queries, keys, depth, width, .. } = *of;
        self.queries.check("the queries", batch, queries, depth);
        self.keys.check("the keys", batch, keys, depth);
        self.values.check("the values", batch, keys, width);
        if let Some(mask) = self.mask {
            mask.check("the mask", batch, queries, keys);
            assert!(mask.at.column == 1 || keys <= 1, "rows of the mask must be contiguous");
        }
        if let Some(lengths) = self.lengths {
            let needed = batch[0] * batch[1] * queries;
            assert!(lengths.len() >= needed, "{needed} lengths are needed, not {}", lengths.len());
        }
    }
}

impl Attention {
    /// Computes `out`, `[queries, width]`. Blocks of rows follow from the shape alone, so bits do
    /// not depend on `par`.
    ///
    /// # Panics
    /// If an operand ends before its last matrix, lengths are missing, or elements of `out` belong
    /// to two of its rows.
    pub fn run(&self, par: &dyn Par, operands: AttentionOperands<'_>, out: MatricesMut<'_>) {
        let Attention { batch, queries, keys, width, .. } = *self;
        let count = batch[0] * batch[1];
        if count == 0 || queries == 0 || width == 0 {
            return;
        }
        operands.check(self);
        out.check("the output", batch, queries, width);
        let AttentionOperands { queries: q, keys: k, values: v, mask, lengths } = operands;

        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        if self.tiles && self.suits_tiles([q.at, k.at, v.at]) {
            return crate::amx::attention::run::<crate::amx::hardware::Hardware>(self, par, operands, out);
        }
        let rows = self.block_rows();
        let blocks = queries.div_ceil(rows);
        let (weights, values) = (self.scores(rows), self.weighted(rows));
        let room = (rows * keys * size_of::<f32>()).next_multiple_of(64);
        let bytes = room + weights.scratch_bytes().max(values.scratch_bytes());
        let target = Dst::new(out.data);
        par.run(count * blocks, bytes, &|chunk, scratch| {
            let (item, first) = (chunk / blocks, chunk % blocks * rows);
            let rows = rows.min(queries - first);
            let (scores, scratch) = scratch.split_at_mut(room);
            let scores = &mut bytemuck::cast_slice_mut(scores)[..rows * keys];
            let at = [item / batch[1], item % batch[1]];
            let (products, weighted) = (self.scores(rows), self.weighted(rows));
            // SAFETY: the operands were checked above; the scores are this chunk's.
            unsafe { products.run(q.rows_from(at, first), k.of(at).transposed(), Dst::new(scores), keys, scratch) }
            if let Some(mask) = mask {
                let mask = mask.rows_from(at, first);
                for (row, scores) in scores.chunks_exact_mut(keys.max(1)).enumerate() {
                    add(&mask.data[row * mask.row_stride..][..keys], scores);
                }
            }
            let lengths = lengths.map(|lengths| &lengths[item * queries + first..][..rows]);
            softmax(scores, keys, lengths);
            let c = target.add(out.at.of(at) + first * out.at.row);
            let scores = Matrix::rows(scores, keys);
            // SAFETY: as above; these rows of the output belong to this chunk alone.
            unsafe { weighted.run(scores, v.of(at), c, out.at.row, scratch) }
        });
    }

    /// Whether tiles can compute it with queries, keys and values in these places: heads are whole
    /// lines, and there are enough keys to fill some.
    pub fn suits_tiles(&self, operands: [Places; 3]) -> bool {
        crate::amx::attention::suits(self, operands)
    }

    /// Rows of Q of a block.
    fn block_rows(&self) -> usize {
        let most = (SCORES / self.keys.max(1)).max(LEAST_ROWS);
        // Blocks of even size, in whole groups of the rows that softmax takes together.
        let blocks = self.queries.div_ceil(most);
        self.queries.div_ceil(blocks).next_multiple_of(LANES).min(self.queries)
    }

    /// The products of some rows of Q with K.
    fn scores(&self, rows: usize) -> BatchBlock {
        BatchBlock::new([rows, self.keys, self.depth], self.scale, self.isa)
    }

    /// The sums of V for some rows of weights.
    fn weighted(&self, rows: usize) -> BatchBlock {
        BatchBlock::new([rows, self.width, self.keys], 1.0, self.isa)
    }
}

vectorized! {
    fn add[](x: &[f32], sums: &mut [f32]) {
        sums.iter_mut().zip(x).for_each(|(sum, x)| *sum += *x);
    }
}

vectorized! {
    fn largest[](x: &[f32], max: &mut f32) {
        let mut lanes = [f32::NEG_INFINITY; 64];
        for part in x.chunks(64) {
            lanes.iter_mut().zip(part).for_each(|(lane, x)| *lane = if *x > *lane { *x } else { *lane });
        }
        *max = lanes.iter().fold(f32::NEG_INFINITY, |max, x| if *x > max { *x } else { max });
    }
}

vectorized! {
    fn multiply[](factor: f32, x: &mut [f32]) {
        x.iter_mut().for_each(|x| *x *= factor);
    }
}

/// Softmax of every row, in place.
fn softmax(scores: &mut [f32], keys: usize, lengths: Option<&[i64]>) {
    if keys == 0 {
        return;
    }
    let used = |length: i64| length.clamp(0, keys as i64) as usize;
    // The exponential of what does not count is 0.
    for (row, length) in scores.chunks_exact_mut(keys).zip(lengths.unwrap_or_default()) {
        row[used(*length)..].fill(f32::NEG_INFINITY);
    }
    if keys <= SHORT {
        short_rows::softmax_in_place(false, scores, keys);
    } else {
        for row in scores.chunks_exact_mut(keys) {
            let mut max = 0.0;
            largest(row, &mut max);
            let sum = exponentials::of_row(row, max, [std::ptr::null(); 2]);
            multiply((1.0 / sum) as f32, row);
        }
    }
    for (row, length) in scores.chunks_exact_mut(keys).zip(lengths.unwrap_or_default()) {
        row[used(*length)..].fill(0.0);
    }
}

#[cfg(test)]
mod tests;
