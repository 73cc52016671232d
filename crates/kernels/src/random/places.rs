//! Places in random order, all of them or some.

use super::Stream;
use super::lanes::{BLOCK, Words, stream_words};
use crate::par::Par;
use crate::scratch::Scratch;

/// Different whole numbers below `limit`, each drawn with a probability that falls like its
/// inverse: `round(limit^u) - 1` for uniform `u`, until there are as many as `out` takes. Returns how many
/// draws that took.
///
/// # Panics
/// If there are fewer numbers below `limit` than `out` takes.
pub fn unique_log_uniform(stream: &mut Stream, limit: usize, out: &mut [i64]) -> i64 {
    assert!(out.len() <= limit, "{} different numbers below {limit}", out.len());
    let scale = (limit as f64).ln();
    let (mut seen, mut found, mut draws) = (std::collections::HashSet::new(), 0, 0);
    while found < out.len() {
        let value = ((stream.uniform() * scale).exp().round() as i64 - 1).clamp(0, limit as i64 - 1);
        if seen.insert(value) {
            out[found] = value;
            found += 1;
        }
        draws += 1;
    }
    draws
}

/// A random permutation of `0..out.len()` (Fisher and Yates). Runs in the calling thread.
pub fn permutation(seed: u64, position: u64, out: &mut [usize]) {
    out.iter_mut().enumerate().for_each(|(i, v)| *v = i);
    shuffle(seed, position, out);
}

/// Brings elements into the order of [`permutation`]. Runs in the calling thread.
pub fn shuffle<T>(seed: u64, position: u64, out: &mut [T]) {
    let (mut block, mut words) = (0, Words::default());
    let mut rest = out.len();
    while rest > 1 {
        stream_words(seed, position, block, &mut words);
        block += BLOCK as u32;
        for i in 0..2 * BLOCK {
            if rest <= 1 {
                break;
            }
            let [low, high] = words.pair(i).map(u64::from);
            let place = ((u128::from(low | high << 32) * rest as u128) >> 64) as usize;
            rest -= 1;
            out.swap(rest, place);
        }
    }
}

/// The first numbers of a random permutation of `0..n`, in time and memory that follow from how many
/// they are. Runs in the calling thread.
///
/// # Panics
/// If more than `n` are wanted.
pub fn distinct_places(par: &dyn Par, seed: u64, position: u64, n: usize, out: &mut [i64]) {
    assert!(out.len() <= n, "{} different places of {n}", out.len());
    let mut stream = Stream::new(seed, position, 0);
    let mut draw = |i: usize| i + stream.below((n - i) as u64) as usize;
    if out.len() > n / 8 {
        let mut all = Scratch::collect(par, n, 0..n);
        for (i, out) in out.iter_mut().enumerate() {
            all.swap(i, draw(i));
            *out = all[i] as i64;
        }
        return;
    }
    // What the permutation has moved, and to where: the rest is where it began.
    let mut moved = Moved::new(par, out.len());
    for (i, out) in out.iter_mut().enumerate() {
        let j = draw(i);
        *out = moved.at(j) as i64;
        moved.put(j, moved.at(i));
    }
}

/// The few elements of a permutation that are not at their place: a hash table.
struct Moved {
    /// place and element; the place is `usize::MAX` where there is none
    slots: Scratch<[usize; 2]>,
}

impl Moved {
    fn new(par: &dyn Par, most: usize) -> Moved {
        Moved { slots: Scratch::filled(par, (2 * most).next_power_of_two(), [usize::MAX; 2]) }
    }

    /// The slot of a place, or the one that it would have.
    fn slot(&self, place: usize) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = ((place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.slots[slot][0] != place && self.slots[slot][0] != usize::MAX {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn at(&self, place: usize) -> usize {
        let [known, element] = self.slots[self.slot(place)];
        if known == place { element } else { place }
    }

    fn put(&mut self, place: usize, element: usize) {
        let slot = self.slot(place);
        self.slots[slot] = [place, element];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::par::Serial;

    #[test]
    fn few_places_are_the_beginning_of_a_permutation() {
        for n in [1000, 1001] {
            let mut all = vec![0; n];
            distinct_places(&Serial, 7, 3, n, &mut all);
            let mut few = [0; 100];
            distinct_places(&Serial, 7, 3, n, &mut few);
            assert_eq!(few, all[..100], "of {n}: few are looked up, all are moved");
            all.sort_unstable();
            assert!(all.into_iter().eq(0..n as i64));
        }
        // Each ordered pair of five is as frequent as any other.
        let mut counts = [0u32; 25];
        for seed in 0..20_000 {
            let mut pair = [0; 2];
            distinct_places(&Serial, seed, 0, 5, &mut pair);
            counts[(pair[0] * 5 + pair[1]) as usize] += 1;
        }
        for (i, count) in counts.iter().enumerate() {
            let range = if i % 6 == 0 { 0..1 } else { 850..1150 };
            assert!(range.contains(count), "{counts:?}");
        }
        distinct_places(&Serial, 1, 1, usize::MAX >> 1, &mut [0; 40]);
    }

    #[test]
    fn a_permutation_holds_every_place_once() {
        let mut out = vec![0; 1000];
        permutation(3, 4, &mut out);
        assert!(out.iter().enumerate().any(|(i, &v)| i != v));
        out.sort_unstable();
        assert!(out.iter().enumerate().all(|(i, &v)| i == v));
    }

    #[test]
    fn elements_are_exchanged_by_the_numbers_of_one_stream() {
        for n in [0, 1, 2, 3, 64, 65, 200] {
            let mut want: Vec<usize> = (0..n).collect();
            let mut stream = Stream::new(5, 6, 0);
            for i in (1..n).rev() {
                want.swap(i, stream.below(i as u64 + 1) as usize);
            }
            let mut got = vec![0; n];
            permutation(5, 6, &mut got);
            assert_eq!(got, want, "{n} elements");
        }
    }
}
