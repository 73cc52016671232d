//! The outcome of an op after it was submitted. It is known when the op's event is complete, and
//! inherited by the work that was submitted after it.

use super::event::EventRef;
use super::status::{Complaint, StatusWord};
use super::timing::Timing;
use crate::engine::Engine;
use crate::failure::{Failure, OpError};
use crate::op::spec::{DeviceId, OpName};
use std::any::Any;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// One op on a device, from its start on the host until its event is complete.
pub(crate) struct Enqueued {
    pub engine: &'static Engine,
    pub id: u64,
    pub name: OpName,
    pub device: DeviceId,
    /// A failed input decides over all it writes.
    pub strict: bool,
    /// Numbers of its variables, by declared access.
    vars: Vec<u64>,
    /// The place that pushed it, and the number of its request, where these are known.
    pub origin: (Option<String>, Option<u64>),
    inputs: Mutex<Vec<FailedInput>>,
    status: Mutex<Status>,
    outcome: OnceLock<DeviceOutcome>,
    /// Held while it is decided.
    deciding: Mutex<()>,
}

/// An old value that the op depends on, and that has failed or was not complete when the op
/// started.
pub(crate) struct FailedInput {
    pub access: usize,
    /// The op changes a part of it.
    pub updated: bool,
    pub source: FailureSource,
}

#[derive(Clone)]
pub(crate) enum FailureSource {
    Failed(Failure),
    Pending(LastWriter),
}

/// The op that wrote a variable last, by its event, and under which number it wrote it.
#[derive(Clone)]
pub(crate) struct LastWriter {
    pub event: EventRef,
    pub access: usize,
}

#[derive(Default)]
struct Status {
    error: Option<OpError>,
    single: Vec<(usize, Failure)>,
    keep: Vec<Box<dyn Any + Send>>,
    timing: Option<Timing>,
    /// Status words in which kernels of the device may have reported errors.
    words: Vec<StatusWord>,
    heirs: Option<Heirs>,
}

/// The writes that fail where a read has failed.
type Heirs = Box<dyn Fn(usize) -> Vec<usize> + Send>;

/// The final word.
pub(crate) struct DeviceOutcome {
    pub all: Option<Failure>,
    pub single: Vec<(usize, Failure)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first failure of a write stays.
fn add(single: &mut Vec<(usize, Failure)>, write: usize, failure: Failure) {
    if single.iter().all(|(other, _)| *other != write) {
        single.push((write, failure));
    }
}

impl LastWriter {
    /// The failure of the value. Its event is complete, or its device is lost.
    pub fn failure(&self) -> Option<Failure> {
        settle(&self.event);
        self.event.op.as_ref()?.failure_of_write(self.access)
    }
}

impl Enqueued {
    pub fn new(engine: &'static Engine, name: OpName, device: DeviceId, strict: bool, vars: Vec<u64>) -> Self {
        Enqueued {
            engine,
            id: crate::process::slot::fresh_id(),
            name,
            device,
            strict,
            vars,
            origin: (None, None),
            inputs: Mutex::default(),
            status: Mutex::default(),
            outcome: OnceLock::new(),
            deciding: Mutex::new(()),
        }
    }

    /// The failure to keep for an error of the op.
    pub fn failure_from(&self, error: OpError) -> Failure {
        error.into_failure(|details| {
            details.op.get_or_insert_with(|| self.name.to_string());
            details.device.get_or_insert_with(|| self.device.to_string());
            details.pushed_at = details.pushed_at.take().or_else(|| self.origin.0.clone());
            details.request = details.request.or(self.origin.1);
        })
    }

    pub fn set_inputs(&self, inputs: Vec<FailedInput>) {
        *lock(&self.inputs) = inputs;
    }

    /// A kernel has failed; the first error stays.
    pub fn fail(&self, error: OpError) {
        lock(&self.status).error.get_or_insert(error);
    }

    pub fn fail_write(&self, i: usize, failure: Failure) {
        let mut status = lock(&self.status);
        if i < self.vars.len() && status.single.iter().all(|(j, _)| *j != i) {
            status.single.push((i, failure));
        }
    }

    /// A word that kernels write when they do not like their data.
    pub fn add_status(&self, word: StatusWord) {
        lock(&self.status).words.push(word);
    }

    /// An op that is not strict passes failures on by these.
    pub fn set_heirs(&self, heirs: Heirs) {
        lock(&self.status).heirs = Some(heirs);
    }

    /// The profiler wants to know when it ran.
    pub fn set_timing(&self, timing: Timing) {
        lock(&self.status).timing = Some(timing);
    }

    /// Dropped when the op is complete on the device.
    pub fn keep(&self, value: Box<dyn Any + Send>) {
        lock(&self.status).keep.push(value);
    }

    /// The failure of the old value of an access; what came before is complete.
    pub fn failure_of_input(&self, i: usize) -> Option<Failure> {
        let var = *self.vars.get(i)?;
        self.failed_inputs().into_iter().find(|(j, _)| self.vars[*j] == var).map(|(_, f)| f)
    }

    /// Failed old values in declared order; what came before is complete.
    pub fn failed_inputs(&self) -> Vec<(usize, Failure)> {
        // Asking a device may find out that it is lost, and that looks at the inputs of every op:
        // not under their lock.
        let inputs: Vec<(usize, FailureSource)> =
            lock(&self.inputs).iter().map(|i| (i.access, i.source.clone())).collect();
        let failure = |source: FailureSource| match source {
            FailureSource::Failed(failure) => Some(failure),
            FailureSource::Pending(writer) => writer.failure(),
        };
        inputs.into_iter().filter_map(|(access, source)| Some((access, failure(source)?))).collect()
    }

    /// Whether anything it wrote has failed.
    pub fn has_failed(&self) -> bool {
        self.outcome.get().is_some_and(|o| o.all.is_some() || !o.single.is_empty())
    }

    /// The failure of a write, once the op is settled.
    fn failure_of_write(&self, access: usize) -> Option<Failure> {
        let outcome = self.outcome.get()?;
        let same = |i: usize| self.vars.get(i) == self.vars.get(access);
        outcome.all.clone().or_else(|| outcome.single.iter().find(|(i, _)| same(*i)).map(|(_, f)| f.clone()))
    }

    /// The final word, once the op is settled.
    pub fn outcome(&self) -> Option<&DeviceOutcome> {
        self.outcome.get()
    }

    fn unsettled_inputs(&self) -> Vec<EventRef> {
        let pending = |input: &FailedInput| match &input.source {
            FailureSource::Pending(writer) if !writer.event.is_settled() => Some(writer.event.clone()),
            _ => None,
        };
        let all: Vec<EventRef> = lock(&self.inputs).iter().filter_map(pending).collect();
        // One that is not complete now, although the op is, was never waited for: nothing is known
        // of it.
        all.into_iter().filter(|event| event.is_complete()).collect()
    }

    /// Decides. The op is complete or lost, all its inputs are settled.
    fn decide(&self, lost: Option<Failure>) {
        let failed = if lost.is_some() { Vec::new() } else { self.failed_inputs() };
        let deciding = lock(&self.deciding);
        if self.outcome.get().is_some() {
            return;
        }
        let Status { mut error, mut single, mut keep, timing, words, heirs } = std::mem::take(&mut *lock(&self.status));
        if lost.is_some() {
            // A function of the host may be in the middle of using it. It holds this op, and what
            // is kept goes with the op.
            lock(&self.status).keep = std::mem::take(&mut keep);
        }
        if let Some(heirs) = heirs {
            for (i, failure) in &failed {
                heirs(*i).into_iter().for_each(|write| add(&mut single, write, failure.clone()));
            }
        }
        // What a kernel says of data that has failed is no error of the op.
        if lost.is_none() && (!self.strict || failed.is_empty()) {
            self.add_complaints(words, &mut error, &mut single);
        }
        let inherited = failed.first().filter(|_| self.strict).map(|(_, f)| f.clone());
        let own = || error.map(|e| self.failure_from(e));
        let all = lost.or(inherited).or_else(own);
        if !self.strict {
            // A part of a failed value was changed: the rest is still what it was.
            let updated: Vec<usize> = lock(&self.inputs).iter().filter(|i| i.updated).map(|i| i.access).collect();
            single.extend(failed.into_iter().filter(|(i, _)| updated.contains(i)));
        }
        all.iter().chain(single.iter().map(|(_, f)| f)).for_each(|f| self.engine.record_failure(f));
        let _ = self.outcome.set(DeviceOutcome { all, single });
        drop(deciding);
        if let Some(timing) = timing {
            timing.resolve(self);
        }
        let inputs = std::mem::take(&mut *lock(&self.inputs));
        // Data of the user: under no lock.
        drop((inputs, keep));
    }

    /// Adds what kernels have written to their status words to the failures of the op and of single
    /// writes.
    fn add_complaints(&self, words: Vec<StatusWord>, error: &mut Option<OpError>, single: &mut Vec<(usize, Failure)>) {
        for Complaint { error: said, writes } in words.into_iter().filter_map(|w| w.complaint(self.name.as_str())) {
            match writes {
                None => *error = error.take().or(Some(said)),
                Some(writes) => {
                    let failure = self.failure_from(said);
                    writes.into_iter().for_each(|write| add(single, write, failure.clone()));
                }
            }
        }
    }
}

/// Makes the outcome of a complete (or lost) event's op known, and that of all it depends on; does
/// nothing if it is not complete. Without recursion: chains of ops can be long.
pub(crate) fn settle(event: &EventRef) {
    if event.is_settled() {
        return;
    }
    // A fork must find none of the locks held by which outcomes are decided and noted.
    event.stream.device.engine.without_fork(|| settle_all(event.clone()));
}

fn settle_all(event: EventRef) {
    let mut stack = vec![event];
    while let Some(top) = stack.last() {
        // Nothing can be said before it is complete. What it depends on is, then, or its device is
        // lost.
        if !top.is_complete() {
            return;
        }
        let lost = top.stream.device.lost().filter(|_| top.seq > top.stream.completed());
        let missing = match (&top.op, &lost) {
            (Some(op), None) if !top.is_settled() => op.unsettled_inputs(),
            _ => Vec::new(),
        };
        if missing.is_empty() {
            if let Some(op) = top.op.as_ref().filter(|_| !top.is_settled()) {
                op.decide(lost);
            }
            top.mark_settled();
            stack.pop();
        } else {
            stack.extend(missing);
        }
    }
}
