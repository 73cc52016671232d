//! Options of a call, one row each. Borders, docs/settings.md and the types of calls in Python are
//! made from these rows.

use mxrt_engine::FailureKind;
use std::time::{Duration, Instant};

/// Options of one call: its place in the queue, and when it need not run.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions {
    /// priority; calls with a higher number are served first
    pub priority: i32,
    /// time after which the call fails with kind `Deadline` if it has not started
    pub deadline: Option<Instant>,
    /// whether the call is cancelled when all its results are dropped before it starts
    pub cancel_on_drop: bool,
}

impl CallOptions {
    /// Sets the priority.
    pub fn priority(mut self, priority: i32) -> CallOptions {
        self.priority = priority;
        self
    }

    /// Sets a deadline `wait` from now. A deadline beyond the range of the clock never comes.
    pub fn within(mut self, wait: Duration) -> CallOptions {
        self.deadline = Instant::now().checked_add(wait);
        self
    }
}

/// One option of a call.
pub struct CallOption {
    /// the keyword
    pub name: &'static str,
    /// type of the value, as Python spells it
    pub python_type: &'static str,
    /// default value, as Python spells it
    pub default: &'static str,
    /// accepted values; errors put "expected" before this text
    pub expects: &'static str,
    /// effect of the option, for documentation
    pub doc: &'static str,
    /// stores a value in the options
    take: fn(&mut CallOptions, &dyn CallValue) -> Result<(), FailureKind>,
}

/// A value of an option in the calling language. Errors are [`FailureKind::Type`] for a value of
/// another type and [`FailureKind::Value`] for one out of range.
pub trait CallValue {
    /// Whether the value stands for the absence of one.
    fn is_none(&self) -> bool;
    /// The value as a whole number.
    fn integer(&self) -> Result<i64, FailureKind>;
    /// The value as a number.
    fn number(&self) -> Result<f64, FailureKind>;
    /// The value as a truth value.
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
        doc: "A call that has not started after this many seconds does not run. Reading its result \
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
    /// The option with this name.
    pub fn find(name: &str) -> Option<&'static CallOption> {
        CALL_OPTIONS.iter().find(|option| option.name == name)
    }

    /// Stores a value in the options. Errors are those of [`CallValue`].
    pub fn apply(&self, to: &mut CallOptions, value: &dyn CallValue) -> Result<(), FailureKind> {
        (self.take)(to, value)
    }
}
