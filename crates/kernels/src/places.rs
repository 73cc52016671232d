//! Numbers of rows, or offsets, of which the largest is known: what reads or writes there checks that
//! one, and looks through them no more.

use std::ops::Range;

/// Numbers, none of which is larger than a known one.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    values: &'a [usize],
    most: usize,
}

impl<'a> Places<'a> {
    /// Looks for the largest.
    pub fn new(values: &'a [usize]) -> Places<'a> {
        Places { values, most: values.iter().max().copied().unwrap_or(0) }
    }

    /// The numbers.
    pub fn values(&self) -> &'a [usize] {
        self.values
    }

    /// A number that none exceeds.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Some of them.
    pub fn part(&self, range: Range<usize>) -> Places<'a> {
        Places { values: &self.values[range], ..*self }
    }
}

/// Numbers, up to N of them, which follow each other in runs.
pub(crate) struct Runs<const N: usize> {
    values: [usize; N],
    len: usize,
    most: usize,
}

impl<const N: usize> Runs<N> {
    /// No numbers.
    pub fn new() -> Self {
        Runs { values: [0; N], len: 0, most: 0 }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        (self.len, self.most) = (0, 0);
    }

    /// Appends `count` numbers, each `step` more than the one before it.
    pub fn push(&mut self, first: usize, step: usize, count: usize) {
        // Sums, since multiplying numbers of 64 bits takes some instructions.
        let mut next = first;
        for value in &mut self.values[self.len..self.len + count] {
            *value = next;
            next = next.wrapping_add(step);
        }
        let last = first.checked_add(step.checked_mul(count.saturating_sub(1)).expect("a place")).expect("a place");
        (self.len, self.most) = (self.len + count, self.most.max(last));
    }

    /// Appends the last number until there are `len`.
    ///
    /// # Panics
    /// If there is no number.
    pub fn fill(&mut self, len: usize) {
        let last = self.values[self.len - 1];
        self.values[self.len..len].fill(last);
        self.len = len;
    }

    /// The numbers.
    pub fn places(&self) -> Places<'_> {
        Places { values: &self.values[..self.len], most: self.most }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_know_their_largest_number() {
        let mut runs = Runs::<8>::new();
        runs.push(7, 2, 3);
        runs.push(1, 5, 2);
        runs.fill(6);
        assert_eq!((runs.places().values(), runs.places().most()), (&[7, 9, 11, 1, 6, 6][..], 11));
        let part = runs.places().part(3..5);
        assert_eq!((part.values(), part.most()), (&[1, 6][..], 11));
        runs.clear();
        runs.push(2, 1, 1);
        assert_eq!((runs.places().values(), runs.places().most()), (&[2][..], 2));
        assert_eq!(Places::new(&[3, 9, 4]).most(), 9);
    }
}
