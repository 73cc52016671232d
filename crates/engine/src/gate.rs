//! The parameter gate: one variable in the place of a hundred.
//!
//! A request reads every parameter of its block. Naming each of them costs a lock per parameter and request, and all
//! callers meet on those locks. Behind a gate a request names the gate only; whoever writes a parameter names the gate
//! as well, by pushing through it. So readers share, a writer is alone with all parameters, and everything keeps the order
//! of the pushes.

use crate::ctx::RunCtx;
use crate::engine::Engine;
use crate::failure::OpError;
use crate::spec::{Access, OpSpec};
use crate::var::Var;
use std::sync::Arc;

/// Variables that are read together and seldom written. Clones are the same gate.
///
/// The gate holds a failure exactly while one of the parameters does, so a request inherits it as if it had named them.
#[derive(Clone, Debug)]
pub struct ParameterGate {
    engine: &'static Engine,
    gate: Var,
    parameters: Arc<[Var]>,
}

impl ParameterGate {
    /// A gate in front of these variables. It is shut until everything pushed to write them before is complete. From now
    /// on they may only be written through the gate.
    pub fn new(engine: &'static Engine, parameters: &[Var]) -> Self {
        let gate = ParameterGate { engine, gate: engine.new_var(), parameters: parameters.into() };
        let accesses: Vec<_> = gate.parameters.iter().map(|p| (p, Access::Read)).collect();
        // Strict: a parameter that has failed already fails the gate.
        gate.push_with(OpSpec::new("gate", &accesses), |_| Ok(()));
        gate
    }

    /// What a request declares instead of reading each parameter. While it is granted no parameter changes, so values and
    /// versions of all of them may be looked at.
    pub fn read(&self) -> (&Var, Access) {
        (&self.gate, Access::Read)
    }

    /// The variable of the gate: waiting for it is waiting for all parameters, and its version changes whenever one of
    /// them is written.
    pub fn var(&self) -> &Var {
        &self.gate
    }

    /// The parameters, in the order in which they were given.
    pub fn parameters(&self) -> &[Var] {
        &self.parameters
    }

    /// Pushes an op that writes parameters. Requests pushed before finish on the old values; those pushed later start
    /// when it is complete. Several parameters written by one op become visible at once.
    pub fn push<F>(&self, spec: OpSpec<'_>, run: F)
    where
        F: FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static,
    {
        self.push_with(spec, run);
    }

    fn push_with<F>(&self, spec: OpSpec<'_>, run: F)
    where
        F: FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static,
    {
        let declared = spec.vars;
        let mut accesses = declared.to_vec();
        let last = accesses.len();
        // A whole write: success heals the gate, unless a parameter that this op does not write has failed.
        accesses.push((&self.gate, Access::Write));
        let written = |p: &&Var| declared.iter().any(|(v, access)| *access == Access::Write && v.same(p));
        let others: Vec<Var> = self.parameters.iter().filter(|p| !written(p)).cloned().collect();
        self.engine.push(OpSpec { vars: &accesses, ..spec }, move |ctx| {
            run(ctx)?;
            // Nobody else writes a parameter now: that takes the gate.
            if let Some(failure) = others.iter().find_map(Var::failure) {
                ctx.fail_write(last, failure);
            }
            Ok(())
        });
    }
}
