//! Body of an inference response.

use super::{Datatype, WriteError, numbers, room, strings};

/// Inference response: its bytes, and the number of JSON bytes if binary data follows.
#[derive(Debug)]
pub struct InferResponse {
    /// JSON, and the binary data after it
    pub body: Vec<u8>,
    /// number of bytes of the JSON; none if the body has no binary data
    pub json_bytes: Option<usize>,
}

/// Output of a response.
pub struct OutputTensor<'a> {
    /// name of the output
    pub name: &'a str,
    /// type of its elements
    pub datatype: Datatype,
    /// extents, the outermost first
    pub shape: &'a [usize],
    /// elements; a string is its length in four bytes, and its bytes
    pub bytes: &'a [u8],
    /// whether the elements follow the JSON as bytes
    pub binary: bool,
}

impl InferResponse {
    /// Writes a response. The error is a message for the client.
    pub fn write(
        model: &str,
        version: &str,
        id: Option<&str>,
        outputs: &[OutputTensor<'_>],
    ) -> Result<InferResponse, WriteError> {
        let mut body = Vec::new();
        body.extend_from_slice(b"{\"model_name\":");
        string(model, &mut body)?;
        body.extend_from_slice(b",\"model_version\":");
        string(version, &mut body)?;
        if let Some(id) = id {
            body.extend_from_slice(b",\"id\":");
            string(id, &mut body)?;
        }
        body.extend_from_slice(b",\"outputs\":[");
        for (i, output) in outputs.iter().enumerate() {
            if i > 0 {
                body.push(b',');
            }
            output.write(&mut body)?;
        }
        body.extend_from_slice(b"]}");
        let json_bytes = outputs.iter().any(|output| output.binary).then_some(body.len());
        let binary = outputs.iter().filter(|output| output.binary);
        room(&mut body, binary.clone().map(|output| output.bytes.len()).sum())?;
        binary.for_each(|output| body.extend_from_slice(output.bytes));
        Ok(InferResponse { body, json_bytes })
    }
}

impl OutputTensor<'_> {
    /// Appends the output as a JSON object: its elements, or how many bytes of them follow.
    fn write(&self, body: &mut Vec<u8>) -> Result<(), WriteError> {
        body.extend_from_slice(b"{\"name\":");
        string(self.name, body)?;
        let head = format!(",\"datatype\":\"{}\",\"shape\":", self.datatype.name());
        body.extend_from_slice(head.as_bytes());
        serde_json::to_writer(&mut *body, self.shape).map_err(|e| WriteError::Wrong(e.to_string()))?;
        if self.binary {
            let size = format!(",\"parameters\":{{\"binary_data_size\":{}}}", self.bytes.len());
            body.extend_from_slice(size.as_bytes());
        } else {
            body.extend_from_slice(b",\"data\":");
            let written = match self.datatype {
                Datatype::Number(dtype) => numbers::write(self.bytes, dtype, body),
                Datatype::Bytes => strings::write(self.bytes, body),
            };
            written.map_err(|error| error.of(&format!("output '{}'", self.name)))?;
        }
        body.push(b'}');
        Ok(())
    }
}

fn string(text: &str, to: &mut Vec<u8>) -> Result<(), WriteError> {
    room(to, text.len())?;
    serde_json::to_writer(to, text).map_err(|error| WriteError::Wrong(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxrt_tensor::DType;

    #[test]
    fn binary_outputs_follow_the_json_in_their_order() {
        let bytes: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let output = |name, binary| OutputTensor {
            name,
            datatype: Datatype::Number(DType::F32),
            shape: &[1, 2],
            bytes: &bytes,
            binary,
        };
        let outputs = [output("a", true), output("b\"", false)];
        let answer = InferResponse::write("m", "1", Some("7"), &outputs).expect("an answer");
        let json = answer.json_bytes.expect("binary data");
        assert_eq!(
            std::str::from_utf8(&answer.body[..json]).expect("text"),
            "{\"model_name\":\"m\",\"model_version\":\"1\",\"id\":\"7\",\"outputs\":[{\"name\":\"a\",\
             \"datatype\":\"FP32\",\"shape\":[1,2],\"parameters\":{\"binary_data_size\":8}},{\"name\":\"b\\\"\",\
             \"datatype\":\"FP32\",\"shape\":[1,2],\"data\":[1.5,-2.0]}]}"
        );
        assert_eq!(answer.body[json..], bytes);
        let answer = InferResponse::write("m", "1", None, &outputs[1..]).expect("an answer");
        assert_eq!(answer.json_bytes, None);
    }
}
