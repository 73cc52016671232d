//! Restores weights from folded weights, bit for bit.
//!
//! Folding multiplies a row of weights by one factor in double precision and rounds to single.
//! Division by the factor gives each weight back except its last bit. Two bits per weight record
//! whether that bit is one too low or too high. Nothing is assumed about how a row was folded: a
//! weight that differs by more than one is an exception and is stored unchanged.

/// Weights of a row from which its factor is estimated.
const SAMPLE: usize = 512;
/// Magnitude below which weights lose bits when they are folded.
const LEAST: f32 = 1e-30;
/// Weights per exception that are accepted; an exception is stored unchanged.
const WEIGHTS_PER_EXCEPTION: usize = 64;

/// Code of a weight that the division restores. A code has two bits; the others name a correction.
const EXACT: u8 = 0;
const ONE_MORE: u8 = 1;
const ONE_LESS: u8 = 2;
const EXCEPTION: u8 = 3;

/// A function from folded rows of weights to raw ones.
#[derive(Default)]
pub struct FoldInverse {
    /// elements of a row
    each: usize,
    /// factor of every row, by which its folded weights are multiplied
    inverses: Vec<f64>,
    /// code of every weight, four in a byte; each row begins with a new byte
    codes: Vec<u8>,
    /// index and value of exceptions, in order
    exceptions: Vec<(usize, f32)>,
}

impl FoldInverse {
    pub fn new(rows: usize, each: usize) -> FoldInverse {
        FoldInverse {
            each,
            inverses: Vec::with_capacity(rows),
            codes: Vec::with_capacity(rows * each.div_ceil(4)),
            exceptions: Vec::new(),
        }
    }

    /// Compares the next row. Returns false if there are too many exceptions by now for a restore
    /// to pay.
    pub fn add_row(&mut self, raw: &[f32], folded: &[f32]) -> bool {
        let (first, inverse) = (self.inverses.len() * self.each, inverse(raw, folded));
        self.inverses.push(inverse);
        for (at, (raw, folded)) in raw.chunks(4).zip(folded.chunks(4)).enumerate() {
            let mut codes = 0;
            for (i, (raw, folded)) in raw.iter().zip(folded).enumerate() {
                let code = match raw.to_bits().wrapping_sub(guess(*folded, inverse).to_bits()).cast_signed() {
                    0 => EXACT,
                    1 => ONE_MORE,
                    -1 => ONE_LESS,
                    _ => {
                        self.exceptions.push((first + at * 4 + i, *raw));
                        EXCEPTION
                    }
                };
                codes |= code << (2 * i);
            }
            self.codes.push(codes);
        }
        self.exceptions.len() <= 8 + self.inverses.len() * self.each / WEIGHTS_PER_EXCEPTION
    }

    /// Whether every folded row equals the raw one.
    pub fn is_identity(&self) -> bool {
        self.inverses.iter().all(|i| *i == 1.0) && self.codes.iter().all(|c| *c == 0)
    }

    /// Turns folded rows into raw weights. `first` is the number of the first row.
    pub fn apply(&self, first: usize, rows: &mut [f32]) {
        let of_row = self.each.div_ceil(4);
        for (row, number) in rows.chunks_exact_mut(self.each.max(1)).zip(first..) {
            let (inverse, codes) = (self.inverses[number], &self.codes[number * of_row..][..of_row]);
            for (values, codes) in row.chunks_mut(4).zip(codes) {
                for (i, value) in values.iter_mut().enumerate() {
                    let bits = guess(*value, inverse).to_bits();
                    *value = f32::from_bits(match codes >> (2 * i) & 3 {
                        ONE_MORE => bits.wrapping_add(1),
                        ONE_LESS => bits.wrapping_sub(1),
                        _ => bits,
                    });
                }
            }
        }
        let start = first * self.each;
        let passed = self.exceptions.partition_point(|(at, _)| *at < start);
        for (at, value) in &self.exceptions[passed..] {
            match rows.get_mut(at - start) {
                Some(weight) => *weight = *value,
                None => break,
            }
        }
    }
}

fn guess(folded: f32, inverse: f64) -> f32 {
    if inverse == 1.0 { folded } else { (f64::from(folded) * inverse) as f32 }
}

/// One divided by the factor of a row. Every pair of a raw and a folded weight bounds the factor
/// from both sides.
fn inverse(raw: &[f32], folded: &[f32]) -> f64 {
    if raw.iter().zip(folded).all(|(r, f)| r.to_bits() == f.to_bits()) {
        return 1.0;
    }
    let usable = |x: f32| x.is_finite() && x.abs() >= LEAST;
    let pairs = raw.iter().zip(folded).filter(|(r, f)| usable(**r) && usable(**f)).take(SAMPLE);
    let (mut low, mut high, mut negative) = (0.0f64, f64::INFINITY, false);
    for (raw, folded) in pairs {
        negative = raw.is_sign_negative() != folded.is_sign_negative();
        let (magnitude, raw) = (folded.abs(), f64::from(raw.abs()));
        // Half of the distance to the next larger number, and a little for the rounding of the
        // product.
        let half = f64::from(f32::from_bits(magnitude.to_bits() + 1) - magnitude) * 0.500_001;
        low = low.max((f64::from(magnitude) - half) / raw);
        high = high.min((f64::from(magnitude) + half) / raw);
    }
    match 2.0 / (low + high) {
        inverse if !inverse.is_normal() => 1.0,
        inverse if negative => -inverse,
        inverse => inverse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|v| v.to_bits()).collect()
    }

    fn fold(raw: &[f32], factor: f64) -> Vec<f32> {
        raw.iter().map(|r| (f64::from(*r) * factor) as f32).collect()
    }

    /// Adds rows, checks that they are restored from any row on, and returns the inverse.
    fn check(raw: &[f32], folded: &[f32], each: usize) -> Option<FoldInverse> {
        let mut inverse = FoldInverse::new(raw.len() / each, each);
        let worth =
            raw.chunks(each).zip(folded.chunks(each)).fold(true, |worth, (r, f)| inverse.add_row(r, f) && worth);
        for first in 0..raw.len() / each {
            let mut rows = folded[first * each..].to_vec();
            inverse.apply(first, &mut rows);
            assert_eq!(bits(&rows), bits(&raw[first * each..]), "from row {first}");
        }
        worth.then_some(inverse)
    }

    proptest! {
        #[test]
        fn folded_rows_come_back_and_hardly_any_weight_is_an_exception(
            rows in prop::collection::vec((prop_oneof![-1e3f64..1e3, -1e-3f64..1e-3], -20i32..20), 1..5),
            each in 1usize..700, seed: u64,
        ) {
            let mut state = seed | 1;
            let mut next = || {
                state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
                (state >> 33) as f32 / (1u64 << 30) as f32 - 1.0
            };
            let mut raw: Vec<f32> = (0..rows.len() * each).map(|_| next()).collect();
            raw.iter_mut().step_by(11).for_each(|r| *r = 0.0);
            raw.iter_mut().step_by(13).for_each(|r| *r = -*r);
            let folded: Vec<f32> = raw.chunks(each).zip(&rows).flat_map(|(raw, (factor, exponent))| fold(raw, factor * 2f64.powi(*exponent))).collect();
            let inverse = check(&raw, &folded, each).expect("worth it");
            // Zeros whose sign the factor turned are none, unless there is nothing else in their
            // row to see it by.
            let zeros = raw.chunks(each).filter(|row| row.iter().all(|r| *r == 0.0)).count() * each;
            prop_assert!(inverse.exceptions.len() <= raw.len() / 500 + zeros, "{} of {}", inverse.exceptions.len(), raw.len());
        }

        #[test]
        fn whatever_stands_in_the_rows_comes_back(
            pairs in prop::collection::vec((any::<u32>(), any::<u32>()), 1..100), each in 1usize..20,
        ) {
            let pairs = &pairs[..pairs.len() / each * each];
            let (raw, folded): (Vec<f32>, Vec<f32>) = pairs.iter().map(|(r, f)| (f32::from_bits(*r), f32::from_bits(*f))).unzip();
            check(&raw, &folded, each);
        }
    }

    #[test]
    fn rows_that_were_not_folded_are_seen_and_rows_that_lost_everything_are_not_worth_it() {
        let raw: Vec<f32> = (0..200).map(|i| 1.0 / (i as f32 - 77.5)).collect();
        assert!(check(&raw, &raw, 100).is_some_and(|u| u.is_identity()));
        assert!(check(&raw, &fold(&raw, 2.5), 100).is_some_and(|u| !u.is_identity()));
        assert!(check(&raw, &[0.0; 200], 100).is_none(), "multiplied by zero");
    }
}
