//! The parameter gate: one variable in the place of a hundred.
//!
//! A request reads every parameter of its block. Naming each of them costs a lock per parameter and
//! request, and all callers contend for those locks. With a gate a request names only the gate. A
//! thread that writes a parameter names the gate as well, by pushing through it. So readers share
//! the parameters, a writer has exclusive access to all of them, and everything keeps the order of
//! the pushes.

use crate::engine::Engine;
use crate::failure::{Failure, OpError};
use crate::op::ctx::RunCtx;
use crate::op::spec::{Access, OpSpec};
use crate::var::Var;
use std::sync::Arc;

/// Variables that are read together and seldom written. Clones are the same gate.
///
/// The gate holds a failure exactly while one of the parameters does, so a request inherits it as
/// if it had named them.
#[derive(Clone, Debug)]
pub struct ParameterGate {
    engine: &'static Engine,
    gate: Var,
    parameters: Arc<[Var]>,
}

impl ParameterGate {
    /// A gate in front of these variables. It is shut until everything pushed to write them before
    /// is complete. From now on they may only be written through the gate.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn new(engine: &'static Engine, parameters: &[Var]) -> Self {
        ParameterGate::announced(engine, parameters, |_| ())
    }

    /// Makes a gate; `announce` notifies writers of the gate's parameters before it waits for the
    /// writes that they have pushed. When it returns, no thread may push a write that does not pass
    /// the gate.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn announced(engine: &'static Engine, parameters: &[Var], announce: impl FnOnce(&ParameterGate)) -> Self {
        let gate = ParameterGate { engine, gate: engine.new_var(), parameters: parameters.into() };
        announce(&gate);
        let accesses: Vec<_> = gate.parameters.iter().map(|p| (p, Access::Read)).collect();
        // Strict: a parameter that has failed already fails the gate.
        gate.push(OpSpec::new("gate", &accesses), |_| Ok(()));
        gate
    }

    /// The access that a request declares instead of reading each parameter. While it is granted no
    /// parameter changes, so the request may read the values and versions of all of them.
    pub fn read(&self) -> (&Var, Access) {
        (&self.gate, Access::Read)
    }

    /// The variable of the gate: waiting for it is waiting for all parameters, and its version
    /// changes whenever one of them is written.
    pub fn var(&self) -> &Var {
        &self.gate
    }

    /// The parameters, in the order in which they were given.
    pub fn parameters(&self) -> &[Var] {
        &self.parameters
    }

    /// Pushes an op that writes parameters. Requests pushed before finish on the old values; those
    /// pushed later start when it is complete. Several parameters written by one op become visible
    /// at once.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn push<F>(&self, spec: OpSpec<'_>, run: F)
    where
        F: FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static,
    {
        ParameterGate::push_through(std::slice::from_ref(self), self.engine, spec, run);
    }

    /// Pushes through the gates of several parameter sets; without any gate it is an ordinary push.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn push_through<F>(gates: &[ParameterGate], engine: &'static Engine, spec: OpSpec<'_>, run: F)
    where
        F: FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static,
    {
        let declared = spec.vars;
        let first = declared.len();
        let mut accesses = declared.to_vec();
        // A whole write: success heals a gate, unless a parameter is failed afterwards.
        accesses.extend(gates.iter().map(|g| (&g.gate, Access::Write)));
        let guarded: Vec<GuardedWrites> = gates.iter().map(|gate| GuardedWrites::of(gate, declared)).collect();
        engine.push(OpSpec { vars: &accesses, ..spec }, move |ctx| {
            run(ctx)?;
            for (i, guarded) in guarded.iter().enumerate() {
                if let Some(failure) = guarded.failure(ctx) {
                    ctx.fail_write(first + i, failure);
                }
            }
            Ok(())
        });
    }
}

/// Writes of a gate's parameters by an op that passes the gate.
struct GuardedWrites {
    /// numbers of the op's accesses to parameters that it writes
    written: Vec<usize>,
    /// parameters that keep a failure if the op succeeds: it does not write them, or only in part
    keeping: Vec<Var>,
}

impl GuardedWrites {
    fn of(gate: &ParameterGate, declared: &[(&Var, Access)]) -> GuardedWrites {
        // Accesses of one variable become one: with a read among them a write is an update.
        let is_written = |v: &Var| declared.iter().any(|(d, access)| d.same(v) && *access != Access::Read);
        let heals =
            |v: &Var| is_written(v) && declared.iter().all(|(d, access)| !d.same(v) || *access == Access::Write);
        let is_parameter = |v: &Var| gate.parameters.iter().any(|p| p.same(v));
        let written = declared.iter().enumerate().filter(|(_, (v, _))| is_written(v) && is_parameter(v));
        GuardedWrites {
            written: written.map(|(i, _)| i).collect(),
            keeping: gate.parameters.iter().filter(|p| !heals(p)).cloned().collect(),
        }
    }

    /// The failure that a parameter will hold when the op, whose closure has just succeeded, is
    /// complete. No other thread writes a parameter now: that takes the gate.
    fn failure(&self, ctx: &RunCtx<'_>) -> Option<Failure> {
        let new = self.written.iter().find_map(|i| ctx.failure_given(*i));
        new.or_else(|| self.keeping.iter().find_map(Var::failure))
    }
}
