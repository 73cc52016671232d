//! Configuration of a model, as clients of Triton ask for it.

use super::Call;
use crate::model::ModelConfig;
use crate::refusal::Refusal;
use crate::server::Answer;

pub(super) fn answer(call: &Call) -> Result<Answer, Refusal> {
    let name = call.model.as_deref().unwrap_or_default();
    let (model, _) = call.shared.service.metadata(name, call.version.as_deref())?;
    Ok(Answer::json(&serde_json::json!(ModelConfig::of(&model))))
}
