//! JSON of an inference request.

mod reader;

use super::{Datatype, WireTensor, short};
use mxrt_tensor::{DType, Shape, TensorType};
use reader::{Object, Outline, Request, RequestInput, RequestOutput};
use std::collections::HashSet;

/// Largest number of axes of an array.
pub(crate) const MAX_AXES: usize = 32;

/// Inference request, checked as far as possible without the model.
#[derive(Debug)]
pub struct InferRequest<'a> {
    /// id that the response repeats
    pub id: Option<String>,
    /// priority from 1 to 9, where the lowest is served first; 0 stands for 5
    pub priority: u8,
    /// time for the request, in microseconds; none: that of the server's settings
    pub timeout: Option<u64>,
    /// default of `WantedOutput::binary`
    pub binary_outputs: bool,
    /// inputs, in the order of their binary data
    pub inputs: Vec<InputTensor<'a>>,
    /// wanted outputs; none: all
    pub outputs: Option<Vec<WantedOutput>>,
}

/// Input of a request.
#[derive(Debug)]
pub struct InputTensor<'a> {
    /// name of the model's input
    pub name: String,
    /// element type and shape, whose number of bytes does not overflow
    pub tensor: WireTensor,
    /// elements, or their size in the binary data
    pub content: Content<'a>,
}

/// Location of the elements of an input.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// JSON text of the elements
    Text(&'a str),
    /// number of bytes in the data after the JSON; that of the numbers, or one that strings can have
    Binary(usize),
}

/// Output that a request asks for.
#[derive(Debug)]
pub struct WantedOutput {
    /// name of the model's output
    pub name: String,
    /// whether its elements are to follow the JSON as bytes; none: as `binary_outputs` says
    pub binary: Option<bool>,
}

/// Numbers of inputs and outputs of a model. A request that names more is not read further.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// number of inputs of the model
    pub inputs: usize,
    /// number of outputs of the model
    pub outputs: usize,
}

impl<'a> InferRequest<'a> {
    /// Parses the JSON of a request to a model. The error is a message for the client.
    pub fn parse(json: &'a [u8], most: Most) -> Result<InferRequest<'a>, String> {
        let request = Request::read(json, most).map_err(|e| format!("the JSON of the request: {e}"))?;
        let priority = request.parameters.priority.unwrap_or(0);
        let priority = u8::try_from(priority).ok().filter(|p| *p <= 9);
        let priority = priority.ok_or("the parameter 'priority' is from 1, served first, to 9; 0 stands for 5")?;
        let mut inputs: Vec<InputTensor<'a>> = Vec::with_capacity(request.inputs.len());
        let mut names = HashSet::with_capacity(request.inputs.len());
        for input in request.inputs {
            let name = input.name.clone();
            if !names.insert(name.clone()) {
                return Err(format!("the input '{}' is given twice", short(&name)));
            }
            inputs.push(input.check().map_err(|e| format!("input '{}': {e}", short(&name)))?);
        }
        let wanted = |output: RequestOutput| {
            if output.parameters.classification.is_some() {
                return Err(format!("output '{}': classification is not supported", short(&output.name)));
            }
            if output.parameters.shared_memory_region.is_some() {
                return Err(format!("output '{}': shared memory is not supported", short(&output.name)));
            }
            Ok(WantedOutput { name: output.name, binary: output.parameters.binary_data })
        };
        let outputs = request.outputs.filter(|outputs| !outputs.is_empty());
        Ok(InferRequest {
            id: request.id,
            priority,
            timeout: request.parameters.timeout.filter(|micros| *micros > 0),
            binary_outputs: request.parameters.binary_data_output.unwrap_or(false),
            inputs,
            outputs: outputs.map(|outputs| outputs.into_iter().map(wanted).collect()).transpose()?,
        })
    }

    /// Returns whether JSON is such a request: an object whose `inputs` are objects with a datatype.
    pub fn is_in(json: &[u8]) -> bool {
        serde_json::from_slice::<Object<Outline>>(json).is_ok()
    }

    /// Returns the bytes of all binary inputs; `None` if the sum overflows.
    pub fn binary_bytes(&self) -> Option<usize> {
        self.inputs.iter().try_fold(0usize, |sum, input| match input.content {
            Content::Binary(bytes) => sum.checked_add(bytes),
            Content::Text(_) => Some(sum),
        })
    }
}

impl<'a> RequestInput<'a> {
    fn check(self) -> Result<InputTensor<'a>, String> {
        let unknown = || format!("unknown datatype '{}'", short(&self.datatype));
        let datatype = Datatype::named(&self.datatype).ok_or_else(unknown)?;
        let tensor = WireTensor::new(datatype, &self.shape)?;
        if self.parameters.shared_memory_region.is_some() {
            return Err("shared memory is not supported".to_owned());
        }
        let content = match (self.data, self.parameters.binary_data_size) {
            (None, None) => return Err("has neither 'data' nor 'binary_data_size'".to_owned()),
            (Some(_), Some(_)) => return Err("has both 'data' and 'binary_data_size'".to_owned()),
            (None, Some(size)) => {
                let bytes = usize::try_from(size).map_err(|_| format!("binary_data_size is {size}"))?;
                tensor.check_size(bytes).map_err(|words| format!("binary_data_size is {words}"))?;
                Content::Binary(bytes)
            }
            (Some(data), None) => {
                let text = data.get();
                // Checked before memory is taken: a comma follows each element except the last.
                let elements = tensor.shape.size();
                if elements > text.len() {
                    return Err(format!("'data' is too short for the {elements} elements that the shape says"));
                }
                Content::Text(text)
            }
        };
        Ok(InputTensor { name: self.name, tensor, content })
    }
}

/// Makes a tensor type whose number of bytes does not overflow. The error is a message for the
/// client.
pub(crate) fn tensor_type(dtype: DType, shape: &[i64]) -> Result<TensorType, String> {
    if shape.len() > MAX_AXES {
        return Err(format!("the shape has {} axes; arrays have at most {MAX_AXES}", shape.len()));
    }
    let extents: Result<Vec<usize>, _> = shape.iter().map(|extent| usize::try_from(*extent)).collect();
    let extents = extents.map_err(|_| format!("the shape {shape:?} has a negative extent"))?;
    let tensor = TensorType::new(dtype, Shape::from(extents));
    match tensor.checked_bytes() {
        Some(bytes) if isize::try_from(bytes).is_ok() => Ok(tensor),
        _ => Err(format!("an array of shape {shape:?} is larger than the address space")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: Most = Most { inputs: 2, outputs: 1 };

    const GOOD: &str = r#"{"id": "7", "parameters": {"priority": 1, "timeout": 5000, "other": [{}]},
        "inputs": [{"name": "a", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]},
                   {"name": "b", "shape": [2], "datatype": "INT64", "parameters": {"binary_data_size": 16}}],
        "outputs": [{"name": "y", "parameters": {"binary_data": true}}]}"#;

    fn with_input(text: &str) -> Result<(), String> {
        let json = format!(r#"{{"inputs": [{text}]}}"#);
        InferRequest::parse(json.as_bytes(), MOST).map(drop)
    }

    #[test]
    fn a_request_is_read_whole() {
        let request = InferRequest::parse(GOOD.as_bytes(), MOST).expect("a request");
        assert_eq!((request.id.as_deref(), request.priority, request.timeout), (Some("7"), 1, Some(5000)));
        assert!(matches!(request.inputs[0].content, Content::Text("[1, 2]")));
        assert!(matches!(request.inputs[1].content, Content::Binary(16)));
        assert_eq!(request.binary_bytes(), Some(16));
        let outputs = request.outputs.expect("outputs");
        assert_eq!((outputs[0].name.as_str(), outputs[0].binary), ("y", Some(true)));
    }

    #[test]
    fn a_request_that_is_cut_anywhere_is_an_error() {
        for end in 0..GOOD.len() {
            assert!(InferRequest::parse(&GOOD.as_bytes()[..end], MOST).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error_wherever_it_stands() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let data = format!(r#"{{"name": "a", "shape": [1], "datatype": "FP32", "data": {deep}}}"#);
        let json = format!(r#"{{"inputs": [{data}]}}"#);
        let request = InferRequest::parse(json.as_bytes(), MOST);
        if let Ok(request) = request {
            let Content::Text(text) = request.inputs[0].content else { panic!("numbers") };
            let read = super::super::numbers::read(text, DType::F32, &request.inputs[0].tensor.shape, &mut [0; 4]);
            assert!(read.is_err());
        }
        assert!(InferRequest::parse(deep.as_bytes(), MOST).is_err());
        let unknown = format!(r#"{{"other": {deep}, "inputs": []}}"#);
        drop(InferRequest::parse(unknown.as_bytes(), MOST));
    }

    #[test]
    fn sizes_that_lie_are_errors() {
        let input = |shape: &str, size: &str| {
            with_input(&format!(
                r#"{{"name": "a", "shape": {shape}, "datatype": "FP32", "parameters": {{"binary_data_size": {size}}}}}"#
            ))
        };
        assert_eq!(input("[2, 2]", "16"), Ok(()));
        for size in ["15", "-16", "0", "9223372036854775808", "18446744073709551616", "1e400", "16.5", "null"] {
            assert!(input("[2, 2]", size).is_err(), "{size}");
        }
        let shapes = ["[-1]", "[4294967296, 4294967296]", "[4611686018427387904]", "[9223372036854775808]", "[1.5]"];
        for shape in shapes {
            assert!(input(shape, "16").is_err(), "{shape}");
        }
        assert!(input(&format!("[{}1]", "1,".repeat(40)), "4").is_err());
    }

    #[test]
    fn strings_have_any_size_that_has_room_for_their_lengths() {
        let input = |size: &str| {
            with_input(&format!(
                r#"{{"name": "a", "shape": [2], "datatype": "BYTES", "parameters": {{"binary_data_size": {size}}}}}"#
            ))
        };
        assert_eq!((input("8"), input("1000")), (Ok(()), Ok(())));
        assert!(input("7").is_err_and(|e| e.contains("7 bytes; 2 strings have at least 8")));
        let huge = r#"{"name": "a", "shape": [4611686018427387904], "datatype": "BYTES", "data": ["x"]}"#;
        assert!(with_input(huge).is_err_and(|e| e.contains("address space")));
    }

    #[test]
    fn a_list_is_read_no_further_than_to_one_more_than_the_model_has() {
        let input = r#"{"name": "a", "shape": [1], "datatype": "FP32", "data": [1]}"#;
        let json = format!(r#"{{"inputs": [{input}, {input}, {input}, {input}, no JSON any more"#);
        let error = InferRequest::parse(json.as_bytes(), MOST).expect_err("too many");
        assert!(error.contains("more than 3 inputs; the model has 2"), "{error}");
        let output = r#"{"name": "y"}"#;
        let json = format!(r#"{{"inputs": [{input}], "outputs": [{output}, {output}, {output}, no JSON"#);
        let error = InferRequest::parse(json.as_bytes(), MOST).expect_err("too many");
        assert!(error.contains("more than 2 outputs; the model has 1"), "{error}");
        let shape = format!(r#"{{"inputs": [{{"name": "a", "shape": [{}"#, "1, ".repeat(40));
        let error = InferRequest::parse(shape.as_bytes(), MOST).expect_err("too many");
        assert!(error.contains("more than 33 extents; arrays have at most 32"), "{error}");
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let unknown = r#"{"name": "a", "shape": [1], "datatype": "STRING", "data": ["x"]}"#;
        assert!(with_input(unknown).is_err_and(|e| e.contains("unknown datatype 'STRING'")));
        let twice = r#"{"name": "a", "shape": [1], "datatype": "FP32", "data": [1]}"#;
        assert!(with_input(&format!("{twice}, {twice}")).is_err_and(|e| e.contains("'a' is given twice")));
        let both =
            r#"{"name": "a", "shape": [1], "datatype": "FP32", "data": [1], "parameters": {"binary_data_size": 4}}"#;
        assert!(with_input(both).is_err_and(|e| e.contains("both")));
        let huge = r#"{"name": "a", "shape": [1000000000], "datatype": "FP32", "data": [1]}"#;
        assert!(with_input(huge).is_err_and(|e| e.contains("too short")));
    }
}
