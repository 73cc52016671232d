//! A bound of the cores that some ops use together.

use super::Team;
use crate::op::ctx::RunCtx;
use crate::process::slot;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A bound of the cores that the ops which name it ([`RunCtx::limit_cores`]) use together.
///
/// An op that begins takes its core in any case, so the number of such concurrent ops must not
/// exceed the bound. Helpers join only while there is room, and leave after their present chunk
/// when an op has taken their place.
#[derive(Debug)]
pub struct CoreLimit {
    most: usize,
    used: AtomicUsize,
}

impl CoreLimit {
    /// A bound of `most` cores, at least 1.
    pub fn new(most: usize) -> CoreLimit {
        CoreLimit { most: most.max(1), used: AtomicUsize::new(0) }
    }

    /// The bound.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Cores in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn has_room(&self) -> bool {
        self.used() < self.most
    }

    pub(crate) fn is_exceeded(&self) -> bool {
        self.used() > self.most
    }

    fn take(&self) {
        self.used.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn give_back(&self) {
        // A forked child has forgotten those who used it.
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| used.checked_sub(1));
    }
}

/// The bound of a run, if it has one.
#[derive(Default)]
pub(super) struct RunLimit(AtomicPtr<CoreLimit>);

impl RunLimit {
    pub(super) fn get(&self) -> Option<&'static CoreLimit> {
        // SAFETY: only references that live for ever are stored.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    fn set(&self, limit: Option<&'static CoreLimit>) {
        self.0
            .store(limit.map_or(std::ptr::null_mut(), |limit| std::ptr::from_ref(limit).cast_mut()), Ordering::Release);
    }

    /// Whether one more helper may come.
    pub(super) fn has_room(&self) -> bool {
        self.get().is_none_or(CoreLimit::has_room)
    }

    /// Takes a core for a helper, who gives it back.
    pub(super) fn take(&self) -> Option<&'static CoreLimit> {
        let limit = self.get();
        limit.inspect(|limit| limit.take())
    }

    /// Forgets all places, in a forked child.
    pub(super) fn forget(&self) {
        if let Some(limit) = self.get() {
            limit.used.store(0, Ordering::Relaxed);
        }
        self.set(None);
    }
}

/// The op is bounded until this is dropped.
#[must_use]
pub struct Limited<'a> {
    /// the run; none if it is bounded already, or has no helpers in any case
    run: Option<(&'a Team, usize, &'static CoreLimit)>,
}

impl RunCtx<'_> {
    /// Bounds the cores of this op together with those of all ops that name the same bound, until
    /// the result is dropped.
    pub fn limit_cores(&self, limit: &'static CoreLimit) -> Limited<'_> {
        let team = &self.engine().sched.team;
        let token = slot::current().token(self.engine()).filter(|_| slot::current().split_depth.get() == 0);
        // An op that runs inside another one uses its run.
        let token = token.filter(|token| team.runs[*token].limit.get().is_none());
        let run = token.map(|token| {
            limit.take();
            team.runs[token].limit.set(Some(limit));
            (team, token, limit)
        });
        Limited { run }
    }
}

impl Drop for Limited<'_> {
    fn drop(&mut self) {
        if let Some((team, token, limit)) = self.run {
            team.runs[token].limit.set(None);
            limit.give_back();
        }
    }
}
