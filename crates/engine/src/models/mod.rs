//! Models of the protocol, run under loom over the production types: `RUSTFLAGS="--cfg loom" cargo
//! test -p mxrt-engine --lib --release`. This file has the shared parts. The models are in the
//! files below, by subject, and next to the code that they check (`*/loom_*.rs`).

mod cancel;
mod cores;
mod failures;
mod lifetimes;
mod order;
mod parameter_gate;
mod waiting;

use crate::failure::{Failure, FailureKind, OpError};
use crate::op::block::{Chain, Class, OpBlock};
use crate::op::spec::{Access, OpSpec};
use crate::push::complete::inherited;
use crate::push::protocol::{Verdict, register, release};
use crate::var::Var;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use std::mem::MaybeUninit;

/// Bounded so that all models together take minutes; `LOOM_MAX_PREEMPTIONS` makes them deeper. One
/// at a time: some count what exists in the process.
pub(crate) fn model(f: impl Fn() + Send + Sync + 'static) {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(f);
}

/// The work of a model's op on its variables.
pub(crate) type ModelBody = Box<dyn Fn() -> Option<Failure>>;

/// Pushes an op the way the engine does, with the protocol's own functions; ready ops run here.
pub(crate) fn push(vars: &[(&Var, Access)], body: ModelBody) {
    let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
    // SAFETY: a fresh block that is ours; the variables' handles live during the call.
    unsafe {
        OpBlock::fill(op, &OpSpec::new("model", vars), Class::Strict);
        OpBlock::closure(op).cast::<ModelBody>().write(body);
        if register(op, || {}) {
            run(op);
        }
    }
}

pub(crate) unsafe fn run(first: *mut OpBlock) {
    let mut ready = Chain::new();
    // SAFETY: a ready op of the caller.
    unsafe { ready.add(first) };
    while let Some(op) = ready.take() {
        // SAFETY: ready ops are ours; what lies at the closure's place is the model's body.
        unsafe {
            let body = OpBlock::closure(op).cast::<ModelBody>().read();
            let all = inherited(op).or_else(|| body());
            release(op, &Verdict { all, single: &[] }, true, &mut ready);
            OpBlock::clear(op);
            drop(Box::from_raw(op.cast::<MaybeUninit<OpBlock>>()));
        }
    }
}

/// Registers an op that is granted at once and returns it without running it.
pub(crate) fn held(var: &Var, access: Access, body: ModelBody) -> usize {
    let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
    // SAFETY: a fresh block that is ours; the handle lives during the call.
    unsafe {
        OpBlock::fill(op, &OpSpec::new("held", &[(var, access)]), Class::Strict);
        OpBlock::closure(op).cast::<ModelBody>().write(body);
        assert!(register(op, || {}));
    }
    op.expose_provenance()
}

/// Runs a held op, in this thread.
pub(crate) fn finish(op: usize) {
    // SAFETY: a granted op, given to one thread.
    unsafe { run(std::ptr::with_exposed_provenance_mut(op)) }
}

/// Registers an op that is granted at once, and returns it without running it.
pub(crate) fn granted(accesses: &[(&Var, Access)]) -> usize {
    let op = Box::into_raw(Box::new(MaybeUninit::<OpBlock>::uninit())).cast::<OpBlock>();
    // SAFETY: a fresh block that is ours.
    unsafe {
        OpBlock::fill(op, &OpSpec::new("granted", accesses), Class::Selective);
        assert!(register(op, || {}));
    }
    op.expose_provenance()
}

/// Completes such an op, and runs what becomes ready.
pub(crate) fn complete(op: usize, single: &[(usize, Failure)]) {
    let mut ready = Chain::new();
    // SAFETY: a granted op that is given to the caller.
    unsafe {
        let op: *mut OpBlock = std::ptr::with_exposed_provenance_mut(op);
        release(op, &Verdict { all: None, single }, true, &mut ready);
        OpBlock::clear(op);
        drop(Box::from_raw(op.cast::<MaybeUninit<OpBlock>>()));
        while let Some(op) = ready.take() {
            run(op);
        }
    }
}

pub(crate) fn nothing() -> ModelBody {
    Box::new(|| None)
}

pub(crate) fn fails() -> ModelBody {
    Box::new(|| Some(failure()))
}

pub(crate) fn adds(cell: &Arc<Watched>) -> ModelBody {
    let cell = cell.clone();
    Box::new(move || {
        cell.add(1);
        None
    })
}

pub(crate) fn failure() -> Failure {
    Failure::new((*OpError::new(FailureKind::Operator, "model")).clone())
}

/// A cell that loom watches: unordered accesses are reported.
pub(crate) struct Watched(UnsafeCell<u64>);

// SAFETY: loom reports what the engine does not order.
unsafe impl Sync for Watched {}
// SAFETY: as above.
unsafe impl Send for Watched {}

impl Watched {
    pub fn new() -> Arc<Self> {
        Arc::new(Watched(UnsafeCell::new(0)))
    }
    pub fn add(&self, n: u64) {
        // SAFETY: loom checks that no other thread accesses the cell.
        self.0.with_mut(|p| unsafe { *p += n });
    }
    pub fn get(&self) -> u64 {
        // SAFETY: loom checks that no thread writes the cell.
        self.0.with(|p| unsafe { *p })
    }
}
