//! Request of `ModelInfer`, read in place. The model bounds what decoding costs, whatever the
//! message says.

use super::contents::{Typed, typed, typed_strings};
use super::fields::{Fields, Value, wrong};
use crate::protocol::request::{MAX_AXES, Most};
use crate::protocol::{Datatype, WireTensor, short, strings};
use crate::refusal::Refusal;
use crate::service::Schedule;
use std::time::Duration;

/// Largest number of fields of a message, without those of nested messages.
const MOST_FIELDS: usize = 1 << 16;

/// Numbers of fields, as in `proto/grpc_service.proto`.
mod number {
    pub(super) const MODEL_NAME: u32 = 1;
    pub(super) const MODEL_VERSION: u32 = 2;
    pub(super) const ID: u32 = 3;
    pub(super) const PARAMETERS: u32 = 4;
    pub(super) const INPUTS: u32 = 5;
    pub(super) const OUTPUTS: u32 = 6;
    pub(super) const RAW_INPUT_CONTENTS: u32 = 7;
    pub(super) const INPUT_NAME: u32 = 1;
    pub(super) const INPUT_DATATYPE: u32 = 2;
    pub(super) const INPUT_SHAPE: u32 = 3;
    pub(super) const INPUT_PARAMETERS: u32 = 4;
    pub(super) const INPUT_CONTENTS: u32 = 5;
    pub(super) const OUTPUT_NAME: u32 = 1;
    pub(super) const OUTPUT_PARAMETERS: u32 = 2;
    pub(super) const KEY: u32 = 1;
    pub(super) const VALUE: u32 = 2;
    pub(super) const INT64_PARAM: u32 = 2;
    pub(super) const STRING_PARAM: u32 = 3;
    pub(super) const UINT64_PARAM: u32 = 5;
}

/// Fields that name the model and the request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Head<'a> {
    pub(super) model: &'a str,
    pub(super) version: &'a str,
    pub(super) id: &'a str,
    /// bytes outside raw elements, which have to be decoded one by one
    pub(super) read_bytes: usize,
}

impl<'a> Head<'a> {
    pub(super) fn read(message: &'a [u8]) -> Result<Head<'a>, Refusal> {
        let mut head = Head { read_bytes: message.len(), ..Head::default() };
        for (count, field) in Fields(message).enumerate() {
            if count == MOST_FIELDS {
                return Err(wrong(format!("it has more than {MOST_FIELDS} fields")));
            }
            match field? {
                (number::MODEL_NAME, value) => head.model = value.text()?,
                (number::MODEL_VERSION, value) => head.version = value.text()?,
                (number::ID, value) => head.id = value.text()?,
                (number::RAW_INPUT_CONTENTS, value) => head.read_bytes -= value.message()?.len(),
                _ => {}
            }
        }
        Ok(head)
    }
}

/// Request to a model.
#[derive(Debug)]
pub(super) struct InferRequest<'a> {
    /// priority and timeout from the parameters
    pub(super) schedule: Schedule,
    pub(super) inputs: Vec<InputTensor<'a>>,
    /// names of the wanted outputs; none: all
    pub(super) outputs: Option<Vec<&'a str>>,
    raw: Vec<&'a [u8]>,
}

/// Input of a request.
#[derive(Debug)]
pub(super) struct InputTensor<'a> {
    pub(super) name: &'a str,
    pub(super) tensor: WireTensor,
    /// message of its typed elements, if it has such
    contents: Option<&'a [u8]>,
}

impl<'a> InferRequest<'a> {
    /// Decodes a request to a model that has `most` inputs and outputs.
    pub(super) fn read(message: &'a [u8], most: Most) -> Result<InferRequest<'a>, Refusal> {
        let (mut inputs, mut outputs, mut raw) = (Vec::new(), Vec::new(), Vec::new());
        let mut schedule = Schedule::default();
        let full = |list: usize, most: usize, what: &str| match list > most {
            true => Err(Refusal::invalid(format!("the message has more than {list} {what}; the model has {most}"))),
            false => Ok(()),
        };
        for field in Fields(message) {
            match field? {
                (number::PARAMETERS, value) => scheduled(value, &mut schedule)?,
                (number::INPUTS, value) => {
                    full(inputs.len(), most.inputs, "inputs")?;
                    inputs.push(InputTensor::read(value.message()?)?);
                }
                (number::OUTPUTS, value) => {
                    full(outputs.len(), most.outputs, "outputs")?;
                    outputs.push(output(value.message()?)?);
                }
                (number::RAW_INPUT_CONTENTS, value) => {
                    full(raw.len(), most.inputs, "raw_input_contents")?;
                    raw.push(value.message()?);
                }
                _ => {}
            }
        }
        let request =
            InferRequest { schedule, inputs, outputs: Some(outputs).filter(|outputs| !outputs.is_empty()), raw };
        request.check_raw()?;
        Ok(request)
    }

    /// Checks that either all inputs have raw elements of the right size, or none have raw
    /// elements.
    fn check_raw(&self) -> Result<(), Refusal> {
        if self.raw.is_empty() {
            return Ok(());
        }
        if self.raw.len() != self.inputs.len() {
            let (raw, inputs) = (self.raw.len(), self.inputs.len());
            return Err(Refusal::invalid(format!("raw_input_contents has {raw} items for {inputs} inputs")));
        }
        for (input, bytes) in self.inputs.iter().zip(&self.raw) {
            if input.contents.is_some() {
                let message = format!("input '{}': has both 'contents' and raw_input_contents", short(input.name));
                return Err(Refusal::invalid(message));
            }
            input.tensor.check_size(bytes.len()).map_err(|words| {
                Refusal::invalid(format!("input '{}': raw_input_contents has {words}", short(input.name)))
            })?;
        }
        Ok(())
    }

    /// Checks, before memory is taken, that an input has no more elements than its typed contents
    /// have bytes.
    pub(super) fn check_size(&self, place: usize) -> Result<(), Refusal> {
        let input = &self.inputs[place];
        let enough = input.tensor.shape.size() <= input.contents.map_or(0, <[u8]>::len);
        // With no room for elements they are only counted, so that the error gives their number.
        let counted = self.raw.is_empty() && !enough && input.tensor.datatype != Datatype::Bytes;
        if counted { self.elements(place, &mut []) } else { Ok(()) }
    }

    /// Writes the elements of an input to `to`.
    pub(super) fn elements(&self, place: usize, to: &mut [u8]) -> Result<(), Refusal> {
        if let Some(bytes) = self.raw.get(place) {
            to.copy_from_slice(bytes);
            return Ok(());
        }
        let input = &self.inputs[place];
        let Some(tensor) = input.tensor.numbers() else {
            return Err(Refusal::failed("strings are read as numbers"));
        };
        typed(input.contents.unwrap_or_default(), &tensor, to).map_err(|error| error.of(input.name))
    }

    /// Returns a bound on the bytes of the strings of an input in their binary form. In
    /// `bytes_contents` a string has two bytes besides its own, and four in the binary form.
    pub(super) fn most_bytes(&self, place: usize) -> usize {
        match self.raw.get(place) {
            Some(bytes) => bytes.len(),
            None => self.inputs[place].contents.map_or(0, <[u8]>::len).saturating_mul(2),
        }
    }

    /// Appends the strings of an input to `to` in their binary form.
    pub(super) fn strings(&self, place: usize, to: &mut Vec<u8>) -> Result<(), Refusal> {
        let input = &self.inputs[place];
        match self.raw.get(place) {
            Some(bytes) => to.extend_from_slice(bytes),
            None => typed_strings(input.contents.unwrap_or_default(), to).map_err(|error| error.of(input.name))?,
        }
        strings::check(to, &input.tensor.shape).map_err(|words| Typed::Wrong(words).of(input.name))
    }
}

impl<'a> InputTensor<'a> {
    fn read(message: &'a [u8]) -> Result<InputTensor<'a>, Refusal> {
        let (mut name, mut datatype, mut contents) = ("", "", None);
        let mut shape = Vec::new();
        let (mut shared, mut twice) = (false, false);
        for field in Fields(message) {
            match field? {
                (number::INPUT_NAME, value) => name = value.text()?,
                (number::INPUT_DATATYPE, value) => datatype = value.text()?,
                (number::INPUT_SHAPE, value) => value.varints(|extent| {
                    if shape.len() > MAX_AXES {
                        let message = format!("a shape has more than {MAX_AXES} axes; arrays have at most {MAX_AXES}");
                        return Err(Refusal::invalid(message));
                    }
                    shape.push(extent as i64);
                    Ok(())
                })?,
                (number::INPUT_PARAMETERS, value) => shared |= entry(value)?.0 == "shared_memory_region",
                (number::INPUT_CONTENTS, value) => twice |= contents.replace(value.message()?).is_some(),
                _ => {}
            }
        }
        let wrong = |words: String| Refusal::invalid(format!("input '{}': {words}", short(name)));
        if twice {
            return Err(wrong("has 'contents' twice".to_owned()));
        }
        if shared {
            return Err(wrong("shared memory is not supported".to_owned()));
        }
        let unknown = || wrong(format!("unknown datatype '{}'", short(datatype)));
        let datatype = Datatype::named(datatype).ok_or_else(unknown)?;
        Ok(InputTensor { name, tensor: WireTensor::new(datatype, &shape).map_err(wrong)?, contents })
    }
}

/// Reads the name of a wanted output.
fn output(message: &[u8]) -> Result<&str, Refusal> {
    let (mut name, mut refused) = ("", None);
    for field in Fields(message) {
        match field? {
            (number::OUTPUT_NAME, value) => name = value.text()?,
            (number::OUTPUT_PARAMETERS, value) => match entry(value)?.0 {
                "classification" => refused = Some("classification"),
                "shared_memory_region" => refused = Some("shared memory"),
                _ => {}
            },
            _ => {}
        }
    }
    match refused {
        Some(words) => Err(Refusal::invalid(format!("output '{}': {words} is not supported", short(name)))),
        None => Ok(name),
    }
}

/// Splits a parameter into its name and its message.
fn entry(value: Value<'_>) -> Result<(&str, &[u8]), Refusal> {
    let (mut key, mut parameter) = ("", &[][..]);
    for field in Fields(value.message()?) {
        match field? {
            (number::KEY, value) => key = value.text()?,
            (number::VALUE, value) => parameter = value.message()?,
            _ => {}
        }
    }
    Ok((key, parameter))
}

/// Takes the priority or timeout over from a parameter; ignores others.
fn scheduled(value: Value<'_>, schedule: &mut Schedule) -> Result<(), Refusal> {
    let (key, parameter) = entry(value)?;
    match key {
        "priority" => {
            let priority = u8::try_from(whole_number(key, parameter)?).ok().filter(|priority| *priority <= 9);
            let words = "the parameter 'priority' is from 1, served first, to 9; 0 stands for 5";
            schedule.priority = priority.ok_or_else(|| Refusal::invalid(words))?;
        }
        "timeout" => {
            let micros = Some(whole_number(key, parameter)?).filter(|micros| *micros > 0);
            schedule.timeout = micros.map(Duration::from_micros);
        }
        _ => {}
    }
    Ok(())
}

/// Reads a parameter as a whole number, 0 or more.
fn whole_number(name: &str, parameter: &[u8]) -> Result<u64, Refusal> {
    let mut found = None;
    for field in Fields(parameter) {
        // The last field wins, whatever its type.
        match field? {
            (number::UINT64_PARAM, value) => found = Some(value.varint()?),
            (number::INT64_PARAM, value) => found = u64::try_from(value.varint()? as i64).ok(),
            (..=number::STRING_PARAM | 4, _) => found = None,
            _ => {}
        }
    }
    found.ok_or_else(|| Refusal::invalid(format!("the parameter '{name}' is no whole number, 0 or more")))
}

#[cfg(test)]
mod tests {
    use super::super::generated::inference as wire;
    use super::*;
    use mxrt_tensor::{DType, Shape, TensorType};
    use prost::Message;
    use std::collections::HashMap;
    use wire::infer_parameter::ParameterChoice;
    use wire::model_infer_request::{InferInputTensor, InferRequestedOutputTensor};

    const MOST: Most = Most { inputs: 2, outputs: 1 };

    fn read(contents: &wire::InferTensorContents, dtype: DType, elements: usize) -> Result<Vec<u8>, String> {
        let tensor = TensorType::new(dtype, Shape::new(&[elements]));
        let mut bytes = vec![0; tensor.bytes()];
        typed(&contents.encode_to_vec(), &tensor, &mut bytes).map(|()| bytes).map_err(|error| format!("{error:?}"))
    }

    fn input(name: &str) -> InferInputTensor {
        InferInputTensor { name: name.to_owned(), datatype: "FP32".to_owned(), shape: vec![1, 2], ..Default::default() }
    }

    fn request() -> wire::ModelInferRequest {
        wire::ModelInferRequest {
            model_name: "m".to_owned(),
            model_version: "2".to_owned(),
            id: "seven".to_owned(),
            inputs: vec![input("a"), input("b")],
            outputs: vec![InferRequestedOutputTensor { name: "y".to_owned(), ..Default::default() }],
            raw_input_contents: vec![vec![1; 8].into(), vec![2; 8].into()],
            ..Default::default()
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let bytes = request().encode_to_vec();
        let read_bytes = bytes.len() - 16;
        let head = Head { model: "m", version: "2", id: "seven", read_bytes };
        assert_eq!(Head::read(&bytes).expect("a head"), head);
        let read = InferRequest::read(&bytes, MOST).expect("a request");
        assert_eq!(read.inputs.iter().map(|input| input.name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(read.inputs[0].tensor.numbers(), Some(TensorType::new(DType::F32, Shape::new(&[1, 2]))));
        assert_eq!(read.outputs, Some(vec!["y"]));
        let mut elements = [0; 8];
        read.elements(1, &mut elements).expect("elements");
        assert_eq!(elements, [2; 8]);
        for end in 1..bytes.len() {
            // A message may end after any field, but never inside of one.
            let fields: Result<Vec<_>, _> = Fields(&bytes[..end]).collect();
            if fields.is_err() {
                assert!(InferRequest::read(&bytes[..end], MOST).is_err(), "cut at {end}");
            }
        }
    }

    #[test]
    fn lists_end_at_one_more_than_the_model_has() {
        let many = wire::ModelInferRequest { inputs: vec![input("a"); 4], ..request() }.encode_to_vec();
        let error = InferRequest::read(&many, MOST).expect_err("too many").message;
        assert!(error.contains("more than 3 inputs; the model has 2"), "{error}");
        let many = wire::ModelInferRequest { raw_input_contents: vec![Default::default(); 4], ..request() };
        assert!(InferRequest::read(&many.encode_to_vec(), MOST).is_err_and(|e| e.message.contains("more than 3 raw")));
        let many = wire::ModelInferRequest { outputs: vec![Default::default(); 3], ..request() };
        assert!(InferRequest::read(&many.encode_to_vec(), MOST).is_err_and(|e| e.message.contains("more than 2 out")));
        let long = wire::ModelInferRequest { inputs: vec![Default::default(); MOST_FIELDS], ..request() };
        assert!(Head::read(&long.encode_to_vec()).is_err_and(|e| e.message.contains("65536 fields")));
        let axes = InferInputTensor { shape: vec![1; 1000], ..input("a") };
        let axes = wire::ModelInferRequest { inputs: vec![axes], ..request() };
        assert!(InferRequest::read(&axes.encode_to_vec(), MOST).is_err_and(|e| e.message.contains("32 axes")));
    }

    #[test]
    fn typed_elements_are_read_or_refused() {
        let ints = wire::InferTensorContents { int_contents: vec![-128, 127], ..Default::default() };
        assert_eq!(read(&ints, DType::I8, 2), Ok(vec![0x80, 0x7f]));
        assert_eq!(read(&ints, DType::I16, 2), Ok(vec![0x80, 0xff, 0x7f, 0]));
        assert!(read(&ints, DType::I8, 3).is_err_and(|e| e.contains("2 elements; the shape says 3")));
        assert!(read(&ints, DType::I8, 1).is_err_and(|e| e.contains("2 elements; the shape says 1")));
        assert!(read(&ints, DType::U8, 2).is_err_and(|e| e.contains("'uint_contents' has 0")));
        let large = wire::InferTensorContents { int_contents: vec![128], ..Default::default() };
        assert!(read(&large, DType::I8, 1).is_err_and(|e| e.contains("128 is out of the range of INT8")));
        let longs = wire::InferTensorContents { int64_contents: vec![-1, i64::MAX], ..Default::default() };
        let wanted = [(-1i64).to_le_bytes(), i64::MAX.to_le_bytes()].concat();
        assert_eq!(read(&longs, DType::I64, 2), Ok(wanted));
        let floats = wire::InferTensorContents { fp32_contents: vec![1.5, -2.0], ..Default::default() };
        assert_eq!(read(&floats, DType::F32, 2), Ok([1.5f32.to_le_bytes(), (-2f32).to_le_bytes()].concat()));
        let truths = wire::InferTensorContents { bool_contents: vec![true, false], ..Default::default() };
        assert_eq!(read(&truths, DType::Bool, 2), Ok(vec![1, 0]));
        let both = wire::InferTensorContents { fp32_contents: vec![1.5], ..truths };
        assert!(read(&both, DType::Bool, 2).is_err_and(|e| e.contains("others than 'bool_contents'")));
        assert!(read(&both, DType::F16, 1).is_err_and(|e| e.contains("use raw_input_contents")));
    }

    #[test]
    fn parameters_say_the_place_in_the_queue() {
        let with = |name: &str, choice: ParameterChoice| {
            let parameter = wire::InferParameter { parameter_choice: Some(choice) };
            let parameters = HashMap::from([(name.to_owned(), parameter)]);
            let bytes = wire::ModelInferRequest { parameters, ..request() }.encode_to_vec();
            InferRequest::read(&bytes, MOST).map(|request| request.schedule)
        };
        let schedule = with("timeout", ParameterChoice::Int64Param(500)).expect("a time");
        assert_eq!(schedule.timeout, Some(Duration::from_micros(500)));
        assert_eq!(with("priority", ParameterChoice::Uint64Param(2)).expect("one").priority, 2);
        assert_eq!(with("other", ParameterChoice::BoolParam(true)).expect("it is passed over").priority, 0);
        let text = ParameterChoice::StringParam("1".to_owned());
        let wrong =
            [ParameterChoice::Uint64Param(10), ParameterChoice::Int64Param(-1), ParameterChoice::BoolParam(true)];
        for wrong in wrong.into_iter().chain([text, ParameterChoice::DoubleParam(1.0)]) {
            assert!(with("priority", wrong.clone()).is_err(), "{wrong:?}");
        }
    }
}
