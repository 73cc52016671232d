//! Batches of requests that wait while a model computes.
//!
//! A lone request runs at once and unchanged, unless a delay is set for which it waits for others.
//! Requests that arrive while it computes wait in the lane of their signature. When it has ended,
//! the waiting requests form the next batch, so batches grow with the load.
//!
//! If a batch fails, each of its members is computed again, alone and once, so that each gets its
//! own response or error.

mod lane;
mod local;
mod rows;

pub use local::LocalBatcher;
pub(crate) use rows::join;

use crate::background::{LONG_COPY, spawn};
use crate::holds::{Holds, Kept};
use crate::refusal::{Outcome, Refusal, no_memory};
use lane::{Lane, Member, padded};
use mxrt_engine::Engine;
use mxrt_graph::CallOptions;
use mxrt_tensor::NDArray;
use rows::RowType;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

/// Largest number of rows of a batch, unless the settings give another.
pub const USUAL_ROWS: usize = 16;

pub(crate) type BatchAnswer = Result<Vec<NDArray>, Refusal>;

/// Model whose calls can be joined.
pub(crate) trait Calls: Send + Sync + Sized + 'static {
    /// Returns the batcher that joins its calls; `None` if calls are not joined.
    fn batcher(&self) -> Option<&Batcher>;
    /// Returns the engine that runs it.
    fn engine(&self) -> &'static Engine;
    /// Calls it with arrays that fit it. `holds` is dropped when the call has ended.
    fn call(
        &self,
        inputs: Vec<NDArray>,
        options: CallOptions,
        holds: Holds,
    ) -> impl Future<Output = BatchAnswer> + Send;
    /// Returns the place of a call in the order of all calls. The lowest goes first.
    fn rank(&self, priority: i32) -> i64;
    /// Records how long a request waited before it was computed.
    fn waited(&self, _time: Duration) {}
    /// Records a successful call that joined this many rows of several requests.
    fn joined(&self, rows: usize);
}

/// Settings for joining calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joining {
    /// allowed numbers of rows of a batch, ascending; the last one is the largest
    pub sizes: Vec<usize>,
    /// time for which a lone request waits for others
    pub max_delay: Duration,
    /// whether requests of several rows are called alone, as their bits differ from those of single
    /// rows
    pub single_rows: bool,
}

impl Joining {
    /// Makes settings for batches of at most `max` rows. The sizes are powers of two, so that plans
    /// stay few.
    pub fn of_rows(max: usize) -> Joining {
        let powers = (0..usize::BITS).map(|power| 1 << power).take_while(|rows| *rows < max);
        Joining { sizes: powers.chain([max]).collect(), max_delay: Duration::ZERO, single_rows: false }
    }
}

/// A waiting request's inputs and options, and the channel for its response.
struct WaitingRequest {
    came: Instant,
    inputs: Vec<NDArray>,
    options: CallOptions,
    answer: oneshot::Sender<BatchAnswer>,
    holds: Holds,
}

/// Lanes of a model.
#[derive(Default)]
struct Lanes {
    busy: bool,
    arrivals: u64,
    lanes: HashMap<Vec<RowType>, Lane<WaitingRequest>>,
}

/// Joins the calls of a model.
pub(crate) struct Batcher {
    joining: Joining,
    state: Mutex<Lanes>,
    /// notified when a batch has become full
    full: Notify,
}

/// Permit to compute. The next batch starts when it is dropped.
struct ComputePermit<C: Calls> {
    calls: Arc<C>,
    /// runtime that starts the next batch; a thread of the engine may drop the permit
    runtime: Handle,
}

/// Permit of a lone request, with the things that the request holds.
struct Lone<C: Calls> {
    _turn: ComputePermit<C>,
    _holds: Holds,
}

impl<C: Calls> Kept for Lone<C> {}

/// Role of an arriving request.
enum Role {
    /// computes at once
    First(Vec<NDArray>, Holds),
    /// waits with others
    Waits(Joined),
    /// waits with others, and starts the batch when it is due
    Begins(Joined),
}

/// Waiting request, identified by its arrival number.
struct Joined {
    answered: oneshot::Receiver<BatchAnswer>,
    arrived: u64,
}

/// Removes a member from its lane when dropped, so that its inputs are freed if its client goes.
struct Leaves<'a> {
    batcher: &'a Batcher,
    arrived: u64,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        let mut state = self.batcher.state();
        let gone: Vec<_> = state.lanes.values_mut().filter_map(|lane| lane.leave(self.arrived)).collect();
        state.lanes.retain(|_, lane| !lane.is_empty());
        drop(state);
        // Freeing arrays takes long, so it happens after the lock is released.
        drop(gone);
    }
}

impl Batcher {
    pub(crate) fn new(joining: Joining) -> Batcher {
        Batcher { joining, state: Mutex::default(), full: Notify::new() }
    }

    /// Returns the number of rows of the largest batch.
    pub(crate) fn max(&self) -> usize {
        self.joining.sizes.last().copied().unwrap_or(1)
    }

    /// Returns the numbers of rows for which plans are needed.
    pub(crate) fn sizes(&self) -> &[usize] {
        &self.joining.sizes
    }

    fn state(&self) -> MutexGuard<'_, Lanes> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Estimates the time until a request that arrives now is answered, if each call takes `usual`.
    /// Returns `None` if no requests wait.
    pub(crate) fn estimate(&self, usual: Duration) -> Option<Duration> {
        let state = self.state();
        let rows: usize = state.lanes.values().map(Lane::rows).sum();
        let batches = u32::try_from(rows / self.max() + 2).unwrap_or(u32::MAX);
        (rows > 0).then(|| usual.saturating_mul(batches))
    }

    /// Returns whether some lane has enough rows for the largest batch.
    fn is_full(&self) -> bool {
        self.state().lanes.values().any(|lane| lane.rows() >= self.max())
    }

    /// Computes a request, alone or joined with others. The inputs fit the model.
    pub(crate) async fn call<C: Calls>(
        &self,
        calls: &Arc<C>,
        inputs: Vec<NDArray>,
        options: CallOptions,
        holds: Holds,
    ) -> BatchAnswer {
        let rows = rows::count(&inputs).filter(|rows| *rows == 1 || !self.joining.single_rows);
        let Some(rows) = rows else { return calls.call(inputs, options, holds).await };
        let joined = match self.place(inputs, rows, options, calls.rank(options.priority), holds) {
            Role::First(inputs, holds) => {
                let lone = Lone { _turn: ComputePermit::new(calls), _holds: holds };
                calls.waited(Duration::ZERO);
                return calls.call(inputs, options, Arc::new(lone)).await;
            }
            Role::Waits(joined) => joined,
            Role::Begins(joined) => {
                tokio::spawn(begin_late(ComputePermit::new(calls)));
                joined
            }
        };
        let _leaves = Leaves { batcher: self, arrived: joined.arrived };
        joined.answered.await.unwrap_or_else(|_| Err(Refusal::draining()))
    }

    fn place(&self, inputs: Vec<NDArray>, rows: usize, options: CallOptions, rank: i64, holds: Holds) -> Role {
        let mut state = self.state();
        let first = !state.busy;
        state.busy = true;
        if first && self.joining.max_delay.is_zero() {
            return Role::First(inputs, holds);
        }
        let (answer, answered) = oneshot::channel();
        let signature = inputs.iter().map(rows::of_row).collect();
        let (deadline, arrived) = (options.deadline, state.arrivals);
        state.arrivals += 1;
        let lane = state.lanes.entry(signature).or_insert_with(Lane::new);
        lane.join(Member {
            work: WaitingRequest { came: Instant::now(), inputs, options, answer, holds },
            rows,
            rank,
            deadline,
            arrived,
        });
        if lane.rows() >= self.max() {
            self.full.notify_waiters();
        }
        let joined = Joined { answered, arrived };
        if first { Role::Begins(joined) } else { Role::Waits(joined) }
    }

    /// Takes the next batch. Returns `None`, and marks the model as idle, if no requests wait.
    fn next(&self, now: Instant) -> Option<Vec<Member<WaitingRequest>>> {
        let mut state = self.state();
        loop {
            let Some(lane) = state.lanes.values_mut().min_by_key(|lane| lane.first()) else {
                state.busy = false;
                return None;
            };
            let taken = lane.take(now, self.max(), |work| work.answer.is_closed());
            state.lanes.retain(|_, lane| !lane.is_empty());
            for late in taken.late {
                // The client may have gone.
                let _ = late.work.answer.send(Err(Refusal::late()));
            }
            if !taken.batch.is_empty() {
                return Some(taken.batch);
            }
        }
    }
}

impl<C: Calls> ComputePermit<C> {
    fn new(calls: &Arc<C>) -> ComputePermit<C> {
        ComputePermit { calls: calls.clone(), runtime: Handle::current() }
    }
}

impl<C: Calls> Drop for ComputePermit<C> {
    fn drop(&mut self) {
        let Some(batcher) = self.calls.batcher() else { return };
        if let Some(batch) = batcher.next(Instant::now()) {
            let turn = ComputePermit { calls: self.calls.clone(), runtime: self.runtime.clone() };
            // If the server has ended, the runtime drops the task.
            self.runtime.spawn(run(turn, batch));
        }
    }
}

/// Starts a batch when it is full, or when its first member has waited for the whole delay.
async fn begin_late<C: Calls>(turn: ComputePermit<C>) {
    let Some(batcher) = turn.calls.batcher() else { return };
    let end = tokio::time::sleep(batcher.joining.max_delay);
    tokio::pin!(end);
    loop {
        let full = batcher.full.notified();
        tokio::pin!(full);
        full.as_mut().enable();
        if batcher.is_full() {
            return;
        }
        tokio::select! {
            () = full => {}
            () = end.as_mut() => return,
        }
    }
}

async fn run<C: Calls>(turn: ComputePermit<C>, batch: Vec<Member<WaitingRequest>>) {
    let calls = turn.calls.clone();
    batch.iter().for_each(|member| calls.waited(member.work.came.elapsed()));
    if batch.len() == 1 {
        for member in batch {
            alone(&*calls, member).await;
        }
        return;
    }
    let batch = Arc::new(batch);
    let answers = together(&calls, &batch).await;
    // The copies have ended, so nothing else holds the batch.
    let Some(batch) = Arc::into_inner(batch) else { return };
    match answers {
        Ok(answers) => {
            for (member, answer) in batch.into_iter().zip(answers) {
                let _ = member.work.answer.send(answer);
            }
        }
        Err(refusal) if matches!(refusal.outcome(), Outcome::Device | Outcome::Unavailable) => {
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

/// Computes one member alone, unless its client has gone or its deadline has passed.
async fn alone<C: Calls>(calls: &C, member: Member<WaitingRequest>) {
    let WaitingRequest { inputs, options, answer, holds, .. } = member.work;
    if answer.is_closed() {
        return;
    }
    let late = options.deadline.is_some_and(|deadline| deadline <= Instant::now());
    let result = if late { Err(Refusal::late()) } else { calls.call(inputs, options, holds).await };
    let _ = answer.send(result);
}

/// Computes all members in one call. Returns a response for each, or the failure of the call.
async fn together<C: Calls>(
    calls: &Arc<C>,
    batch: &Arc<Vec<Member<WaitingRequest>>>,
) -> Result<Vec<BatchAnswer>, Refusal> {
    let wanted: usize = batch.iter().map(|member| member.rows).sum();
    let all = padded(wanted, calls.batcher().map_or(&[], Batcher::sizes));
    let (engine, members) = (calls.engine(), batch.clone());
    let bytes: usize = batch.iter().flat_map(|member| &member.work.inputs).map(rows::bytes).sum();
    let joined = copied(bytes, move || joined(engine, &members, all)).await?;
    let priority = batch.iter().map(|member| member.work.options.priority).max().unwrap_or(0);
    let holds: Holds = Arc::new(());
    let results = calls.call(joined, CallOptions { priority, ..CallOptions::default() }, holds).await?;
    calls.joined(wanted);
    let members = batch.clone();
    let bytes = results.iter().map(|array| array.tensor_type().bytes()).sum();
    copied(bytes, move || Ok(cut(engine, &members, &results))).await
}

/// Copies at once, or in another thread if there is much to copy. Few batches are copied
/// concurrently, as each holds a permit.
async fn copied<T: Send + 'static>(
    bytes: usize,
    copy: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    if bytes <= LONG_COPY {
        return copy();
    }
    let copying = spawn(copy).map_err(|e| no_memory(e.asked))?;
    copying.await.unwrap_or_else(|error| Err(Refusal::failed(error.to_string())))
}

/// Joins the inputs of all members, padded to `rows` rows.
fn joined(engine: &'static Engine, batch: &[Member<WaitingRequest>], rows: usize) -> Result<Vec<NDArray>, Refusal> {
    let inputs = batch.first().map_or(0, |member| member.work.inputs.len());
    let input = |i| {
        let parts: Vec<&NDArray> = batch.iter().map(|member| &member.work.inputs[i]).collect();
        rows::join(engine, &parts, rows)
    };
    (0..inputs).map(input).collect::<Result<_, _>>().map_err(|error| Refusal::of_call(&error))
}

/// Divides the results among the members.
fn cut(engine: &'static Engine, batch: &[Member<WaitingRequest>], results: &[NDArray]) -> Vec<BatchAnswer> {
    let mut first = 0;
    let part = |member: &Member<WaitingRequest>| {
        let rows = first..first + member.rows;
        first = rows.end;
        if member.work.answer.is_closed() {
            return Ok(Vec::new());
        }
        let part = results.iter().map(|result| rows::cut(engine, result, rows.start, rows.len()));
        part.collect::<Result<_, _>>().map_err(|error| Refusal::of_call(&error))
    };
    batch.iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxrt_engine::Config;
    use mxrt_tensor::{Context, DType, Shape, TensorType};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    /// Calls that wait until they are let through.
    struct Gated {
        batcher: Batcher,
        begun: AtomicUsize,
        gate: Semaphore,
    }

    impl Calls for Gated {
        fn batcher(&self) -> Option<&Batcher> {
            Some(&self.batcher)
        }

        fn engine(&self) -> &'static Engine {
            engine()
        }

        async fn call(&self, inputs: Vec<NDArray>, _: CallOptions, holds: Holds) -> BatchAnswer {
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.gate.acquire().await.expect("it is open").forget();
            drop(holds);
            Ok(inputs)
        }

        fn rank(&self, _: i32) -> i64 {
            0
        }

        fn joined(&self, _: usize) {}
    }

    fn engine() -> &'static Engine {
        static ENGINE: std::sync::OnceLock<&'static Engine> = std::sync::OnceLock::new();
        ENGINE.get_or_init(|| Engine::start(Config::default()).expect("an engine"))
    }

    fn row() -> Vec<NDArray> {
        let tensor = TensorType::new(DType::F32, Shape::new(&[1, 4]));
        vec![NDArray::new(engine(), Context::cpu(0), tensor).expect("an array")]
    }

    fn gated(max_delay: Duration) -> Arc<Gated> {
        let joining = Joining { max_delay, ..Joining::of_rows(2) };
        Arc::new(Gated { batcher: Batcher::new(joining), begun: AtomicUsize::new(0), gate: Semaphore::new(0) })
    }

    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(test);
    }

    async fn until(what: impl Fn() -> bool) {
        while !what() {
            tokio::task::yield_now().await;
        }
    }

    /// Asks, in a task of its own.
    fn ask(calls: &Arc<Gated>, holds: &Holds) -> tokio::task::JoinHandle<BatchAnswer> {
        let (calls, holds) = (calls.clone(), holds.clone());
        tokio::spawn(async move { calls.batcher.call(&calls, row(), CallOptions::default(), holds).await })
    }

    fn waiting(calls: &Gated) -> usize {
        calls.batcher.state().lanes.values().map(Lane::rows).sum()
    }

    #[test]
    fn a_client_that_goes_takes_its_inputs_out_of_the_lane() {
        run(async {
            let calls = gated(Duration::ZERO);
            let holds: Holds = Arc::new(());
            let first = ask(&calls, &holds);
            until(|| calls.begun.load(Ordering::SeqCst) == 1).await;
            let others: Vec<_> = (0..9).map(|_| ask(&calls, &holds)).collect();
            until(|| waiting(&calls) == 9).await;
            others.iter().for_each(tokio::task::JoinHandle::abort);
            until(|| waiting(&calls) == 0).await;
            assert_eq!(Arc::strong_count(&holds), 2, "the first one computes");
            calls.gate.add_permits(1);
            first.await.expect("a task").expect("an answer");
            until(|| Arc::strong_count(&holds) == 1).await;
            assert!(!calls.batcher.state().busy);
        });
    }

    #[test]
    fn large_batches_are_copied_in_other_threads_than_those_of_connections() {
        run(async {
            let here = std::thread::current().id();
            for (bytes, is_here) in [(LONG_COPY, true), (LONG_COPY + 1, false)] {
                let thread = copied(bytes, || Ok(std::thread::current().id())).await;
                assert_eq!(thread.expect("a thread") == here, is_here, "{bytes} bytes");
            }
        });
    }

    #[test]
    fn a_lone_request_waits_for_others_after_a_full_batch_too() {
        run(async {
            let calls = gated(Duration::from_secs(3600));
            let holds: Holds = Arc::new(());
            let full: Vec<_> = (0..2).map(|_| ask(&calls, &holds)).collect();
            until(|| calls.begun.load(Ordering::SeqCst) == 1).await;
            // They become full while nobody waits for that.
            let behind: Vec<_> = (0..2).map(|_| ask(&calls, &holds)).collect();
            until(|| waiting(&calls) == 2).await;
            calls.gate.add_permits(2);
            for asked in full.into_iter().chain(behind) {
                asked.await.expect("a task").expect("an answer");
            }
            until(|| !calls.batcher.state().busy).await;
            let lone = ask(&calls, &holds);
            until(|| waiting(&calls) == 1).await;
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!((waiting(&calls), calls.begun.load(Ordering::SeqCst)), (1, 2), "it waits for another one");
            let other = ask(&calls, &holds);
            calls.gate.add_permits(1);
            lone.await.expect("a task").expect("an answer");
            other.await.expect("a task").expect("an answer");
        });
    }
}
