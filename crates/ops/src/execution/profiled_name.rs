//! Names of operators in profiles.

use mxrt_engine::{OpName, profile};
use std::cell::RefCell;

thread_local! {
    static INSIDE: RefCell<Option<Box<str>>> = const { RefCell::new(None) };
}

/// Operators that this thread calls from now on stand in profiles below an operator of the program:
/// as `name::operator`. None: under their own names.
pub fn name_operators_inside(name: Option<&str>) {
    INSIDE.set(name.filter(|_| profile::is_on()).map(Box::from));
}

/// The name of an operator that this thread calls.
pub(crate) fn profiled_name(operator: &'static str) -> OpName {
    if !profile::is_on() {
        return operator.into();
    }
    INSIDE.with_borrow(|inside| match inside {
        Some(name) => format!("{name}::{operator}").into(),
        None => operator.into(),
    })
}
