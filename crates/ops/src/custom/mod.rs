//! Operators that the program defines: what `Custom` nodes run.
//!
//! [`register_custom_operators`] tells where they come from. Their functions run in threads of the
//! program, never in those of the engine; graphs suspend a request meanwhile.

mod call;
mod definition;
pub mod node;

pub(crate) use call::custom_kernel;
pub use call::{Callback, CustomArrays, CustomCall, CustomReply, CustomResults};
pub(crate) use definition::CustomNode;
pub use definition::{CustomOperator, CustomOperators, CustomTypes, Question, register_custom_operators};
pub use node::callback;
