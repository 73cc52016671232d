//! One thread for each device waits for events, so that threads of the program do not all ask the
//! driver, which has no wait with a time limit. It also gives back what may not be given back where
//! it is no longer needed: inside a function of the host that the driver calls.

use crate::errors::{NOT_READY, check};
use mxrt_engine::device::{Callback, DeviceError, ErrorClass, EventHandle, RecordingHandle, StreamHandle};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Pauses between two looks at the device, from the first on.
const SHORTEST: Duration = Duration::from_micros(5);
const LONGEST: Duration = Duration::from_micros(100);
/// Refusals of an answer, which may concern one call alone, before an event is given up.
const TRIES: u32 = 3;

/// The part of the driver that the thread needs.
pub(crate) trait Asked: Send + 'static {
    /// Called once, by the thread.
    fn begin(&self) {}
    /// The driver's answer for an event.
    fn query(&self, event: EventHandle) -> i32;
    /// Gives something back.
    fn release(&self, garbage: Garbage);
}

/// Resources that the thread releases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Garbage {
    Event(EventHandle),
    Memory(u64),
    /// Page-locked memory, by its address.
    Pinned(usize),
    Recording(RecordingHandle),
}

/// The work of the thread.
#[derive(Default)]
pub(crate) struct Completion {
    list: Mutex<List>,
}

#[derive(Default)]
struct List {
    /// The awaited events of each stream, the oldest first: if one is not complete, later ones are
    /// not, either.
    streams: HashMap<StreamHandle, BTreeMap<Key, Pending>>,
    garbage: Vec<Garbage>,
    next: u64,
    /// No work is added any more.
    ended: bool,
    /// The thread, if it waits for something to do. Threads do not wait in parking_lot: it has one table
    /// of all that do, in which a forked child finds those of its parent.
    idle: Option<Thread>,
}

impl List {
    fn wake(&mut self) {
        if let Some(thread) = self.idle.take() {
            thread.unpark();
        }
    }
}

/// Number of the record in its stream, and of the wait.
type Key = (u64, u64);

struct Pending {
    event: EventHandle,
    callback: Callback,
    errors: u32,
}

impl Pending {
    /// Counts an error of the driver; returns it if there is nothing more to wait for.
    fn refused(&mut self, code: i32) -> Option<DeviceError> {
        self.errors += 1;
        let hopeless = self.errors >= TRIES;
        check(code).err().filter(|error| hopeless || error.class == ErrorClass::Lost)
    }
}

type Finished = (Callback, Result<(), DeviceError>);

impl List {
    fn is_empty(&self) -> bool {
        self.garbage.is_empty() && self.streams.values().all(BTreeMap::is_empty)
    }

    /// Takes out what is complete or can never be known.
    fn finished(&mut self, asked: &impl Asked) -> Vec<Finished> {
        let mut done = Vec::new();
        let mut lost = None;
        for waits in self.streams.values_mut() {
            while let (None, Some(mut first)) = (&lost, waits.first_entry()) {
                match asked.query(first.get().event) {
                    NOT_READY => break,
                    0 => done.push((first.remove().callback, Ok(()))),
                    code => match first.get_mut().refused(code) {
                        Some(error) if error.class == ErrorClass::Lost => lost = Some(error),
                        // Other events have answers of their own.
                        Some(error) => done.push((first.remove().callback, Err(error))),
                        None => break,
                    },
                }
            }
        }
        if let Some(error) = lost {
            let rest = self.streams.values_mut().flat_map(std::mem::take);
            done.extend(rest.map(|(_, pending)| (pending.callback, Err(error.clone()))));
        }
        done
    }
}

/// The answer for a thread that waits.
type WaiterAnswer = Mutex<Option<Result<(), DeviceError>>>;

impl Completion {
    /// Starts the thread, which [`end`](Self::end) ends.
    pub fn start(asked: impl Asked) -> std::io::Result<Arc<Completion>> {
        let completion = Arc::new(Completion::default());
        let served = completion.clone();
        let started = mxrt_engine::start_thread("mxrt-cuda", move || served.serve(&asked));
        started.map(|_| completion).ok_or_else(|| std::io::ErrorKind::OutOfMemory.into())
    }

    /// Calls back when a record is complete; `seq`: its number in its stream.
    pub fn add(&self, stream: StreamHandle, seq: u64, event: EventHandle, callback: Callback) -> (StreamHandle, Key) {
        let mut list = self.list.lock();
        list.next += 1;
        let key = (seq, list.next);
        list.streams.entry(stream).or_default().insert(key, Pending { event, callback, errors: 0 });
        list.wake();
        (stream, key)
    }

    /// Waits until a record is complete, or for so long.
    pub fn wait(
        &self,
        stream: StreamHandle,
        seq: u64,
        event: EventHandle,
        patience: Duration,
    ) -> Result<bool, DeviceError> {
        let answer = Arc::new(WaiterAnswer::default());
        let (other, waiter) = (answer.clone(), std::thread::current());
        let callback = Box::new(move |result| {
            *other.lock() = Some(result);
            waiter.unpark();
        });
        let (stream, key) = self.add(stream, seq, event, callback);
        let until = Instant::now() + patience;
        loop {
            if let Some(result) = answer.lock().take() {
                return result.map(|()| true);
            }
            match until.saturating_duration_since(Instant::now()) {
                Duration::ZERO => break,
                left => std::thread::park_timeout(left),
            }
        }
        // The caller may give the event back after this: the thread must not look at it again.
        if let Some(waits) = self.list.lock().streams.get_mut(&stream) {
            waits.remove(&key);
        }
        match answer.lock().take() {
            Some(result) => result.map(|()| true),
            None => Ok(false),
        }
    }

    /// Gives something back later, in the thread.
    pub fn discard(&self, garbage: Garbage) {
        let mut list = self.list.lock();
        list.garbage.push(garbage);
        list.wake();
    }

    /// Ends the thread, when there is nothing left to do.
    pub fn end(&self) {
        let mut list = self.list.lock();
        list.ended = true;
        list.wake();
    }

    fn serve(&self, asked: &impl Asked) {
        asked.begin();
        let mut pause = SHORTEST;
        loop {
            let mut list = self.list.lock();
            while list.is_empty() {
                if list.ended {
                    return;
                }
                list.idle = Some(std::thread::current());
                drop(list);
                std::thread::park();
                list = self.list.lock();
                pause = SHORTEST;
            }
            let garbage = std::mem::take(&mut list.garbage);
            // Asked under the lock, so that no wait is given up meanwhile.
            let finished = list.finished(asked);
            drop(list);
            garbage.into_iter().for_each(|piece| asked.release(piece));
            if finished.is_empty() {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST);
            } else {
                pause = SHORTEST;
                finished.into_iter().for_each(|(callback, result)| callback(result));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI32, AtomicU64, Ordering::SeqCst};
    use std::sync::mpsc;

    const STREAM: StreamHandle = StreamHandle(7);
    const LONG: Duration = Duration::from_secs(30);

    /// A device that has done everything up to a number, and fails on demand.
    #[derive(Default)]
    struct FailingDevice {
        done: AtomicU64,
        error: AtomicI32,
        asked: AtomicU64,
        released: Mutex<Vec<Garbage>>,
    }

    impl Asked for Arc<FailingDevice> {
        fn query(&self, event: EventHandle) -> i32 {
            self.asked.fetch_add(1, SeqCst);
            match self.error.load(SeqCst) {
                0 if event.0 <= self.done.load(SeqCst) => 0,
                0 => NOT_READY,
                error => error,
            }
        }

        fn release(&self, garbage: Garbage) {
            self.released.lock().push(garbage);
        }
    }

    fn rig() -> (Arc<FailingDevice>, Arc<Completion>) {
        let device = Arc::new(FailingDevice::default());
        let completion = Completion::start(device.clone()).unwrap();
        (device, completion)
    }

    fn add(completion: &Completion, numbers: impl Iterator<Item = u64>) -> mpsc::Receiver<(u64, Option<i32>)> {
        let (send, receive) = mpsc::channel();
        for number in numbers {
            let send = send.clone();
            let callback = move |result: Result<(), DeviceError>| {
                send.send((number, result.err().map(|e| e.code))).unwrap();
            };
            completion.add(STREAM, number, EventHandle(number), Box::new(callback));
        }
        receive
    }

    #[test]
    fn events_are_announced_in_the_order_of_their_stream() {
        let (device, completion) = rig();
        let said = add(&completion, (1..=100).rev());
        device.done.store(60, SeqCst);
        let first: Vec<u64> = (0..60).map(|_| said.recv_timeout(LONG).unwrap().0).collect();
        assert_eq!(first, (1..=60).collect::<Vec<_>>());
        assert!(said.try_recv().is_err(), "the others are not complete");
        device.done.store(100, SeqCst);
        assert!((61..=100).all(|n| said.recv_timeout(LONG).unwrap() == (n, None)));
    }

    #[test]
    fn of_each_stream_only_the_oldest_event_is_asked_for() {
        let device = Arc::new(FailingDevice::default());
        let mut list = List::default();
        for number in 1..=960 {
            let callback: Callback = Box::new(|_| {});
            let pending = Pending { event: EventHandle(number), callback, errors: 0 };
            list.streams.entry(StreamHandle(number % 4)).or_default().insert((number, number), pending);
        }
        assert!(list.finished(&device).is_empty());
        assert_eq!(device.asked.load(SeqCst), 4);
    }

    #[test]
    fn a_lost_device_ends_all_waits_and_a_single_error_ends_none() {
        let (device, completion) = rig();
        let said = add(&completion, 1..=3);
        device.error.store(700, SeqCst);
        assert!((0..3).all(|_| said.recv_timeout(LONG).unwrap().1 == Some(700)));
        let mut list = List::default();
        let callback: Callback = Box::new(|_| {});
        let pending = Pending { event: EventHandle(1), callback, errors: 0 };
        list.streams.entry(STREAM).or_default().insert((1, 1), pending);
        device.error.store(1, SeqCst);
        assert!(list.finished(&device).is_empty() && list.finished(&device).is_empty());
        device.error.store(0, SeqCst);
        device.done.store(1, SeqCst);
        assert!(list.finished(&device).iter().all(|(_, result)| result.is_ok()) && list.is_empty());
    }

    #[test]
    fn an_event_that_the_driver_never_answers_for_is_given_up_alone() {
        let device = Arc::new(FailingDevice::default());
        let mut list = List::default();
        for (stream, number) in [(STREAM, 1), (StreamHandle(8), 2)] {
            let pending = Pending { event: EventHandle(number), callback: Box::new(|_| {}), errors: 0 };
            list.streams.entry(stream).or_default().insert((number, number), pending);
        }
        list.streams.get_mut(&STREAM).unwrap().first_entry().unwrap().get_mut().errors = TRIES - 1;
        device.error.store(907, SeqCst);
        let given_up = list.finished(&device);
        let errors: Vec<_> = given_up.iter().filter_map(|(_, result)| result.as_ref().err()).collect();
        assert!(matches!(errors[..], [error] if (error.class, error.code) == (ErrorClass::Recoverable, 907)));
        device.error.store(0, SeqCst);
        device.done.store(2, SeqCst);
        assert!(matches!(list.finished(&device)[..], [(_, Ok(()))]) && list.is_empty());
    }

    #[test]
    fn a_wait_that_was_given_up_is_not_asked_for_again() {
        let (device, completion) = rig();
        assert_eq!(completion.wait(STREAM, 1, EventHandle(1), Duration::from_millis(1)), Ok(false));
        assert!(completion.list.lock().is_empty());
        device.done.store(1, SeqCst);
        assert_eq!(completion.wait(STREAM, 1, EventHandle(1), LONG), Ok(true));
    }

    #[test]
    fn what_is_discarded_is_given_back_by_the_thread() {
        let (device, completion) = rig();
        completion.discard(Garbage::Pinned(4));
        completion.discard(Garbage::Event(EventHandle(1)));
        let said = add(&completion, 1..=1);
        device.done.store(1, SeqCst);
        said.recv_timeout(LONG).unwrap();
        assert_eq!(*device.released.lock(), [Garbage::Pinned(4), Garbage::Event(EventHandle(1))]);
    }
}
