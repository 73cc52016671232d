//! Ready queues: by device (or one set for all) and lane, FIFO in the order of becoming ready, with
//! separate queues for priorities.

use crate::op::block::{Chain, OpBlock, PLAIN};
use crate::op::spec::{DeviceId, Lane};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Order in which the lanes of a device are served.
const LANES: [Lane; 4] = [Lane::Priority, Lane::CopyIn, Lane::CopyOut, Lane::Normal];

fn index_of(lane: Lane) -> usize {
    match lane {
        Lane::Priority => 0,
        Lane::CopyIn => 1,
        Lane::CopyOut => 2,
        Lane::Normal => 3,
    }
}

/// All queues of an engine; guarded by the scheduler's lock.
pub(crate) struct Queues {
    per_device: bool,
    sets: Vec<Set>,
    /// Set to serve next.
    turn: usize,
    sequence: u64,
    len: usize,
    /// No queued op is late before this.
    soonest: Option<Instant>,
}

struct Set {
    device: DeviceId,
    lanes: [Queue; LANES.len()],
    len: usize,
}

struct Queue {
    plain: Chain,
    /// Ops with a priority other than 0.
    ranked: BinaryHeap<Ranked>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    priority: i32,
    sequence: Reverse<u64>,
    op: *mut OpBlock,
}

// SAFETY: queued ops belong to the queues, which are used under the scheduler's lock.
unsafe impl Send for Queues {}

impl Queues {
    pub fn new(per_device: bool) -> Self {
        Queues { per_device, sets: vec![Set::new(DeviceId::cpu(0))], turn: 0, sequence: 0, len: 0, soonest: None }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends ready ops, in order.
    ///
    /// # Safety
    /// The ops belong to the caller; they belong to the queues then.
    #[inline]
    pub unsafe fn push(&mut self, mut chain: Chain) {
        self.len += chain.len;
        if !chain.special {
            let set = &mut self.sets[0];
            set.len += chain.len;
            return set.lanes[index_of(Lane::Normal)].plain.append(&mut chain);
        }
        while let Some(op) = chain.take() {
            // SAFETY: contract.
            unsafe { self.push_one(op) };
        }
    }

    /// # Safety
    /// As for `push`.
    unsafe fn push_one(&mut self, op: *mut OpBlock) {
        // SAFETY: contract.
        let (device, lane, priority) = unsafe {
            let priority = if OpBlock::has(op, PLAIN) { 0 } else { (*op).priority };
            (OpBlock::place(op), OpBlock::lane(op), priority)
        };
        let known = self.sets.iter().position(|s| s.device == device);
        let set = if self.per_device {
            known.unwrap_or_else(|| {
                self.sets.push(Set::new(device));
                self.sets.len() - 1
            })
        } else {
            0
        };
        // SAFETY: contract.
        let deadline = unsafe { OpBlock::deadline(op) };
        self.soonest = earlier(self.soonest, deadline);
        let set = &mut self.sets[set];
        set.len += 1;
        let queue = &mut set.lanes[index_of(lane)];
        if priority == 0 {
            // SAFETY: contract.
            unsafe { queue.plain.add(op) };
        } else {
            self.sequence += 1;
            queue.ranked.push(Ranked { priority, sequence: Reverse(self.sequence), op });
        }
    }

    /// Names of some of the ops, by device and lane.
    pub fn names(&self, most: usize) -> Vec<String> {
        let mut names = Vec::new();
        for queue in self.sets.iter().flat_map(|set| &set.lanes) {
            let mut op = queue.plain.first;
            let ranked = queue.ranked.iter().map(|r| r.op);
            // SAFETY: queued ops belong to the queues.
            let plain = std::iter::from_fn(|| unsafe {
                let this = op;
                op = if op.is_null() { op } else { (*op).link };
                (!this.is_null()).then_some(this)
            });
            for op in ranked.chain(plain).take(most - names.len()) {
                // SAFETY: as above.
                names.push(unsafe { (*op).name.as_str().to_owned() });
            }
        }
        names
    }

    /// Takes out the ops whose deadline has passed.
    pub fn take_late(&mut self, now: impl Fn() -> Instant) -> Chain {
        let Some(soonest) = self.soonest else { return Chain::new() };
        let now = now();
        if now <= soonest {
            return Chain::new();
        }
        let mut next = None;
        let late = self.take_out(|op| {
            // SAFETY: queued ops belong to the queues.
            let deadline = unsafe { OpBlock::deadline(op) };
            let late = deadline.is_some_and(|deadline| now > deadline);
            if !late {
                next = earlier(next, deadline);
            }
            late
        });
        self.soonest = next;
        late
    }

    /// Takes out the ops for which `goes` says so, in about the order in which they would be
    /// served. It looks at all of them.
    pub fn take_out(&mut self, mut goes: impl FnMut(*mut OpBlock) -> bool) -> Chain {
        let mut gone = Chain::new();
        for set in &mut self.sets {
            let before = gone.len;
            set.lanes.iter_mut().for_each(|queue| queue.take_out(&mut goes, &mut gone));
            set.len -= gone.len - before;
        }
        self.len -= gone.len;
        gone
    }

    /// The set that is served next, if anything is queued.
    #[inline]
    fn next_set(&self) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let n = self.sets.len();
        (0..n).map(|k| (self.turn + k) % n).find(|&i| self.sets[i].len > 0)
    }

    /// The op that `pop` would return.
    pub fn peek(&self) -> Option<*mut OpBlock> {
        self.sets[self.next_set()?].lanes.iter().find_map(Queue::peek)
    }

    /// The next op: devices in turn, lanes in their order, then by priority, then first come first
    /// served.
    #[inline]
    pub fn pop(&mut self) -> Option<*mut OpBlock> {
        let turn = self.next_set()?;
        self.turn = (turn + 1) % self.sets.len();
        let set = &mut self.sets[turn];
        let op = set.lanes.iter_mut().find_map(Queue::pop)?;
        set.len -= 1;
        self.len -= 1;
        Some(op)
    }
}

impl Set {
    fn new(device: DeviceId) -> Self {
        let lanes = LANES.map(|_| Queue { plain: Chain::new(), ranked: BinaryHeap::new() });
        Set { device, lanes, len: 0 }
    }
}

/// The earlier of two times of which either may be missing.
fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}

impl Queue {
    fn take_out(&mut self, goes: &mut impl FnMut(*mut OpBlock) -> bool, gone: &mut Chain) {
        self.ranked.retain(|ranked| {
            let go = goes(ranked.op);
            if go {
                // SAFETY: queued ops are ready and belong to the queue.
                unsafe { gone.add(ranked.op) };
            }
            !go
        });
        let mut all = std::mem::replace(&mut self.plain, Chain::new());
        while let Some(op) = all.take() {
            // SAFETY: as above.
            unsafe { if goes(op) { gone.add(op) } else { self.plain.add(op) } };
        }
    }

    /// The op with a priority that comes before those without.
    fn first_ranked(&self) -> Option<&Ranked> {
        self.ranked.peek().filter(|best| best.priority > 0 || self.plain.len == 0)
    }

    fn peek(&self) -> Option<*mut OpBlock> {
        let plain = (self.plain.len > 0).then_some(self.plain.first);
        self.first_ranked().map(|ranked| ranked.op).or(plain)
    }

    #[inline]
    fn pop(&mut self) -> Option<*mut OpBlock> {
        if self.first_ranked().is_some() { self.ranked.pop().map(|r| r.op) } else { self.plain.take() }
    }
}
