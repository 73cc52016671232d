//! Operators on blocked layouts, made by the layout pass only.

pub mod convert;
