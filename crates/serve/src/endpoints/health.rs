//! Health of the server: liveness and readiness.

use super::call::EndpointCall;
use crate::answer::Answer;
use crate::refusal::Refusal;

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
