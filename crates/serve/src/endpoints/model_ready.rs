//! Whether a model takes requests.

use super::Call;
use crate::refusal::Refusal;
use crate::server::Answer;

pub(super) fn answer(call: &Call) -> Result<Answer, Refusal> {
    call.shared.repository.find(call.model.as_deref().unwrap_or_default(), call.version.as_deref())?;
    super::health::ready(call)
}
