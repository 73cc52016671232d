//! [`Started`]: the results of a call that has begun.

use super::prepared::fits;
use super::state_updates::push_copy;
use crate::compile::interrupt::Interrupter;
use mxrt_engine::{Engine, FailureKind, OpError, Var, WaitError};
use mxrt_ops::convert_into;
use mxrt_tensor::{Context, NDArray, Ready, ResultArray};
use smallvec::SmallVec;

/// The results of a call that has begun: arrays with contents to come, and where these decide with
/// shapes to come.
#[derive(Clone, Debug)]
pub struct Started(SmallVec<[ResultArray; 2]>);

impl Started {
    /// The variables to wait for.
    pub fn vars(&self) -> SmallVec<[&Var; 2]> {
        self.0.iter().map(ResultArray::var).collect()
    }

    /// Futures of the results.
    pub fn ready(&self) -> SmallVec<[Ready; 2]> {
        self.0.iter().map(ResultArray::ready).collect()
    }

    /// Whether waiting would return at once: the call ran in the calling thread, or is over.
    pub fn is_ready(&self) -> bool {
        self.0.iter().all(ResultArray::is_ready)
    }

    /// Waits until all shapes are known, and returns arrays whose contents may still be to come.
    pub fn arrays(self) -> Result<SmallVec<[NDArray; 2]>, WaitError> {
        self.arrays_unless(&mut Interrupter::never())
    }

    /// Waits as [`Started::arrays`], until the interrupter gives up.
    pub fn arrays_unless(self, interrupter: &mut Interrupter<'_>) -> Result<SmallVec<[NDArray; 2]>, WaitError> {
        let mut array = |result: ResultArray| match interrupter.asks() {
            true => result.into_array(Some(&mut || interrupter.check().is_ok())),
            false => result.into_array(None),
        };
        // All are waited for, so that no failure of this call is left for `wait_all`; but who was
        // interrupted waits no longer.
        let mut failed = None;
        let mut found = SmallVec::new();
        for result in self.0 {
            match array(result) {
                Ok(array) => found.push(array),
                Err(WaitError::Interrupted) => return Err(WaitError::Interrupted),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(found), Err)
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
        Ok(outputs.iter().map(|array| (*array).clone()).collect())
    }

    /// The results on a device: those that are known are copied there, others come there.
    pub(super) fn on(self, context: Context) -> Result<Started, OpError> {
        let elsewhere = |array: &&NDArray| context.device().is_some() && array.context() != context;
        let there = |result: ResultArray| match result.get().filter(elsewhere) {
            Some(array) => array.copy_to_context(context).map(ResultArray::from),
            None => Ok(result),
        };
        self.0.into_iter().map(there).collect::<Result<_, OpError>>().map(Started)
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

impl<A: Into<ResultArray>> FromIterator<A> for Started {
    fn from_iter<I: IntoIterator<Item = A>>(arrays: I) -> Started {
        Started(arrays.into_iter().map(A::into).collect())
    }
}

impl IntoIterator for Started {
    type Item = ResultArray;
    type IntoIter = smallvec::IntoIter<[ResultArray; 2]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
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
