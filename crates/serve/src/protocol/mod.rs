//! Encoding and decoding of the Open Inference Protocol, without any I/O.

pub mod forms;
pub mod npy;
pub mod numbers;
pub(crate) mod recordio;
pub mod request;
pub mod response;
pub mod strings;
mod wire;

use mxrt_tensor::DType;
pub use wire::{Datatype, WireTensor};

/// Error of writing a response.
#[derive(Debug, PartialEq, Eq)]
pub enum WriteError {
    /// value that the format cannot express, with a message for the client
    Wrong(String),
    /// lack of memory for this many more bytes
    Memory(usize),
}

impl WriteError {
    /// Puts the name of the failed part before the message.
    fn of(self, what: &str) -> WriteError {
        match self {
            WriteError::Wrong(words) => WriteError::Wrong(format!("{what}: {words}")),
            memory => memory,
        }
    }
}

impl From<String> for WriteError {
    fn from(words: String) -> WriteError {
        WriteError::Wrong(words)
    }
}

/// Reserves room for more bytes of a response.
pub(crate) fn room(to: &mut Vec<u8>, more: usize) -> Result<(), WriteError> {
    to.try_reserve(more).map_err(|_| WriteError::Memory(more))
}

/// Names of element types in the protocol.
const DATATYPES: [(&str, DType); 13] = [
    ("BOOL", DType::Bool),
    ("UINT8", DType::U8),
    ("UINT16", DType::U16),
    ("UINT32", DType::U32),
    ("UINT64", DType::U64),
    ("INT8", DType::I8),
    ("INT16", DType::I16),
    ("INT32", DType::I32),
    ("INT64", DType::I64),
    ("FP16", DType::F16),
    ("BF16", DType::BF16),
    ("FP32", DType::F32),
    ("FP64", DType::F64),
];

/// Returns the element type with this name.
pub fn dtype_of(name: &str) -> Option<DType> {
    DATATYPES.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// Returns the name of an element type.
pub fn datatype_of(dtype: DType) -> &'static str {
    DATATYPES.iter().find(|row| row.1 == dtype).map_or("", |row| row.0)
}

/// Shortens a client's text for a message, to less than a line.
pub(crate) fn short(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}
