//! Attention in one step: products of queries and keys, softmax, and values weighted by it, for a
//! block of rows of one head after another. Scores never exist beyond such a block.

use crate::gemm::{Matrices, MatricesMut, Places};
use crate::isa::Isa;
use crate::par::{Par, range_of};
use crate::simd::{Dst, LANES};
use blocks::{Blocks, Rows};

mod blocks;

/// Scores of a block of rows: they stay in the second-level cache, next to keys and values.
const SCORES: usize = 32 << 10;
/// Fewest rows of a block, where there are as many: every block reads keys and values again.
const LEAST_ROWS: usize = 48;
/// Chunks for each thread: a chunk packs the keys and values of a head once for all its blocks.
const CHUNKS: usize = 4;

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
        let Attention { batch, queries, width, .. } = *self;
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
        let blocks = Blocks::new(self);
        let parts = (CHUNKS * par.parallelism()).div_ceil(count).clamp(1, blocks.count);
        let target = Dst::new(out.data);
        par.run(count * parts, blocks.scratch_bytes(), &|chunk, scratch| {
            let (item, part) = (chunk / parts, chunk % parts);
            let at = [item / batch[1], item % batch[1]];
            let mut memory = blocks.memory(scratch);
            memory.pack(k.of(at), v.of(at));
            for first in range_of(part, parts, blocks.count).map(|block| block * blocks.rows) {
                let rows = blocks.rows.min(queries - first);
                let c = target.add(out.at.of(at) + first * out.at.row);
                let block = Rows {
                    queries: q.rows_from(at, first),
                    mask: mask.map(|mask| mask.rows_from(at, first)),
                    lengths: lengths.map(|lengths| &lengths[item * queries + first..][..rows]),
                };
                // SAFETY: the operands were checked above; these rows of the output belong to this
                // chunk alone.
                unsafe { memory.run(rows, &block, c, out.at.row) }
            }
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
}

#[cfg(test)]
mod tests;
