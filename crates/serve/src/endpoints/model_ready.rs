//! Readiness of a model.

use super::call::EndpointCall;
use crate::answer::Answer;
use crate::refusal::Refusal;

pub(super) fn answer(call: &EndpointCall) -> Result<Answer, Refusal> {
    call.shared.service.model_ready(call.model.as_deref().unwrap_or_default(), call.version.as_deref())?;
    Ok(Answer::empty())
}
