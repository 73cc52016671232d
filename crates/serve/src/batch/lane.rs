//! Requests that wait for a batch, and the choice of those that form the next one. Nothing here
//! waits or reads a clock: callers pass the time.

use std::time::Instant;

/// Waiting request. `work` is the part that a batch is made of.
pub(super) struct Member<W> {
    pub(super) work: W,
    pub(super) rows: usize,
    /// place in the order of all waiting requests; the lowest goes first
    pub(super) rank: i64,
    pub(super) deadline: Option<Instant>,
    /// number in the order of arrival, over all lanes
    pub(super) arrived: u64,
}

impl<W> Member<W> {
    fn order(&self) -> (i64, u64) {
        (self.rank, self.arrived)
    }
}

/// Waiting requests of one signature.
pub(super) struct Lane<W> {
    waiting: Vec<Member<W>>,
}

/// Members that leave a lane together.
pub(super) struct Taken<W> {
    pub(super) batch: Vec<Member<W>>,
    /// members whose deadlines have passed; they are not computed
    pub(super) late: Vec<Member<W>>,
}

impl<W> Lane<W> {
    pub(super) fn new() -> Lane<W> {
        Lane { waiting: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of rows of all waiting members.
    pub(super) fn rows(&self) -> usize {
        self.waiting.iter().map(|member| member.rows).sum()
    }

    /// Returns the rank and arrival number of the first member, for a comparison with other lanes.
    /// The lowest goes first.
    pub(super) fn first(&self) -> Option<(i64, u64)> {
        self.waiting.iter().map(Member::order).min()
    }

    pub(super) fn join(&mut self, member: Member<W>) {
        self.waiting.push(member);
    }

    /// Removes the member with this arrival number and returns it.
    pub(super) fn leave(&mut self, arrived: u64) -> Option<Member<W>> {
        let place = self.waiting.iter().position(|member| member.arrived == arrived)?;
        Some(self.waiting.swap_remove(place))
    }

    /// Takes the next batch: members in the order of their ranks, at most `max` rows. A member with
    /// more rows forms a batch alone. Members that are `gone` or late leave the lane too.
    pub(super) fn take(&mut self, now: Instant, max: usize, gone: impl Fn(&W) -> bool) -> Taken<W> {
        self.waiting.retain(|member| !gone(&member.work));
        let is_late = |member: &Member<W>| member.deadline.is_some_and(|deadline| deadline <= now);
        let (late, mut there): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(is_late);
        there.sort_by_key(Member::order);
        let mut rows = 0;
        let fitting = there.iter().take_while(|member| {
            rows += member.rows;
            rows <= max
        });
        let count = fitting.count().max(1).min(there.len());
        self.waiting = there.split_off(count);
        Taken { batch: there, late }
    }
}

/// Returns the number of rows of the plan for a batch: the smallest of the sizes that holds them,
/// so that plans stay few. A batch larger than all sizes is not padded.
pub(super) fn padded(rows: usize, sizes: &[usize]) -> usize {
    sizes.iter().copied().find(|size| *size >= rows).unwrap_or(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn member(work: &'static str, rows: usize, rank: i64, arrived: u64) -> Member<&'static str> {
        Member { work, rows, rank, deadline: None, arrived }
    }

    fn names(members: &[Member<&'static str>]) -> Vec<&'static str> {
        members.iter().map(|member| member.work).collect()
    }

    #[test]
    fn the_least_rank_goes_first_and_then_the_oldest() {
        let now = Instant::now();
        let mut lane = Lane::new();
        for (arrived, (name, rank)) in [("a", 0), ("b", 0), ("c", -2), ("d", 1), ("e", -2)].into_iter().enumerate() {
            lane.join(member(name, 1, rank, arrived as u64));
        }
        assert_eq!(lane.first(), Some((-2, 2)));
        assert_eq!(names(&lane.take(now, 3, |_| false).batch), ["c", "e", "a"]);
        lane.join(member("f", 1, 0, 5));
        assert_eq!(names(&lane.take(now, 3, |_| false).batch), ["b", "f", "d"]);
        assert!(lane.is_empty());
        assert!(lane.take(now, 3, |_| false).batch.is_empty());
    }

    #[test]
    fn a_batch_has_at_most_so_many_rows_and_a_larger_request_is_alone() {
        let now = Instant::now();
        let mut lane = Lane::new();
        for (arrived, (name, rows)) in [("a", 3), ("b", 2), ("c", 1), ("d", 9), ("e", 1)].into_iter().enumerate() {
            lane.join(member(name, rows, 0, arrived as u64));
        }
        let mut batches = Vec::new();
        while !lane.is_empty() {
            batches.push(names(&lane.take(now, 4, |_| false).batch));
        }
        // Nobody overtakes a request that does not fit.
        assert_eq!(batches, [vec!["a"], vec!["b", "c"], vec!["d"], vec!["e"]]);
    }

    #[test]
    fn who_is_gone_or_late_is_not_computed() {
        let now = Instant::now();
        let mut lane = Lane::new();
        lane.join(member("gone", 1, 9, 0));
        lane.join(Member { deadline: Some(now), ..member("late", 1, 9, 1) });
        lane.join(Member { deadline: Some(now + Duration::from_millis(1)), ..member("in time", 1, 0, 2) });
        let taken = lane.take(now, 4, |name| *name == "gone");
        assert_eq!((names(&taken.batch), names(&taken.late)), (vec!["in time"], vec!["late"]));
        lane.join(Member { deadline: Some(now), ..member("late", 1, 0, 3) });
        let taken = lane.take(now, 4, |_| false);
        assert_eq!((names(&taken.batch), names(&taken.late)), (vec![], vec!["late"]));
    }

    #[test]
    fn plans_are_made_for_few_numbers_of_rows() {
        let sizes: Vec<usize> =
            [1, 2, 3, 5, 8, 9, 11, 12, 13].iter().map(|rows| padded(*rows, &[1, 2, 4, 8, 12])).collect();
        assert_eq!(sizes, [1, 2, 4, 8, 8, 12, 12, 12, 13]);
        assert_eq!(padded(3, &[6]), 6);
    }
}
