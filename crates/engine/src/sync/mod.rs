//! Locks and atomics of the engine. Everything that a concurrency model checks goes through this
//! module, so that a build with `--cfg loom` runs the production types under loom.
//!
//! The lock is spin-then-yield: sections are a few loads and stores, nothing allocates, blocks or
//! runs user code inside, and unlocking is one plain store, which allows the unlocked object to be
//! freed by another thread at once.

pub(crate) mod clock;

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

#[cfg(loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;

/// Shared ownership that models watch.
pub(crate) mod shared {
    #[cfg(loom)]
    pub(crate) use loom::sync::Arc;
    #[cfg(not(loom))]
    pub(crate) use std::sync::Arc;
}

use atomic::{AtomicU32, Ordering};

/// loom takes SeqCst accesses for acquire and release. Where the protocol needs their total order
/// between a locked instruction and a load, this gives it to the model; the real accesses are
/// SeqCst and need nothing.
#[inline(always)]
pub(crate) fn model_fence() {
    #[cfg(loom)]
    atomic::fence(atomic::Ordering::SeqCst);
}

/// Pauses before a lock or a participant of a split starts to give its core away.
const LOCK_PAUSES: u32 = 100;

#[cfg(not(loom))]
pub(crate) fn pause() {
    std::hint::spin_loop();
}
#[cfg(loom)]
pub(crate) fn pause() {
    loom::thread::yield_now();
}
#[cfg(not(loom))]
pub(crate) fn yield_now() {
    std::thread::yield_now();
}
#[cfg(loom)]
pub(crate) fn yield_now() {
    loom::thread::yield_now();
}

/// Spin-then-yield lock. The caller upholds that only the holder unlocks.
pub(crate) struct Lock(AtomicU32);

impl Lock {
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Lock(AtomicU32::new(0))
    }
    #[cfg(loom)]
    pub fn new() -> Self {
        Lock(AtomicU32::new(0))
    }

    #[inline(always)]
    pub fn lock(&self) {
        if self.0.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_slowly();
        }
    }

    #[cold]
    fn lock_slowly(&self) {
        let mut tries = 0u32;
        loop {
            while self.0.load(Ordering::Relaxed) != 0 {
                tries += 1;
                if tries < LOCK_PAUSES { pause() } else { yield_now() }
            }
            if self.0.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    #[inline(always)]
    pub fn unlock(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// A mutex over [`Lock`] for short sections. Never poisoned: nothing inside its sections panics.
pub(crate) struct Mutex<T> {
    lock: Lock,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives one thread at a time access to the value.
unsafe impl<T: Send> Sync for Mutex<T> {}
// SAFETY: moving the mutex moves the value.
unsafe impl<T: Send> Send for Mutex<T> {}

impl<T> Mutex<T> {
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        Mutex { lock: Lock::new(), value: UnsafeCell::new(value) }
    }
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        Mutex { lock: Lock::new(), value: UnsafeCell::new(value) }
    }

    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.lock.lock();
        MutexGuard(self)
    }

    /// Unlocks for a guard that was forgotten.
    ///
    /// # Safety
    /// This thread has locked the mutex and forgotten the guard.
    pub unsafe fn unlock_forgotten(&self) {
        self.lock.unlock();
    }

    /// The value, while the guard is forgotten.
    ///
    /// # Safety
    /// As for `unlock_forgotten`, which comes after the last use of the reference.
    #[cfg(not(loom))]
    pub unsafe fn peek_forgotten(&self) -> &T {
        // SAFETY: contract.
        unsafe { &*self.value.get() }
    }
}

pub(crate) struct MutexGuard<'a, T>(&'a Mutex<T>);

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard exists only while this thread holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists only while this thread holds the lock.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.lock.unlock();
    }
}

/// A random delay between two steps of a protocol, if a test asked for it: widens the windows of
/// races.
#[inline(always)]
pub(crate) fn perturb() {
    #[cfg(all(debug_assertions, not(loom)))]
    crate::testing::maybe_delay();
}

/// Locks of statics: with the standard library's atomics in every build, because loom's cannot be
/// made in a constant.
pub(crate) mod global {
    #[cfg(not(loom))]
    pub(crate) use super::Mutex;

    #[cfg(loom)]
    pub(crate) struct Mutex<T>(std::sync::Mutex<T>);
    #[cfg(loom)]
    impl<T> Mutex<T> {
        pub const fn new(value: T) -> Self {
            Mutex(std::sync::Mutex::new(value))
        }
        pub fn lock(&self) -> std::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(|e| e.into_inner())
        }
        pub unsafe fn unlock_forgotten(&self) {
            unreachable!("fork handlers are not installed under loom")
        }
        pub unsafe fn peek_forgotten(&self) -> &T {
            unreachable!("fork handlers are not installed under loom")
        }
    }
}
