//! What this server is.

use super::Call;
use crate::refusal::Refusal;
use crate::server::Answer;

/// The extensions of the protocol that work here, and no others.
const EXTENSIONS: [&str; 4] = ["binary_tensor_data", "schedule_policy", "statistics", "metrics"];

pub(super) fn answer(_: &Call) -> Result<Answer, Refusal> {
    Ok(Answer::json(&serde_json::json!({
        "name": "mxrt",
        "version": env!("CARGO_PKG_VERSION"),
        "extensions": EXTENSIONS,
    })))
}
