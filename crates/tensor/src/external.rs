//! Functions of other programs under the engine's order.

use crate::NDArray;
use crate::params::{push_writing, with_gates};
use mxrt_engine::{Access, Engine, FailureKind, OnComplete, OpError, OpName, OpSpec, RunCtx};
use smallvec::SmallVec;

/// The arrays of another program's function. It runs when the arrays that it reads are complete and
/// no other operator uses those that it writes. If one of them holds a failure, it does not run.
pub struct External<'a> {
    /// name for messages and the profiler
    pub name: OpName,
    /// arrays that it reads
    pub reads: &'a [&'a NDArray],
    /// arrays that it changes
    pub writes: &'a [&'a NDArray],
    /// higher goes first
    pub priority: i32,
}

impl External<'_> {
    /// Pushes a function that is done when it returns.
    pub fn push<F>(&self, engine: &'static Engine, run: F)
    where
        F: FnOnce(&RunCtx<'_>) -> Result<(), OpError> + Send + 'static,
    {
        let vars = self.vars();
        push_writing(engine, self.writes, OpSpec::new(self.name.clone(), &vars).priority(self.priority), run);
    }

    /// Pushes a function that is done when its token is used.
    ///
    /// Parameters of models that were called cannot be written this way.
    pub fn push_async<F>(&self, engine: &'static Engine, run: F) -> Result<(), OpError>
    where
        F: FnOnce(&RunCtx<'_>, OnComplete) + Send + 'static,
    {
        with_gates(engine, self.writes, |gates| {
            if !gates.is_empty() {
                return Err(self.writes_parameter());
            }
            let vars = self.vars();
            engine.push_async(OpSpec::new(self.name.clone(), &vars).priority(self.priority), run);
            Ok(())
        })
    }

    fn writes_parameter(&self) -> OpError {
        let array = self.writes.iter().find(|array| array.chunk.gates.any());
        let named = array.map_or_else(String::new, |array| format!("{array:?}"));
        let message = format!("{named} is a parameter of a compiled graph: write it by a synchronous function");
        OpError::new(FailureKind::Value, message).op(self.name.as_str().to_owned())
    }

    fn vars(&self) -> SmallVec<[(&mxrt_engine::Var, Access); 4]> {
        let reads = self.reads.iter().map(|array| (array.var(), Access::Read));
        reads.chain(self.writes.iter().map(|array| (array.var(), Access::Update))).collect()
    }
}
