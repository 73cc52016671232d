//! `ModelInfer`.

use super::call::{GrpcCall, PREFIX, Payload, Reply, set_length};
use super::generated::inference as wire;
use super::models::version;
use super::request::{Head, InferRequest};
use crate::account::Account;
use crate::answers::Answers;
use crate::background::{JobKind, LONG, LONG_COPY};
use crate::body::room;
use crate::model::Model;
use crate::protocol::datatype_of;
use crate::refusal::Refusal;
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
    inference.end(result.as_ref().err());
    result.map(Reply::Message)
}

async fn whole(call: &mut GrpcCall, inference: &mut Inference) -> Result<Payload, Refusal> {
    // The model is known only after the whole message has arrived.
    call.shared.service.check_open()?;
    let message = call.only_bytes().await?;
    let head = Head::read(&message)?;
    let model = inference.choose(head.model, version(head.version)).await?;
    let id = head.id.to_owned();
    inference.account().add(id.len())?;
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
    let results = inference.compute(decoded.arrays, schedule).await?;
    let job = Encode { model, id, results, wanted: decoded.wanted, answers: call.shared.service.answers.clone() };
    if job.bytes() > LONG_COPY {
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

/// Decoded request that fits its model.
struct Decoded {
    schedule: Schedule,
    arrays: Vec<NDArray>,
    /// numbers of the wanted outputs
    wanted: Vec<usize>,
}

impl Decode {
    fn run(&self, message: Bytes) -> Result<Decoded, Refusal> {
        let began = Instant::now();
        let request = InferRequest::read(&message, self.model.most())?;
        let inputs = request.inputs.iter().map(|input| (input.name, &input.tensor));
        let signature = self.model.signature(inputs, request.outputs.as_deref())?;
        let mut arrays: Vec<Option<NDArray>> = vec![None; self.model.inputs.len()];
        for (place, number) in signature.inputs.iter().enumerate() {
            request.check_size(place)?;
            let tensor = request.inputs[place].tensor.clone();
            let bytes = tensor.bytes();
            self.account.add(bytes)?;
            let mut block = memory(&self.service, bytes)?;
            request.elements(place, &mut block.as_mut_slice()[..bytes])?;
            arrays[*number] = Some(array(&self.service, tensor, block)?);
        }
        self.model.metrics.decode.add(began.elapsed());
        let arrays = arrays.into_iter().flatten().collect();
        Ok(Decoded { schedule: request.schedule, arrays, wanted: signature.outputs })
    }
}

/// Results to be encoded as a response.
struct Encode {
    model: Arc<Model>,
    id: String,
    results: Vec<NDArray>,
    wanted: Vec<usize>,
    answers: Arc<Answers>,
}

impl Encode {
    fn bytes(&self) -> usize {
        self.results.iter().map(|array| array.tensor_type().bytes()).sum()
    }

    /// Encodes the response with its prefix. The bytes of outputs are copied once, after the other
    /// fields.
    fn run(self) -> Result<Payload, Refusal> {
        let began = Instant::now();
        let Encode { model, id, results, wanted, answers } = self;
        let mut guards = Vec::with_capacity(wanted.len());
        let mut head = wire::ModelInferResponse {
            model_name: model.name.clone(),
            model_version: model.version.clone(),
            id,
            ..Default::default()
        };
        for number in &wanted {
            let lacking = || Refusal::failed(format!("the model made {} outputs", results.len()));
            let guard = results.get(*number).ok_or_else(lacking)?.read().map_err(|e| Refusal::failed(e.to_string()))?;
            let tensor = guard.tensor();
            let shape: &[usize] = tensor.shape;
            head.outputs.push(wire::model_infer_response::InferOutputTensor {
                name: model.outputs[*number].name.clone(),
                datatype: datatype_of(tensor.dtype).to_owned(),
                shape: shape.iter().map(|extent| *extent as i64).collect(),
                ..Default::default()
            });
            guards.push(guard);
        }
        let field = |bytes: &[u8]| key_len(RAW_OUTPUTS) + encoded_len_varint(bytes.len() as u64) + bytes.len();
        let size = head.encoded_len() + guards.iter().map(|guard| field(guard.tensor().bytes())).sum::<usize>();
        if u32::try_from(size).is_err() {
            return Err(Refusal::failed(format!("the answer has {size} bytes, more than a message can have")));
        }
        let charge = answers.reserve(PREFIX + size)?;
        let mut message = Vec::new();
        room(&mut message, PREFIX + size)?;
        message.resize(PREFIX, 0);
        head.encode_raw(&mut message);
        for guard in &guards {
            let tensor = guard.tensor();
            encode_key(RAW_OUTPUTS, WireType::LengthDelimited, &mut message);
            encode_varint(tensor.bytes().len() as u64, &mut message);
            message.extend_from_slice(tensor.bytes());
        }
        set_length(&mut message);
        model.metrics.encode.add(began.elapsed());
        Ok(Payload { bytes: message, charge: Some(charge) })
    }
}
