//! Memory of plans: places of values, constants, and raw weights.

pub(crate) mod arena;
pub(crate) mod constants;
pub(crate) mod join;
pub(crate) mod offsets;
pub(crate) mod release;
mod restore;
mod shared;
pub(crate) mod steps;
