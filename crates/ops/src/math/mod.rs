//! Arithmetic, comparison, logic and reduction.

pub mod add_n;
pub mod all_finite;
pub mod allclose;
pub mod amp_multicast;
pub mod argmax;
pub mod batch_dot;
pub mod broadcast;
pub mod cast;
pub mod clip;
pub mod cumsum;
pub mod dot;
pub mod elementwise_binary;
pub mod hard_sigmoid;
pub mod histogram;
pub mod identity;
pub mod moments;
pub mod multi_sum_sq;
pub mod norm;
pub mod quadratic;
pub mod reduce;
pub mod scalar;
pub mod smooth_l1;
pub mod unary;

pub(crate) use elementwise_binary::bind_binary;
pub(crate) use unary::{bind_unary, unary_form};
