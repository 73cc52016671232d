//! Attention on tiles in bf16, for blocks of 32 rows of queries of a head. Scores and their softmax
//! are float32 and never leave the cache; weights are not divided by their sum, the results are.

use super::lines::Split;
use super::tiles::{LINE, LINE_NUMBERS, ROWS, SIDE, Soon, TILE, TileRows, register_tile};
use crate::attention::{Attention, AttentionOperands};
use crate::exponentials::exp;
use crate::gemm::{Matrices, MatricesMut, Matrix, Places};
use crate::isa::Isa;
use crate::par::Par;
use crate::simd::{Body, Dst, LANES, Simd, Src, across, entry};

/// Rows of queries of a chunk: every chunk packs the keys and values of its head.
const CHUNK_ROWS: usize = 256;
/// Bytes of a block of 32 x 32 scores or sums.
const BLOCK: usize = SIDE * SIDE * size_of::<f32>();
/// Bytes of the lines of such a block.
const BLOCK_LINES: usize = 2 * TILE;

/// Whether tiles can compute it; see [`Attention::suits_tiles`].
pub(crate) fn suits(attention: &Attention, operands: [Places; 3]) -> bool {
    let whole = |n: usize| n > 0 && n.is_multiple_of(LINE_NUMBERS);
    let rows = operands.iter().all(|at| at.column == 1);
    rows && whole(attention.depth) && whole(attention.width) && attention.keys >= ROWS
}

/// Computes `out` of operands that were checked.
pub(crate) fn run<T: Split>(x: &Attention, par: &dyn Par, operands: AttentionOperands<'_>, out: MatricesMut<'_>) {
    let chunks = x.queries.div_ceil(CHUNK_ROWS);
    let room = Room::of(x);
    let target = Dst::new(out.data);
    par.run(x.batch[0] * x.batch[1] * chunks, room.bytes(), &|chunk, scratch| {
        let (item, first) = (chunk / chunks, chunk % chunks * CHUNK_ROWS);
        let at = [item / x.batch[1], item % x.batch[1]];
        let mut t = T::configure();
        let mut head = Head { x, room, memory: room.cut(scratch) };
        head.pack_keys(&mut t, operands.keys.of(at));
        head.pack_values(&mut t, operands.values.of(at));
        for first in (first..x.queries.min(first + CHUNK_ROWS)).step_by(SIDE) {
            let rows = SIDE.min(x.queries - first);
            head.scores(&mut t, operands.queries, at, [first, rows]);
            let lengths = operands.lengths.map(|lengths| &lengths[item * x.queries + first..][..rows]);
            let mask = operands.mask.map(|mask| mask.rows_from(at, first));
            let shares = head.softmax(mask, lengths, rows);
            head.weigh(&mut t, rows);
            let c = target.add(out.at.of(at) + first * out.at.row);
            for column in (0..x.width).step_by(SIDE) {
                let sums = head.sums(&mut t, column / SIDE);
                let args = Divided {
                    sums: Src::new(sums),
                    shares: Src::new(&shares),
                    to: c.add(column),
                    row: out.at.row,
                    rows,
                };
                // SAFETY: the operands were checked, and these rows belong to this chunk alone.
                unsafe { entry::<Divided>(Isa::detect())(&args) }
            }
        }
    });
}

/// Bytes of the parts of a chunk's memory.
#[derive(Clone, Copy)]
struct Room {
    /// Blocks of 32 keys.
    blocks: usize,
    keys: usize,
    values: usize,
    queries: usize,
}

/// Memory of a chunk.
struct ChunkMemory<'a> {
    keys: &'a mut [u8],
    values: &'a mut [u8],
    queries: &'a mut [u8],
    scores: &'a mut [f32],
    weights: &'a mut [u8],
    sums: &'a mut [f32],
}

impl Room {
    fn of(x: &Attention) -> Room {
        let blocks = x.keys.div_ceil(SIDE);
        let line = |numbers: usize| numbers / LINE_NUMBERS * BLOCK_LINES;
        Room { blocks, keys: blocks * line(x.depth), values: blocks * line(x.width), queries: line(x.depth) }
    }

    fn bytes(&self) -> usize {
        self.keys + self.values + self.queries + self.blocks * (BLOCK + BLOCK_LINES) + BLOCK
    }

    fn cut<'a>(&self, scratch: &'a mut [u8]) -> ChunkMemory<'a> {
        let (keys, rest) = scratch.split_at_mut(self.keys);
        let (values, rest) = rest.split_at_mut(self.values);
        let (queries, rest) = rest.split_at_mut(self.queries);
        let (scores, rest) = rest.split_at_mut(self.blocks * BLOCK);
        let (weights, rest) = rest.split_at_mut(self.blocks * BLOCK_LINES);
        let (scores, sums) = (bytemuck::cast_slice_mut(scores), bytemuck::cast_slice_mut(&mut rest[..BLOCK]));
        ChunkMemory { keys, values, queries, scores, weights, sums }
    }
}

/// A head of which some rows of queries are computed.
struct Head<'a> {
    x: &'a Attention,
    room: Room,
    memory: ChunkMemory<'a>,
}

/// Nothing to request.
const NOTHING: Soon = Soon { at: std::ptr::null(), lines: 0 };

impl Head<'_> {
    /// Keys as columns of B, `[block of keys][line][2 tiles]`.
    fn pack_keys<T: Split>(&mut self, t: &mut T, keys: Matrix<'_>) {
        let steps = self.x.depth / LINE_NUMBERS;
        let mut lines = BlockOfLines([0; BLOCK_LINES]);
        for (tiles, out) in self.memory.keys.chunks_exact_mut(BLOCK_LINES).enumerate() {
            let (first, step) = (tiles / steps * SIDE, tiles % steps);
            let rows = SIDE.min(self.x.keys - first);
            lines.0[rows * LINE..].fill(0);
            let from = keys.data[first * keys.row_stride + step * LINE_NUMBERS..].as_ptr();
            // SAFETY: the keys were checked: each row has whole lines.
            unsafe { t.split_rows(from, keys.row_stride, rows, 1, lines.0.as_mut_ptr(), 0) };
            turn_pairs(&lines, out);
        }
    }

    /// Values as columns of B, `[block of columns][block of keys][2 tiles]`.
    fn pack_values<T: Split>(&mut self, t: &mut T, values: Matrix<'_>) {
        let mut lines = BlockOfLines([0; BLOCK_LINES]);
        let (mut turned, mut last) = ([[0.0; SIDE]; SIDE], [[0.0; SIDE]; SIDE]);
        for (tiles, out) in self.memory.values.chunks_exact_mut(BLOCK_LINES).enumerate() {
            let (column, first) = (tiles / self.room.blocks * SIDE, tiles % self.room.blocks * SIDE);
            let rows = SIDE.min(self.x.keys - first);
            let from = &values.data[first * values.row_stride + column..];
            let (from, row) = if rows == SIDE {
                (Src::new(from), values.row_stride)
            } else {
                last[rows..].fill([0.0; SIDE]);
                for (r, last) in last.iter_mut().enumerate().take(rows) {
                    last.copy_from_slice(&from[r * values.row_stride..][..SIDE]);
                }
                (Src::new(last.as_flattened()), SIDE)
            };
            let args = TransposedBlock { from, row, to: Dst::new(turned.as_flattened_mut()) };
            // SAFETY: the values were checked: 32 rows have 32 columns; so has the copy.
            unsafe {
                entry::<TransposedBlock>(Isa::detect())(&args);
                t.split_rows(turned.as_flattened().as_ptr(), SIDE, SIDE, 1, lines.0.as_mut_ptr(), 0);
            }
            turn_pairs(&lines, out);
        }
    }

    /// Products of some rows of queries with all keys, in blocks of 32 x 32.
    fn scores<T: Split>(&mut self, t: &mut T, queries: Matrices<'_>, at: [usize; 2], [first, rows]: [usize; 2]) {
        let q = queries.rows_from(at, first);
        let steps = self.x.depth / LINE_NUMBERS;
        for (step, lines) in self.memory.queries.chunks_exact_mut(BLOCK_LINES).enumerate() {
            let from = q.data[step * LINE_NUMBERS..].as_ptr();
            // SAFETY: the queries were checked: each row has whole lines.
            unsafe { t.split_rows(from, q.row_stride, rows, 1, lines.as_mut_ptr(), 0) };
        }
        let lines = self.memory.queries.as_ptr();
        let keys = self.memory.keys.chunks_exact(steps * BLOCK_LINES);
        for (scores, keys) in self.memory.scores.chunks_exact_mut(SIDE * SIDE).zip(keys) {
            let a = TileRows { at: |step: usize| lines.wrapping_add(step * BLOCK_LINES), part: 0 };
            // SAFETY: both have `steps` lines, and there is room for the block.
            unsafe { register_tile::<T, 1>(t, steps, a, keys.as_ptr(), scores.as_mut_ptr().cast(), true, NOTHING) }
        }
    }

    /// Exponentials of scores less the largest one of their row, and 1 / their sum for each row.
    fn softmax(&mut self, mask: Option<Matrix<'_>>, lengths: Option<&[i64]>, rows: usize) -> [f32; SIDE] {
        let keys = self.x.keys;
        let mut used = [keys; SIDE];
        for (used, length) in used.iter_mut().zip(lengths.unwrap_or_default()) {
            *used = (*length).clamp(0, keys as i64) as usize;
        }
        let mut shares = [0.0; SIDE];
        let args = Softmax {
            scores: Dst::new(self.memory.scores),
            blocks: self.room.blocks,
            scale: self.x.scale,
            mask: mask.map(|mask| (Src::new(mask.data), mask.row_stride)),
            used,
            rows,
            shares: Dst::new(&mut shares),
        };
        // SAFETY: there are whole blocks of scores; the mask was checked.
        unsafe { entry::<Softmax>(Isa::detect())(&args) }
        for (share, used) in shares.iter_mut().zip(used) {
            *share = if used == 0 { 0.0 } else { 1.0 / *share };
        }
        shares
    }

    /// Weights in lines.
    fn weigh<T: Split>(&mut self, t: &mut T, rows: usize) {
        let blocks = self.memory.weights.chunks_exact_mut(BLOCK_LINES);
        for (scores, lines) in self.memory.scores.chunks_exact(SIDE * SIDE).zip(blocks) {
            // SAFETY: a block has 32 rows of 32.
            unsafe { t.split_rows(scores.as_ptr(), SIDE, rows, 1, lines.as_mut_ptr(), 0) };
        }
    }

    /// Sums of 32 columns of the values times the weights.
    fn sums<T: Split>(&mut self, t: &mut T, column: usize) -> &[f32] {
        let values = self.memory.values[column * self.room.blocks * BLOCK_LINES..].as_ptr();
        let lines = self.memory.weights.as_ptr();
        let a = TileRows { at: |step: usize| lines.wrapping_add(step * BLOCK_LINES), part: 0 };
        let sums = self.memory.sums.as_mut_ptr().cast();
        // SAFETY: weights and values have all blocks of keys; there is room for 32 x 32 sums.
        unsafe { register_tile::<T, 1>(t, self.room.blocks, a, values, sums, true, NOTHING) }
        self.memory.sums
    }
}

/// 32 lines.
#[repr(align(64))]
struct BlockOfLines([u8; BLOCK_LINES]);

/// Two tiles of B from the lines of 32 columns: row r of a tile has the r-th pair of every column.
fn turn_pairs(lines: &BlockOfLines, out: &mut [u8]) {
    let (from, to): (&[f32], &mut [f32]) = (bytemuck::cast_slice(&lines.0), bytemuck::cast_slice_mut(out));
    // SAFETY: both are two tiles of 16 rows of 16 pairs.
    unsafe { entry::<TurnPairs>(Isa::detect())(&(Src::new(from), Dst::new(to))) }
}

struct TurnPairs;

impl Body for TurnPairs {
    type Args = (Src, Dst);
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, (from, to): &(Src, Dst)) {
        for tile in 0..2 {
            let mut v = [s.zero(); LANES];
            // SAFETY: promised by the caller.
            unsafe {
                for i in 0..LANES {
                    v[i] = s.load(*from, (tile * LANES + i) * LANES);
                }
                s.transpose(&mut v);
                for i in 0..LANES {
                    s.store(*to, (tile * LANES + i) * LANES, v[i]);
                }
            }
        }
    }
}

/// 32 x 32 numbers, transposed.
struct TransposedBlock {
    from: Src,
    row: usize,
    to: Dst,
}

impl Body for TransposedBlock {
    type Args = TransposedBlock;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &TransposedBlock) {
        for part in 0..4 {
            let (row, column) = (part / 2 * LANES, part % 2 * LANES);
            let mut v = [s.zero(); LANES];
            // SAFETY: promised by the caller.
            unsafe {
                for i in 0..LANES {
                    v[i] = s.load(x.from, (row + i) * x.row + column);
                }
                s.transpose(&mut v);
                for i in 0..LANES {
                    s.store(x.to, (column + i) * SIDE + row, v[i]);
                }
            }
        }
    }
}

/// Softmax of up to 32 rows of blocks of 32 x 32 scores, not divided by the sums.
struct Softmax {
    scores: Dst,
    blocks: usize,
    scale: f32,
    /// Numbers that are added to scaled scores, and the distance between rows.
    mask: Option<(Src, usize)>,
    /// Keys that count, for each row.
    used: [usize; SIDE],
    rows: usize,
    /// Sums of rows.
    shares: Dst,
}

impl Body for Softmax {
    type Args = Softmax;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &Softmax) {
        let lowest = s.splat(f32::NEG_INFINITY);
        for first in (0..x.rows).step_by(LANES) {
            let rows = LANES.min(x.rows - first);
            let (mut lanes, mut max) = ([lowest; LANES], [0.0; LANES]);
            // SAFETY: promised by the caller; `max` has an element for each row.
            unsafe {
                for i in 0..rows {
                    lanes[i] = scaled_row(s, x, first + i);
                }
                s.store(Dst::new(&mut max), 0, across::<S, true>(s, &mut lanes));
                lanes = [s.zero(); LANES];
                for i in 0..rows {
                    let (mut sum, most) = ([s.zero(); 2], s.splat(max[i]));
                    for block in 0..x.blocks {
                        let at = block * SIDE * SIDE + (first + i) * SIDE;
                        let low = s.load(x.scores.as_src(), at);
                        let mut e = [s.sub(low, most), s.sub(s.load(x.scores.as_src(), at + LANES), most)];
                        exp(s, &mut e);
                        for half in 0..2 {
                            sum[half] = s.add(sum[half], e[half]);
                            s.store(x.scores, at + half * LANES, e[half]);
                        }
                    }
                    lanes[i] = s.add(sum[0], sum[1]);
                }
                s.store(x.shares, first, across::<S, false>(s, &mut lanes));
                for i in 0..rows {
                    clear_rest(s, x, first + i);
                }
            }
        }
    }
}

/// Scales a row and adds its mask; keys that do not count become -infinity. Gives the lanes' largest.
///
/// # Safety
/// The row must be there.
#[inline(always)]
unsafe fn scaled_row<S: Simd>(s: S, x: &Softmax, row: usize) -> S::V {
    let (scale, lowest) = (s.splat(x.scale), s.splat(f32::NEG_INFINITY));
    let mut max = lowest;
    for block in 0..x.blocks {
        for half in 0..2 {
            let (key, at) = (block * SIDE + half * LANES, block * SIDE * SIDE + row * SIDE + half * LANES);
            let there = x.used[row].saturating_sub(key).min(LANES);
            // SAFETY: promised by the caller; the mask has `keys` columns.
            unsafe {
                let mut v = s.mul(s.load(x.scores.as_src(), at), scale);
                if let (Some((mask, mask_row)), 1..) = (x.mask, there) {
                    v = s.add(v, s.load_part(mask, row * mask_row + key, there, s.zero()));
                }
                if there < LANES {
                    s.store(x.scores, at, v);
                    v = s.load_part(x.scores.as_src(), at, there, lowest);
                }
                s.store(x.scores, at, v);
                max = s.max(v, max);
            }
        }
    }
    max
}

/// Makes the weights of keys that do not count zero, also where no key counts.
///
/// # Safety
/// The row must be there.
#[inline(always)]
unsafe fn clear_rest<S: Simd>(s: S, x: &Softmax, row: usize) {
    for key in (x.used[row] / LANES * LANES..x.blocks * SIDE).step_by(LANES) {
        let at = key / SIDE * SIDE * SIDE + row * SIDE + key % SIDE;
        let there = x.used[row].saturating_sub(key).min(LANES);
        // SAFETY: promised by the caller.
        unsafe { s.store(x.scores, at, s.load_part(x.scores.as_src(), at, there, s.zero())) }
    }
}

/// Rows of sums times a number each.
struct Divided {
    sums: Src,
    shares: Src,
    to: Dst,
    row: usize,
    rows: usize,
}

impl Body for Divided {
    type Args = Divided;
    #[inline(always)]
    unsafe fn run<S: Simd>(s: S, x: &Divided) {
        for row in 0..x.rows {
            // SAFETY: promised by the caller.
            unsafe {
                let share = s.splat(x.shares.read(row));
                for half in [0, LANES] {
                    s.store(x.to, row * x.row + half, s.mul(s.load(x.sums, row * SIDE + half), share));
                }
            }
        }
    }
}
