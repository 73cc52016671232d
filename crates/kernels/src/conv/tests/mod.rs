//! Every method against a convolution in `f64` written from the definition.

mod bf16;
mod case;
mod direct;
mod few_channels;
mod packing;
mod plain_tensors;
mod pooled;
mod strided;
mod taps;
mod tiles;
mod unpack;
mod winograd;

pub(in crate::conv) use case::{Case, activations, chosen_on, chunked_cases, convolutions, fits, method, values};
