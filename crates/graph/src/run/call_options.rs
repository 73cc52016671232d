//! Options of a call: one row each. Borders, docs/settings.md and the types of calls in Python
//! follow from it.

use mxrt_engine::FailureKind;
use std::time::{Duration, Instant};

/// A call's place in the queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions {
    /// calls with a higher number are served first
    pub priority: i32,
    /// the call fails with kind `Deadline` if it has not started by then
    pub deadline: Option<Instant>,
    /// the call does not run when all its results are dropped before it starts
    pub cancel_on_drop: bool,
}

impl CallOptions {
    /// The same with this priority.
    pub fn priority(mut self, priority: i32) -> CallOptions {
        self.priority = priority;
        self
    }

    /// The same with a deadline so long from now. One that lies beyond the clock never comes.
    pub fn within(mut self, wait: Duration) -> CallOptions {
        self.deadline = Instant::now().checked_add(wait);
        self
    }
}

/// One option of a call.
pub struct CallOption {
    /// the keyword
    pub name: &'static str,
    /// type of its value, as Python spells it
    pub python_type: &'static str,
    /// what holds without it, as Python spells it
    pub default: &'static str,
    /// what it may be; errors say "expected" before it
    pub expects: &'static str,
    /// what it does
    pub doc: &'static str,
    /// takes a value over
    take: fn(&mut CallOptions, &dyn CallValue) -> Result<(), FailureKind>,
}

/// A value of an option in a language that calls. Errors are [`FailureKind::Type`] for a value of
/// another type and [`FailureKind::Value`] for one out of range.
pub trait CallValue {
    /// Whether it stands for no value.
    fn is_none(&self) -> bool;
    /// A whole number.
    fn integer(&self) -> Result<i64, FailureKind>;
    /// A number.
    fn number(&self) -> Result<f64, FailureKind>;
    /// A truth value.
    fn boolean(&self) -> Result<bool, FailureKind>;
}

/// All options of a call.
pub static CALL_OPTIONS: &[CallOption] = &[
    CallOption {
        name: "priority",
        python_type: "int",
        default: "0",
        expects: "a whole number from -2147483648 to 2147483647",
        doc: "While calls wait for cores, those with a higher number start first.",
        take: |to, value| {
            to.priority = i32::try_from(value.integer()?).map_err(|_| FailureKind::Value)?;
            Ok(())
        },
    },
    CallOption {
        name: "deadline",
        python_type: "float | None",
        default: "None",
        expects: "a number of seconds from now, 0 or more and below 1.8e19, or None",
        doc: "A call that has not started after so many seconds does not run. Reading its result \
            raises `mxrt.base.MXNetTimeoutError`.",
        take: |to, value| {
            let seconds = if value.is_none() { None } else { Some(value.number()?) };
            let wait = seconds.map(Duration::try_from_secs_f64).transpose().map_err(|_| FailureKind::Value)?;
            to.deadline = wait.and_then(|wait| to.within(wait).deadline);
            Ok(())
        },
    },
    CallOption {
        name: "cancel_on_drop",
        python_type: "bool",
        default: "False",
        expects: "True or False",
        doc: "A call whose results were all dropped before it started does not run. Without it \
            every call runs.",
        take: |to, value| {
            to.cancel_on_drop = value.boolean()?;
            Ok(())
        },
    },
];

impl CallOption {
    /// The option of this name.
    pub fn find(name: &str) -> Option<&'static CallOption> {
        CALL_OPTIONS.iter().find(|option| option.name == name)
    }

    /// Takes a value over, or says what kind of error it is.
    pub fn apply(&self, to: &mut CallOptions, value: &dyn CallValue) -> Result<(), FailureKind> {
        (self.take)(to, value)
    }
}
