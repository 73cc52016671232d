//! Types of tensors of the protocol: those of arrays, and strings.

use super::request::tensor_type;
use super::{datatype_of, dtype_of, strings};
use mxrt_tensor::{DType, Shape, TensorType};

/// Element type of a tensor of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datatype {
    /// numbers, which models compute with
    Number(DType),
    /// strings of bytes (`BYTES`), which hooks take and give
    Bytes,
}

impl Datatype {
    /// Returns the element type with this name.
    pub fn named(name: &str) -> Option<Datatype> {
        match name {
            "BYTES" => Some(Datatype::Bytes),
            name => dtype_of(name).map(Datatype::Number),
        }
    }

    /// Returns the name of the element type.
    pub fn name(self) -> &'static str {
        match self {
            Datatype::Number(dtype) => datatype_of(dtype),
            Datatype::Bytes => "BYTES",
        }
    }
}

/// Element type and shape of a tensor of the protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct WireTensor {
    /// type of its elements
    pub datatype: Datatype,
    /// extents, the outermost first
    pub shape: Shape,
}

impl WireTensor {
    /// Makes a type whose number of bytes does not overflow. The error is a message for the client.
    pub(crate) fn new(datatype: Datatype, shape: &[i64]) -> Result<WireTensor, String> {
        let dtype = match datatype {
            Datatype::Number(dtype) => dtype,
            // A string has at least the four bytes of its length.
            Datatype::Bytes => DType::U32,
        };
        Ok(WireTensor { datatype, shape: tensor_type(dtype, shape)?.shape })
    }

    /// Returns the type of the array with these elements; none for strings.
    pub fn numbers(&self) -> Option<TensorType> {
        match self.datatype {
            Datatype::Number(dtype) => Some(TensorType::new(dtype, self.shape.clone())),
            Datatype::Bytes => None,
        }
    }

    /// Checks the number of bytes of all elements, as far as it is known without them.
    pub(crate) fn check_size(&self, bytes: usize) -> Result<(), String> {
        match self.numbers() {
            Some(tensor) if tensor.bytes() == bytes => Ok(()),
            Some(tensor) => Err(format!("{bytes} bytes; type and shape make {}", tensor.bytes())),
            None if bytes >= self.shape.size() * strings::LENGTH => Ok(()),
            None => {
                let strings = self.shape.size();
                Err(format!("{bytes} bytes; {strings} strings have at least {}", strings * strings::LENGTH))
            }
        }
    }
}

impl From<&TensorType> for WireTensor {
    fn from(tensor: &TensorType) -> WireTensor {
        WireTensor { datatype: Datatype::Number(tensor.dtype), shape: tensor.shape.clone() }
    }
}
