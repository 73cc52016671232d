//! Inference.

use super::Call;
use crate::body::{RequestBody, too_large};
use crate::model::Model;
use crate::protocol::numbers;
use crate::protocol::request::{Content, InferRequest};
use crate::protocol::response::{InferResponse, OutputTensor};
use crate::refusal::{Outcome, Refusal};
use crate::server::{Answer, Shared};
use hyper::header::CONTENT_ENCODING;
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};
use mxrt_engine::memory::Block;
use mxrt_graph::CallOptions;
use mxrt_tensor::{Context, NDArray, TensorType};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// JSON of more bytes is read and written by a thread that may take its time.
const LONG_JSON: usize = 32 << 10;
const JSON_BYTES: &str = "inference-header-content-length";
/// The priority of requests that say none, in the protocol's order.
const USUAL_PRIORITY: i32 = 5;

pub(super) async fn answer(call: Call) -> Result<Answer, Refusal> {
    let mut ending = Ending { call_began: Instant::now(), shared: call.shared.clone(), model: None, outcome: None };
    let result = inference(call, &mut ending).await;
    ending.outcome = Some(result.as_ref().map_or_else(|refusal| refusal.outcome, |_| Outcome::Success));
    result
}

/// Counts a request when it ends. One that is dropped before has lost its client.
struct Ending {
    call_began: Instant,
    shared: Arc<Shared>,
    model: Option<Arc<Model>>,
    outcome: Option<Outcome>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let metrics = self.model.as_ref().map_or(&self.shared.nameless, |model| &model.metrics);
        metrics.ended(self.outcome.unwrap_or(Outcome::Cancelled), self.call_began.elapsed());
    }
}

async fn inference(call: Call, ending: &mut Ending) -> Result<Answer, Refusal> {
    let Call { shared, request, model: name, version } = call;
    // Before the look, so that the end waits for what has passed it.
    let _begun = shared.begin();
    if shared.is_draining() {
        return Err(Refusal::draining());
    }
    let (head, body) = request.into_parts();
    let mut body = RequestBody::new(body, &shared.config, shared.queue.receive())?;
    let result = from_body(&shared, &head, &mut body, (name, version), ending).await;
    if result.as_ref().is_err_and(|refusal| !refusal.close) {
        body.pass_over().await;
    }
    result
}

async fn from_body(
    shared: &Arc<Shared>,
    head: &Parts,
    body: &mut RequestBody,
    (name, version): (Option<String>, Option<String>),
    ending: &mut Ending,
) -> Result<Answer, Refusal> {
    let model = shared.repository.find(name.as_deref().unwrap_or_default(), version.as_deref())?.clone();
    ending.model = Some(model.clone());
    shared.queue.check()?;
    if let Some(encoding) = head.headers.get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        let message = format!("the content encoding {encoding:?} is not supported: send the body as it is");
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Outcome::Invalid, message));
    }
    let json_bytes = json_bytes(&head.headers, body)?;
    let json = body.take(json_bytes).await?;
    let job = Decode {
        model: model.clone(),
        json,
        announced: body.announced().filter(|_| json_bytes.is_some()),
        alone: json_bytes.is_none(),
        limit: shared.config.max_body as u64,
    };
    let decoded = if job.json.len() > LONG_JSON { in_background(move || job.run()).await? } else { job.run()? };
    let options = decoded.options(shared, ending.call_began);
    let deadline = options.deadline;
    let wanted = decoded.wanted;
    let id = decoded.id;
    let mut arrays: Vec<Option<NDArray>> = vec![None; model.inputs.len()];
    for (number, tensor, content) in decoded.inputs {
        arrays[number] = Some(match content {
            Received::Array(array) => array,
            Received::Binary(block) => received(&model, tensor, block, body).await?,
        });
    }
    body.end().await?;
    body.held.admit()?;
    let began = Instant::now();
    let running = model.call(arrays.into_iter().flatten().collect(), options);
    let results = match deadline {
        None => running.await,
        Some(deadline) => timeout_at(deadline.into(), running).await.unwrap_or_else(|_| Err(Refusal::late())),
    }?;
    model.metrics.compute.add(began.elapsed());
    shared.queue.took(began.elapsed());
    let job = Encode { model, id, results, wanted };
    if job.json_bytes() > LONG_JSON { in_background(move || job.run()).await } else { job.run() }
}

/// Runs what takes long elsewhere, so that other connections go on.
async fn in_background<T: Send + 'static>(
    job: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(job).await.unwrap_or_else(|error| {
        Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, Outcome::Failed, error.to_string()))
    })
}

/// Bytes of the JSON in front of binary data; none if the body is JSON alone.
fn json_bytes(headers: &HeaderMap, body: &RequestBody) -> Result<Option<usize>, Refusal> {
    let mut given = headers.get_all(JSON_BYTES).iter();
    let Some(value) = given.next() else { return Ok(None) };
    let parsed = value.to_str().ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    let parsed: Option<usize> = parsed.and_then(|text| text.parse().ok());
    match (parsed, body.announced()) {
        (Some(bytes), announced) if given.next().is_none() && announced.is_none_or(|all| bytes as u64 <= all) => {
            Ok(Some(bytes))
        }
        _ => {
            let message = format!("Inference-Header-Content-Length is {value:?}; expected the bytes of the JSON");
            Err(Refusal::invalid(message))
        }
    }
}

/// Memory that the binary data of an input is read into.
async fn received(
    model: &Model,
    tensor: TensorType,
    mut block: Block,
    body: &mut RequestBody,
) -> Result<NDArray, Refusal> {
    let bytes = tensor.bytes();
    body.read_into(&mut block.as_mut_slice()[..bytes]).await?;
    if tensor.dtype == mxrt_tensor::DType::Bool && block.as_slice()[..bytes].iter().any(|byte| *byte > 1) {
        return Err(Refusal::invalid("an input of type BOOL has a byte that is neither 0 nor 1"));
    }
    NDArray::from_block(model.engine(), Context::cpu(0), tensor, block).map_err(|e| Refusal::of_call(&e))
}

/// The JSON of a request, to be read for a model.
struct Decode {
    model: Arc<Model>,
    json: Vec<u8>,
    /// bytes of the whole body, where binary data may follow the JSON and the head says it
    announced: Option<u64>,
    /// the body is JSON alone
    alone: bool,
    /// bytes of the largest body
    limit: u64,
}

enum Received {
    Array(NDArray),
    Binary(Block),
}

/// A request whose JSON fits its model.
struct Decoded {
    id: Option<String>,
    priority: u8,
    timeout: Option<u64>,
    /// number, type and content of each input, in the order of binary data
    inputs: Vec<(usize, TensorType, Received)>,
    /// numbers of outputs, and whether they are binary
    wanted: Vec<(usize, bool)>,
}

impl Decode {
    fn run(&self) -> Result<Decoded, Refusal> {
        let began = Instant::now();
        let model = &self.model;
        let request = InferRequest::parse(&self.json).map_err(Refusal::invalid)?;
        let mut numbers = Vec::with_capacity(request.inputs.len());
        for input in &request.inputs {
            numbers.push(model.input(&input.name, &input.tensor)?);
        }
        if let Some(lacking) = (0..model.inputs.len()).find(|number| !numbers.contains(number)) {
            return Err(Refusal::invalid(format!("the input '{}' is missing", model.inputs[lacking].name)));
        }
        let wanted = match &request.outputs {
            None => (0..model.outputs.len()).map(|number| (number, request.binary_outputs)).collect(),
            Some(outputs) => {
                let mut wanted = Vec::with_capacity(outputs.len());
                for output in outputs {
                    let number = model.output(&output.name)?;
                    if wanted.iter().any(|(other, _)| *other == number) {
                        return Err(Refusal::invalid(format!("the output '{}' is wanted twice", output.name)));
                    }
                    wanted.push((number, output.binary.unwrap_or(request.binary_outputs)));
                }
                wanted
            }
        };
        self.check_length(&request)?;
        let mut inputs = Vec::with_capacity(numbers.len());
        for (number, input) in numbers.into_iter().zip(&request.inputs) {
            let bytes = input.tensor.bytes();
            let mut block = model.engine().memory().alloc(bytes).map_err(|error| {
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, Outcome::Memory, error.to_string()).retry_after(1)
            })?;
            let received = match input.content {
                Content::Binary(_) => Received::Binary(block),
                Content::Numbers(text) => {
                    let (dtype, shape) = (input.tensor.dtype, &input.tensor.shape);
                    numbers::read(text, dtype, shape, &mut block.as_mut_slice()[..bytes])
                        .map_err(|e| Refusal::invalid(format!("input '{}': {e}", input.name)))?;
                    let array = NDArray::from_block(model.engine(), Context::cpu(0), input.tensor.clone(), block);
                    Received::Array(array.map_err(|e| Refusal::of_call(&e))?)
                }
            };
            inputs.push((number, input.tensor.clone(), received));
        }
        model.metrics.decode.add(began.elapsed());
        Ok(Decoded { id: request.id, priority: request.priority, timeout: request.timeout, inputs, wanted })
    }

    /// Before memory is taken: whether the body is as long as the JSON says.
    fn check_length(&self, request: &InferRequest<'_>) -> Result<(), Refusal> {
        let binary = request.binary_bytes().ok_or_else(|| Refusal::invalid("the binary data sizes overflow"))?;
        if self.alone && binary > 0 {
            let message = "'binary_data_size' needs the header Inference-Header-Content-Length: the bytes of the JSON";
            return Err(Refusal::invalid(message));
        }
        let wanted = (self.json.len() as u64).checked_add(binary as u64);
        if wanted.is_none_or(|wanted| wanted > self.limit) {
            return Err(too_large(self.limit));
        }
        match self.announced {
            Some(announced) if Some(announced) != wanted => Err(Refusal::invalid(format!(
                "the body has {announced} bytes; {} of JSON and {binary} of binary data are named",
                self.json.len()
            ))),
            _ => Ok(()),
        }
    }
}

impl Decoded {
    /// Place in the queue: the request's own time, or that of the server.
    fn options(&self, shared: &Shared, began: Instant) -> CallOptions {
        let own = self.timeout.map(Duration::from_micros);
        let deadline = own.or(shared.config.deadline).and_then(|time| began.checked_add(time));
        // In the protocol 1 is served first; in the engine the highest is.
        let priority = if self.priority == 0 { 0 } else { USUAL_PRIORITY - i32::from(self.priority) };
        CallOptions { priority, deadline, ..CallOptions::default() }
    }
}

/// Results, to be written as an answer.
struct Encode {
    model: Arc<Model>,
    id: Option<String>,
    results: Vec<NDArray>,
    wanted: Vec<(usize, bool)>,
}

impl Encode {
    /// About how many bytes of JSON the answer has.
    fn json_bytes(&self) -> usize {
        const PER_NUMBER: usize = 10;
        let numbers = self.wanted.iter().filter(|(_, binary)| !binary);
        numbers.filter_map(|(number, _)| self.results.get(*number)).map(|array| array.shape().size() * PER_NUMBER).sum()
    }

    fn run(&self) -> Result<Answer, Refusal> {
        let began = Instant::now();
        let model = &self.model;
        let mut guards = Vec::with_capacity(self.wanted.len());
        for (number, binary) in &self.wanted {
            let array = self.results.get(*number).ok_or_else(|| {
                let message = format!("the model made {} outputs", self.results.len());
                Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, Outcome::Failed, message)
            })?;
            let guard = array
                .read()
                .map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, Outcome::Failed, error.to_string()))?;
            guards.push((model.outputs[*number].name.as_str(), *binary, guard));
        }
        let outputs: Vec<OutputTensor<'_>> = guards
            .iter()
            .map(|(name, binary, guard)| OutputTensor { name, tensor: guard.tensor(), binary: *binary })
            .collect();
        let written = InferResponse::write(&model.name, &model.version, self.id.as_deref(), &outputs);
        let written = written.map_err(Refusal::invalid)?;
        model.metrics.encode.add(began.elapsed());
        Ok(match written.json_bytes {
            None => Answer::text(written.body, "application/json"),
            Some(bytes) => Answer {
                headers: vec![(JSON_BYTES, bytes.to_string())],
                ..Answer::text(written.body, "application/octet-stream")
            },
        })
    }
}
