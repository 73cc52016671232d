//! Elements of an input as `InferTensorContents` has them: a field for each group of types.

use super::fields::{Fields, Value};
use crate::protocol::{datatype_of, short, strings};
use crate::refusal::Refusal;
use mxrt_tensor::{DType, TensorType};

/// Error of decoding typed elements.
#[derive(Debug)]
pub(super) enum Typed {
    /// wrong elements for this input
    Wrong(String),
    /// malformed message
    NoMessage(Refusal),
}

impl From<Refusal> for Typed {
    fn from(refusal: Refusal) -> Typed {
        Typed::NoMessage(refusal)
    }
}

impl Typed {
    /// Makes the refusal, with the name of the input.
    pub(super) fn of(self, input: &str) -> Refusal {
        match self {
            Typed::Wrong(words) => Refusal::invalid(format!("input '{}': {words}", short(input))),
            Typed::NoMessage(refusal) => refusal,
        }
    }
}

/// Appends the elements of `bytes_contents` in their binary form. The other fields must be empty.
pub(super) fn typed_strings(message: &[u8], to: &mut Vec<u8>) -> Result<(), Typed> {
    const BYTES: u32 = CONTENTS.len() as u32;
    let mut others = false;
    for field in Fields(message) {
        match field? {
            (BYTES, value) => strings::push(value.message()?, to).map_err(Typed::Wrong)?,
            (number, value) => others |= (1..BYTES).contains(&number) && value != Value::Bytes(&[]),
        }
    }
    let words = "'contents' has elements in others than 'bytes_contents'";
    if others { Err(Typed::Wrong(words.to_owned())) } else { Ok(()) }
}

/// Names of the fields of `contents`, in the order of their numbers.
const CONTENTS: [&str; 8] = [
    "bool_contents",
    "int_contents",
    "int64_contents",
    "uint_contents",
    "uint64_contents",
    "fp32_contents",
    "fp64_contents",
    "bytes_contents",
];

/// Decodes the field of `contents` for the type of the input. The other fields must be empty.
pub(super) fn typed(message: &[u8], tensor: &TensorType, to: &mut [u8]) -> Result<(), Typed> {
    let name = match tensor.dtype {
        DType::Bool => "bool_contents",
        DType::I8 | DType::I16 | DType::I32 => "int_contents",
        DType::I64 => "int64_contents",
        DType::U8 | DType::U16 | DType::U32 => "uint_contents",
        DType::U64 => "uint64_contents",
        DType::F32 => "fp32_contents",
        DType::F64 => "fp64_contents",
        dtype => return Err(Typed::Wrong(format!("'contents' has no {}: use raw_input_contents", datatype_of(dtype)))),
    };
    let wanted = CONTENTS.iter().position(|field| *field == name).map_or(0, |place| place as u32 + 1);
    let mut elements =
        ElementSink { to: to.chunks_exact_mut(tensor.dtype.size()), found: 0, outside: None, dtype: tensor.dtype };
    let mut others = false;
    for field in Fields(message) {
        let (number, value) = field?;
        if number == wanted {
            elements.take(value)?;
        } else {
            others |= (1..=CONTENTS.len() as u32).contains(&number) && value != Value::Bytes(&[]);
        }
    }
    let (found, size, dtype) = (elements.found, tensor.shape.size(), datatype_of(tensor.dtype));
    if let Some(number) = elements.outside {
        return Err(Typed::Wrong(format!("{number} is out of the range of {dtype}")));
    }
    if found != size {
        return Err(Typed::Wrong(format!("'{name}' has {found} elements; the shape says {size} of {dtype}")));
    }
    if others { Err(Typed::Wrong(format!("'contents' has elements in others than '{name}'"))) } else { Ok(()) }
}

/// Destination of the next element, and a count of all elements.
struct ElementSink<'a> {
    to: std::slice::ChunksExactMut<'a, u8>,
    found: usize,
    /// first number that is out of the range of the type
    outside: Option<i64>,
    dtype: DType,
}

impl ElementSink<'_> {
    /// Stores an element. Elements beyond the destination are only counted.
    fn put(&mut self, bytes: &[u8]) {
        self.found += 1;
        if let Some(to) = self.to.next() {
            to.copy_from_slice(bytes);
        }
    }

    fn whole<T: TryFrom<i64>, const N: usize>(&mut self, value: i64, bytes: fn(T) -> [u8; N]) {
        match T::try_from(value) {
            Ok(number) => self.put(&bytes(number)),
            Err(_) => self.outside = self.outside.or(Some(value)),
        }
    }

    fn number(&mut self, number: u64) {
        // Bits above those of the type on the wire are ignored.
        let (signed, unsigned) = (i64::from(number as i32), i64::from(number as u32));
        match self.dtype {
            DType::Bool => self.put(&[u8::from(number != 0)]),
            DType::I8 => self.whole(signed, i8::to_le_bytes),
            DType::I16 => self.whole(signed, i16::to_le_bytes),
            DType::I32 => self.whole(signed, i32::to_le_bytes),
            DType::U8 => self.whole(unsigned, u8::to_le_bytes),
            DType::U16 => self.whole(unsigned, u16::to_le_bytes),
            DType::U32 => self.whole(unsigned, u32::to_le_bytes),
            // I64 and U64 have the same bytes.
            _ => self.put(&number.to_le_bytes()),
        }
    }

    fn take(&mut self, value: Value<'_>) -> Result<(), Refusal> {
        match self.dtype {
            DType::F32 => value.fixed::<4>(|bytes| self.put(bytes)),
            DType::F64 => value.fixed::<8>(|bytes| self.put(bytes)),
            _ => value.varints(|number| {
                self.number(number);
                Ok(())
            }),
        }
    }
}
