//! Products of attention between interleaved queries, keys and values of bytes.

use super::gemm::GemmJob;
use super::pack::{pack_columns, pack_rows};
use super::{Int8Gemm, Int8Result, Level, RoundTo, Rows, ScaledSums};
use crate::par::{Par, par_chunks_mut_scratch, par_columns_mut};

/// Heads of projections `[time, batch, heads, 3, dim]` of `i8`: queries, keys and values.
#[derive(Clone, Copy, Debug)]
pub struct Int8Attention {
    /// Positions.
    pub time: usize,
    /// Sequences.
    pub batch: usize,
    /// Heads of a sequence.
    pub heads: usize,
    /// Numbers of a projection of a head.
    pub dim: usize,
    /// The instructions, or the best below them that the machine has.
    pub level: Level,
}

/// One of the two products.
#[derive(Clone, Copy)]
pub enum HeadProducts<'a> {
    /// Queries by keys, `[batch * heads, time, time]`.
    Scores,
    /// Values, weighted by `[batch * heads, time, time]`, as `[time, batch * heads * dim]`.
    Values(Rows<'a>),
}

/// Places of the projections of a head.
const QUERY: usize = 0;
const KEY: usize = 1;
const VALUE: usize = 2;

impl Int8Attention {
    /// Computes products of all heads times a factor.
    ///
    /// # Panics
    /// If a slice is smaller than the sizes say.
    pub fn run<T: Int8Result>(
        &self,
        par: &dyn Par,
        projections: &[i8],
        products: HeadProducts<'_>,
        factor: f32,
        out: &mut [T],
    ) {
        T::attend(self, par, projections, products, factor, out);
    }

    pub(super) fn run_as<T: RoundTo>(
        &self,
        par: &dyn Par,
        projections: &[i8],
        products: HeadProducts<'_>,
        factor: f32,
        out: &mut [T],
    ) {
        let Int8Attention { time, dim, .. } = *self;
        assert!(projections.len() >= time * self.stride(), "the projections have {} bytes", projections.len());
        let columns = if matches!(products, HeadProducts::Scores) { time } else { dim };
        let epilogue = ScaledSums::new(vec![0.0; columns], vec![factor; columns]);
        let job = HeadJob { attention: self, projections, epilogue };
        match products {
            _ if out.is_empty() => {}
            HeadProducts::Scores => job.scores(par, out),
            HeadProducts::Values(weights) => job.values(par, weights, out),
        }
    }

    /// Bytes from a position to the next.
    fn stride(&self) -> usize {
        self.batch * self.heads * 3 * self.dim
    }
}

/// Running products.
struct HeadJob<'a> {
    attention: &'a Int8Attention,
    projections: &'a [i8],
    epilogue: ScaledSums,
}

impl HeadJob<'_> {
    /// A projection at a position of a head.
    fn projection(&self, position: usize, head: usize, which: usize) -> &[i8] {
        let start = position * self.attention.stride() + (head * 3 + which) * self.attention.dim;
        &self.projections[start..][..self.attention.dim]
    }

    fn scores<T: RoundTo>(&self, par: &dyn Par, out: &mut [T]) {
        let Int8Attention { time, dim, level, .. } = *self.attention;
        let gemm = Int8Gemm::new(time, dim, level);
        let (packed_len, scratch_len) = lens::<T>(&gemm, time);
        par_chunks_mut_scratch(par, out, time * time, packed_len + scratch_len, |head, out, scratch| {
            let (packed, scratch) = scratch.split_at_mut(packed_len);
            pack_rows(time, dim.next_multiple_of(4), |t| self.projection(t, head, KEY), packed);
            let first = (head * 3 + QUERY) * dim;
            let rows = Rows { bytes: bytemuck::cast_slice(&self.projections[first..]), signed: true };
            let stride = self.attention.stride();
            let job = GemmJob { gemm: &gemm, rows, stride, packed, epilogue: &self.epilogue };
            job.run(0..time, 0..time, scratch, |row, column, results: &[T]| {
                out[row * time + column..][..results.len()].copy_from_slice(results);
            });
        });
    }

    fn values<T: RoundTo>(&self, par: &dyn Par, weights: Rows<'_>, out: &mut [T]) {
        let Int8Attention { time, batch, heads, dim, level } = *self.attention;
        let gemm = Int8Gemm::new(dim, time, level);
        let (packed_len, scratch_len) = lens::<T>(&gemm, time);
        let shape = [1, time, batch * heads * dim];
        par_columns_mut(par, out, shape, dim, packed_len + scratch_len, |_, start, mut part, scratch| {
            let (packed, scratch) = scratch.split_at_mut(packed_len);
            let head = start / dim;
            pack_columns(dim, time.next_multiple_of(4), time, |t| self.projection(t, head, VALUE), packed);
            let rows = Rows { bytes: &weights.bytes[head * time * time..][..time * time], ..weights };
            let job = GemmJob { gemm: &gemm, rows, stride: time, packed, epilogue: &self.epilogue };
            job.run(0..time, 0..dim, scratch, |row, column, results: &[T]| {
                part.row(row)[column..][..results.len()].copy_from_slice(results);
            });
        });
    }
}

/// Bytes of packed weights, a multiple of 64, and of the scratch memory of a product.
fn lens<T: RoundTo>(gemm: &Int8Gemm, rows: usize) -> (usize, usize) {
    let packed = gemm.packed_len().expect("weights in memory are a part of the address space");
    (packed.next_multiple_of(64), gemm.scratch_len::<T>(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;
    use crate::testing::{Reverse, Threads};

    fn bytes(seed: usize, len: usize) -> Vec<u8> {
        (0..len).map(|i| [0, 127, 128, 255, (i * 37 + seed) as u8][(i * i + seed) % 5]).collect()
    }

    /// Both products as the definition has them.
    fn expected(x: &Int8Attention, qkv: &[i8], weights: Rows<'_>, factor: f32) -> [Vec<f32>; 2] {
        let Int8Attention { time, batch, heads, dim, .. } = *x;
        let all = batch * heads;
        let number =
            |t: usize, head: usize, which: usize, d: usize| i32::from(qkv[((t * all + head) * 3 + which) * dim + d]);
        let weight = |at: usize| match weights.signed {
            true => i32::from(weights.bytes[at] as i8),
            false => i32::from(weights.bytes[at]),
        };
        let scores = (0..all * time * time).map(|at| {
            let (head, i, j) = (at / time / time, at / time % time, at % time);
            (0..dim).map(|d| number(i, head, QUERY, d) * number(j, head, KEY, d)).sum()
        });
        let values = (0..time * all * dim).map(|at| {
            let (t, head, d) = (at / dim / all, at / dim % all, at % dim);
            (0..time).map(|j| weight((head * time + t) * time + j) * number(j, head, VALUE, d)).sum()
        });
        let scaled = |sum: i32| sum as f32 * factor;
        [scores.map(scaled).collect(), values.map(scaled).collect()]
    }

    #[test]
    fn products_are_those_of_the_definition_on_every_level() {
        for (time, batch, heads, dim) in [(1, 1, 1, 1), (7, 2, 3, 5), (50, 1, 2, 16), (64, 2, 1, 33), (3, 1, 1, 0)] {
            for (level, signed) in Level::ALL.iter().flat_map(|level| [(*level, false), (*level, true)]) {
                let x = Int8Attention { time, batch, heads, dim, level };
                let qkv = bytes(1, time * x.stride());
                let qkv: &[i8] = bytemuck::cast_slice(&qkv);
                let weights = bytes(2, batch * heads * time * time);
                let weights = Rows { bytes: &weights, signed };
                for par in [&Serial as &dyn Par, &Reverse, &Threads(3)] {
                    for factor in [1.0, 0.003] {
                        let products = [HeadProducts::Scores, HeadProducts::Values(weights)];
                        for (want, products) in expected(&x, qkv, weights, factor).iter().zip(products) {
                            let mut out = vec![f32::NAN; want.len()];
                            x.run(par, qkv, products, factor, &mut out);
                            assert_eq!(&out, want, "{x:?}");
                            let mut out = vec![1i8; want.len()];
                            x.run(par, qkv, products, factor, &mut out);
                            assert!(out.iter().zip(want).all(|(out, want)| *out == i8::round_to(*want)), "{x:?}");
                        }
                    }
                }
            }
        }
    }
}
