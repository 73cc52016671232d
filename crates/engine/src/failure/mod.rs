//! Failures: one event shared by everything that depends on it, and the errors an op and a wait
//! return.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

mod kind;
mod panic;
pub(crate) mod unobserved;

pub use kind::FailureKind;
pub(crate) use panic::{discard, panic_error, panic_text};

/// Everything known about one failure.
#[derive(Clone, Debug)]
pub struct Details {
    /// The kind of failure.
    pub kind: FailureKind,
    /// A description of what was being done, what was wrong, what was expected, and what to do
    /// next.
    pub message: String,
    /// Name of the operator; filled in from the op when absent.
    pub op: Option<String>,
    /// Name of the graph node.
    pub node: Option<String>,
    /// Attributes of the operator.
    pub attrs: Vec<(String, String)>,
    /// Shapes of the inputs.
    pub shapes: Vec<Vec<usize>>,
    /// Types of the inputs.
    pub dtypes: Vec<&'static str>,
    /// Device the operator ran on; filled in from the op when absent.
    pub device: Option<String>,
    /// The place in the program where the op was pushed, as `file:line`. It comes from the op,
    /// which knows it in debug builds and where a border names it ([`PushSite`](crate::PushSite)).
    pub pushed_at: Option<String>,
    /// Number of the request ([`RequestScope`](crate::RequestScope)) that the op belongs to; filled
    /// in from the op.
    pub request: Option<u64>,
    /// The cause reported by the program that computes the op, such as an exception of Python.
    pub cause: Option<Cause>,
    /// The input of a model that is to blame, where one is.
    pub input: Option<WrongInput>,
}

/// An input of a model that does not fit it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongInput {
    /// Name of the input.
    pub name: String,
    /// The value that was passed, such as a shape or an element type; `None`: nothing was.
    pub got: Option<String>,
    /// The expected value; `None` if the model has no such input.
    pub wanted: Option<String>,
}

/// An object of the host program that says why something failed. Clones are the same object.
#[derive(Clone)]
pub struct Cause(pub Arc<dyn Any + Send + Sync>);

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cause")
    }
}

impl Details {
    /// Operator and node as messages name them: `Convolution 'conv0'`.
    pub fn subject(&self) -> Option<String> {
        match (self.op.as_deref().filter(|op| !op.is_empty()), self.node.as_deref()) {
            (None, None) => None,
            (None, Some(node)) => Some(format!("'{node}'")),
            (Some(op), None) => Some(op.to_owned()),
            (Some(op), Some(node)) => Some(format!("{op} '{node}'")),
        }
    }

    /// The message, prefixed with operator and node unless it names them itself.
    pub fn full_message(&self) -> String {
        let Some(subject) = self.subject() else { return self.message.clone() };
        let named = self.message.starts_with(&subject) || self.message.contains(&format!(". {subject}: "));
        if named { self.message.clone() } else { format!("{subject}: {}", self.message) }
    }
}

/// The error an op returns. Derefs to [`Details`]; small, so that results stay cheap.
#[derive(Clone, Debug)]
pub struct OpError(Box<Reason>);

#[derive(Clone, Debug)]
struct Reason {
    details: Details,
    /// An inherited failure, passed on unchanged.
    inherited: Option<Failure>,
}

impl OpError {
    /// A new error; the engine adds the op's name and device.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let details = Details {
            kind,
            message: message.into(),
            op: None,
            node: None,
            attrs: Vec::new(),
            shapes: Vec::new(),
            dtypes: Vec::new(),
            device: None,
            pushed_at: None,
            request: None,
            cause: None,
            input: None,
        };
        OpError(Box::new(Reason { details, inherited: None }))
    }

    /// A new error of which all this is known.
    pub fn from_details(details: Details) -> Self {
        OpError(Box::new(Reason { details, inherited: None }))
    }

    /// Names the operator.
    pub fn op(mut self, op: impl Into<String>) -> Self {
        self.0.details.op = Some(op.into());
        self
    }

    /// Names the graph node.
    pub fn node(mut self, node: impl Into<String>) -> Self {
        self.0.details.node = Some(node.into());
        self
    }

    /// Gives the operator's attributes.
    pub fn attrs(mut self, attrs: Vec<(String, String)>) -> Self {
        self.0.details.attrs = attrs;
        self
    }

    /// Gives the shapes of the inputs.
    pub fn shapes(mut self, shapes: Vec<Vec<usize>>) -> Self {
        self.0.details.shapes = shapes;
        self
    }

    /// Gives the types of the inputs.
    pub fn dtypes(mut self, dtypes: Vec<&'static str>) -> Self {
        self.0.details.dtypes = dtypes;
        self
    }

    /// Names the device.
    pub fn device(mut self, device: impl Into<String>) -> Self {
        self.0.details.device = Some(device.into());
        self
    }

    /// Says which object of the host program is the cause.
    pub fn cause(mut self, cause: Arc<dyn Any + Send + Sync>) -> Self {
        self.0.details.cause = Some(Cause(cause));
        self
    }

    /// Names the input of a model that is to blame.
    pub fn input(mut self, input: WrongInput) -> Self {
        self.0.details.input = Some(input);
        self
    }

    /// The failure this error passes on, if it is not a new one.
    pub fn inherited(&self) -> Option<&Failure> {
        self.0.inherited.as_ref()
    }

    /// The event to hand on: the inherited one, or a new one.
    pub fn to_failure(&self) -> Failure {
        self.inherited().cloned().unwrap_or_else(|| Failure::new(self.0.details.clone()))
    }

    /// The failure to keep, with what the error left open.
    pub(crate) fn into_failure(self, fill: impl FnOnce(&mut Details)) -> Failure {
        let Reason { mut details, inherited } = *self.0;
        if let Some(f) = inherited {
            return f;
        }
        fill(&mut details);
        Failure::new(details)
    }
}

impl Deref for OpError {
    type Target = Details;
    fn deref(&self) -> &Details {
        &self.0.details
    }
}

impl DerefMut for OpError {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0.details
    }
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for OpError {}

impl From<Details> for OpError {
    /// A new error with these parts.
    fn from(details: Details) -> Self {
        OpError(Box::new(Reason { details, inherited: None }))
    }
}

impl From<Failure> for OpError {
    /// Passes an inherited failure on unchanged: dependants then report the original event.
    fn from(failure: Failure) -> Self {
        OpError(Box::new(Reason { details: failure.0.details.clone(), inherited: Some(failure) }))
    }
}

/// One failure event. Clones are the same event; every dependant holds a clone of the first.
#[derive(Clone)]
pub struct Failure(Arc<Inner>);

struct Inner {
    details: Details,
    observed: AtomicBool,
    /// An engine has it in its list for `wait_all`, or has counted it.
    recorded: AtomicBool,
}

/// A thread has observed a failure since the list of unobserved ones was last swept.
static OBSERVED_SINCE_SWEEP: AtomicBool = AtomicBool::new(false);

fn take_observed_since_sweep() -> bool {
    OBSERVED_SINCE_SWEEP.swap(false, Ordering::Relaxed)
}

impl Failure {
    /// A failure that no op returned, for selective ops and for callers outside the engine.
    pub fn new(details: Details) -> Self {
        Failure(Arc::new(Inner { details, observed: AtomicBool::new(false), recorded: AtomicBool::new(false) }))
    }

    /// Whether both are clones of one event.
    pub fn same_event(&self, other: &Failure) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Everything known about it.
    pub fn details(&self) -> &Details {
        &self.0.details
    }

    /// Name of the operator that failed.
    pub fn op(&self) -> &str {
        self.0.details.op.as_deref().unwrap_or("")
    }

    /// Name of the graph node, if there is one.
    pub fn node(&self) -> Option<&str> {
        self.0.details.node.as_deref()
    }

    /// Attributes of the operator.
    pub fn attrs(&self) -> &[(String, String)] {
        &self.0.details.attrs
    }

    /// Shapes of the operator's inputs.
    pub fn shapes(&self) -> &[Vec<usize>] {
        &self.0.details.shapes
    }

    /// Types of the operator's inputs.
    pub fn dtypes(&self) -> &[&'static str] {
        &self.0.details.dtypes
    }

    /// Device the operator ran on.
    pub fn device(&self) -> Option<&str> {
        self.0.details.device.as_deref()
    }

    /// The place in the program where the op was pushed, if it was noted.
    pub fn pushed_at(&self) -> Option<&str> {
        self.0.details.pushed_at.as_deref()
    }

    /// Number of the request that the op belonged to.
    pub fn request(&self) -> Option<u64> {
        self.0.details.request
    }

    /// The kind of failure.
    pub fn kind(&self) -> FailureKind {
        self.0.details.kind
    }

    /// The message for a person.
    pub fn message(&self) -> &str {
        &self.0.details.message
    }

    /// Whether a wait has returned this event to a thread.
    pub fn is_observed(&self) -> bool {
        self.0.observed.load(Ordering::Acquire)
    }

    /// Notes that an engine remembers the event; returns whether one did before.
    pub(crate) fn mark_recorded(&self) -> bool {
        self.0.recorded.load(Ordering::Relaxed) || self.0.recorded.swap(true, Ordering::Relaxed)
    }

    /// Marks the failure as observed; returns whether it was before. Waits do this themselves; a
    /// callback of [`Engine::on_ready`](crate::Engine::on_ready) that raises the failure does it by
    /// this call.
    pub fn mark_observed(&self) -> bool {
        let before = self.0.observed.swap(true, Ordering::AcqRel);
        if !before {
            OBSERVED_SINCE_SWEEP.store(true, Ordering::Relaxed);
        }
        before
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("kind", &self.kind())
            .field("op", &self.op())
            .field("message", &self.message())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Failure {}

/// The outcome of a wait that did not succeed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WaitError {
    /// The awaited value failed.
    #[error("{0}")]
    Failed(Failure),
    /// Failures that no thread had observed, and how many more there were than the engine keeps.
    #[error("{}", list_failures(.0, *.1))]
    Failures(Vec<Failure>, u64),
    /// The calling thread is running an op; waiting there could never end.
    #[error("waiting inside an operator is not possible: declare what it needs as a read instead")]
    InsideOp,
    /// The calling thread runs a function of the program that an op waits for, so that waiting for
    /// everything could never end.
    #[error(
        "waiting for everything inside of an operator of the program would wait for that operator itself: wait for \
         single arrays, as by wait_to_read, instead"
    )]
    InsideCall,
    /// The poll hook asked to give up.
    #[error("the wait was interrupted")]
    Interrupted,
    /// The engine was closed while waiting.
    #[error("the engine was closed before the result was ready")]
    Closed,
}

impl From<WaitError> for OpError {
    /// The failure of an awaited value is passed on. Several become one error of the first one's
    /// kind.
    fn from(error: WaitError) -> OpError {
        let kind = match &error {
            WaitError::Failed(failure) => return failure.clone().into(),
            WaitError::Failures(list, 0) if list.len() == 1 => return list[0].clone().into(),
            WaitError::Failures(list, _) => list.first().map_or(FailureKind::Operator, Failure::kind),
            WaitError::InsideOp | WaitError::InsideCall => FailureKind::Operator,
            WaitError::Interrupted => FailureKind::Cancelled,
            WaitError::Closed => FailureKind::Shutdown,
        };
        OpError::new(kind, error.to_string())
    }
}

fn list_failures(list: &[Failure], more: u64) -> String {
    let mut text = match list {
        [one] if more == 0 => return one.message().to_owned(),
        _ => format!("{} operators failed:", list.len() as u64 + more),
    };
    for f in list.iter().take(10) {
        text.push_str("\n  ");
        text.push_str(f.message());
    }
    let hidden = list.len().saturating_sub(10) as u64 + more;
    if hidden > 0 {
        text.push_str(&format!("\n  and {hidden} more"));
    }
    text
}
