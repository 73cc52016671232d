//! One background prefetcher for every data iterator.
//!
//! A thread runs the producer ahead of the consumer. Items, the end and errors travel through one
//! bounded queue, so an error is received exactly where it belongs: behind the items that were
//! produced before it.

use mxrt_engine::ForkSafeMutex;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often a waiting consumer looks whether it should give up.
const POLL: Duration = Duration::from_millis(50);

/// Makes items one after the other.
pub trait Producer: Send + 'static {
    /// What is produced.
    type Item: Send + 'static;
    /// Why it could not be.
    type Error: Clone + Send + 'static;

    /// The next item, or `None` at the end of an epoch.
    fn next(&mut self) -> Result<Option<Self::Item>, Self::Error>;

    /// Begins an epoch. `delivered` is how many items of the last one reached the consumer, which
    /// is what counts for where the new one starts: how far the producer had run ahead is chance.
    fn reset(&mut self, delivered: u64) -> Result<(), Self::Error>;

    /// The error for something that the prefetcher itself notices.
    fn failure(problem: Problem) -> Self::Error;
}

/// What the prefetcher itself may report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The producer panicked with this message.
    Panicked(String),
    /// No thread could be started, for this reason.
    NoThread(String),
    /// This process is a fork of the one that was iterating.
    Forked,
    /// The consumer gave the wait up; nothing is lost, and the next call goes on.
    Interrupted,
}

impl Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Problem::Panicked(message) => write!(f, "the data iterator panicked: {message}"),
            Problem::NoThread(reason) => write!(f, "the thread of the data iterator could not be started: {reason}"),
            Problem::Forked => f.write_str(
                "this process was forked while the data iterator was running: call reset() to \
                 begin a new epoch here",
            ),
            Problem::Interrupted => f.write_str("waiting for the data iterator was interrupted"),
        }
    }
}

/// What the consumer may receive.
enum Event<P: Producer> {
    Item(P::Item),
    Stop(Stop<P>),
}

/// Why there are no more items until the next reset.
enum Stop<P: Producer> {
    End,
    Failed(P::Error),
}

impl<P: Producer> Stop<P> {
    fn answer(&self) -> Result<Option<P::Item>, P::Error> {
        match self {
            Stop::End => Ok(None),
            Stop::Failed(error) => Err(error.clone()),
        }
    }
}

struct State<P: Producer> {
    queue: VecDeque<Event<P>>,
    /// Counts resets: what an earlier epoch still produces is thrown away.
    epoch: u64,
    /// Resets the producer has not done yet, each with the number of items delivered before it.
    resets: Vec<u64>,
    delivered: u64,
    /// The producer has nothing more to do in this epoch.
    stopped: bool,
    /// The consumer has received this.
    seen: Option<Stop<P>>,
    closing: bool,
}

struct Shared<P: Producer> {
    state: Mutex<State<P>>,
    /// Something was put into the queue.
    filled: Condvar,
    /// There is room in the queue, or a reset or the end to see to.
    wanted: Condvar,
    capacity: usize,
}

/// A thread and its queue; replaced after a fork, which takes only the calling thread along.
struct Running<P: Producer> {
    shared: Arc<Shared<P>>,
    thread: Option<JoinHandle<()>>,
    process: u32,
}

/// Runs a [`Producer`] ahead in a thread of its own. Any number of threads may call
/// [`Prefetcher::next`].
pub struct Prefetcher<P: Producer> {
    make: Box<dyn Fn() -> Result<P, P::Error> + Send + Sync>,
    capacity: usize,
    running: ForkSafeMutex<Running<P>>,
}

impl<P: Producer> Prefetcher<P> {
    /// Starts producing; at most `capacity` items wait to be taken. `make` makes the producer, once
    /// now and once more in every forked process that goes on iterating.
    pub fn start(
        capacity: usize,
        make: impl Fn() -> Result<P, P::Error> + Send + Sync + 'static,
    ) -> Result<Prefetcher<P>, P::Error> {
        let capacity = capacity.max(1);
        let running = ForkSafeMutex::new(Running::start(make()?, capacity)?);
        Ok(Prefetcher { make: Box::new(make), capacity, running })
    }

    /// The next item, or `None` at the end of the epoch. After an error every call gives the same
    /// error until [`Prefetcher::reset`].
    pub fn next(&self) -> Result<Option<P::Item>, P::Error> {
        self.next_with(&mut || true)
    }

    /// As [`Prefetcher::next`]. `poll` is called now and then while waiting; when it returns false
    /// the wait is given up with [`Problem::Interrupted`].
    pub fn next_with(&self, poll: &mut dyn FnMut() -> bool) -> Result<Option<P::Item>, P::Error> {
        let shared = {
            let running = self.running.lock();
            if running.is_foreign() {
                return Err(P::failure(Problem::Forked));
            }
            running.shared.clone()
        };
        shared.take(poll)
    }

    /// Begins the next epoch; also the way out of an error.
    pub fn reset(&self) -> Result<(), P::Error> {
        let mut running = self.running.lock();
        if running.is_foreign() {
            let fresh = Running::start((self.make)()?, self.capacity)?;
            // Neither thread nor lock of the other process may be touched here.
            std::mem::forget(std::mem::replace(&mut *running, fresh));
            return Ok(());
        }
        running.shared.reset();
        Ok(())
    }
}

impl<P: Producer> Running<P> {
    fn start(producer: P, capacity: usize) -> Result<Running<P>, P::Error> {
        let state = State {
            queue: VecDeque::new(),
            epoch: 0,
            resets: Vec::new(),
            delivered: 0,
            stopped: false,
            seen: None,
            closing: false,
        };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), filled: Condvar::new(), wanted: Condvar::new(), capacity });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new()
            .name("mxrt-prefetch".to_owned())
            .spawn(move || theirs.produce(producer))
            .map_err(|error| P::failure(Problem::NoThread(error.to_string())))?;
        Ok(Running { shared, thread: Some(thread), process: std::process::id() })
    }

    fn is_foreign(&self) -> bool {
        self.process != std::process::id()
    }
}

impl<P: Producer> Drop for Running<P> {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if self.is_foreign() {
            std::mem::forget(thread);
            return;
        }
        self.shared.state.lock().closing = true;
        self.shared.wanted.notify_one();
        self.shared.filled.notify_all();
        // The thread catches panics of the producer, so there is nothing to learn from its result.
        let _ = thread.join();
    }
}

impl<P: Producer> Shared<P> {
    /// The consumer's side.
    fn take(&self, poll: &mut dyn FnMut() -> bool) -> Result<Option<P::Item>, P::Error> {
        let mut state = self.state.lock();
        loop {
            if let Some(stop) = &state.seen {
                return stop.answer();
            }
            if state.closing {
                return Ok(None);
            }
            match state.queue.pop_front() {
                None => {
                    let late = self.filled.wait_for(&mut state, POLL).timed_out();
                    // The hook may run foreign code, which must not find the queue locked.
                    if late && !MutexGuard::unlocked(&mut state, &mut *poll) {
                        return Err(P::failure(Problem::Interrupted));
                    }
                }
                Some(Event::Item(item)) => {
                    state.delivered += 1;
                    drop(state);
                    self.wanted.notify_one();
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

    fn reset(&self) {
        let mut state = self.state.lock();
        let unwanted = std::mem::take(&mut state.queue);
        state.epoch += 1;
        let delivered = std::mem::take(&mut state.delivered);
        // Nothing is delivered between resets that wait together, and two resets of an untouched
        // epoch are as good as one, so no more than two need remembering.
        if state.resets.len() < 2 {
            state.resets.push(delivered);
        }
        state.stopped = false;
        state.seen = None;
        drop(state);
        self.wanted.notify_one();
        drop(unwanted);
    }

    /// The thread's life.
    fn produce(&self, mut producer: P) {
        while let Some((epoch, resets)) = self.next_task() {
            let made = catch_unwind(AssertUnwindSafe(|| {
                for delivered in resets {
                    producer.reset(delivered)?;
                }
                producer.next()
            }));
            let event = match made {
                Ok(Ok(Some(item))) => Event::Item(item),
                Ok(Ok(None)) => Event::Stop(Stop::End),
                Ok(Err(error)) => Event::Stop(Stop::Failed(error)),
                Err(panic) => Event::Stop(Stop::Failed(P::failure(Problem::Panicked(panic_message(&*panic))))),
            };
            let mut state = self.state.lock();
            if state.epoch == epoch {
                state.stopped = matches!(event, Event::Stop(_));
                state.queue.push_back(event);
                drop(state);
                self.filled.notify_one();
            }
        }
    }

    /// Waits until there is something to produce; `None` when the prefetcher is being dropped.
    fn next_task(&self) -> Option<(u64, Vec<u64>)> {
        let mut state = self.state.lock();
        loop {
            if state.closing {
                return None;
            }
            if !state.resets.is_empty() || (!state.stopped && state.queue.len() < self.capacity) {
                return Some((state.epoch, std::mem::take(&mut state.resets)));
            }
            self.wanted.wait(&mut state);
        }
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
