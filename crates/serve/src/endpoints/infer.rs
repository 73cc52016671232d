//! Inference by the protocol, with JSON and binary data.

use super::EndpointCall;
use super::exchange::Exchange;
use crate::account::Account;
use crate::answer::Answer;
use crate::answers::Answers;
use crate::background::{JobKind, LONG, LONG_COPY};
use crate::body::{RequestBody, room, too_large, unwritten};
use crate::hooks::HookArray;
use crate::model::{Model, NamedOutput};
use crate::protocol::request::{Content, InferRequest, InputTensor};
use crate::protocol::response::{InferResponse, OutputTensor};
use crate::protocol::{Datatype, WireTensor, numbers, short, strings};
use crate::refusal::Refusal;
use crate::service::hooked::{self, ServedOutputs};
use crate::service::{Inference, Schedule, Service, array, memory};
use hyper::HeaderMap;
use mxrt_engine::memory::Block;
use mxrt_tensor::{NDArray, Shape, TensorType};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Largest input, in bytes, whose memory is taken before any of it has arrived.
const AT_ONCE: usize = 64 << 10;
/// Part of a larger input that must have arrived: one of this many.
const PARTS: usize = 16;
const JSON_BYTES: &str = "inference-header-content-length";
/// Content type of JSON and binary data where the contract is that of SageMaker, which passes no
/// other headers on, and its parameter for the length of the JSON.
const BINARY_JSON: &str = "application/vnd.sagemaker-triton.binary+json";
const JSON_SIZE: &str = "json-header-size";

/// Place in the head where the length of the JSON before binary data is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LengthOfJson {
    /// header of the protocol
    Header,
    /// parameter of the content type
    ContentType,
}

/// Returns whether a content type says that binary data follows JSON.
pub(super) fn is_binary_json(content_type: &str) -> bool {
    content_type.contains(BINARY_JSON)
}

pub(super) async fn answer(call: EndpointCall) -> Result<Answer, Refusal> {
    let (mut exchange, model) = Exchange::begin(call).await?;
    let result = match model {
        Ok(model) => from_body(&mut exchange, model, LengthOfJson::Header).await,
        Err(refusal) => Err(refusal),
    };
    exchange.end(result).await
}

/// Answers the request in the body of an exchange.
pub(super) async fn from_body(
    exchange: &mut Exchange,
    model: Arc<Model>,
    length: LengthOfJson,
) -> Result<Answer, Refusal> {
    let json_bytes = length.read(&exchange.head.headers, &exchange.body)?;
    let json = exchange.body.take(json_bytes).await?;
    from_json(exchange, model, length, json, json_bytes.is_none()).await
}

/// Answers a request whose JSON has been read. The JSON may be the whole body: it is `alone`.
pub(super) async fn from_json(
    exchange: &mut Exchange,
    model: Arc<Model>,
    length: LengthOfJson,
    json: Vec<u8>,
    alone: bool,
) -> Result<Answer, Refusal> {
    let Exchange { service, body, inference, .. } = exchange;
    let job = Decode {
        service: service.clone(),
        model: model.clone(),
        account: inference.account().clone(),
        json,
        announced: body.announced().filter(|_| !alone),
        alone,
        length,
        limit: service.config.max_body as u64,
    };
    let decoded = if job.json.len() > LONG {
        let of_model = Schedule::default();
        inference.admit(of_model)?;
        inference.background(JobKind::Coding, of_model, move || job.run()).await?
    } else {
        job.run()?
    };
    body.forget();
    inference.named(decoded.id.as_deref());
    let arriving = Arriving { service, inference, schedule: decoded.schedule };
    let arrays = match decoded.inputs {
        Tensors::Arrays(inputs) => arriving.arrays(body, inputs).await?,
        Tensors::ForHook(inputs) => {
            let tensors = arriving.tensors(body, inputs).await?;
            hooked::decode(service, inference, &model, decoded.schedule, tensors).await?
        }
    };
    let results = inference.compute(arrays, decoded.schedule).await?;
    let results = hooked::encode(service, inference, &model, decoded.schedule, results).await?;
    let answers = service.answers.clone();
    let job = Encode { model, id: decoded.id, results, wanted: decoded.wanted, length, answers };
    if job.bytes(false) > LONG || job.bytes(true) > LONG_COPY {
        inference.background(JobKind::Coding, decoded.schedule, move || job.run()).await
    } else {
        job.run()
    }
}

/// Request whose binary data is arriving.
struct Arriving<'a> {
    service: &'a Arc<Service>,
    inference: &'a Inference,
    schedule: Schedule,
}

impl Arriving<'_> {
    /// Reads the binary data of the inputs of a model, and puts them in its order.
    async fn arrays(
        &self,
        body: &mut RequestBody,
        inputs: Vec<(usize, TensorType, Received)>,
    ) -> Result<Vec<NDArray>, Refusal> {
        let mut arrays: Vec<Option<NDArray>> = vec![None; inputs.len()];
        for (number, tensor, content) in inputs {
            arrays[number] = Some(match content {
                Received::Array(array) => array,
                Received::Binary => {
                    let block = self.block(body, tensor.bytes()).await?;
                    let (service, bytes) = (self.service.clone(), tensor.bytes());
                    self.checked(bytes, move || array(&service, tensor, block)).await?
                }
            });
        }
        body.end().await?;
        Ok(arrays.into_iter().flatten().collect())
    }

    /// Reads the elements of an input. Memory for a large one is taken when a part of it has
    /// arrived, so that a client that announces much and sends little takes little.
    async fn block(&self, body: &mut RequestBody, bytes: usize) -> Result<Block, Refusal> {
        let first = if bytes > AT_ONCE { body.arrived(bytes / PARTS).await? } else { Vec::new() };
        let mut block = memory(self.service, bytes)?;
        let (begin, rest) = block.as_mut_slice()[..bytes].split_at_mut(first.len());
        begin.copy_from_slice(&first);
        drop(first);
        body.read_into(rest).await?;
        Ok(block)
    }

    /// Reads the binary data of tensors for a hook.
    async fn tensors(
        &self,
        body: &mut RequestBody,
        inputs: Vec<(HookArray, Option<usize>)>,
    ) -> Result<Vec<HookArray>, Refusal> {
        let mut tensors = Vec::with_capacity(inputs.len());
        for (mut tensor, size) in inputs {
            if let Some(size) = size {
                tensor.bytes = body.arrived(size).await?;
                tensor = self.checked(size, move || checked_strings(tensor)).await?;
            }
            tensors.push(tensor);
        }
        body.end().await?;
        Ok(tensors)
    }

    /// Checks bytes that have arrived: many of them in the background.
    async fn checked<T: Send + 'static>(
        &self,
        bytes: usize,
        check: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        if bytes <= LONG_COPY {
            return check();
        }
        self.inference.admit(self.schedule)?;
        self.inference.background(JobKind::Coding, self.schedule, check).await
    }
}

/// Checks that the bytes of a tensor of strings are as many strings as its shape has elements.
fn checked_strings(tensor: HookArray) -> Result<HookArray, Refusal> {
    if tensor.datatype == Datatype::Bytes {
        let wrong = |words| Refusal::invalid(format!("input '{}': {words}", short(&tensor.name)));
        strings::check(&tensor.bytes, &Shape::from(tensor.shape.clone())).map_err(wrong)?;
    }
    Ok(tensor)
}

impl LengthOfJson {
    /// Reads the length of the JSON before binary data from the head. Returns `None` if the body
    /// is only JSON.
    fn read(self, headers: &HeaderMap, body: &RequestBody) -> Result<Option<usize>, Refusal> {
        let mut given = headers.get_all(self.header()).iter();
        let Some(value) = given.next() else { return Ok(None) };
        let text = value.to_str().ok().and_then(|text| self.number(text));
        let parsed = text.filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
        let parsed: Option<usize> = parsed.and_then(|text| text.parse().ok());
        match (parsed, body.announced()) {
            (Some(bytes), announced) if given.next().is_none() && announced.is_none_or(|all| bytes as u64 <= all) => {
                Ok(Some(bytes))
            }
            _ => Err(Refusal::invalid(format!("{} is {value:?}; expected {}", self.header(), self.wanted()))),
        }
    }

    const fn header(self) -> &'static str {
        match self {
            LengthOfJson::Header => "Inference-Header-Content-Length",
            LengthOfJson::ContentType => "Content-Type",
        }
    }

    /// Returns the number in the value of the header, as text.
    fn number(self, value: &str) -> Option<&str> {
        match self {
            LengthOfJson::Header => Some(value),
            LengthOfJson::ContentType => {
                let (kind, parameter) = value.split_once(';')?;
                let (name, number) = parameter.split_once('=')?;
                (kind.trim() == BINARY_JSON && name.trim() == JSON_SIZE).then_some(number.trim())
            }
        }
    }

    /// Returns what the header has to say.
    fn wanted(self) -> String {
        match self {
            LengthOfJson::Header => "the bytes of the JSON".to_owned(),
            LengthOfJson::ContentType => format!("{BINARY_JSON};{JSON_SIZE}=N with the bytes of the JSON"),
        }
    }

    /// Makes the answer with JSON of this length, and binary data.
    fn answer(self, body: Vec<u8>, json_bytes: usize) -> Answer {
        let header = match self {
            LengthOfJson::Header => (JSON_BYTES, json_bytes.to_string()),
            LengthOfJson::ContentType => ("content-type", format!("{BINARY_JSON};{JSON_SIZE}={json_bytes}")),
        };
        Answer { headers: vec![header], ..Answer::text(body, "application/octet-stream") }
    }
}

/// JSON of a request, to be decoded for a model.
struct Decode {
    service: Arc<Service>,
    model: Arc<Model>,
    account: Account,
    json: Vec<u8>,
    /// length of the whole body, if binary data may follow the JSON and the head gives it
    announced: Option<u64>,
    /// whether the body is only JSON
    alone: bool,
    length: LengthOfJson,
    /// largest body, in bytes
    limit: u64,
}

enum Received {
    Array(NDArray),
    Binary,
}

/// Inputs of a request, in the order of their binary data.
enum Tensors {
    /// number, type and content of each input of the model
    Arrays(Vec<(usize, TensorType, Received)>),
    /// tensors for a hook, and how many bytes of binary data the empty ones have
    ForHook(Vec<(HookArray, Option<usize>)>),
}

/// Decoded request that fits its model.
struct Decoded {
    id: Option<String>,
    schedule: Schedule,
    inputs: Tensors,
    /// wanted outputs, and whether they are binary
    wanted: Vec<(NamedOutput, bool)>,
}

impl Decode {
    /// Frees the JSON at the end.
    fn run(self) -> Result<Decoded, Refusal> {
        let began = Instant::now();
        let model = &self.model;
        // Parsing copies texts out of the JSON.
        let _texts = self.account.charge(self.json.len())?;
        let request = InferRequest::parse(&self.json, model.offered.most()).map_err(Refusal::invalid)?;
        self.account.add(request.id.as_ref().map_or(0, String::len))?;
        let inputs = request.inputs.iter().map(|input| (input.name.as_str(), input.tensor.clone()));
        let names: Option<Vec<&str>> =
            request.outputs.as_ref().map(|outputs| outputs.iter().map(|output| output.name.as_str()).collect());
        let signature = model.signature(inputs, names.as_deref())?;
        let binary = |place: usize| request.outputs.as_ref().and_then(|outputs| outputs[place].binary);
        let wanted = signature.outputs.iter().enumerate();
        let wanted = wanted.map(|(i, output)| (*output, binary(i).unwrap_or(request.binary_outputs))).collect();
        self.check_length(&request)?;
        let inputs = if model.decodes {
            let tensors = request.inputs.iter().map(|input| self.for_hook(input));
            Tensors::ForHook(tensors.collect::<Result<_, Refusal>>()?)
        } else {
            let numbered = signature.inputs.iter().zip(&request.inputs);
            Tensors::Arrays(numbered.map(|(number, input)| self.array(*number, input)).collect::<Result<_, Refusal>>()?)
        };
        model.metrics.decode.add(began.elapsed());
        let timeout = request.timeout.map(Duration::from_micros);
        let schedule = Schedule { priority: request.priority, timeout };
        Ok(Decoded { id: request.id, schedule, inputs, wanted })
    }

    /// Makes the array of an input, unless it comes as binary data.
    fn array(&self, number: usize, input: &InputTensor<'_>) -> Result<(usize, TensorType, Received), Refusal> {
        let tensor = input.tensor.numbers().ok_or_else(|| Refusal::failed("an input of a model has strings"))?;
        let received = match input.content {
            Content::Binary(_) => Received::Binary,
            Content::Text(text) => {
                let bytes = tensor.bytes();
                self.account.add(bytes)?;
                let mut block = memory(&self.service, bytes)?;
                read_numbers(input, text, &tensor, &mut block.as_mut_slice()[..bytes])?;
                Received::Array(array(&self.service, tensor.clone(), block)?)
            }
        };
        Ok((number, tensor, received))
    }

    /// Makes a tensor for a hook. One that comes as binary data is empty, and has its size.
    fn for_hook(&self, input: &InputTensor<'_>) -> Result<(HookArray, Option<usize>), Refusal> {
        let WireTensor { datatype, shape } = &input.tensor;
        let mut bytes = Vec::new();
        let binary = match (input.content, input.tensor.numbers()) {
            (Content::Binary(size), _) => Some(size),
            (Content::Text(text), Some(tensor)) => {
                self.account.add(tensor.bytes())?;
                room(&mut bytes, tensor.bytes())?;
                bytes.resize(tensor.bytes(), 0);
                read_numbers(input, text, &tensor, &mut bytes)?;
                None
            }
            (Content::Text(text), None) => {
                let most = strings::bound(text, shape);
                self.account.add(most)?;
                room(&mut bytes, most)?;
                let wrong = |words| Refusal::invalid(format!("input '{}': {words}", short(&input.name)));
                strings::read(text, shape, &mut bytes).map_err(wrong)?;
                None
            }
        };
        let array = HookArray { name: input.name.clone(), datatype: *datatype, shape: shape.to_vec(), bytes };
        Ok((array, binary))
    }

    /// Checks, before more is read, that the body is as long as the JSON says.
    fn check_length(&self, request: &InferRequest<'_>) -> Result<(), Refusal> {
        let binary = request.binary_bytes().ok_or_else(|| Refusal::invalid("the binary data sizes overflow"))?;
        if self.alone && binary > 0 {
            let (header, wanted) = (self.length.header(), self.length.wanted());
            return Err(Refusal::invalid(format!("'binary_data_size' needs the header {header}: {wanted}")));
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

/// Reads the elements of an input from JSON.
fn read_numbers(input: &InputTensor<'_>, text: &str, tensor: &TensorType, to: &mut [u8]) -> Result<(), Refusal> {
    numbers::read(text, tensor.dtype, &tensor.shape, to)
        .map_err(|words| Refusal::invalid(format!("input '{}': {words}", short(&input.name))))
}

/// Results to be encoded as a response.
struct Encode {
    model: Arc<Model>,
    id: Option<String>,
    results: ServedOutputs,
    wanted: Vec<(NamedOutput, bool)>,
    length: LengthOfJson,
    answers: Arc<Answers>,
}

impl Encode {
    /// Estimates the bytes of JSON, or of binary data, in the response.
    fn bytes(&self, of_binary: bool) -> usize {
        const PER_NUMBER: usize = 10;
        let id = if of_binary { 0 } else { self.id.as_ref().map_or(0, String::len) };
        let wanted = self.wanted.iter().filter(|(_, binary)| *binary == of_binary);
        let size = |number: usize| match (self.results.size(number), self.model.offered.outputs[number].datatype) {
            ((elements, _), Datatype::Number(_)) if !of_binary => elements * PER_NUMBER,
            ((_, bytes), _) => bytes,
        };
        wanted.map(|(output, _)| size(output.number)).fold(id, usize::saturating_add)
    }

    fn run(&self) -> Result<Answer, Refusal> {
        let began = Instant::now();
        let model = &self.model;
        let mut read = Vec::with_capacity(self.wanted.len());
        for (wanted, binary) in &self.wanted {
            let output = self.results.read(wanted.number)?;
            read.push((model.offered.name_of(*wanted), *binary, output.shape(), output));
        }
        let outputs: Vec<OutputTensor<'_>> = read
            .iter()
            .map(|(name, binary, shape, output)| OutputTensor {
                name,
                datatype: output.datatype(),
                shape,
                bytes: output.bytes(),
                binary: *binary,
            })
            .collect();
        let expected = self.bytes(false) + self.bytes(true);
        let charge = self.answers.reserve(expected)?;
        let written = InferResponse::write(&model.name, &model.version, self.id.as_deref(), &outputs);
        let written = written.map_err(unwritten)?;
        let charge = Some(charge.settle(written.body.len())?);
        model.metrics.encode.add(began.elapsed());
        Ok(match written.json_bytes {
            None => Answer { charge, ..Answer::text(written.body, "application/json") },
            Some(bytes) => Answer { charge, ..self.length.answer(written.body, bytes) },
        })
    }
}
