//! `ModelInfer`.

use super::call::{Call, PREFIX, Reply, set_length};
use super::generated::inference as wire;
use super::models::version;
use crate::model::Model;
use crate::protocol::request::tensor_type;
use crate::protocol::{datatype_of, dtype_of, short};
use crate::refusal::{Outcome, Refusal};
use crate::service::{Inference, Schedule, array, memory};
use hyper::body::Bytes;
use mxrt_engine::memory::Block;
use mxrt_tensor::{DType, NDArray, TensorType};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use wire::infer_parameter::ParameterChoice;

/// The field `raw_output_contents` of an answer.
const RAW_OUTPUTS: u32 = 6;

type Parameters = HashMap<String, wire::InferParameter>;

pub(super) async fn answer(mut call: Call) -> Result<Reply, Refusal> {
    let mut inference = call.shared.service.begin(call.began);
    inference.traced(&call.headers);
    let result = whole(&mut call, &mut inference).await;
    inference.end(result.as_ref().map_or_else(|refusal| refusal.outcome, |_| Outcome::Success));
    result.map(Reply::Message)
}

async fn whole(call: &mut Call, inference: &mut Inference) -> Result<Vec<u8>, Refusal> {
    // Its model is known only when all of it is here.
    call.shared.service.check_ready()?;
    let request: wire::ModelInferRequest = call.only().await?;
    let model = inference.choose(&request.model_name, version(&request.model_version)).await?;
    call.body.held.of_model(&model.queue)?;
    inference.named(Some(request.id.as_str()).filter(|id| !id.is_empty()));
    let began = Instant::now();
    let tensors = request.inputs.iter().map(typed).collect::<Result<Vec<_>, _>>()?;
    let names = wanted(&request)?;
    let inputs = request.inputs.iter().zip(&tensors).map(|(input, tensor)| (input.name.as_str(), tensor));
    let signature = model.signature(inputs, names.as_deref())?;
    let contents = contents(&request, &tensors)?;
    let mut arrays: Vec<Option<NDArray>> = vec![None; model.inputs.len()];
    for ((number, tensor), content) in signature.inputs.iter().zip(tensors).zip(contents) {
        let bytes = tensor.bytes();
        let mut block = memory(&call.shared.service, bytes)?;
        content.read(&mut block, bytes, &tensor)?;
        arrays[*number] = Some(array(&call.shared.service, tensor, block)?);
    }
    model.metrics.decode.add(began.elapsed());
    let schedule = schedule(&request.parameters, call.timeout)?;
    let results = inference.compute(arrays.into_iter().flatten().collect(), schedule).await?;
    let began = Instant::now();
    let answer = encode(&model, request.id, &results, &signature.outputs)?;
    model.metrics.encode.add(began.elapsed());
    Ok(answer)
}

/// Names of the outputs that a request asks for; none: all.
fn wanted(request: &wire::ModelInferRequest) -> Result<Option<Vec<&str>>, Refusal> {
    for output in &request.outputs {
        for (name, words) in [("classification", "classification"), ("shared_memory_region", "shared memory")] {
            if output.parameters.contains_key(name) {
                let message = format!("output '{}': {words} is not supported", short(&output.name));
                return Err(Refusal::invalid(message));
            }
        }
    }
    let names = request.outputs.iter().map(|output| output.name.as_str());
    Ok((!request.outputs.is_empty()).then(|| names.collect()))
}

/// Type and shape of an input.
fn typed(input: &wire::model_infer_request::InferInputTensor) -> Result<TensorType, Refusal> {
    let wrong = |words: String| Refusal::invalid(format!("input '{}': {words}", short(&input.name)));
    if input.parameters.contains_key("shared_memory_region") {
        return Err(wrong("shared memory is not supported".to_owned()));
    }
    if input.datatype == "BYTES" {
        return Err(wrong("the type BYTES is not supported: MXNet models take numbers".to_owned()));
    }
    let dtype = dtype_of(&input.datatype);
    let dtype = dtype.ok_or_else(|| wrong(format!("unknown datatype '{}'", short(&input.datatype))))?;
    tensor_type(dtype, &input.shape).map_err(wrong)
}

/// The elements of an input.
enum Content<'a> {
    Raw(&'a Bytes),
    Typed(&'a wire::InferTensorContents, &'a str),
}

/// The elements of all inputs, in their order: raw, or typed, all or none.
fn contents<'a>(request: &'a wire::ModelInferRequest, tensors: &[TensorType]) -> Result<Vec<Content<'a>>, Refusal> {
    let raw = &request.raw_input_contents;
    if raw.is_empty() {
        return Ok(request
            .inputs
            .iter()
            .map(|input| Content::Typed(input.contents.as_ref().unwrap_or(&EMPTY), &input.name))
            .collect());
    }
    if raw.len() != request.inputs.len() {
        let message = format!("raw_input_contents has {} items for {} inputs", raw.len(), request.inputs.len());
        return Err(Refusal::invalid(message));
    }
    for ((input, tensor), bytes) in request.inputs.iter().zip(tensors).zip(raw) {
        if input.contents.is_some() {
            let message = format!("input '{}': has both 'contents' and raw_input_contents", short(&input.name));
            return Err(Refusal::invalid(message));
        }
        if bytes.len() != tensor.bytes() {
            return Err(Refusal::invalid(format!(
                "input '{}': raw_input_contents has {} bytes; type and shape make {}",
                short(&input.name),
                bytes.len(),
                tensor.bytes()
            )));
        }
    }
    Ok(raw.iter().map(Content::Raw).collect())
}

static EMPTY: wire::InferTensorContents = wire::InferTensorContents {
    bool_contents: Vec::new(),
    int_contents: Vec::new(),
    int64_contents: Vec::new(),
    uint_contents: Vec::new(),
    uint64_contents: Vec::new(),
    fp32_contents: Vec::new(),
    fp64_contents: Vec::new(),
    bytes_contents: Vec::new(),
};

impl Content<'_> {
    fn read(&self, block: &mut Block, bytes: usize, tensor: &TensorType) -> Result<(), Refusal> {
        let to = &mut block.as_mut_slice()[..bytes];
        match self {
            Content::Raw(raw) => {
                to.copy_from_slice(raw);
                Ok(())
            }
            Content::Typed(contents, name) => {
                read_typed(contents, tensor, to).map_err(|e| Refusal::invalid(format!("input '{}': {e}", short(name))))
            }
        }
    }
}

/// Reads the field of `contents` that the type has. The others must be empty.
fn read_typed(contents: &wire::InferTensorContents, tensor: &TensorType, to: &mut [u8]) -> Result<(), String> {
    let c = contents;
    let given = c.bool_contents.len()
        + c.int_contents.len()
        + c.int64_contents.len()
        + c.uint_contents.len()
        + c.uint64_contents.len()
        + c.fp32_contents.len()
        + c.fp64_contents.len()
        + c.bytes_contents.len();
    let elements = tensor.shape.size();
    let all = |field: &str, found: usize| match (found == elements, given == found) {
        (true, true) => Ok(()),
        (true, false) => Err(format!("'contents' has elements in others than '{field}'")),
        (false, _) => {
            Err(format!("'{field}' has {found} elements; the shape says {elements} of {}", datatype_of(tensor.dtype)))
        }
    };
    macro_rules! read {
        ($field:ident, $type:ty) => {{
            all(stringify!($field), c.$field.len())?;
            for (value, to) in c.$field.iter().zip(to.chunks_exact_mut(size_of::<$type>())) {
                let value = <$type>::try_from(*value)
                    .map_err(|_| format!("{value} is out of the range of {}", datatype_of(tensor.dtype)))?;
                to.copy_from_slice(&value.to_le_bytes());
            }
            Ok(())
        }};
    }
    match tensor.dtype {
        DType::Bool => {
            all("bool_contents", c.bool_contents.len())?;
            c.bool_contents.iter().zip(to).for_each(|(value, to)| *to = u8::from(*value));
            Ok(())
        }
        DType::I8 => read!(int_contents, i8),
        DType::I16 => read!(int_contents, i16),
        DType::I32 => read!(int_contents, i32),
        DType::I64 => read!(int64_contents, i64),
        DType::U8 => read!(uint_contents, u8),
        DType::U16 => read!(uint_contents, u16),
        DType::U32 => read!(uint_contents, u32),
        DType::U64 => read!(uint64_contents, u64),
        DType::F32 => read!(fp32_contents, f32),
        DType::F64 => read!(fp64_contents, f64),
        dtype => Err(format!("'contents' has no {}: use raw_input_contents", datatype_of(dtype))),
    }
}

/// A parameter that is a whole number, 0 or more.
fn whole_number(parameters: &Parameters, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(parameter) = parameters.get(name) else { return Ok(None) };
    let wrong = || Refusal::invalid(format!("the parameter '{name}' is no whole number, 0 or more"));
    match parameter.parameter_choice {
        Some(ParameterChoice::Uint64Param(value)) => Ok(Some(value)),
        Some(ParameterChoice::Int64Param(value)) => u64::try_from(value).map(Some).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

/// Place in the queue. The shorter one of the request's own time and that of its call counts.
fn schedule(parameters: &Parameters, of_call: Option<Duration>) -> Result<Schedule, Refusal> {
    let priority = u8::try_from(whole_number(parameters, "priority")?.unwrap_or(0)).ok().filter(|p| *p <= 9);
    let priority = priority
        .ok_or_else(|| Refusal::invalid("the parameter 'priority' is from 1, served first, to 9; 0 stands for 5"))?;
    let own = whole_number(parameters, "timeout")?.filter(|micros| *micros > 0).map(Duration::from_micros);
    let timeout = [own, of_call].into_iter().flatten().min();
    Ok(Schedule { priority, timeout })
}

/// The answer with its prefix. The bytes of outputs are copied once, behind the rest.
fn encode(model: &Model, id: String, results: &[NDArray], wanted: &[usize]) -> Result<Vec<u8>, Refusal> {
    let mut guards = Vec::with_capacity(wanted.len());
    let mut head = wire::ModelInferResponse {
        model_name: model.name.clone(),
        model_version: model.version.clone(),
        id,
        ..Default::default()
    };
    for number in wanted {
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
    let mut message = Vec::with_capacity(PREFIX + size);
    message.resize(PREFIX, 0);
    head.encode_raw(&mut message);
    for guard in &guards {
        let tensor = guard.tensor();
        encode_key(RAW_OUTPUTS, WireType::LengthDelimited, &mut message);
        encode_varint(tensor.bytes().len() as u64, &mut message);
        message.extend_from_slice(tensor.bytes());
    }
    set_length(&mut message);
    Ok(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxrt_tensor::Shape;

    fn read(contents: &wire::InferTensorContents, dtype: DType, elements: usize) -> Result<Vec<u8>, String> {
        let tensor = TensorType::new(dtype, Shape::new(&[elements]));
        let mut bytes = vec![0; tensor.bytes()];
        read_typed(contents, &tensor, &mut bytes).map(|()| bytes)
    }

    #[test]
    fn typed_elements_are_read_or_refused() {
        let ints = wire::InferTensorContents { int_contents: vec![-128, 127], ..Default::default() };
        assert_eq!(read(&ints, DType::I8, 2), Ok(vec![0x80, 0x7f]));
        assert_eq!(read(&ints, DType::I16, 2), Ok(vec![0x80, 0xff, 0x7f, 0]));
        assert!(read(&ints, DType::I8, 3).is_err_and(|e| e.contains("2 elements; the shape says 3")));
        assert!(read(&ints, DType::U8, 2).is_err_and(|e| e.contains("'uint_contents' has 0")));
        let large = wire::InferTensorContents { int_contents: vec![128], ..Default::default() };
        assert!(read(&large, DType::I8, 1).is_err_and(|e| e.contains("128 is out of the range of INT8")));
        let truths = wire::InferTensorContents { bool_contents: vec![true, false], ..Default::default() };
        assert_eq!(read(&truths, DType::Bool, 2), Ok(vec![1, 0]));
        let both = wire::InferTensorContents { fp32_contents: vec![1.5], ..truths };
        assert!(read(&both, DType::Bool, 2).is_err_and(|e| e.contains("others than 'bool_contents'")));
        assert!(read(&both, DType::F16, 1).is_err_and(|e| e.contains("use raw_input_contents")));
    }

    #[test]
    fn the_shorter_time_counts() {
        let number = |choice| wire::InferParameter { parameter_choice: Some(choice) };
        let of = |name: &str, choice| HashMap::from([(name.to_owned(), number(choice))]);
        let own = of("timeout", ParameterChoice::Int64Param(500));
        let time = |call| schedule(&own, call).expect("a schedule").timeout;
        assert_eq!(time(None), Some(Duration::from_micros(500)));
        assert_eq!(time(Some(Duration::from_secs(1))), Some(Duration::from_micros(500)));
        assert_eq!(time(Some(Duration::ZERO)), Some(Duration::ZERO));
        assert_eq!(schedule(&of("priority", ParameterChoice::Uint64Param(2)), None).expect("one").priority, 2);
        for wrong in
            [ParameterChoice::Uint64Param(10), ParameterChoice::Int64Param(-1), ParameterChoice::BoolParam(true)]
        {
            assert!(schedule(&of("priority", wrong), None).is_err());
        }
    }
}
