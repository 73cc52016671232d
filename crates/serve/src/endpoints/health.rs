//! Health of the server: liveness and readiness.

use super::Call;
use crate::refusal::Refusal;
use crate::server::Answer;

/// Answers that the process works.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn live(_: &Call) -> Result<Answer, Refusal> {
    Ok(Answer::empty())
}

/// Answers whether requests are accepted. All models are loaded before the server listens.
pub(super) fn ready(call: &Call) -> Result<Answer, Refusal> {
    call.shared.service.check_ready()?;
    Ok(Answer::empty())
}
