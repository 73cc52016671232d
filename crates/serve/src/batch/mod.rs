//! Batches of requests that wait while a model computes.
//!
//! A lone request is called as it is, at once, unless a time is set for which it waits for others.
//! Those that come while it computes wait in a lane of their signature. When it has ended, what
//! waits is the next batch: load itself makes batches.
//!
//! A batch that fails is computed again, each member alone and once, so that everyone gets an own
//! answer or error.

mod lane;
mod local;
mod rows;

pub use local::LocalBatcher;

use crate::refusal::{Outcome, Refusal};
use lane::{Lane, Member, padded};
use mxrt_engine::Engine;
use mxrt_graph::CallOptions;
use mxrt_tensor::{NDArray, TensorType};
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot};

/// Batches have at most so many rows if nothing is said.
pub const USUAL_ROWS: usize = 16;

pub(crate) type Answer = Result<Vec<NDArray>, Refusal>;

/// What calls are joined of.
pub(crate) trait Calls: Send + Sync + Sized + 'static {
    /// Joins its calls.
    fn batcher(&self) -> Option<&Batcher>;
    /// The engine that runs it.
    fn engine(&self) -> &'static Engine;
    /// Calls it with arrays that fit it.
    fn call(&self, inputs: Vec<NDArray>, options: CallOptions) -> impl Future<Output = Answer> + Send;
    /// The place of a call in the order of all: less goes first.
    fn rank(&self, priority: i32) -> i64;
    /// A request waited so long before it was computed.
    fn waited(&self, _time: Duration) {}
    /// A call with so many rows of several requests gave results.
    fn joined(&self, rows: usize);
}

/// How calls are joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joining {
    /// rows of the batches, ascending; the last one is the largest
    pub sizes: Vec<usize>,
    /// how long a lone request waits for others
    pub max_delay: Duration,
    /// requests of several rows are called alone: their bits are not those of rows alone
    pub single_rows: bool,
}

impl Joining {
    /// Batches of at most so many rows, of powers of two, so that plans stay few.
    pub fn of_rows(max: usize) -> Joining {
        let powers = (0..usize::BITS).map(|power| 1 << power).take_while(|rows| *rows < max);
        Joining { sizes: powers.chain([max]).collect(), max_delay: Duration::ZERO, single_rows: false }
    }
}

/// What a member brings.
struct Work {
    came: Instant,
    inputs: Vec<NDArray>,
    options: CallOptions,
    answer: oneshot::Sender<Answer>,
}

/// The lanes of a model.
#[derive(Default)]
struct State {
    busy: bool,
    arrivals: u64,
    lanes: HashMap<Vec<TensorType>, Lane<Work>>,
}

/// Joins calls.
pub(crate) struct Batcher {
    joining: Joining,
    state: Mutex<State>,
    /// a batch is full while a lone request waits for others
    full: Notify,
}

/// The right to compute. The next batch starts when it is dropped.
struct Turn<C: Calls> {
    calls: Arc<C>,
}

/// What one who comes does.
enum Place {
    /// computes at once
    First(Vec<NDArray>),
    /// waits with others
    Waits(oneshot::Receiver<Answer>),
    /// waits with others, and begins the batch when it is time
    Begins(oneshot::Receiver<Answer>),
}

impl Batcher {
    pub(crate) fn new(joining: Joining) -> Batcher {
        Batcher { joining, state: Mutex::default(), full: Notify::new() }
    }

    /// Rows of the largest batch.
    pub(crate) fn max(&self) -> usize {
        self.joining.sizes.last().copied().unwrap_or(1)
    }

    /// Rows of the plans that it needs.
    pub(crate) fn sizes(&self) -> &[usize] {
        &self.joining.sizes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long one who comes now would take, if calls take so long; none where nobody waits.
    pub(crate) fn estimate(&self, usual: Duration) -> Option<Duration> {
        let state = self.state();
        let rows: usize = state.lanes.values().map(Lane::rows).sum();
        let batches = u32::try_from(rows / self.max() + 2).unwrap_or(u32::MAX);
        (rows > 0).then(|| usual.saturating_mul(batches))
    }

    /// Computes, alone or with others. The inputs fit the model.
    pub(crate) async fn call<C: Calls>(&self, calls: &Arc<C>, inputs: Vec<NDArray>, options: CallOptions) -> Answer {
        let rows = rows::count(&inputs).filter(|rows| *rows == 1 || !self.joining.single_rows);
        let Some(rows) = rows else { return calls.call(inputs, options).await };
        let answered = match self.place(inputs, rows, options, calls.rank(options.priority)) {
            Place::First(inputs) => {
                let _turn = Turn { calls: calls.clone() };
                calls.waited(Duration::ZERO);
                return calls.call(inputs, options).await;
            }
            Place::Waits(answered) => answered,
            Place::Begins(answered) => {
                tokio::spawn(begin_late(calls.clone()));
                answered
            }
        };
        answered.await.unwrap_or_else(|_| Err(Refusal::draining()))
    }

    fn place(&self, inputs: Vec<NDArray>, rows: usize, options: CallOptions, rank: i64) -> Place {
        let mut state = self.state();
        let first = !state.busy;
        state.busy = true;
        if first && self.joining.max_delay.is_zero() {
            return Place::First(inputs);
        }
        let (answer, answered) = oneshot::channel();
        let signature = inputs.iter().map(rows::of_row).collect();
        let (deadline, arrived) = (options.deadline, state.arrivals);
        state.arrivals += 1;
        let lane = state.lanes.entry(signature).or_insert_with(Lane::new);
        lane.join(Member {
            work: Work { came: Instant::now(), inputs, options, answer },
            rows,
            rank,
            deadline,
            arrived,
        });
        if lane.rows() >= self.max() {
            self.full.notify_one();
        }
        if first { Place::Begins(answered) } else { Place::Waits(answered) }
    }

    /// The next batch; none if nobody waits, and then nobody computes.
    fn next(&self, now: Instant) -> Option<Vec<Member<Work>>> {
        let mut state = self.state();
        loop {
            let Some(lane) = state.lanes.values_mut().min_by_key(|lane| lane.first()) else {
                state.busy = false;
                return None;
            };
            let taken = lane.take(now, self.max(), |work| work.answer.is_closed());
            state.lanes.retain(|_, lane| !lane.is_empty());
            for late in taken.late {
                // Its client may have gone.
                let _ = late.work.answer.send(Err(Refusal::late()));
            }
            if !taken.batch.is_empty() {
                return Some(taken.batch);
            }
        }
    }
}

impl<C: Calls> Drop for Turn<C> {
    fn drop(&mut self) {
        let Some(batcher) = self.calls.batcher() else { return };
        // Where there is no runtime the server has ended.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if let Some(batch) = batcher.next(Instant::now()) {
            runtime.spawn(run(self.calls.clone(), batch));
        }
    }
}

/// Begins a batch when it is full, or when the first of its members has waited for long enough.
async fn begin_late<C: Calls>(calls: Arc<C>) {
    let turn = Turn { calls: calls.clone() };
    if let Some(batcher) = calls.batcher() {
        tokio::select! {
            () = batcher.full.notified() => {}
            () = tokio::time::sleep(batcher.joining.max_delay) => {}
        }
    }
    drop(turn);
}

async fn run<C: Calls>(calls: Arc<C>, batch: Vec<Member<Work>>) {
    let turn = Turn { calls: calls.clone() };
    batch.iter().for_each(|member| calls.waited(member.work.came.elapsed()));
    if batch.len() == 1 {
        for member in batch {
            alone(&*calls, member).await;
        }
        return;
    }
    match together(&*calls, &batch).await {
        Ok(answers) => {
            for (member, answer) in batch.into_iter().zip(answers) {
                let _ = member.work.answer.send(answer);
            }
        }
        Err(refusal) if matches!(refusal.outcome, Outcome::Device | Outcome::Unavailable) => {
            for member in batch {
                let _ = member.work.answer.send(Err(refusal.clone()));
            }
        }
        Err(_) => {
            for member in batch {
                alone(&*calls, member).await;
            }
        }
    }
    drop(turn);
}

/// One member by itself. A member that is gone or late is not computed.
async fn alone<C: Calls>(calls: &C, member: Member<Work>) {
    let Work { inputs, options, answer, .. } = member.work;
    if answer.is_closed() {
        return;
    }
    let late = options.deadline.is_some_and(|deadline| deadline <= Instant::now());
    let result = if late { Err(Refusal::late()) } else { calls.call(inputs, options).await };
    let _ = answer.send(result);
}

/// All members in one call: an answer for each, or the failure of the whole.
async fn together<C: Calls>(calls: &C, batch: &[Member<Work>]) -> Result<Vec<Answer>, Refusal> {
    let engine = calls.engine();
    let wanted: usize = batch.iter().map(|member| member.rows).sum();
    let all = padded(wanted, calls.batcher().map_or(&[], Batcher::sizes));
    let inputs = batch.first().map_or(0, |member| member.work.inputs.len());
    let joined = (0..inputs).map(|i| {
        let parts: Vec<&NDArray> = batch.iter().map(|member| &member.work.inputs[i]).collect();
        rows::join(engine, &parts, all)
    });
    let joined = joined.collect::<Result<Vec<_>, _>>().map_err(|e| Refusal::of_call(&e))?;
    let priority = batch.iter().map(|member| member.work.options.priority).max().unwrap_or(0);
    let results = calls.call(joined, CallOptions { priority, ..CallOptions::default() }).await?;
    calls.joined(wanted);
    let mut first = 0;
    let mut answers = Vec::with_capacity(batch.len());
    for member in batch {
        let part = results.iter().map(|result| rows::cut(engine, result, first, member.rows));
        answers.push(part.collect::<Result<Vec<_>, _>>().map_err(|e| Refusal::of_call(&e)));
        first += member.rows;
    }
    Ok(answers)
}
