//! The types of DLPack: <https://dmlc.github.io/dlpack/latest/c_api.html>, version 1.0.
#![allow(missing_docs, reason = "the names are those of DLPack, which says what fields mean")]

use crate::DType;
use std::ffi::{CStr, c_void};

/// Name of a capsule before a consumer takes it.
pub const PLAIN: &CStr = c"dltensor";
/// Name of such a capsule after it was taken.
pub const PLAIN_USED: &CStr = c"used_dltensor";
/// Name of a capsule with a versioned array.
pub const VERSIONED: &CStr = c"dltensor_versioned";
/// Name of a capsule with a versioned array that has been taken.
pub const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// The version of the layout below.
pub const VERSION: (u32, u32) = (1, 0);

/// The consumer must not write.
pub const READ_ONLY: u64 = 1;
/// The memory is a copy made for the consumer.
pub const COPIED: u64 = 2;

/// Memory of the host.
pub const CPU: i32 = 1;
/// Memory of a GPU of CUDA's.
pub const CUDA: i32 = 2;
/// Memory of the host that is page-locked for CUDA.
pub const CUDA_HOST: i32 = 3;
/// Devices that DLPack gives no number of their own.
pub const EXTENSION: i32 = 12;

/// A device: kind and number.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Device {
    pub kind: i32,
    pub number: i32,
}

/// Type of the elements.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElementType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

/// An array. The first element is `byte_offset` bytes after `data`; strides count elements, and
/// null stands for row-major.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Tensor {
    pub data: *mut c_void,
    pub device: Device,
    pub ndim: i32,
    pub dtype: ElementType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

/// The target of a capsule named `dltensor`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Managed {
    pub tensor: Tensor,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// The target of a capsule named `dltensor_versioned`.
#[repr(C)]
pub struct ManagedVersioned {
    pub major: u32,
    pub minor: u32,
    pub context: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    pub flags: u64,
    pub tensor: Tensor,
}

const INT: u8 = 0;
const UINT: u8 = 1;
const FLOAT: u8 = 2;
const BFLOAT: u8 = 4;
const BOOL: u8 = 6;

impl ElementType {
    /// How DLPack names a type of elements.
    pub fn of(dtype: DType) -> ElementType {
        let code = match dtype {
            DType::F16 | DType::F32 | DType::F64 => FLOAT,
            DType::BF16 => BFLOAT,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 => INT,
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => UINT,
            DType::Bool => BOOL,
        };
        ElementType { code, bits: 8 * dtype.size() as u8, lanes: 1 }
    }

    /// The type of elements, if there are arrays of it here. Unsigned integers of one bit are the
    /// booleans of MXNet and TVM, which take a byte each.
    pub fn dtype(self) -> Option<DType> {
        if self == (ElementType { code: UINT, bits: 1, lanes: 1 }) {
            return Some(DType::Bool);
        }
        (0..).map_while(DType::from_code).find(|dtype| ElementType::of(*dtype) == self)
    }
}
