//! Metadata of a model: its inputs and outputs.

use super::EndpointCall;
use crate::refusal::Refusal;
use crate::server::Answer;

pub(super) fn answer(call: &EndpointCall) -> Result<Answer, Refusal> {
    let name = call.model.as_deref().unwrap_or_default();
    let (model, versions) = call.shared.service.metadata(name, call.version.as_deref())?;
    Ok(Answer::json(&model.metadata(&versions)))
}
