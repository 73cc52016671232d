//! Calls of a model's hooks before and after its computation, in threads that may wait.

use super::{Inference, Schedule, Service, array, memory};
use crate::account::Account;
use crate::background::JobKind;
use crate::hooks::{HookArray, HookError};
use crate::log::{Level, Log};
use crate::model::{Model, TensorInfo, TensorPart};
use crate::protocol::{Datatype, WireTensor, strings};
use crate::refusal::Refusal;
use mxrt_tensor::{NDArray, ReadGuard, Shape, TensorType};
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Runs a job in a thread that may wait. A model with hooks has a limited number of such threads,
/// and the job keeps its permit until it ends.
pub(crate) async fn run<T: Send + 'static>(
    inference: &Inference,
    model: &Model,
    schedule: Schedule,
    job: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    if model.hooks.is_none() {
        return inference.background(JobKind::Coding, schedule, job).await;
    }
    let place = inference.in_time(schedule, places(model)).await?;
    let job = move || {
        let done = job();
        drop(place);
        done
    };
    inference.background(JobKind::Hook, schedule, job).await
}

async fn places(model: &Model) -> Result<OwnedSemaphorePermit, Refusal> {
    model.hook_places.clone().acquire_owned().await.map_err(|_| Refusal::draining())
}

/// Returns the refusal for the client, and logs the part of a hook's error that is for operators.
pub(crate) fn refusal(error: HookError, model: &Model, log: &Log) -> Refusal {
    let (refusal, words) = error.refusal();
    if let Some(words) = words {
        log.model(Level::Error, &model.name, &words);
    }
    refusal
}

/// Checks an array that a hook made for the model. Without a name it is the only input.
pub(crate) fn part(model: &Model, made: HookArray) -> Result<TensorPart, HookError> {
    let name = match (model.lone_feed(), made.name.is_empty()) {
        (Some(only), true) => only.info.name.clone(),
        _ => made.name,
    };
    let Datatype::Number(dtype) = made.datatype else {
        return Err(HookError::Failed(format!("'{name}' has strings; the inputs of a model are numbers")));
    };
    model.check_made(&name, made.datatype).map_err(HookError::Failed)?;
    let tensor = TensorType::new(dtype, Shape::from(made.shape));
    if tensor.checked_bytes() != Some(made.bytes.len()) {
        let bytes = made.bytes.len();
        return Err(HookError::Failed(format!("'{name}' has {bytes} bytes, which are not those of its shape")));
    }
    Ok((name, tensor, made.bytes))
}

/// Makes the arrays of the model's own inputs, in its order. They are charged and copied.
pub(crate) fn arrays_of(
    service: &Service,
    model: &Model,
    account: &Account,
    parts: Vec<TensorPart>,
) -> Result<Vec<NDArray>, Refusal> {
    let numbers = model.own_inputs(parts.iter().map(|(name, tensor, _)| (name.as_str(), WireTensor::from(tensor))))?;
    let mut arrays: Vec<Option<NDArray>> = vec![None; model.inputs.len()];
    for (number, (_, tensor, bytes)) in numbers.into_iter().zip(parts) {
        account.add(bytes.len())?;
        let mut block = memory(service, bytes.len())?;
        block.as_mut_slice()[..bytes.len()].copy_from_slice(&bytes);
        arrays[number] = Some(array(service, tensor, block)?);
    }
    Ok(arrays.into_iter().flatten().collect())
}

/// Makes hook arrays of the outputs of a model.
pub(crate) fn outputs_of(model: &Model, results: &[NDArray]) -> Result<Vec<HookArray>, Refusal> {
    let made = |(info, array): (&TensorInfo, &NDArray)| {
        let bytes = array.to_bytes().map_err(|error| Refusal::failed(error.to_string()))?;
        let datatype = Datatype::Number(array.dtype());
        Ok(HookArray { name: info.name.clone(), datatype, shape: array.shape().to_vec(), bytes })
    };
    model.outputs.iter().zip(results).map(made).collect()
}

/// Returns the bytes of the copy that a hook gets: each string is an object there.
fn bytes_in_python(tensor: &HookArray) -> usize {
    const OF_A_STRING: usize = 64;
    let strings = match tensor.datatype {
        Datatype::Bytes => tensor.shape.iter().product(),
        Datatype::Number(_) => 0,
    };
    tensor.bytes.len().saturating_add(OF_A_STRING.saturating_mul(strings))
}

/// Lets the hook of a model make its inputs from the tensors of a request.
pub(crate) async fn decode(
    service: &Arc<Service>,
    inference: &Inference,
    model: &Arc<Model>,
    schedule: Schedule,
    tensors: Vec<HookArray>,
) -> Result<Vec<NDArray>, Refusal> {
    inference.admit(schedule)?;
    let (service, of, account) = (service.clone(), model.clone(), inference.account().clone());
    let job = move || {
        let Some(hooks) = &of.hooks else { return Err(Refusal::failed("the model has no hooks")) };
        let _copies = account.charge(tensors.iter().map(bytes_in_python).fold(0, usize::saturating_add))?;
        let log = service.repository.log();
        let made = hooks.decode(&tensors).map_err(|error| refusal(error, &of, log))?;
        let _made = account.charge(made.iter().map(|array| array.bytes.len()).sum())?;
        let parts = made.into_iter().map(|array| part(&of, array)).collect::<Result<Vec<_>, _>>();
        arrays_of(&service, &of, &account, parts.map_err(|error| refusal(error, &of, log))?)
    };
    run(inference, model, schedule, job).await
}

/// Lets the hook of a model make the tensors of the response, in the order of their declaration.
pub(crate) async fn encode(
    service: &Arc<Service>,
    inference: &Inference,
    model: &Arc<Model>,
    schedule: Schedule,
    results: Vec<NDArray>,
) -> Result<ServedOutputs, Refusal> {
    if !model.encodes {
        return Ok(ServedOutputs::Arrays(results));
    }
    let (service, of, account) = (service.clone(), model.clone(), inference.account().clone());
    let job = move || {
        let Some(hooks) = &of.hooks else { return Err(Refusal::failed("the model has no hooks")) };
        let bytes: usize = results.iter().map(|array| array.tensor_type().bytes()).sum();
        // The hook gets a copy of the copy.
        let _copies = account.charge(bytes.saturating_mul(2))?;
        let log = service.repository.log();
        let made = hooks.encode(&outputs_of(&of, &results)?).map_err(|error| refusal(error, &of, log))?;
        account.add(made.iter().map(|array| array.bytes.len()).sum())?;
        declared(&of, made).map(ServedOutputs::OfHook).map_err(|words| refusal(HookError::Failed(words), &of, log))
    };
    run(inference, model, schedule, job).await
}

/// Checks that a hook made the outputs that it declared, and puts them in their order. One array
/// without a name is the only output.
fn declared(model: &Model, made: Vec<HookArray>) -> Result<Vec<HookArray>, String> {
    let mut made = made;
    let outputs = &model.offered.outputs;
    if let ([only], [array]) = (outputs.as_slice(), made.as_mut_slice())
        && array.name.is_empty()
    {
        array.name.clone_from(&only.name);
    }
    if let Some(other) = made.iter().find(|array| outputs.iter().all(|output| output.name != array.name)) {
        return Err(format!("encode: it made '{}', which OUTPUTS does not declare", other.name));
    }
    let mut ordered = Vec::with_capacity(outputs.len());
    for output in outputs {
        let name = &output.name;
        let place = made.iter().position(|array| array.name == *name);
        let array = made.swap_remove(place.ok_or_else(|| format!("encode: it made no '{name}', a part of OUTPUTS"))?);
        if array.datatype != output.datatype || !output.has_shape(&array.shape) {
            let (got, wanted) = (array.datatype.name(), output.datatype.name());
            return Err(format!(
                "encode: '{name}' is {got} of the shape {:?}; OUTPUTS says {wanted} of {:?}",
                array.shape,
                output.extents()
            ));
        }
        check_elements(&array).map_err(|words| format!("encode: '{name}': {words}"))?;
        ordered.push(array);
    }
    match made.first() {
        Some(second) => Err(format!("encode: it made '{}' twice", second.name)),
        None => Ok(ordered),
    }
}

fn check_elements(array: &HookArray) -> Result<(), String> {
    let shape = Shape::from(array.shape.clone());
    match array.datatype {
        Datatype::Bytes => strings::check(&array.bytes, &shape),
        Datatype::Number(dtype) => {
            let fits = TensorType::new(dtype, shape).checked_bytes() == Some(array.bytes.len());
            if fits { Ok(()) } else { Err(format!("it has {} bytes, not those of its shape", array.bytes.len())) }
        }
    }
}

/// Outputs of a response: those of the model, or those that a hook made of them.
pub(crate) enum ServedOutputs {
    Arrays(Vec<NDArray>),
    OfHook(Vec<HookArray>),
}

/// Output that is ready to be written.
pub(crate) enum ReadOutput<'a> {
    Array(ReadGuard<'a>),
    OfHook(&'a HookArray),
}

impl ServedOutputs {
    fn count(&self) -> usize {
        match self {
            ServedOutputs::Arrays(arrays) => arrays.len(),
            ServedOutputs::OfHook(arrays) => arrays.len(),
        }
    }

    /// Returns the number of elements of an output, and their bytes.
    pub(crate) fn size(&self, number: usize) -> (usize, usize) {
        match self {
            ServedOutputs::Arrays(arrays) => arrays.get(number).map_or((0, 0), |array| {
                let tensor = array.tensor_type();
                (tensor.shape.size(), tensor.bytes())
            }),
            ServedOutputs::OfHook(arrays) => {
                arrays.get(number).map_or((0, 0), |array| (array.shape.iter().product(), array.bytes.len()))
            }
        }
    }

    /// Returns the bytes of all outputs.
    pub(crate) fn bytes(&self) -> usize {
        (0..self.count()).map(|number| self.size(number).1).sum()
    }

    /// Reads an output.
    pub(crate) fn read(&self, number: usize) -> Result<ReadOutput<'_>, Refusal> {
        let lacking = || Refusal::failed(format!("the model made {} outputs", self.count()));
        match self {
            ServedOutputs::Arrays(arrays) => {
                let guard = arrays.get(number).ok_or_else(lacking)?.read();
                guard.map(ReadOutput::Array).map_err(|error| Refusal::failed(error.to_string()))
            }
            ServedOutputs::OfHook(arrays) => arrays.get(number).map(ReadOutput::OfHook).ok_or_else(lacking),
        }
    }
}

impl ReadOutput<'_> {
    pub(crate) fn datatype(&self) -> Datatype {
        match self {
            ReadOutput::Array(guard) => Datatype::Number(guard.tensor().dtype),
            ReadOutput::OfHook(array) => array.datatype,
        }
    }

    pub(crate) fn shape(&self) -> Vec<usize> {
        match self {
            ReadOutput::Array(guard) => guard.tensor().shape.to_vec(),
            ReadOutput::OfHook(array) => array.shape.clone(),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            ReadOutput::Array(guard) => guard.tensor().bytes(),
            ReadOutput::OfHook(array) => &array.bytes,
        }
    }
}
