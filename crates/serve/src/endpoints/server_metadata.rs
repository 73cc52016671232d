//! What this server is.

use super::Call;
use crate::refusal::Refusal;
use crate::server::Answer;
use crate::service::{EXTENSIONS, NAME, VERSION};

#[allow(clippy::unnecessary_wraps)]
pub(super) fn answer(_: &Call) -> Result<Answer, Refusal> {
    Ok(Answer::json(&serde_json::json!({ "name": NAME, "version": VERSION, "extensions": EXTENSIONS })))
}
