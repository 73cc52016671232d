//! Forking. Before a fork no thread may be inside the engine, so that no lock is held in the child
//! by a thread that does not exist there: running ops finish, queued ones stay queued, pushers wait
//! at the gate outside every lock. The child starts its workers when they are first needed; what
//! was queued runs there too.

use crate::config::EngineError;
use crate::engine::Engine;
use crate::process::slot::{self, FORKS_UNDER_WAY, GlobalMutex, REGISTRY};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

static ENGINES: GlobalMutex<Vec<&'static Engine>> = GlobalMutex::new(Vec::new());
static INSTALLED: std::sync::OnceLock<i32> = std::sync::OnceLock::new();
/// How long a fork waits for running ops, in milliseconds.
static PATIENCE: AtomicU64 = AtomicU64::new(30_000);
/// Forks between the first process and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// The last fork did not wait to the end: its child cannot use the engines.
static IMPATIENT: AtomicBool = AtomicBool::new(false);

/// Sets how long a fork waits for running ops; at first it is 30 seconds. After half of the time it
/// says on standard error which op it is waiting for. After all of it the fork takes place, and the
/// engines of the child are closed: results that were ready can be read there, nothing else.
pub fn set_fork_patience(time: Duration) {
    PATIENCE.store(u64::try_from(time.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

/// Differs in a forked child from what it was in the parent. A wait compares it after its poll
/// hook, which may fork.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Has forks wait at the gate; the code of an error, or 0.
fn install() -> i32 {
    #[cfg(not(miri))]
    // SAFETY: the handlers live as long as the process and follow the protocol of the gate.
    let code = *INSTALLED.get_or_init(|| unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork_parent), Some(after_fork_child))
    });
    #[cfg(miri)]
    let code = *INSTALLED.get_or_init(|| 0);
    code
}

/// Runs when the library is loaded: a fork next to the first call of another thread, before there
/// is an engine, waits too.
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        // An error is returned where an engine is started.
        install();
    }
    at_load
};

/// Makes forking safe for this engine.
pub(crate) fn register(engine: &'static Engine) -> Result<(), EngineError> {
    let code = install();
    if code != 0 {
        return Err(EngineError::ForkHandlers(code));
    }
    let slot = slot::current();
    slot.enter();
    ENGINES.lock().push(engine);
    slot.exit();
    Ok(())
}

/// The engines of the process.
pub(crate) fn engines() -> Vec<&'static Engine> {
    let slot = slot::current();
    slot.enter();
    let engines = ENGINES.lock().clone();
    slot.exit();
    engines
}

/// Waits until every other thread is outside the engine, and keeps them out.
unsafe extern "C" fn before_fork() {
    let own = slot::current();
    FORKS_UNDER_WAY.fetch_add(1, Ordering::SeqCst);
    let (began, patience) = (Instant::now(), Duration::from_millis(PATIENCE.load(Ordering::Relaxed)));
    let mut impatient = false;
    // Waiting without the registry: a thread that registers its thread needs it.
    let mut next = 0;
    while let Some(slot) = slot::nth(next) {
        next += 1;
        // A fork from inside an op must not wait for itself.
        if !std::ptr::eq(slot, own) {
            impatient |= !wait_outside(slot, began, patience);
        }
    }
    IMPATIENT.store(impatient, Ordering::Relaxed);
    // Leaves that are taken without the gate are held over the fork.
    std::mem::forget(REGISTRY.lock());
    let engines = ENGINES.lock();
    engines.iter().for_each(|e| std::mem::forget(e.all_counts.lock()));
    std::mem::forget(engines);
}

/// Waits until a thread is outside the engine; false: it took too long.
fn wait_outside(slot: &slot::Slot, began: Instant, patience: Duration) -> bool {
    let mut notified = false;
    let mut looks = 0u32;
    while slot.in_engine.load(Ordering::SeqCst) != 0 {
        looks += 1;
        if looks < 200 {
            std::thread::yield_now();
            continue;
        }
        std::thread::sleep(Duration::from_micros(100));
        let waited = began.elapsed();
        if !notified && waited >= patience / 2 {
            notified = true;
            eprintln!("mxrt: fork is waiting for {} to end", what_runs(slot));
        }
        if waited >= patience {
            let what = what_runs(slot);
            eprintln!(
                "mxrt: forking although {what} has not ended after {waited:.1?}: the child cannot \
                 compute with mxrt"
            );
            return false;
        }
    }
    true
}

fn what_runs(slot: &slot::Slot) -> String {
    match slot.running.look() {
        Some(op) => format!("operator {} in {}", op.name, slot.thread_name()),
        None => format!("a step of the engine in {}", slot.thread_name()),
    }
}

/// # Safety
/// This thread has run `before_fork`.
unsafe fn unlock_leaves() -> Vec<&'static Engine> {
    // SAFETY: contract: the guards were forgotten by this thread. The list is read while its lock
    // is still held.
    unsafe {
        REGISTRY.unlock_forgotten();
        let engines = ENGINES.peek_forgotten().clone();
        engines.iter().for_each(|e| e.all_counts.unlock_forgotten());
        ENGINES.unlock_forgotten();
        engines
    }
}

unsafe extern "C" fn after_fork_parent() {
    // No op was queued and no thread went to sleep meanwhile: both happen inside of the fork gate.
    // SAFETY: called after `before_fork` by the forking thread.
    _ = unsafe { unlock_leaves() };
    FORKS_UNDER_WAY.fetch_sub(1, Ordering::SeqCst);
}

unsafe extern "C" fn after_fork_child() {
    let own = slot::current();
    // A thread that stood at the gate may have been seen in the middle of a step; here it does not
    // exist. SAFETY: the registry is held over the fork by this thread.
    let slots = unsafe { REGISTRY.peek_forgotten() };
    for slot in slots.iter().filter(|s| !std::ptr::eq(**s, own)) {
        slot.in_engine.store(0, Ordering::SeqCst);
        slot.running.forget();
    }
    // SAFETY: called after `before_fork` by the forking thread.
    let engines = unsafe { unlock_leaves() };
    GENERATION.fetch_add(1, Ordering::Relaxed);
    FORKS_UNDER_WAY.store(0, Ordering::SeqCst);
    own.enter();
    for engine in engines {
        engine.sched.forget_workers(own.token(engine));
        engine.epochs.forget();
        engine.sched.quietly(|| {
            engine.waiters.forget_others(own.number);
            engine.forget_devices();
        });
        if IMPATIENT.load(Ordering::Relaxed) {
            engine.closed.store(true, Ordering::SeqCst);
        }
    }
    own.exit();
}
