//! Statistics of models, in the form of the protocol's extension.

use super::Call;
use crate::refusal::Refusal;
use crate::server::Answer;

pub(super) fn answer(call: &Call) -> Result<Answer, Refusal> {
    let stats = call.shared.service.statistics(call.model.as_deref(), call.version.as_deref())?;
    Ok(Answer::json(&serde_json::json!({ "model_stats": stats })))
}
