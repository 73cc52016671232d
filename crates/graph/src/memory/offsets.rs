//! Plans the memory of values: one arena with static offsets.

/// Alignment of every value in the arena.
pub const ALIGN: usize = 64;

/// A value that lives in the arena from the step that makes it to the last step that reads it.
#[derive(Clone, Copy, Debug)]
pub struct Lifetime {
    /// bytes needed
    pub bytes: usize,
    /// first step in which the memory is in use
    pub first: usize,
    /// last step in which the memory is in use
    pub last: usize,
}

/// Rounds up to the arena's alignment. Sums saturate: no pool holds that much.
pub fn aligned(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(ALIGN).unwrap_or(usize::MAX - ALIGN + 1)
}

/// The numbers below `count` by the keys that they have; with equal keys they keep their order. The
/// code that sorts is compiled once for all keys.
pub(crate) fn ordered(count: usize, key: impl Fn(usize) -> [usize; 2]) -> Vec<usize> {
    let entry = |i| {
        let [first, second] = key(i);
        [first, second, i]
    };
    let mut keys: Vec<[usize; 3]> = (0..count).map(entry).collect();
    keys.sort_unstable();
    keys.iter().map(|[.., i]| *i).collect()
}

/// Gives every value an offset so that values in use at the same time never share bytes. Returns
/// the offsets and the size of the arena. The largest values come first, each in the lowest gap
/// that fits (a common heuristic for this packing).
pub fn assign(values: &[Lifetime]) -> (Vec<usize>, usize) {
    let order = ordered(values.len(), |i| [usize::MAX - values[i].bytes, values[i].first]);
    let mut offsets = vec![0; values.len()];
    let mut placed = PlacedLifetimes::new(values);
    let mut total = 0;
    for i in order {
        let mut taken: Vec<(usize, usize)> = Vec::new();
        placed.meeting(&values[i], &mut |p| {
            taken.push((offsets[p], offsets[p].saturating_add(aligned(values[p].bytes))))
        });
        taken.sort_unstable();
        let mut at = 0usize;
        for (start, end) in taken {
            if at.saturating_add(aligned(values[i].bytes)) <= start {
                break;
            }
            at = at.max(end);
        }
        offsets[i] = at;
        total = total.max(at.saturating_add(aligned(values[i].bytes)));
        placed.insert(i, &values[i]);
    }
    (offsets, total)
}

/// Lifetimes by their first step and, in a segment tree over the steps, by the steps that they
/// contain. Those that overlap another one are found without a search of all of them.
struct PlacedLifetimes {
    /// lifetimes that begin in each step
    beginning: Vec<Vec<usize>>,
    /// lifetimes that contain all steps of each node of the tree (the root is 1, the children of k
    /// are 2k and 2k + 1)
    containing: Vec<Vec<usize>>,
}

impl PlacedLifetimes {
    fn new(values: &[Lifetime]) -> PlacedLifetimes {
        let steps = values.iter().map(|v| v.last + 1).max().unwrap_or(0).next_power_of_two();
        PlacedLifetimes { beginning: vec![Vec::new(); steps], containing: vec![Vec::new(); 2 * steps] }
    }

    fn insert(&mut self, i: usize, value: &Lifetime) {
        self.beginning[value.first].push(i);
        let steps = self.beginning.len();
        let (mut low, mut high) = (value.first + steps, value.last + steps + 1);
        while low < high {
            if low % 2 == 1 {
                self.containing[low].push(i);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                self.containing[high].push(i);
            }
            (low, high) = (low / 2, high / 2);
        }
    }

    /// Calls `found` once for each lifetime that overlaps this one.
    fn meeting(&self, value: &Lifetime, found: &mut dyn FnMut(usize)) {
        // Those that have begun before and contain its first step, or begin then, and those that
        // begin later.
        let mut node = value.first + self.beginning.len();
        while node > 0 {
            self.containing[node].iter().for_each(|i| found(*i));
            node /= 2;
        }
        let later = &self.beginning[value.first + 1..=value.last];
        later.iter().flatten().for_each(|i| found(*i));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Lifetime {
        fn meets(&self, other: &Lifetime) -> bool {
            self.first <= other.last && other.first <= self.last
        }
    }

    proptest::proptest! {
        #[test]
        fn those_that_meet_are_found_once_each(ends in proptest::collection::vec((0usize..40, 0usize..40), 1..60)) {
            let values: Vec<Lifetime> = ends
                .iter()
                .map(|(a, b)| Lifetime { bytes: 64, first: *a.min(b), last: *a.max(b) })
                .collect();
            let mut placed = PlacedLifetimes::new(&values);
            for (i, value) in values.iter().enumerate() {
                let mut found = Vec::new();
                placed.meeting(value, &mut |p| found.push(p));
                found.sort_unstable();
                let wanted: Vec<usize> = (0..i).filter(|p| values[*p].meets(value)).collect();
                proptest::prop_assert_eq!(found, wanted);
                placed.insert(i, value);
            }
        }
    }

    #[test]
    fn values_in_use_together_never_overlap_and_others_share() {
        let values: Vec<Lifetime> =
            (0..40).map(|i| Lifetime { bytes: 64 * (1 + i * 7 % 13), first: i, last: i + 1 + i % 3 }).collect();
        let (offsets, total) = assign(&values);
        for i in 0..values.len() {
            assert!(offsets[i] % ALIGN == 0 && offsets[i] + values[i].bytes <= total);
            for j in 0..i {
                let apart = offsets[i] + values[i].bytes <= offsets[j] || offsets[j] + values[j].bytes <= offsets[i];
                assert!(apart || !values[i].meets(&values[j]), "{i} and {j} overlap");
            }
        }
        let sum: usize = values.iter().map(|v| v.bytes).sum();
        assert!(total < sum / 3, "{total} bytes of arena for {sum} bytes of values");
    }
}
