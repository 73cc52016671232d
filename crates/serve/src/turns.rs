//! Scheduling of calls. The engine gets a bounded number of calls at once. All others wait here.
//!
//! The model that has used least of its share goes first, where a share is the time of its calls
//! divided by its weight. The request of this model that arrived first goes first, but each level
//! of priority counts as some time of waiting. So a request of low priority waits longer, but is
//! never starved.

use crate::refusal::Refusal;
use std::cmp::Ordering as Order;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Divisor of the moving average of the time of calls: a new time counts one eighth.
const MEMORY: u32 = 8;
/// Number of waiting requests of a model among which no one looks for gone clients.
const FEW: usize = 64;

/// Scheduler of the calls of all models of a server.
pub(crate) struct Turns {
    /// number of calls that the engine gets concurrently
    slots: usize,
    /// waiting time that one level of priority is worth
    ageing: Duration,
    /// whether calls that would miss their deadlines, by recent times, are left out
    foresight: bool,
    began: Instant,
    state: Mutex<Waitlist>,
}

#[derive(Default)]
struct Waitlist {
    running: usize,
    next_share: u64,
    shares: BTreeMap<u64, ShareState>,
}

struct ShareState {
    weight: f64,
    /// number of calls of this model that may run concurrently
    limit: usize,
    running: usize,
    /// time of its calls in seconds, divided by the weight
    spent: f64,
    /// moving averages of the time of a call, and of its deviation
    usual: Duration,
    spread: Duration,
    waiting: BinaryHeap<Waiting>,
    /// number of waiting requests at which those whose clients have gone are removed
    prune_at: usize,
    arrivals: u64,
}

impl ShareState {
    /// Returns the number of waiting requests up to this rank, without those whose clients have
    /// gone.
    fn waiting_until(&self, rank: i64) -> usize {
        self.waiting.iter().filter(|waiting| waiting.rank <= rank && !waiting.turn.is_closed()).count()
    }

    /// Adds a waiting request. Those whose clients have gone are removed when they may be as many
    /// as the others.
    fn wait(&mut self, rank: i64, turn: oneshot::Sender<CallPermit>) {
        if self.waiting.len() >= self.prune_at {
            self.waiting.retain(|waiting| !waiting.turn.is_closed());
            self.prune_at = FEW + 2 * self.waiting.len();
        }
        self.waiting.push(Waiting { rank, arrived: self.arrivals, turn });
        self.arrivals += 1;
    }

    /// Charges the time for which a call held its permit.
    fn spend(&mut self, time: Duration) {
        self.spent += time.as_secs_f64() / self.weight;
    }

    /// Adds the time of a call that ran to its end to the averages.
    fn took(&mut self, time: Duration) {
        if self.usual.is_zero() {
            self.usual = time;
            return;
        }
        self.spread = self.spread - self.spread / MEMORY + time.abs_diff(self.usual) / MEMORY;
        self.usual = self.usual - self.usual / MEMORY + time / MEMORY;
    }
}

/// Waiting request. The greatest one goes first.
struct Waiting {
    rank: i64,
    arrived: u64,
    turn: oneshot::Sender<CallPermit>,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Order {
        (other.rank, other.arrived).cmp(&(self.rank, self.arrived))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other) == Order::Equal
    }
}

impl Eq for Waiting {}

/// Share of a model in the scheduler.
pub(crate) struct ModelShare {
    turns: Arc<Turns>,
    number: u64,
}

/// Permit to call a model, returned when it is dropped.
pub(crate) struct CallPermit {
    /// scheduler that counted it; none after it was returned, or if it was not counted
    turns: Option<Arc<Turns>>,
    number: u64,
    began: Instant,
    /// whether its call has run to its end; only such calls count in the averages
    ran: AtomicBool,
}

impl Turns {
    pub(crate) fn new(slots: usize, ageing: Duration, foresight: bool) -> Arc<Turns> {
        Arc::new(Turns { slots: slots.max(1), ageing, foresight, began: Instant::now(), state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, Waitlist> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a model with its weight and the number of calls that it may run concurrently.
    pub(crate) fn share(self: &Arc<Turns>, weight: f64, limit: Option<usize>) -> ModelShare {
        let mut state = self.state();
        let number = state.next_share;
        state.next_share += 1;
        let spent = state.least_spent();
        let limit = limit.unwrap_or(usize::MAX).max(1);
        let share = ShareState {
            weight: weight.max(f64::MIN_POSITIVE),
            limit,
            running: 0,
            spent,
            usual: Duration::ZERO,
            spread: Duration::ZERO,
            waiting: BinaryHeap::new(),
            prune_at: FEW,
            arrivals: 0,
        };
        state.shares.insert(number, share);
        drop(state);
        ModelShare { turns: self.clone(), number }
    }

    /// Returns the place of a request in the order of its model; the lowest goes first. A request
    /// of higher priority goes before requests that arrived up to some time earlier.
    pub(crate) fn rank(&self, priority: i32) -> i64 {
        let micros = |time: Duration| i64::try_from(time.as_micros()).unwrap_or(i64::MAX);
        micros(self.began.elapsed()).saturating_sub(i64::from(priority).saturating_mul(micros(self.ageing)))
    }

    /// Returns the number of waiting calls of all models.
    pub(crate) fn waiting(&self) -> usize {
        self.state().shares.values().map(|share| share.waiting_until(i64::MAX)).sum()
    }

    fn give(self: &Arc<Turns>, state: &mut Waitlist) {
        while let Some(number) = state.next(self.slots) {
            let Some(share) = state.shares.get_mut(&number) else { return };
            let Some(waiting) = share.waiting.pop() else { return };
            if waiting.turn.is_closed() {
                continue;
            }
            let turn = CallPermit::new(Some(self.clone()), number);
            match waiting.turn.send(turn) {
                Ok(()) => {
                    share.running += 1;
                    state.running += 1;
                }
                // The request has gone. Its permit must not be returned, as it was not counted.
                Err(mut turn) => turn.turns = None,
            }
        }
    }
}

impl Waitlist {
    /// Returns the least time that a model which computes or waits has spent; that of the model
    /// that spent most if none does.
    fn least_spent(&self) -> f64 {
        let busy = self.shares.values().filter(|share| share.running > 0 || !share.waiting.is_empty());
        let least = busy.map(|share| share.spent).min_by(f64::total_cmp);
        least.unwrap_or_else(|| self.shares.values().map(|share| share.spent).fold(0.0, f64::max))
    }

    /// Returns the model that may start its next call.
    fn next(&self, slots: usize) -> Option<u64> {
        if self.running >= slots {
            return None;
        }
        let may = |share: &ShareState| share.running < share.limit && !share.waiting.is_empty();
        let waiting = self.shares.iter().filter(|(_, share)| may(share));
        waiting.min_by(|a, b| a.1.spent.total_cmp(&b.1.spent)).map(|(number, _)| *number)
    }
}

impl ModelShare {
    /// Waits for a permit. Dropping the future gives the place up.
    pub(crate) async fn turn(&self, priority: i32) -> CallPermit {
        let waiting = {
            let mut state = self.turns.state();
            let least = state.least_spent();
            let (running, others) = (state.running, state.next(usize::MAX).is_some());
            let rank = self.turns.rank(priority);
            let share = state.shares.get_mut(&self.number);
            let Some(share) = share else { return self.uncounted() };
            if share.running == 0 && share.waiting.is_empty() {
                // A model saves no time up while it has no requests.
                share.spent = share.spent.max(least);
            }
            if running < self.turns.slots && !others && share.running < share.limit {
                share.running += 1;
                state.running += 1;
                return CallPermit::new(Some(self.turns.clone()), self.number);
            }
            let (turn, waiting) = oneshot::channel();
            share.wait(rank, turn);
            waiting
        };
        waiting.await.unwrap_or_else(|_| self.uncounted())
    }

    /// Returns the moving average of the time of a call.
    pub(crate) fn usual(&self) -> Duration {
        self.turns.state().shares.get(&self.number).map_or(Duration::ZERO, |share| share.usual)
    }

    /// Returns the place of a request in the order of its model, see [`Turns::rank`].
    pub(crate) fn rank(&self, priority: i32) -> i64 {
        self.turns.rank(priority)
    }

    /// Makes a permit that the scheduler does not count.
    fn uncounted(&self) -> CallPermit {
        CallPermit::new(None, self.number)
    }

    /// Estimates how long a request that arrives now takes, from recent times, so that few take
    /// longer. Returns `None` if no request waits before it, so that such requests run and update
    /// the averages.
    pub(crate) fn estimate(&self, priority: i32) -> Option<Duration> {
        let rank = self.turns.rank(priority);
        let state = self.turns.state();
        let mut ahead = Duration::ZERO;
        let mut waits = 0u32;
        for (number, share) in &state.shares {
            let before = match *number == self.number {
                true => share.waiting_until(rank),
                false => share.waiting_until(i64::MAX),
            };
            let before = u32::try_from(before).unwrap_or(u32::MAX);
            waits = waits.saturating_add(before);
            ahead = ahead.saturating_add(share.usual.saturating_mul(before));
        }
        let own = state.shares.get(&self.number)?;
        let slots = u32::try_from(self.turns.slots.min(own.limit)).unwrap_or(u32::MAX);
        // Calls may become slower while it waits, but rarely by more than a quarter.
        (waits > 0).then(|| ahead / slots * 5 / 4 + own.usual + 2 * own.spread)
    }
}

impl Drop for ModelShare {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        let Some(gone) = state.shares.remove(&self.number) else { return };
        state.running -= gone.running;
        self.turns.give(&mut state);
    }
}

impl CallPermit {
    fn new(turns: Option<Arc<Turns>>, number: u64) -> CallPermit {
        CallPermit { turns, number, began: Instant::now(), ran: AtomicBool::new(false) }
    }

    /// Returns the permit, unless its call would end after the deadline by recent times. The next
    /// request then gets it. If no request waits, the call is tried in any case.
    pub(crate) fn in_time(self, deadline: Option<Instant>) -> Result<CallPermit, Refusal> {
        if let (Some(turns), Some(deadline)) = (self.turns.as_ref().filter(|turns| turns.foresight), deadline) {
            let state = turns.state();
            if let Some(share) = state.shares.get(&self.number) {
                let late = self.began.checked_add(share.usual).is_none_or(|end| end > deadline);
                if late && share.waiting_until(i64::MAX) > 0 {
                    drop(state);
                    return Err(Refusal::late());
                }
            }
        }
        Ok(self)
    }

    /// Records that the call has run to its end.
    pub(crate) fn ran(&self) {
        self.ran.store(true, Ordering::Relaxed);
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let Some(turns) = self.turns.take() else { return };
        let mut state = turns.state();
        let took = self.began.elapsed();
        // If the model has gone, its running calls were subtracted with it.
        let Some(share) = state.shares.get_mut(&self.number) else { return };
        share.running -= 1;
        share.spend(took);
        if *self.ran.get_mut() {
            share.took(took);
        }
        state.running -= 1;
        turns.give(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    type Asked<'a> = Pin<Box<dyn Future<Output = CallPermit> + 'a>>;

    fn poll(asked: &mut Asked<'_>) -> Option<CallPermit> {
        match asked.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        }
    }

    fn ask(share: &ModelShare, priority: i32) -> (Asked<'_>, Option<CallPermit>) {
        let mut asked: Asked<'_> = Box::pin(share.turn(priority));
        let turn = poll(&mut asked);
        (asked, turn)
    }

    /// A call has run to its end.
    fn end(turn: Option<CallPermit>) {
        turn.expect("a turn").ran();
    }

    #[test]
    fn calls_that_are_given_up_say_nothing_of_how_long_calls_take() {
        let turns = Turns::new(1, Duration::ZERO, true);
        let share = turns.share(1.0, None);
        let running = ask(&share, 0).1;
        std::thread::sleep(Duration::from_millis(20));
        end(running);
        let usual = share.usual();
        for _ in 0..100 {
            drop(ask(&share, 0).1.expect("a turn"));
        }
        assert_eq!(share.usual(), usual);
        let _running = ask(&share, 0).1;
        let gone: Vec<_> = (0..9).map(|_| ask(&share, 0).0).collect();
        drop(gone);
        assert_eq!((share.estimate(0), turns.waiting()), (None, 0), "who has gone does not wait");
    }

    #[test]
    fn so_many_compute_at_a_time_and_the_rest_in_their_order() {
        let turns = Turns::new(2, Duration::from_secs(1000), true);
        let share = turns.share(1.0, None);
        let (first, second) = (ask(&share, 0).1, ask(&share, 0).1);
        assert!(first.is_some() && second.is_some());
        let mut asked: Vec<_> = [0, -1, 2, 0].into_iter().map(|priority| ask(&share, priority).0).collect();
        assert_eq!(turns.waiting(), 4);
        let mut order = Vec::new();
        let mut held = vec![first, second];
        while order.len() < 4 {
            drop(held.remove(0));
            for (number, asked) in
                asked.iter_mut().enumerate().filter(|(number, _)| !order.contains(number)).collect::<Vec<_>>()
            {
                if let Some(turn) = poll(asked) {
                    order.push(number);
                    held.push(Some(turn));
                }
            }
        }
        assert_eq!(order, [2, 0, 3, 1]);
    }

    #[test]
    fn a_level_of_priority_is_worth_a_time_of_waiting() {
        let turns = Turns::new(1, Duration::from_millis(20), true);
        let share = turns.share(1.0, None);
        let running = ask(&share, 0).1;
        let mut old = ask(&share, -1).0;
        std::thread::sleep(Duration::from_millis(60));
        let mut new = ask(&share, 1).0;
        drop(running);
        assert!(poll(&mut new).is_none());
        assert!(poll(&mut old).is_some(), "it has waited for longer than two levels are worth");
    }

    #[test]
    fn who_has_gone_takes_no_memory() {
        let turns = Turns::new(1, Duration::ZERO, true);
        let share = turns.share(1.0, None);
        let running = ask(&share, 0).1;
        let mut there = ask(&share, 0).0;
        (0..10 * FEW).for_each(|_| drop(ask(&share, 1)));
        let kept = turns.state().shares[&share.number].waiting.len();
        assert!(kept <= FEW + 2, "{kept}");
        drop(running);
        assert!(poll(&mut there).is_some(), "who waits still gets a turn");
    }

    #[test]
    fn who_gives_up_leaves_no_turn_behind() {
        let turns = Turns::new(1, Duration::ZERO, true);
        let share = turns.share(1.0, None);
        let running = ask(&share, 0).1;
        let (given_up, _) = ask(&share, 0);
        let (given_late, _) = ask(&share, 0);
        let mut last = ask(&share, 0).0;
        drop(given_up);
        drop(running);
        // It had its turn, and goes without looking at it.
        drop(given_late);
        assert!(poll(&mut last).is_some());
        assert_eq!(turns.state().running, 0, "the turn was dropped at once");
    }

    #[test]
    fn models_share_by_weight_and_keep_their_bounds() {
        let turns = Turns::new(1, Duration::ZERO, true);
        let (heavy, light) = (turns.share(3.0, None), turns.share(1.0, None));
        let mut running = ask(&heavy, 0).1;
        let mut asked: Vec<(usize, Asked<'_>)> = Vec::new();
        for _ in 0..40 {
            asked.push((0, ask(&heavy, 0).0));
            asked.push((1, ask(&light, 0).0));
        }
        let mut had = [0; 2];
        let mut current = heavy.number;
        while had[0] + had[1] < 40 {
            // An hour each, next to which the time that this loop takes is nothing.
            turns.state().shares.get_mut(&current).expect("a model").spend(Duration::from_secs(3600));
            drop(running.take());
            let place = asked.iter_mut().position(|(of, asked)| {
                running = poll(asked);
                if running.is_some() {
                    had[*of] += 1;
                    current = [heavy.number, light.number][*of];
                }
                running.is_some()
            });
            drop(asked.remove(place.expect("somebody's turn")));
        }
        // The first of a round of four is either's, as both have spent as much.
        assert!((29..=31).contains(&had[0]), "{had:?}");
        drop((running, asked));
        let bounded = turns.share(1.0, Some(1));
        let turns = Turns::new(8, Duration::ZERO, true);
        drop(bounded);
        let (bounded, free) = (turns.share(1.0, Some(1)), turns.share(1.0, None));
        let held = ask(&bounded, 0).1;
        let mut second = ask(&bounded, 0).0;
        assert!(held.is_some() && poll(&mut second).is_none());
        assert!(ask(&free, 0).1.is_some(), "others go on");
        drop(held);
        assert!(poll(&mut second).is_some());
    }

    #[test]
    fn estimates_follow_what_waits() {
        let turns = Turns::new(1, Duration::from_secs(1000), true);
        let share = turns.share(1.0, None);
        assert_eq!(share.estimate(0), None);
        let running = ask(&share, 0).1;
        std::thread::sleep(Duration::from_millis(20));
        end(running);
        let _running = ask(&share, 0).1;
        assert_eq!(share.estimate(0), None, "nobody waits");
        let _waiting: Vec<_> = (0..9).map(|_| ask(&share, 0).0).collect();
        assert!(share.estimate(0).is_some_and(|time| time >= Duration::from_millis(200)));
        assert_eq!(share.estimate(4), None, "it would go first");
    }

    #[test]
    fn a_turn_that_comes_too_late_goes_to_the_next() {
        let turns = Turns::new(1, Duration::ZERO, true);
        let share = turns.share(1.0, None);
        let running = ask(&share, 0).1;
        std::thread::sleep(Duration::from_millis(20));
        end(running);
        let usual = share.usual();
        let running = ask(&share, 0).1;
        let soon = Instant::now() + Duration::from_millis(5);
        let (mut first, mut second) = (ask(&share, 0).0, ask(&share, 0).0);
        drop(running);
        let late = poll(&mut first).expect("its turn").in_time(Some(soon));
        assert!(late.is_err());
        assert!(share.usual() < usual * 2 && share.usual() > usual / 2, "it was not measured");
        let last = poll(&mut second).expect("its turn").in_time(Some(soon));
        assert!(last.is_ok(), "nobody waits behind it");
    }

    #[test]
    fn a_model_that_goes_takes_its_calls_off() {
        let turns = Turns::new(1, Duration::ZERO, true);
        let (old, new) = (turns.share(1.0, None), turns.share(1.0, None));
        let running = ask(&old, 0).1;
        drop(old);
        assert!(ask(&new, 0).1.is_some());
        drop(running);
        assert_eq!(turns.state().running, 0);
    }
}
