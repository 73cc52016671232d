//! One background prefetcher for every data iterator.
//!
//! A prefetcher is a stage: threads run ahead of the consumer, take items from a producer in its
//! order, and work on them concurrently. Results, the end and errors wait in one bounded queue, in
//! the order of the items, so an error is received exactly at its position: after the results of
//! the items before it. A producer that takes its items from another prefetcher makes a chain of
//! stages.

use mxrt_engine::{ForkSafeMutex, StartedThread, start_thread};
use std::collections::VecDeque;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Threads wait here while the process forks, so locks are those of the standard library: parking_lot
/// has one table of all threads that wait, in which a child finds those of its parent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How often a waiting consumer looks whether it should give up.
const POLL: Duration = Duration::from_millis(50);

/// Makes items one after the other.
pub trait Producer: Send + 'static {
    /// The type of the items.
    type Item: Send + 'static;
    /// The error of a producer.
    type Error: Clone + Send + 'static;

    /// The next item, or `None` at the end of an epoch.
    fn next(&mut self) -> Result<Option<Self::Item>, Self::Error>;

    /// Begins an epoch. `delivered` is how many items of the last one reached the consumer, which
    /// is what counts for where the new one starts: how far the producer had run ahead is chance.
    fn reset(&mut self, delivered: u64) -> Result<(), Self::Error>;

    /// The error for something that the prefetcher itself notices.
    fn failure(problem: Problem) -> Self::Error;
}

/// Problems that the prefetcher itself may report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The producer panicked with this message.
    Panicked(String),
    /// No thread could be started.
    NoThread,
    /// This process is a fork of the one that was iterating.
    Forked,
    /// The consumer abandoned the wait; nothing is lost, and the next call continues.
    Interrupted,
}

impl Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Panicked(message) => write!(f, "the data iterator panicked: {message}"),
            Problem::NoThread => f.write_str(
                "the thread of the data iterator could not be started: the system has no thread or \
                 no memory for it",
            ),
            Problem::Forked => f.write_str(
                "this process was forked while the data iterator was running: call reset() to \
                 begin a new epoch here",
            ),
            Problem::Interrupted => f.write_str("waiting for the data iterator was interrupted"),
        }
    }
}

/// An event that the consumer may receive.
enum Event<T, E> {
    Item(T),
    Stop(Stop<E>),
}

/// The reason why there are no more items until the next reset.
enum Stop<E> {
    End,
    Failed(E),
}

impl<E: Clone> Stop<E> {
    fn answer<T>(&self) -> Result<Option<T>, E> {
        match self {
            Stop::End => Ok(None),
            Stop::Failed(error) => Err(error.clone()),
        }
    }
}

struct State<T, E> {
    /// Events that the consumer has not taken yet, in the order of the producer's items. A place
    /// without an event belongs to an item on which a worker works.
    queue: VecDeque<Option<Event<T, E>>>,
    /// Counts resets: what an earlier epoch still produces is thrown away.
    epoch: u64,
    /// Resets the producer has not done yet, each with the number of items delivered before it.
    resets: Vec<u64>,
    /// Items delivered in this epoch; the number of the item at the front of the queue.
    delivered: u64,
    /// The producer has nothing more to do in this epoch.
    stopped: bool,
    /// The consumer has received this.
    seen: Option<Stop<E>>,
    closing: bool,
}

struct SharedQueue<T, E> {
    state: Mutex<State<T, E>>,
    /// Something was put into the queue.
    filled: Condvar,
    /// There is room in the queue, or a reset or the end to see to.
    wanted: Condvar,
    capacity: usize,
}

/// The workers and their queue; replaced after a fork, which takes only the calling thread along.
struct Running<T, E> {
    shared: Arc<SharedQueue<T, E>>,
    threads: Vec<StartedThread>,
    process: u32,
}

/// The work on an item.
type Work<P, T> = dyn Fn(<P as Producer>::Item) -> Result<T, <P as Producer>::Error> + Send + Sync;

/// State that the workers of a stage share: one worker at a time takes an item from the producer.
struct StageState<P: Producer, T> {
    producer: Mutex<P>,
    work: Arc<Work<P, T>>,
    shared: Arc<SharedQueue<T, P::Error>>,
}

/// Runs a [`Producer`] ahead, and work on its items, in threads of its own. Any number of threads
/// may call [`Prefetcher::next`].
pub struct Prefetcher<P: Producer, T = <P as Producer>::Item> {
    make: Box<dyn Fn() -> Result<P, P::Error> + Send + Sync>,
    work: Arc<Work<P, T>>,
    workers: usize,
    capacity: usize,
    running: ForkSafeMutex<Running<T, P::Error>>,
}

impl<P: Producer> Prefetcher<P> {
    /// Starts producing in one thread; at most `capacity` items wait to be taken. `make` makes the
    /// producer, once now and once more in every forked process that continues iterating.
    pub fn start(
        capacity: usize,
        make: impl Fn() -> Result<P, P::Error> + Send + Sync + 'static,
    ) -> Result<Prefetcher<P>, P::Error> {
        Prefetcher::with_workers(1, capacity, make, Ok)
    }
}

impl<P: Producer, T: Send + 'static> Prefetcher<P, T> {
    /// Starts a prefetcher, like [`Prefetcher::start`], with `workers` threads that do `work` on
    /// the items. The results come in the order of the items. At most `capacity` of them wait or
    /// are being made; there is always room for one of each worker.
    pub fn with_workers(
        workers: usize,
        capacity: usize,
        make: impl Fn() -> Result<P, P::Error> + Send + Sync + 'static,
        work: impl Fn(P::Item) -> Result<T, P::Error> + Send + Sync + 'static,
    ) -> Result<Prefetcher<P, T>, P::Error> {
        let workers = workers.max(1);
        let capacity = capacity.max(workers);
        let work: Arc<Work<P, T>> = Arc::new(work);
        let running = ForkSafeMutex::new(Running::start(make()?, work.clone(), workers, capacity)?);
        Ok(Prefetcher { make: Box::new(make), work, workers, capacity, running })
    }

    /// The next item, or `None` at the end of the epoch. After an error every call gives the same
    /// error until [`Prefetcher::reset`].
    pub fn next(&self) -> Result<Option<T>, P::Error> {
        self.next_with(&mut || true)
    }

    /// Returns the next item, like [`Prefetcher::next`]. `poll` is called periodically while
    /// waiting; when it returns false the wait is abandoned with [`Problem::Interrupted`].
    pub fn next_with(&self, poll: &mut dyn FnMut() -> bool) -> Result<Option<T>, P::Error> {
        let shared = {
            let running = self.running.lock();
            if running.is_foreign() {
                return Err(P::failure(Problem::Forked));
            }
            running.shared.clone()
        };
        shared.take(poll, || P::failure(Problem::Interrupted))
    }

    /// Begins the next epoch, also after an error.
    pub fn reset(&self) -> Result<(), P::Error> {
        let mut running = self.running.lock();
        if running.is_foreign() {
            let fresh = Running::start((self.make)()?, self.work.clone(), self.workers, self.capacity)?;
            // Neither threads nor locks of the other process may be touched here.
            std::mem::forget(std::mem::replace(&mut *running, fresh));
            return Ok(());
        }
        running.shared.reset();
        Ok(())
    }
}

impl<T: Send + 'static, E: Clone + Send + 'static> Running<T, E> {
    fn start<P: Producer<Error = E>>(
        producer: P,
        work: Arc<Work<P, T>>,
        workers: usize,
        capacity: usize,
    ) -> Result<Running<T, E>, E> {
        let state = State {
            queue: VecDeque::new(),
            epoch: 0,
            resets: Vec::new(),
            delivered: 0,
            stopped: false,
            seen: None,
            closing: false,
        };
        let shared = Arc::new(SharedQueue {
            state: Mutex::new(state),
            filled: Condvar::new(),
            wanted: Condvar::new(),
            capacity,
        });
        let stage = Arc::new(StageState { producer: Mutex::new(producer), work, shared: shared.clone() });
        let mut running = Running { shared, threads: Vec::new(), process: std::process::id() };
        for _ in 0..workers {
            let stage = stage.clone();
            let thread = start_thread("mxrt-prefetch", move || stage.work());
            running.threads.push(thread.ok_or_else(|| P::failure(Problem::NoThread))?);
        }
        Ok(running)
    }
}

impl<T, E> Running<T, E> {
    fn is_foreign(&self) -> bool {
        self.process != std::process::id()
    }
}

impl<T, E> Drop for Running<T, E> {
    fn drop(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if self.is_foreign() {
            std::mem::forget(threads);
            return;
        }
        lock(&self.shared.state).closing = true;
        self.shared.wanted.notify_all();
        self.shared.filled.notify_all();
        // Threads that wait for a core would wait for this one's; they end by themselves.
        if mxrt_engine::holds_core() {
            return;
        }
        for thread in threads {
            thread.join();
        }
    }
}

impl<T, E: Clone> SharedQueue<T, E> {
    /// The consumer's side.
    fn take(&self, poll: &mut dyn FnMut() -> bool, interrupted: impl Fn() -> E) -> Result<Option<T>, E> {
        let mut state = lock(&self.state);
        loop {
            if let Some(stop) = &state.seen {
                return stop.answer();
            }
            if state.closing {
                return Ok(None);
            }
            match state.queue.front_mut().and_then(Option::take) {
                None => state = self.wait_for_event(state, poll).ok_or_else(&interrupted)?,
                Some(Event::Item(item)) => {
                    self.delivered(state);
                    return Ok(Some(item));
                }
                Some(Event::Stop(stop)) => {
                    let answer = stop.answer();
                    state.seen = Some(stop);
                    drop(state);
                    // Other consumers that wait get the same answer.
                    self.filled.notify_all();
                    return answer;
                }
            }
        }
    }

    /// Waits for an event, a while; `None` if the consumer should give up.
    fn wait_for_event<'a>(
        &'a self,
        state: MutexGuard<'a, State<T, E>>,
        poll: &mut dyn FnMut() -> bool,
    ) -> Option<MutexGuard<'a, State<T, E>>> {
        let (state, late) = self.filled.wait_timeout(state, POLL).unwrap_or_else(PoisonError::into_inner);
        if !late.timed_out() {
            return Some(state);
        }
        // The hook may run foreign code, which must not find the queue locked.
        drop(state);
        poll().then(|| lock(&self.state))
    }

    /// Removes the first event, whose item goes to the consumer.
    fn delivered(&self, mut state: MutexGuard<'_, State<T, E>>) {
        state.queue.pop_front();
        state.delivered += 1;
        // The next result may have been there before this one: another consumer that waits can have
        // it.
        let more = matches!(state.queue.front(), Some(Some(_)));
        drop(state);
        self.wanted.notify_one();
        if more {
            self.filled.notify_one();
        }
    }

    fn reset(&self) {
        let mut state = lock(&self.state);
        let unwanted = std::mem::take(&mut state.queue);
        state.epoch += 1;
        let delivered = std::mem::take(&mut state.delivered);
        state.resets.push(delivered);
        state.stopped = false;
        state.seen = None;
        drop(state);
        self.wanted.notify_one();
        drop(unwanted);
    }

    /// Waits until there is something to produce; `None` when the prefetcher is being dropped.
    fn next_task(&self) -> Option<(u64, Vec<u64>)> {
        let mut state = lock(&self.state);
        loop {
            if state.closing {
                return None;
            }
            if !state.resets.is_empty() || (!state.stopped && state.queue.len() < self.capacity) {
                return Some((state.epoch, std::mem::take(&mut state.resets)));
            }
            state = self.wanted.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A place at the end of the queue, and its number; `None` when the epoch is over. What stops
    /// the epoch is put there at once.
    fn place(&self, epoch: u64, stop: Option<Stop<E>>) -> Option<u64> {
        let mut state = lock(&self.state);
        if state.epoch != epoch {
            return None;
        }
        let number = state.delivered + state.queue.len() as u64;
        state.stopped |= stop.is_some();
        state.queue.push_back(stop.map(Event::Stop));
        drop(state);
        self.filled.notify_one();
        Some(number)
    }

    /// Puts what became of an item into its place.
    fn put(&self, epoch: u64, number: u64, event: Event<T, E>) {
        let mut state = lock(&self.state);
        if state.epoch != epoch {
            return;
        }
        state.stopped |= matches!(event, Event::Stop(_));
        let place = (number - state.delivered) as usize;
        state.queue[place] = Some(event);
        drop(state);
        if place == 0 {
            self.filled.notify_one();
        }
    }
}

impl<P: Producer, T: Send> StageState<P, T> {
    /// A worker's life.
    fn work(&self) {
        while let Some((epoch, number, item)) = self.take() {
            let event = match self.caught(|| (self.work)(item).map(Some)) {
                Ok(Some(result)) => Event::Item(result),
                Ok(None) => Event::Stop(Stop::End),
                Err(error) => Event::Stop(Stop::Failed(error)),
            };
            self.shared.put(epoch, number, event);
        }
    }

    /// The next item, with its epoch and its number there; `None` when the prefetcher is being
    /// dropped.
    fn take(&self) -> Option<(u64, u64, P::Item)> {
        let mut producer = lock(&self.producer);
        loop {
            let (epoch, resets) = self.shared.next_task()?;
            let made = self.caught(|| {
                for delivered in resets {
                    producer.reset(delivered)?;
                }
                producer.next()
            });
            let stop = match made {
                Ok(Some(item)) => match self.shared.place(epoch, None) {
                    Some(number) => return Some((epoch, number, item)),
                    None => continue,
                },
                Ok(None) => Stop::End,
                Err(error) => Stop::Failed(error),
            };
            self.shared.place(epoch, Some(stop));
        }
    }

    /// Returns the result of `work`; its panic is an error like any other.
    fn caught<R>(&self, work: impl FnOnce() -> Result<R, P::Error>) -> Result<R, P::Error> {
        catch_unwind(AssertUnwindSafe(work))
            .unwrap_or_else(|panic| Err(P::failure(Problem::Panicked(panic_message(&*panic)))))
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
