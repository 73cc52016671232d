//! Blocks of Philox for many counters together: the words of [`Stream`](super::Stream), in vectors.

use crate::vectorize::vectorized;

/// Counters whose blocks are computed together.
pub(super) const BLOCK: usize = 64;
/// Counters that go through the rounds in registers.
const LANES: usize = 8;

/// The words of [`BLOCK`] counters: `words[i][j]` is word `i` of counter `j`.
pub(super) struct Words(pub [[u32; BLOCK]; 4]);

impl Default for Words {
    fn default() -> Words {
        Words([[0; BLOCK]; 4])
    }
}

impl Words {
    /// Pair number `i` of the words in the order of one stream.
    #[inline(always)]
    pub fn pair(&self, i: usize) -> [u32; 2] {
        let word = i % 2 * 2;
        [self.0[word][i / 2], self.0[word + 1][i / 2]]
    }
}

/// Identity of numbers: the seed, the number of the array, and the first counter.
#[derive(Clone, Copy)]
struct First {
    key: [u32; 2],
    position: u64,
    element: u64,
    block: u32,
}

/// The first words of the elements from `element` on.
#[inline(always)]
pub(super) fn element_words(seed: u64, position: u64, element: u64, out: &mut Words) {
    rounds(First { key: [seed as u32, (seed >> 32) as u32], position, element, block: 0 }, [0, 1], out);
}

vectorized! {
    /// The words of element 0 from number `block` of its blocks on.
    pub(super) fn stream_words[](seed: u64, position: u64, block: u32, out: &mut Words) {
        rounds(First { key: [seed as u32, (seed >> 32) as u32], position, element: 0, block }, [1, 0], out);
    }
}

/// The words of counters that differ by `steps` of block and element.
#[inline(always)]
fn rounds(first: First, steps: [u32; 2], out: &mut Words) {
    const MASK: u64 = 0xffff_ffff;
    for start in (0..BLOCK).step_by(LANES) {
        // 32 bits each, in lanes of 64 as the products need them; what is above them is arbitrary.
        let mut c = [[0u64; LANES]; 4];
        for j in 0..LANES {
            let ahead = (start + j) as u64;
            let element = first.element + ahead * u64::from(steps[1]);
            c[0][j] = u64::from(first.block.wrapping_add((ahead as u32).wrapping_mul(steps[0])));
            c[1][j] = element & MASK;
            c[2][j] = (element >> 32 & 0xffff) | u64::from((first.position as u32) << 16);
            c[3][j] = u64::from((first.position >> 16) as u32);
        }
        let mut key = first.key;
        for _ in 0..10 {
            let [k0, k1] = key.map(u64::from);
            for j in 0..LANES {
                let (a, b) = (0xd251_1f53 * (c[0][j] & MASK), 0xcd9e_8d57 * (c[2][j] & MASK));
                c[0][j] = (b >> 32) ^ c[1][j] ^ k0;
                c[2][j] = (a >> 32) ^ c[3][j] ^ k1;
                // Only the lower halves count.
                c[1][j] = b;
                c[3][j] = a;
            }
            key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
        }
        for (out, c) in out.0.iter_mut().zip(&c) {
            for j in 0..LANES {
                out[start + j] = c[j] as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Stream;
    use super::*;
    use crate::vectorize::Width;

    #[test]
    fn the_words_are_those_of_streams_at_every_width() {
        for width in Width::all() {
            width.limit(|| {
                let mut words = Words::default();
                for element in [0, 7, u64::from(u32::MAX) - 5, (1 << 48) - 64] {
                    element_words(0x1234_5678_9abc_def0, 1 << 40 | 77, element, &mut words);
                    for j in 0..BLOCK {
                        let mut stream = Stream::new(0x1234_5678_9abc_def0, 1 << 40 | 77, element + j as u64);
                        assert_eq!(words.0.map(|word| word[j]), [(); 4].map(|()| stream.next_u32()), "{element} + {j}");
                    }
                }
                let mut stream = Stream::new(3, 4, 0);
                for block in [0, BLOCK as u32] {
                    stream_words(3, 4, block, &mut words);
                    for i in 0..2 * BLOCK {
                        assert_eq!(words.pair(i), [stream.next_u32(), stream.next_u32()]);
                    }
                }
            });
        }
    }
}
