//! Parameters behind one gate: arrays that every request of a model reads, and that are seldom
//! written.
//!
//! A request names the gate instead of a hundred arrays. An op that writes one of the arrays passes
//! the gates in front of it; which these are stands in the storage, and no write is pushed while a
//! gate is being added there.

use crate::NDArray;
use mxrt_engine::{Engine, Failure, OpError, OpSpec, ParameterGate, RunCtx, Var};
use parking_lot::{RwLock, RwLockReadGuard};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Weak};

/// The gates in front of a storage.
#[derive(Default)]
pub(crate) struct Gates(RwLock<Vec<Guarded>>);

struct Guarded {
    gate: ParameterGate,
    alive: Weak<()>,
}

impl Guarded {
    /// Whether requests may still read through the gate.
    fn is_used(&self) -> bool {
        if self.alive.strong_count() > 0 {
            return true;
        }
        // What they have read happened before the set was dropped, and that before what the caller
        // does now.
        fence(Ordering::Acquire);
        false
    }
}

impl Gates {
    /// Whether any set of parameters holds the storage.
    pub fn any(&self) -> bool {
        self.0.read_recursive().iter().any(Guarded::is_used)
    }

    /// Runs `write` while no gate is added, unless there is one.
    pub fn unless_any<R>(&self, engine: &'static Engine, write: impl FnOnce() -> R) -> Option<R> {
        engine.without_fork(|| {
            let gates = self.0.read_recursive();
            gates.is_empty().then(write)
        })
    }

    /// Whether no thread holds the list of gates.
    #[cfg(test)]
    pub fn may_be_added(&self) -> bool {
        self.0.try_write().is_some()
    }

    fn add(&self, gate: &ParameterGate, alive: &Arc<()>) {
        let mut gates = self.0.write();
        gates.retain(Guarded::is_used);
        gates.push(Guarded { gate: gate.clone(), alive: Arc::downgrade(alive) });
    }
}

/// Arrays that requests read through one gate. What is pushed to write one of them waits for the
/// requests pushed before it, and those pushed later wait for it, as if they had named the array.
pub struct ParameterSet {
    arrays: Box<[NDArray]>,
    gate: ParameterGate,
    /// Gone with the set, and so with the last request that reads through the gate.
    _alive: Arc<()>,
}

impl ParameterSet {
    /// A gate in front of these arrays. Arrays on a device have none: ops that read them there name
    /// them.
    pub fn new(engine: &'static Engine, arrays: Vec<NDArray>) -> Arc<ParameterSet> {
        let on_host = |array: &&NDArray| array.context().device().is_none();
        let vars: Vec<Var> = arrays.iter().filter(on_host).map(|a| a.var().clone()).collect();
        let alive = Arc::new(());
        let gate = engine.without_fork(|| {
            ParameterGate::announced(engine, &vars, |gate| {
                let mut seen = HashSet::new();
                for array in arrays.iter().filter(on_host).filter(|a| seen.insert(a.var().id())) {
                    array.chunk.gates.add(gate, &alive);
                }
            })
        });
        Arc::new(ParameterSet { arrays: arrays.into(), gate, _alive: alive })
    }

    /// The arrays, in the order in which they were given.
    pub fn arrays(&self) -> &[NDArray] {
        &self.arrays
    }

    /// The variable of the gate.
    pub(crate) fn var(&self) -> &Var {
        self.gate.var()
    }

    /// The failure an array holds. Only meaningful while the gate is granted, or while no write is
    /// pending.
    pub(crate) fn failure(&self, i: usize) -> Option<Failure> {
        self.arrays[i].var().failure()
    }
}

impl std::fmt::Debug for ParameterSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ParameterSet({} arrays)", self.arrays.len())
    }
}

/// Pushes an op that writes `outputs`, through the gates in front of them.
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn push_writing<F>(engine: &'static Engine, outputs: &[&NDArray], spec: OpSpec<'_>, run: F)
where
    F: FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static,
{
    with_gates(engine, outputs, |gates| push_through(gates, engine, spec, run));
}

/// Pushes an op through these gates, of which there are usually none.
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn push_through<F>(gates: &[ParameterGate], engine: &'static Engine, spec: OpSpec<'_>, run: F)
where
    F: FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static,
{
    match gates {
        [] => engine.push(spec, run),
        gates => ParameterGate::push_through(gates, engine, spec, run),
    }
}

/// Calls `push` with the gates in front of `outputs`. None is added before it returns, so one that
/// is added later waits for what `push` has pushed.
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn with_gates<R>(
    engine: &'static Engine,
    outputs: &[&NDArray],
    push: impl FnOnce(&[ParameterGate]) -> R,
) -> R {
    engine.without_fork(|| {
        let held: SmallVec<[RwLockReadGuard<'_, Vec<Guarded>>; 4]> =
            outputs.iter().map(|a| a.chunk.gates.0.read_recursive()).collect();
        let mut gates: Vec<ParameterGate> = Vec::new();
        for guarded in held.iter().flat_map(|g| g.iter()).filter(|g| g.is_used()) {
            if !gates.iter().any(|g| g.var().same(guarded.gate.var())) {
                gates.push(guarded.gate.clone());
            }
        }
        push(&gates)
    })
}
