//! Health of the server: liveness and readiness.

use super::EndpointCall;
use crate::refusal::Refusal;
use crate::server::Answer;

/// Answers that the process works.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn live(_: &EndpointCall) -> Result<Answer, Refusal> {
    Ok(Answer::empty())
}

/// Answers whether requests are accepted. All models are loaded before the server listens.
pub(super) fn ready(call: &EndpointCall) -> Result<Answer, Refusal> {
    call.shared.service.check_ready()?;
    Ok(Answer::empty())
}
