//! [`Started`]: the results of a call that has begun.

use super::prepared::fits;
use super::state_updates::push_copy;
use crate::compile::interrupt::Interrupter;
use mxrt_engine::{Engine, FailureKind, OpError, Var, WaitError};
use mxrt_ops::convert_into;
use mxrt_tensor::{Context, LateArray, NDArray, Ready};
use smallvec::SmallVec;

/// The results of a call that has begun.
#[derive(Clone, Debug)]
pub enum Started {
    /// arrays with shapes, and contents to come
    Known(SmallVec<[NDArray; 2]>),
    /// arrays whose shapes follow from contents
    Deferred(SmallVec<[LateArray; 2]>),
}

impl Started {
    /// The variables to wait for.
    pub fn vars(&self) -> SmallVec<[&Var; 2]> {
        match self {
            Started::Known(arrays) => arrays.iter().map(NDArray::var).collect(),
            Started::Deferred(arrays) => arrays.iter().map(LateArray::var).collect(),
        }
    }

    /// Futures of the results.
    pub fn ready(&self) -> SmallVec<[Ready; 2]> {
        match self {
            Started::Known(arrays) => arrays.iter().map(NDArray::ready).collect(),
            Started::Deferred(arrays) => arrays.iter().map(LateArray::ready).collect(),
        }
    }

    /// Whether waiting would return at once: the call ran in the calling thread, or is over.
    pub fn is_ready(&self) -> bool {
        match self {
            Started::Known(arrays) => arrays.iter().all(NDArray::is_ready),
            Started::Deferred(arrays) => arrays.iter().all(|array| array.engine().is_ready(array.var())),
        }
    }

    /// Waits until all shapes are known, and returns arrays whose contents may still be to come.
    pub fn arrays(self) -> Result<SmallVec<[NDArray; 2]>, WaitError> {
        self.arrays_unless(&mut Interrupter::never())
    }

    /// Waits as [`Started::arrays`], until the interrupter gives up.
    pub fn arrays_unless(self, interrupter: &mut Interrupter<'_>) -> Result<SmallVec<[NDArray; 2]>, WaitError> {
        let arrays = match self {
            Started::Known(arrays) => return Ok(arrays),
            Started::Deferred(arrays) => arrays,
        };
        let mut shape = |array: &LateArray| match interrupter.asks() {
            true => array.wait_with(&mut || interrupter.check().is_ok()).cloned(),
            false => array.wait().cloned(),
        };
        // All are waited for, so that no failure of this call is left for `wait_all`; but who was
        // interrupted waits no longer.
        let mut found: SmallVec<[_; 2]> = SmallVec::new();
        for array in &arrays {
            match shape(array) {
                Err(WaitError::Interrupted) => return Err(WaitError::Interrupted),
                other => found.push(other),
            }
        }
        found.into_iter().collect()
    }

    /// Waits until all results are there, and returns them; the error of the first that has one.
    pub fn wait(&self) -> Result<SmallVec<[NDArray; 2]>, WaitError> {
        let arrays = self.clone().arrays()?;
        arrays.iter().map(NDArray::wait_to_read).fold(Ok(()), Result::and)?;
        Ok(arrays)
    }

    /// Stores the results in arrays of the caller, as soon as their shapes are known. Gates may stand
    /// in front of these.
    pub(super) fn stored(self, outputs: &[&NDArray], interrupter: &mut Interrupter<'_>) -> Result<Started, OpError> {
        let made = self.arrays_unless(interrupter).map_err(call_error)?;
        fits(outputs, &made.iter().map(NDArray::tensor_type).collect::<Vec<_>>())?;
        for (from, to) in made.iter().zip(outputs) {
            let sparse = from.is_sparse() || to.is_sparse();
            if sparse { convert_into(from, to)? } else { push_copy(from, to)? }
        }
        Ok(Started::Known(outputs.iter().map(|a| (*a).clone()).collect()))
    }

    /// The results on a context: those that are known are copied there, others come there.
    pub(super) fn on(self, context: Context) -> Result<Started, OpError> {
        match self {
            Started::Known(arrays) if context.device().is_some() => {
                let copies = arrays.iter().map(|array| array.copy_to_context(context));
                Ok(Started::Known(copies.collect::<Result<_, _>>()?))
            }
            other => Ok(other),
        }
    }

    /// Reports the failure at the call with the naive engine, where a call has run when it returns.
    #[inline]
    pub(super) fn report(&self, engine: &'static Engine, interrupter: &mut Interrupter<'_>) -> Result<(), OpError> {
        if engine.is_naive() { self.wait_unless(engine, interrupter) } else { Ok(()) }
    }

    fn wait_unless(&self, engine: &'static Engine, interrupter: &mut Interrupter<'_>) -> Result<(), OpError> {
        for var in self.vars() {
            let outcome = match interrupter.asks() {
                true => engine.wait_to_read_with(var, &mut || interrupter.check().is_ok()),
                false => engine.wait_to_read(var),
            };
            outcome.map_err(call_error)?;
        }
        Ok(())
    }
}

/// The error of a call that waits for its results.
pub(super) fn call_error(error: WaitError) -> OpError {
    match error {
        WaitError::Failed(failure) => OpError::from(failure),
        WaitError::Interrupted => OpError::new(FailureKind::Cancelled, "the call was interrupted"),
        other => OpError::new(FailureKind::Operator, other.to_string()).op("CachedOp"),
    }
}
