//! Locks for what lies above the engine: caches, registries, anything that several threads change.
//!
//! They are taken inside the fork gate. So a fork waits until no other thread holds one, and a
//! child finds them open and what they guard whole. A thread that holds one must not wait for an
//! op, nor for anything that another thread does outside of the fork gate, such as giving the
//! interpreter's lock back.

use crate::process::slot::{self, Slot};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

/// A stay inside the fork gate.
struct InsideForkGate {
    slot: &'static Slot,
    /// Keeps the guard in the thread that took the lock.
    _thread: PhantomData<*const ()>,
}

impl InsideForkGate {
    #[inline]
    fn enter() -> InsideForkGate {
        let slot = slot::current();
        slot.enter();
        InsideForkGate { slot, _thread: PhantomData }
    }
}

impl Drop for InsideForkGate {
    #[inline]
    fn drop(&mut self) {
        self.slot.exit();
    }
}

/// The value of a lock, while it is held. The lock is opened before the gate is left.
pub struct ForkSafeGuard<G> {
    guard: G,
    _inside: InsideForkGate,
}

impl<G: Deref> Deref for ForkSafeGuard<G> {
    type Target = G::Target;
    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for ForkSafeGuard<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

/// A mutex that no thread holds while the process forks. A panic of its holder does not poison it.
#[derive(Default, Debug)]
pub struct ForkSafeMutex<T>(std::sync::Mutex<T>);

impl<T> ForkSafeMutex<T> {
    /// An open mutex.
    pub const fn new(value: T) -> Self {
        ForkSafeMutex(std::sync::Mutex::new(value))
    }

    /// Waits until the mutex is open, and holds it.
    #[inline]
    pub fn lock(&self) -> ForkSafeGuard<std::sync::MutexGuard<'_, T>> {
        let inside = InsideForkGate::enter();
        ForkSafeGuard { guard: self.0.lock().unwrap_or_else(PoisonError::into_inner), _inside: inside }
    }
}

/// A value that is made at its first use, while the process does not fork. A child so never waits
/// for a thread that was making it in the parent. What makes it must keep to the rule of locks.
#[derive(Debug)]
pub struct ForkSafeOnce<T>(std::sync::OnceLock<T>);

impl<T> ForkSafeOnce<T> {
    /// A value that is not made yet.
    #[allow(clippy::new_without_default, reason = "statics need a constant")]
    pub const fn new() -> Self {
        ForkSafeOnce(std::sync::OnceLock::new())
    }

    /// The value, if it was made.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// The value, which is made if it was not yet.
    #[inline]
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        match self.0.get() {
            Some(value) => value,
            None => {
                let _inside = InsideForkGate::enter();
                self.0.get_or_init(make)
            }
        }
    }
}

/// A static value that is made at its first use, as a [`ForkSafeOnce`] is.
#[derive(Debug)]
pub struct ForkSafeLazy<T> {
    once: ForkSafeOnce<T>,
    make: fn() -> T,
}

impl<T> ForkSafeLazy<T> {
    /// A value that `make` makes when it is used.
    pub const fn new(make: fn() -> T) -> Self {
        ForkSafeLazy { once: ForkSafeOnce::new(), make }
    }
}

impl<T> Deref for ForkSafeLazy<T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.once.get_or_init(self.make)
    }
}

/// A lock for many readers or one writer that no thread holds while the process forks. A panic of
/// its holder does not poison it.
#[derive(Default, Debug)]
pub struct ForkSafeRwLock<T>(std::sync::RwLock<T>);

impl<T> ForkSafeRwLock<T> {
    /// An open lock.
    pub const fn new(value: T) -> Self {
        ForkSafeRwLock(std::sync::RwLock::new(value))
    }

    /// Waits until no thread writes, and reads. Not for a thread that holds the lock already.
    #[inline]
    pub fn read(&self) -> ForkSafeGuard<std::sync::RwLockReadGuard<'_, T>> {
        let inside = InsideForkGate::enter();
        ForkSafeGuard { guard: self.0.read().unwrap_or_else(PoisonError::into_inner), _inside: inside }
    }

    /// Waits until the lock is open, and writes.
    #[inline]
    pub fn write(&self) -> ForkSafeGuard<std::sync::RwLockWriteGuard<'_, T>> {
        let inside = InsideForkGate::enter();
        ForkSafeGuard { guard: self.0.write().unwrap_or_else(PoisonError::into_inner), _inside: inside }
    }
}
