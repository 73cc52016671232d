//! Imperative calls with sparse arrays.

use super::call::SparseCall;
use super::cast::convert;
use super::choice::{StorageChoice as Choice, choose_storage, result_storage};
use super::stored_call::{LastStoredCall, StoredCall, context_of, cost};
use crate::definition::{Attrs, OpDef, not_implemented, registry};
use crate::execution::{BoundOperatorCache, CallAttrs, EnginePar, Invocation, KernelOptions, invoke, invoke_cached};
use mxrt_engine::{FailureKind, OpError};
use mxrt_tensor::index::{Region, copy_region};
use mxrt_tensor::{Context, Launch, NDArray, StorageType, StoredOutput, TensorType, describe_inputs, launch_stored};
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) type Arrays = SmallVec<[NDArray; 2]>;

/// Runs an operator on arrays of which some are sparse. As [`invoke_cached`] in everything else.
#[cfg_attr(debug_assertions, track_caller)]
pub fn invoke_stored(
    call: &Invocation<'_>,
    cache: &BoundOperatorCache,
    def: &'static OpDef,
    given: CallAttrs<'_>,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
) -> Result<Arrays, OpError> {
    let attrs = given.parse(def)?;
    let dense =
        |inputs: &[&NDArray], outputs: Option<&[&NDArray]>| invoke_cached(call, cache, def, given, inputs, outputs);
    Treatment::of(call, (def, &attrs), inputs, outputs)?.run(call, inputs, outputs, &dense)
}

/// Runs an operator with parsed attributes on arrays of which some may be sparse. `last` holds what
/// was found out about the last call of the same operator with these attributes.
#[cfg_attr(debug_assertions, track_caller)]
pub fn invoke_again(
    call: &Invocation<'_>,
    last: &LastStoredCall,
    def: &'static OpDef,
    attrs: &Attrs,
    inputs: &[&NDArray],
) -> Result<Arrays, OpError> {
    if let Some(known) = last.get(inputs) {
        return known.run(call, inputs, None);
    }
    let dense = |inputs: &[&NDArray], outputs: Option<&[&NDArray]>| invoke(call, def, attrs, inputs, outputs);
    let found = Treatment::of(call, (def, attrs), inputs, None)?;
    if let Treatment::Kernel(stored) = &found {
        last.set(stored.clone());
    }
    found.run(call, inputs, None, &dense)
}

/// Runs the operator for dense arrays.
type RunDense<'a> = &'a dyn Fn(&[&NDArray], Option<&[&NDArray]>) -> Result<Arrays, OpError>;

/// The way in which a call runs.
enum Treatment {
    /// A kernel for arrays as they are stored.
    Kernel(Arc<StoredCall>),
    /// Dense copies; the storage of the result.
    Dense(StorageType),
}

impl Treatment {
    fn of(
        call: &Invocation<'_>,
        (def, attrs): (&'static OpDef, &Attrs),
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
    ) -> Result<Treatment, OpError> {
        let choice = chosen(def, attrs, inputs, outputs);
        let stored: SmallVec<[StorageType; 4]> = inputs.iter().map(|a| a.storage_type()).collect();
        let result = result_storage(def, attrs, &stored, choice);
        match choice {
            Choice::Refused(reason) => Err(described(not_implemented(reason), call, (def, attrs), inputs)),
            Choice::Kernel(storage) => {
                StoredCall::new((def, attrs), [storage, result], (inputs, outputs), context_of(call, inputs))
                    .map(|found| Treatment::Kernel(Arc::new(found)))
                    .map_err(|e| described(e, call, (def, attrs), inputs))
            }
            Choice::Dense | Choice::Warned => Ok(Treatment::Dense(result)),
        }
    }

    fn run(
        self,
        call: &Invocation<'_>,
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
        dense: RunDense<'_>,
    ) -> Result<Arrays, OpError> {
        match self {
            Treatment::Kernel(stored) => stored.run(call, inputs, outputs),
            Treatment::Dense(result) => run_dense(call, result, inputs, outputs, dense),
        }
    }
}

/// Says of an error which call it comes from.
pub(super) fn described(
    error: OpError,
    call: &Invocation<'_>,
    (def, attrs): (&'static OpDef, &Attrs),
    inputs: &[&NDArray],
) -> OpError {
    let types: SmallVec<[TensorType; 4]> = inputs.iter().map(|a| a.tensor_type()).collect();
    describe_inputs(error.op(def.name).attrs(attrs.pairs()), types.iter()).device(call.context.to_string())
}

/// Decides what happens to a call.
pub(super) fn chosen(def: &OpDef, attrs: &Attrs, inputs: &[&NDArray], outputs: Option<&[&NDArray]>) -> Choice {
    let stored: SmallVec<[StorageType; 4]> = inputs.iter().map(|a| a.storage_type()).collect();
    let types: SmallVec<[TensorType; 4]> = inputs.iter().map(|a| a.tensor_type()).collect();
    choose_storage(def, attrs, &stored, &types, outputs.and_then(|out| Some(out.first()?.storage_type())))
}

pub(super) fn only<'a, 'b>(outputs: &'a mut [StoredOutput<'b>]) -> Result<&'a mut StoredOutput<'b>, OpError> {
    outputs.first_mut().ok_or_else(crate::definition::wrong_arity)
}

/// Runs the operator for dense arrays on dense copies, and stores its results as the arrays of `out=`
/// are.
fn run_dense(
    call: &Invocation<'_>,
    result: StorageType,
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
    run: RunDense<'_>,
) -> Result<Arrays, OpError> {
    let dense = |array: &&NDArray| {
        if array.is_sparse() { to_storage(array, StorageType::Default) } else { Ok((*array).clone()) }
    };
    let copies = inputs.iter().map(dense).collect::<Result<SmallVec<[NDArray; 4]>, OpError>>()?;
    let copies: SmallVec<[&NDArray; 4]> = copies.iter().collect();
    let blank = |array: &&NDArray| {
        if array.is_sparse() {
            NDArray::new(call.engine, array.context(), array.tensor_type())
        } else {
            Ok((*array).clone())
        }
    };
    let targets = outputs.map(|out| out.iter().map(blank).collect::<Result<SmallVec<[NDArray; 2]>, OpError>>());
    let targets = targets.transpose()?;
    let targets: Option<SmallVec<[&NDArray; 2]>> = targets.as_ref().map(|made| made.iter().collect());
    let made = run(&copies, targets.as_deref())?;
    let Some(outputs) = outputs else {
        return match result.is_sparse() {
            true => made.iter().map(|array| to_storage(array, result)).collect(),
            false => Ok(made),
        };
    };
    for (from, to) in made.iter().zip(outputs).filter(|(_, to)| to.is_sparse()) {
        convert_into(from, to)?;
    }
    Ok(outputs.iter().map(|a| (*a).clone()).collect())
}

/// A copy of an array in another storage, or in the same one.
#[cfg_attr(debug_assertions, track_caller)]
pub fn to_storage(array: &NDArray, storage: StorageType) -> Result<NDArray, OpError> {
    stored_on(array, array.context(), storage)
}

#[cfg_attr(debug_assertions, track_caller)]
pub(super) fn stored_on(array: &NDArray, context: Context, storage: StorageType) -> Result<NDArray, OpError> {
    let made = NDArray::new_stored(array.engine(), context, array.tensor_type(), storage)?;
    convert_into(array, &made)?;
    Ok(made)
}

pub(super) fn is_on_device(array: &NDArray) -> bool {
    array.context().device().is_some()
}

/// The context where operators on sparse arrays run: no device has kernels for them.
pub(super) fn home(context: Context) -> Context {
    if context.device().is_some() { Context::cpu(0) } else { context }
}

/// An array of the host, or a copy there of one on a device.
pub(super) fn on_host(array: &NDArray) -> Result<NDArray, OpError> {
    if is_on_device(array) { array.copy_to_context(Context::cpu(0)) } else { Ok(array.clone()) }
}

/// Overwrites an array as [`convert_into`], where one or both are on a device.
fn convert_across(from: &NDArray, to: &NDArray) -> Result<(), OpError> {
    let same_storage = from.storage_type() == to.storage_type();
    if !is_on_device(to) {
        return convert_into(&on_host(from)?, to);
    }
    if same_storage && to.is_sparse() {
        return to.overwrite_on_device(from);
    }
    if same_storage {
        return copy_region(to, Region::whole(to.shape()), from, Region::whole(from.shape()));
    }
    let made = NDArray::new_stored(to.engine(), Context::cpu(0), to.tensor_type(), to.storage_type())?;
    convert_into(&on_host(from)?, &made)?;
    convert_across(&made, to)
}

/// Overwrites an array with the elements of another one of the same type, in the storage that it
/// has. They may be on different devices. Between csr and row_sparse the way is that of dense arrays.
#[cfg_attr(debug_assertions, track_caller)]
pub fn convert_into(from: &NDArray, to: &NDArray) -> Result<(), OpError> {
    if from.tensor_type() != to.tensor_type() {
        let message = format!("an array of {} can't be copied to one of {}", from.tensor_type(), to.tensor_type());
        return Err(OpError::new(FailureKind::Shape, message).op("cast_storage"));
    }
    if is_on_device(from) || is_on_device(to) {
        return convert_across(from, to);
    }
    let (stored, wanted) = (from.storage_type(), to.storage_type());
    if stored.is_sparse() && wanted.is_sparse() && stored != wanted {
        return convert_into(&to_storage(from, StorageType::Default)?, to);
    }
    let def = registry().get("cast_storage").ok_or_else(crate::definition::wrong_arity)?;
    let attrs = def.parse_attrs([("stype", wanted.name())])?;
    let spec = Launch { name: def.name.into(), inputs: &[from], outputs: &[to], cost: cost(&[from], to) };
    launch_stored(from.engine(), spec, move |ctx, inputs, outputs| {
        let (par, options, output) = (EnginePar(ctx), KernelOptions::default(), only(outputs)?);
        let call = SparseCall { def, attrs: &attrs, options, par: &par, engine: ctx.engine(), inputs };
        convert(&call, call.first()?, output).map_err(|e| e.op(def.name))
    });
    Ok(())
}
