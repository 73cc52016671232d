//! How an op is described when it is pushed.

use crate::cancel::CancelHandle;
use crate::var::Var;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// How an op uses a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads the value.
    Read,
    /// Writes the whole value: the op does not depend on the old one, and success heals a failed variable.
    Write,
    /// Reads, or keeps a part of, the old value and writes: inherits its failure and does not heal it.
    Update,
}

/// What an op does when an input has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Does not run; everything it writes takes over the failure of the first failed input in declared order.
    Strict,
    /// Runs, and fails exactly the writes that depend on a failed input by [`RunCtx::fail_write`](crate::RunCtx::fail_write).
    Selective,
    /// Always runs, also after the engine was closed: for clean-up.
    NoSkip,
}

/// The queue an op waits in when it is ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Ordinary work.
    Normal,
    /// Served before all other lanes.
    Priority,
    /// Copies to the device.
    CopyIn,
    /// Copies from the device.
    CopyOut,
}

/// How long an op is expected to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cost {
    /// Short, never blocks, never waits: may run in the thread that pushes it.
    Small,
    /// Runs on the pool.
    Large,
}

/// Where an op runs. `DeviceId::cpu(1)` is another queue over the same cores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeviceId {
    kind: DeviceKind,
    index: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum DeviceKind {
    Cpu,
}

impl DeviceId {
    /// `cpu(index)`.
    pub const fn cpu(index: u16) -> Self {
        DeviceId { kind: DeviceKind::Cpu, index }
    }

    /// The number in the device's name.
    pub const fn index(self) -> u16 {
        self.index
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            DeviceKind::Cpu => write!(f, "cpu({})", self.index),
        }
    }
}

/// Name of an op for messages and traces; cheap to clone. Built from a `&'static str`, an `Arc<str>` or a `String`.
#[derive(Clone)]
pub struct OpName(Name);

#[derive(Clone)]
enum Name {
    Static(&'static str),
    // Twice an `Arc` so that the name takes 16 bytes: it lives in the first cache line of an op.
    Shared(Arc<Arc<str>>),
}

const _: () = assert!(size_of::<OpName>() == 16);

impl OpName {
    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Name::Static(s) => s,
            Name::Shared(s) => s,
        }
    }
}

impl From<&'static str> for OpName {
    fn from(name: &'static str) -> Self {
        OpName(Name::Static(name))
    }
}

impl From<Arc<str>> for OpName {
    fn from(name: Arc<str>) -> Self {
        OpName(Name::Shared(Arc::new(name)))
    }
}

impl From<String> for OpName {
    fn from(name: String) -> Self {
        OpName::from(Arc::<str>::from(name))
    }
}

impl fmt::Debug for OpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for OpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Everything the engine needs to know about an op besides its closure.
#[derive(Clone, Debug)]
pub struct OpSpec<'a> {
    /// Name for messages and traces.
    pub name: OpName,
    /// What it reads and writes. A variable may appear more than once; its accesses are then merged.
    pub vars: &'a [(&'a Var, Access)],
    /// What it does when an input has failed.
    pub kind: OpKind,
    /// Queue it waits in.
    pub lane: Lane,
    /// Where it runs.
    pub device: DeviceId,
    /// Ops with a higher number are served first within a lane.
    pub priority: i32,
    /// Whether it may run in the pushing thread.
    pub cost: Cost,
    /// Fails with kind `Deadline` instead of running when its turn comes later than this.
    pub deadline: Option<Instant>,
    /// Fails with kind `Cancelled` instead of running once this was cancelled.
    pub cancel: Option<&'a CancelHandle>,
}

impl<'a> OpSpec<'a> {
    /// A strict, large op on the normal lane of `cpu(0)`.
    pub fn new(name: impl Into<OpName>, vars: &'a [(&'a Var, Access)]) -> Self {
        OpSpec {
            name: name.into(),
            vars,
            kind: OpKind::Strict,
            lane: Lane::Normal,
            device: DeviceId::cpu(0),
            priority: 0,
            cost: Cost::Large,
            deadline: None,
            cancel: None,
        }
    }

    /// Sets what happens when an input has failed.
    pub fn kind(mut self, kind: OpKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the lane.
    pub fn lane(mut self, lane: Lane) -> Self {
        self.lane = lane;
        self
    }

    /// Sets the device.
    pub fn device(mut self, device: DeviceId) -> Self {
        self.device = device;
        self
    }

    /// Sets the priority within the lane.
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the time after which the op is not worth starting.
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets what cancels the op.
    pub fn cancel(mut self, handle: &'a CancelHandle) -> Self {
        self.cancel = Some(handle);
        self
    }

    /// Sets the expected cost.
    pub fn cost(mut self, cost: Cost) -> Self {
        self.cost = cost;
        self
    }
}
