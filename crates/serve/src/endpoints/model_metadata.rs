//! Inputs and outputs of a model.

use super::Call;
use crate::refusal::Refusal;
use crate::server::Answer;

pub(super) fn answer(call: &Call) -> Result<Answer, Refusal> {
    let name = call.model.as_deref().unwrap_or_default();
    let repository = &call.shared.repository;
    let model = repository.find(name, call.version.as_deref())?;
    Ok(Answer::json(&repository.metadata(model)))
}
