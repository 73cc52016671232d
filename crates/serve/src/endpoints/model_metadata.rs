//! Metadata of a model: its inputs and outputs.

use super::call::EndpointCall;
use crate::answer::Answer;
use crate::refusal::Refusal;

pub(super) fn answer(call: &EndpointCall) -> Result<Answer, Refusal> {
    let name = call.model.as_deref().unwrap_or_default();
    let (model, versions) = call.shared.service.metadata(name, call.version.as_deref())?;
    Ok(Answer::json(&model.metadata(&versions)))
}
