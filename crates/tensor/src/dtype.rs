//! Element types, with MXNet's codes and names.

use half::{bf16, f16};
use std::fmt;
use std::str::FromStr;

/// Element type of an array. The discriminants are the codes MXNet writes into files and
/// attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DType {
    /// 32-bit float
    F32 = 0,
    /// 64-bit float
    F64 = 1,
    /// 16-bit IEEE float
    F16 = 2,
    /// unsigned byte
    U8 = 3,
    /// 32-bit signed integer
    I32 = 4,
    /// signed byte
    I8 = 5,
    /// 64-bit signed integer
    I64 = 6,
    /// boolean, one byte, 0 or 1
    Bool = 7,
    /// 16-bit signed integer
    I16 = 8,
    /// 16-bit unsigned integer
    U16 = 9,
    /// 32-bit unsigned integer
    U32 = 10,
    /// 64-bit unsigned integer
    U64 = 11,
    /// brain float
    BF16 = 12,
}

const ALL: [(DType, &str, usize); 13] = [
    (DType::F32, "float32", 4),
    (DType::F64, "float64", 8),
    (DType::F16, "float16", 2),
    (DType::U8, "uint8", 1),
    (DType::I32, "int32", 4),
    (DType::I8, "int8", 1),
    (DType::I64, "int64", 8),
    (DType::Bool, "bool", 1),
    (DType::I16, "int16", 2),
    (DType::U16, "uint16", 2),
    (DType::U32, "uint32", 4),
    (DType::U64, "uint64", 8),
    (DType::BF16, "bfloat16", 2),
];

impl DType {
    /// The code used in `.params` files and `__dtype__` attributes.
    pub fn code(self) -> i32 {
        self as i32
    }

    /// The type with this code, if there is one.
    pub fn from_code(code: i32) -> Option<DType> {
        usize::try_from(code).ok().and_then(|i| ALL.get(i)).map(|row| row.0)
    }

    /// numpy's name for the type (`bfloat16` for the one numpy lacks).
    pub fn name(self) -> &'static str {
        ALL[self as usize].1
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        ALL[self as usize].2
    }

    /// True for the float types.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::F16 | DType::BF16)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown dtype name.
#[derive(Debug, thiserror::Error)]
#[error(
    "unknown dtype '{0}'; known: float32, float64, float16, uint8, int32, int8, int64, bool, \
     int16, uint16, uint32, uint64, bfloat16"
)]
pub struct UnknownDType(pub String);

impl FromStr for DType {
    type Err = UnknownDType;
    fn from_str(s: &str) -> Result<Self, UnknownDType> {
        ALL.iter().find(|row| row.1 == s).map(|row| row.0).ok_or_else(|| UnknownDType(s.to_owned()))
    }
}

/// A Rust type that can stand in an array. `bool` arrays are read as `u8`, whose every bit pattern
/// is valid.
pub trait Element: bytemuck::Pod + Send + Sync + PartialOrd + fmt::Debug {
    /// The dtype whose elements have this type.
    const DTYPE: DType;
    /// Whether an array of `dtype` may be read as slices of this type.
    fn reads(dtype: DType) -> bool {
        dtype == Self::DTYPE
    }
}

macro_rules! element {
    ($($t:ty => $d:ident),*) => { $(impl Element for $t { const DTYPE: DType = DType::$d; })* };
}
element!(f32 => F32, f64 => F64, f16 => F16, i32 => I32, i8 => I8, i64 => I64, i16 => I16, u16 => U16, u32 => U32, u64 => U64, bf16 => BF16);

impl Element for u8 {
    const DTYPE: DType = DType::U8;
    fn reads(dtype: DType) -> bool {
        matches!(dtype, DType::U8 | DType::Bool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_round_trip() {
        for (i, (dtype, name, _)) in ALL.iter().enumerate() {
            assert_eq!(dtype.code(), i as i32);
            assert_eq!(DType::from_code(i as i32), Some(*dtype));
            assert_eq!(name.parse::<DType>().ok(), Some(*dtype));
        }
        assert_eq!(DType::from_code(99), None);
        assert_eq!(DType::from_code(-1), None);
        assert!("complex64".parse::<DType>().is_err_and(|e| e.to_string().contains("'complex64'")));
    }
}
