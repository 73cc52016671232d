//! Refusals: responses without results, with their status and their outcome in metrics.

use hyper::StatusCode;
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

/// Response to a request that gets no results.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// HTTP status
    pub status: StatusCode,
    /// code of the error, such as `MX-SHAPE`
    pub code: &'static str,
    /// outcome for metrics
    pub outcome: Outcome,
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
    /// Makes a refusal with this status.
    pub fn new(status: StatusCode, outcome: Outcome, message: impl Into<String>) -> Refusal {
        let message = bounded(message.into());
        Refusal { status, code: outcome.code(), outcome, message, retry_after: None, close: false, allow: None }
    }

    /// Gives the refusal the code of a kind of failure.
    pub fn of_kind(mut self, kind: FailureKind) -> Refusal {
        self.code = kind.code();
        self
    }

    /// Makes the refusal of a wrong request.
    pub fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, Outcome::Invalid, message)
    }

    /// Makes the refusal of a request for a path, model or version that does not exist.
    pub fn not_found(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, Outcome::Invalid, message)
    }

    /// Makes the refusal of a request for which the model or the server failed.
    pub fn failed(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, Outcome::Failed, message)
    }

    /// Makes the refusal of a request whose deadline has passed.
    pub fn late() -> Refusal {
        let message = "the deadline passed before the result was there: 'timeout' or the server's deadline says it";
        Refusal::new(StatusCode::GATEWAY_TIMEOUT, Outcome::Late, message)
    }

    /// Makes the refusal of a request that would end after its deadline, `time` from now.
    pub fn would_be_late(time: Duration) -> Refusal {
        let message = format!(
            "the deadline would pass before the result was there: it is about {:.3} s away by what waits",
            time.as_secs_f64()
        );
        Refusal::new(StatusCode::GATEWAY_TIMEOUT, Outcome::Late, message)
    }

    /// Makes the refusal of a request while the server is about to end.
    pub fn draining() -> Refusal {
        let message = "the server is about to end and takes no new requests: send it to another one";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, Outcome::Unavailable, message).retry_after(1).closing()
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
        let (status, outcome) = match details.kind {
            FailureKind::Deadline => return Refusal::late(),
            FailureKind::Memory => (StatusCode::SERVICE_UNAVAILABLE, Outcome::Memory),
            FailureKind::Device => (StatusCode::SERVICE_UNAVAILABLE, Outcome::Device),
            FailureKind::Shutdown => return Refusal::draining(),
            FailureKind::Cancelled => (StatusCode::INTERNAL_SERVER_ERROR, Outcome::Cancelled),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, Outcome::Failed),
        };
        let refusal = Refusal::new(status, outcome, text(details)).of_kind(details.kind);
        if status == StatusCode::SERVICE_UNAVAILABLE { refusal.retry_after(1) } else { refusal }
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
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, Outcome::Memory, message).retry_after(1)
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
