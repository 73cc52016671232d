//! `ModelInfer`.

use super::call::{GrpcCall, PREFIX, Payload, Reply, set_length};
use super::generated::inference as wire;
use super::models::version;
use super::request::{Head, InferRequest};
use crate::account::Account;
use crate::answers::Answers;
use crate::background::{JobKind, LONG, LONG_COPY};
use crate::body::room;
use crate::hooks::HookArray;
use crate::model::{Model, NamedOutput};
use crate::protocol::WireTensor;
use crate::refusal::Refusal;
use crate::service::hooked::{self, ServedOutputs};
use crate::service::{Inference, Schedule, Service, array, memory};
use hyper::body::Bytes;
use mxrt_tensor::NDArray;
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of the field `raw_output_contents` of a response.
const RAW_OUTPUTS: u32 = 6;

pub(super) async fn answer(mut call: GrpcCall) -> Result<Reply, Refusal> {
    let mut inference = call.shared.service.begin(call.began);
    inference.traced(&call.headers);
    call.body.pays(inference.account())?;
    let result = whole(&mut call, &mut inference).await;
    let begun = inference.end(result.as_ref().err());
    result.map(|payload| Reply::Message(Payload { begun, ..payload }))
}

async fn whole(call: &mut GrpcCall, inference: &mut Inference) -> Result<Payload, Refusal> {
    // The model is known only after the whole message has arrived.
    call.shared.service.check_open()?;
    let message = call.only_bytes().await?;
    let head = Head::read(&message)?;
    let model = inference.choose(head.model, version(head.version)).await?;
    inference.account().add(head.id.len())?;
    let id = head.id.to_owned();
    inference.named(Some(id.as_str()).filter(|id| !id.is_empty()));
    let job =
        Decode { service: call.shared.service.clone(), model: model.clone(), account: inference.account().clone() };
    let (read_bytes, timeout) = (head.read_bytes, call.timeout);
    let decoded = if read_bytes > LONG || message.len() > LONG_COPY {
        let of_call = Schedule { timeout, ..Schedule::default() };
        inference.admit(of_call)?;
        inference.background(JobKind::Coding, of_call, move || job.run(message)).await?
    } else {
        job.run(message)?
    };
    call.body.forget();
    let schedule = Schedule { timeout: sooner(decoded.schedule.timeout, timeout), ..decoded.schedule };
    let arrays = match decoded.inputs {
        Tensors::Arrays(arrays) => arrays,
        Tensors::ForHook(tensors) => hooked::decode(&call.shared.service, inference, &model, schedule, tensors).await?,
    };
    let results = inference.compute(arrays, schedule).await?;
    let results = hooked::encode(&call.shared.service, inference, &model, schedule, results).await?;
    let job = Encode { model, id, results, wanted: decoded.wanted, answers: call.shared.service.answers.clone() };
    if job.results.bytes() > LONG_COPY {
        inference.background(JobKind::Coding, schedule, move || job.run()).await
    } else {
        job.run()
    }
}

/// Returns the shorter of two time limits.
fn sooner(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    [one, other].into_iter().flatten().min()
}

/// Message to be decoded for a model.
struct Decode {
    service: Arc<Service>,
    model: Arc<Model>,
    account: Account,
}

/// Inputs of a request: those of the model, or tensors for its hook.
enum Tensors {
    Arrays(Vec<NDArray>),
    ForHook(Vec<HookArray>),
}

/// Decoded request that fits its model.
struct Decoded {
    schedule: Schedule,
    inputs: Tensors,
    wanted: Vec<NamedOutput>,
}

impl Decode {
    fn run(&self, message: Bytes) -> Result<Decoded, Refusal> {
        let began = Instant::now();
        let request = InferRequest::read(&message, self.model.offered.most())?;
        let inputs = request.inputs.iter().map(|input| (input.name, input.tensor.clone()));
        let signature = self.model.signature(inputs, request.outputs.as_deref())?;
        let inputs = if self.model.decodes {
            let tensors = (0..request.inputs.len()).map(|place| self.for_hook(&request, place));
            Tensors::ForHook(tensors.collect::<Result<_, Refusal>>()?)
        } else {
            Tensors::Arrays(self.arrays(&request, &signature.inputs)?)
        };
        self.model.metrics.decode.add(began.elapsed());
        Ok(Decoded { schedule: request.schedule, inputs, wanted: signature.outputs })
    }

    /// Makes the arrays of the inputs of the model, in its order.
    fn arrays(&self, request: &InferRequest<'_>, numbers: &[usize]) -> Result<Vec<NDArray>, Refusal> {
        let mut arrays: Vec<Option<NDArray>> = vec![None; self.model.inputs.len()];
        for (place, number) in numbers.iter().enumerate() {
            request.check_size(place)?;
            let tensor = request.inputs[place].tensor.numbers();
            let tensor = tensor.ok_or_else(|| Refusal::failed("an input of a model has strings"))?;
            let bytes = tensor.bytes();
            self.account.add(bytes)?;
            let mut block = memory(&self.service, bytes)?;
            request.elements(place, &mut block.as_mut_slice()[..bytes])?;
            arrays[*number] = Some(array(&self.service, tensor, block)?);
        }
        Ok(arrays.into_iter().flatten().collect())
    }

    /// Makes a tensor for a hook.
    fn for_hook(&self, request: &InferRequest<'_>, place: usize) -> Result<HookArray, Refusal> {
        request.check_size(place)?;
        let input = &request.inputs[place];
        let WireTensor { datatype, shape } = &input.tensor;
        let mut bytes = Vec::new();
        match input.tensor.numbers() {
            Some(tensor) => {
                self.account.add(tensor.bytes())?;
                room(&mut bytes, tensor.bytes())?;
                bytes.resize(tensor.bytes(), 0);
                request.elements(place, &mut bytes)?;
            }
            None => {
                let most = request.most_bytes(place);
                self.account.add(most)?;
                room(&mut bytes, most)?;
                request.strings(place, &mut bytes)?;
            }
        }
        Ok(HookArray { name: input.name.to_owned(), datatype: *datatype, shape: shape.to_vec(), bytes })
    }
}

/// Results to be encoded as a response.
struct Encode {
    model: Arc<Model>,
    id: String,
    results: ServedOutputs,
    wanted: Vec<NamedOutput>,
    answers: Arc<Answers>,
}

impl Encode {
    /// Encodes the response with its prefix. The bytes of outputs are copied once, after the other
    /// fields.
    fn run(self) -> Result<Payload, Refusal> {
        let began = Instant::now();
        let Encode { model, id, results, wanted, answers } = self;
        let mut outputs = Vec::with_capacity(wanted.len());
        let mut head = wire::ModelInferResponse {
            model_name: model.name.clone(),
            model_version: model.version.clone(),
            id,
            ..Default::default()
        };
        for named in &wanted {
            let output = results.read(named.number)?;
            head.outputs.push(wire::model_infer_response::InferOutputTensor {
                name: model.offered.name_of(*named).to_owned(),
                datatype: output.datatype().name().to_owned(),
                shape: output.shape().iter().map(|extent| *extent as i64).collect(),
                ..Default::default()
            });
            outputs.push(output);
        }
        let field = |bytes: &[u8]| key_len(RAW_OUTPUTS) + encoded_len_varint(bytes.len() as u64) + bytes.len();
        let size = head.encoded_len() + outputs.iter().map(|output| field(output.bytes())).sum::<usize>();
        if u32::try_from(size).is_err() {
            return Err(Refusal::failed(format!("the answer has {size} bytes, more than a message can have")));
        }
        let charge = answers.reserve(PREFIX + size)?;
        let mut message = Vec::new();
        room(&mut message, PREFIX + size)?;
        message.resize(PREFIX, 0);
        head.encode_raw(&mut message);
        for output in &outputs {
            encode_key(RAW_OUTPUTS, WireType::LengthDelimited, &mut message);
            encode_varint(output.bytes().len() as u64, &mut message);
            message.extend_from_slice(output.bytes());
        }
        set_length(&mut message);
        model.metrics.encode.add(began.elapsed());
        Ok(Payload { bytes: message, charge: Some(charge), begun: None })
    }
}
