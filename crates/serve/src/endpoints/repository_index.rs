//! The models that there are, and their state.

use super::Call;
use crate::refusal::Refusal;
use crate::server::Answer;

#[allow(clippy::unnecessary_wraps)]
pub(super) fn answer(call: &Call) -> Result<Answer, Refusal> {
    Ok(Answer::json(&serde_json::json!(call.shared.service.index())))
}
