//! Memory plan: one arena with static offsets.

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

impl Lifetime {
    fn meets(&self, other: &Lifetime) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Rounds up to the arena's alignment.
pub fn aligned(bytes: usize) -> usize {
    bytes.div_ceil(ALIGN) * ALIGN
}

/// Gives every value an offset so that values in use at the same time never share bytes. Returns the offsets and the
/// size of the arena. Largest values first, each into the lowest gap that fits (a common heuristic for this packing).
pub fn assign(values: &[Lifetime]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(values[*i].bytes), values[*i].first));
    let mut offsets = vec![0; values.len()];
    let mut placed: Vec<usize> = Vec::with_capacity(values.len());
    let mut total = 0;
    for i in order {
        let mut taken: Vec<(usize, usize)> = placed
            .iter()
            .filter(|p| values[**p].meets(&values[i]))
            .map(|p| (offsets[*p], offsets[*p] + aligned(values[*p].bytes)))
            .collect();
        taken.sort_unstable();
        let mut at = 0;
        for (start, end) in taken {
            if at + aligned(values[i].bytes) <= start {
                break;
            }
            at = at.max(end);
        }
        offsets[i] = at;
        total = total.max(at + aligned(values[i].bytes));
        placed.push(i);
    }
    (offsets, total)
}

#[cfg(test)]
mod tests {
    use super::*;

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
