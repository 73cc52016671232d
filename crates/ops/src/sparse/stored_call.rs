//! Calls of kernels for sparse arrays: looked at once for arrays of the same types, and pushed.

use super::call::SparseCall;
use super::invoke::{Arrays, convert_into, described, home, is_on_device, on_host, only, stored_on};
use super::{SparseFamily, family};
use crate::definition::{Attrs, OpDef, infer_with_outputs, not_implemented};
use crate::execution::{EnginePar, Invocation, catch_refusal, check_call, check_context};
use mxrt_engine::ForkSafeMutex as Mutex;
use mxrt_engine::{Cost, OpError};
use mxrt_tensor::{Context, Launch, NDArray, StorageType, TensorType, describe_inputs, launch_stored};
use smallvec::SmallVec;
use std::sync::Arc;

/// An operator with a kernel for arrays of these types, as they are stored.
pub(super) struct StoredCall {
    def: &'static OpDef,
    attrs: Attrs,
    family: &'static SparseFamily,
    /// storage types and types of the inputs
    inputs: SmallVec<[(StorageType, TensorType); 3]>,
    /// storage of what the kernel makes, and of the result
    storage: [StorageType; 2],
    output: TensorType,
}

impl StoredCall {
    /// Checks inputs, and infers the type of the result. `storage` is that of what the kernel makes,
    /// and of the result.
    pub fn new(
        (def, attrs): (&'static OpDef, &Attrs),
        storage: [StorageType; 2],
        (inputs, outputs): (&[&NDArray], Option<&[&NDArray]>),
        context: Context,
    ) -> Result<StoredCall, OpError> {
        let family = family(def.name).ok_or_else(|| not_implemented("there is no kernel for sparse arrays"))?;
        check_call(def, attrs, inputs, outputs, context)?;
        let types: SmallVec<[TensorType; 4]> = inputs.iter().map(|a| a.tensor_type()).collect();
        let given: SmallVec<[TensorType; 2]> = outputs.unwrap_or(&[]).iter().map(|a| a.tensor_type()).collect();
        let mut inferred = infer_with_outputs(def, attrs, &types, &given)?;
        let (Some(output), true) = (inferred.pop(), inferred.is_empty()) else {
            return Err(not_implemented("sparse arrays with several results"));
        };
        let inputs = inputs.iter().map(|array| array.storage_type()).zip(types).collect();
        Ok(StoredCall { def, attrs: attrs.clone(), family, inputs, storage, output })
    }

    /// Whether it is for arrays of these types, without an array of `out=`.
    fn is_for(&self, inputs: &[&NDArray]) -> bool {
        let same = |(array, (storage, tensor)): (&&NDArray, &(StorageType, TensorType))| {
            array.storage_type() == *storage && array.dtype() == tensor.dtype && *array.shape() == tensor.shape
        };
        inputs.len() == self.inputs.len() && inputs.iter().zip(&self.inputs).all(same)
    }

    /// Pushes the kernel on arrays of these types.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn run(
        self: Arc<StoredCall>,
        call: &Invocation<'_>,
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
    ) -> Result<Arrays, OpError> {
        self.clone().push(call, inputs, outputs).map_err(|e| described(e, call, (self.def, &self.attrs), inputs))
    }

    #[cfg_attr(debug_assertions, track_caller)]
    fn push(
        self: Arc<StoredCall>,
        call: &Invocation<'_>,
        inputs: &[&NDArray],
        outputs: Option<&[&NDArray]>,
    ) -> Result<Arrays, OpError> {
        let ([storage, result], options) = (self.storage, call.options);
        let context = context_of(call, inputs);
        check_context(inputs, outputs, context)?;
        let target = match outputs {
            Some([out]) if out.storage_type() == storage && !is_on_device(out) => (*out).clone(),
            _ => NDArray::new_stored(call.engine, home(context), self.output.clone(), storage)?,
        };
        let copies: SmallVec<[NDArray; 4]> = match context.device() {
            Some(_) => inputs.iter().map(|array| on_host(array)).collect::<Result<_, OpError>>()?,
            None => SmallVec::new(),
        };
        let copies: SmallVec<[&NDArray; 4]> = copies.iter().collect();
        let reads = if copies.is_empty() { inputs } else { &copies };
        let spec =
            Launch { name: self.def.name.into(), inputs: reads, outputs: &[&target], cost: cost(reads, &target) };
        launch_stored(call.engine, spec, move |ctx, inputs, outputs| {
            let (par, output) = (EnginePar(ctx), only(outputs)?);
            let (def, attrs) = (self.def, &self.attrs);
            let call = SparseCall { def, attrs, options, par: &par, engine: ctx.engine(), inputs };
            let types = || self.inputs.iter().map(|(_, tensor)| tensor);
            catch_refusal(|| (self.family.run)(&call, output))
                .map_err(|e| describe_inputs(e.op(def.name).attrs(attrs.pairs()), types()))
        });
        deliver(target, context, result, outputs)
    }
}

/// The context of the result of a call.
pub(super) fn context_of(call: &Invocation<'_>, inputs: &[&NDArray]) -> Context {
    inputs.first().map_or(call.context, |a| a.context())
}

/// Memory of the last call of an operator with the same attributes.
#[derive(Default)]
pub struct LastStoredCall(Mutex<Option<Arc<StoredCall>>>);

impl LastStoredCall {
    pub(super) fn get(&self, inputs: &[&NDArray]) -> Option<Arc<StoredCall>> {
        self.0.lock().as_ref().filter(|last| last.is_for(inputs)).cloned()
    }

    pub(super) fn set(&self, last: Arc<StoredCall>) {
        let before = self.0.lock().replace(last);
        drop(before);
    }
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
pub(super) fn cost(inputs: &[&NDArray], output: &NDArray) -> Cost {
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
