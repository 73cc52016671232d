//! Statistics of models, in the form of the protocol's extension.

use super::call::EndpointCall;
use crate::answer::Answer;
use crate::refusal::Refusal;

pub(super) fn answer(call: &EndpointCall) -> Result<Answer, Refusal> {
    let stats = call.shared.service.statistics(call.model.as_deref(), call.version.as_deref())?;
    Ok(Answer::json(&serde_json::json!({ "model_stats": stats })))
}
