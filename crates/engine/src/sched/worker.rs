//! The loop of a worker: jobs, a search when there are none, then sleep.

use super::{SOON, Sched, SchedState, Wake};
use crate::engine::Engine;
use crate::process::denormals;
use crate::process::slot::{self, Slot};
use crate::sched::parker::Parker;
use std::time::Instant;

/// State of a worker that is kept from one look for a job to the next.
struct WorkerState {
    /// The core on which it computes.
    token: Option<usize>,
    /// Whether it is counted among the searching workers.
    searching: bool,
    /// Whether it has searched since its last job.
    searched: bool,
    /// Whether it has worked since memory was given back.
    worked: bool,
    /// Time when it ran out of work.
    ended: Option<Instant>,
    /// Whether more work came soon the last time.
    soon: bool,
}

impl WorkerState {
    /// The state of a worker that was started, which counted it as searching.
    fn started() -> WorkerState {
        WorkerState { token: None, searching: true, searched: false, worked: false, ended: None, soon: false }
    }

    /// Notes that there is a job, and decides who is woken.
    fn begin_job(&mut self, sched: &Sched, state: &mut SchedState) -> Wake {
        self.worked = true;
        if let Some(ended) = self.ended.take() {
            self.soon = ended.elapsed() < SOON;
        }
        self.end_search(state);
        self.searched = false;
        sched.wake_rule(state)
    }

    /// Notes that there is no job: another thread may have the core.
    fn leave_core(&mut self, sched: &Sched) {
        if let Some(token) = self.token.take() {
            sched.tokens.put(token);
            self.ended = Some(Instant::now());
        }
    }

    /// Whether to search before it sleeps: once, and only if no other thread does.
    fn begin_search(&mut self, state: &mut SchedState) -> bool {
        let begins = !self.searched && (self.searching || state.searching == 0);
        if begins {
            state.searching += !self.searching as usize;
            self.searching = true;
            self.searched = true;
        }
        begins
    }

    fn end_search(&mut self, state: &mut SchedState) {
        if std::mem::take(&mut self.searching) {
            state.searching -= 1;
        }
    }
}

/// Name of the thread of the worker with this number.
pub(super) fn name(number: usize) -> String {
    format!("mxrt-{number}")
}

impl Sched {
    /// Makes this thread the worker with this number; returns its slot, and where it sleeps.
    fn settle_in(&self, me: usize) -> (&'static Slot, &'static Parker) {
        let slot = slot::current();
        slot::set_name(slot, name(me));
        slot.enter();
        let parker = self.lock().workers[me];
        slot.exit();
        // Before the first sleep: a thread that wakes must find it.
        parker.settle_in();
        (slot, parker)
    }
}

impl Engine {
    /// Works for as long as the process exists, as the worker with this number.
    pub(super) fn worker(&'static self, me: usize) {
        denormals::compute_with_them();
        let sched = &self.sched;
        let (slot, parker) = sched.settle_in(me);
        let mut own = WorkerState::started();
        loop {
            slot.enter();
            let mut state = sched.lock();
            if let Some(job) = sched.next_job(&mut state, &mut own.token) {
                let wake = own.begin_job(sched, &mut state);
                drop(state);
                if let Some(token) = own.token {
                    self.do_job(slot, job, token, wake);
                }
                slot.exit();
                continue;
            }
            own.leave_core(sched);
            if own.begin_search(&mut state) {
                drop(state);
                slot.exit();
                self.search(slot, std::mem::take(&mut own.soon));
                continue;
            }
            own.end_search(&mut state);
            state.parked.push(me);
            // What may be helped a moment later wakes no worker if it is one long loop.
            let limit = state.kept.next_release().filter(|_| !state.open_runs.is_empty());
            drop(state);
            slot.exit();
            if !limit.is_some_and(|left| !parker.is_woken_within(left) && sched.leave_parked(slot, me)) {
                self.sleep_until_woken(slot, parker, &mut own);
            }
        }
    }

    /// Sleeps until another thread wakes this one, which counts it as searching.
    fn sleep_until_woken(&'static self, slot: &Slot, parker: &Parker, own: &mut WorkerState) {
        while !parker.take_woken() {
            if !own.worked {
                std::thread::park();
            } else if self.sched.slept_without_jobs(parker) {
                self.give_back_memory();
                own.worked = false;
            }
        }
        slot.enter();
        parker.run_anywhere();
        slot.exit();
        own.searching = true;
        own.searched = false;
    }
}
