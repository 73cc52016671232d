//! The background prefetcher, seen by its consumer.

use mxrt_io::iterators::prefetch::{Prefetcher, Problem, Producer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Counts up to `end`, with something odd at `at`.
struct Counter {
    next: u32,
    end: u32,
    odd: Option<(u32, Odd)>,
    made: Arc<AtomicU32>,
}

#[derive(Clone, Copy)]
enum Odd {
    Fails,
    Panics,
    /// fails only in the first epoch
    FailsOnce,
}

impl Producer for Counter {
    type Item = u32;
    type Error = String;

    fn next(&mut self) -> Result<Option<u32>, String> {
        self.made.fetch_add(1, Ordering::Relaxed);
        match self.odd {
            Some((at, Odd::Fails)) if at == self.next => return Err(format!("item {at} is bad")),
            Some((at, Odd::Panics)) if at == self.next => panic!("item {at} is terrible"),
            Some((at, Odd::FailsOnce)) if at == self.next => {
                self.odd = None;
                return Err("just this once".to_owned());
            }
            _ => {}
        }
        self.next += 1;
        Ok((self.next <= self.end).then_some(self.next - 1))
    }

    fn reset(&mut self, _delivered: u64) -> Result<(), String> {
        self.next = 0;
        Ok(())
    }

    fn failure(problem: Problem) -> String {
        problem.to_string()
    }
}

fn counter(capacity: usize, end: u32, odd: Option<(u32, Odd)>) -> (Prefetcher<Counter>, Arc<AtomicU32>) {
    let made = Arc::new(AtomicU32::new(0));
    let theirs = made.clone();
    let make = move || Ok(Counter { next: 0, end, odd, made: theirs.clone() });
    (Prefetcher::start(capacity, make).expect("a prefetcher"), made)
}

#[test]
fn items_come_in_order_and_the_end_stays_the_end_until_reset() {
    let (prefetcher, _) = counter(2, 3, None);
    for _ in 0..2 {
        let epoch: Vec<_> = (0..5).map(|_| prefetcher.next()).collect();
        assert_eq!(epoch, [Ok(Some(0)), Ok(Some(1)), Ok(Some(2)), Ok(None), Ok(None)]);
        prefetcher.reset().expect("a reset");
    }
}

#[test]
fn an_error_comes_behind_the_items_before_it_and_stays_until_reset() {
    for capacity in [1, 4, 100] {
        let (prefetcher, _) = counter(capacity, 9, Some((3, Odd::FailsOnce)));
        let epoch: Vec<_> = (0..5).map(|_| prefetcher.next()).collect();
        let error = Err("just this once".to_owned());
        assert_eq!(epoch, [Ok(Some(0)), Ok(Some(1)), Ok(Some(2)), error.clone(), error]);
        prefetcher.reset().expect("a reset");
        assert_eq!((0..9).map(|_| prefetcher.next()).collect::<Result<Vec<_>, _>>().map(|v| v.len()), Ok(9));
        assert_eq!(prefetcher.next(), Ok(None));
    }
}

#[test]
fn a_panic_of_the_producer_is_an_error_like_any_other() {
    let (prefetcher, _) = counter(4, 9, Some((1, Odd::Panics)));
    assert_eq!(prefetcher.next(), Ok(Some(0)));
    assert_eq!(prefetcher.next(), Err("the data iterator panicked: item 1 is terrible".to_owned()));
    prefetcher.reset().expect("a reset");
    assert_eq!(prefetcher.next(), Ok(Some(0)));
}

/// Items that were made, some time after there were this many.
fn made_in_the_end(made: &AtomicU32, wanted: u32) -> u32 {
    let start = Instant::now();
    while made.load(Ordering::Relaxed) < wanted && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(Duration::from_millis(50));
    made.load(Ordering::Relaxed)
}

#[test]
fn no_more_is_made_ahead_than_the_queue_holds() {
    let (prefetcher, made) = counter(3, 1000, None);
    assert_eq!(prefetcher.next(), Ok(Some(0)));
    assert_eq!(made_in_the_end(&made, 4), 4);
}

#[test]
fn a_reset_in_the_middle_begins_again() {
    let (prefetcher, _) = counter(4, 1000, None);
    for taken in [0, 1, 7] {
        for i in 0..taken {
            assert_eq!(prefetcher.next(), Ok(Some(i)));
        }
        prefetcher.reset().expect("a reset");
    }
    assert_eq!(prefetcher.next(), Ok(Some(0)));
}

#[test]
fn each_item_goes_to_one_of_many_threads_and_the_error_to_all_of_them() {
    let (prefetcher, _) = counter(4, 10_000, Some((5000, Odd::Fails)));
    let taken: Vec<u32> = std::thread::scope(|scope| {
        let consume = || {
            let mut mine = Vec::new();
            loop {
                match prefetcher.next() {
                    Ok(Some(item)) => mine.push(item),
                    Ok(None) => panic!("the error was lost"),
                    Err(error) => {
                        assert_eq!(error, "item 5000 is bad");
                        return mine;
                    }
                }
            }
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(consume)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect()
    });
    let mut sorted = taken;
    sorted.sort_unstable();
    assert_eq!(sorted, (0..5000).collect::<Vec<_>>());
}

#[test]
fn dropping_does_not_wait_for_a_consumer() {
    let start = Instant::now();
    for capacity in [1, 4] {
        for taken in 0..4 {
            let (prefetcher, _) = counter(capacity, 1000, None);
            for _ in 0..taken {
                prefetcher.next().expect("an item");
            }
        }
    }
    assert!(start.elapsed() < Duration::from_secs(60));
}

/// Makes an item on request.
struct Slow(std::sync::mpsc::Receiver<u32>);

impl Producer for Slow {
    type Item = u32;
    type Error = Problem;
    fn next(&mut self) -> Result<Option<u32>, Problem> {
        Ok(self.0.recv().ok())
    }
    fn reset(&mut self, _delivered: u64) -> Result<(), Problem> {
        Ok(())
    }
    fn failure(problem: Problem) -> Problem {
        problem
    }
}

#[test]
fn a_wait_that_is_given_up_loses_nothing() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let once = std::sync::Mutex::new(Some(receiver));
    let make = move || Ok(Slow(once.lock().unwrap().take().expect("made once")));
    let prefetcher = Prefetcher::start(2, make).expect("a prefetcher");
    let mut polls = 0;
    let given_up = prefetcher.next_with(&mut || {
        polls += 1;
        polls < 2
    });
    assert_eq!((given_up, polls), (Err(Problem::Interrupted), 2));
    sender.send(7).unwrap();
    assert_eq!(prefetcher.next(), Ok(Some(7)));
    drop(sender);
    assert_eq!(prefetcher.next(), Ok(None));
}

/// Makes items that tell the epoch they were made in, each on request.
struct Gated {
    gate: std::sync::mpsc::Receiver<()>,
    epoch: u32,
}

impl Producer for Gated {
    type Item = u32;
    type Error = Problem;
    fn next(&mut self) -> Result<Option<u32>, Problem> {
        let epoch = self.epoch;
        self.gate.recv().expect("an open gate");
        Ok(Some(epoch))
    }
    fn reset(&mut self, _delivered: u64) -> Result<(), Problem> {
        self.epoch += 1;
        Ok(())
    }
    fn failure(problem: Problem) -> Problem {
        problem
    }
}

#[test]
fn what_was_in_the_making_when_an_epoch_ended_is_thrown_away() {
    let (gate, receiver) = std::sync::mpsc::channel();
    let once = std::sync::Mutex::new(Some(receiver));
    let make = move || Ok(Gated { gate: once.lock().unwrap().take().expect("made once"), epoch: 0 });
    let prefetcher = Prefetcher::start(1, make).expect("a prefetcher");
    gate.send(()).unwrap();
    gate.send(()).unwrap();
    assert_eq!(prefetcher.next(), Ok(Some(0)));
    assert_eq!(prefetcher.next(), Ok(Some(0)));
    // The third item is being made, and waits at the gate.
    std::thread::sleep(Duration::from_millis(50));
    prefetcher.reset().expect("a reset");
    for _ in 0..4 {
        gate.send(()).unwrap();
    }
    assert_eq!(prefetcher.next(), Ok(Some(1)));
}

/// A stage of workers over a counter. `work` runs in them.
fn stage<T: Send + 'static>(
    workers: usize,
    capacity: usize,
    end: u32,
    work: impl Fn(u32) -> Result<T, String> + Send + Sync + 'static,
) -> (Prefetcher<Counter, T>, Arc<AtomicU32>) {
    let made = Arc::new(AtomicU32::new(0));
    let theirs = made.clone();
    let make = move || Ok(Counter { next: 0, end, odd: None, made: theirs.clone() });
    (Prefetcher::with_workers(workers, capacity, make, work).expect("a stage"), made)
}

/// Threads of this process that prefetch.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a directory");
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "mxrt-prefetch").count()
}

#[test]
fn results_of_many_workers_come_in_the_order_of_the_items() {
    let (stage, _) = stage(4, 7, 200, |item| {
        // Every third item takes longer than those after it.
        std::thread::sleep(Duration::from_micros(if item % 3 == 0 { 700 } else { 50 }));
        Ok(item * 10)
    });
    for _ in 0..2 {
        let found: Vec<u32> = std::iter::from_fn(|| stage.next().expect("a result")).collect();
        assert_eq!(found, (0..200).map(|i| i * 10).collect::<Vec<_>>());
        stage.reset().expect("a reset");
    }
}

#[test]
fn a_failure_of_work_comes_in_its_place_though_later_items_are_done_sooner() {
    let (stage, _) = stage(4, 8, 100, |item| {
        if item == 5 {
            std::thread::sleep(Duration::from_millis(20));
            return Err("item 5 is bad".to_owned());
        }
        if item == 50 {
            panic!("never reached")
        }
        Ok(item)
    });
    for _ in 0..3 {
        let found: Vec<_> = (0..7).map(|_| stage.next()).collect();
        let good: Vec<_> = (0..5).map(|i| Ok(Some(i))).collect();
        assert_eq!(found[..5], good);
        assert_eq!(found[5..], vec![Err("item 5 is bad".to_owned()); 2]);
        stage.reset().expect("a reset");
    }
}

#[test]
fn workers_hold_back_while_the_queue_is_full() {
    let (stage, made) = stage(3, 5, 1000, Ok);
    assert_eq!(stage.next(), Ok(Some(0)));
    assert_eq!(made_in_the_end(&made, 6), 6);
}

#[test]
fn stages_can_be_chained_reset_and_dropped_at_any_moment() {
    struct Chained(Prefetcher<Counter, u32>);
    impl Producer for Chained {
        type Item = u32;
        type Error = String;
        fn next(&mut self) -> Result<Option<u32>, String> {
            self.0.next()
        }
        fn reset(&mut self, _delivered: u64) -> Result<(), String> {
            self.0.reset()
        }
        fn failure(problem: Problem) -> String {
            problem.to_string()
        }
    }
    let make = || {
        let first = Prefetcher::with_workers(
            2,
            3,
            || Ok(Counter { next: 0, end: 40, odd: None, made: Arc::default() }),
            |item| Ok(item + 1),
        )?;
        Ok(Chained(first))
    };
    for taken in 0..60 {
        let last = Prefetcher::with_workers(2, 2, make, |item| Ok(item * 2)).expect("a chain");
        for i in 0..taken.min(40) {
            assert_eq!(last.next(), Ok(Some((i + 1) * 2)));
        }
        if taken % 2 == 0 {
            last.reset().expect("a reset");
            assert_eq!(last.next(), Ok(Some(2)));
        }
        if taken % 5 == 0 {
            last.reset().expect("a reset");
            last.reset().expect("another");
        }
    }
}

#[test]
fn no_thread_is_left_of_a_thousand_stages() {
    for i in 0..1000 {
        let (stage, _) = stage(1 + i % 3, 2, 10, Ok);
        for _ in 0..i % 13 {
            stage.next().expect("a result");
        }
    }
    // Those of tests that run beside this one may be there.
    let start = Instant::now();
    while threads() > 0 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(threads(), 0);
}
