//! Records of outputs.

use super::{LENGTH, MAGIC};
use crate::refusal::{Refusal, room};
use mxrt_tensor::{DType, TensorRef};
use prost::Message;
use std::collections::BTreeMap;

/// Label of the only output, where the clients of SageMaker's algorithms look.
const SCORE: &str = "score";

#[derive(Clone, PartialEq, Message)]
struct Record {
    #[prost(btree_map = "string, message", tag = "2")]
    labels: BTreeMap<String, Values>,
}

/// Values of a label, of one of these types.
#[derive(Clone, PartialEq, Message)]
struct Values {
    #[prost(message, optional, tag = "2")]
    float32: Option<Float32>,
    #[prost(message, optional, tag = "3")]
    float64: Option<Float64>,
}

#[derive(Clone, PartialEq, Message)]
struct Float32 {
    #[prost(float, repeated, tag = "1")]
    values: Vec<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct Float64 {
    #[prost(double, repeated, tag = "1")]
    values: Vec<f64>,
}

/// Writes outputs as records, one for each row. The row of an output is the label with its name,
/// or the score if the model has no other output.
pub(crate) fn write(outputs: &[(&str, TensorRef<'_>)]) -> Result<Vec<u8>, Refusal> {
    let rows = |tensor: &TensorRef<'_>| tensor.shape.first().copied().unwrap_or(1);
    let count = outputs.first().map_or(0, |(_, tensor)| rows(tensor));
    if outputs.iter().any(|(_, tensor)| rows(tensor) != count) {
        let words = "the outputs have different numbers of rows, and a record is one row of each";
        return Err(Refusal::invalid(format!("{words}: accept application/json")));
    }
    if outputs.iter().all(|(_, tensor)| tensor.bytes().is_empty()) {
        return Err(Refusal::invalid("the outputs have no numbers, which make no records: accept application/json"));
    }
    let mut to = Vec::new();
    for row in 0..count {
        let mut record = Record::default();
        for (name, tensor) in outputs {
            let bytes = tensor.bytes();
            let length = bytes.len() / count;
            let label = if outputs.len() == 1 { SCORE } else { name };
            let values = Values::of(name, tensor.dtype, &bytes[row * length..][..length])?;
            record.labels.insert(label.to_owned(), values);
        }
        append(&record, &mut to)?;
    }
    Ok(to)
}

impl Values {
    fn of(name: &str, dtype: DType, row: &[u8]) -> Result<Values, Refusal> {
        match dtype {
            DType::F32 => {
                let values = row.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
                Ok(Values { float32: Some(Float32 { values }), ..Values::default() })
            }
            DType::F64 => {
                let values = row.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
                Ok(Values { float64: Some(Float64 { values }), ..Values::default() })
            }
            other => {
                let words = "records have float32 and float64";
                Err(Refusal::invalid(format!("{words}; the output '{name}' is {other}: accept application/json")))
            }
        }
    }
}

/// Appends a record with its head and padding.
fn append(record: &Record, to: &mut Vec<u8>) -> Result<(), Refusal> {
    let length = record.encoded_len();
    let word = u32::try_from(length).ok().filter(|word| *word <= LENGTH);
    let word = word.ok_or_else(|| Refusal::invalid("a row has more bytes than a record: accept application/x-npy"))?;
    room(to, 8 + length.next_multiple_of(4))?;
    to.extend(MAGIC);
    to.extend(word.to_le_bytes());
    to.extend(record.encode_to_vec());
    to.resize(to.len().next_multiple_of(4), 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mxrt_tensor::Shape;

    #[test]
    fn a_record_is_a_row_of_every_output_in_the_bytes_of_the_format() {
        let (shape, bytes) = (Shape::from(vec![2, 1]), [1.5_f32, -2.0].map(f32::to_le_bytes).concat());
        let only = TensorRef::new(DType::F32, &shape, &bytes);
        let written = write(&[("dense_output", only)]).expect("records");
        let mut wanted = Vec::new();
        for value in [1.5_f32, -2.0] {
            let mut message = vec![0x12, 17, 0x0a, 5];
            message.extend(*b"score");
            message.extend([0x12, 8, 0x12, 6, 0x0a, 4]);
            message.extend(value.to_le_bytes());
            wanted.extend([0x0a, 0x23, 0xd7, 0xce, message.len() as u8, 0, 0, 0]);
            wanted.extend(&message);
            wanted.resize(wanted.len().next_multiple_of(4), 0);
        }
        assert_eq!(written, wanted);
        let names = write(&[("a", only), ("b", only)]).expect("records");
        assert!(!names.windows(5).any(|part| part == b"score"));
        let whole = Shape::from(vec![2]);
        let integers = TensorRef::new(DType::I32, &whole, &bytes);
        let error = write(&[("a", integers)]).expect_err("integers");
        assert!(error.message.contains("the output 'a' is int32"), "{error:?}");
        let other = Shape::from(vec![1, 2]);
        let error = write(&[("a", only), ("b", TensorRef::new(DType::F32, &other, &bytes))]);
        assert!(error.expect_err("rows").message.contains("different numbers of rows"));
    }
}
