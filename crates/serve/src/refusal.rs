//! Refusals: responses without results, with their cause and their outcome in metrics. They are the
//! same over every transport; `status.rs` gives the status of a cause over HTTP and gRPC.

use mxrt_engine::{Details, FailureKind, OpError};
use std::time::Duration;

/// Outcome of a request, by which metrics count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// response with results
    Success,
    /// wrong request
    Invalid,
    /// full queue
    Rejected,
    /// missed deadline
    Late,
    /// client that has gone
    Cancelled,
    /// server that is about to end
    Unavailable,
    /// lack of memory
    Memory,
    /// failed model
    Failed,
    /// failed device
    Device,
    /// failed hook
    Hook,
}

impl Outcome {
    /// All outcomes, in the order of their declaration.
    pub const ALL: [Outcome; 10] = [
        Outcome::Success,
        Outcome::Invalid,
        Outcome::Rejected,
        Outcome::Late,
        Outcome::Cancelled,
        Outcome::Unavailable,
        Outcome::Memory,
        Outcome::Failed,
        Outcome::Device,
        Outcome::Hook,
    ];

    /// Returns the name of the outcome in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Invalid => "invalid",
            Outcome::Rejected => "rejected",
            Outcome::Late => "late",
            Outcome::Cancelled => "cancelled",
            Outcome::Unavailable => "unavailable",
            Outcome::Memory => "memory",
            Outcome::Failed => "failed",
            Outcome::Device => "device",
            Outcome::Hook => "hook",
        }
    }

    /// Returns the code of refusals with this outcome whose failure has no kind of its own.
    /// `mxrt explain CODE` prints its page.
    pub const fn code(self) -> &'static str {
        match self {
            Outcome::Success | Outcome::Failed => FailureKind::Operator.code(),
            Outcome::Invalid => "MX-REQUEST",
            Outcome::Rejected | Outcome::Unavailable => "MX-BUSY",
            Outcome::Late => FailureKind::Deadline.code(),
            Outcome::Cancelled => FailureKind::Cancelled.code(),
            Outcome::Memory => FailureKind::Memory.code(),
            Outcome::Device => FailureKind::Device.code(),
            Outcome::Hook => "MX-HOOK",
        }
    }
}

/// Cause of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// wrong content of a request
    Invalid,
    /// path, model or version that does not exist
    NotFound,
    /// lack of a known token
    Unauthenticated,
    /// method of HTTP that the path does not take
    WrongMethod,
    /// form of the response that the server does not write
    NotAcceptable,
    /// content type or encoding that the server does not read
    UnsupportedContent,
    /// method or encoding of gRPC that the server does not have
    Unimplemented,
    /// contradiction to the models that the server has
    Conflict,
    /// body above a limit
    TooLarge,
    /// head above a limit
    HeadTooLarge,
    /// body that takes too long to arrive
    SlowBody,
    /// body that ends early because its client has gone
    BrokenBody,
    /// client that has gone before its response
    ClientGone,
    /// call that was cancelled
    Cancelled,
    /// full queue
    Full,
    /// too many open requests
    TooManyOpen,
    /// profiler that is in use
    InUse,
    /// missed deadline
    Late,
    /// server that is about to end, or model that does not serve now
    Unavailable,
    /// lack of memory that may end by itself
    Memory,
    /// lack of memory until another model is unloaded
    NoRoom,
    /// failed model
    Failed,
    /// failed device
    Device,
    /// failed hook
    Hook,
}

impl Cause {
    /// Returns the outcome of a request that is refused for this cause.
    pub const fn outcome(self) -> Outcome {
        match self {
            Cause::Invalid
            | Cause::NotFound
            | Cause::Unauthenticated
            | Cause::WrongMethod
            | Cause::NotAcceptable
            | Cause::UnsupportedContent
            | Cause::Unimplemented
            | Cause::Conflict
            | Cause::TooLarge
            | Cause::HeadTooLarge
            | Cause::SlowBody => Outcome::Invalid,
            Cause::BrokenBody | Cause::ClientGone | Cause::Cancelled => Outcome::Cancelled,
            Cause::Full | Cause::TooManyOpen | Cause::InUse => Outcome::Rejected,
            Cause::Late => Outcome::Late,
            Cause::Unavailable => Outcome::Unavailable,
            Cause::Memory | Cause::NoRoom => Outcome::Memory,
            Cause::Failed => Outcome::Failed,
            Cause::Device => Outcome::Device,
            Cause::Hook => Outcome::Hook,
        }
    }
}

/// Response to a request that gets no results.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// cause, from which the status over each transport follows
    pub cause: Cause,
    /// code of the error, such as `MX-SHAPE`
    pub code: &'static str,
    /// message for the client
    pub message: String,
    /// seconds after which the client should try again
    pub retry_after: Option<u64>,
    /// whether the connection ends with the response
    pub close: bool,
    /// value of the header `Allow`: methods that the path takes
    pub allow: Option<String>,
}

impl Refusal {
    /// Makes a refusal for this cause.
    pub fn new(cause: Cause, message: impl Into<String>) -> Refusal {
        let message = bounded(message.into());
        Refusal { cause, code: cause.outcome().code(), message, retry_after: None, close: false, allow: None }
    }

    /// Returns the outcome of the request for metrics.
    pub fn outcome(&self) -> Outcome {
        self.cause.outcome()
    }

    /// Gives the refusal the code of a kind of failure.
    pub fn of_kind(mut self, kind: FailureKind) -> Refusal {
        self.code = kind.code();
        self
    }

    /// Makes the refusal of a wrong request.
    pub fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(Cause::Invalid, message)
    }

    /// Makes the refusal of a request for a path, model or version that does not exist.
    pub fn not_found(message: impl Into<String>) -> Refusal {
        Refusal::new(Cause::NotFound, message)
    }

    /// Makes the refusal of a request for which the model or the server failed.
    pub fn failed(message: impl Into<String>) -> Refusal {
        Refusal::new(Cause::Failed, message)
    }

    /// Makes the refusal of a request whose deadline has passed.
    pub fn late() -> Refusal {
        let message = "the deadline passed before the result was there: 'timeout' or the server's deadline says it";
        Refusal::new(Cause::Late, message)
    }

    /// Makes the refusal of a request that would end after its deadline, `time` from now.
    pub fn would_be_late(time: Duration) -> Refusal {
        let message = format!(
            "the deadline would pass before the result was there: it is about {:.3} s away by what waits",
            time.as_secs_f64()
        );
        Refusal::new(Cause::Late, message)
    }

    /// Makes the refusal of a request while the server is about to end.
    pub fn draining() -> Refusal {
        let message = "the server is about to end and takes no new requests: send it to another one";
        Refusal::new(Cause::Unavailable, message).retry_after(1).closing()
    }

    /// Sets the number of seconds after which the client should try again.
    pub fn retry_after(mut self, seconds: u64) -> Refusal {
        self.retry_after = Some(seconds);
        self
    }

    /// Ends the connection with the response.
    pub fn closing(mut self) -> Refusal {
        self.close = true;
        self
    }

    /// Translates an error that the call of a model returned. Errors about arguments are the
    /// client's.
    pub fn of_call(error: &OpError) -> Refusal {
        match (error.inherited(), error.kind) {
            (Some(failure), _) => {
                failure.mark_observed();
                Refusal::of_failure(failure.details())
            }
            (None, FailureKind::Value | FailureKind::Type | FailureKind::Shape | FailureKind::Index) => {
                Refusal::invalid(text(error)).of_kind(error.kind)
            }
            (None, _) => Refusal::of_failure(error),
        }
    }

    /// Translates the failure of a model that ran.
    pub fn of_failure(details: &Details) -> Refusal {
        let cause = match details.kind {
            FailureKind::Deadline => return Refusal::late(),
            FailureKind::Memory => Cause::Memory,
            FailureKind::Device => Cause::Device,
            FailureKind::Shutdown => return Refusal::draining(),
            FailureKind::Cancelled => Cause::Cancelled,
            _ => Cause::Failed,
        };
        let refusal = Refusal::new(cause, text(details)).of_kind(details.kind);
        if matches!(cause, Cause::Memory | Cause::Device) { refusal.retry_after(1) } else { refusal }
    }
}

/// Shortens a message, as it may quote long text of a client.
pub(crate) fn bounded(mut message: String) -> String {
    const LONGEST: usize = 4096;
    if message.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
        message.truncate(end);
        message.push_str("...");
        message.shrink_to_fit();
    }
    message
}

/// Returns the message with the operator and the node. It names no files of the server.
fn text(details: &Details) -> String {
    match details.subject() {
        Some(subject) if !details.message.contains(&subject) => format!("{subject}: {}", details.message),
        _ => details.message.clone(),
    }
}

/// Reserves room in a vector for more elements. Their number comes from a request, so failure is an
/// error.
pub(crate) fn room<T>(to: &mut Vec<T>, more: usize) -> Result<(), Refusal> {
    to.try_reserve(more).map_err(|_| no_memory(more * size_of::<T>()))
}

/// Makes the refusal of a request for which there is no memory.
pub(crate) fn no_memory(bytes: usize) -> Refusal {
    let message = format!("there is no memory for {bytes} bytes of the request: try again in 1 s, or another server");
    Refusal::new(Cause::Memory, message).retry_after(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_the_code_of_its_failure_or_of_its_outcome() {
        let of = |kind| Refusal::of_failure(&OpError::new(kind, "words")).code;
        assert_eq!(of(FailureKind::Operator), "MX-OPERATOR");
        assert_eq!(of(FailureKind::Index), "MX-INDEX");
        assert_eq!(of(FailureKind::Memory), "MX-MEMORY");
        assert_eq!(of(FailureKind::Deadline), "MX-TIME");
        assert_eq!(of(FailureKind::Shutdown), "MX-BUSY");
        assert_eq!(Refusal::of_call(&OpError::new(FailureKind::Shape, "words")).code, "MX-SHAPE");
        assert_eq!(Refusal::not_found("words").code, "MX-REQUEST");
        assert_eq!(Refusal::draining().code, "MX-BUSY");
    }
}
