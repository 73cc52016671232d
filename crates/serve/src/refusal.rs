//! Answers that are no results: their status, and what they count as.

use hyper::StatusCode;
use mxrt_engine::{Details, FailureKind, OpError};
use std::time::Duration;

/// How a request ended; metrics count by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// answered with results
    Success,
    /// the request is wrong
    Invalid,
    /// the queue was full
    Rejected,
    /// the deadline passed
    Late,
    /// the client has gone
    Cancelled,
    /// the server is about to end
    Unavailable,
    /// no memory
    Memory,
    /// the model failed
    Failed,
    /// a device failed
    Device,
    /// a hook failed
    Hook,
}

impl Outcome {
    /// All of them, in the order of their declaration.
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

    /// As metrics name it.
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
}

/// Why a request gets no result.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// HTTP status
    pub status: StatusCode,
    /// what it counts as
    pub outcome: Outcome,
    /// text for the client
    pub message: String,
    /// seconds after which another try makes sense
    pub retry_after: Option<u64>,
    /// the connection ends with the answer
    pub close: bool,
    /// methods that the path takes, as the header `Allow` lists them
    pub allow: Option<String>,
}

impl Refusal {
    /// An answer of this status.
    pub fn new(status: StatusCode, outcome: Outcome, message: impl Into<String>) -> Refusal {
        Refusal { status, outcome, message: bounded(message.into()), retry_after: None, close: false, allow: None }
    }

    /// The request is wrong.
    pub fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, Outcome::Invalid, message)
    }

    /// There is no such path, model or version.
    pub fn not_found(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::NOT_FOUND, Outcome::Invalid, message)
    }

    /// The model, or the server, did not do what it should.
    pub fn failed(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, Outcome::Failed, message)
    }

    /// The deadline passed.
    pub fn late() -> Refusal {
        let message = "the deadline passed before the result was there: 'timeout' or the server's deadline says it";
        Refusal::new(StatusCode::GATEWAY_TIMEOUT, Outcome::Late, message)
    }

    /// The deadline will have passed.
    pub fn would_be_late(time: Duration) -> Refusal {
        let message = format!(
            "the deadline would pass before the result was there: it is about {:.3} s away by what waits",
            time.as_secs_f64()
        );
        Refusal::new(StatusCode::GATEWAY_TIMEOUT, Outcome::Late, message)
    }

    /// The server is about to end.
    pub fn draining() -> Refusal {
        let message = "the server is about to end and takes no new requests: send it to another one";
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, Outcome::Unavailable, message).retry_after(1).closing()
    }

    /// Says when another try makes sense.
    pub fn retry_after(mut self, seconds: u64) -> Refusal {
        self.retry_after = Some(seconds);
        self
    }

    /// Ends the connection with the answer.
    pub fn closing(mut self) -> Refusal {
        self.close = true;
        self
    }

    /// An error that the call of a model returned: what it says of arguments is the client's.
    pub fn of_call(error: &OpError) -> Refusal {
        match (error.inherited(), error.kind) {
            (Some(failure), _) => {
                failure.mark_observed();
                Refusal::of_failure(failure.details())
            }
            (None, FailureKind::Value | FailureKind::Type | FailureKind::Shape | FailureKind::Index) => {
                Refusal::invalid(text(error))
            }
            (None, _) => Refusal::of_failure(error),
        }
    }

    /// A failure of a model that ran.
    pub fn of_failure(details: &Details) -> Refusal {
        let (status, outcome) = match details.kind {
            FailureKind::Deadline => return Refusal::late(),
            FailureKind::Memory => (StatusCode::SERVICE_UNAVAILABLE, Outcome::Memory),
            FailureKind::Device => (StatusCode::SERVICE_UNAVAILABLE, Outcome::Device),
            FailureKind::Shutdown => return Refusal::draining(),
            FailureKind::Cancelled => (StatusCode::INTERNAL_SERVER_ERROR, Outcome::Cancelled),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, Outcome::Failed),
        };
        let refusal = Refusal::new(status, outcome, text(details));
        if status == StatusCode::SERVICE_UNAVAILABLE { refusal.retry_after(1) } else { refusal }
    }
}

/// A text that may quote what a client said is not as long as that.
fn bounded(mut message: String) -> String {
    const LONGEST: usize = 4096;
    if message.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| message.is_char_boundary(*end)).unwrap_or(0);
        message.truncate(end);
        message.push_str("...");
        message.shrink_to_fit();
    }
    message
}

/// Message with operator and node. Nothing of the server's files is in it.
fn text(details: &Details) -> String {
    match details.subject() {
        Some(subject) if !details.message.contains(&subject) => format!("{subject}: {}", details.message),
        _ => details.message.clone(),
    }
}
