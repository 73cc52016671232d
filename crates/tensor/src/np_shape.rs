//! The switch between MXNet's shapes and NumPy's, for this thread or the process.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

/// The threads whose shapes are NumPy's: `()` is a scalar and 0 an empty axis. In others both are
/// unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NpShapeScope {
    /// no thread
    Off,
    /// this thread
    Thread,
    /// all threads
    Process,
}

static PROCESS: AtomicBool = AtomicBool::new(false);

thread_local! {
    static THREAD: Cell<bool> = const { Cell::new(false) };
}

/// The threads whose shapes are NumPy's, as this thread sees it.
pub fn np_shape_scope() -> NpShapeScope {
    if PROCESS.load(Ordering::Relaxed) {
        return NpShapeScope::Process;
    }
    match THREAD.try_with(Cell::get) {
        Ok(true) => NpShapeScope::Thread,
        _ => NpShapeScope::Off,
    }
}

/// Whether shapes are NumPy's in this thread.
pub fn is_np_shape() -> bool {
    np_shape_scope() != NpShapeScope::Off
}

/// Sets where shapes are NumPy's. As in MXNet, this thread's switch leaves that of the process alone
/// but when both are turned off, and that of the process turns this thread's on as well.
pub fn set_np_shape_scope(scope: NpShapeScope) {
    match scope {
        NpShapeScope::Off => PROCESS.store(false, Ordering::Relaxed),
        NpShapeScope::Thread => {}
        NpShapeScope::Process => PROCESS.store(true, Ordering::Relaxed),
    }
    // A thread that ends has no shapes to read any more.
    let _ = THREAD.try_with(|here| here.set(scope != NpShapeScope::Off));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_does_not_see_the_switch_of_another() {
        set_np_shape_scope(NpShapeScope::Thread);
        assert!(is_np_shape());
        let other = std::thread::spawn(np_shape_scope).join();
        set_np_shape_scope(NpShapeScope::Off);
        assert_eq!(other.ok(), Some(NpShapeScope::Off));
        assert!(!is_np_shape());
    }
}
