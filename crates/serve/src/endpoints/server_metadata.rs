//! Metadata of the server: its name, version and protocol extensions.

use super::call::EndpointCall;
use crate::answer::Answer;
use crate::refusal::Refusal;
use crate::service::{NAME, VERSION};

#[allow(clippy::unnecessary_wraps)]
pub(super) fn answer(call: &EndpointCall) -> Result<Answer, Refusal> {
    let extensions = call.shared.service.extensions();
    Ok(Answer::json(&serde_json::json!({ "name": NAME, "version": VERSION, "extensions": extensions })))
}
