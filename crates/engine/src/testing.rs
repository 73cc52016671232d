//! Hooks for the engine's own tests; they exist in builds with debug assertions only.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{OnceLock, RwLock};
use std::time::Duration;

static PERTURB: AtomicBool = AtomicBool::new(false);
/// Microseconds after which threads are refused, plus one; 0: they are not.
static REFUSE: AtomicU64 = AtomicU64::new(0);
static TRACING: AtomicBool = AtomicBool::new(false);
static TRACE: OnceLock<RwLock<Option<Trace>>> = OnceLock::new();

/// Gets the name of an op, the number of an access, and the version it met (a read) or made (a
/// write), at completion.
pub type Trace = Box<dyn Fn(&str, usize, u64) + Send + Sync>;

/// Switches random delays between the steps of the protocol on or off, in the whole process.
pub fn set_perturb(on: bool) {
    PERTURB.store(on, Ordering::SeqCst);
}

/// Makes the start of every worker fail, after this time, in the whole process; `None` ends that.
pub fn refuse_threads(after: Option<Duration>) {
    REFUSE.store(after.map_or(0, |time| time.as_micros() as u64 + 1), Ordering::SeqCst);
}

#[cfg(not(loom))]
pub(crate) fn refuses_threads() -> bool {
    let after = REFUSE.load(Ordering::SeqCst);
    if after > 0 {
        std::thread::sleep(Duration::from_micros(after - 1));
    }
    after > 0
}

/// Sets what is notified about completed accesses, in the whole process.
pub fn set_trace(trace: Option<Trace>) {
    TRACING.store(trace.is_some(), Ordering::SeqCst);
    if let Ok(mut place) = TRACE.get_or_init(RwLock::default).write() {
        *place = trace;
    }
}

pub(crate) fn trace(name: &str, access: usize, version: u64) {
    if TRACING.load(Ordering::Relaxed)
        && let Some(Ok(place)) = TRACE.get().map(RwLock::read)
        && let Some(trace) = &*place
    {
        trace(name, access, version);
    }
}

#[inline(always)]
pub(crate) fn maybe_delay() {
    if PERTURB.load(Ordering::Relaxed) {
        delay();
    }
}

#[cold]
fn delay() {
    thread_local!(static STATE: Cell<u64> = const { Cell::new(0) });
    let mut x = STATE.get();
    if x == 0 {
        x = (&raw const x).addr() as u64 | 1;
    }
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    STATE.set(x);
    match (x >> 33) & 31 {
        0 => std::thread::yield_now(),
        1..=3 => (0..(x >> 40) & 127).for_each(|_| std::hint::spin_loop()),
        _ => {}
    }
}
