//! How an op is described when it is pushed.

use crate::op::cancel::CancelHandle;
use crate::var::Var;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// How an op uses a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads the value.
    Read,
    /// Writes the whole value: the op does not depend on the old one, and success heals a failed
    /// variable.
    Write,
    /// Reads, or keeps a part of, the old value and writes: inherits its failure and does not heal
    /// it.
    Update,
}

/// The behaviour of an op when an input has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Does not run; everything it writes takes over the failure of the first failed input in
    /// declared order.
    Strict,
    /// Runs, and fails exactly the writes that depend on a failed input by
    /// [`RunCtx::fail_write`](crate::RunCtx::fail_write).
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
    /// Never blocks, never waits: runs on the pool, or in a thread that waits for its result and
    /// would only sleep.
    Medium,
    /// Runs on the pool.
    Large,
}

impl Cost {
    /// Ops that take less time are small.
    pub const SMALL_NS: u64 = 200_000;
    /// Ops that take less time are medium: a waiting thread looks after its signals about so often.
    pub const MEDIUM_NS: u64 = 50_000_000;

    /// The cost of an op that never blocks and takes `ns` nanoseconds of one core.
    pub fn of(ns: u64) -> Cost {
        match ns {
            0..Cost::SMALL_NS => Cost::Small,
            Cost::SMALL_NS..Cost::MEDIUM_NS => Cost::Medium,
            Cost::MEDIUM_NS.. => Cost::Large,
        }
    }
}

/// A kind of device, by the name in `name(0)`: at most six letters. Kinds are open: a backend
/// brings its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeviceKind([u8; 6]);

impl DeviceKind {
    /// The host.
    pub const CPU: DeviceKind = DeviceKind::named("cpu");
    /// Graphics processors.
    pub const GPU: DeviceKind = DeviceKind::named("gpu");
    /// The simulated device.
    pub const SIM: DeviceKind = DeviceKind::named("sim");

    /// The kind of this name.
    ///
    /// # Panics
    /// If the name has more than six bytes; in a constant that is an error of the compiler.
    pub const fn named(name: &str) -> Self {
        let name = name.as_bytes();
        assert!(name.len() <= 6, "names of device kinds have at most six bytes");
        let mut bytes = [0; 6];
        let mut i = 0;
        while i < name.len() {
            bytes[i] = name[i];
            i += 1;
        }
        DeviceKind(bytes)
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let len = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        f.write_str(std::str::from_utf8(&self.0[..len]).unwrap_or("?"))
    }
}

impl fmt::Debug for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The device on which an op runs. `DeviceId::cpu(1)` is another queue over the same cores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeviceId {
    kind: DeviceKind,
    index: u16,
}

impl DeviceId {
    /// `cpu(index)`.
    pub const fn cpu(index: u16) -> Self {
        DeviceId::new(DeviceKind::CPU, index)
    }

    /// `kind(index)`.
    pub const fn new(kind: DeviceKind, index: u16) -> Self {
        DeviceId { kind, index }
    }

    /// The kind of device.
    pub const fn kind(self) -> DeviceKind {
        self.kind
    }

    /// The number in the device's name.
    pub const fn index(self) -> u16 {
        self.index
    }

    /// Whether it is the host.
    pub fn is_cpu(self) -> bool {
        self.kind == DeviceKind::CPU
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.kind, self.index)
    }
}

/// Name of an op for messages and traces; cheap to clone. Built from a `&'static str`, an
/// `Arc<str>` or a `String`.
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
    /// The variables that the op reads and writes. A variable may appear more than once; its
    /// accesses are then merged.
    pub vars: &'a [(&'a Var, Access)],
    /// The behaviour when an input has failed.
    pub kind: OpKind,
    /// Queue it waits in.
    pub lane: Lane,
    /// The device on which the op runs.
    pub device: DeviceId,
    /// The device's stream for this lane; `None`: ops alternate between streams.
    pub stream: Option<u16>,
    /// Ops with a higher number are served first within a lane.
    pub priority: i32,
    /// Whether it may run in the pushing thread.
    pub cost: Cost,
    /// Fails with kind `Deadline` instead of running when its turn comes later than this.
    pub deadline: Option<Instant>,
    /// Fails with kind `Cancelled` instead of running once this was cancelled.
    pub cancel: Option<&'a CancelHandle>,
    /// Whether a `wait_all` that waits for the op that pushes this one waits for this one, too.
    pub follow_up: bool,
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
            stream: None,
            priority: 0,
            cost: Cost::Large,
            deadline: None,
            cancel: None,
            follow_up: false,
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

    /// Sets which of the device's streams for the lane is used.
    pub fn stream(mut self, stream: u16) -> Self {
        self.stream = Some(stream);
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

    /// Makes the op a follow-up of the op that pushes it: a `wait_all` that waits for that one waits
    /// for this one, too. Not for ops that push each other without end.
    pub fn follow_up(mut self) -> Self {
        self.follow_up = true;
        self
    }

    /// Sets the expected cost.
    pub fn cost(mut self, cost: Cost) -> Self {
        self.cost = cost;
        self
    }
}
