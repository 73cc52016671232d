//! How long a part of a loop each participant gets: as long as the speed that it had of late.
//!
//! A virtual core whose physical core serves other work, too, takes up to twice as long, for
//! milliseconds to seconds. A loop cut into even parts, one for each participant, then ends when
//! the slowest one does.

use smallvec::SmallVec;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Part of the difference to what was known that a new observation counts.
const RATE: f32 = 0.25;
/// Relative speeds that are believed: a participant whose system did something else for a while is
/// no slow one.
const BELIEVED: Range<f32> = 0.5..2.0;
/// Speeds that differ from the mean by less are the same: measuring them is not more exact.
const SAME: f32 = 0.04;

/// Speeds of the processors, relative to those that took part with them, and where participants
/// were seen last. The thread that drives learns them; where several do, one of them is heard.
/// Nothing but time depends on them.
pub(crate) struct Speeds {
    /// Speeds by number of the processor; bits of an f32.
    of: Box<[AtomicU32]>,
    /// The processor of each seat.
    at: Box<[AtomicUsize]>,
}

impl Speeds {
    pub fn new(seats: usize, processors: usize) -> Self {
        Speeds {
            of: (0..processors).map(|_| AtomicU32::new(1f32.to_bits())).collect(),
            at: (0..seats).map(AtomicUsize::new).collect(),
        }
    }

    /// A participant is on this processor.
    pub fn seen(&self, seat: usize, processor: usize) {
        // Seats of several share a cache line, which is written rarely so.
        if self.at[seat].load(Ordering::Relaxed) != processor {
            self.at[seat].store(processor, Ordering::Relaxed);
        }
    }

    fn of(&self, processor: usize) -> f32 {
        self.of.get(processor).map_or(1.0, |speed| f32::from_bits(speed.load(Ordering::Relaxed)))
    }

    fn of_seat(&self, seat: usize) -> f32 {
        self.at.get(seat).map_or(1.0, |at| self.of(at.load(Ordering::Relaxed)))
    }

    /// Divides `0..units` into `parallelism` ranges, for the participants in the order of their
    /// seats; into even ones if the number of participants differs. No range is empty, or longer
    /// than twice an even one.
    pub fn cut(&self, members: u64, parallelism: usize, units: usize) -> Shares {
        let known = members.count_ones() as usize == parallelism;
        let seats = (0..u64::BITS as usize).filter(|seat| known && (members >> seat) & 1 == 1);
        let mut speeds: SmallVec<[f32; 8]> = seats.map(|seat| self.of_seat(seat)).collect();
        let mean = speeds.iter().sum::<f32>() / parallelism as f32;
        if !known || speeds.iter().all(|speed| (speed / mean - 1.0).abs() < SAME) {
            speeds.clear();
            speeds.resize(parallelism, 1.0);
        }
        let most = 2 * units.div_ceil(parallelism);
        let (mut left, mut speed_left) = (units, speeds.iter().sum::<f32>());
        let mut parts = SmallVec::new();
        for (i, speed) in speeds.iter().enumerate() {
            let others = parallelism - 1 - i;
            let fair = (left as f32 * speed / speed_left).round() as usize;
            // As many as the others can take are left to them, and one for each of them at least.
            let least = left.saturating_sub(most * others).max(1);
            let part = fair.clamp(least, most.min(left - others).max(least));
            parts.push(Share {
                begin: units - left,
                len: part,
                took: AtomicU64::new(0),
                processor: AtomicUsize::new(0),
            });
            (left, speed_left) = (left - part, speed_left - speed);
        }
        Shares(parts)
    }

    /// Learns from what is done. A processor that did two parts says nothing: one of the
    /// participants was late.
    pub fn learn(&self, shares: &Shares) {
        let seen: SmallVec<[(usize, f32); 8]> = shares.0.iter().map(Share::speed).collect();
        let apart = seen.iter().enumerate().all(|(i, (at, _))| seen[..i].iter().all(|(other, _)| other != at));
        let mean = seen.iter().map(|(_, speed)| speed).sum::<f32>() / seen.len() as f32;
        if !apart || !mean.is_finite() {
            return;
        }
        for (processor, speed) in &seen {
            let Some(slot) = self.of.get(*processor) else { continue };
            let (known, now) = (self.of(*processor), (speed / mean).clamp(BELIEVED.start, BELIEVED.end));
            slot.store((known + RATE * (now - known)).to_bits(), Ordering::Relaxed);
        }
    }
}

/// A loop, cut.
pub(crate) struct Shares(SmallVec<[Share; 8]>);

struct Share {
    begin: usize,
    len: usize,
    /// Ticks, and where.
    took: AtomicU64,
    processor: AtomicUsize,
}

impl Share {
    /// The processor where the work was done, and units per tick.
    fn speed(&self) -> (usize, f32) {
        let took = self.took.load(Ordering::Relaxed);
        (self.processor.load(Ordering::Relaxed), self.len as f32 / took as f32)
    }
}

impl Shares {
    pub fn range(&self, part: usize) -> Range<usize> {
        let share = &self.0[part];
        share.begin..share.begin + share.len
    }

    /// A part is done: where, and in how many ticks.
    pub fn done(&self, part: usize, processor: usize, ticks: u64) {
        self.0[part].took.store(ticks, Ordering::Relaxed);
        self.0[part].processor.store(processor, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: u64 = 0b11;

    fn lengths(shares: &Shares) -> Vec<usize> {
        (0..shares.0.len()).map(|i| shares.range(i).len()).collect()
    }

    /// Loops of `units` in which the participants compute at these speeds, in units per tick.
    fn after(rounds: usize, speeds: &[f64], units: usize) -> Speeds {
        let known = Speeds::new(speeds.len(), speeds.len());
        let members = (1 << speeds.len()) - 1;
        for _ in 0..rounds {
            let shares = known.cut(members, speeds.len(), units);
            for (i, speed) in speeds.iter().enumerate() {
                shares.done(i, i, (shares.range(i).len() as f64 / speed * 1e3) as u64);
            }
            known.learn(&shares);
        }
        known
    }

    #[test]
    fn ranges_cover_all_units_in_order_and_none_is_empty_or_twice_as_long_as_even_ones() {
        for parallelism in 1..9usize {
            let speeds: Vec<f64> = (0..parallelism).map(|i| if i % 3 == 0 { 4.0 } else { 0.5 }).collect();
            for known in [Speeds::new(parallelism, parallelism), after(40, &speeds, 1000)] {
                for units in parallelism..60 {
                    let shares = known.cut((1 << parallelism) - 1, parallelism, units);
                    let mut at = 0;
                    for i in 0..parallelism {
                        assert_eq!(shares.range(i).start, at);
                        at = shares.range(i).end;
                        assert!(
                            (1..=2 * units.div_ceil(parallelism)).contains(&shares.range(i).len()),
                            "{parallelism} {units}"
                        );
                    }
                    assert_eq!(at, units, "{parallelism} threads");
                }
            }
        }
    }

    #[test]
    fn who_is_twice_as_fast_gets_twice_as_much() {
        assert_eq!(lengths(&after(0, &[2.0, 1.0], 30).cut(BOTH, 2, 30)), [15, 15]);
        assert_eq!(lengths(&after(30, &[2.0, 1.0], 30).cut(BOTH, 2, 30)), [20, 10]);
        assert_eq!(lengths(&after(30, &[1.0, 1.5, 0.5], 300).cut(0b111, 3, 300)), [100, 150, 50]);
    }

    #[test]
    fn speeds_are_those_of_processors_whoever_is_there() {
        let known = after(30, &[2.0, 1.0], 30);
        known.seen(0, 1);
        known.seen(1, 0);
        assert_eq!(lengths(&known.cut(BOTH, 2, 30)), [10, 20]);
        known.seen(1, 1_000_000);
        assert_eq!(lengths(&known.cut(BOTH, 2, 30)), [12, 18], "nothing is known of that one");
    }

    #[test]
    fn equal_speeds_as_far_as_they_can_be_measured_give_even_parts() {
        assert_eq!(lengths(&after(30, &[1.03, 0.97], 1000).cut(BOTH, 2, 1000)), [500, 500]);
    }

    #[test]
    fn a_single_pause_changes_little_and_is_forgotten() {
        let known = after(30, &[1.0, 1.0], 100);
        let paused = known.cut(BOTH, 2, 100);
        paused.done(0, 0, 1000);
        paused.done(1, 1, 1_000_000);
        known.learn(&paused);
        assert!(known.cut(BOTH, 2, 100).range(0).len() <= 63);
        for _ in 0..20 {
            let usual = known.cut(BOTH, 2, 100);
            (0..2).for_each(|i| usual.done(i, i, usual.range(i).len() as u64 * 10));
            known.learn(&usual);
        }
        assert_eq!(lengths(&known.cut(BOTH, 2, 100)), [50, 50]);
    }

    #[test]
    fn nothing_is_learnt_from_one_who_did_it_all_or_from_no_time() {
        let known = after(30, &[2.0, 1.0], 30);
        for (processor, ticks) in [(0, 500), (1, 0)] {
            let shares = known.cut(BOTH, 2, 30);
            shares.done(0, 0, 1000 * ticks);
            shares.done(1, processor, ticks);
            known.learn(&shares);
        }
        assert_eq!(lengths(&known.cut(BOTH, 2, 30)), [20, 10]);
    }

    #[test]
    fn others_than_so_many_get_even_parts() {
        let known = after(30, &[2.0, 1.0], 30);
        assert_eq!(lengths(&known.cut(0b01, 2, 30)), [15, 15]);
        assert_eq!(lengths(&known.cut(BOTH, 3, 30)), [10, 10, 10]);
    }
}
