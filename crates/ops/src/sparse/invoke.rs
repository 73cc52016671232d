//! Imperative calls with sparse arrays.

use super::call::SparseCall;
use super::cast::convert;
use super::choice::{StorageChoice as Choice, choose_storage, result_storage};
use super::{SparseFamily, family};
use crate::definition::{Attrs, OpDef, infer_with_outputs, not_implemented, registry};
use crate::execution::{
    BoundOperatorCache, CallAttrs, EnginePar, Invocation, KernelOptions, check_call, invoke, invoke_cached,
};
use mxrt_engine::{Cost, FailureKind, OpError};
use mxrt_tensor::index::{Region, copy_region};
use mxrt_tensor::{Context, Launch, NDArray, StorageType, StoredOutput, TensorType, describe_inputs, launch_stored};
use smallvec::SmallVec;

type Arrays = SmallVec<[NDArray; 2]>;

/// Whether a call has to do with sparse arrays.
pub fn knows_storage(def: &OpDef, inputs: &[&NDArray], outputs: Option<&[&NDArray]>) -> bool {
    let any = |arrays: &[&NDArray]| arrays.iter().any(|array| array.is_sparse());
    any(inputs) || outputs.is_some_and(any) || def.name == "cast_storage"
}

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
    run_call(call, (def, &attrs), inputs, outputs, &dense)
}

/// Runs an operator with parsed attributes on arrays of which some may be sparse.
#[cfg_attr(debug_assertions, track_caller)]
pub fn invoke_parsed(
    call: &Invocation<'_>,
    def: &'static OpDef,
    attrs: &Attrs,
    inputs: &[&NDArray],
) -> Result<Arrays, OpError> {
    let dense = |inputs: &[&NDArray], outputs: Option<&[&NDArray]>| invoke(call, def, attrs, inputs, outputs);
    run_call(call, (def, attrs), inputs, None, &dense)
}

/// Runs the operator for dense arrays.
type RunDense<'a> = &'a dyn Fn(&[&NDArray], Option<&[&NDArray]>) -> Result<Arrays, OpError>;

fn run_call(
    call: &Invocation<'_>,
    (def, attrs): (&'static OpDef, &Attrs),
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
    dense: RunDense<'_>,
) -> Result<Arrays, OpError> {
    let describe = |e: OpError| {
        let types: SmallVec<[TensorType; 4]> = inputs.iter().map(|a| a.tensor_type()).collect();
        describe_inputs(e.op(def.name).attrs(attrs.pairs()), types.iter()).device(call.context.to_string())
    };
    let choice = chosen(def, attrs, inputs, outputs);
    let stored: SmallVec<[StorageType; 4]> = inputs.iter().map(|a| a.storage_type()).collect();
    let result = result_storage(def, attrs, &stored, choice);
    match choice {
        Choice::Refused(reason) => Err(describe(not_implemented(reason))),
        Choice::Kernel(storage) => match family(def.name) {
            Some(family) => {
                run_kernel(call, (def, attrs, family), [storage, result], inputs, outputs).map_err(describe)
            }
            None => Err(describe(not_implemented("there is no kernel for sparse arrays"))),
        },
        Choice::Dense | Choice::Warned => run_dense(call, result, inputs, outputs, dense),
    }
}

/// Decides what happens to a call.
pub(super) fn chosen(def: &OpDef, attrs: &Attrs, inputs: &[&NDArray], outputs: Option<&[&NDArray]>) -> Choice {
    let stored: SmallVec<[StorageType; 4]> = inputs.iter().map(|a| a.storage_type()).collect();
    let types: SmallVec<[TensorType; 4]> = inputs.iter().map(|a| a.tensor_type()).collect();
    choose_storage(def, attrs, &stored, &types, outputs.and_then(|out| Some(out.first()?.storage_type())))
}

type Operator<'a> = (&'static OpDef, &'a Attrs, &'static SparseFamily);

fn run_kernel(
    call: &Invocation<'_>,
    (def, attrs, family): Operator<'_>,
    [storage, result]: [StorageType; 2],
    inputs: &[&NDArray],
    outputs: Option<&[&NDArray]>,
) -> Result<Arrays, OpError> {
    let context = inputs.first().map_or(call.context, |a| a.context());
    check_call(def, attrs, inputs, outputs, context)?;
    let types: SmallVec<[TensorType; 4]> = inputs.iter().map(|a| a.tensor_type()).collect();
    let given: SmallVec<[TensorType; 2]> = outputs.unwrap_or(&[]).iter().map(|a| a.tensor_type()).collect();
    let inferred = infer_with_outputs(def, attrs, &types, &given)?;
    let [tensor] = &inferred[..] else { return Err(not_implemented("sparse arrays with several results")) };
    let target = match outputs {
        Some([out]) if out.storage_type() == storage && !is_on_device(out) => (*out).clone(),
        _ => NDArray::new_stored(call.engine, home(context), tensor.clone(), storage)?,
    };
    let (attrs, options, run) = (attrs.clone(), call.options, family.run);
    let at_home = inputs.iter().map(|array| on_host(array)).collect::<Result<SmallVec<[NDArray; 4]>, OpError>>()?;
    let reads: SmallVec<[&NDArray; 4]> = at_home.iter().collect();
    let spec = Launch { name: def.name.into(), inputs: &reads, outputs: &[&target], cost: cost(&reads, &target) };
    launch_stored(call.engine, spec, move |ctx, inputs, outputs| {
        let (par, output) = (EnginePar(ctx), only(outputs)?);
        let call = SparseCall { def, attrs: &attrs, options, par: &par, engine: ctx.engine(), inputs };
        run(&call, output).map_err(|e| describe_inputs(e.op(def.name).attrs(attrs.pairs()), types.iter()))
    });
    deliver(target, context, result, outputs)
}

/// The result of a kernel in the storage and the place that it should have.
fn deliver(
    made: NDArray,
    context: Context,
    result: StorageType,
    outputs: Option<&[&NDArray]>,
) -> Result<Arrays, OpError> {
    if let Some([out]) = outputs
        && !out.same_storage(&made)
    {
        convert_into(&made, out)?;
    }
    match outputs {
        Some(out) => Ok(out.iter().map(|a| (*a).clone()).collect()),
        None if made.storage_type() == result && made.context() == context => Ok([made].into_iter().collect()),
        None => Ok([stored_on(&made, context, result)?].into_iter().collect()),
    }
}

/// Bytes that a kernel reads or writes in a nanosecond, in any order.
const BYTES_PER_NS: usize = 4;

/// Estimates the cost of an operation from what is stored now.
fn cost(inputs: &[&NDArray], output: &NDArray) -> Cost {
    let bytes =
        read_bytes(inputs).map(|bytes| bytes.saturating_add(if output.is_sparse() { 0 } else { output.nbytes() }));
    bytes.map_or(Cost::Large, |bytes| Cost::of((bytes / BYTES_PER_NS) as u64))
}

/// Estimates the bytes that an operation reads. `None` if they are not known.
fn read_bytes(inputs: &[&NDArray]) -> Option<usize> {
    let row_bytes = |array: &&NDArray| array.nbytes() / array.shape().first().copied().unwrap_or(1).max(1);
    match inputs {
        // Each value of the matrix reads a row of the other arrays.
        [matrix, others @ ..] if matrix.storage_type() == StorageType::Csr => {
            let (own, size) = (matrix.estimated_bytes()?, size_of::<i64>() + matrix.dtype().size());
            Some(
                own.saturating_add(
                    others.iter().map(row_bytes).fold(0, usize::saturating_add).saturating_mul(own / size),
                ),
            )
        }
        // Rows are read that the dense array names, or that the result has.
        [first, others @ ..] if others.iter().all(|array| array.storage_type() == StorageType::RowSparse) => {
            first.estimated_bytes()
        }
        _ => inputs.iter().try_fold(0_usize, |all, array| Some(all.saturating_add(array.estimated_bytes()?))),
    }
}

fn only<'a, 'b>(outputs: &'a mut [StoredOutput<'b>]) -> Result<&'a mut StoredOutput<'b>, OpError> {
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
fn stored_on(array: &NDArray, context: Context, storage: StorageType) -> Result<NDArray, OpError> {
    let made = NDArray::new_stored(array.engine(), context, array.tensor_type(), storage)?;
    convert_into(array, &made)?;
    Ok(made)
}

fn is_on_device(array: &NDArray) -> bool {
    array.context().device().is_some()
}

/// The context where operators on sparse arrays run: no device has kernels for them.
fn home(context: Context) -> Context {
    if context.device().is_some() { Context::cpu(0) } else { context }
}

/// An array of the host, or a copy there of one on a device.
fn on_host(array: &NDArray) -> Result<NDArray, OpError> {
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
