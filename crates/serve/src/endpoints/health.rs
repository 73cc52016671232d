//! Whether the process works, and whether it takes requests.

use super::Call;
use crate::refusal::Refusal;
use crate::server::Answer;

/// The process works: this answer is the proof.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn live(_: &Call) -> Result<Answer, Refusal> {
    Ok(Answer::empty())
}

/// Requests are taken: all models are loaded before the server listens.
pub(super) fn ready(call: &Call) -> Result<Answer, Refusal> {
    call.shared.service.check_ready()?;
    Ok(Answer::empty())
}
