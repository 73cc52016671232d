//! Readiness of a model.

use super::EndpointCall;
use crate::refusal::Refusal;
use crate::server::Answer;

pub(super) fn answer(call: &EndpointCall) -> Result<Answer, Refusal> {
    call.shared.service.model_ready(call.model.as_deref().unwrap_or_default(), call.version.as_deref())?;
    Ok(Answer::empty())
}
