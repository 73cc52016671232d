//! Memory of plans: places of values, constants, and raw weights.

pub(crate) mod arena;
pub(crate) mod constants;
pub(crate) mod join;
mod kept;
pub(crate) mod offsets;
pub(crate) mod release;
mod restore;
mod shared;
pub(crate) mod steps;

pub use kept::share_weights;
