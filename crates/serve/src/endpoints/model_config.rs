//! Configuration of a model, as clients of Triton ask for it.

use super::call::EndpointCall;
use crate::answer::Answer;
use crate::model::ModelConfig;
use crate::refusal::Refusal;

pub(super) fn answer(call: &EndpointCall) -> Result<Answer, Refusal> {
    let name = call.model.as_deref().unwrap_or_default();
    let (model, _) = call.shared.service.metadata(name, call.version.as_deref())?;
    Ok(Answer::json(&serde_json::json!(ModelConfig::of(&model))))
}
