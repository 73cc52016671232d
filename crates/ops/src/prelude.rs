//! Imports for the file of an operator.

pub(crate) use crate::definition::*;
pub(crate) use crate::execution::*;
pub(crate) use crate::rewrite::*;
pub(crate) use mxrt_engine::OpError;
pub(crate) use mxrt_kernels::conv::{ConvSignature, Precision};
pub(crate) use mxrt_kernels::isa::Isa;
pub(crate) use mxrt_kernels::{Element, Par, ReadElements, Scratch, ScratchList};
pub(crate) use mxrt_tensor::{DType, PartialShape, Shape};
