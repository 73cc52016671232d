//! Borrowed views of array contents, as operators see them.

use crate::{DType, Element, Shape};
use mxrt_engine::{FailureKind, OpError};

/// Element type and shape: all that planning needs to know of an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// element type
    pub dtype: DType,
    /// extents
    pub shape: Shape,
}

impl TensorType {
    /// A type from its parts.
    pub fn new(dtype: DType, shape: impl Into<Shape>) -> TensorType {
        TensorType { dtype, shape: shape.into() }
    }

    /// Bytes of an array of this type, `None` on overflow.
    pub fn checked_bytes(&self) -> Option<usize> {
        self.shape.checked_size()?.checked_mul(self.dtype.size())
    }

    /// Bytes of an array of this type (saturating; see [`TensorType::checked_bytes`]).
    pub fn bytes(&self) -> usize {
        self.checked_bytes().unwrap_or(usize::MAX)
    }
}

/// Adds the shapes and dtypes of an operator's inputs to an error.
pub fn describe_inputs<'a>(error: OpError, inputs: impl Iterator<Item = &'a TensorType> + Clone) -> OpError {
    error.shapes(inputs.clone().map(|t| t.shape.to_vec()).collect()).dtypes(inputs.map(|t| t.dtype.name()).collect())
}

impl std::fmt::Display for TensorType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)
    }
}

/// A readable, contiguous, row-major array.
#[derive(Clone, Copy)]
pub struct TensorRef<'a> {
    /// element type
    pub dtype: DType,
    /// extents
    pub shape: &'a Shape,
    bytes: &'a [u8],
}

/// A writable, contiguous, row-major array.
pub struct TensorMut<'a> {
    /// element type
    pub dtype: DType,
    /// extents
    pub shape: &'a Shape,
    bytes: &'a mut [u8],
}

fn wrong_type(have: DType, want: DType) -> OpError {
    OpError::new(FailureKind::Type, format!("an array of {have} was read as {want}"))
}

impl<'a> TensorRef<'a> {
    /// A view of `bytes`, which must hold exactly the elements of `shape`, aligned for any element
    /// type.
    pub fn new(dtype: DType, shape: &'a Shape, bytes: &'a [u8]) -> TensorRef<'a> {
        assert_eq!(bytes.len(), shape.size().saturating_mul(dtype.size()), "view of {dtype}{shape}");
        TensorRef { dtype, shape, bytes }
    }

    /// An array whose content stands elsewhere: without bytes.
    pub fn elsewhere(dtype: DType, shape: &'a Shape) -> TensorRef<'a> {
        // Aligned as elements of any type are.
        const NOTHING: &[u64] = &[];
        TensorRef { dtype, shape, bytes: bytemuck::cast_slice(NOTHING) }
    }

    /// The elements; an error when the array has another dtype.
    pub fn as_slice<T: Element>(&self) -> Result<&'a [T], OpError> {
        if !T::reads(self.dtype) {
            return Err(wrong_type(self.dtype, T::DTYPE));
        }
        Ok(bytemuck::cast_slice(self.bytes))
    }

    /// The raw bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// True when there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl<'a> TensorMut<'a> {
    /// A view of `bytes`, which must hold exactly the elements of `shape`, aligned for any element
    /// type.
    pub fn new(dtype: DType, shape: &'a Shape, bytes: &'a mut [u8]) -> TensorMut<'a> {
        assert_eq!(bytes.len(), shape.size().saturating_mul(dtype.size()), "view of {dtype}{shape}");
        TensorMut { dtype, shape, bytes }
    }

    /// The elements; an error when the array has another dtype.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T], OpError> {
        if !T::reads(self.dtype) {
            return Err(wrong_type(self.dtype, T::DTYPE));
        }
        Ok(bytemuck::cast_slice_mut(self.bytes))
    }

    /// The raw bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.dtype.size()
    }

    /// True when there are no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The array, readable.
    pub fn as_ref(&self) -> TensorRef<'_> {
        TensorRef { dtype: self.dtype, shape: self.shape, bytes: self.bytes }
    }
}
