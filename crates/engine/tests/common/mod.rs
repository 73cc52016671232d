//! Helpers of the tests.
#![allow(dead_code)]

use mxrt_engine::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An engine of its own, so that failures of other tests are not seen.
pub fn start(kind: EngineKind, cores: usize) -> &'static Engine {
    // scripts/watch-test.sh asks a hanging test what its engines do.
    if std::env::var_os("MXRT_DEBUG").is_some() {
        dump_on_sigusr1().unwrap();
    }
    Engine::start(Config { kind, cores: Some(cores), ..Config::default() }).unwrap()
}

/// Fresh engines of every kind, with one and several cores.
pub fn every_kind() -> impl Iterator<Item = &'static Engine> {
    EngineKind::ALL.into_iter().flat_map(|kind| [1, 2, 4].map(|cores| start(kind, cores)))
}

/// Fresh engines of the kinds with a pool.
pub fn pooled_kinds() -> impl Iterator<Item = &'static Engine> {
    every_kind().filter(|e| e.kind() != EngineKind::Naive)
}

/// The message a wait raised, if it raised a failure.
pub fn raised(result: Result<(), WaitError>) -> Option<String> {
    match result {
        Ok(()) => None,
        Err(WaitError::Failed(f)) => Some(f.message().to_owned()),
        Err(other) => panic!("unexpected: {other:?}"),
    }
}

/// The kind of the failure a wait raised.
pub fn kind_of(result: Result<(), WaitError>) -> Option<FailureKind> {
    match result {
        Err(WaitError::Failed(f)) => Some(f.kind()),
        _ => None,
    }
}

/// The work of an op that counts that it ran.
pub fn adds(counter: &Arc<AtomicUsize>) -> impl FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static {
    let counter = counter.clone();
    move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Pushes an op that fails.
#[track_caller]
pub fn fail(engine: &'static Engine, var: &Var, message: &'static str) {
    engine.push(OpSpec::new("bad", &[(var, Access::Write)]), move |_| Err(error(message)));
}

/// Pushes an op that succeeds.
#[track_caller]
pub fn succeed(engine: &'static Engine, vars: &[(&Var, Access)]) {
    engine.push(OpSpec::new("good", vars), |_| Ok(()));
}

/// The message that a wait for the variable raises, if it raises.
pub fn message_of(engine: &'static Engine, var: &Var) -> Option<String> {
    raised(engine.wait_to_read(var))
}

/// The messages that `wait_all` raised, sorted.
pub fn messages(result: Result<(), WaitError>) -> Vec<String> {
    match result {
        Ok(()) => vec![],
        Err(WaitError::Failures(list, 0)) => {
            let mut list: Vec<String> = list.iter().map(|f| f.message().to_owned()).collect();
            list.sort();
            list
        }
        Err(other) => panic!("unexpected: {other:?}"),
    }
}

/// An error with this message.
pub fn error(message: &str) -> OpError {
    OpError::new(FailureKind::Operator, message)
}

/// Ends the process if a test takes ten times `seconds`, so that it must be hanging: a busy machine
/// makes tests slow.
pub fn watchdog(seconds: u64) -> Watchdog {
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = done.clone();
    let name = std::thread::current().name().unwrap_or("?").to_owned();
    std::thread::spawn(move || {
        for _ in 0..seconds * 100 {
            std::thread::sleep(std::time::Duration::from_millis(100));
            if seen.load(std::sync::atomic::Ordering::SeqCst) {
                return;
            }
        }
        eprintln!("HANG: {name} took more than {} s", seconds * 10);
        std::process::abort();
    });
    Watchdog(done)
}

pub struct Watchdog(std::sync::Arc<std::sync::atomic::AtomicBool>);

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}

/// A small random number generator: the same seed gives the same test.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}
