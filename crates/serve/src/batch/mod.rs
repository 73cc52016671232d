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

use crate::background::LONG_COPY;
use crate::refusal::{Outcome, Refusal};
use lane::{Lane, Member, padded};
use mxrt_engine::Engine;
use mxrt_graph::CallOptions;
use mxrt_tensor::{NDArray, TensorType};
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};

/// Batches have at most so many rows if nothing is said.
pub const USUAL_ROWS: usize = 16;

pub(crate) type Answer = Result<Vec<NDArray>, Refusal>;

/// Things kept until a call has ended, also where nobody waits for it any more.
pub(crate) trait Kept: Send + Sync {
    /// The call has ended, well or not.
    fn ended(&self, _well: bool) {}
}

impl Kept for () {}

pub(crate) type Holds = Arc<dyn Kept>;

/// What calls are joined of.
pub(crate) trait Calls: Send + Sync + Sized + 'static {
    /// Joins its calls.
    fn batcher(&self) -> Option<&Batcher>;
    /// The engine that runs it.
    fn engine(&self) -> &'static Engine;
    /// Calls it with arrays that fit it. What is held is dropped when the call has ended.
    fn call(&self, inputs: Vec<NDArray>, options: CallOptions, holds: Holds) -> impl Future<Output = Answer> + Send;
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
    holds: Holds,
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
    /// a batch has become full
    full: Notify,
}

/// The right to compute. The next batch starts when it is dropped.
struct Turn<C: Calls> {
    calls: Arc<C>,
    /// it may be dropped by a thread of the engine
    runtime: Handle,
}

/// The turn of a lone request, with what the request holds.
struct Lone<C: Calls> {
    _turn: Turn<C>,
    _holds: Holds,
}

impl<C: Calls> Kept for Lone<C> {}

/// What one who comes does.
enum Place {
    /// computes at once
    First(Vec<NDArray>, Holds),
    /// waits with others
    Waits(Joined),
    /// waits with others, and begins the batch when it is time
    Begins(Joined),
}

/// One that waits, by its number.
struct Joined {
    answered: oneshot::Receiver<Answer>,
    arrived: u64,
}

/// Takes a member out of its lane when this is dropped: with its client its inputs go.
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
        // Arrays take their time to go.
        drop(gone);
    }
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

    /// Whether the largest batch waits.
    fn is_full(&self) -> bool {
        self.state().lanes.values().any(|lane| lane.rows() >= self.max())
    }

    /// Computes, alone or with others. The inputs fit the model.
    pub(crate) async fn call<C: Calls>(
        &self,
        calls: &Arc<C>,
        inputs: Vec<NDArray>,
        options: CallOptions,
        holds: Holds,
    ) -> Answer {
        let rows = rows::count(&inputs).filter(|rows| *rows == 1 || !self.joining.single_rows);
        let Some(rows) = rows else { return calls.call(inputs, options, holds).await };
        let joined = match self.place(inputs, rows, options, calls.rank(options.priority), holds) {
            Place::First(inputs, holds) => {
                let lone = Lone { _turn: Turn::new(calls), _holds: holds };
                calls.waited(Duration::ZERO);
                return calls.call(inputs, options, Arc::new(lone)).await;
            }
            Place::Waits(joined) => joined,
            Place::Begins(joined) => {
                tokio::spawn(begin_late(Turn::new(calls)));
                joined
            }
        };
        let _leaves = Leaves { batcher: self, arrived: joined.arrived };
        joined.answered.await.unwrap_or_else(|_| Err(Refusal::draining()))
    }

    fn place(&self, inputs: Vec<NDArray>, rows: usize, options: CallOptions, rank: i64, holds: Holds) -> Place {
        let mut state = self.state();
        let first = !state.busy;
        state.busy = true;
        if first && self.joining.max_delay.is_zero() {
            return Place::First(inputs, holds);
        }
        let (answer, answered) = oneshot::channel();
        let signature = inputs.iter().map(rows::of_row).collect();
        let (deadline, arrived) = (options.deadline, state.arrivals);
        state.arrivals += 1;
        let lane = state.lanes.entry(signature).or_insert_with(Lane::new);
        lane.join(Member {
            work: Work { came: Instant::now(), inputs, options, answer, holds },
            rows,
            rank,
            deadline,
            arrived,
        });
        if lane.rows() >= self.max() {
            self.full.notify_waiters();
        }
        let joined = Joined { answered, arrived };
        if first { Place::Begins(joined) } else { Place::Waits(joined) }
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

impl<C: Calls> Turn<C> {
    fn new(calls: &Arc<C>) -> Turn<C> {
        Turn { calls: calls.clone(), runtime: Handle::current() }
    }
}

impl<C: Calls> Drop for Turn<C> {
    fn drop(&mut self) {
        let Some(batcher) = self.calls.batcher() else { return };
        if let Some(batch) = batcher.next(Instant::now()) {
            let turn = Turn { calls: self.calls.clone(), runtime: self.runtime.clone() };
            // Where the server has ended, it is dropped there.
            self.runtime.spawn(run(turn, batch));
        }
    }
}

/// Begins a batch when it is full, or when the first of its members has waited for long enough.
async fn begin_late<C: Calls>(turn: Turn<C>) {
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

async fn run<C: Calls>(turn: Turn<C>, batch: Vec<Member<Work>>) {
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
    // Nothing else holds it when it has been joined and cut.
    let Some(batch) = Arc::into_inner(batch) else { return };
    match answers {
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
    let Work { inputs, options, answer, holds, .. } = member.work;
    if answer.is_closed() {
        return;
    }
    let late = options.deadline.is_some_and(|deadline| deadline <= Instant::now());
    let result = if late { Err(Refusal::late()) } else { calls.call(inputs, options, holds).await };
    let _ = answer.send(result);
}

/// All members in one call: an answer for each, or the failure of the whole.
async fn together<C: Calls>(calls: &Arc<C>, batch: &Arc<Vec<Member<Work>>>) -> Result<Vec<Answer>, Refusal> {
    let wanted: usize = batch.iter().map(|member| member.rows).sum();
    let all = padded(wanted, calls.batcher().map_or(&[], Batcher::sizes));
    let (engine, members) = (calls.engine(), batch.clone());
    let bytes: usize =
        batch.iter().flat_map(|member| &member.work.inputs).map(|array| array.tensor_type().bytes()).sum();
    let joined = copied(bytes, move || joined(engine, &members, all)).await?;
    let priority = batch.iter().map(|member| member.work.options.priority).max().unwrap_or(0);
    let holds: Holds = Arc::new(());
    let results = calls.call(joined, CallOptions { priority, ..CallOptions::default() }, holds).await?;
    calls.joined(wanted);
    let members = batch.clone();
    let bytes = results.iter().map(|array| array.tensor_type().bytes()).sum();
    copied(bytes, move || Ok(cut(engine, &members, &results))).await
}

/// Copies, elsewhere if it takes longer. Few batches are copied at a time, as each has a turn.
async fn copied<T: Send + 'static>(
    bytes: usize,
    copy: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    if bytes <= LONG_COPY {
        return copy();
    }
    tokio::task::spawn_blocking(copy).await.unwrap_or_else(|error| Err(Refusal::failed(error.to_string())))
}

/// The inputs of all members, one behind the other.
fn joined(engine: &'static Engine, batch: &[Member<Work>], rows: usize) -> Result<Vec<NDArray>, Refusal> {
    let inputs = batch.first().map_or(0, |member| member.work.inputs.len());
    let input = |i| {
        let parts: Vec<&NDArray> = batch.iter().map(|member| &member.work.inputs[i]).collect();
        rows::join(engine, &parts, rows)
    };
    (0..inputs).map(input).collect::<Result<_, _>>().map_err(|error| Refusal::of_call(&error))
}

/// What each member gets of the results.
fn cut(engine: &'static Engine, batch: &[Member<Work>], results: &[NDArray]) -> Vec<Answer> {
    let mut first = 0;
    let part = |member: &Member<Work>| {
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
    use mxrt_tensor::{Context, DType, Shape};
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

        async fn call(&self, inputs: Vec<NDArray>, _: CallOptions, holds: Holds) -> Answer {
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
    fn ask(calls: &Arc<Gated>, holds: &Holds) -> tokio::task::JoinHandle<Answer> {
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
