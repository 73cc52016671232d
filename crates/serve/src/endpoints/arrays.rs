//! Conveniences beside the protocol: inference from a `.npy`, a `.npz`, or an image, and the paths
//! of MXNet Model Server.

use super::exchange::Exchange;
use super::{Call, in_background};
use crate::hooks::{HookArray, HookError, HookRequest};
use crate::log::Log;
use crate::model::{Model, TensorInfo};
use crate::preprocess::is_image;
use crate::protocol::{datatype_of, npy, numbers, short};
use crate::refusal::Refusal;
use crate::server::Answer;
use crate::service::{Schedule, Service, array, memory};
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use mxrt_tensor::{DType, NDArray, ReadGuard, Shape, TensorType};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// Classes that an answer with names has.
const CLASSES: usize = 5;

/// Name, type and elements of an input.
type Part = (String, TensorType, Vec<u8>);

/// What an answer is.
#[derive(Clone, Copy)]
enum Form {
    /// `.npy` of the one output, or `.npz` of several
    Numpy,
    /// the most probable classes by name where the model has names, or numbers
    Json,
}

/// `POST /models/{model}/infer`
pub(super) async fn infer(call: Call) -> Result<Answer, Refusal> {
    answer(call, Form::Numpy).await
}

/// `POST /predictions/{model}`
pub(super) async fn predictions(call: Call) -> Result<Answer, Refusal> {
    answer(call, Form::Json).await
}

async fn answer(call: Call, form: Form) -> Result<Answer, Refusal> {
    let (mut exchange, model) = Exchange::begin(call).await?;
    let result = match model {
        Ok(model) => from_body(&mut exchange, model, form).await,
        Err(refusal) => Err(refusal),
    };
    exchange.end(result).await
}

async fn from_body(exchange: &mut Exchange, model: Arc<Model>, form: Form) -> Result<Answer, Refusal> {
    let Exchange { service, head, body, inference } = exchange;
    let bytes = body.take(None).await?;
    let headers = for_hooks(&model, &head.headers);
    let job = Decode { service: service.clone(), model: model.clone(), headers, bytes };
    let arrays = run(service, &model, move || job.run()).await?;
    let results = inference.compute(arrays, Schedule::default()).await?;
    let (of, log) = (model.clone(), service.repository.log());
    run(service, &model, move || encode(&of, &results, form, log)).await
}

/// Runs in a thread that may wait; where hooks are called, so many at a time.
async fn run<T: Send + 'static>(
    service: &Service,
    model: &Model,
    job: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let _place = match &model.hooks {
        Some(_) => Some(service.hooks.acquire().await.map_err(|_| Refusal::draining())?),
        None => None,
    };
    in_background(job).await
}

/// Headers as hooks get them.
fn for_hooks(model: &Model, headers: &HeaderMap) -> Vec<(String, String)> {
    let header = |(name, value): (&HeaderName, &HeaderValue)| Some((name.to_string(), value.to_str().ok()?.to_owned()));
    if model.hooks.is_some() { headers.iter().filter_map(header).collect() } else { Vec::new() }
}

/// The client's part of what a hook says; the rest is written to the log.
fn refusal(error: HookError, model: &Model, log: Log) -> Refusal {
    let (refusal, words) = error.refusal();
    if let Some(words) = words {
        log.model(&model.name, &words);
    }
    refusal
}

/// A body, to be read for a model.
struct Decode {
    service: Arc<Service>,
    model: Arc<Model>,
    headers: Vec<(String, String)>,
    bytes: Vec<u8>,
}

impl Decode {
    fn run(&self) -> Result<Vec<NDArray>, Refusal> {
        let began = Instant::now();
        let parts = self.parts()?;
        let signature = self.model.signature(parts.iter().map(|(name, tensor, _)| (name.as_str(), tensor)), None)?;
        let mut arrays: Vec<Option<NDArray>> = vec![None; self.model.inputs.len()];
        for (number, (_, tensor, bytes)) in signature.inputs.into_iter().zip(parts) {
            let mut block = memory(&self.service, bytes.len())?;
            block.as_mut_slice()[..bytes.len()].copy_from_slice(&bytes);
            arrays[number] = Some(array(&self.service, tensor, block)?);
        }
        self.model.metrics.decode.add(began.elapsed());
        Ok(arrays.into_iter().flatten().collect())
    }

    /// Name, type and elements of each input.
    fn parts(&self) -> Result<Vec<Part>, Refusal> {
        if let Some(parts) = self.parts_of_hook()? {
            return Ok(parts);
        }
        if self.bytes.starts_with(b"PK") {
            let most = self.service.config.max_body;
            let arrays = npy::read_npz(&self.bytes, most).map_err(Refusal::invalid)?;
            let part = |(name, file): (String, Vec<u8>)| {
                let array = npy::read(&file).map_err(|e| Refusal::invalid(format!("'{}': {e}", short(&name))))?;
                Ok((name, array.tensor, array.bytes.to_vec()))
            };
            return arrays.into_iter().map(part).collect();
        }
        let [input] = &self.model.inputs[..] else {
            let words = "the model has several inputs: send a .npz with an array for each by name";
            return Err(Refusal::invalid(words));
        };
        if is_image(&self.bytes) {
            let preprocess = self.model.settings.preprocess.as_ref();
            let words = "the model takes no images: its setting 'preprocess' says how they become inputs";
            let preprocess = preprocess.ok_or_else(|| Refusal::invalid(words))?;
            let elements = preprocess.run(&self.bytes, input.dtype).map_err(Refusal::invalid)?;
            return Ok(vec![(input.name.clone(), preprocess.tensor(input.dtype), elements)]);
        }
        let array = npy::read(&self.bytes)
            .map_err(|error| Refusal::invalid(format!("expected a .npy, a .npz, a JPEG or a PNG: {error}")))?;
        Ok(vec![(input.name.clone(), array.tensor, array.bytes.to_vec())])
    }
}

impl Decode {
    /// The same by the model's hook; none where it has none.
    fn parts_of_hook(&self) -> Result<Option<Vec<Part>>, Refusal> {
        let Some(hooks) = &self.model.hooks else { return Ok(None) };
        let log = self.service.repository.log();
        let request = HookRequest { body: &self.bytes, headers: &self.headers };
        let made = hooks.before(&request).map_err(|error| refusal(error, &self.model, log))?;
        let Some(arrays) = made else { return Ok(None) };
        let part = |array: HookArray| {
            let tensor = TensorType::new(array.dtype, Shape::from(array.shape));
            let name = match (&self.model.inputs[..], array.name.is_empty()) {
                ([only], true) => only.name.clone(),
                _ => array.name,
            };
            if tensor.checked_bytes() != Some(array.bytes.len()) {
                let words = format!("'{name}' has {} bytes, which are not those of its shape", array.bytes.len());
                return Err(refusal(HookError::Failed(words), &self.model, log));
            }
            Ok((name, tensor, array.bytes))
        };
        arrays.into_iter().map(part).collect::<Result<_, _>>().map(Some)
    }
}

/// The answer of the model's hook; none where it has none.
fn answer_of_hook(model: &Model, results: &[NDArray], log: Log) -> Result<Option<Answer>, Refusal> {
    let Some(hooks) = &model.hooks else { return Ok(None) };
    let array = |(info, array): (&TensorInfo, &NDArray)| {
        let bytes = array.to_bytes().map_err(|error| Refusal::failed(error.to_string()))?;
        Ok(HookArray { name: info.name.clone(), dtype: array.dtype(), shape: array.shape().to_vec(), bytes })
    };
    let arrays = model.outputs.iter().zip(results).map(array).collect::<Result<Vec<_>, Refusal>>()?;
    let made = hooks.after(&arrays).map_err(|error| refusal(error, model, log))?;
    Ok(made.map(|(body, content_type)| Answer {
        headers: vec![("content-type", content_type)],
        ..Answer::text(body, "application/octet-stream")
    }))
}

fn encode(model: &Model, results: &[NDArray], form: Form, log: Log) -> Result<Answer, Refusal> {
    let began = Instant::now();
    if let Some(answer) = answer_of_hook(model, results, log)? {
        model.metrics.encode.add(began.elapsed());
        return Ok(answer);
    }
    let guards = results.iter().map(NDArray::read).collect::<Result<Vec<_>, _>>();
    let guards = guards.map_err(|error| Refusal::failed(error.to_string()))?;
    let answer = match (form, &guards[..]) {
        (Form::Numpy, [only]) => {
            let mut file = Vec::new();
            npy::write(only.tensor(), &mut file).map_err(Refusal::invalid)?;
            Answer::text(file, "application/x-npy")
        }
        (Form::Numpy, _) => {
            let arrays = model.outputs.iter().zip(&guards);
            let arrays = arrays.map(|(output, guard)| (output.name.as_str(), guard.tensor()));
            Answer::text(npy::write_npz(arrays).map_err(Refusal::invalid)?, "application/x-npz")
        }
        (Form::Json, [only]) if is_of_classes(model, only) => classes(&model.classes, only.tensor().bytes()),
        (Form::Json, _) => {
            let outputs = model.outputs.iter().zip(&guards);
            let output = |(output, guard): (&TensorInfo, &ReadGuard<'_>)| numbers_of(output, guard);
            Answer::json(&Value::Object(outputs.map(output).collect::<Result<_, Refusal>>()?))
        }
    };
    model.metrics.encode.add(began.elapsed());
    Ok(answer)
}

/// Whether an output has a number for each class that the model has a name for.
fn is_of_classes(model: &Model, output: &ReadGuard<'_>) -> bool {
    let tensor = output.tensor();
    let last = tensor.shape.last().copied();
    tensor.dtype == DType::F32 && !model.classes.is_empty() && last == Some(model.classes.len())
}

/// The most probable classes of each row, as MXNet Model Server writes them.
fn classes(names: &[String], bytes: &[u8]) -> Answer {
    let numbers: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    let row = |row: &[f32]| {
        let mut order: Vec<usize> = (0..row.len()).collect();
        order.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
        let class = |i: &usize| json!({ "probability": row[*i], "class": names[*i] });
        Value::from(order.iter().take(CLASSES).map(class).collect::<Vec<_>>())
    };
    let mut rows: Vec<Value> = numbers.chunks_exact(names.len()).map(row).collect();
    Answer::json(&if rows.len() == 1 { rows.remove(0) } else { Value::from(rows) })
}

/// Name and numbers of an output.
fn numbers_of(info: &TensorInfo, guard: &ReadGuard<'_>) -> Result<(String, Value), Refusal> {
    let tensor = guard.tensor();
    let mut text = Vec::new();
    numbers::write(tensor.bytes(), tensor.dtype, &mut text)
        .map_err(|error| Refusal::invalid(format!("output '{}': {error}", info.name)))?;
    let numbers: Value = serde_json::from_slice(&text).map_err(|error| Refusal::failed(error.to_string()))?;
    let shape: &[usize] = tensor.shape;
    Ok((info.name.clone(), json!({ "datatype": datatype_of(tensor.dtype), "shape": shape, "data": numbers })))
}
