//! How many elements fall into each of some bins. The last bin has its upper edge too.

use crate::element::Element;
use crate::par::{Par, par_chunks_mut};
use crate::scratch::Scratch;
use crate::vectorize::vectorized;

/// Elements whose bins are guessed together.
const BLOCK: usize = 256;
/// Least elements that a thread counts, and most parts of an array.
const PART: usize = 32 * 1024;
const MOST_PARTS: usize = 64;
/// An element outside of all bins.
const NOWHERE: i32 = -1;

/// Counts the elements in bins of equal width from `low` to `high`, whose edges, rounded to the
/// dtype, are `edges`.
///
/// # Panics
/// If there is not one edge more than bins, or there are 2^31 bins.
pub fn even<T: Element>(par: &dyn Par, data: &[T], [low, high]: [f64; 2], edges: &[T], counts: &mut [i64]) {
    assert_eq!(edges.len(), counts.len() + 1, "edges of bins");
    assert!(counts.len() <= i32::MAX as usize, "{} bins", counts.len());
    let last = counts.len().saturating_sub(1);
    in_parts(par, data, counts, |data, counts| {
        let mut bins = [NOWHERE; BLOCK];
        for data in data.chunks(BLOCK) {
            guess(data, [low, high], counts.len(), &mut bins[..data.len()]);
            for (v, bin) in data.iter().zip(bins) {
                let Ok(bin) = usize::try_from(bin) else { continue };
                let mut bin = bin.min(last);
                // Edges are rounded to the dtype.
                if *v < edges[bin] && bin > 0 {
                    bin -= 1;
                }
                if *v >= edges[bin + 1] && bin != last {
                    bin += 1;
                }
                counts[bin] += 1;
            }
        }
    });
}

vectorized! {
    fn guess[T: Element](data: &[T], range: [f64; 2], count: usize, bins: &mut [i32]) {
        let ([low, high], count) = (range, count as f64);
        for (bin, v) in bins.iter_mut().zip(data) {
            let number = v.to_f64();
            let inside = number >= low && number <= high;
            let place = ((number - low) * count / (high - low)) as i32;
            *bin = if inside { place } else { NOWHERE };
        }
    }
}

/// Counts the elements in bins between ascending edges.
///
/// # Panics
/// If there is not one edge more than bins.
pub fn uneven<T: Element>(par: &dyn Par, data: &[T], edges: &[T], counts: &mut [i64]) {
    assert_eq!(edges.len(), counts.len() + 1, "edges of bins");
    let last = counts.len();
    in_parts(par, data, counts, |data, counts| {
        for v in data.iter().filter(|v| **v >= edges[0] && **v <= edges[last]) {
            let above = edges.iter().take_while(|edge| *v >= **edge).count();
            counts[above.clamp(1, last) - 1] += 1;
        }
    });
}

/// Counts parts of the data, and adds.
fn in_parts<T: Element>(par: &dyn Par, data: &[T], counts: &mut [i64], count: impl Fn(&[T], &mut [i64]) + Sync) {
    counts.fill(0);
    let bins = counts.len();
    if bins == 0 || data.is_empty() {
        return;
    }
    let part = PART.max(bins).max(data.len().div_ceil(MOST_PARTS));
    let mut of_parts = Scratch::filled(par, data.len().div_ceil(part) * bins, 0i64);
    par_chunks_mut(par, &mut of_parts, bins, |i, counts| {
        count(&data[i * part..data.len().min((i + 1) * part)], counts);
    });
    for part in of_parts.chunks(bins) {
        counts.iter_mut().zip(part).for_each(|(sum, count)| *sum += count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Threads, random};

    #[test]
    fn every_element_is_between_the_edges_of_its_bin() {
        let data = random(100_001, 4);
        let edges: Vec<f32> = (0..=7).map(|i| (i as f64 / 7.0 - 0.5) as f32).collect();
        let is_in = |i: usize, v: f32| v >= edges[i] && (v < edges[i + 1] || (i == 6 && v == edges[7]));
        let expected: Vec<i64> = (0..7).map(|i| data.iter().filter(|v| is_in(i, **v)).count() as i64).collect();
        let (mut counts, mut others) = ([0; 7], [0; 7]);
        even(&Threads(3), &data, [-0.5, 0.5], &edges, &mut counts);
        uneven(&Threads(3), &data, &edges, &mut others);
        assert_eq!((&counts[..], &others[..]), (&expected[..], &expected[..]));
        assert!(expected.iter().sum::<i64>() < 100_001, "some are outside");
    }
}
