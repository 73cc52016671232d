//! Statistics of models, in the form of the protocol's extension.

use super::EndpointCall;
use crate::refusal::Refusal;
use crate::server::Answer;

pub(super) fn answer(call: &EndpointCall) -> Result<Answer, Refusal> {
    let stats = call.shared.service.statistics(call.model.as_deref(), call.version.as_deref())?;
    Ok(Answer::json(&serde_json::json!({ "model_stats": stats })))
}
